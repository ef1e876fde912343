"""Evaluation of a trained head on held-out edits."""

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
    """Agreement of a head's numbers with the labels of held-out edits."""

    #: Spearman's correlation.
    spearman: float
    #: Mean absolute error.
    error: float
    #: Number of edits.
    n: int


@dataclass(frozen=True)
class Figures:
    """Figures on held-out edits for the training record, each asked all questions."""

    #: Agreement with the labels, by the first question.
    agreement: HeldOutAgreement
    #: Mean over edits of the largest less the smallest score over the questions.
    question_range: float
    #: Mean score of edits whose label is 1.
    done_as_asked: float
    #: Mean score of the same with the source of another scene.
    another_source: float
    #: Mean score of unedited sources.
    unedited: float


def values(
    trained: Trained,
    conversations: Conversations,
    edits: Sequence[LabelledEdit],
    question: str,
    batch_size: int,
) -> list[float]:
    """Return the head's numbers for edits, all asked one question with the first answer
    sentence.
    """
    torch = library("torch")
    module = trained.module
    numbers = []
    module.eval()
    device = next(module.parameters()).device
    form = Form(question, conversations.answers[0])
    for begin in range(0, len(edits), batch_size):
        part = edits[begin : begin + batch_size]
        forms = [form] * len(part)
        batch = conversations.batch(part, forms).to(device)
        with (
            torch.inference_mode(),
            torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"),
        ):
            value, _ = module(batch.inputs, batch.at, batch.targets)
        numbers += value.float().cpu().tolist()
    return numbers


def agreement(
    numbers: Sequence[float], edits: Sequence[LabelledEdit]
) -> HeldOutAgreement:
    """Measure the agreement of numbers with labels; the correlation is NaN if either is
    constant.
    """
    labels = [edit.label for edit in edits]
    labelled = zip(numbers, labels, strict=True)
    errors = [abs(value - label) for value, label in labelled]
    return HeldOutAgreement(correlation(numbers, labels), fmean(errors), len(edits))


def figures(
    trained: Trained,
    conversations: Conversations,
    edits: Sequence[LabelledEdit],
    batch_size: int,
) -> Figures | None:
    """Compute the figures on held-out edits; None without any."""
    if trained.head is None or not edits:
        return None

    def scores_of(
        part: Sequence[LabelledEdit], question: str = conversations.questions[0]
    ) -> list[float]:
        return values(
            trained,
            conversations,
            part,
            question,
            batch_size,
        )

    by_question = [scores_of(edits, question) for question in conversations.questions]
    columns = zip(*by_question, strict=True)
    ranges = [max(column) - min(column) for column in columns]
    edits_done_as_asked = [edit for edit in edits if edit.label == 1]
    swapped = (_swap_source(edit, edits) for edit in edits_done_as_asked)
    strangers = list(filter(None, swapped))
    by_source = {edit.source: replace(edit, output=edit.source) for edit in edits}
    unedited = list(by_source.values())
    return Figures(
        agreement(by_question[0], edits),
        fmean(ranges),
        *(
            fmean(scores_of(part)) if part else math.nan
            for part in (edits_done_as_asked, strangers, unedited)
        ),
    )


def _swap_source(
    edit: LabelledEdit, edits: Sequence[LabelledEdit]
) -> LabelledEdit | None:
    """Return the edit with the source of the next scene, wrapping around; None without
    another scene.
    """
    index = edits.index(edit)
    following = [*edits[index:], *edits[:index]]
    other_sources = (
        candidate.source for candidate in following if candidate.group != edit.group
    )
    source = next(
        other_sources,
        None,
    )
    return replace(edit, source=source) if source else None
