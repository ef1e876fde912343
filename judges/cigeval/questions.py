"""CIGEval's sub-questions: which images each is about, what a detector should look for, which tools
fit.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025),
and its released code where the two differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from vieval_plugin.judges.contests import gather
from vieval_plugin.judges.protocol import (
    Asking,
    Image,
    Path,
    Sample,
    Scores,
    Status,
    Step,
    Trace,
    UseTool,
    Verdict,
    not_applicable,
    worst,
)
from vieval_plugin.judges.spec import option
from vieval_plugin.judges.structured_chat import StructuredChatOutcome, joined_reasons
from vieval_plugin.judges.tools import Request, Tool, failed, use_tools
from vieval_plugin.prompts.pack import Pack, PackQuestion
from vieval_plugin.text.yaml_json import JsonObject

Improvement: TypeAlias = Literal[
    "difference_on_tie", "all_differences", "mask", "named_entity", "plan_each_subject"
]
IMPROVEMENTS: tuple[Improvement, ...] = get_args(Improvement)
SCALE = 10.0
_NOTHING = PackQuestion("", (), ())


@dataclass(frozen=True)
class CIGEvalOptions:
    """Options of the judge.

    `improvements` are departures from the released code, by name:

    - `difference_on_tie`: the difference tool serves text-guided edits as well, as the paper has
      it;
    - `all_differences`: all boxes that differ are shown, not only the largest;
    - `mask`: for mask-guided edits, differences count inside the task's mask or outside, whichever
      is asked about;
    - `named_entity`: the plan names what the grounding tool looks for;
    - `plan_each_subject`: each subject of a multi-concept image has an entry of its own in the
      plan.
    """

    pack: str = option(
        "cigeval/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    removed: tuple[str, ...] = option(
        ("ocr",),
        "tools to disable: any of difference, grounding, ocr, scene_graph",
    )
    improvements: tuple[Improvement, ...] = option(
        (),
        (
            "changes to the released code: any of difference_on_tie, all_differences, mask, "
            "named_entity, plan_each_subject"
        ),
    )
    detector: str = option(
        "IDEA-Research/grounding-dino-base",
        (
            "model of the grounding tool: a folder, or a hub name as NAME or NAME@COMMIT "
            "(results record the loaded commit)"
        ),
        folder=True,
    )


@dataclass(frozen=True)
class Setup:
    """Setup of all sub-questions."""

    #: Prompt pack.
    wording: Pack
    #: Options of the judge.
    options: CIGEvalOptions
    #: Tools on offer.
    tools: tuple[Tool, ...] = ()

    def improves(self, name: Improvement) -> bool:
        """Return whether a departure from the released code is wanted."""
        return name in self.options.improvements

    def tool(self, name: str) -> Tool | None:
        """The tool of a name among those on offer; None if it is not there."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def enforced(self, schema: JsonObject) -> JsonObject | None:
        """A schema, where the wording asks for what it says."""
        return schema if self.wording.is_enforced else None


@dataclass(frozen=True)
class SubQuestion:
    """Sub-question about a sample."""

    #: Name within its kind.
    name: str
    #: Kind of the sample.
    kind: str
    #: Question of the prompt pack.
    question: PackQuestion
    #: Images by role, in order.
    images: Mapping[str, Image]
    #: Texts that its template takes.
    texts: Mapping[str, Any]

    def render(self, setup: Setup, **more: Any) -> str:
        """The sub-question in a form: `plan` for its words alone, `rating`, or `react` with a
        choice of tools.
        """
        variables = {
            **self.texts,
            **dict.fromkeys(("note", "found", "tool"), ""),
            "told": (),
            "names": self.question.scores,
            **more,
        }
        return setup.wording.render(self.question.template, variables)

    def request(
        self,
        path: Path,
        phrases: Sequence[str],
        sample: Sample,
        setup: Setup,
    ) -> Request:
        """Request to a tool; without `phrases` of the model's own, those of the released code."""
        mask = sample.images.get("mask") if setup.improves("mask") else None
        sought = tuple(phrase for phrase in phrases if phrase.strip()) or (self.phrase,)
        return Request(
            path,
            question=self.name,
            images=self.images,
            phrases=sought,
            wording=setup.wording,
            mask=mask,
            improvements=setup.options.improvements,
            detector=setup.options.detector,
        )

    @property
    def phrase(self) -> str:
        """Phrase that a detector looks for in the released code: the whole text the question is
        about, or a word.
        """
        if self.name == "background":
            return "background"
        if self.name.startswith("concept") or self.kind == "sdie":
            return str(self.texts["subject"])
        return str(self.texts.get("instruction") or self.texts.get("prompt") or "")


