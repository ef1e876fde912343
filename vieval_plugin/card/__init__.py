"""The card of a model as a judge: a seeded sample of benchmarks judged, beside the published
judges, on one page.
"""
