"""Draws of a bootstrap in which each item comes and goes by itself."""

from vieval_plugin.stats import bootstrap


def draws_of(items, seed=0, draws=6):
    """How often each of so many items is in each draw."""
    groups = [str(item) for item in range(items)]
    return bootstrap.cluster_counts(groups, resamples=draws, seed=seed)
