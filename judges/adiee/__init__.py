"""ADIEE: how well an edit was carried out, as one number that a model says, expects, or was trained to give.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image editing evaluation (ICCV 2025), its
supplementary. The wording and the order of pictures and words are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.adiee.expected import SPELLINGS, UNLIKELY, step_of, unlikely
from vieval_plugin.judges.adiee.head import DescribedHead, images_of, measured
from vieval_plugin.judges.adiee.question import ANSWERS, DOTS, Form, Images, answer_text, form_of, pictures, question
from vieval_plugin.judges.adiee.reading import SCALE, read_number
from vieval_plugin.judges.protocol import Chat, Image, Judge, Likelihood, Path, Program, Sample, Status, Verdict
from vieval_plugin.judges.spec import JudgeSpec, Needs, option, require_wording
from vieval_plugin.judges.structured_chat import Asked, ask_all
from vieval_plugin.judges.tools import failed
from vieval_plugin.judges.wording import Wording

Mode: TypeAlias = Literal["prompt", "expected", "head"]

ASPECT = "O"
_PATH: Path = (ASPECT,)


@dataclass(frozen=True)
class AdieeOptions:
    """What can be set."""

    pack: str = option("adiee/v1", "prompt pack: a built-in name or a folder (`vieval prompts list`)", folder=True)
    mode: Mode = option(
        "prompt",
        "a number in words (prompt), the mean over the probabilities of 0 to 10 (expected), or a trained scorer (head), which "
        "scorers.adiee names",
    )
    images: Images = option("two", "show source and edit as two images, or joined as one, for models that take one")
    question: int = option(0, "number of the question asked; 0 draws one for each instruction", ge=0)
    answer: int = option(0, "number of the sentence to answer with; 0 draws one for each instruction", ge=0)
    seed: int = option(0, "seed of what is drawn", ge=0)
    reminders: int = option(1, "how often a reply that cannot be read is asked again, with the error", ge=0)


def headed(options: AdieeOptions, described: DescribedHead | None) -> AdieeOptions:
    """The options in force: with a trained scorer the mode is `head`, and images are shown as it was trained on them.

    Raises:
        VievalError: `head` without a scorer, another mode with one, or a scorer of another kind.
    """
    if described is None and options.mode == "head":
        raise VievalError(
            "adiee in the mode head needs a trained scorer: set scorers.adiee.model to its folder (`vieval train adiee` "
            "makes one), or judges.adiee.mode to prompt or expected, which need a backbone only"
        )
    if described is None:
        return options
    if options.mode == "expected":
        raise VievalError("adiee: a trained scorer gives its score itself: leave it out, or judges.adiee.mode expected")
    return replace(options, mode="head", images=images_of(described))


def build(options: AdieeOptions, wording: Wording, setting: str = "") -> Judge:
    """ADIEE with a prompt pack, in the mode that the options have.

    The program asks once about source and edit and scores O in [0, 1]. In `prompt` a reply that cannot be read is asked
    again up to `options.reminders` times. In `expected`, where a server lists only its likeliest tokens, the score is
    the middle of what is possible, and `bounds` has the interval.

    Raises:
        VievalError: a question or answer that the pack does not have.
    """
    require_wording(SPEC, wording, setting)
    _form("", options, wording)
    if options.mode == "head":
        return lambda sample: measured(
            sample, _form(sample.id.uid, options, wording), wording, options.images, _PATH, ASPECT
        )
    ask = _said if options.mode == "prompt" else _expected

    def program(sample: Sample) -> Program:
        shown, steps = yield from pictures(sample, options.images)
        if failure := failed(steps):
            return Verdict({}, failure.status, trace=steps)
        found = yield from ask(sample, shown, _form(sample.id.uid, options, wording), options, wording)
        return replace(found, trace=(*steps, *found.trace))

    return program


def _form(uid: str, options: AdieeOptions, wording: Wording) -> Form:
    return form_of(uid, wording, seed=options.seed, question=options.question, answer=options.answer)


def _said(sample: Sample, shown: tuple[Image, ...], form: Form, options: AdieeOptions, wording: Wording) -> Program:
    """The mode `prompt`."""
    sentences = [answer_text(key, DOTS, wording) for key in wording.questions if key.startswith(ANSWERS)]
    asked = answer_text(form.answer, DOTS, wording)
    chat = Chat((question(sample, shown, form, wording, "sentence"),), _PATH)
    [answer] = yield from ask_all(
        [Asked(chat, lambda text: read_number(text, asked, sentences, DOTS))], wording, options.reminders
    )
    scores = {ASPECT: answer.value[0] / SCALE} if answer.value and answer.final.status.usable else {}
    return Verdict(scores, answer.final.status, trace=answer.steps, findings=answer.findings)


def _expected(sample: Sample, shown: tuple[Image, ...], form: Form, options: AdieeOptions, wording: Wording) -> Program:
    """The mode `expected`."""
    message = question(sample, shown, form, wording, "number")
    [reply] = yield [Likelihood((message,), SPELLINGS, _PATH, "beginning")]
    step = step_of(reply, _PATH)
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
    needs={"mie": _EDIT, "tie": _EDIT},
    options=AdieeOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "1",
    told=lambda options, setting: (options.mode,),
    intervals=True,
    by_scorer=headed,
)
