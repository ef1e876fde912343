"""Behaviours of services, gateways and servers as people report them: `service_behaviours.jsonl` has the sources."""

import json

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests.fake_server import named
from tests.one_server import wait_shortly
from tests.service_server import BEHAVIOURS, ServiceServer, loose_nodes

SAMPLES = 3
PROBES = 5  # of schemas, and what a run may ask further at its start
JUDGES = {"viescore": "expect", "vqascore": "likelihood"}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    wait_shortly(monkeypatch)


def few(samples_file):
    rows = samples_file.read_text().splitlines()[:SAMPLES]
    samples_file.write_text("\n".join(rows) + "\n")
    return samples_file


def check(behaviour, expected, judge, server, scored):
    """Hold a run to a row of the table: statuses, sentences and the number of requests."""
    code, rows, out, err = scored
    questions = SAMPLES * (2 if judge == "viescore" else 1)
    printed = out + err + json.dumps(rows)
    assert expected.get("says", "") in printed
    if stem := expected.get("ends"):
        assert code == 1
        assert stem in err
        assert not rows
        assert len(server.asked) <= PROBES
        return
    assert {row["status"] for row in rows} == {expected["status"]}
    assert len(rows) == SAMPLES
    assert len(server.asked) <= questions + PROBES + expected.get("extra", 0) * (1 + PROBES)
    if expected["status"] != "ok":
        assert all(not row["scores"] for row in rows)
    if behaviour.get("schemas") and judge == "viescore":
        assert sum("response_format" in body for body in server.asked) >= questions


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"])
def test_a_behaviour_ends_in_its_own_status(behaviour, score, samples_file):
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(few(samples_file), "--patience", "5", *named(server))
    check(behaviour, behaviour["expect"], "viescore", server, scored)
    assert not [body for body in server.asked if loose_nodes(body)]


@pytest.mark.extras
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour["name"])
def test_the_same_behaviour_with_log_probabilities(behaviour, score, samples_file):
    with ServiceServer(behaviour["rules"]) as server:
        scored = score(few(samples_file), "--judge", "vqascore", "--patience", "5", *named(server))
    check(behaviour, behaviour.get("likelihood", behaviour["expect"]), "vqascore", server, scored)
