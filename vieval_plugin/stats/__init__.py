"""Statistics: plain functions on arrays, each with the source of its formula; nothing here knows
of judges or benchmarks.
"""
