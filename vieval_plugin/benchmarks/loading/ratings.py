"""Reads people's ratings and votes from CSV files in long form, one row per judgement:
what a labelling page gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from vieval_plugin.judges.contests import BOTH_BAD, BOTH_GOOD, FIRST, SECOND, TIE
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.meta_evaluation.label_plan import LabelPlan
from vieval_plugin.meta_evaluation.ratings import VOTE, HumanRatings
from vieval_plugin.readers.rows import Row, read_object, read_table
from vieval_plugin.text.errors import VievalError, line_of

COLUMNS = ("benchmark", "part", "uid", "generator", "draw", "rater", "aspect", "value")
_ASPECTS = ("SC", "PQ", "O")
_VOTES = {
    vote.replace("_", " "): vote for vote in (FIRST, SECOND, TIE, BOTH_GOOD, BOTH_BAD)
}
_LARGEST = 1 << 26
_PLAN = TypeAdapter(LabelPlan)


def _plan_among(paths: Sequence[Path]) -> LabelPlan | None:
    plans = [path for path in paths if path.suffix == ".json"]
    if len(plans) > 1:
        raise VievalError(
            f"{plans[1]}: ratings must have one plan, got {len(plans)}; pass the plan "
            "of one `vieval label` run"
        )
    return read_plan(plans[0]) if plans else None


def read_ratings(paths: Sequence[Path]) -> HumanRatings:
    """The ratings and votes of some files.

    A row whose value is empty says that nothing was said. `generator` is empty for a contest,
    `draw` for the first image.

    Args:
        paths: CSV files in UTF-8 with `COLUMNS`; a rater may have several files, but not two
            judgements of one thing. One may be the plan (.json) that `vieval label` wrote beside
            its page.

    Raises:
        VievalError: in one line, for a file that cannot be read, a row that is not a judgement,
            a repeated judgement, and no judgement at all.
    """
    scores: dict[SampleId, dict[str, dict[str, float]]] = {}
    votes: dict[SampleId, dict[str, str]] = {}
    where: dict[SampleId, str] = {}
    first_row_by_judgement: dict[tuple[SampleId, str, str], str] = {}
    plan = _plan_among(paths)
    for path in (path for path in paths if path.suffix != ".json"):
        for row in _rows(path):
            if not str(row.cells["value"]).strip():
                continue
            identity = _identity(row)
            annotator = row.text("rater")
            aspect = row.text("aspect")
            first_row = first_row_by_judgement.setdefault(
                (identity, annotator, aspect),
                row.where,
            )
            if first_row != row.where:
                raise VievalError(
                    f"{row.where}: {annotator!r} already judged {aspect} of {identity} in "
                    f"{first_row}; give each annotator a name of their own, or remove the "
                    "repeated judgement"
                )
            where.setdefault(identity, row.where)
            if aspect == VOTE:
                votes.setdefault(identity, {})[annotator] = _vote(row)
            else:
                scores.setdefault(identity, {}).setdefault(aspect, {})[annotator] = (
                    _score(row, aspect)
                )
    if not where:
        raise VievalError(
            f"{paths[0]}: no judgements found; answer at least one item on its labelling page"
        )
    return HumanRatings(scores, votes, where, plan)


def read_plan(path: Path) -> LabelPlan:
    """The plan that `vieval label` wrote beside its page; VievalError for another file."""
    advice = "pass the plan written by `vieval label`"
    document = read_object(path, advice)
    try:
        return _PLAN.validate_python(document)
    except (ValueError, TypeError, VievalError) as error:
        reason = line_of(error, 100)
        raise VievalError(f"{path}: not a label plan ({reason}); {advice}") from None


def _rows(path: Path) -> list[Row]:
    advice = f"its columns are {','.join(COLUMNS)}"
    if not path.is_file():
        raise VievalError(f"{path}: no such file; pass a CSV of ratings ({advice})")
    if path.stat().st_size > _LARGEST:
        raise VievalError(
            f"{path}: too large for a ratings file (limit {_LARGEST >> 20} MiB)"
        )
    return read_table(path, COLUMNS, advice)


def _identity(row: Row) -> SampleId:
    draw = str(row.cells["draw"]).strip() or "0"
    if not draw.isascii() or not draw.isdecimal() or len(draw) > 9:
        raise row.error(f"draw must be a non-negative integer, got {draw[:40]!r}")
    return SampleId(
        row.text("benchmark"),
        row.text("part"),
        str(row.cells["generator"]),
        row.text("uid"),
        int(draw),
    )


def _vote(row: Row) -> str:
    vote_text = row.text("value").strip().replace("_", " ")
    if vote_text not in _VOTES:
        known_votes = ", ".join(_VOTES)
        raise row.error(f"value must be one of {known_votes}, got {vote_text[:40]!r}")
    return _VOTES[vote_text]


def _score(row: Row, aspect: str) -> float:
    if aspect not in _ASPECTS:
        known_aspects = ", ".join((*_ASPECTS, VOTE))
        raise row.error(f"aspect must be one of {known_aspects}, got {aspect[:40]!r}")
    return row.number("value", 0, 1)
