"""Statistics: plain functions on arrays."""
