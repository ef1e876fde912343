"""Verdicts on data sets of any size: shards of the input, a file of verdicts each, and the
workers that write them.
"""
