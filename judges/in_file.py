"""A judge in one file: a prompt pack that describes its judge, as the `JudgeSpec` by which all else
knows it.

Its questions are answered with sub-scores, with probabilities of some answers, with a choice among
candidates, or with the number of a network. docs/guides/extending.md has the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

from vieval_plugin.judges import pairwise, rubric
from vieval_plugin.judges.answer_formats import FORMATS, format_of
from vieval_plugin.judges.auto_metrics import AutoMetric, verdict_of
from vieval_plugin.judges.protocol import OUTPUTS, Judge, Measure, Program, Sample
from vieval_plugin.judges.required import MEASURES, apply_requirements
from vieval_plugin.judges.rubric import OVERALL, Rubric, question_key
from vieval_plugin.judges.spec import (
    INPUTS,
    Build,
    JudgeSpec,
    Needs,
    NoOptions,
    Quantity,
)
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.scale import Scale
from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.suggestions import did_you_mean

ASPECTS = ("SC", "PQ", OVERALL)
#: The name, in the place of an aspect's, of the questions of a judge of contests.
CHOICE = "choice"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")
_COMMON_KEYS = {"name", "title", "kinds", "texts", "questions"}
_SCORE_KEYS = {*_COMMON_KEYS, "replies", "scale", "better", "combine"}
_CHOICE_KEYS = {*_COMMON_KEYS, "replies"}
#: The keys of a file by how its questions are answered.
_KEYS: Mapping[str, set[str]] = {
    **{
        form.name: {*_SCORE_KEYS, "measure", "require", *form.keys}
        for form in FORMATS.values()
    },
    "expected": {*_SCORE_KEYS, "answers"},
    **{"two_way": _CHOICE_KEYS, "four_way": _CHOICE_KEYS},
    "network": {
        *_COMMON_KEYS,
        "scale",
        "sigmoid",
        "better",
        "network",
        "about",
        "wording",
    },
}
_SUPPLIED = {
    "names",
    "example",
    "kind",
    "form",
    "medium",
    "places",
    "candidates",
}
_MASKED_EDITING = "mie"
_MOST_NUMBERS = 100


def spec_of(pack: Pack) -> JudgeSpec:
    """The description of the judge in a file.

    Raises:
        VievalError: in one line, the file, the key, and what is wrong with it.
    """
    manifest = pack.manifest
    if manifest.judge:
        reason = (
            f"this file is a prompt pack for {manifest.judge}, not a judge; set "
            f"judges.{manifest.judge}.pack to its path"
        )
        _refuse(pack, "judge", reason)
    if not _NAME.fullmatch(manifest.name):
        reason = (
            "must begin with a lowercase letter and contain at most 61 lowercase letters, "
            f"digits and _, got {manifest.name!r}"
        )
        _refuse(pack, "name", reason)
    answer_form = "network" if manifest.network else manifest.replies
    _require_known(pack, "replies", answer_form, _KEYS)
    form = "a judge with a network" if manifest.network else f"`replies: {answer_form}`"
    for key in sorted(manifest.model_fields_set - _KEYS[answer_form]):
        _refuse(pack, key, f"does not apply to {form}")
    is_choice = _KEYS[answer_form] is _CHOICE_KEYS
    aspects = _aspects(pack, (CHOICE,) if is_choice else ASPECTS)
    spec = JudgeSpec(
        name=manifest.name,
        title=manifest.title or manifest.name,
        aspects=tuple(aspects),
        method=f"described in {pack.path.name}",
        needs=_needs(pack, aspects),
        options=NoOptions,
        build=lambda options, wording, setting: _measured(wording, aspects[0]),
        pack=lambda options, setting: str(pack.path),
        calls=lambda options, setting: str(len(aspects)),
        file=pack,
    )
    if manifest.network:
        return _network_judge(spec, pack)
    return _contest_judge(spec) if is_choice else _sub_score_judge(spec, pack)


def _refuse(pack: Pack, key: str, reason: str) -> NoReturn:
    raise VievalError(f"{pack.path}: {key}: {reason}")


def _require_known(
    pack: Pack,
    key: str,
    name: str,
    allowed: Iterable[Any],
    what: str = "",
) -> None:
    """VievalError, with the nearest name, for one that is not known."""
    names = list(allowed)
    if name not in names:
        hint = did_you_mean(name, names, 0.5) or ";"
        known_names = ", ".join(names) or "none"
        reason = f"unknown name {name!r}{what}{hint} known names: {known_names}"
        _refuse(pack, key, reason)


def _aspects(pack: Pack, allowed: Sequence[str]) -> list[str]:
    aspects = []
    for key in pack.questions:
        aspect, _, kind = key.partition("_")
        _require_known(pack, "questions", aspect, allowed)
        if kind:
            _require_known(pack, f"questions.{key}", kind, INPUTS)
        aspects.append(aspect)
    return list(dict.fromkeys(aspects))


def _needs(pack: Pack, aspects: Sequence[str]) -> dict[str, Needs]:
    """The needs of a sample by kind: for the kinds in the file, or for all that have what the
    questions show.
    """
    needs = {}
    refusals = []
    for kind in pack.manifest.kinds or INPUTS:
        _require_known(pack, "kinds", kind, INPUTS)
        try:
            needs[kind] = _needs_of_kind(pack, aspects, kind)
        except VievalError as error:
            if pack.manifest.kinds:
                raise
            refusals.append(error)
    if not needs:
        raise refusals[0]
    return needs


def _needs_of_kind(pack: Pack, aspects: Sequence[str], kind: str) -> Needs:
    """Raise VievalError if a question is absent, or shows or names what the kind has
    not.
    """
    images = [*INPUTS[kind].images, *(["mask"] if kind == _MASKED_EDITING else [])]
    texts = (*INPUTS[kind].texts, *pack.manifest.texts)
    where = f" in the kind {kind}"
    roles: list[Any] = []
    names = list(pack.manifest.texts)
    for aspect in aspects:
        key = question_key(pack, aspect, kind)
        _require_known(
            pack,
            "questions",
            key,
            pack.questions,
            f" for the kind {kind}",
        )
        question = pack.questions[key]
        for role in question.images:
            _require_known(
                pack,
                f"questions.{key}.images",
                role,
                images,
                where,
            )
            is_candidate = role == "output" and aspect == CHOICE
            roles.append(OUTPUTS if is_candidate else role)
        template = f"questions.{key}: {question.template}"
        for name in sorted(pack.variables(question.template) - _SUPPLIED):
            _require_known(pack, template, name, texts, where)
            names.append(name)
    return Needs(tuple(dict.fromkeys(roles)), tuple(dict.fromkeys(names)))


def _sub_score_judge(spec: JudgeSpec, pack: Pack) -> JudgeSpec:
    """A judge whose questions are answered with sub-scores, or with probabilities of some
    answers.
    """
    manifest = pack.manifest
    expected = pack.expects_answers
    combinable = dict.fromkeys((*spec.aspects, OVERALL))
    for aspect in manifest.combine:
        _require_known(pack, "combine", aspect, combinable)
    overall = None if OVERALL in spec.aspects else manifest.combine.get(OVERALL)
    if overall and len(spec.aspects) < 2:
        reason = f"requires questions about SC and PQ, got {spec.aspects[0]} only"
        _refuse(pack, f"combine.{OVERALL}", reason)
    scale = manifest.to_score()
    if scale.low < 0:
        reason = "must not go below 0, because negative scores are not supported"
        _refuse(pack, "scale", reason)
    _check_sub_scores(
        spec,
        pack,
        has_overall=bool(overall) or OVERALL in spec.aspects,
    )
    combine = {aspect: manifest.combine.get(aspect, "min") for aspect in spec.aspects}
    score_rubric = Rubric(scale, combine, overall)
    grades = tuple(manifest.measure)
    spec = replace(
        spec,
        intervals=expected,
        reads_probabilities=expected,
        grades=lambda options: grades,
        reads_text=bool(grades),
    )
    answers = _expected_answers(pack, scale) if expected else {}

    def judge(wording: Pack, narrowed: Rubric) -> Judge:
        if expected:
            return rubric.expected_judge(narrowed, wording, answers)
        return apply_requirements(rubric.judge(narrowed, wording), wording)

    def build(narrowed: Rubric) -> Build:
        return lambda options, wording, setting: judge(wording, narrowed)

    return rubric.rubric_spec(spec, score_rubric, build)


def _check_sub_scores(spec: JudgeSpec, pack: Pack, has_overall: bool) -> None:
    """Raise VievalError for names of sub-scores and measures that are not allowed."""
    manifest = pack.manifest
    sub_scores: list[str] = []
    for key, question in pack.questions.items():
        problem = _names_problem(pack, question.scores)
        if problem:
            _refuse(pack, f"questions.{key}.scores", problem)
        sub_scores += question.scores
    for name, measured in manifest.measure.items():
        _require_known(pack, f"measure.{name}", measured, MEASURES)
        if name in {*sub_scores, *spec.aspects, OVERALL}:
            reason = "already the name of another score; choose another name"
            _refuse(pack, f"measure.{name}", reason)
    for name in manifest.require:
        _require_known(
            pack,
            "require",
            name,
            {*sub_scores, *manifest.measure},
        )
    if manifest.require and not has_overall:
        reason = f"requires {OVERALL}; add `combine: {{{OVERALL}: geometric_mean}}`"
        _refuse(pack, "require", reason)


def _expected_answers(pack: Pack, scale: Scale) -> Mapping[str, float]:
    """The answers whose probabilities are asked for, by what each counts; the steps of the scale
    where the pack names none.
    """
    if pack.manifest.answers:
        return pack.manifest.answers
    if scale.high - scale.low > _MOST_NUMBERS:
        reason = f"required because the scale has more than {_MOST_NUMBERS} steps"
        _refuse(pack, "answers", reason)
    steps = range(int(scale.low), int(scale.high) + 1)
    return {str(step): float(step) for step in steps}


def _names_problem(pack: Pack, names: Sequence[str]) -> str:
    """Reason that the names of a question's sub-scores do not fit; empty if they do."""
    if not pack.expects_answers:
        missing = "" if names else "must list a name for each number in the answer"
        return missing or format_of(pack).problem(names)
    return (
        "must contain only one name if `replies` is `expected`"
        if len(names) > 1
        else ""
    )


