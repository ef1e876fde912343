"""Benchmarks as samples."""
