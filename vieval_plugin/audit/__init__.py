"""Audit a judge without human ratings: change images in known ways, and ask the judge
again.
"""