def _contest_judge(spec: JudgeSpec) -> JudgeSpec:
    """A judge that chooses among candidates, which are shown where the template has their
    places.
    """

    def build(options: Any, pack: Pack, setting: str) -> Any:
        questions = {}
        for kind in spec.needs:
            question = pack.questions[question_key(pack, CHOICE, kind)]
            images = tuple(role for role in question.images if role != "output")
            questions[kind] = replace(question, images=images)
        answers = cast(pairwise.Answers, pack.replies)
        contest_options = pairwise.PairwiseOptions(answers=answers)
        return pairwise.build(contest_options, replace(pack, questions=questions))

    return replace(
        spec,
        aspects=(),
        rates="contest",
        build=build,
        titles=pairwise.titles,
        export=pairwise.SPEC.export,
        calls=lambda options, setting: "2",
    )


def _network_judge(spec: JudgeSpec, pack: Pack) -> JudgeSpec:
    """A judge whose question is answered with the number of a network."""
    manifest = pack.manifest
    pack.require_images_first()
    if not isinstance(manifest.network.get("form"), str):
        page = docs_url("guides/judges.md#a-network-of-your-own")
        _refuse(
            pack,
            "network.form",
            f"must be a form of network, such as value_head or dual_encoder; see {page}",
        )
    if (manifest.scale is None) == (manifest.sigmoid is None):
        reason = "set either scale or sigmoid to turn the network's number into a score"
        _refuse(pack, "scale", reason)
    if len(spec.aspects) > 1:
        aspects = " and ".join(spec.aspects)
        reason = (
            "must have exactly one aspect, because a network returns one number; got "
        )
        _refuse(pack, "questions", f"{reason}{aspects}")
    about = manifest.about
    return replace(
        spec,
        pack=None,
        calls=lambda options, setting: "0",
        scored=True,
        against_all=True,
        quantity=Quantity(about.more, about.most, about.meaning) if about else None,
    )


