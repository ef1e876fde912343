"""T2I-Eval: decompose the prompt into entities and questions, answer them from the image, explain, score.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation: Task-decomposed Framework, Distilled Training, and
Meta-evaluation Benchmark (2024). Scores are the model's own numbers from 0 to 10: the overall one is O, and each
dimension (appearance, intrinsic, relationship) has its own; none is a mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Judge, Path, Program, Sample, Status, Step, Verdict, worst
from vieval_plugin.judges.spec import EVERY_KIND, Export, JudgeSpec, Needs, require_wording
from vieval_plugin.judges.t2i_eval import framework, individual
from vieval_plugin.judges.t2i_eval.asker import UNANSWERED, Ablation, Asker, Notes, T2IEvalOptions
from vieval_plugin.judges.t2i_eval.export import REPETITIONS, units
from vieval_plugin.judges.t2i_eval.extraction import GIVEN, PATH, extract
from vieval_plugin.judges.t2i_eval.quality import OVERALL, QUESTIONS, grade
from vieval_plugin.judges.t2i_eval.reading import given_extraction, read_extraction
from vieval_plugin.judges.t2i_eval.results import Result, path_of
from vieval_plugin.judges.t2i_eval.structure import KINDS
from vieval_plugin.judges.wording import Wording

__all__ = ["ABLATIONS", "SPEC", "T2IEvalOptions", "build", "titles"]

SCALE = 10.0
ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)
PLAIN = ABLATIONS[0]


def build(options: T2IEvalOptions, wording: Wording, setting: str = PLAIN) -> Judge:
    """T2I-Eval with a prompt pack, whole (`full`) or with one of the paper's ablations.

    A verdict's scores are O and the dimensions that have questions, in [0, 1]. A question without a readable answer is a
    finding, and the sample `repaired`. A call that failed is the status of its sample, whatever could be scored without
    it. Without a usable extraction or an overall score the sample has the status of that step.

    Raises:
        VievalError: the pack does not word what the options ask for.
    """
    require_wording(SPEC, wording, setting)
    wanted = {"answers"} if options.mode == "framework" else {"overall"}
    wanted |= {"quality"} if options.explanation_quality else set()
    if absent := wanted - set(wording.questions):
        raise VievalError(
            f"prompt pack {wording.name} does not word {min(absent)!r}, which judges.{SPEC.name} asks for "
            "(mode, explanation_quality)"
        )
    ablation = cast(Ablation, setting)

    def program(sample: Sample) -> Program:
        asker, notes = Asker(wording, options, ablation, sample), Notes()
        captions = options.mode == "individual" and ablation != "no_captioning"
        key = "extraction_with_captions" if captions else "extraction"
        extraction = yield from extract(asker, key, captions, notes)
        if isinstance(extraction, Status):
            return _verdict(Result(), notes, extraction)
        if options.mode == "framework":
            found = yield from framework.judge_questions(asker, extraction, notes)
            if isinstance(found, Status):
                return _verdict(Result(), notes, found)
            result = found
        else:
            judged = yield from individual.judge_questions(asker, extraction, notes)
            result = yield from individual.summarise(asker, extraction, judged, notes)
        qualities = (yield from grade(asker, result, notes)) if options.explanation_quality else {}
        return _verdict(result, notes, None, qualities)

    return program


def titles(trace: Sequence[Step]) -> dict[Path, str]:
    """The words of each question by its path (`("intrinsic", "2")`), from a trace's extraction; empty without one."""
    for step in trace:
        if step.path == PATH and step.status.usable:
            given = step.reason == GIVEN
            found = given_extraction(step.answer) if given else read_extraction(step.answer).value
            return {path: question.text for path, question in path_of(found)} if found else {}
    return {}


def _verdict(result: Result, notes: Notes, failed: Status | None, qualities: dict[str, float] | None = None) -> Verdict:
    scores: dict[str, float] = {
        kind: said.score / SCALE for kind, said in result.dimensions.items() if said.score is not None
    }
    if result.overall.score is not None:
        scores["O"] = result.overall.score / SCALE
    statuses = [step.status for step in notes.trace]
    lost = [status for status in statuses if not status.usable]
    calls = [status for status in lost if status in (Status.API_ERROR, Status.TOOL_ERROR)]
    if failed is None and calls:
        failed = worst(calls)
    if failed is None and "O" not in scores:
        failed = worst(lost) if lost else Status.PARSE_FAILURE
    findings = tuple(notes.findings)
    status = failed or (Status.REPAIRED if lost or UNANSWERED in findings else worst(statuses))
    return Verdict(
        {**scores, **(qualities or {})}, status, result.overall.explanation, tuple(notes.trace), findings=findings
    )


SPEC = JudgeSpec(
    name="t2i_eval",
    title="T2I-Eval",
    aspects=("O",),
    needs={EVERY_KIND: Needs(("output",), ("prompt",))},
    options=T2IEvalOptions,
    build=build,
    settings=ABLATIONS,
    pack=lambda options, setting: options.pack,
    calls=lambda options, setting: "3" if options.mode == "framework" else "about 33",
    told=lambda options, setting: (options.mode, *((setting,) if setting != PLAIN else ())),
    dimensions=KINDS,
    grades=lambda options: (OVERALL, QUESTIONS) if options.explanation_quality else (),
    stepwise=True,
    titles=titles,
    export=Export(units, repetitions=REPETITIONS),
)
