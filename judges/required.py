"""Hard constraints of a judge in one file: sub-scores that must reach a least value, or `O` is 0.

Beside the sub-scores that a model answers with there may be some that text_rendering measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vieval_plugin.judges import text_rendering
from vieval_plugin.judges.contests import gather
from vieval_plugin.judges.protocol import Judge, Program, Sample, Status, Verdict, worst
from vieval_plugin.judges.rubric import OVERALL, question_key
from vieval_plugin.judges.spec import NoOptions
from vieval_plugin.prompts.pack import Pack

#: The aspects that may be sub-scores, as `JUDGE:ASPECT`.
MEASURES = {
    f"{text_rendering.NAME}:{aspect}": aspect for aspect in text_rendering.SPEC.aspects
}

_MISSED = f"{OVERALL}: 0, as "


def _sub_scores(verdict: Verdict, pack: Pack, kind: str) -> dict[str, float]:
    """The sub-scores that a model answered with, in [0, 1], by their names."""
    values = dict[str, float]()
    to_score = pack.manifest.to_score()
    for step in verdict.trace:
        names = pack.questions[question_key(pack, step.path[0], kind)].scores
        values |= zip(names, map(to_score, step.scores), strict=False)
    return values


def _merged(
    verdicts: Sequence[Verdict], scores: Mapping[str, float], reasons: Sequence[str]
) -> Verdict:
    """The first verdict with the statuses, reasons and steps of all."""
    lines = [*reasons, *(verdict.rationale for verdict in verdicts)]
    return replace(
        verdicts[0],
        scores=scores,
        status=worst([verdict.status for verdict in verdicts]),
        rationale="\n".join(filter(None, lines)),
        trace=tuple(step for verdict in verdicts for step in verdict.trace),
    )


def apply_requirements(judge: Judge, pack: Pack) -> Judge:
    """A judge with the sub-scores that its file measures, of whose verdicts `O` is 0 where a
    required sub-score is less.

    Sub-scores are compared in [0, 1]. One that does not apply, such as that of a text where the
    prompt asks for none, is not required. Where a required one failed there is no O.

    Raises:
        ToolMissing: the packages that read text are not installed.
    """
    measure = pack.manifest.measure
    require = pack.manifest.require
    readers = [text_rendering.build(NoOptions(), None, "")] if measure else []

    def program(sample: Sample) -> Program:
        programs = [judge(sample), *(reader(sample) for reader in readers)]
        verdict, *readings = yield from gather(programs)
        values = _sub_scores(verdict, pack, sample.kind)
        applicable = [r for r in readings if r.status is not Status.NOT_APPLICABLE]
        read = [reading.scores for reading in applicable if reading.scores]
        measured = {n: by[MEASURES[m]] for by in read for n, m in measure.items()}
        values |= measured
        missed = {
            name: minimum
            for name, minimum in require.items()
            if values.get(name, minimum) < minimum
        }
        scores = {**verdict.scores, **measured}
        if missed and OVERALL in scores:
            scores[OVERALL] = 0.0
        elif applicable and not measured and require.keys() & measure.keys():
            scores.pop(OVERALL, None)
        reasons = [
            f"{_MISSED}{name} is {values[name]:.2f}, below the required {minimum:g}"
            for name, minimum in missed.items()
        ]
        return _merged((verdict, *applicable), scores, reasons)

    return program


def missed_requirements(verdict: Verdict) -> list[str]:
    """The lines of a rationale on sub-scores that are less than required."""
    return [line for line in verdict.rationale.splitlines() if line.startswith(_MISSED)]