def missing_wording(pack: Pack) -> str:
    """The line on the wording that a network was trained with, where its judge lacks it; else
    empty.
    """
    wording = pack.manifest.wording
    templates = [question.template for question in pack.questions.values()]
    if not wording or all(pack.digest(name) == wording.digest for name in templates):
        return ""
    return (
        f"{pack.name}: its training prompt is not included; run `vieval prompts import "
        f"{pack.name} CHECKOUT --to FOLDER` with a checkout of {wording.repository}, "
        "and set VIEVAL_JUDGES=FOLDER"
    )


def _measured(pack: Pack, aspect: str) -> Judge:
    """The judge of a network. Images are the roles `image_0`, `image_1`, ..., the words the role
    `text`.

    VievalError where it lacks the wording that the network was trained with.
    """
    line = missing_wording(pack)
    if line:
        raise VievalError(line)
    manifest = pack.manifest
    metric = AutoMetric(
        name=str(manifest.network["form"]),
        title=pack.name,
        aspect=aspect,
        images={},
        kinds=(),
        to_score=manifest.to_score(),
    )

    def program(sample: Sample) -> Program:
        question = pack.questions[question_key(pack, aspect, sample.kind)]
        images = {
            f"image_{number}": sample.images[role]
            for number, role in enumerate(question.images)
        }
        text = {"text": rubric.question_text(pack, question, sample)}
        [reply] = yield [
            Measure(
                metric.name,
                images,
                (metric.name,),
                text,
                pack.name,
            )
        ]
        return verdict_of(metric, reply)

    return program
