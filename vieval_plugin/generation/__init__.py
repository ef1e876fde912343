"""Makers of images, for any host: conditions to image files. What a judge thinks of them is no
affair of theirs.
"""
