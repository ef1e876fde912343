"""Train ADIEE: labels without annotators, a model with a token and a head, and its
files.
"""
