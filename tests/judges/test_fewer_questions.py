"""Test judges that ask about some aspects only, or nothing that cannot change O."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests import brightness, in_process
from tests.fake_server import FakeServer, named
from tests.playing import play
from tests.refusals import refuses
from vieval_plugin.cli import read_options, serve
from vieval_plugin.config import Config
from vieval_plugin.judges import registry
from vieval_plugin.judges.protocol import Failure, Image, Sample, SampleId, Status, Text
from vieval_plugin.results import replay
from vieval_plugin.run.prepare import prepare

ROLES = ("output", "source", "mask", "subject", "control", "concepts")
FULL, LAZY, SC = {}, {"lazy": True}, {"aspects": ["SC"]}

# by log: verdicts that have an O only where questions are asked lazily, and the share of calls that
# are not made then, of all samples and by task type
ONLY_LAZY = {"gpt4o_0shot": 2, "gpt4o_1shot": 9, "gpt4v_0shot": 42, "gpt4v_1shot": 847}
ONLY_LAZY |= {"llava_0shot": 4}
KINDS = ("tig", "tie", "mie", "sdig", "sdie", "mcic", "cig")
SAVED = {
    "gpt4o_0shot": (0.11, [0.02, 0.24, 0.14, 0.06, 0.01, 0.07, 0.01]),
    "gpt4v_1shot": (0.21, [0.04, 0.34, 0.31, 0.30, 0.11, 0.21, 0.09]),
}


def judged(folder, options):
    """The verdict on each recorded sample, answered as recorded, with its calls."""
    program = viescore(options).program
    played = {}
    for identity, [(recorded, _)] in replay.load(folder, "viescore").verdicts.items():
        replies = {step.path: recorded_reply(step) for step in recorded.trace}
        answer = lambda ask, replies=replies: replies[ask.path]
        played[identity] = play(program(sample_of(identity)), answer=answer)
    return played


def recorded_reply(step):
    if not step.status.usable:
        return Failure(step.status, step.reason)
    return Text(json.dumps({"score": list(step.scores), "reasoning": step.reason}))


def sample_of(identity):
    texts = {"prompt": "a cat", "instruction": "add a hat", "subject": "dog"}
    return Sample(identity, {role: Image(Path(f"{role}.png")) for role in ROLES}, texts)


@pytest.mark.slow
@pytest.mark.parametrize("log", ONLY_LAZY)
def test_a_lazy_o_of_recorded_replies_is_that_of_the_full_run(shared_data, log):
    folder = shared_data / "viescore_logs" / f"results_{log}"
    full, lazy, sc = (judged(folder, options) for options in (FULL, LAZY, SC))
    only_lazy = []
    for identity, played in full.items():
        scores, asked_lazily = played.verdict.scores, lazy[identity].verdict.scores
        if "O" in scores:
            assert asked_lazily["O"] == scores["O"]
        elif "O" in asked_lazily:
            only_lazy.append(identity)
            assert scores["SC"] == asked_lazily["O"] == 0
        of_sc = {name: value for name, value in scores.items() if name == "SC"}
        assert of_sc == sc[identity].verdict.scores
        assert "PQ" not in asked_lazily
        assert lazy[identity].verdict.status is not Status.NOT_ASKED
    assert len(only_lazy) == ONLY_LAZY[log]
    if log in SAVED:
        check_saved(full, lazy, *SAVED[log])


def check_saved(full, lazy, share, by_kind):
    """Require the share of calls that a lazy run saves of the samples without a missing step."""
    calls, saved = Counter(), Counter()
    for identity, played in full.items():
        statuses = [step.status for step in played.verdict.trace]
        if Status.MISSING not in statuses:
            calls[identity.part] += played.calls
            saved[identity.part] += played.calls - lazy[identity].calls
    assert saved.total() / calls.total() == pytest.approx(share, abs=0.005)
    found = {part: round(saved[part] / calls[part], 2) for part in calls}
    assert found == dict(zip(KINDS, by_kind, strict=True))


def answer(*scores):
    return Text(json.dumps({"score": list(scores), "reasoning": "because"}))


def viescore(options, setting=None):
    return prepare("viescore", setting, Config.model_validate({"judges": options}))


EDIT = sample_of(SampleId("own", "tie", "mine", "1"))


def test_quality_of_a_lazy_run_is_no_score_of_its_judge_as_it_lacks_the_failed_edits():
    prepared = viescore(LAZY)
    assert prepared.spec.aspects == prepared.provenance.aspects == ("SC", "O")
    assert prepared.calls == "1 to 2"


def test_one_aspect_is_one_question():
    prepared = viescore(SC)
    assert prepared.provenance.aspects == ("SC",)
    assert prepared.calls == "1"
    options = Config.model_validate(prepared.provenance.options)
    assert prepare("viescore", None, options).spec.aspects == ("SC",)


def test_one_aspect_of_the_one_shot_setting_needs_that_aspects_examples_alone():
    example = {"images": ["a.png", "b.png"], "scores": [9, 9]}
    examples = {f"SC_{kind}": example for kind in registry.judge("viescore").needs}
    options = {"viescore": {"examples": examples}}
    refuses(r"\(missing: PQ\)", viescore, options, "1shot")
    assert viescore({**options, **SC}, "1shot").calls == "1"


def test_an_aspect_that_no_question_is_about_is_refused_with_those_that_are():
    known = "aspects: unknown aspect 'O'; known aspects: SC, PQ"
    refuses(known, viescore, {"aspects": ["O"]})
    options = Config.model_validate({"judges": SC})
    alone = "t2i_eval does not ask about each aspect separately"
    refuses(alone, prepare, "t2i_eval", None, options)


def test_a_host_reports_one_aspect_as_beside_the_others(shared_data, tmp_path):
    logs = shared_data / "viescore_logs" / "results_gpt4o_0shot"
    task, metrics = "imagenhub_viescore_cig", {}
    for name, options in (("full", FULL), ("sc", SC)):
        out = tmp_path / name
        file = in_process.options_file(tmp_path / f"{name}.yaml", judges=options)
        command = in_process.replay(logs, out, task)
        in_process.run(*command, data=shared_data, options=file)
        metrics[name] = in_process.read(out)[0]["results"][task]
    shared = {name: value for name, value in metrics["sc"].items() if "SC" in name}
    assert shared
    assert shared.items() <= metrics["full"].items()
    assert not any("PQ" in name for name in metrics["sc"])


@pytest.mark.parametrize(
    ("flags", "calls", "mean"), [(["--aspects", "SC"], 12, "SC"), (["--lazy"], 20, "O")]
)
def test_a_ranking_is_by_what_was_asked(store, tmp_path, vieval, flags, calls, mean):
    sc = iter(range(100))
    for name, base in (("a", 0.8), ("b", 0.3)):
        levels = lambda prompt, draw, base=base: base + prompt / 99
        brightness.images(tmp_path, name, levels, 6)
    folders = [tmp_path / "a", tmp_path / "b"]

    def reply(request):
        schema = request["response_format"]["json_schema"]["schema"]
        if "probe" in schema["properties"]:
            return '{"probe": "vieval"}'
        count = schema["properties"]["score"]["minItems"]
        about_sc = "a grey square" in json.dumps(request)
        scores = [next(sc) % 3 * 5] if about_sc else [6] * count
        return json.dumps({"score": scores, "reasoning": "because"})

    with FakeServer(reply=reply) as server:
        prompts = ["--prompts", brightness.prompts(tmp_path, 6)]
        ranking = vieval("rank", *folders, *prompts, *named(server), *flags).out
        # it is asked first whether it enforces schemas
        assert server.stats()["requests"] == calls + 1
    assert f"Mean {mean} of a: " in ranking
    assert "PQ" not in ranking


def test_a_reward_of_one_aspect_is_served_by_one_question():
    flags = ["--reward", "r=viescore:SC", "--aspects", "SC", "--model", "NAME"]
    command = ["serve", *flags, "--base-url", "http://127.0.0.1:9/v1"]
    _, options = read_options(command)
    [reward] = serve._server_setup(options).rewards
    assert {term.judge.calls for term in reward.terms} == {"1"}
