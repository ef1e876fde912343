"""CIGEval's first form: a planning call over all images, then tools and a rating call for each sub-question."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from vieval_plugin.judges.cigeval.plan import Chosen, plan
from vieval_plugin.judges.cigeval.questions import SCALE, Ratings, Setup, SubQuestion, program
from vieval_plugin.judges.gather import gather
from vieval_plugin.judges.protocol import Ask, Chat, Image, Judge, Message, Program, Reply, Sample, Step
from vieval_plugin.judges.structured_chat import Answered, ScoreAsk, ask_scores, reply_schema
from vieval_plugin.judges.tools import ToolOutcome


def judge(setup: Setup) -> Judge:
    """The judge that plans.

    SC is the lowest sub-score over 10, in [0, 1]. `findings` has what was planned for each sub-question and which tools
    failed.
    """

    def of_sample(sample: Sample) -> Program:
        def judging(
            asked: list[SubQuestion], images: Mapping[str, Image]
        ) -> Generator[list[Ask], list[Reply], Ratings]:
            chosen, steps = yield from plan(asked, images, setup)
            rated = yield from gather([_rate(one, chosen[one.name], sample, setup) for one in asked])
            trace = [*steps, *(step for _, own, _ in rated for step in own)]
            findings = [finding for _, _, own in rated for finding in own]
            ratings = {one.name: answer for one, (answer, _, _) in zip(asked, rated, strict=True)}
            return Ratings(ratings, tuple(trace), tuple(findings))

        return program(sample, setup, judging)

    return of_sample


def _rate(
    asked: SubQuestion, chosen: Chosen, sample: Sample, setup: Setup
) -> Generator[list[Ask], list[Reply], tuple[Answered[tuple[float, ...]], tuple[Step, ...], tuple[str, ...]]]:
    """The tool and then the rating of a sub-question: the answer, all steps, and what is to be counted."""
    found, used, note, findings = ToolOutcome(), "", "", [chosen.finding] if chosen.finding else []
    if chosen.tool is not None and chosen.tool.use is not None:
        found = yield from chosen.tool.use(asked.request((asked.name,), chosen.entities, sample, setup))
        if found.failure:
            findings.append(f"tool failed: {chosen.tool.name}")
            found = ToolOutcome(steps=found.steps)
        else:
            used, note = chosen.tool.name, chosen.tool.note
    told = list(found.told.values())
    text = asked.render(setup, form="rating", note=note, found=found.text, tool=used, told=told)
    images = {**asked.images, **found.images}
    message = Message("user", (*images.values(), text))
    chat = Chat((message,), (asked.name, "rating"), setup.enforced(reply_schema(1)))
    ask = ScoreAsk(chat, 1, SCALE, quoted=setup.wording.replies == "free_json")
    [answer] = yield from ask_scores([ask], setup.wording, setup.options.reminders)
    planned = (chosen.step,) if chosen.step else ()
    return answer, (*planned, *found.steps, *answer.steps), (*findings, *answer.findings)