def barred(tool: Tool, sub_question: SubQuestion, setup: Setup) -> str:
    """Reason that a tool may not be used for a sub-question; empty if it may."""
    if "control" in sub_question.images:
        return "tools do not support guidance maps"
    compared = {"mie", "tie"} if setup.improves("difference_on_tie") else {"mie"}
    if tool.name == "difference" and sub_question.kind not in compared:
        return f"{tool.name} does not apply to this task"
    return ""


_SIDES = {"concept_1": "left", "concept_2": "right"}


def pictures(sample: Sample, wording: Pack) -> Asking[tuple[dict[str, Image], Trace]]:
    """The sample's images by role; concepts are taken apart or put side by side, as the prompt
    pack shows them.
    """
    images = dict(sample.images)
    asks = {}
    question = wording.questions.get(f"plan/{sample.kind}", _NOTHING)
    if "concepts" in images and "concept_1" not in images:
        for role, side in _SIDES.items():
            arguments = {"image": images["concepts"], "side": side}
            asks[role] = UseTool("half", arguments, (f"half {role}",))
    elif "concepts" not in images and "concepts" in question.images:
        sides = {side: images[role] for role, side in _SIDES.items()}
        asks = {
            "concepts": UseTool(
                "side_by_side",
                sides,
                ("side by side",),
            )
        }
    results, steps = yield from use_tools(list(asks.values()))
    for role, result in zip(asks, results, strict=True):
        if result.image:
            images[role] = result.image
    return images, steps


def sub_questions(
    sample: Sample, images: Mapping[str, Image], wording: Pack
) -> list[SubQuestion]:
    """The sub-questions of the sample's kind, as the prompt pack lists them."""
    kind_questions = []
    for key, question in wording.questions.items():
        kind, _, name = key.partition("/")
        if kind == sample.kind:
            shown = {role: images[role] for role in question.images}
            subject_key = name if name.startswith("concept_") else "subject"
            subject = sample.texts.get(subject_key, "").strip() or "subject"
            texts = {
                "prompt": "",
                "instruction": "",
                **sample.texts,
                "subject": subject,
            }
            kind_questions.append(
                SubQuestion(
                    name,
                    kind,
                    question,
                    shown,
                    texts,
                )
            )
    return kind_questions


#: The rating of a sub-question, all steps on the way to it, and what is to be counted.
Rating: TypeAlias = tuple[StructuredChatOutcome[Scores], Sequence[Step], Sequence[str]]
Rate: TypeAlias = Callable[[SubQuestion], Asking[Rating]]
#: What comes before all ratings: its steps, and how each sub-question is rated then.
Begin: TypeAlias = Callable[
    [Sequence[SubQuestion], Mapping[str, Image], Sample, Setup],
    Asking[tuple[Trace, Rate]],
]


def program(sample: Sample, setup: Setup, begin: Begin) -> Asking[Verdict]:
    """The sub-questions of a sample, rated at once, and the verdict: `SC = min(sub-scores)/10`, in
    [0, 1].

    A bad plan or a tool that fails does not keep a sub-question from being rated. A call of a model
    that fails does, wherever it happens: rated without the tool, the sample would differ from one
    run to the next.
    """
    images, cut = yield from pictures(sample, setup.wording)
    failure = failed(cut)
    if failure:
        return Verdict({}, failure.status, trace=cut)
    questions = sub_questions(sample, images, setup.wording)
    if not questions:
        verdict = not_applicable(
            f"prompt pack {setup.wording.name} has no sub-questions for the kind "
            f"{sample.kind}"
        )
        return replace(verdict, trace=(*cut, *verdict.trace))
    planning, rate = yield from begin(questions, images, sample, setup)
    rated = yield from gather([rate(question) for question in questions])
    final = {}
    steps = list(planning)
    findings: list[str] = []
    for question, rating in zip(questions, rated, strict=True):
        answer, rating_steps, rating_findings = rating
        final[question.name] = answer.final
        steps += rating_steps
        findings += rating_findings
    failed_calls = [step for step in steps if step.status is Status.API_ERROR]
    status = worst([step.status for step in (*final.values(), *failed_calls)])
    return Verdict(
        {"SC": _lowest_score(final.values())} if status.usable else {},
        status,
        joined_reasons(final),
        (*cut, *steps),
        findings=tuple(findings),
    )


def _lowest_score(steps: Iterable[Step]) -> float:
    lowest = min(min(step.scores) for step in steps) / SCALE
    return min(max(lowest, 0.0), 1.0)
