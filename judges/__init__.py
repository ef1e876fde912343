"""Judges: what to ask about an image and how to read the answer. No network, no files, no torch."""
