"""A benchmark in a folder: a table of rated or voted images, described by
`benchmark.yaml`.

docs/guides/extending.md has the keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.benchmark import Benchmark, Parts
from vieval_plugin.benchmarks.loading.description import Description
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.benchmarks.loading.lmms_eval_task import lmms_eval_benchmark
from vieval_plugin.benchmarks.loading.two_by_two import read_two_by_two
from vieval_plugin.judges.contests import FIRST, SECOND, Contest, Judged
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.prompts.packs import read_mapping
from vieval_plugin.prompts.schema import parsed
from vieval_plugin.readers.columns import (
    ColumnMap,
    columns_by_field,
    fields_of,
    located_images,
    require_columns,
    sample_row,
)
from vieval_plugin.readers.contest_rows import ContestRows, read_contests
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.rows import ASPECT, Row, absent_file, read_lines
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.tables import (
    BadLine,
    Columns,
    InputTable,
    NumberedRow,
    StoredImage,
)
from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.escaping import announce
from vieval_plugin.text.untrusted import is_below, isfile
from vieval_plugin.text.yaml_json import JsonObject

FILE = "benchmark.yaml"
_ONLY_PART = "all"
_MOST_PARTS = 100
_IN_BRACES = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class _Reading:
    """A table as its description reads it."""

    #: File of the description.
    file: Path
    described: Description
    #: Folder of the data.
    folder: Path

    @cached_property
    def table(self) -> InputTable:
        """The table in the folder, whose images lie below it too; VievalError where it lacks a
        column.
        """
        opened = open_table(self._path("table", self.described.table))
        columns = [*self.described.columns.values(), *self._extra]
        table = _derive_columns(
            replace(opened, roots=(self.folder,)), self.described.split, columns
        )
        require_columns(table, self._extra)
        return table

    def _path(self, key: str, name: str) -> Path:
        """The file in the folder that a key names; VievalError if missing."""
        path = self.folder / name
        if is_below(path, self.folder) and isfile(path):
            return path
        if self.described.advice and is_below(path, self.folder):
            raise absent_file(path, self.described.advice)
        raise VievalError(f"{self.file}: {key}: no file {name!r} in this folder")

    @cached_property
    def fields(self) -> ColumnMap:
        """The columns of a row's sample, or of what the candidates of a contest share."""
        columns = columns_by_field(self.described.columns, f"{self.file}: columns")
        if not self.described.vote:
            return fields_of(self.table, columns)
        require_columns(self.table, columns.values())
        return ColumnMap(columns)

    @property
    def _extra(self) -> list[str]:
        """The columns of all that is not part of a sample."""
        described = self.described
        names = [described.group, *described.tags]
        for columns in described.ratings.values():
            names += [columns] if isinstance(columns, str) else columns
        if described.vote:
            names += [described.vote.column, *described.vote.annotators]
        if described.parts:
            names.append(described.parts.column)
        for candidate in described.candidates:
            names += candidate.values()
        return list(filter(None, names))

    def parts(self) -> Parts:
        """The parts with their published numbers, as described or as the table has them."""
        described = self.described.parts
        if not described:
            return {_ONLY_PART: None}
        if described.samples:
            return described.samples
        column = described.column
        parts = dict.fromkeys(_text_of(row.cells.get(column)) for row in self._rows())
        for name in parts:
            if not re.fullmatch(r"[\w.-]{1,60}", name):
                raise VievalError(
                    f"{self.table.name}: the name of a part in {column} must have 1 to 60 "
                    f"letters, digits, _, - and ., got {name[:80]!r}"
                )
        if len(parts) > _MOST_PARTS:
            raise VievalError(
                f"{self.file}: `parts` must have at most {_MOST_PARTS} values, got "
                f"{len(parts)} in {column!r}; use another column"
            )
        return parts

    def _rows(self, part: str = "") -> Iterator[Row]:
        """Rows of a part (or all), with the row number in the cell ""; VievalError for
        an unreadable row.
        """
        columns = [*self.fields.columns.values(), *self._extra]
        column = self.described.parts.column if self.described.parts else ""
        table = self.table
        for number, cells in table.read(list(dict.fromkeys(columns))):
            where = f"{table.name}: {table.unit} {number}"
            if isinstance(cells, BadLine):
                raise VievalError(f"{where}: {cells}")
            if not part or not column or _text_of(cells.get(column)) == part:
                yield Row(where, {"": number, **cells})

    def load(self, part: str) -> Sequence[Judged]:
        """The samples or contests of a part."""
        described = self.described
        if described.two_by_two:
            path = self._path("two_by_two", described.two_by_two)
            rows = read_lines(path, described.advice)
            return read_two_by_two(self.folder, described.name, part, rows)
        if not described.vote:
            return self._samples(part)
        contests = self._contests(part)
        return _rated_candidates(contests) if described.statistics else contests

    def _samples(self, part: str) -> list[Sample]:
        samples: dict[SampleId, Sample] = {}
        for row in self._rows(part):
            for sample in self._samples_of(row, part):
                if sample.id in samples:
                    raise VievalError(
                        f"{row.where}: {sample.id} is already in an earlier row; use another "
                        "uid, or a draw for several images of one prompt"
                    )
                samples[sample.id] = sample
        for aspect in self.described.ratings:
            counts = {
                sample_id: len(sample.ratings[aspect])
                for sample_id, sample in samples.items()
            }
            if len(set(counts.values())) < 2:
                continue
            fewest = min(counts, key=counts.__getitem__)
            total = max(counts.values())
            name = self.described.name
            _tell_without_ceiling(
                f"{name}: {aspect} of {fewest} has {counts[fewest]} of {total} ratings, so "
                "only the mean of each sample is used, without a human ceiling; fill in "
                "the empty cell, or remove the row"
            )
            # with missing ratings, annotators cannot be identified
            for sample_id, sample in samples.items():
                mean = math.fsum(sample.ratings[aspect]) / counts[sample_id]
                samples[sample_id] = replace(
                    sample,
                    ratings={**sample.ratings, aspect: (mean,)},
                )
        return list(samples.values())

    def _samples_of(self, row: Row, part: str) -> Iterator[Sample]:
        described = self.described
        number = int(row.cells[""])
        cells = {
            name: cell
            for name, cell in row.cells.items()
            if name and (self.fields.columns or name not in self._extra)
        }
        try:
            sample_cells = sample_row(cells, self.fields)
            sample_cells["images"] = located_images(
                sample_cells.get("images", {}),
                self.table,
            )
            samples = samples_of_row(
                self.table.folder,
                number,
                sample_cells,
                described.kind,
                described.name,
            )
        except BadLine as bad:
            raise VievalError(f"{row.where}: {bad}") from None
        ratings = {
            aspect: self._ratings(row, aspect, columns)
            for aspect, columns in described.ratings.items()
        }
        tags = self._tags(row)
        for sample, _ in samples:
            yield replace(
                sample,
                id=replace(sample.id, part=part),
                ratings=ratings,
                kind=described.kind,
                group=self._group(row, sample.texts, sample.id.uid),
                tags=tuple(dict.fromkeys((*sample.tags, *tags))),
            )

    def _ratings(
        self, row: Row, aspect: str, columns: str | tuple[str, ...]
    ) -> tuple[float, ...]:
        assert self.described.scale
        if isinstance(columns, str):
            cell = row.cells.get(columns)
            values = cell if isinstance(cell, list) else _text_of(cell).split(";")
            cells = [(columns, value) for value in values]
        else:
            cells = [(column, row.cells.get(column)) for column in columns]
        ratings = []
        for column, value in cells:
            if _text_of(value):
                cell_row = Row(row.where, {column: value})
                read = cell_row.number if isinstance(value, str) else cell_row.rating
                ratings.append(read(column, *self.described.scale))
        if not ratings:
            raise VievalError(
                f"{row.where}: no rating of {aspect}; add one, or remove the row"
            )
        return tuple(ratings)

    def _tags(self, row: Row) -> list[str]:
        tags = list[str]()
        for column in self.described.tags:
            cell_tags = _text_of(row.cells.get(column)).split(";")
            tags += filter(None, map(str.strip, cell_tags))
        return tags

    def _group(self, row: Row, texts: Mapping[str, str], uid: str) -> str:
        if self.described.group:
            return _text_of(row.cells.get(self.described.group)) or uid
        return texts.get("prompt") or texts.get("instruction") or uid

    def _contests(self, part: str) -> list[Contest]:
        described = self.described
        vote = described.vote
        assert vote
        rows = []
        for row in self._rows(part):
            shared: JsonObject = {"texts": {}, "images": {}}
            if self.fields.columns:
                shared |= sample_row(row.cells, self.fields)
            uid = _text_of(shared.get("uid", row.cells[""]))
            columns = (vote.column, *vote.annotators)
            votes = [_text_of(row.cells.get(column)) for column in columns]
            first, *annotators = [vote.words.get(text, text) for text in votes]
            if described.statistics and not first:
                raise VievalError(
                    f"{row.where}: no vote in {vote.column}; add one, or remove the row"
                )
            texts = shared["texts"]
            images = shared["images"]
            cells = {
                "id": uid,
                "texts": texts,
                "images": {role: _file(row, image) for role, image in images.items()},
                "candidates": [
                    _candidate(row, candidate) for candidate in described.candidates
                ],
                "vote": first,
                "annotators": annotators,
                "group": self._group(row, texts, uid),
                "tags": self._tags(row),
            }
            rows.append(Row(row.where, cells))
        common = ContestRows(
            described.name,
            part,
            described.kind,
            vote.scheme,
        )
        return read_contests(rows, self.table.folder, common)


