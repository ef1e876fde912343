"""Test groups over HTTP: shares of wins, failures, ties and repeats."""

import pytest

from tests.fake_server import FakeServer
from tests.pictures import plain
from tests.serve.clients import FlowFactory, UniRL, encoded
from tests.serve.serving import judged_by, row

COLOURS = ("red", "green", "blue", "white")
IMAGES = [plain(colour) for colour in COLOURS]
PROMPTS = ["a cube"] * 4
TORN = [*IMAGES[:3], b"torn"]
NEUTRAL = ("--on-failure", "neutral", "--max-imputed", "0.25")


def test_shares_of_wins_of_a_group(server):
    with judged_by(server, reward="r=pairwise") as running:
        group = FlowFactory(f"{running.url}/group")
        shares = group.rewards(PROMPTS, IMAGES)
        rows = [row(image, "a cube", kind="tig", group="g") for image in IMAGES]
        _, answer = running.post("/v1/judge", {"samples": rows})
        with pytest.raises(RuntimeError, match="compares samples in a group"):
            FlowFactory(running.url).rewards(PROMPTS, IMAGES)
        with pytest.raises(RuntimeError, match="have at least 2 samples to compare"):
            group.rewards(PROMPTS[:1], IMAGES[:1])
        asked = server.stats()["requests"]
    # six contests give six wins, each in three of a member's
    assert sum(shares) == pytest.approx(2)
    assert [one["value"] for one in answer["verdicts"]] == shares
    # both orders of six pairs, once, and what was asked for health and schemas
    assert asked <= 2 * 6 + 4


def test_a_failed_member_is_neutral_only_where_the_request_is_a_group(server):
    with judged_by(server, *NEUTRAL) as running:
        rewards = FlowFactory(f"{running.url}/group").rewards(PROMPTS, TORN)
        payload = {"prompt": PROMPTS, "image": [encoded(image) for image in TORN]}
        _, theirs = running.post("/group/compute", payload)
        metrics = running.metrics()
        with pytest.raises(RuntimeError, match="1 of 4 samples"):
            FlowFactory(running.url).rewards(PROMPTS, TORN)
        with pytest.raises(RuntimeError, match="torn|image"):
            UniRL(f"{running.url}/unirl").rewards(PROMPTS, TORN)
        rows = [row(image, "a cube", group=1) for image in TORN]
        _, ours = running.post("/v1/judge", {"samples": rows})
        # with one of the good ones outside, one of three is too many
        del rows[0]["group"]
        _, outside = running.post("/v1/judge", {"samples": rows})
    assert rewards[3] == pytest.approx(sum(rewards[:3]) / 3)
    assert metrics['vieval_rewards_total{outcome="imputed",reward="r"}'] == 2
    assert theirs["imputed"] == ours["failed"] == [3]
    assert (ours["verdicts"][3]["imputed"], ours["groups"][0]["failed"]) == (True, 1)
    *others, last = outside["verdicts"]
    assert not any(one.get("imputed") for one in [*others, last])
    assert last["value"] is None
    assert "--max-imputed" in last["reason"]


def test_tied_groups_are_counted(server):
    tied = 'vieval_groups_total{reward="sharp",values="tied"}'
    with judged_by(server, "--reward", "sharp=sharpness") as running:
        FlowFactory(f"{running.url}/sharp/group").rewards(PROMPTS, [IMAGES[0]] * 4)
        assert running.metrics()[tied] == 1


def test_a_reward_of_repeats_is_the_mean_of_answers_of_their_own(store):
    found, costs = [], []
    with FakeServer() as server:
        for repeats in (1, 3):
            flags = ("--temperature", "0.7", "--attempts", "1", "--repeats", repeats)
            with judged_by(server, *flags) as running:
                running.get("/health")
                before = server.stats()["requests"]
                _, answer = running.post("/v1/judge", {"samples": [row(IMAGES[0])]})
                costs.append(server.stats()["requests"] - before)
                found += answer["verdicts"]
    once, thrice = found
    # the first of the three is in the store
    assert costs[1] == 2 * costs[0]
    first, *_ = values = [one["scores"]["O"] for one in thrice["verdicts"]]
    assert (once["value"], len(values)) == (first, 3)
    assert thrice["value"] == pytest.approx(sum(values) / 3)
