"""Schema of `benchmark.yaml`; docs/guides/extending.md has the keys."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from vieval_plugin.benchmarks.benchmark import USER_SOURCE
from vieval_plugin.benchmarks.loading.lmms_eval_task import HostTask
from vieval_plugin.benchmarks.loading.two_by_two import STATISTICS as TWO_BY_TWO
from vieval_plugin.judges.contests import SCHEMES
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.label_statistics import BINARY, STATISTICS
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.prompts.schema import ByWord, StrictModel
from vieval_plugin.readers.rows import GRADED
from vieval_plugin.text.suggestions import did_you_mean

_ASPECTS = ("SC", "PQ", "O")
_CANDIDATE = ("output", "image_model", "uid")
_COMMON = {
    "name",
    "title",
    "kind",
    "source",
    "licence",
    "trainable",
    "synthetic",
    "note",
    "advice",
}
_TABLE = {*_COMMON, "parts", "table", "columns", "split", "group", "tags", "statistics"}
#: The keys of a description by the one of them that says what its samples are judged against.
_KEYS: Mapping[str, set[str]] = {
    "ratings": {*_TABLE, "ratings", "scale", "by_image_model"},
    "vote": {*_TABLE, "vote", "candidates"},
    "two_by_two": {*_COMMON, "parts", "two_by_two"},
    "lmms_eval": {*_COMMON, "lmms_eval"},
}
_PAIR_METRIC = "preference_accuracy"


class PartsSection(StrictModel):
    """The column that names a row's part, and how many samples each part was published with.

    Without `samples` the parts are those in the table, without `column` all rows are of the one
    part.
    """

    column: str = ""
    samples: dict[str, int | None] = Field(default={})

    @model_validator(mode="after")
    def _check_column(self) -> PartsSection:
        if not self.column and len(self.samples) != 1:
            raise ValueError(
                "without `column`, `samples` must contain exactly one part and its "
                "number of samples"
            )
        return self


class VoteSection(StrictModel):
    """Columns of the votes (overall and per annotator), and the table's words for each
    vote.
    """

    column: str
    scheme: Literal["four_way", "three_way", "two_way"]
    annotators: tuple[str, ...] = ()
    words: Annotated[dict[str, str], ByWord] = Field(default={})

    @model_validator(mode="after")
    def _check_answers(self) -> VoteSection:
        for answer in self.words.values():
            if answer not in SCHEMES[self.scheme]:
                known_answers = ", ".join(SCHEMES[self.scheme])
                raise ValueError(
                    f"a {self.scheme} vote must be one of {known_answers}, got {answer!r}"
                )
        return self


class Description(StrictModel):
    """Content of a `benchmark.yaml`.

    What its samples are judged against is one of: `ratings` on a scale, a `vote` on two
    `candidates`, the `two_by_two` examples of a file, and nothing, where they are the conditions of
    a task of `lmms_eval`.
    """

    name: str
    title: str = ""
    kind: Literal["tig", "mie", "tie", "sdig", "sdie", "mcic", "cig"]
    table: str = ""
    columns: dict[str, str] = Field(default={})
    split: dict[str, str] = Field(default={})
    ratings: dict[str, str | tuple[str, ...]] = Field(default={})
    scale: tuple[float, float] | None = None
    candidates: tuple[dict[str, str], ...] = ()
    vote: VoteSection | None = None
    two_by_two: str = ""
    lmms_eval: HostTask | None = None
    group: str = ""
    tags: tuple[str, ...] = ()
    parts: PartsSection | None = None
    statistics: tuple[str, ...] = ()
    by_image_model: bool | None = None
    source: str = USER_SOURCE
    licence: str = "unknown (ask its authors)"
    trainable: bool = False
    synthetic: bool = False
    note: str = ""
    advice: str = ""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not re.fullmatch("[a-z][a-z0-9_]{0,60}", name):
            raise ValueError(
                "must begin with a lowercase letter and contain at most 61 lowercase letters, "
                f"digits and _, got {name[:80]!r}"
            )
        return name

    @field_validator("statistics")
    @classmethod
    def _check_statistics(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in STATISTICS:
                hint = did_you_mean(name, STATISTICS)
                known_names = ", ".join(STATISTICS)
                raise ValueError(
                    f"unknown statistic {name!r}{hint or ';'} known statistics: {known_names}"
                )
        return names

    @model_validator(mode="after")
    def _check_keys(self) -> Description:
        standards = [key for key in _KEYS if getattr(self, key)]
        if len(standards) != 1:
            raise ValueError(
                f"must have exactly one of {', '.join(_KEYS)} to compare judges with"
            )
        keys = _KEYS[standards[0]]
        useless = [key for key in self.model_fields_set - keys if getattr(self, key)]
        if useless:
            raise ValueError(f"{min(useless)}: cannot be combined with {standards[0]}")
        if "table" in keys and not self.table:
            raise ValueError("table: required (the file with the rows)")
        unknown = [aspect for aspect in self.ratings if aspect not in _ASPECTS]
        if unknown:
            known_aspects = ", ".join(_ASPECTS)
            raise ValueError(
                f"ratings: unknown aspect {unknown[0]!r}; known aspects: {known_aspects}"
            )
        if self.statistics and self.by_image_model:
            raise ValueError(
                "statistics: cannot be combined with by_image_model; remove one of the two"
            )
        if self.ratings and not (
            self.scale
            and self.scale[0] < self.scale[1]
            and all(map(math.isfinite, self.scale))
        ):
            raise ValueError(
                "scale: must be the lowest and the highest possible rating, such as [1, 5]"
            )
        if self.vote and not (
            len(self.candidates) == 2
            and all("output" in columns for columns in self.candidates)
        ):
            raise ValueError(
                "candidates: a vote requires exactly 2 candidates, each with an `output` column"
            )
        for key in (key for candidate in self.candidates for key in candidate):
            if key not in _CANDIDATE:
                hint = did_you_mean(key, _CANDIDATE, 0.5)
                known_keys = ", ".join(_CANDIDATE)
                raise ValueError(
                    f"candidates: unknown key {key!r}{hint or ';'} known keys: {known_keys}"
                )
        if self.vote and self.statistics not in ((), (_PAIR_METRIC,)):
            raise ValueError(
                f"statistics: votes support only {_PAIR_METRIC}, with each candidate "
                "as a sample"
            )
        return self

    @model_validator(mode="after")
    def _check_scale_of_statistics(self) -> Description:
        for name in self.statistics if self.ratings and self.scale != (0, 1) else ():
            if name in BINARY:
                raise ValueError(
                    f"statistics: {name} requires ratings of no and yes on the scale [0, 1], "
                    f"got {list(self.scale or ())}; use pearson, spearman or kendall"
                )
        return self

    def report(self) -> Report:
        """The report: by image model where several annotators rated, because that
        report includes agreement between annotators.
        """
        if self.two_by_two:
            return WithLabels(TWO_BY_TWO)
        if self.vote:
            return (
                WithLabels(self.statistics)
                if self.statistics
                else ByVotes(self.vote.scheme)
            )
        has_annotators = any(
            not isinstance(columns, str) and len(columns) > 1
            for columns in self.ratings.values()
        )
        if self.by_image_model or (
            self.by_image_model is None and has_annotators and not self.statistics
        ):
            return ByImageModel(rated=tuple(self.ratings))
        return WithLabels(self.statistics or GRADED, tuple(self.ratings))
