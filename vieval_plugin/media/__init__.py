"""Read, write and encode files and images."""
