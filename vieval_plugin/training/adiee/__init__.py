"""ADIEE's training: labels that nobody gave, a model with a token and a head, and what is
written beside it.
"""
