"""Verdicts in order, as arrays, as a table of pandas, and as a table with pictures where a
notebook shows them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from vieval_plugin import images
from vieval_plugin.judges.contests import (
    FORWARD,
    REVERSE,
    Contest,
    Judged,
    candidates_of,
)
from vieval_plugin.judges.protocol import Verdict
from vieval_plugin.media.thumbnails import Thumbnails
from vieval_plugin.records import Provenance, Record, record_of
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.html_page import template
from vieval_plugin.text.wording import plural

#: Rows of a notebook's table; the others are only counted.
ROWS_IN_HTML = 50

#: Pixels of an enlarged picture of a notebook, which shows them at a quarter of that.
_SIDE = 384
_VOTES = {
    "first": 1.0,
    "second": -1.0,
    "tie": 0.0,
    "both_good": 0.0,
    "both_bad": 0.0,
    "1>2": 1.0,
    "2>1": -1.0,
}


class Verdicts(Sequence[Verdict]):
    """Verdicts of a judge on samples or contests, in their order.

    - `samples` are what was judged, `aspects` the aspects that the judge rates;
    - `scores("SC")` are its scores as an array, `preferences()` which candidates it prefers;
    - `to_pandas()` is a table with one row per sample; a notebook shows the first with
      their pictures.
    """

    def __init__(
        self,
        samples: Sequence[Judged],
        verdicts: Sequence[Verdict],
        aspects: Sequence[str],
        provenance: Provenance | None = None,
    ) -> None:
        self.samples = tuple(samples)
        self.aspects = tuple(aspects)
        self.provenance = provenance
        self._verdicts = tuple(verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...

    @overload
    def __getitem__(self, index: slice) -> Verdicts: ...

    def __getitem__(self, index: int | slice) -> Verdict | Verdicts:
        if isinstance(index, slice):
            return Verdicts(
                self.samples[index],
                self._verdicts[index],
                self.aspects,
                self.provenance,
            )
        return self._verdicts[index]

    def __eq__(self, verdicts: object) -> bool:
        return isinstance(verdicts, Sequence) and list(self) == list(verdicts)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        counts = Counter(str(verdict.status) for verdict in self).most_common()
        statuses = ", ".join(f"{status} {n}" for status, n in counts)
        means = []
        for aspect in self.aspects:
            scores = self.scores(aspect)
            if not np.isnan(scores).all():
                means.append(f"{aspect} {np.nanmean(scores):.3f}")
        means_text = f"; mean {', '.join(means)}" if means else ""
        verdicts = plural(len(self), "verdict")
        return f"<{verdicts}: {statuses or 'none'}{means_text}>"

    @property
    def records(self) -> list[Record]:
        """The verdicts with their samples and judge; VievalError if these are unknown."""
        if self.provenance is None:
            raise VievalError(
                "these verdicts do not record their judge; pass verdicts from a Judge"
            )
        return [
            record_of(sample, verdict, self.provenance)
            for sample, verdict in zip(self.samples, self, strict=True)
        ]

    def scores(self, aspect: str = "") -> NDArray[np.float64]:
        """The scores of an aspect (default: O where the judge rates it), in [0, 1],
        shape (number,); NaN if missing.

        Raises:
            VievalError: the judge rates no such aspect.
        """
        aspect = aspect or main_aspect(self.aspects)
        if aspect not in self.aspects:
            raise unknown_aspect_error(aspect, self.aspects)
        scores = [verdict.scores.get(aspect, math.nan) for verdict in self]
        return np.array(scores, dtype=float)

    def preferences(self, aspect: str = "") -> NDArray[np.float64]:
        """Preference for the first candidate of contests of two, in [-1, 1], shape
        (number,); NaN if missing.

        Of a judge that votes it is 1, 0 for a tie, or -1, and the mean over both orders; of one
        that prefers, the mean of its preferences; of one that scores, the difference of the scores
        of an aspect (default: O where it rates it).

        Raises:
            VievalError: the judge rates no such aspect, or what it judged are samples and no
                contests.
        """
        if aspect and aspect not in self.aspects:
            raise unknown_aspect_error(aspect, self.aspects)
        contests = [judged for judged in self.samples if isinstance(judged, Contest)]
        if self.samples and not contests:
            raise VievalError(
                "`preferences` requires verdicts on contests, but these are on single "
                "samples; use `scores`"
            )
        compared = aspect or main_aspect(self.aspects)
        preferences = [preference(verdict, compared) for verdict in self]
        return np.array(preferences, dtype=float)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per sample: uid, image_model, kind, texts,
        scores or votes, status, reason, findings.

        Raises:
            VievalError: pandas is not installed.
        """
        pandas = import_pandas("to_pandas")
        rows = []
        for judged, verdict in zip(self.samples, self, strict=True):
            sample_id = judged.id
            row = {
                "uid": sample_id.uid,
                "image_model": sample_id.image_model,
                "draw": sample_id.draw,
                "kind": judged.kind,
            }
            row |= candidates_of(judged)[0].texts
            for aspect in self.aspects:
                row[aspect] = verdict.scores.get(aspect, math.nan)
            if verdict.choice:
                row |= verdict.choice.votes
                row["preference"] = preference(verdict, main_aspect(self.aspects))
            row |= {
                "status": str(verdict.status),
                "reason": verdict.reason,
                "rationale": verdict.rationale,
                "findings": ", ".join(verdict.findings),
            }
            rows.append(row)
        return pandas.DataFrame(rows)

    def _repr_html_(self) -> str:
        """A table with pictures, without scripts; whatever others wrote in it is shown as text,
        dollars too.
        """
        pictures = Thumbnails(side=_SIDE)
        page = template(Path(__file__).with_name("verdicts.html.jinja"))
        rows = list(zip(self.samples[:ROWS_IN_HTML], self, strict=False))
        return page.render(
            verdicts=self,
            rows=rows,
            candidates_of=candidates_of,
            thumbnail=lambda image: images.thumbnail(image, pictures),
            votes=_votes,
        )


