"""What answers asks."""
