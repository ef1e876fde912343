"""A page on which people rate samples or vote on contests without seeing the models'
names.
"""