def _derive_columns(
    table: InputTable, split: Columns, columns: Iterable[str]
) -> InputTable:
    """A table with the columns that are derived from its own.

    Args:
        table: whose rows are read.
        split: by column, a template such as `{image_model}_{uid}.png` that its texts have: each
            name is a column.
        columns: names of columns, and templates such as `images/{file}`; each template is a column,
            filled from those that it names.

    Raises:
        VievalError: a column is missing or already exists, or two template names have
            no separator. Rows whose text has not the form of its template are
            `BadLine`.
    """
    require_columns(table, split)
    parts = _IN_BRACES.findall(" ".join(split.values()))
    _check_split(table, split.values(), parts)
    names_by_column = {column: _IN_BRACES.findall(column) for column in columns}
    sources = {column: names for column, names in names_by_column.items() if names}
    source_columns = list(chain(*sources.values()))
    wider = replace(table, columns=(*table.columns, *parts))
    require_columns(wider, source_columns)

    def read(requested: Sequence[str]) -> Iterator[NumberedRow]:
        needed = dict.fromkeys([*requested, *split, *source_columns])
        own_columns = [column for column in needed if column in table.columns]
        for number, cells in table.read(own_columns):
            if not isinstance(cells, BadLine):
                cells = _derived(cells, split, sources)
            yield number, cells

    return replace(
        wider,
        columns=(*wider.columns, *sources),
        read=read,
    )


