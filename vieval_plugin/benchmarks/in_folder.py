"""A benchmark in a folder: a table of images that people rated or voted on, and `benchmark.yaml`, which says what it is.

docs/extending/benchmark.md has the keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from vieval_plugin.benchmarks.benchmark import Benchmark
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.contests import SCHEMES, Contest, Judged
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.meta_evaluation.label_statistics import STATISTICS
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.meta_evaluation.statistics import Report
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.prompts.packs import read_mapping
from vieval_plugin.prompts.schema import Part as Section
from vieval_plugin.prompts.schema import parsed
from vieval_plugin.readers.columns import ColumnMap, columns_by_field, fields_of, require_columns, sample_row
from vieval_plugin.readers.contest_rows import ContestRows, read_contests
from vieval_plugin.readers.rows import GRADED, Row
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.table_rows import located, open_table
from vieval_plugin.readers.tables import BadLine, InputTable, StoredImage
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import is_below, isfile

FILE = "benchmark.yaml"
_WHOLE = "all"
"""The part of a benchmark that has no parts."""
_ASPECTS = ("SC", "PQ", "O")
_CANDIDATE = ("output", "image_model", "uid")
_MOST_PARTS = 100


class PartsSection(Section):
    """The column that names a row's part, and how many samples each part was published with; read from the table if absent."""

    column: str
    samples: dict[str, int | None] = Field(default={})


class VoteSection(Section):
    """The column of people's answer, those of each annotator, and the table's words for the answers of the scheme."""

    column: str
    scheme: Literal["four_way", "three_way", "two_way"]
    annotators: tuple[str, ...] = ()
    words: dict[str, str] = Field(default={})

    @field_validator("words", mode="before")
    @classmethod
    def _check_words(cls, words: Any) -> Any:
        if isinstance(words, dict) and any(isinstance(word, bool) for word in words):
            raise ValueError("write words such as Yes and No in quotation marks: YAML takes them for truth values")
        return {str(word): answer for word, answer in words.items()} if isinstance(words, dict) else words

    @model_validator(mode="after")
    def _check_answers(self) -> VoteSection:
        for answer in self.words.values():
            if answer not in SCHEMES[self.scheme]:
                raise ValueError(f"{answer!r} is no {self.scheme} vote; those are {', '.join(SCHEMES[self.scheme])}")
        return self


