"""CIGEval: an agent that plans which tool helps with which sub-question, and rates each on what the tool shows.

Source: Wang et al., A Unified Agentic Framework for Evaluating Conditional Image Generation (2025). The choices are those
of the released code; departures from it have names (see cigeval_questions.Choices). It rates semantic consistency only.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from vieval_plugin.judges.asking import Answered, ScoreAsk, ask_scores
from vieval_plugin.judges.cigeval_plan import Chosen, plan
from vieval_plugin.judges.cigeval_questions import IMPROVEMENTS, SCALE, Choices, Judged, SubQuestion, program
from vieval_plugin.judges.protocol import Ask, Chat, Image, Judge, Message, Program, Reply, Sample, Step, Wording
from vieval_plugin.judges.together import together
from vieval_plugin.judges.tools import Finding
from vieval_plugin.judges.viescore import reply_schema

__all__ = ["ASPECTS", "IMPROVEMENTS", "Choices", "judge"]

ASPECTS = ("SC",)


def judge(wording: Wording, choices: Choices) -> Judge:
    """CIGEval with a prompt pack: a planning call over all images, then tools and a rating call for each sub-question.

    SC is the lowest sub-score over 10, in [0, 1]. `findings` has what was planned for each sub-question and which tools
    failed.
    """

    def of_sample(sample: Sample) -> Program:
        def judging(asked: list[SubQuestion], images: Mapping[str, Image]) -> Generator[list[Ask], list[Reply], Judged]:
            chosen, steps = yield from plan(asked, images, wording, choices)
            rated = yield from together([_rate(one, chosen[one.name], sample, wording, choices) for one in asked])
            trace = [*steps, *(step for _, own, _ in rated for step in own)]
            findings = [finding for _, _, own in rated for finding in own]
            ratings = {one.name: answer for one, (answer, _, _) in zip(asked, rated, strict=True)}
            return Judged(ratings, tuple(trace), tuple(findings))

        return program(sample, wording, judging)

    return of_sample


def _rate(
    asked: SubQuestion, chosen: Chosen, sample: Sample, wording: Wording, choices: Choices
) -> Generator[list[Ask], list[Reply], tuple[Answered[tuple[float, ...]], tuple[Step, ...], tuple[str, ...]]]:
    """The tool and then the rating of a sub-question: the answer, all steps, and what is to be counted."""
    found, note, findings = Finding(), "", [chosen.finding] if chosen.finding else []
    if chosen.tool is not None and chosen.tool.use is not None:
        found = yield from chosen.tool.use(asked.request(asked.name, chosen.entities, sample, wording, choices))
        if found.failure:
            findings.append(f"tool failed: {chosen.tool.name}")
            found = Finding(steps=found.steps)
        else:
            note = chosen.tool.note
    text = asked.render(wording, form="rating", note=note, found=found.text)
    images = {**asked.images, **found.images}
    message = Message("user", (*images.values(), text))
    chat = Chat((message,), f"{asked.name}/rating", reply_schema(1))
    [answer] = yield from ask_scores([ScoreAsk(chat, 1, SCALE)], wording, choices.reminders)
    planned = (chosen.step,) if chosen.step else ()
    return answer, (*planned, *found.steps, *answer.steps), tuple(findings)
