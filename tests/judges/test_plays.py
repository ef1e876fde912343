"""What judges ask and conclude, played from one table with the replies of each case."""

import json
from dataclasses import replace

import pytest
import yaml

from tests.asked_contests import contest
from tests.judge_files import LEGIBILITY
from tests.judges.viescore_answers import sample
from tests.playing import play, text_of
from tests.tables import table
from vieval_plugin import Image, Status
from vieval_plugin.config import Config
from vieval_plugin.judges.protocol import Failure, Measurement, Probabilities, Text
from vieval_plugin.run.prepare import prepare


def reply(written, ask):
    """A reply as a table writes it: a text, an object, a failure, or the probability of each
    continuation (`*`: of all), known or between two numbers.
    """
    if isinstance(written, str):
        return Text(written)
    if "json" in written:
        return Text(json.dumps(written["json"]))
    if "failure" in written:
        return Failure(Status(written["failure"]), written["reason"])
    if "measured" in written:
        return Measurement(written["measured"])
    assert written.keys() <= {*ask.continuations, "*"}
    known = [written.get(text, written.get("*", 0.0)) for text in ask.continuations]
    pairs = [one if isinstance(one, list) else (one, one) for one in known]
    low, high = zip(*pairs, strict=True)
    return Probabilities(low, high)


def rounded(value):
    """A value as JSON has it, without differences of the last digits."""
    return json.loads(
        json.dumps(value), parse_float=lambda number: round(float(number), 9)
    )


def judged(case):
    """What a judge is asked about."""
    if case["kind"] == "contest":
        return contest(case.get("number", 2))
    found = sample(case["kind"])
    frames = {f"frame_{n}": Image(f"{n}".encode()) for n in case.get("frames", ())}
    return replace(found, images={**found.images, **frames})


@pytest.mark.parametrize(*table("judge_plays.jsonl"))
def test_a_case_is_judged_as_written(tmp_path, case):
    file = tmp_path / "judge.yaml"
    document = {**yaml.safe_load(LEGIBILITY), **case.get("file", {})}
    document = {key: value for key, value in document.items() if value is not None}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    name = case.get("judge", str(file))
    judges = case.get("judges", {})
    judges |= {name: case["options"]} if "options" in case else {}
    config = Config.model_validate({"judges": judges})
    judge = prepare(name, case.get("setting"), config)
    replies = list(case["replies"])
    program = judge.program(judged(case))
    game = play(program, answer=lambda ask: reply(replies.pop(0), ask))
    assert replies == []
    assert game.labels == case.get("labels", game.labels)
    if "again" in case:
        assert case["again"] in text_of(game.asks[-1])
    for field, value in case.get("asked", {}).items():
        assert rounded(getattr(game.asks[0], field)) == value
    verdict = game.verdict
    steps = [[step.path[0], step.status] for step in verdict.trace]
    found = {"steps": steps, **vars(verdict.choice or verdict), **vars(verdict)}
    found["reason"] = verdict.reason
    for field, value in case["verdict"].items():
        assert rounded(found[field]) == rounded(value), field