class Description(Section):
    """A `benchmark.yaml` as it is written: `ratings` on a scale, or a `vote` on two `candidates`."""

    name: str
    title: str = ""
    table: str
    kind: Literal["tig", "mie", "tie", "sdig", "sdie", "mcic", "cig"]
    columns: dict[str, str] = Field(default={})
    ratings: dict[str, str | tuple[str, ...]] = Field(default={})
    scale: tuple[float, float] | None = None
    candidates: tuple[dict[str, str], ...] = ()
    vote: VoteSection | None = None
    group: str = ""
    tags: tuple[str, ...] = ()
    parts: PartsSection | None = None
    statistics: tuple[str, ...] = ()
    by_image_model: bool | None = None
    source: str = "the user"
    licence: str = "unknown: ask its authors"
    trainable: bool = False
    note: str = ""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not re.fullmatch("[a-z][a-z0-9_]{0,60}", name):
            raise ValueError(f"{name[:80]!r} is no name of small letters, digits and _")
        return name

    @field_validator("statistics")
    @classmethod
    def _check_statistics(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in STATISTICS:
                raise ValueError(
                    f"no statistic {name!r}{did_you_mean(name, STATISTICS)} known: {', '.join(STATISTICS)}"
                )
        return names

    @model_validator(mode="after")
    def _check_whole(self) -> Description:
        if bool(self.ratings) == bool(self.vote):
            raise ValueError("one of ratings and vote is needed, for what people said")
        if unknown := [aspect for aspect in self.ratings if aspect not in _ASPECTS]:
            raise ValueError(f"ratings: no aspect {unknown[0]!r}; there are {', '.join(_ASPECTS)}")
        if self.vote and not (len(self.candidates) == 2 and all("output" in columns for columns in self.candidates)):
            raise ValueError("candidates: a vote is on two of them, each with the column of its output")
        for key in (key for candidate in self.candidates for key in candidate):
            if key not in _CANDIDATE:
                hint = did_you_mean(key, _CANDIDATE, 0.5) or ";"
                raise ValueError(f"candidates: unknown key {key!r}{hint} keys are {', '.join(_CANDIDATE)}")
        of_the_other = ("scale", "statistics", "by_image_model") if self.vote else ("candidates",)
        if useless := [key for key in of_the_other if getattr(self, key)]:
            raise ValueError(f"{useless[0]}: means nothing where there is {'a vote' if self.vote else 'no vote'}")
        if self.statistics and self.by_image_model:
            raise ValueError("statistics: those by image model are fixed; name some, or set by_image_model")
        if self.ratings and not (self.scale and self.scale[0] < self.scale[1] and all(map(math.isfinite, self.scale))):
            raise ValueError("scale: the lowest and the highest rating that people could give, such as [1, 5]")
        return self

    def report(self) -> Report:
        """The report: by image model where several annotators rated, as that has their agreement with each other too."""
        if self.vote:
            return ByVotes(self.vote.scheme)
        several = any(not isinstance(columns, str) and len(columns) > 1 for columns in self.ratings.values())
        if self.by_image_model or (self.by_image_model is None and several and not self.statistics):
            return ByImageModel(rated=tuple(self.ratings))
        return WithLabels(self.statistics or GRADED, tuple(self.ratings))


@dataclass(frozen=True)
class _Reading:
    """A table as its description reads it; `file` is the description."""

    file: Path
    described: Description

    @cached_property
    def table(self) -> InputTable:
        """The table beside the description, whose images lie below the folder; VievalError where it lacks a column."""
        folder = self.file.parent
        path = folder / self.described.table
        if not is_below(path, folder) or not isfile(path):
            raise VievalError(f"{self.file}: table: no file {self.described.table!r} in this folder")
        table = replace(open_table(path), roots=(folder,))
        require_columns(table, self._extra)
        require_columns(table, self._candidate_columns)
        return table

    @cached_property
    def fields(self) -> ColumnMap:
        """The columns of a row's sample, or of what the candidates of a contest share."""
        chosen = columns_by_field(self.described.columns, f"{self.file}: columns")
        if not self.described.vote:
            return fields_of(self.table, chosen)
        require_columns(self.table, chosen.values())
        return ColumnMap(chosen)

    @property
    def _extra(self) -> list[str]:
        """The columns of all that is no part of a sample."""
        of = self.described
        ratings = [
            name for columns in of.ratings.values() for name in ([columns] if isinstance(columns, str) else columns)
        ]
        votes = [of.vote.column, *of.vote.annotators] if of.vote else []
        return [name for name in (*ratings, *votes, of.group, *of.tags, of.parts.column if of.parts else "") if name]

    @property
    def _candidate_columns(self) -> list[str]:
        return [column for candidate in self.described.candidates for column in candidate.values()]

    def parts(self) -> Mapping[str, int | None]:
        """The parts with their published numbers, as described or as the table has them."""
        if not self.described.parts:
            return {_WHOLE: None}
        if self.described.parts.samples:
            return self.described.parts.samples
        column = self.described.parts.column
        names = dict.fromkeys(_word(row.cells.get(column)) for row in self._rows())
        if unfit := [name for name in names if not re.fullmatch(r"[\w.-]{1,60}", name)]:
            raise VievalError(
                f"{self.table.name}: {column} is {unfit[0][:80]!r} in a row, and a part is a name of letters, digits, _, - and ."
            )
        if len(names) > _MOST_PARTS:
            raise VievalError(f"{self.file}: parts: {len(names)} of them in {column!r}; name another column")
        return dict.fromkeys(names)

    def _rows(self, part: str = "") -> Iterator[Row]:
        """The rows of a part, or all, each with its number under an empty name; VievalError for one that cannot be read."""
        columns = [*self.fields.columns.values(), *self._extra, *self._candidate_columns]
        for number, cells in self.table.read(list(dict.fromkeys(columns))):
            where = f"{self.table.name}: {self.table.unit} {number}"
            if isinstance(cells, BadLine):
                raise VievalError(f"{where}: {cells}")
            row = Row(where, {"": number, **cells})
            if not part or not self.described.parts or _word(cells.get(self.described.parts.column)) == part:
                yield row

    def load(self, folder: Path, part: str) -> Sequence[Judged]:
        """The samples or contests of a part."""
        return self._contests(part) if self.described.vote else self._samples(part)

    def _samples(self, part: str) -> list[Sample]:
        samples: dict[SampleId, Sample] = {}
        for row in self._rows(part):
            for sample in self._samples_of(row, part):
                if sample.id in samples:
                    raise VievalError(
                        f"{row.where}: {sample.id} was in a row before; give each a uid of its own, or a draw where they "
                        "are images of one prompt"
                    )
                samples[sample.id] = sample
        alike = {
            aspect: len({len(sample.ratings[aspect]) for sample in samples.values()}) == 1
            for aspect in self.described.ratings
        }
        return [replace(sample, ratings=_comparable(sample.ratings, alike)) for sample in samples.values()]

    def _samples_of(self, row: Row, part: str) -> Iterator[Sample]:
        described, number = self.described, int(row.cells[""])
        cells = {
            name: cell for name, cell in row.cells.items() if name and (self.fields.columns or name not in self._extra)
        }
        try:
            given = located(sample_row(cells, self.fields), self.table)
            read = samples_of_row(self.table.folder, number, given, described.kind, described.name)
        except BadLine as bad:
            raise VievalError(f"{row.where}: {bad}") from None
        ratings = {aspect: self._ratings(row, aspect, columns) for aspect, columns in described.ratings.items()}
        tags = self._tags(row)
        for sample, _ in read:
            yield replace(
                sample,
                id=replace(sample.id, part=part),
                ratings=ratings,
                kind=described.kind,
                group=self._group(row, sample.texts, sample.id.uid),
                tags=tuple(dict.fromkeys((*sample.tags, *tags))),
            )

    def _ratings(self, row: Row, aspect: str, columns: str | tuple[str, ...]) -> tuple[float, ...]:
        if isinstance(columns, str):
            cell = row.cells.get(columns)
            given = [(columns, value) for value in (cell if isinstance(cell, list) else _word(cell).split(";"))]
        else:
            given = [(column, row.cells.get(column)) for column in columns]
        ratings = tuple(
            self._rating(Row(row.where, {column: value}), column) for column, value in given if _word(value)
        )
        if not ratings:
            raise VievalError(f"{row.where}: no rating of {aspect}; write one, or remove the row")
        return ratings

    def _rating(self, row: Row, column: str) -> float:
        assert self.described.scale
        return (row.number if isinstance(row.cells[column], str) else row.rating)(column, *self.described.scale)

    def _tags(self, row: Row) -> list[str]:
        cells = (_word(row.cells.get(column)) for column in self.described.tags)
        return [tag.strip() for cell in cells for tag in cell.split(";") if tag.strip()]

    def _group(self, row: Row, texts: Mapping[str, str], uid: str) -> str:
        if self.described.group:
            return _word(row.cells.get(self.described.group)) or uid
        return texts.get("prompt") or texts.get("instruction") or uid

    def _contests(self, part: str) -> list[Contest]:
        described = self.described
        vote = described.vote
        assert vote
        rows = []
        for row in self._rows(part):
            shared = {"texts": {}, "images": {}, **(sample_row(row.cells, self.fields) if self.fields.columns else {})}
            uid = _word(shared.get("uid", row.cells[""]))
            votes = [_word(row.cells.get(column)) for column in (vote.column, *vote.annotators)]
            first, *annotators = [vote.words.get(word, word) for word in votes]
            cells = {
                "id": uid,
                "texts": shared["texts"],
                "images": {role: _file(row, image) for role, image in shared["images"].items()},
                "candidates": [_candidate(row, candidate) for candidate in described.candidates],
                "vote": first,
                "annotators": annotators,
                "group": self._group(row, shared["texts"], uid),
                "tags": self._tags(row),
            }
            rows.append(Row(row.where, cells))
        common = ContestRows(described.name, part, described.kind, vote.scheme)
        return read_contests(rows, self.table.folder, common)


def _candidate(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    names = {key: _word(row.cells.get(columns[key])) for key in ("image_model", "uid") if key in columns}
    return {**names, "images": {"output": _file(row, row.cells.get(columns["output"]))}}


def _file(row: Row, image: Any) -> Any:
    """The file of an image that a cell names; VievalError where the cell holds the image itself."""
    if isinstance(image, StoredImage) and image.data is not None:
        raise VievalError(f"{row.where}: {image.cell.column} holds an image; write it to a file, and name that")
    return image.name if isinstance(image, StoredImage) else image


def _word(cell: Any) -> str:
    """A cell as a text; empty where there is nothing."""
    return "" if cell is None else str(cell).strip()


def _comparable(ratings: Mapping[str, tuple[float, ...]], alike: Mapping[str, bool]) -> Mapping[str, tuple[float, ...]]:
    """Ratings of each annotator, or their mean where not all rated everything: those cannot be told from each other."""
    return {
        aspect: values if alike[aspect] else (math.fsum(values) / len(values),) for aspect, values in ratings.items()
    }


def is_benchmark(folder: Path) -> bool:
    """Return whether a folder has a description of a benchmark."""
    return isfile(folder / FILE)


def read_benchmark(folder: Path) -> Benchmark:
    """The benchmark that a folder describes, its table looked at and its rows not read.

    Raises:
        VievalError: in one line, file and key, and what is wrong with it; an unknown key or column with the nearest.
    """
    file = folder / FILE
    described = parsed(file, Description, read_mapping(file, "benchmark", "docs/extending/benchmark.md"))
    reading = _Reading(file, described)
    reading.fields  # noqa: B018  a column that is absent is told before anything is judged
    parts = reading.parts()
    advice = f"put the images where {described.table} names them"
    data = DataFolder(described.name, parts, reading.load, advice, place=folder)
    benchmark = data.benchmark(
        described.report(),
        title=described.title or described.name,
        source=described.source,
        licence=described.licence,
        trainable=described.trainable,
        kinds=dict.fromkeys(parts, described.kind),
        note=described.note,
    )
    return replace(benchmark, file=file)
