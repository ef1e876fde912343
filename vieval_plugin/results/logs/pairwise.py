"""Logs of judges that were shown two candidates at once: the label in each reply of GenAI-Bench, or
MMRB2's letters.

GenAI-Bench's are a list of rows with `idx` and `response`, which ends in a label such as `[[A>B]]`.
They are read twice. In our reading (`forward`) all labels must be the same one, and a bare
`[[A=B]]` is no vote of four. The authors' (`paper`) takes all from the first `[[` to the last `]]`
of the first line that has both, compares it whole, and has a bare `[[A=B]]` stand for either tie.

MMRB2's are an object of id -> `{"forward": [{"judgement": "A"}], "reverse": [...]}`; in `reverse`
the candidates were shown in the other order.

Sources: Jiang et al. 2024 (GenAI-Bench) and Hu et al. 2025 (Multimodal RewardBench 2), in the code
of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vieval_plugin.judges.contests import (
    BOTH_BAD,
    BOTH_GOOD,
    FIRST,
    FORWARD,
    PAPER,
    REVERSE,
    SECOND,
    TIE,
)
from vieval_plugin.judges.pairwise.reading import read_label
from vieval_plugin.judges.protocol import Choice, Status, Step, Verdict, worst
from vieval_plugin.judges.structured_chat import excerpt
from vieval_plugin.readers.rows import read_json
from vieval_plugin.results.logs import (
    RESTORE,
    Identity,
    LoggedVerdicts,
    NotNamedError,
)
from vieval_plugin.text.errors import VievalError

_FILE = "pairwise.json"
_GREEDY = re.compile(r"\[\[.*\]\]")
_PAPER_LABELS = {
    "[[A>B]]": FIRST,
    "[[A>>B]]": FIRST,
    "[[B>A]]": SECOND,
    "[[B>>A]]": SECOND,
    "[[A=B=Good]]": BOTH_GOOD,
    "[[A=B=Bad]]": BOTH_BAD,
    "[[A=B]]": TIE,
}
_LETTERS = {
    FORWARD: {"A": FIRST, "B": SECOND},
    REVERSE: {"A": SECOND, "B": FIRST},
}


def read(
    folder: Path,
    identity: Identity,
    name: str = "",
    setting: str = "",
) -> LoggedVerdicts:
    """Read the verdicts of one judge on one part, by contest.

    A judge's log is `<judge>/pairwise.json` or `<judge>.json` in the folder, or
    `<judge>_<folder>.json` next to it; a `pairwise.json` in the folder itself serves
    any judge. A malformed row is a failure of its contest, if its contest is known.

    Raises:
        VievalError: a file cannot be read or has neither form, or the contest of a row is
            unclear; `NotNamedError` if there are several judges and none has the name.
    """
    files = _judges(folder)
    if not files:
        return {}
    if name not in files and len(files) > 1:
        names = ", ".join(files)
        raise NotNamedError(
            f"{folder}: no logs of {name!r}; set name= to one of: {names}"
        )
    path = files.get(name) or next(iter(files.values()))
    document = read_json(path, RESTORE)
    if isinstance(document, list):
        rows = _numbered(document, path)
        return {identity("", uid): _labelled(row) for uid, row in rows}
    if isinstance(document, dict):
        return {identity("", uid): _lettered(row) for uid, row in document.items()}
    raise VievalError(
        f"{path}: must contain a list of replies, or an object that maps ids to "
        "judgements"
    )


def paper_vote_of(reply: str) -> str:
    """Read the vote of a reply as the authors do; empty if they find no label.

    >>> paper_vote_of("[[A=B]]"), paper_vote_of("At first [[A>B]], but now [[A=B=Bad]]")
    ('tie', '')
    """
    label = _GREEDY.search(reply)
    if label:
        return _PAPER_LABELS.get(label[0], "")
    return ""


def _judges(folder: Path) -> dict[str, Path]:
    """Log file of each judge, by name; the folder's own log serves any name."""
    if (folder / _FILE).is_file():
        return {"": folder / _FILE}
    paths = sorted(folder.glob(f"*/{_FILE}"))
    files = {path.parent.name: path for path in paths}
    files |= {path.stem: path for path in sorted(folder.glob("*.json"))}
    suffix = f"_{folder.name}"
    flat_paths = sorted(folder.parent.glob(f"*{suffix}.json"))
    return files | {path.stem.removesuffix(suffix): path for path in flat_paths}


def _numbered(rows: list[Any], path: Path) -> Iterator[tuple[str, Any]]:
    """Yield rows by `idx`, or by position if they have none, so that no reply is
    matched to another contest.
    """
    uids = set()
    for number, row in enumerate(rows):
        index = number
        if isinstance(row, dict):
            index = row.get("idx", number)
        if type(index) not in (int, str):
            raise VievalError(
                f"{path}: row {number}: idx must be an integer or a string; correct "
                "the file"
            )
        uid = str(index)
        if uid in uids:
            raise VievalError(
                f"{path}: row {number}: duplicate idx {excerpt(uid)}; correct the file"
            )
        uids.add(uid)
        yield uid, row


def _labelled(row: Any) -> Verdict:
    reply = row.get("response") if isinstance(row, dict) else None
    if not isinstance(reply, str):
        return _unreadable("the log row has no reply")
    ours = read_label(reply, recorded=True)
    paper = paper_vote_of(reply)
    # the authors' reading is there where it found nothing too: a missing answer counts as wrong
    votes = {
        **({FORWARD: ours.value} if ours.value else {}),
        PAPER: paper,
    }
    status = Status.OK if ours.value or paper else ours.status
    is_only_authors = paper and not ours.value
    if is_only_authors:
        reason = f"only the authors' parser found a vote: {ours.reason}"
    else:
        reason = excerpt(ours.reason)
    step = Step(
        (FORWARD,),
        status,
        answer=excerpt(reply),
        reason=reason,
    )
    return Verdict(
        {},
        status,
        trace=(step,),
        choice=Choice(votes),
    )


def _lettered(row: Any) -> Verdict:
    """An order that was not asked is not a failure; an order without a letter is."""
    orders = filter(row.get, _LETTERS) if isinstance(row, dict) else ()
    judgements_by_order = {order: row[order] for order in orders}
    if not judgements_by_order:
        return _unreadable("the log row has no judgement")
    votes = {}
    steps = []
    for order, judgements in judgements_by_order.items():
        first = judgements[0] if isinstance(judgements, list) else None
        letter = first.get("judgement") if isinstance(first, dict) else None
        vote = _LETTERS[order].get(letter) if isinstance(letter, str) else None
        if vote and isinstance(letter, str):
            votes[order] = vote
            steps.append(Step((order,), Status.OK, answer=letter))
        else:
            answer = excerpt(json.dumps(first, ensure_ascii=False))
            steps.append(
                Step(
                    (order,),
                    Status.PARSE_FAILURE,
                    answer=answer,
                    reason="the judgement is neither A nor B",
                )
            )
    status = worst([step.status for step in steps])
    return Verdict(
        {},
        status,
        trace=tuple(steps),
        choice=Choice(votes),
    )


def _unreadable(reason: str) -> Verdict:
    step = Step((FORWARD,), Status.PARSE_FAILURE, reason=reason)
    return Verdict(
        {},
        step.status,
        trace=(step,),
        choice=Choice(),
    )
