"""Judges as rewards of trainers: what a reward is, and a module for each trainer that calls one
in its own process.
"""
