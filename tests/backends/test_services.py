"""Behaviours of services, gateways and servers as people report them: `service_behaviours.jsonl`
has the sources.
"""

import json
import re

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.brightness import by_brightness, images, prompts
from tests.fake_server import FakeServer, named
from tests.one_server import wait_shortly
from tests.serve.clients import rows_of
from tests.serve.serving import serving
from tests.service_server import BEHAVIOURS, ServiceServer, loose_nodes

SAMPLES = 3
GATED = 40
PROBES = 5  # of schemas, and what a run may ask further at its start


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    wait_shortly(monkeypatch)


def few(samples_file, generated=False):
    """The first samples of a file of edits; with `generated`, as images that were made from a
    prompt.
    """
    rows = [
        json.loads(line) for line in samples_file.read_text().splitlines()[:SAMPLES]
    ]
    for row in rows if generated else []:
        texts, images = (
            {"prompt": row["texts"]["instruction"]},
            {"output": row["images"]["output"]},
        )
        row |= {"kind": "tig", "texts": texts, "images": images}
    samples_file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return samples_file


def check(behaviour, expected, judge, server, scored):
    """Hold a run to a row of the table: statuses, sentences and the number of requests."""
    code, rows, out, err = scored
    questions = SAMPLES * (2 if judge == "viescore" else 1)
    printed = out + err + json.dumps(rows)
    assert expected.get("says", "") in printed
    assert "lacks" not in expected or expected["lacks"] not in printed
    if stem := expected.get("ends"):
        assert code == 1
        assert stem in err
        assert not rows
        assert len(server.asked) <= PROBES
        return
    assert {row["status"] for row in rows} == {expected["status"]}
    assert len(rows) == SAMPLES
    assert len(server.asked) <= questions + PROBES + expected.get("extra", 0) * (
        1 + PROBES
    )
    reasons = {
        answer["reason"]
        for row in rows
        for answer in row["trace"]
        if "reason" in answer
    }
    assert len(reasons) == expected.get("reasons", len(reasons)), reasons
    if expected["status"] != "ok":
        assert all(
            row["scores"].keys() <= set(expected.get("partial", ())) for row in rows
        )
    if behaviour.get("schemas") and judge == "viescore":
        assert sum("response_format" in body for body in server.asked) >= questions


@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)
def test_a_behaviour_ends_in_its_own_status(behaviour, score, samples_file):
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(few(samples_file), "--patience", "5", *named(server))
    check(behaviour, behaviour["expect"], "viescore", server, scored)
    assert not [body for body in server.asked if loose_nodes(body)]


@pytest.mark.extras
@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)
def test_the_same_behaviour_with_log_probabilities(behaviour, score, samples_file):
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(
            few(samples_file, generated=True),
            "--judge",
            "vqascore",
            "--patience",
            "5",
            *named(server),
        )
    check(
        behaviour,
        behaviour.get("likelihood", behaviour["expect"]),
        "vqascore",
        server,
        scored,
    )


EXPECTED = """
name: shown
kinds: [tie]
replies: expected
scale: [0, 1]
answers: {"Yes": 1, "No": 0}
questions: {SC: {text: "Does it show this: {{ instruction }}? Reply with Yes or No."}}
"""


@pytest.mark.extras
@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)
def test_the_same_behaviour_with_a_judge_in_a_file(
    behaviour, score, samples_file, tmp_path
):
    file = tmp_path / "shown.yaml"
    file.write_text(EXPECTED)
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(
            few(samples_file), "--judge", file, "--patience", "5", *named(server)
        )
    check(
        behaviour,
        behaviour.get("likelihood", behaviour["expect"]),
        "shown",
        server,
        scored,
    )


@pytest.mark.extras
@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)
def test_doctor_says_the_same_of_a_behaviour(behaviour, vieval):
    rules = [rule for rule in behaviour["rules"] if "times" not in rule]
    stem = behaviour["expect"].get("ends", "")
    with ServiceServer(rules) as server:
        out = vieval(
            "doctor", "--base-url", server.base_url, "--model", "fake", code=None
        ).out
    assert ("PROBLEM" in out and stem in out) if stem else "fake at" in out
    assert not re.search(r"[a-z]Error\b", out)


@pytest.mark.extras
@pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)
def test_the_reward_server_ends_in_the_same_status(behaviour, samples_file):
    expected, rows = behaviour["expect"], list(rows_of(few(samples_file)))
    flags = ["--reward", "r=viescore", "--patience", "5"]
    with (
        ServiceServer(behaviour["rules"]) as server,
        serving(*flags, *named(server)) as running,
    ):
        status, answer = running.post("/r/v1/judge", {"samples": rows})
    values = (
        [one["value"] for one in answer["verdicts"]]
        if status == 200
        else [None] * SAMPLES
    )
    assert all(
        (value is not None) == (expected.get("status") == "ok") for value in values
    )


@pytest.mark.parametrize(
    ("variable", "ours", "hint"),
    [
        ("AZURE_OPENAI_API_KEY", "", True),
        ("OPENROUTER_API_KEY", "", True),
        ("AZURE_OPENAI_API_KEY", "sk-wrong", False),
        ("WANDB_API_KEY", "", False),
    ],
)
def test_a_key_in_another_variable_is_hinted_at_where_none_was_sent(
    variable, ours, hint, vieval, score, samples_file, monkeypatch
):
    monkeypatch.setenv(variable, "sk-elsewhere-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", ours)
    with FakeServer(api_key="sk-right") as server:
        said = score(few(samples_file), *named(server))[3]
        listed = vieval("doctor", "--base-url", server.base_url, code=1).err
    for text in (said, listed):
        assert "set OPENAI_API_KEY, or the variable" in text
        assert (f"{variable} is set" in text) == hint
        assert "sk-elsewhere" not in text


def test_doctor_reads_the_options_file_that_score_reads(vieval, tmp_path):
    file = tmp_path / "options.yaml"
    with ServiceServer([]) as server:
        file.write_text(
            f"backbones: {{judge: {{model: fake, base_url: '{server.base_url}', temperature: "
            f"0.25}}}}"
        )
        out = vieval("doctor", "--config", file).out
    assert f"options: {file} (--config)" in out
    assert f"fake at {server.base_url}: answers" in out
    assert {body["temperature"] for body in server.asked} == {0.25}


BLOCKED = [behaviour for behaviour in BEHAVIOURS if behaviour.get("blocked")]


def test_blocked_images_give_one_decision_in_whichever_form(
    tmp_path, vieval, monkeypatch
):
    """A gate whose new build has five of forty images blocked, once in each form."""
    monkeypatch.chdir(tmp_path)
    prompts(tmp_path, GATED)
    level = lambda prompt, draw: 0.35 + prompt % 7 / 20
    with ServiceServer([], reply=by_brightness()) as server:
        last = images(tmp_path, "last", level, GATED)
        vieval(
            "score",
            last,
            "--prompts",
            "prompts.csv",
            "--out",
            "last.jsonl",
            *named(server),
        )
    images(tmp_path, "new", level, GATED)
    outcomes = set()
    for behaviour in BLOCKED:
        [rule] = behaviour["rules"]
        blocked = {**rule, "if": {**rule["if"], "words": "grey square 3"}}
        with ServiceServer([blocked], reply=by_brightness()) as server:
            command = [
                "rank",
                "new",
                "--prompts",
                "prompts.csv",
                "--against",
                "last.jsonl",
                "--margin",
                "0.1",
            ]
            result = vieval(*command, "--fresh", *named(server), code=None)
        outcomes.add(result.out.splitlines()[0])
    assert len(outcomes) == 1, outcomes
