"""A judge in one file."""

LEGIBILITY = """\
name: legibility
title: Legibility of text
kinds: [tig, tie]
questions:
  PQ:
    text: |
      Rate from 0 to 10 how legible the text in the picture is.
      Answer as JSON: {"score": [n], "reasoning": "..."}
    images: [output]
    scores: [legibility]
scale: [0, 10]
combine: {PQ: min}
"""
