"""Test behaviours of services as reported; `service_behaviours.jsonl` has the sources."""

import json
import re

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.fake_server import FakeServer, named
from tests.serve.clients import rows_of
from tests.serve.serving import serving
from tests.service_server import BEHAVIOURS, ServiceServer, loose_nodes

SAMPLES = 3
PROBES = 5  # of schemas, and what a run may ask further at its start


pytestmark = pytest.mark.usefixtures("short_waits")


def few(samples_file, generated=False):
    """The first samples of a file of edits; with `generated`, as images made from a prompt."""
    lines = samples_file.read_text().splitlines()[:SAMPLES]
    rows = [json.loads(line) for line in lines]
    for row in rows if generated else []:
        texts = {"prompt": row["texts"]["instruction"]}
        row |= {"kind": "tig", "texts": texts}
        row["images"] = {"output": row["images"]["output"]}
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
    assert [row["status"] for row in rows] == [expected["status"]] * SAMPLES
    extra = expected.get("extra", 0) * (1 + PROBES)
    assert len(server.asked) <= questions + PROBES + extra
    answers = [answer for row in rows for answer in row["trace"]]
    reasons = {answer["reason"] for answer in answers if "reason" in answer}
    assert len(reasons) == expected.get("reasons", len(reasons)), reasons
    if expected["status"] != "ok":
        partial = set(expected.get("partial", ()))
        assert all(row["scores"].keys() <= partial for row in rows)
    if behaviour.get("schemas") and judge == "viescore":
        assert sum("response_format" in body for body in server.asked) >= questions


behaviours = pytest.mark.parametrize(
    "behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"]
)


@behaviours
def test_a_behaviour_ends_in_its_own_status(behaviour, score, samples_file):
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(few(samples_file), "--patience", "5", *named(server))
    check(behaviour, behaviour["expect"], "viescore", server, scored)
    assert not [body for body in server.asked if loose_nodes(body)]


@pytest.mark.extras
@behaviours
@pytest.mark.parametrize("judge", ["vqascore", "shown"])
def test_log_probabilities_end_alike(behaviour, judge, score, samples_file, tmp_path):
    file = tmp_path / "shown.yaml"
    file.write_text(EXPECTED)
    samples = few(samples_file, generated=judge == "vqascore")
    flags = ("--judge", file if judge == "shown" else judge, "--patience", "5")
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(samples, *flags, *named(server))
    expected = behaviour.get("likelihood", behaviour["expect"])
    check(behaviour, expected, judge, server, scored)


EXPECTED = """
name: shown
kinds: [tie]
replies: expected
scale: [0, 1]
answers: {"Yes": 1, "No": 0}
questions: {SC: {text: "Does it show this: {{ instruction }}? Reply with Yes or No."}}
"""


@pytest.mark.extras
@behaviours
def test_doctor_says_the_same_of_a_behaviour(behaviour, vieval):
    rules = [rule for rule in behaviour["rules"] if "times" not in rule]
    stem = behaviour["expect"].get("ends", "")
    with ServiceServer(rules) as server:
        out = vieval("doctor", *named(server), code=None).out
    assert ("PROBLEM" in out and stem in out) if stem else "fake at" in out
    assert not re.search(r"[a-z]Error\b", out)


@pytest.mark.extras
@behaviours
def test_the_reward_server_ends_in_the_same_status(behaviour, samples_file):
    rows = list(rows_of(few(samples_file)))
    flags = ["--reward", "r=viescore", "--patience", "5"]
    with (
        ServiceServer(behaviour["rules"]) as server,
        serving(*flags, *named(server)) as running,
    ):
        status, answer = running.post("/r/v1/judge", {"samples": rows})
    verdicts = answer["verdicts"] if status == 200 else [{"value": None}]
    is_ok = behaviour["expect"].get("status") == "ok"
    assert all((verdict["value"] is not None) == is_ok for verdict in verdicts)


AZURE = "AZURE_OPENAI_API_KEY"
HINTS = [(AZURE, "", True), ("OPENROUTER_API_KEY", "", True)]
HINTS += [(AZURE, "sk-wrong", False), ("WANDB_API_KEY", "", False)]


@pytest.mark.parametrize(("variable", "ours", "hint"), HINTS)
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
        judge = {"model": "fake", "base_url": server.base_url, "temperature": 0.25}
        file.write_text(json.dumps({"backbones": {"judge": judge}}))
        out = vieval("doctor", "--config", file).out
    assert f"options: {file} (--config)" in out
    assert f"fake at {server.base_url}: answers" in out
    assert {body["temperature"] for body in server.asked} == {0.25}
