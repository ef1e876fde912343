"""What every judge does, whatever it asks."""

import itertools
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judges.viescore_answers import sample
from tests.playing import play, prepared
from vieval_plugin import Image, SampleId, Status
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.judges import protocol, registry, tools
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.stages import MISSING, REFUSED, REPEATED, UNREADABLE
from vieval_plugin.judges.t2i_eval.asker import UNANSWERED
from vieval_plugin.results.lookup import conversation
from vieval_plugin.run.router import recorded_reply
from vieval_plugin.serve.health import probe

#: Questions whose schemas hold the choices, or a key for each question, that a model wrote about
#: the prompt: these make the model answer with one of the choices, and answer every question.
WRITTEN_BY_MODELS = {
    ("question_answering", "tifa", None): {"answers"},
    ("t2i_eval", "full", "framework"): {"answers", "evaluation"},
}
#: Judges whose wording is not shipped.
UNWORDED = ("edit_reward", "hpsv3")
#: Judge, setting and mode.
CASES = [
    ("adiee", None, "expected"),
    ("pairwise", None, "expected"),
    ("t2i_eval", "full", "framework"),
]
CASES += [
    (spec.name, setting, None)
    for spec in registry.judges().values()
    for setting in spec.settings or (None,)
    if spec.is_ours and spec.name not in UNWORDED and setting != "1shot"
]
WORDED = [case for case in CASES if registry.judge(case[0]).pack is not None]
cases = pytest.mark.parametrize(("name", "setting", "mode"), CASES)
SCENE = '{"include": [{"class": "dog"}]}'


def instance(schema, number, counter):
    """Answer under a schema: longer lists for odd samples, and no two texts alike."""
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    properties = schema.get("properties", {})
    parts = properties.items()
    answer = {name: instance(part, number, counter) for name, part in parts}
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
    match ask:
        case protocol.Chat():
            return protocol.Text(
                json.dumps(instance(ask.schema or {}, number, counter))
            )
        case protocol.Likelihood():
            shares = (1 / (len(ask.continuations) + 1),) * len(ask.continuations)
            return protocol.Probabilities(shares, shares)
        case protocol.Measure():
            return protocol.Measurement(0.5)
        case protocol.UseTool(tool="ocr" | "objects"):
            return protocol.ToolResult()
    return protocol.Failure(Status.TOOL_ERROR, "no tool")


def answering(number=0):
    counter = itertools.count(number + 1)
    return lambda ask: reply(ask, number, counter)


def made(name, setting, mode):
    return prepared(name, setting, **({"mode": mode} if mode else {}))


def shown(judge):
    """A sample, or a contest, that a judge can be asked about."""
    found = probe(judge, "")
    scene = {"objects": SCENE} if judge.spec.name == "objects" else {}
    return replace(found, texts={**found.texts, **scene}) if scene else found


@cases
def test_a_failed_call_is_its_status_and_no_score(name, setting, mode):
    judge = made(name, setting, mode)
    gone = protocol.Failure(Status.API_ERROR, "gone")
    verdict = play(judge.program(shown(judge)), answer=lambda ask: gone).verdict
    assert (verdict.status, verdict.scores) == (Status.API_ERROR, {})
    assert verdict.reason == "gone"
    assert not (verdict.choice and verdict.choice.votes)


@cases
def test_what_a_sample_lacks_is_named_and_nothing_is_asked(name, setting, mode):
    judge = made(name, setting, mode)
    whole = shown(judge)
    if judge.spec.rates == "contest":
        whole = whole.candidates[0]
    for role in whole.images:
        images = whole.images.items()
        others = {other: image for other, image in images if other != role}
        lacking = replace(whole, images=others)
        played = play(judge.program(lacking), answer=answering())
        if played.asks:  # another image serves
            continue
        assert played.verdict.scores == {}
        assert role in played.verdict.reason or judge.spec.rates == "contest"
        status = Status.NO_IMAGE if role == "output" else Status.NOT_APPLICABLE
        assert played.verdict.status is status or judge.spec.rates == "contest"


