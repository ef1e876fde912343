"""Reports of benchmarks: agreement by image model, with labels, with annotators. The formulas
are in `stats/`.
"""
