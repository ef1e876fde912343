"""Distinct schemas of a run: a server compiles each one anew."""

import itertools
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges.viescore_answers import sample
from tests.playing import play
from vieval_plugin.judges import registry
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import (
    Chat,
    Failure,
    Image,
    Likelihood,
    Probabilities,
    SampleId,
    Status,
    Text,
)
from vieval_plugin.prompts import packs

#: Questions whose schemas hold the choices, or a key for each question, that a model wrote about
#: the prompt: these make the model answer with one of the choices, and answer every question.
WRITTEN_BY_MODELS = {
    ("question_answering", "tifa", ""): {"answers"},
    ("t2i_eval", "full", "framework"): {"answers", "evaluation"},
}
RUNS = [
    ("t2i_eval", "full", "framework"),
    ("pairwise", "", "expected"),
] + [
    (spec.name, setting, "")
    for spec in registry.judges().values()
    if spec.is_ours and spec.pack is not None
    for setting in spec.settings or ("",)
    if setting != "1shot"
]


def instance(schema, number, counter):
    """Answer under a schema: longer lists for odd samples, and no two texts alike."""
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    properties = schema.get("properties", {})
    answer = {
        name: instance(part, number, counter) for name, part in properties.items()
    }
    if "choices" in properties:
        return {**answer, "answer": answer["choices"][0]}
    if "parents" in properties:
        return {**answer, "parents": []}
    if properties:
        return answer
    if schema.get("type") == "array":
        wanted = max(schema.get("minItems", 0), 2 + number % 2)
        count = min(wanted, schema.get("maxItems", wanted))
        return [instance(schema["items"], number, counter) for _ in range(count)]
    if schema.get("type") in ("integer", "number"):
        return min(next(counter), schema.get("maximum", 1 << 30))
    return True if schema.get("type") == "boolean" else f"word {next(counter)}"


def reply(ask, number, counter):
    if isinstance(ask, Chat):
        return Text(json.dumps(instance(ask.schema or {}, number, counter)))
    if isinstance(ask, Likelihood):
        shares = (1 / (len(ask.continuations) + 1),) * len(ask.continuations)
        return Probabilities(shares, shares)
    return Failure(Status.TOOL_ERROR, "no tool")


def judged(spec, kind, number):
    images = {
        role: Image(Path(f"{role}_{number}.png"))
        for role in ("source", "output", "subject", "control", "concept_1", "concept_2")
    }
    one = sample(kind)
    texts = {**one.texts, "prompt": f"a red cat and {number} dogs", "subject": "dog"}
    samples = [
        replace(one, id=replace(one.id, image_model=model), images=images, texts=texts)
        for model in "ab"
    ]
    if spec.rates == "sample":
        return samples[0]
    return Contest(SampleId("own", kind, "", str(number)), tuple(samples))


@pytest.mark.parametrize(("name", "setting", "mode"), RUNS)
@pytest.mark.parametrize("kind", ["tig", "tie", "sdie"])
def test_a_question_has_one_schema_in_a_run(name, setting, mode, kind):
    spec = registry.judge(name)
    if not spec.kinds([kind]):
        pytest.skip(f"{name} does not support {kind}")
    options = spec.options(mode=mode) if mode else spec.options()
    pack = packs.load(spec.pack(options, setting))
    judge = spec.build(options, pack, setting)
    schemas = defaultdict(set)
    for number in range(4):
        counter = itertools.count(number + 1)
        played = play(
            judge(judged(spec, kind, number)),
            answer=lambda ask, n=number, counter=counter: reply(ask, n, counter),
        )
        for ask in played.asks:
            if isinstance(ask, Chat):
                question = tuple(part for part in ask.path if not part.isdigit())
                schemas[question].add(json.dumps(ask.schema))
    varying = {"/".join(question) for question, s in schemas.items() if len(s) > 1}
    assert varying == WRITTEN_BY_MODELS.get((name, setting, mode), set())
