"""Answers of VQA models to questions about TIFA160's prompts, as published by the
authors of the Davidsonian scene graph.

`<VQA model>_<setting>.csv` has a row a question and image; `tifa160-likert-anns.csv` has the images
that people rated, and the names that TIFA160 has for them. An image without a question, and an
answer that is neither yes nor no, as an empty one, is a failure: the authors count both as no,
which is kept apart.

Source: github.com/j-min/DSG.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vieval_plugin import config
from vieval_plugin.benchmarks.tifa160 import MODEL_NAMES
from vieval_plugin.judges.protocol import Status, Step, Verdict
from vieval_plugin.judges.question_answering import ASPECT, QUESTIONS, SPEC, verdict_of
from vieval_plugin.judges.question_answering.questions import (
    DSG,
    PromptQuestion,
    to_json,
)
from vieval_plugin.judges.structured_chat import excerpt
from vieval_plugin.readers.rows import Row, read_table
from vieval_plugin.results.logs import Identity, LoggedVerdicts, NotNamedError
from vieval_plugin.text.errors import VievalError

_RATED = "tifa160-likert-anns.csv"
_ADVICE = "restore the files from github.com/j-min/DSG"


def read(
    folder: Path,
    identity: Identity,
    name: str = "",
    setting: str = DSG,
) -> LoggedVerdicts:
    """Read the verdicts of one VQA model on the images of TIFA160 that people rated.

    Raises:
        VievalError: a file is missing or malformed; `NotNamedError` if several models answered
            this setting's questions and none has the name.
    """
    ending = f"_{setting}"
    paths = sorted(folder.rglob(f"*{ending}.csv"))
    files = {path.stem.removesuffix(ending): path for path in paths}
    if not files:
        return {}
    path = _answers_file(name, files, folder, setting)
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    dsg_columns = ("question_id", "dependency_id") if setting == DSG else ()
    columns = (
        "t2i_model",
        "item_id",
        "question",
        "answer",
        *dsg_columns,
    )
    for row in read_table(path, columns, _ADVICE):
        model_and_item = (row.text("t2i_model"), row.text("item_id"))
        rows[model_and_item].append(row)
    dependencies = (
        setting == DSG and config.current().judges.options_of(SPEC).dependencies
    )
    verdicts = {}
    for key, source_id in _source_ids(folder).items():
        image = identity(MODEL_NAMES[key[0]], source_id)
        verdicts[image] = _verdict(
            rows.get(key, []),
            setting,
            dependencies,
        )
    return verdicts


def _source_ids(folder: Path) -> dict[tuple[str, str], str]:
    """TIFA160's name of each image that people rated, by its model and item."""
    rated_file = next(folder.rglob(_RATED), folder / _RATED)
    rated = read_table(
        rated_file,
        ("t2i_model", "item_id", "source_id"),
        _ADVICE,
    )
    source_ids = {}
    for row in rated:
        model_and_item = (row.text("t2i_model"), row.text("item_id"))
        source_ids[model_and_item] = row.text("source_id")
    unknown = {model for model, _ in source_ids} - MODEL_NAMES.keys()
    if unknown:
        raise VievalError(
            f"{folder}: unknown t2i_model {min(unknown)!r} in {_RATED}; {_ADVICE}"
        )
    return source_ids


def _answers_file(
    name: str,
    files: dict[str, Path],
    folder: Path,
    setting: str,
) -> Path:
    if name not in files and len(files) > 1:
        names = ", ".join(files)
        raise NotNamedError(
            f"{folder}: no answers by {name!r} to the {setting} questions; set name= to one "
            f"of: {names}"
        )
    return files.get(name) or next(iter(files.values()))


def _verdict(
    rows: Sequence[Row],
    setting: str,
    dependencies: bool,
) -> Verdict:
    if not rows:
        step = Step(
            QUESTIONS,
            Status.PARSE_FAILURE,
            reason="the log has no question about this image's prompt",
            recorded=(0.0,),
        )
        return Verdict(
            {},
            step.status,
            trace=(step,),
            recorded={ASPECT: 0.0},
        )
    numbered_rows = enumerate(rows, start=1)
    questions = [_question(number, row, setting) for number, row in numbered_rows]
    answers = [str(row.cells["answer"] or "") for row in rows]
    steps = list(map(_step, questions, answers))
    question_list = Step(QUESTIONS, Status.OK, answer=to_json(questions))
    verdict = verdict_of(
        questions,
        steps,
        (question_list, *steps),
        dependencies,
    )
    if verdict.status.usable:
        return verdict
    as_authors_count = [
        replace(
            step,
            status=Status.OK,
            scores=step.scores or step.recorded,
        )
        for step in steps
    ]
    return replace(
        verdict,
        recorded=verdict_of(
            questions,
            as_authors_count,
            (question_list,),
            dependencies,
        ).scores,
    )


def _question(
    number: int,
    row: Row,
    setting: str,
) -> PromptQuestion:
    """Read a question; `dependency_id` lists the numbers of the questions that it
    depends on, and 0 or other texts mean none.
    """
    text = row.text("question")
    if setting != DSG:
        return PromptQuestion(str(number), text)
    dependencies = row.text("dependency_id")
    parents = [parent.strip() for parent in dependencies.split(",")]
    name = f"{row.number('question_id', 1, 99):g}"
    known_parents = (parent for parent in parents if parent.isdecimal() and int(parent))
    return PromptQuestion(
        name,
        text,
        parents=tuple(known_parents),
    )


def _step(question: PromptQuestion, answer: str) -> Step:
    path = ("answers", question.id)
    folded = answer.strip().casefold()
    if folded in question.choices:
        return Step(
            path,
            Status.OK,
            (float(folded == question.expected),),
            answer,
        )
    return Step(
        path,
        Status.PARSE_FAILURE,
        answer=excerpt(answer),
        reason="the answer is neither yes nor no",
        recorded=(0.0,),
    )