def _check_split(
    table: InputTable, templates: Iterable[str], parts: Sequence[str]
) -> None:
    for number, name in enumerate(parts):
        if name in table.columns or name in parts[:number]:
            raise VievalError(
                f"{table.name}: split: the column {name!r} already exists; choose another name"
            )
    for template in templates:
        separators = _IN_BRACES.split(template)[2:-1:2]
        if not all(separators) or not _IN_BRACES.search(template):
            raise VievalError(
                f"{table.name}: split: must be names in braces with text between them, got "
                f"{template!r}"
            )


def _text_of(cell: Any) -> str:
    """A cell as a text, that of an image being its file's name; empty where there is nothing.

    >>> _text_of(1), _text_of(" a "), _text_of(None)
    ('1', 'a', '')
    """
    if isinstance(cell, StoredImage):
        return cell.name
    return "" if cell is None else str(cell).strip()


def _derived(
    cells: JsonObject,
    split: Columns,
    sources: Mapping[str, Sequence[str]],
) -> JsonObject | BadLine:
    row = dict(cells)
    for column, template in split.items():
        text = _text_of(cells.get(column))
        parts = _parts(text, template)
        if parts is None:
            fault = f"{column} must have the form {template}, got {text[:80]!r}"
            return BadLine(fault, cells)
        row |= parts
    for template, names in sources.items():
        texts = {name: _text_of(row.get(name)) for name in names}
        if all(texts.values()):
            row[template] = _IN_BRACES.sub(lambda match: texts[match[1]], template)  # noqa: B023  called at once
    return row


