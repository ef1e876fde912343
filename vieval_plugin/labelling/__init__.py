"""A page on which people rate samples or vote on contests, without knowing who made what."""
