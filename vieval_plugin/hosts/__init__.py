"""Integrations with evaluation harnesses."""