def _parts(text: str, template: str) -> dict[str, str] | None:
    """The texts that stand for the names of a template, read from the right; None where one would
    be empty.

    >>> _parts("sd_1.5_low_007.jpg", "{image_model}_{uid}.{suffix}")
    {'suffix': 'jpg', 'uid': '007', 'image_model': 'sd_1.5_low'}
    """
    prefix, first_name, *pieces, suffix = _IN_BRACES.split(template)
    remainder = text.removeprefix(prefix).removesuffix(suffix)
    parts = dict[str, str]()
    if remainder != text[len(prefix) : len(text) - len(suffix)]:
        return None
    for separator, name in zip(
        pieces[-2::-2],
        pieces[::-2],
        strict=True,
    ):
        remainder, _, parts[name] = remainder.rpartition(separator)
    parts[first_name] = remainder
    return parts if all(parts.values()) else None


def _candidate(row: Row, columns: Columns) -> JsonObject:
    names = {
        key: _text_of(row.cells.get(columns[key]))
        for key in ("image_model", "uid")
        if key in columns
    }
    output = _file(row, row.cells.get(columns["output"]))
    return {**names, "images": {"output": output}}


def _file(row: Row, image: Any) -> Any:
    """The file of an image that a cell names; VievalError where the cell holds the image itself."""
    if isinstance(image, StoredImage) and image.data is not None:
        raise VievalError(
            f"{row.where}: {image.cell.column} must be a file name, got an image; save it as a file"
        )
    return image.name if isinstance(image, StoredImage) else image


def _rated_candidates(contests: Sequence[Contest]) -> list[Sample]:
    """Each candidate as a sample, at its place in its contest, rated with its share of the vote."""
    shares = {
        FIRST: (1.0, 0.0),
        SECOND: (0.0, 1.0),
    }
    return [
        replace(
            candidate,
            id=replace(candidate.id, uid=f"{contest.id.uid}#{index}"),
            ratings={ASPECT: (shares.get(contest.votes.vote, (0.5, 0.5))[index],)},
            group=contest.id.uid,
            tags=contest.tags,
            place=(index,),
        )
        for contest in contests
        for index, candidate in enumerate(contest.candidates)
    ]


@cache
def _tell_without_ceiling(line: str) -> None:
    """Print a line once a process, however often a part is loaded."""
    announce(line)


def is_benchmark(folder: Path) -> bool:
    """Return whether a folder has a description of a benchmark."""
    return isfile(folder / FILE)


def read_benchmark(folder: Path) -> Benchmark:
    """The benchmark that a folder describes, without reading its rows.

    Raises:
        VievalError: in one line, file and key, and what is wrong with it; an unknown key or column
            with the nearest.
    """
    return replace(described_benchmark(folder / FILE, folder), file=folder / FILE)


def described_benchmark(file: Path, folder: Path | None = None) -> Benchmark:
    """The benchmark that a file describes.

    Args:
        file: its description.
        folder: where its data is; without one that is the folder of its name in the data folder,
            and its parts are those that the file names.

    Raises:
        VievalError: as `read_benchmark`.
    """
    help_page = docs_url("guides/extending.md#a-benchmark-in-a-folder")
    described = parsed(file, Description, read_mapping(file, "benchmark", help_page))
    common = {
        key: getattr(described, key)
        for key in ("title", "source", "licence", "trainable", "synthetic", "note")
    }
    if described.lmms_eval:
        return lmms_eval_benchmark(
            described.lmms_eval,
            described.name,
            described.kind,
            **common,
        )
    reading = _Reading(file, described, folder or Path())
    if folder and described.table:
        reading.fields  # noqa: B018  a column that is absent is told before anything is judged
    parts = reading.parts()

    def read(data_folder: Path, part: str) -> Sequence[Judged]:
        return replace(reading, folder=data_folder).load(part)

    advice = (
        described.advice
        or f"put the images at the paths in {described.table or described.two_by_two}"
    )
    data = DataFolder(described.name, parts, read, advice, path=folder)
    return data.benchmark(described.report(), described.kind, **common)
