"""ADIEE: how well an edit was carried out, as one number that a model says, or expects.

Source: ADIEE, automatic dataset creation and scorer for instruction-guided image editing evaluation
(ICCV 2025), its supplementary. The wording and the order of pictures and words are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

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
from vieval_plugin.judges.parsing import Read, parse_number
from vieval_plugin.judges.probabilities import spellings, step_of, unlikely
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
from vieval_plugin.judges.wrapping import unwrapped
from vieval_plugin.prompts.pack import Pack

Mode: TypeAlias = Literal["prompt", "expected"]

ASPECT = "O"
_PATH: Path = (ASPECT,)
NUMBERS = tuple(range(11))
SCORES = tuple(number / 10 for number in NUMBERS)
SPELLINGS = spellings(NUMBERS)
#: The finding of an answer that hardly ever begins with a number asked for: of a model that thinks
#: first, for example.
UNLIKELY = "the reply rarely begins with a number"

SCALE = 10.0
_NUMBER = r"([0-9]{1,2}(?:\.[0-9]{1,6})?)"
_OUT_OF = rf"\**\s*(?:/|out of)\s*\**{SCALE:g}"
_OTHER_WORDS = "differs from the requested sentence"


@dataclass(frozen=True)
class AdieeOptions:
    """Options of the judge."""

    pack: str = option(
        "adiee/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    mode: Mode = option(
        "prompt",
        "read the score from the reply (prompt), or compute its mean from the "
        "probabilities of 0 to 10 (expected)",
    )
    images: Images = option(
        "two",
        "show the source and the edit as two images, or joined into one for models "
        "that accept only one",
    )


def build(options: AdieeOptions, wording: Pack, setting: str = "") -> Judge:
    """ADIEE with a prompt pack, in the mode that the options have.

    The program asks once about source and edit and scores O in [0, 1]. In `prompt` a reply that
    cannot be read is asked again up to `wording.reminders` times. In `expected`, where a server
    lists only its likeliest tokens, the score is the middle of what is possible, and `bounds` has
    the interval.

    Raises:
        VievalError: a pack without questions or answers.
    """
    require_wording(SPEC, wording, setting)
    form_of("", wording)
    ask = _score_from_sentence if options.mode == "prompt" else _expected_score

    def program(sample: Sample) -> Program:
        images, steps = yield from pictures(sample, options.images)
        failure = failed(steps)
        if failure:
            return Verdict({}, failure.status, trace=steps)
        verdict = yield from ask(
            sample,
            images,
            form_of(sample.id.uid, wording),
            wording,
        )
        return replace(verdict, trace=(*steps, *verdict.trace))

    return program


def _score_from_sentence(
    sample: Sample, images: tuple[Image, ...], form: Form, wording: Pack
) -> Program:
    """The mode `prompt`."""
    sentences = []
    for key in wording.questions:
        if key.startswith(ANSWERS):
            sentences.append(answer_text(key, DOTS, wording))
    sentence = answer_text(form.answer, DOTS, wording)
    chat = Chat(
        (
            question(
                sample,
                images,
                form,
                wording,
                "sentence",
            ),
        ),
        _PATH,
    )

    def read(text: str) -> Read[tuple[float, ...]]:
        return read_number(text, sentence, sentences, DOTS)

    [answer] = yield from ask_all([ChatRequest(chat, read)], wording)
    if answer.value and answer.final.status.usable:
        scores = {ASPECT: answer.value[0] / SCALE}
    else:
        scores = {}
    return Verdict(
        scores,
        answer.final.status,
        trace=answer.steps,
        findings=answer.findings,
    )


def _expected_score(
    sample: Sample, images: tuple[Image, ...], form: Form, wording: Pack
) -> Program:
    """The mode `expected`."""
    message = question(
        sample,
        images,
        form,
        wording,
        "number",
    )
    [reply] = yield [Likelihood((message,), SPELLINGS, _PATH, "beginning")]
    step = step_of(
        reply,
        _PATH,
        SPELLINGS,
        SCORES,
        "numbers",
    )
    findings = (UNLIKELY,) if unlikely(reply) else ()
    if step.bounds is None:
        return Verdict(
            {},
            step.status,
            trace=(step,),
            findings=findings,
        )
    low, high = step.bounds
    scores = {ASPECT: (low + high) / 2}
    return Verdict(
        scores,
        Status.OK,
        trace=(step,),
        bounds={ASPECT: step.bounds},
        findings=findings,
    )


def read_number(
    text: str, expected: str, sentences: Sequence[str], placeholder: str
) -> Read[tuple[float, ...]]:
    """Read the number from 0 to 10 in a reply.

    Args:
        text: the reply as it came.
        expected: the sentence that was asked for.
        sentences: all sentences that a model may use.
        placeholder: text in place of the number in these sentences.

    Returns:
        `ok` for the sentence asked for, `repaired` for another one or for the number alone.

    >>> read_number("I rate this edit 7.", "I rate this edit ...", ["..."], "...").scores
    (7.0,)
    >>> read_number("7", "I rate this edit ...", ["..."], "...").status.value
    'repaired'
    """
    answer = unwrapped(text)
    for sentence in (expected, *sentences):
        literal = re.escape(sentence)
        pattern = literal.replace(re.escape(placeholder), rf"\**{_NUMBER}")
        pattern = rf"[\"'*]*{pattern}({_OUT_OF})?[\"'.*]*"
        match = re.fullmatch(pattern, answer, re.IGNORECASE)
        if match is None:
            continue
        number = float(match[1])
        if number > SCALE:
            reason = f"the score must be a number from 0 to {SCALE:g}"
            return Read(Status.PARSE_FAILURE, reason=reason)
        if sentence == expected and not match[2] and "*" not in answer:
            return Read(Status.OK, (number,), (number,))
        return Read(
            Status.REPAIRED,
            (number,),
            (number,),
            _OTHER_WORDS,
        )
    parsed = parse_number(text, 0, SCALE)
    return (
        replace(parsed, status=Status.REPAIRED, reason=_OTHER_WORDS)
        if parsed.status.usable
        else parsed
    )


_EDIT = Needs(("source", "output"), ("instruction",))

SPEC = JudgeSpec(
    name="adiee",
    title="ADIEE",
    aspects=(ASPECT,),
    method="edit quality as a number in the reply, or as a mean over probabilities",
    needs={"mie": _EDIT, "tie": _EDIT},
    options=AdieeOptions,
    build=build,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "1",
    rounds=lambda options, setting: 3,
    setting_labels=lambda options, setting: (options.mode,),
    intervals=True,
)
