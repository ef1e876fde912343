"""Backends that answer asks."""
