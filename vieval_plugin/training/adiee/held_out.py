"""What a trained head says of edits that it has not learnt from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from vieval_plugin.backends.weights import library
from vieval_plugin.judges.adiee.question import Form
from vieval_plugin.stats.correlation import correlation
from vieval_plugin.training.adiee.conversations import Conversations
from vieval_plugin.training.adiee.labels import LabelledEdit
from vieval_plugin.training.adiee.network import Trained


@dataclass(frozen=True)
class HeldOutAgreement:
    """Spearman's correlation with the labels, the mean absolute error, and of how many edits."""

    spearman: float
    error: float
    n: int


@dataclass(frozen=True)
class Figures:
    """What a card says of held-out edits, each asked all questions.

    `agreement` is of the first question, `moved` the mean over edits of the largest less the smallest score over the
    questions. The other three are mean scores: of edits whose label is 1, of the same with the source of another scene,
    and of sources that nobody edited.
    """

    agreement: HeldOutAgreement
    moved: float
    whole: float
    another_source: float
    unedited: float


def values(
    trained: Trained, conversations: Conversations, edits: Sequence[LabelledEdit], question: str, batch_size: int
) -> list[float]:
    """The head's numbers for edits, all asked one question with the first answer sentence."""
    torch = library("torch")
    module, found = trained.module, []
    module.eval()
    device = next(module.parameters()).device
    form = Form(question, conversations.answers[0])
    for begin in range(0, len(edits), batch_size):
        some = edits[begin : begin + batch_size]
        batch = conversations.batch(some, [form] * len(some)).to(device)
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            value, _ = module(batch.inputs, batch.at, batch.wanted)
        found += value.float().cpu().tolist()
    return found


def agreement(found: Sequence[float], edits: Sequence[LabelledEdit]) -> HeldOutAgreement:
    """How far numbers agree with labels; the correlation is NaN where either does not vary."""
    labels = [edit.label for edit in edits]
    errors = [abs(value - label) for value, label in zip(found, labels, strict=True)]
    return HeldOutAgreement(correlation(found, labels), fmean(errors), len(edits))


def figures(
    trained: Trained, conversations: Conversations, edits: Sequence[LabelledEdit], batch_size: int
) -> Figures | None:
    """The figures of held-out edits; None where there are none."""
    if trained.head is None or not edits:
        return None

    def asked(some: Sequence[LabelledEdit], question: str = conversations.questions[0]) -> list[float]:
        return values(trained, conversations, some, question, batch_size)

    by_question = [asked(edits, question) for question in conversations.questions]
    moved = [max(column) - min(column) for column in zip(*by_question, strict=True)]
    whole = [edit for edit in edits if edit.label == 1]
    strangers = [one for edit in whole if (one := _with_another_source(edit, edits))]
    unedited = list({edit.source: replace(edit, output=edit.source) for edit in edits}.values())
    return Figures(
        agreement(by_question[0], edits), fmean(moved), *(_mean(asked(some)) for some in (whole, strangers, unedited))
    )


def _with_another_source(edit: LabelledEdit, edits: Sequence[LabelledEdit]) -> LabelledEdit | None:
    """The edit with the source of the next scene, around the end; None where there is no other."""
    place = edits.index(edit)
    around = [*edits[place:], *edits[:place]]
    other = next((one for one in around if one.group != edit.group), None)
    return replace(edit, source=other.source) if other else None


def _mean(found: Sequence[float]) -> float:
    return fmean(found) if found else math.nan
