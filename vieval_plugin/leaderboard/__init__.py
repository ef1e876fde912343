"""Leaderboard of published judges: recomputed numbers, printed numbers, and
submissions.
"""
