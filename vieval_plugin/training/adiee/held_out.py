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
from vieval_plugin.training.adiee.labels import Edits, LabelledEdit
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
    edits: Edits,
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
        batch = conversations.batch(part, [form] * len(part)).to(device)
        with (
            torch.inference_mode(),
            torch.autocast(
                device.type,
                torch.bfloat16,
                enabled=device.type == "cuda",
            ),
        ):
            value, _ = module(batch.inputs, batch.at, batch.targets)
        numbers += value.float().cpu().tolist()
    return numbers


def agreement(numbers: Sequence[float], edits: Edits) -> HeldOutAgreement:
    """Measure the agreement of numbers with labels; the correlation is NaN if either is
    constant.
    """
    labels = [edit.label for edit in edits]
    errors = [
        abs(value - label)
        for value, label in zip(
            numbers,
            labels,
            strict=True,
        )
    ]
    return HeldOutAgreement(
        correlation(numbers, labels),
        fmean(errors),
        len(edits),
    )


def figures(
    trained: Trained,
    conversations: Conversations,
    edits: Edits,
    batch_size: int,
) -> Figures | None:
    """Compute the figures on held-out edits; None without any."""
    if trained.head is None or not edits:
        return None

    questions = conversations.questions

    def scores_of(part: Edits, question: str) -> list[float]:
        return values(trained, conversations, part, question, batch_size)

    by_question = [scores_of(edits, question) for question in questions]
    columns = zip(*by_question, strict=True)
    ranges = [max(column) - min(column) for column in columns]
    edits_done_as_asked = [edit for edit in edits if edit.label == 1]
    swapped = (_swap_source(edit, edits) for edit in edits_done_as_asked)
    by_source = {edit.source: replace(edit, output=edit.source) for edit in edits}
    parts = (
        edits_done_as_asked,
        [*filter(None, swapped)],
        [*by_source.values()],
    )
    return Figures(
        agreement(by_question[0], edits),
        fmean(ranges),
        *(fmean(scores_of(p, questions[0])) if p else math.nan for p in parts),
    )


def _swap_source(edit: LabelledEdit, edits: Edits) -> LabelledEdit | None:
    """Return the edit with the source of the next scene, wrapping around; None without
    another scene.
    """
    index = edits.index(edit)
    following = [*edits[index:], *edits[:index]]
    other_sources = (
        candidate.source for candidate in following if candidate.group != edit.group
    )
    source = next(other_sources, None)
    return replace(edit, source=source) if source else None
