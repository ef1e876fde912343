"""The leaderboard of published judges: their numbers recomputed, beside the printed ones, and
what others submit.
"""