def import_pandas(purpose: str) -> Any:
    """Import pandas, which `purpose` needs; VievalError where it is not installed."""
    try:
        import pandas
    except ImportError:
        raise VievalError(
            f"{purpose} requires pandas; run pip install pandas"
        ) from None
    return pandas


def main_aspect(aspects: Sequence[str]) -> str:
    """The aspect that stands for a judge: O where it rates it, else its first; empty for one that
    rates none.

    >>> main_aspect(("SC", "PQ", "O")), main_aspect(("PQ",)), main_aspect(())
    ('O', 'PQ', '')
    """
    return "O" if "O" in aspects else next(iter(aspects), "")


def unknown_aspect_error(aspect: str, rated: Sequence[str]) -> VievalError:
    """Make the error for an aspect that a judge does not rate."""
    if not rated:
        return VievalError(
            "the judge compares images and does not score them; use `compare`"
        )
    return VievalError(f"unknown aspect {aspect!r}; the judge rates {', '.join(rated)}")


def preference(verdict: Verdict, aspect: str) -> float:
    """Preference of a verdict for the first of two candidates, in [-1, 1], as
    `Verdicts.preferences`; NaN for none.
    """
    choice = verdict.choice
    if choice is None:
        return math.nan
    if choice.scores:
        first, second = choice.scores[:2]
        first_score = first.get(aspect, math.nan)
        second_score = second.get(aspect, math.nan)
        return first_score - second_score
    preferences = choice.preferences
    if not preferences:
        votes = choice.votes.items()
        preferences = {order: _VOTES.get(vote, math.nan) for order, vote in votes}
    by_order = [
        preferences[order] for order in (FORWARD, REVERSE) if order in preferences
    ]
    return math.fsum(by_order) / len(by_order) if by_order else math.nan


def _votes(verdict: Verdict) -> str:
    votes = verdict.choice.votes if verdict.choice else {}
    return ", ".join(f"{order}: {vote}" for order, vote in votes.items())
