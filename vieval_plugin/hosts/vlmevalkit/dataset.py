"""The dataset class: a task's samples as rows that a judge is asked about, and the evaluation of
its verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import load

from vieval_plugin import config
from vieval_plugin.hosts.shutdown import one_line
from vieval_plugin.hosts.task_data import samples_of
from vieval_plugin.hosts.vlmevalkit import names, tables
from vieval_plugin.hosts.vlmevalkit.results import (
    SheetCell,
    VerdictFiles,
    finish,
    read_cell,
)
from vieval_plugin.judges.contests import Judged
from vieval_plugin.media.files import write_whole
from vieval_plugin.records import target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.text.errors import VievalError, line_of
from vieval_plugin.text.escaping import csv_text
from vieval_plugin.text.yaml_json import JsonObject

#: Number of rows that `vieval vlmevalkit --limit` leaves of a dataset; empty for all.
LIMIT: list[int] = []


class JudgedImages(ImageBaseDataset):  # type: ignore[misc]
    """A task of ours as a dataset of the host; `judged` has the sample or contest of each row,
    by its index.
    """

    # none of the types for which models change prompts and lengths
    TYPE = "VIEval"
    MODALITY = "IMAGE"
    force_use_dataset_prompt = True

    @one_line
    def __init__(self, dataset: str = "", skip_noimg: bool = True) -> None:
        super().__init__(dataset, skip_noimg)

    @classmethod
    def supported_datasets(cls) -> list[str]:
        return list(names.datasets())

    def load_data(self, dataset: str) -> Any:
        options = config.current()
        self.tasks = names.tasks_of(dataset)
        rows = [
            (task, sample)
            for task in self.tasks
            for sample in samples_of(task, options)
        ]
        rows = rows[: LIMIT[-1]] if LIMIT else rows
        self.judged: Sequence[Judged] = [sample for _, sample in rows]
        ids = [str(sample.id) for sample in self.judged]
        return pandas.DataFrame(
            {
                "index": range(len(rows)),
                "sample": ids,
                "category": [task.part for task, _ in rows],
                "target": list(map(target_json, self.judged)),
                "question": ids,
            }
        )

    def dump_image(self, line: Any) -> list[str]:
        """The images of a row are the judge's own affair."""
        return []

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """Name the row that is meant, for the wrapped model of a judging run, which alone
        understands it.
        """
        row = self.data.iloc[line] if isinstance(line, int) else line
        return [
            {
                "type": "text",
                "value": f"vieval {row['index']} {row['sample']}",
            }
        ]

    def __getstate__(self) -> dict[str, Any]:
        """The host evaluates in another process, which needs no samples."""
        return {name: value for name, value in vars(self).items() if name != "judged"}

    @one_line
    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> Any:
        """Statistics of the verdicts that a sheet means, as a table; no model, sample or image
        is needed.
        """
        sheet = Path(eval_file)
        model = sheet.stem.removesuffix(f"_{self.dataset_name}")
        rows = finish(
            VerdictFiles(sheet.parent, model, self.dataset_name), _cells(sheet)
        )
        records = [read_record(row.response, row.target) for row in rows]
        table = pandas.DataFrame(
            tables.rows_of(
                self.tasks,
                records,
                config.current(),
            )
        )
        cells = table.astype(object).where(table.notna(), "").astype(str).to_numpy()
        text = csv_text([list(table.columns), *cells])
        write_whole(
            sheet.with_name(f"{sheet.stem}_acc.csv"),
            [text],
            "--work-dir",
        )
        return tables.short(table)

    @classmethod
    def report_primary_metric(cls, metrics: JsonObject | None) -> JsonObject:
        return tables.headline(metrics or {})

    @classmethod
    def report_judge_err(cls, prediction_file: Any, **_: Any) -> dict[str, None]:
        """Report no failed calls, as no second judge is asked."""
        return {"failed": None, "total": None}


def _cells(sheet: Path) -> dict[int, SheetCell]:
    """Cells of a sheet by row; VievalError for a sheet that is none of a judging run."""
    try:
        table = load(str(sheet))
        rows = zip(
            table["index"],
            table["prediction"],
            strict=True,
        )
        cells = {int(index): read_cell(text) for index, text in rows}
    except Exception as error:  # the host's readers raise anything
        raise VievalError(
            f"{sheet}: not a sheet of predictions ({line_of(error)}); delete it"
        ) from None
    foreign = [index for index, cell in cells.items() if cell is None]
    if foreign:
        raise VievalError(
            f"{sheet}: row {foreign[0]} is not a verdict, because VIEval was not registered during "
            "the run; delete the sheet, and run `vieval vlmevalkit`, or `vieval vlmevalkit "
            "--install-hook` once"
        )
    return {index: cell for index, cell in cells.items() if cell is not None}
