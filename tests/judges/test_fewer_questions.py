"""A judge that asks less: about some aspects only, or nothing that cannot change O. Replies are
the VIEScore authors' logs.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests import in_process
from tests.fake_server import FakeServer, named
from tests.pictures import plain
from tests.playing import play
from vieval_plugin.cli import main, read_options, serve
from vieval_plugin.config import Config
from vieval_plugin.judges import registry
from vieval_plugin.judges.protocol import Failure, Image, Sample, SampleId, Status, Text
from vieval_plugin.results import replay
from vieval_plugin.run.prepare import prepare
from vieval_plugin.text.errors import VievalError

ROLES = ("output", "source", "mask", "subject", "control", "concepts")
FULL, LAZY, SC = {}, {"lazy": True}, {"aspects": ["SC"]}

# by log: verdicts that have an O only where questions are asked lazily, and the share of calls that
# are not made then, of all samples and by task type
ONLY_LAZY = {
    "gpt4o_0shot": 2,
    "gpt4o_1shot": 9,
    "gpt4v_0shot": 42,
    "gpt4v_1shot": 847,
    "llava_0shot": 4,
}
SAVED = {
    "gpt4o_0shot": (
        0.11,
        {
            "tig": 0.02,
            "tie": 0.24,
            "mie": 0.14,
            "sdig": 0.06,
            "sdie": 0.01,
            "mcic": 0.07,
            "cig": 0.01,
        },
    ),
    "gpt4v_1shot": (
        0.21,
        {
            "tig": 0.04,
            "tie": 0.34,
            "mie": 0.31,
            "sdig": 0.30,
            "sdie": 0.11,
            "mcic": 0.21,
            "cig": 0.09,
        },
    ),
}


def judged(folder, options):
    """The verdict on each recorded sample with the calls that it took: the judge is answered
    what is recorded.
    """
    program = prepare(
        "viescore", None, Config.model_validate({"judges": options})
    ).program
    played = {}
    for identity, [(recorded, _)] in replay.load(folder, "viescore").verdicts.items():
        replies = {step.path: recorded_reply(step) for step in recorded.trace}
        played[identity] = play(
            program(sample_of(identity)),
            answer=lambda ask, replies=replies: replies[ask.path],
        )
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
def test_of_recorded_replies_a_lazy_o_is_that_of_the_full_run_wherever_it_has_one(
    shared_data, log
):
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
        assert {name: value for name, value in scores.items() if name == "SC"} == sc[
            identity
        ].verdict.scores
        assert "PQ" not in asked_lazily
        assert lazy[identity].verdict.status is not Status.NOT_ASKED
    assert len(only_lazy) == ONLY_LAZY[log]
    if log in SAVED:
        share, by_part = SAVED[log]
        whole = [
            identity
            for identity in full
            if not any(map(is_missing, full[identity].verdict.trace))
        ]
        calls, saved = Counter(), Counter()
        for identity in whole:
            calls[identity.part] += full[identity].calls
            saved[identity.part] += full[identity].calls - lazy[identity].calls
        assert saved.total() / calls.total() == pytest.approx(share, abs=0.005)
        assert {part: round(saved[part] / calls[part], 2) for part in calls} == by_part


def is_missing(step):
    return step.status is Status.MISSING


def answer(*scores):
    return Text(json.dumps({"score": list(scores), "reasoning": "because"}))


def viescore(options, setting=None):
    return prepare("viescore", setting, Config.model_validate({"judges": options}))


EDIT = sample_of(SampleId("own", "tie", "mine", "1"))


def test_a_lazy_judge_asks_about_quality_only_where_overall_depends_on_it():
    program = viescore(LAZY).program
    decided = play(program(EDIT), [answer(0, 9)])
    assert decided.labels == [["SC"]]
    assert (decided.verdict.scores, decided.verdict.status) == (
        {"SC": 0.0, "O": 0.0},
        Status.OK,
    )
    assert [(step.path, step.status) for step in decided.verdict.trace[1:]] == [
        (("PQ",), Status.NOT_ASKED)
    ]
    asked = play(program(EDIT), [answer(4, 9)], [answer(9, 9)])
    assert asked.labels == [["SC"], ["PQ"]]
    full = play(viescore(FULL).program(EDIT), [answer(4, 9), answer(9, 9)]).verdict
    assert asked.verdict == replace(
        full, scores={name: full.scores[name] for name in ("SC", "O")}
    )
    failed = play(program(EDIT), [Failure(Status.API_ERROR, "cut")])
    assert (failed.verdict.scores, failed.verdict.status) == ({}, Status.API_ERROR)


def test_quality_of_a_lazy_run_is_no_score_of_its_judge_as_it_lacks_the_failed_edits():
    prepared = viescore(LAZY)
    assert prepared.spec.aspects == prepared.provenance.aspects == ("SC", "O")
    assert prepared.calls == "1 to 2"


def test_one_aspect_is_one_question():
    prepared = viescore(SC)
    played = play(prepared.program(EDIT), [answer(4, 9)])
    assert played.verdict.scores == {"SC": 0.4}
    assert prepared.provenance.aspects == ("SC",)
    assert prepared.calls == "1"
    again = prepare(
        "viescore", None, Config.model_validate(prepared.provenance.options)
    )
    assert again.spec.aspects == ("SC",)


def test_one_aspect_of_the_one_shot_setting_needs_that_aspects_examples_alone():
    example = {"images": ["a.png", "b.png"], "scores": [9, 9]}
    examples = {f"SC_{kind}": example for kind in registry.judge("viescore").needs}
    options = {"viescore": {"examples": examples}}
    with pytest.raises(VievalError, match=r"\(missing: PQ\)"):
        viescore(options, "1shot")
    assert viescore({**options, **SC}, "1shot").calls == "1"


def test_an_aspect_that_no_question_is_about_is_refused_with_those_that_are():
    with pytest.raises(
        VievalError, match="aspects: unknown aspect 'O'; known aspects: SC, PQ"
    ):
        viescore({"aspects": ["O"]})
    with pytest.raises(
        VievalError, match="t2i_eval does not ask about each aspect separately"
    ):
        prepare("t2i_eval", None, Config.model_validate({"judges": SC}))


@pytest.mark.parametrize(
    ("combined", "lazily"),
    [("min", 1), ("product", 1), ("geometric_mean", 1), ("mean", 2)],
)
def test_a_judge_in_a_file_is_lazy_where_a_zero_decides(tmp_path, combined, lazily):
    path = tmp_path / "mine.yaml"
    form = 'Answer as JSON: {"score": [n], "reasoning": "..."}'
    questions = {
        aspect: {"text": form, "images": ["output"], "scores": ["a"]}
        for aspect in ("SC", "PQ")
    }
    judge = {
        "name": "lazily",
        "kinds": ["tig"],
        "questions": questions,
        "scale": [0, 10],
        "combine": {"O": combined},
    }
    path.write_text(json.dumps(judge))
    prepared = prepare(str(path), None, Config.model_validate({"judges": LAZY}))
    image = Sample(
        SampleId("own", "tig", "mine", "1"),
        {"output": Image(Path("x.png"))},
        {"prompt": "a cat"},
    )
    played = play(
        prepared.program(image),
        answer=lambda ask: answer(0) if ask.path == ("SC",) else answer(6),
    )
    assert played.calls == lazily
    assert played.verdict.scores["O"] == (0.0 if lazily == 1 else 0.3)


def test_a_host_reports_one_aspect_of_a_recording_as_it_reports_it_beside_the_others(
    shared_data, tmp_path
):
    logs = shared_data / "viescore_logs" / "results_gpt4o_0shot"
    task, metrics = "imagenhub_viescore_cig", {}
    for name, options in (("full", FULL), ("sc", SC)):
        out = tmp_path / name
        file = in_process.options_file(tmp_path / f"{name}.yaml", judges=options)
        in_process.run(
            *in_process.replay(logs, out, task), data=shared_data, options=file
        )
        metrics[name] = in_process.read(out)[0]["results"][task]
    shared = {name: value for name, value in metrics["sc"].items() if "SC" in name}
    assert shared
    assert shared.items() <= metrics["full"].items()
    assert not any("PQ" in name for name in metrics["sc"])


@pytest.mark.parametrize(
    ("flags", "calls", "ranked_by"),
    [(["--aspects", "SC"], 12, "SC"), (["--lazy"], 20, "O")],
)
def test_generators_are_ranked_by_what_was_asked_and_never_by_a_lazy_runs_quality(
    store, tmp_path, capsys, flags, calls, ranked_by
):
    for generator in ("a", "b"):
        (tmp_path / generator).mkdir()
        for number in range(6):
            colour = (40 * number, 90, 200 if generator == "a" else 7)
            (tmp_path / generator / f"{number}.png").write_bytes(
                plain(colour, (32, 32))
            )
    (tmp_path / "prompts.txt").write_text(
        "".join(f"a thing {number}\n" for number in range(6))
    )
    sc = iter(range(100))

    def reply(request):
        schema = request["response_format"]["json_schema"]["schema"]
        if "probe" in schema["properties"]:
            return '{"probe": "vieval"}'
        about_sc = "a thing" in json.dumps(request)
        scores = (
            [next(sc) % 3 * 5]
            if about_sc
            else [6] * schema["properties"]["score"]["minItems"]
        )
        return json.dumps({"score": scores, "reasoning": "because"})

    with FakeServer(reply=reply) as server:
        folders = [str(tmp_path / generator) for generator in ("a", "b")]
        assert (
            main(
                [
                    "rank",
                    *folders,
                    "--prompts",
                    str(tmp_path / "prompts.txt"),
                    *named(server),
                    *flags,
                ]
            )
            == 0
        )
        assert (
            server.stats()["requests"] == calls + 1
        )  # it is asked first whether it enforces schemas
    ranking = capsys.readouterr().out
    assert f"Mean {'score' if ranked_by == 'O' else ranked_by} of a: " in ranking
    assert "PQ" not in ranking


def test_a_reward_of_one_aspect_is_served_by_one_question():
    server = ["--model", "NAME", "--base-url", "http://127.0.0.1:9/v1"]
    _, options = read_options(
        ["serve", "--reward", "r=viescore:SC", "--aspects", "SC", *server]
    )
    [reward] = serve._server_setup(options).rewards
    assert {term.judge.calls for term in reward.terms} == {"1"}
