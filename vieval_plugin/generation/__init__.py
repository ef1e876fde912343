"""Generators of images for any host, from conditions to image files."""