@cases
def test_every_call_has_a_step_and_a_verdict_leads_back_to_it(name, setting, mode):
    judge = made(name, setting, mode)
    judged = shown(judge)
    played = play(judge.program(judged), answer=answering())
    asked = {ask.path for ask in played.asks}
    assert asked <= {step.path for step in played.verdict.trace}
    if all(isinstance(ask, protocol.Chat | protocol.Likelihood) for ask in played.asks):
        exchanges = conversation(judge.program, judged, played.verdict)
        assert len(exchanges) == len(played.asks)
        assert all(exchange.ask in played.asks for exchange in exchanges)
        steps = defaultdict(list)
        for step in played.verdict.trace:
            steps[step.path].append(step)
        answer = lambda ask: recorded_reply(ask, steps[ask.path].pop(0))
        again = play(judge.program(judged), answer=answer)
        assert again.verdict.scores == played.verdict.scores


ROLES = ("source", "output", "subject", "control", "concept_1", "concept_2")


def numbered(spec, kind, number):
    """A sample of a kind, or a contest, with images and texts of its number."""
    images = {role: Image(Path(f"{role}_{number}.png")) for role in ROLES}
    one = sample(kind)
    texts = {**one.texts, "prompt": f"a red cat and {number} dogs", "subject": "dog"}
    one = replace(one, images=images, texts=texts)
    names = (replace(one.id, image_model=model) for model in "ab")
    samples = [replace(one, id=name) for name in names]
    if spec.rates == "sample":
        return samples[0]
    return Contest(SampleId("own", kind, "", str(number)), tuple(samples))


@pytest.mark.parametrize(("name", "setting", "mode"), WORDED)
@pytest.mark.parametrize("kind", ["tig", "tie", "sdie"])
def test_a_question_has_one_schema_in_a_run(name, setting, mode, kind):
    """A server compiles each one anew."""
    spec = registry.judge(name)
    if not spec.kinds([kind]):
        pytest.skip(f"{name} does not support {kind}")
    judge = made(name, setting, mode).judge
    schemas = defaultdict(set)
    for number in range(4):
        played = play(judge(numbered(spec, kind, number)), answer=answering(number))
        for ask in played.asks:
            if isinstance(ask, protocol.Chat):
                question = tuple(part for part in ask.path if not part.isdigit())
                schemas[question].add(json.dumps(ask.schema))
    varying = {"/".join(question) for question, s in schemas.items() if len(s) > 1}
    assert varying == WRITTEN_BY_MODELS.get((name, setting, mode), set())


SAID = "Spoken by a server: \x1b[31m# it"
RULES = (
    "entity without existence",
    "entity without quantity",
    "position as an attribute",
    "attributes and questions differ in number",
    "entity without an appearance question",
    "relation with an unknown entity",
    "relations and questions differ in number",
)
T2I_EVAL = {UNANSWERED, UNREADABLE, REFUSED, MISSING, REPEATED}
T2I_EVAL |= {f"structure: {rule}" for rule in RULES}
PLANS = ("unreadable", "no entry", "no tool", "tool not offered")
CIGEVAL = {f"plan: {slip}" for slip in (*PLANS, "unknown tool", "forbidden tool")}
CIGEVAL |= {"action: forbidden tool", "action: unknown tool"}
USES = itertools.product(("plan", "action", "tool failed"), tools.registry())
CIGEVAL |= {f"{what}: {tool}" for what, tool in USES}

ATTRIBUTE = {"name": SAID, "value": SAID, "question": SAID}
STRUCTURE = {"entities": [{"name": SAID, "attributes": [ATTRIBUTE]}]}
UNKNOWN_TOOL = {"tool": SAID, "plan": [{"task_id": 1, "tool": SAID}], "score": 7}
REPLIES = {
    "refused by the server": protocol.Failure(Status.REFUSAL, SAID),
    "prose": protocol.Text(SAID),
    "refused in words": protocol.Text(f"I'm sorry, I can't assist with that. {SAID}"),
    "an unknown tool": protocol.Text(json.dumps(UNKNOWN_TOOL)),
    "a structure of its own": protocol.Text(json.dumps(STRUCTURE)),
}


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
@pytest.mark.parametrize(
    ("judge", "setting", "words"),
    [
        ("t2i_eval", "full", T2I_EVAL),
        ("cigeval", "paper", CIGEVAL),
        ("cigeval", "react", CIGEVAL),
    ],
)
def test_findings_are_of_a_fixed_list(judge, setting, words, reply):
    program = made(judge, setting, None).judge
    for one in vieval_demo.load(None, "tig")[:2]:
        verdict = play(program(one), answer=lambda ask: reply).verdict
        assert set(verdict.findings) <= words
