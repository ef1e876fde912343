"""A judge for the batch functions of data engines: Ray Data, `datasets` and Daft."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vieval_plugin.api import conversion
from vieval_plugin.api.judge import Judge
from vieval_plugin.judges.contests import Judged
from vieval_plugin.judges.protocol import Image, Status, Verdict
from vieval_plugin.readers.columns import (
    ColumnMap,
    columns_by_field,
    fields_of,
    sample_row,
)
from vieval_plugin.readers.sample_rows import encoded_image
from vieval_plugin.readers.samples import samples_in_rows
from vieval_plugin.readers.tables import BadLine, InputTable
from vieval_plugin.records import unjudged
from vieval_plugin.run.shards.schema import schema_of
from vieval_plugin.text.errors import VievalError


class JudgeBatches:
    """A judge that is called with batches of rows, as data engines do, and answers with columns of
    scores.

    It is pickled with its options and opens its judge where it is used; keys stay in the
    environment. A row that cannot be judged, or whose calls fail, has its `status` and `reason` and
    NaN for scores. A server that is away is an exception, so that an engine's retries begin anew
    and no batch of failures is written.

    Args:
        name: the judge, as of `Judge`.
        columns: the columns of a batch by what they are, such as `{"output": "image", "prompt":
            "caption"}` (default: by their names, as `vieval score` has it).
        kind: that of rows which name none (default: what their images and texts tell).
        keep: return the columns of the batch as well: Ray Data replaces a batch by what is
            returned; `datasets` adds the columns itself.
        prefix: before the names of all columns that are added.
        options: further arguments of `Judge`, such as `model` and `base_url`.

    Raises:
        VievalError: an unknown judge, setting, option or key of `columns`.

    >>> judge = JudgeBatches("sharpness", options={"store": {"use": False}})
    >>> noise = np.random.RandomState(0).random_sample((2, 64, 64, 3))
    >>> judged = judge({"image": [*noise, None], "prompt": ["grains of sand"] * 3})
    >>> judged["PQ"].round(2).tolist(), judged["status"]
    ([0.88, 0.88, nan], ['ok', 'ok', 'no_image'])
    """

    def __init__(
        self,
        name: str,
        *,
        columns: Mapping[str, str] | None = None,
        kind: str | None = None,
        keep: bool = False,
        prefix: str = "",
        **options: Any,
    ) -> None:
        self._judge = Judge(name, **options)
        prepared = self._judge.prepared
        judge_options = self._judge.options.judges.options_of(prepared.spec)
        self._scores = schema_of(prepared, judge_options, False).scores
        if not self._scores:
            raise VievalError(
                f"{name} compares images, but each row of a batch has only one image; "
                "use a judge that scores images"
            )
        self._columns = columns_by_field(columns or {}, "columns")
        self._kind = kind
        self._keep = keep
        self._prefix = prefix

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Judge a batch.

        Args:
            batch: columns by name, as lists or arrays of one length. An image is a path, the bytes
                of a file, a struct of `bytes` and `path`, a PIL image, or an array (height, width,
                3).

        Returns:
            The columns that are added: a float column a score, `status`, `reason` and `rationale`,
            and with `keep` those of the batch before them.

        Raises:
            VievalError: no column holds images, or the server is away.
        """
        length = len(next(iter(batch.values()), ()))
        cells = [
            {name: _plain(column[number]) for name, column in batch.items()}
            for number in range(length)
        ]
        names = tuple(batch)
        table = InputTable("the batch", names, lambda _: enumerate(cells), Path(), ())
        fields = fields_of(table, self._columns)
        rows = [
            self._sample(cells_of_row, number, fields)
            for number, cells_of_row in enumerate(cells)
        ]
        unjudged_samples = [sample for sample, verdict in rows if verdict is None]
        verdicts = iter(self._judge(unjudged_samples) if unjudged_samples else ())
        answers = [verdict or next(verdicts) for _, verdict in rows]
        added = self._added(answers)
        return {**batch, **added} if self._keep else added

    def _sample(
        self,
        cells: Mapping[str, Any],
        number: int,
        fields: ColumnMap,
    ) -> tuple[Judged, Verdict | None]:
        """The sample of a row, and its verdict if the judge need not be asked."""
        row = sample_row(cells, fields)
        cells_or_error: Any = row
        try:
            row["images"] = {
                role: _image(value) for role, value in row["images"].items()
            }
        except (VievalError, BadLine) as error:
            cells_or_error = BadLine(str(error), {**row, "images": {}})
        samples = list(samples_in_rows([(number, cells_or_error)], Path(), self._kind))
        if samples[1:]:
            return samples[0].sample, unjudged(
                Status.PARSE_FAILURE,
                (
                    "each row of a batch must have exactly one prompt; use one row per "
                    "prompt"
                ),
            )
        return samples[0].sample, samples[0].verdict

    def _added(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name in self._scores:
            scores = [verdict.scores.get(name, math.nan) for verdict in verdicts]
            columns[name] = np.array(scores, float)
        columns["status"] = [str(verdict.status) for verdict in verdicts]
        columns["reason"] = [" ".join(verdict.reason.split()) for verdict in verdicts]
        columns["rationale"] = [verdict.rationale for verdict in verdicts]
        return {f"{self._prefix}{name}": column for name, column in columns.items()}


def _plain(value: Any) -> Any:
    """A number or text of NumPy as that of Python, None for a struct without an image, and all
    else as it is.
    """
    if isinstance(value, Mapping):
        return value if value.get("bytes") or value.get("path") else None
    return value.item() if isinstance(value, np.generic) else value


def _image(value: Any) -> Image:
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    data = encoded_image(value) if isinstance(value, str) else None
    return conversion.image(value if data is None else data)
