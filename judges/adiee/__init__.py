"""ADIEE: how well an edit was carried out, as one number that a model says, or expects.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image editing evaluation (ICCV 2025), its
supplementary. The wording and the order of pictures and words are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from vieval_plugin.judges.adiee.answers import SCALE, SCORES, SPELLINGS, UNLIKELY, read_number
from vieval_plugin.judges.adiee.question import (
    ANSWERS,
    DOTS,
    Form,
    Images,
    answer_text,
    form_of,
    pictures,
    question,
)
from vieval_plugin.judges.expected_value import step_of, unlikely
from vieval_plugin.judges.protocol import (
    Chat,
    Image,
    Judge,
    Likelihood,
    Path,
    Program,
    Sample,
    Status,
    Verdict,
)
from vieval_plugin.judges.spec import JudgeSpec, Needs, option, require_wording
from vieval_plugin.judges.structured_chat import ChatRequest, ask_all
from vieval_plugin.judges.tools import failed
from vieval_plugin.prompts.pack import Pack

Mode: TypeAlias = Literal["prompt", "expected"]

ASPECT = "O"
_PATH: Path = (ASPECT,)


@dataclass(frozen=True)
class AdieeOptions:
    """Options of the judge."""

    pack: str = option("adiee/v1", "prompt pack: a built-in name or a folder (`vieval prompts list`)", folder=True)
    mode: Mode = option(
        "prompt", "a number in words (prompt), or the mean over the probabilities of 0 to 10 (expected)"
    )
    images: Images = option("two", "show source and edit as two images, or joined as one, for models that take one")
    question: int = option(0, "number of the question asked; 0 draws one for each instruction", ge=0)
    answer: int = option(0, "number of the sentence to answer with; 0 draws one for each instruction", ge=0)
    seed: int = option(0, "seed of what is drawn", ge=0)


def build(options: AdieeOptions, wording: Pack, setting: str = "") -> Judge:
    """ADIEE with a prompt pack, in the mode that the options have.

    The program asks once about source and edit and scores O in [0, 1]. In `prompt` a reply that cannot be read is asked
    again up to `wording.reminders` times. In `expected`, where a server lists only its likeliest tokens, the score is
    the middle of what is possible, and `bounds` has the interval.

    Raises:
        VievalError: a question or answer that the pack does not have.
    """
    require_wording(SPEC, wording, setting)
    _form("", options, wording)
    ask = _score_from_sentence if options.mode == "prompt" else _expected_score

    def program(sample: Sample) -> Program:
        images, steps = yield from pictures(sample, options.images)
        if failure := failed(steps):
            return Verdict({}, failure.status, trace=steps)
        verdict = yield from ask(sample, images, _form(sample.id.uid, options, wording), options, wording)
        return replace(verdict, trace=(*steps, *verdict.trace))

    return program


def _form(uid: str, options: AdieeOptions, wording: Pack) -> Form:
    return form_of(uid, wording, seed=options.seed, question=options.question, answer=options.answer)


def _score_from_sentence(
    sample: Sample, images: tuple[Image, ...], form: Form, options: AdieeOptions, wording: Pack
) -> Program:
    """The mode `prompt`."""
    sentences = [answer_text(key, DOTS, wording) for key in wording.questions if key.startswith(ANSWERS)]
    sentence = answer_text(form.answer, DOTS, wording)
    chat = Chat((question(sample, images, form, wording, "sentence"),), _PATH)
    [answer] = yield from ask_all(
        [ChatRequest(chat, lambda text: read_number(text, sentence, sentences, DOTS))], wording
    )
    scores = {ASPECT: answer.value[0] / SCALE} if answer.value and answer.final.status.usable else {}
    return Verdict(scores, answer.final.status, trace=answer.steps, findings=answer.findings)


def _expected_score(
    sample: Sample, images: tuple[Image, ...], form: Form, options: AdieeOptions, wording: Pack
) -> Program:
    """The mode `expected`."""
    message = question(sample, images, form, wording, "number")
    [reply] = yield [Likelihood((message,), SPELLINGS, _PATH, "beginning")]
    step = step_of(reply, _PATH, SPELLINGS, SCORES, "numbers")
    findings = (UNLIKELY,) if unlikely(reply) else ()
    if step.bounds is None:
        return Verdict({}, step.status, trace=(step,), findings=findings)
    low, high = step.bounds
    return Verdict({ASPECT: (low + high) / 2}, Status.OK, "", (step,), {ASPECT: (low, high)}, findings)


_EDIT = Needs(("source", "output"), ("instruction",))

SPEC = JudgeSpec(
    name="adiee",
    title="ADIEE",
    aspects=(ASPECT,),
    method="how well an edit was carried out: a number in words, or the mean over its probabilities",
    needs={"mie": _EDIT, "tie": _EDIT},
    options=AdieeOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "1",
    setting_labels=lambda options, setting: (options.mode,),
    intervals=True,
)
