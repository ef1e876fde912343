"""Card of a model as a judge: its verdicts on a seeded sample of benchmarks, compared
with the published judges, on one page.
"""
