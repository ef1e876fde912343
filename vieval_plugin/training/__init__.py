"""Training data from runs: the conversations behind verdicts, in the formats of
trainers.
"""
