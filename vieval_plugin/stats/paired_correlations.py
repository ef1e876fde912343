"""Difference of two judges' correlations with people, averaged over image models, for the tests
of `comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vieval_plugin.stats.bootstrap import Ints, Seed, factorize, seed_tuple
from vieval_plugin.stats.comparison import Bools, require_same_items
from vieval_plugin.stats.correlation import (
    Coefficient,
    Floats,
    fisher_mean_over,
    resampled_correlations,
)

#: Orders of samples, of any type of whole numbers.
Indices: TypeAlias = NDArray[np.integer[Any]]

# averages that are equal but for rounding are equal
_ROUNDING = 1e-9
# OpenBLAS divides larger products between threads
_MULTIPLICATIONS_OF_ONE_THREAD = 2**18


class CorrelationDifference:
    """The difference of two judges' correlations with people, each averaged over image models by
    Fisher's z.

    Scores of judges on different scales cannot be swapped as they are, so each judge's are
    standardised first within what is correlated, which is one image model: z-scores for Pearson's
    r, ranks for Spearman's rho. A swap then mixes ranks, and rho is Pearson's r of these. All
    scores of a group are swapped together, because one instruction's images are judged well or
    badly together. To swap each score alone (PERM-BOTH of Deutsch, Dror and Roth 2021) rejects far
    too often here: about 20 to 30% of true null hypotheses at 5%.

    An image model in which people are constant is left out of both judges' averages, in each swap
    and resample too: the averages of the two are always over the same image models. Where people
    vary and a judge is constant, its correlation counts as 0.

    Args:
        first: the first judge's scores, shape (rows, image models), on any scale; NaN where there
            is no sample.
        second: the second's, of the same shape, on any scale.
        human: what people said, of the same shape.
        groups: what each row is swapped and drawn together with, shape (rows,); by default each row
            is its own group.
        parts: the part of each image model, shape (image models,); the average is over the image
            models of a part, then over parts, as `meta_evaluation` has it, and groups are drawn
            within parts. By default there is one part.
        coefficient: `spearman` or `pearson`.

    Raises:
        ValueError: for other shapes, or cells that not all three have. Take what all have before.

    Source: PROTOCOLS of this project, "Comparing two judges"; Fisher's average as
    `correlation.fisher_mean`.

    >>> from vieval_plugin.stats.comparison import paired_comparison
    >>> ratings = np.arange(12.0).reshape(6, 2) % 5
    >>> paired_comparison(CorrelationDifference(ratings, -ratings, ratings), resamples=99).p < 0.1
    True
    """

    scale = 1.0

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        human: ArrayLike,
        groups: Sequence[Hashable] | None = None,
        parts: Sequence[Hashable] | None = None,
        coefficient: Literal["spearman", "pearson"] = "spearman",
    ) -> None:
        first_scores, second_scores, human_ratings = _same_tables(first, second, human)
        rows, models = human_ratings.shape
        if groups is None:
            groups = range(rows)
        if parts is None:
            parts = ["one part"] * models
        _require_lengths(groups, rows, parts, models)
        _, group_index = factorize(groups)
        _, part = factorize(parts)
        self._coefficient: Coefficient = coefficient
        self._scores = (first_scores, second_scores, human_ratings)
        self._group_index = group_index
        self._parts = [np.flatnonzero(part == number) for number in np.unique(part)]
        is_rated = ~np.isnan(human_ratings)
        self.strata = _strata(is_rated, group_index, part)
        self.units = len(self.strata)
        ratings = _standardised(human_ratings, coefficient)
        item_counts = is_rated.sum(axis=0)
        defined_counts = np.where(ratings.any(axis=0), item_counts, np.nan)
        self._n = defined_counts[:, None]
        # swapping moves a unit's share of the sums from one judge to the other
        first_moments = _moments(first_scores, ratings, coefficient)
        second_moments = _moments(second_scores, ratings, coefficient)
        self._totals = (
            first_moments.sum(axis=0)[:, None],
            second_moments.sum(axis=0)[:, None],
        )
        unit_shifts = np.zeros((self.units, models, 3))
        np.add.at(unit_shifts, group_index, second_moments - first_moments)
        shifts_by_model = unit_shifts.transpose(1, 0, 2)
        # a part's units move nothing elsewhere, so each part has a product of its own
        self._shifts_of_parts = [
            _nonzero(shifts_by_model[models]) for models in self._parts
        ]

    def estimates(self) -> tuple[float, float]:
        """Both averages, in [-0.9999, 0.9999]; NaN where no image model is left."""
        first, second = self._averages(*map(self._pearson, self._totals))
        return float(first[0]), float(second[0])

    def swapped(self, swap: Bools) -> Floats:
        moved_sums = np.empty((len(self._n), len(swap), 3))
        for models, (units, shifts) in zip(
            self._parts, self._shifts_of_parts, strict=True
        ):
            part_sums = _product(swap[:, units].astype(float), shifts)
            by_model = part_sums.reshape(len(swap), len(models), 3)
            moved_sums[models] = by_model.transpose(1, 0, 2)
        first_total, second_total = self._totals
        first_correlations = self._pearson(first_total + moved_sums)
        second_correlations = self._pearson(second_total - moved_sums)
        first, second = self._averages(first_correlations, second_correlations)
        return first - second

    def permuted(self, orders: Callable[[Ints], Indices]) -> Floats:
        """The first judge's average with its scores given to other samples of the same image model,
        shape (permutations,).

        `orders` turns the groups of an image model's samples, sorted, into orders of these samples,
        shape (permutations, samples). Groups move whole: one instruction's images stay together, so
        that nothing but the relation to people is lost.
        """
        first, _, human = self._scores
        judge, ratings = (
            _unit_length(_standardised(scores, self._coefficient))
            for scores in (first, human)
        )
        by_group = np.argsort(self._group_index, kind="stable")
        correlations = []
        for model, is_rated in enumerate(~np.isnan(human.T)):
            rows = by_group[is_rated[by_group]]
            order = orders(self._group_index[rows])
            if ratings[:, model].any():
                permuted_scores = judge[rows, model][order]
                by_model = np.einsum(
                    "pn,n->p",
                    permuted_scores,
                    ratings[rows, model],
                )
            else:
                by_model = np.full(len(order), np.nan)
            correlations.append(by_model)
        table = np.array(correlations)
        return self._averages(table, table)[0]

    def resampled(self, counts: Ints) -> Floats:
        *judges, human = self._scores
        correlations = np.full((2, human.shape[1], len(counts)), np.nan)
        row_counts = counts[:, self._group_index]
        for model, is_rated in enumerate(~np.isnan(human.T)):
            weights = row_counts[:, is_rated]
            ratings = human[is_rated, model]
            for judge, table in enumerate(judges):
                scores = table[is_rated, model]
                correlations[judge, model] = resampled_correlations(
                    ratings, scores, weights, self._coefficient, 0.0
                )
        first, second = self._averages(*correlations)
        return first - second

    def _pearson(self, sums: Floats) -> Floats:
        """Pearson's r with people of each image model and resample, shape (image models,
        resamples).
        """
        sums_of_scores, squares, products = np.moveaxis(sums, 2, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = squares - sums_of_scores**2 / self._n
            correlations = np.clip(products / np.sqrt(spread), -1, 1)
            # standardised scores are of the size of 1, so what is left of a constant is rounding
            varies = spread > 1e-12 * self._n
            constant_values = np.where(np.isnan(self._n), np.nan, 0.0)
            return np.where(varies, correlations, constant_values)

    def _averages(
        self,
        first: Floats,
        second: Floats,
    ) -> list[Floats]:
        """The two averages, each of shape (resamples,), of correlations of shape (image models,
        resamples).
        """
        is_undefined = np.isnan(first) | np.isnan(second)
        defined = [np.where(is_undefined, np.nan, judge) for judge in (first, second)]
        if len(self._parts) <= 1:
            return [fisher_mean_over(judge) for judge in defined]
        averages = []
        for judge in defined:
            by_part = [fisher_mean_over(judge[models]) for models in self._parts]
            averages.append(fisher_mean_over(by_part))
        return averages


def independence_p(
    statistic: CorrelationDifference,
    seed: Seed = 0,
    permutations: int = 999,
) -> float:
    """P-value of the first judge's average correlation with people, by permutations within image
    models.

    If its scores say nothing of people's ratings, it does not matter which of an image model's
    samples has which.

    Args:
        statistic: the judge's, the second judge being of no account.
        seed: a number, or several that together are one.
        permutations: how many; .05 needs no more.

    Returns:
        Two-sided p in (0, 1]; NaN where the judge's average is undefined.

    Source: Fisher 1935, The Design of Experiments; Phipson and Smyth 2010 (the added 1).

    >>> ratings = np.arange(12.0)[:, None]
    >>> independence_p(CorrelationDifference(ratings, ratings, ratings))
    0.001
    """
    [average] = statistic.permuted(lambda groups: np.arange(len(groups))[None])
    observed = abs(average)
    if math.isnan(observed):
        return math.nan
    seeds = seed_tuple(seed)
    shape = (permutations, len(statistic.strata))
    permuted = statistic.permuted(
        lambda groups: _random_orders(seeds, shape, groups.tobytes())
    )
    is_smaller = np.abs(permuted) < observed - _ROUNDING
    exceeding = int(np.count_nonzero(~is_smaller))
    return (1 + exceeding) / (1 + permutations)


# image models with the same samples share their orders, and so do judges
@lru_cache(maxsize=32)
def _random_orders(
    seeds: tuple[int, ...],
    shape: tuple[int, int],
    groups: bytes,
) -> NDArray[np.uint32]:
    """Orders of samples by random keys of their groups, shape (permutations, samples).

    Args:
        seeds: of the keys.
        shape: permutations and groups.
        groups: of each sample, as bytes of int64.
    """
    keys = np.random.default_rng(seeds).random(shape)
    group_keys = keys[:, np.frombuffer(groups, dtype=np.int64)]
    return np.argsort(group_keys, axis=1, kind="stable").astype(np.uint32)


def _same_tables(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
) -> tuple[Floats, Floats, Floats]:
    """Three tables of the same cells; ValueError for others."""
    first_scores = np.asarray(first, dtype=float)
    second_scores = np.asarray(second, dtype=float)
    ratings = np.asarray(human, dtype=float)
    shapes = {first_scores.shape, second_scores.shape, ratings.shape}
    if ratings.ndim != 2 or len(shapes) > 1:
        raise ValueError(
            f"tables must have the same shape, got {first_scores.shape}, "
            f"{second_scores.shape}, {ratings.shape}"
        )
    require_same_items(first_scores, second_scores)
    require_same_items(first_scores, ratings)
    return first_scores, second_scores, ratings


def _require_lengths(
    groups: Sequence[Hashable],
    rows: int,
    parts: Sequence[Hashable],
    models: int,
) -> None:
    if len(groups) != rows or len(parts) != models:
        raise ValueError(
            f"`groups` must have {rows} entries (one for each row) "
            f"and `parts` {models} (one for each image model), "
            f"got {len(groups)} and {len(parts)}"
        )


def _moments(
    scores: Floats,
    ratings: Floats,
    coefficient: str,
) -> Floats:
    """The three values of each standardised score whose sums r needs: itself, its square, and its
    product with the centred rating at length 1.
    """
    standardised = _standardised(scores, coefficient)
    products = standardised * _unit_length(ratings)
    return np.stack([standardised, standardised**2, products], axis=2)


def _product(rows: Floats, columns: Floats) -> Floats:
    """`rows @ columns.T`, in steps so small that BLAS starts no threads, which spend several times
    the work's own CPU seconds on waiting.
    """
    products = np.empty((len(rows), len(columns)))
    step = max(1, _MULTIPLICATIONS_OF_ONE_THREAD // max(columns.size, 1))
    for start in range(0, len(rows), step):
        stop = start + step
        np.matmul(rows[start:stop], columns.T, out=products[start:stop])
    return products


def _unit_length(centred: Floats) -> Floats:
    """Centred columns as vectors of length 1; those of zeros stay."""
    norm = np.sqrt((centred**2).sum(axis=0))
    return centred / np.where(norm > 0, norm, 1.0)


def _nonzero(unit_shifts: Floats) -> tuple[Ints, Floats]:
    """Units that move anything, and what each moves: from shape (image models, units, 3) to (3 x
    image models, units).
    """
    units = np.flatnonzero(unit_shifts.any(axis=(0, 2)))
    shifts = unit_shifts[:, units].transpose(0, 2, 1)
    rows = shifts.reshape(3 * len(unit_shifts), len(units))
    return units, np.ascontiguousarray(rows)


def _standardised(scores: Floats, coefficient: str) -> Floats:
    """Each column's z-scores, or its ranks around 0; 0 where there is no score and where all are
    equal.
    """
    standardised = np.zeros(scores.shape)
    for column, is_scored in enumerate(~np.isnan(scores.T)):
        values = scores[is_scored, column]
        if len(values) == 0 or np.all(values == values[0]):
            continue
        if coefficient == "spearman":
            # scipy's rankdata takes several times as long for so few values
            _, value_indices, ties = np.unique(
                values, return_inverse=True, return_counts=True
            )
            value_ranks = ties.cumsum() - (ties - 1) / 2
            ranks = value_ranks[value_indices]
            # one factor for all judges, so that ranks are what is swapped
            centred_ranks = ranks - (len(values) + 1) / 2
            standardised[is_scored, column] = centred_ranks / len(values)
        else:
            deviations = values - values.mean()
            standardised[is_scored, column] = deviations / values.std()
    return standardised


def _strata(
    is_rated: Bools,
    group_index: Ints,
    part: Ints,
) -> Ints:
    """The stratum of each group: those of the same part, or of the same several, are drawn from
    one another.
    """
    groups = group_index.max(initial=-1) + 1
    parts = part.max(initial=-1) + 1
    spanned = np.zeros((groups, parts), dtype=bool)
    rows, models = np.nonzero(is_rated)
    spanned[group_index[rows], part[models]] = True
    return factorize([parts_of_group.tobytes() for parts_of_group in spanned])[1]
