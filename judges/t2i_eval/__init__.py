"""T2I-Eval: decompose the prompt into entities and questions, answer them from the image, explain,
score.

Source: Tu et al., Automatic Evaluation for Text-to-Image Generation: Task-decomposed Framework,
Distilled Training, and Meta-evaluation Benchmark (2024). Scores are the model's own numbers from 0
to 10: the overall one is O, and each dimension (appearance, intrinsic, relationship) has its own;
none is a mean.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast, get_args

from vieval_plugin.judges.conversation import (
    Exchange,
    TrainingUnit,
    final_chats,
    turn_example,
)
from vieval_plugin.judges.protocol import (
    FAILED_CALLS,
    Asking,
    Chat,
    Judge,
    Path,
    Program,
    Sample,
    SampleId,
    Scores,
    Status,
    Step,
    Verdict,
    worst,
)
from vieval_plugin.judges.spec import (
    EVERY_KIND,
    Export,
    JudgeSpec,
    Needs,
    require_wording,
)
from vieval_plugin.judges.stages import Notes, ask_one
from vieval_plugin.judges.structured_chat import ask_all, joined_steps, score_request
from vieval_plugin.judges.t2i_eval import framework, individual, schemas
from vieval_plugin.judges.t2i_eval.asker import (
    UNANSWERED,
    Ablation,
    Asker,
    T2IEvalOptions,
)
from vieval_plugin.judges.t2i_eval.reading import given_extraction, read_extraction
from vieval_plugin.judges.t2i_eval.structure import (
    KINDS,
    Extraction,
    Question,
    Result,
    folded,
    path_of,
    violations,
)
from vieval_plugin.prompts.pack import Pack

__all__ = ["ABLATIONS", "SPEC", "T2IEvalOptions", "build", "titles"]

SCALE = 10.0
ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)
PLAIN = ABLATIONS[0]
#: Ablation that asks everything in one call, in either mode.
SINGLE_CALL: Ablation = "no_decomposition"


def build(options: T2IEvalOptions, wording: Pack, setting: str = PLAIN) -> Judge:
    """T2I-Eval with a prompt pack, whole (`full`) or with one of the paper's ablations.

    A verdict's scores are O and the dimensions that have questions, in [0, 1]. A question without a
    readable answer is a finding, and the sample `repaired`. A call that failed is the status of its
    sample, whatever could be scored without it. Without a usable extraction or an overall score the
    sample has the status of that step.

    Raises:
        VievalError: the pack does not word what the options ask for.
    """
    require_wording(SPEC, wording, setting)
    at_once = options.mode == "framework" or setting == SINGLE_CALL
    last_question = "answers" if at_once else "overall"
    wording.require_questions([last_question], f"judges.{SPEC.name}.mode")
    if options.grades_explanations:
        wording.require_questions(["quality"], f"judges.{SPEC.name}.backbones")
    ablation = cast(Ablation, setting)

    def program(sample: Sample) -> Program:
        asker = Asker(
            wording,
            sample,
            options.backbones,
            options,
            ablation,
        )
        notes = Notes()
        captions = options.mode == "individual" and ablation != "no_captioning"
        key = "extraction_with_captions" if captions else "extraction"
        extraction = yield from extract(asker, key, captions, notes)
        if isinstance(extraction, Status):
            return _verdict(Result(), notes, extraction)
        if at_once:
            outcome = yield from framework.judge_questions(
                asker,
                extraction,
                notes,
            )
            if isinstance(outcome, Status):
                return _verdict(Result(), notes, outcome)
            result = outcome
        else:
            judged = yield from individual.judge_questions(
                asker,
                extraction,
                notes,
            )
            result = yield from individual.summarise(
                asker,
                extraction,
                judged,
                notes,
            )
        qualities = {}
        if options.grades_explanations:
            qualities = yield from grade(asker, result, notes)
        return _verdict(result, notes, None, qualities)

    return program


HIGHEST = 5.0
_OVERALL_STEP_PATH = ("overall",)
QUESTIONS = "explanation_quality_questions"
OVERALL = "explanation_quality_overall"


def grade(asker: Asker, result: Result, notes: Notes) -> Asking[dict[str, float]]:
    """Mean grade of the questions' explanations and the grade of the overall one, in [0, 1]; absent
    where not graded.

    The references come with the sample (annotation `reference_explanations`): a text under
    `overall` and under each question.
    """
    references = _references(asker.sample.annotations.get("reference_explanations"))
    graded = list(_graded(result, references))
    if not graded:
        notes.findings.append("no explanation has a reference")
        return {}
    asks = []
    for path, question, explanation, reference in graded:
        variables = {
            **asker.sample.texts,
            "question": question,
            "explanation": explanation,
            "reference": reference,
        }
        chat = asker.chat(
            "quality",
            stage="quality",
            path=(*path, "quality"),
            schema=schemas.QUALITY,
            variables=variables,
            max_tokens=512,
        )
        asks.append(score_request(chat, schemas.QUALITY))
    answers = yield from ask_all(asks, asker.wording)
    notes.trace += joined_steps(answers)
    grades = {
        path: answer.value[0] / HIGHEST
        for (path, *_), answer in zip(graded, answers, strict=True)
        if answer.value
    }
    scores = {}
    if _OVERALL_STEP_PATH in grades:
        scores[OVERALL] = grades.pop(_OVERALL_STEP_PATH)
    if grades:
        scores[QUESTIONS] = sum(grades.values()) / len(grades)
    return scores


def _graded(
    result: Result, references: Mapping[str, str]
) -> Iterator[tuple[Path, str, str, str]]:
    """Path, question, explanation and reference of each explanation that has one."""
    candidates = [
        (judged.path, judged.question.text, judged.reply.explanation)
        for judged in result.judged
    ]
    candidates.append((_OVERALL_STEP_PATH, "", result.overall.explanation))
    for path, question, explanation in candidates:
        reference = references.get(folded(question) or "overall")
        if explanation and reference:
            yield path, question, explanation, reference


def _references(document: Any) -> dict[str, str]:
    """Explanations by question, folded; those of questions may stand one level deeper."""
    explanations = {}
    pending = [document] if isinstance(document, dict) else []
    while pending:
        part: Mapping[str, Any] = pending.pop()
        for key, value in part.items():
            if isinstance(value, str):
                explanations[folded(str(key))] = value
            elif isinstance(value, dict):
                pending.append(value)
    return explanations


PATH = ("extraction",)
FROM_BENCHMARK = "the benchmark's own"


def extract(
    asker: Asker, key: str, captions: bool, notes: Notes
) -> Asking[Extraction | Status]:
    """The extraction of a sample, or the status of a sample that has no usable one; `key` is the
    pack's question.
    """
    if asker.ablation in ("no_extraction", SINGLE_CALL):
        return _general(asker)
    if asker.options.extraction == "given":
        return _extraction_from_annotations(asker, notes)
    schema = schemas.extraction(captions)
    chat = asker.chat(
        key,
        stage="extraction",
        path=PATH,
        schema=schema,
        variables=asker.sample.texts,
        max_tokens=3072,
    )
    reply_schema = None if asker.wording.asks_for_markdown else schema
    extraction = yield from ask_one(
        chat,
        lambda text: read_extraction(text, reply_schema),
        asker.wording,
        notes,
    )
    if isinstance(extraction, Extraction):
        notes.findings += [
            f"structure: {violation}" for violation in violations(extraction)
        ]
    return extraction


def _general(asker: Asker) -> Extraction:
    """Questions about the image as a whole, one a dimension."""
    questions = []
    for kind in KINDS:
        template = asker.wording.questions[f"general_{kind}"].template
        text = asker.wording.render(template, asker.sample.texts)
        questions.append(Question(kind, text))
    return Extraction((), (), tuple(questions))


def _extraction_from_annotations(asker: Asker, notes: Notes) -> Extraction | Status:
    document = asker.sample.annotations.get("extraction")
    text = json.dumps(document, ensure_ascii=False)
    step = Step(PATH, Status.OK, answer=text, reason=FROM_BENCHMARK)
    extraction: Extraction | None = None
    if document is None:
        reason = "the benchmark has no extraction for this sample"
        step = Step(PATH, Status.NOT_APPLICABLE, reason=reason)
    else:
        try:
            extraction = given_extraction(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"the benchmark's extraction cannot be used ({error})"
            step = Step(PATH, Status.TOOL_ERROR, reason=reason)
    notes.trace.append(step)
    return extraction or step.status


def titles(trace: Sequence[Step]) -> dict[Path, str]:
    """The words of each question by its path (`("intrinsic", "2")`), from a trace's extraction;
    empty without one.
    """
    for step in trace:
        if step.path == PATH and step.status.usable:
            is_given = step.reason == FROM_BENCHMARK
            read = given_extraction if is_given else _extraction_of
            return {
                path: question.text for path, question in path_of(read(step.answer))
            }
    return {}


def _extraction_of(answer: str) -> Extraction:
    """The extraction of an answer that was read, with captions or without, or in Markdown;
    empty where it is none of these.
    """
    for form in (
        schemas.extraction(True),
        schemas.extraction(False),
        None,
    ):
        extraction = read_extraction(answer, form).value
        if extraction:
            return extraction
    return Extraction(())


def _verdict(
    result: Result,
    notes: Notes,
    failed: Status | None,
    qualities: dict[str, float] | None = None,
) -> Verdict:
    scores: dict[str, float] = {
        kind: fields.score / SCALE
        for kind, fields in result.dimensions.items()
        if fields.score is not None
    }
    if result.overall.score is not None:
        scores["O"] = result.overall.score / SCALE
    statuses = [step.status for step in notes.trace]
    failures = [status for status in statuses if not status.usable]
    calls = [status for status in failures if status in FAILED_CALLS]
    if failed is None and calls:
        failed = worst(calls)
    if failed is None and "O" not in scores:
        failed = worst(failures or [Status.PARSE_FAILURE])
    is_repaired = failures or UNANSWERED in notes.findings
    return Verdict(
        scores | (qualities or {}),
        failed or (Status.REPAIRED if is_repaired else worst(statuses)),
        result.overall.explanation,
        tuple(notes.trace),
        findings=tuple(notes.findings),
    )


REPETITIONS = {
    "extraction": 8,
    "appearance": 1,
    "intrinsic": 2,
    "relationship": 3,
    "summary": 2,
}


#: Path, question and answer of a turn whose answer was read.
ReadTurn: TypeAlias = tuple[Path, Chat, str]


def units(identity: SampleId, exchanges: Sequence[Exchange]) -> list[TrainingUnit]:
    """The examples of one sample, from the conversation behind its verdict; of answers that could
    not be read, none.

    A question's score is that of its last turn; each turn is an example of its own, with the turns
    before it as history.
    """
    threads: dict[Path, list[ReadTurn]] = defaultdict(list)
    for path, (chat, answer) in final_chats(exchanges).items():
        if path[-1] != "quality":
            thread = path[:-1] or path
            threads[thread].append((path, chat, answer))
    scores = {
        exchange.ask.path: exchange.step.scores
        for exchange in exchanges
        if exchange.step.status.usable and exchange.step.scores
    }
    return [
        _unit(identity, thread, turns, scores.get(turns[-1][0]))
        for thread, turns in threads.items()
    ]


def _unit(
    identity: SampleId,
    thread: Path,
    turns: Sequence[ReadTurn],
    scores: Scores | None,
) -> TrainingUnit:
    kind = thread[0]
    summary = len(thread) == 1 and kind in (*KINDS, "overall")
    examples = []
    for path, chat, answer in turns:
        stage = path[-1] if len(path) > 1 else ""
        sub_task = " ".join(
            filter(
                None,
                [
                    kind,
                    "summary" if summary else "",
                    stage,
                ],
            )
        )
        examples.append(
            turn_example(
                identity,
                path,
                chat,
                answer,
                sub_task,
            )
        )
    unit_kind = "summary" if summary else kind
    return TrainingUnit(
        unit_kind,
        kind,
        scores[0] if scores else None,
        tuple(examples),
    )


def _calls(options: T2IEvalOptions, setting: str) -> str:
    if setting == SINGLE_CALL:
        return "1"
    return "3" if options.mode == "framework" else "about 33"


def _rounds(options: T2IEvalOptions, setting: str) -> int:
    by_mode = 3 if options.mode == "framework" else 8
    return (1 if setting == SINGLE_CALL else by_mode) + options.grades_explanations


SPEC = JudgeSpec(
    name="t2i_eval",
    title="T2I-Eval",
    aspects=("O",),
    method="entities, questions about them, answers, explanations and scores",
    needs={EVERY_KIND: Needs(("output",), ("prompt",))},
    options=T2IEvalOptions,
    build=build,
    settings=ABLATIONS,
    pack=lambda options, setting: options.pack,
    calls=_calls,
    rounds=_rounds,
    setting_labels=lambda options, setting: (
        options.mode,
        *((setting,) if setting != PLAIN else ()),
    ),
    dimensions=KINDS,
    grades=lambda options: (OVERALL, QUESTIONS) if options.grades_explanations else (),
    stepwise=True,
    titles=titles,
    export=Export(units, repetitions=REPETITIONS),
)
