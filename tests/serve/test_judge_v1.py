"""Test VIEval's own protocol: the verdicts of `vieval score`, and failures."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.api.replies import unreadable
from tests.fake_server import FakeServer, Fault
from tests.pictures import plain
from tests.serve.clients import encoded
from tests.serve.serving import judged_by, row, serving

PART = b'--XX\r\nContent-Disposition: form-data; name="%s"\r\n\r\n'


def test_what_cannot_be_judged_is_no_number_and_the_others_are(server):
    good = plain("red")
    bad = {
        "image": row(good[:30]),
        "base64": {"images": {"output": "/etc/passwd"}},
        "group": row(good, group=[1]),
        "typo": row(good, typo=1),
    }
    with judged_by(server) as running:
        rows = [row(good), *bad.values(), row(good)]
        status, answer = running.post("/v1/judge", {"samples": rows})
    assert (status, answer["failed"]) == (200, [1, 2, 3, 4])
    first, *failed, last = answer["verdicts"]
    assert first["value"] == last["value"] is not None
    for word, verdict in zip(bad, failed, strict=True):
        assert verdict["value"] is None
        assert word in verdict["reason"]


def test_half_of_a_character_is_refused_alone_and_not_echoed(server):
    fine, half = row(plain("red")), "a\ud800"
    image = fine["images"]["output"]
    candidates = [{"images": fine["images"]}] * 2
    contest = {"id": "5", "kind": "tig", "candidates": candidates}
    changes = [
        {"uid": half},
        {"group": half},
        {"texts": {**fine["texts"], half: "x"}},
        {"images": {"output": image, half: image}},
        {"texts": {"prompt": half}},
    ]
    rows = [{**fine, "uid": f"{n}", **change} for n, change in enumerate(changes)]
    rows += [{**contest, "texts": {"prompt": half}}, {**fine, "uid": "6"}]
    with judged_by(server) as running:
        _, answer = running.post("/v1/judge", {"samples": rows})
        payload = {"prompt": [half], "image": [image]}
        told = running.post("/compute", payload)[1]["error"]
    assert answer["failed"] == [*range(6)]
    assert [verdict["uid"] for verdict in answer["verdicts"]] == [*"0123456"]
    assert "a\ud800" not in str(answer)
    reasons = [told, *(verdict["reason"] for verdict in answer["verdicts"][:6])]
    surrogate = "a lone surrogate, which is not valid Unicode"
    assert all(surrogate in reason for reason in reasons)


@pytest.mark.parametrize(
    ("replies", "asks", "status", "outcome"),
    [(2, 3, "ok", "ok"), (100, 4, "parse_failure", "failed")],
)
def test_an_unreadable_reply_is_asked_for_past_the_store(
    store, replies, asks, status, outcome
):
    """One of two questions names the prompt; without an answer it is asked anew."""
    reply, asked = unreadable(replies)
    with (
        FakeServer(reply=reply, schema_support="ignored") as server,
        judged_by(server, "--attempts", 2) as running,
    ):
        _, answer = running.post("/v1/judge", {"samples": [row(plain("blue"))]})
        metrics = running.metrics()
    [verdict] = answer["verdicts"]
    assert verdict["value"] == (pytest.approx(0.7) if outcome == "ok" else None)
    assert (verdict["status"], len(asked)) == (status, asks)
    assert metrics[f'vieval_verdicts_total{{judge="viescore",status="{status}"}}'] == 1
    assert metrics[f'vieval_rewards_total{{outcome="{outcome}",reward="r"}}'] == 1


@pytest.mark.parametrize(
    ("kind", "status"),
    [("500", "api_error"), ("refusal", "refusal"), ("content_filter", "refusal")],
)
def test_failures_of_the_backbone_are_statuses(kind, status, store, tmp_path):
    options = tmp_path / "quick.yaml"
    rows = [row(plain("blue")), row(plain("red"))]
    with FakeServer(faults=lambda number, body: Fault(kind)) as server:
        judge = {"model": "fake", "base_url": server.base_url, "retries": 0}
        options.write_text(json.dumps({"backbones": {"judge": judge}}))
        flags = ["--config", options, "--attempts", 1, "--patience", 0.5]
        with serving("--reward", "r=viescore", *flags) as running:
            code, answer = running.post("/v1/judge", {"samples": rows})
    assert code == 200
    for verdict in answer["verdicts"]:
        assert (verdict["value"], verdict["status"]) == (None, status)
        assert verdict["reason"]


def test_contests_are_judged_with_their_votes(server):
    outputs = [encoded(plain(colour)) for colour in ("red", "blue")]
    candidates = [{"images": {"output": output}} for output in outputs]
    contest = {"id": "c", "kind": "tig", "texts": {"prompt": "red"}}
    rows = [{**contest, "candidates": candidates[:count]} for count in (2, 1)]
    with judged_by(server, reward="r=pairwise") as running:
        _, answer = running.post("/v1/judge", {"samples": rows})
    first, second = answer["verdicts"]
    assert set(first["verdicts"][0]["choice"]["votes"]) == {"forward", "reverse"}
    assert (first["uid"], first["failed"], second["failed"]) == ("c", False, True)
    assert "at least 2 candidates" in second["reason"]


def test_images_may_come_as_parts_as_clients_send_them(server):
    whole, name = row(plain("red")), "bild \u00fc"
    outputs = [whole["images"]["output"], f"part:{name}", "part:none"]
    samples = [{**whole, "images": {"output": output}} for output in outputs]
    files = {
        "request": (None, json.dumps({"samples": samples})),
        name: ("name=x; a.png", plain("red"), "image/png"),
        "more": ("", b""),
    }
    with judged_by(server) as running:
        sent = requests.post(f"{running.url}/v1/judge", files=files, timeout=60)
    first, second, third = sent.json()["verdicts"]
    assert first["value"] == second["value"] is not None
    assert third["value"] is None
    assert "no part 'none'" in third["reason"]


def test_groups_have_their_spread(server):
    colours = (("red", "a"), ("blue", "a"), ("red", 2), ("red", 2))
    rows = [row(plain(colour), group=group) for colour, group in colours]
    with judged_by(server) as running:
        _, answer = running.post("/v1/judge", {"samples": rows})
    first, second = answer["groups"]
    one, two, *_ = (verdict["value"] for verdict in answer["verdicts"])
    half = pytest.approx(abs(one - two) / 2)
    mean = pytest.approx((one + two) / 2)
    assert first == {"group": "a", "n": 2, "failed": 0, "mean": mean, "spread": half}
    assert second["spread"] == 0


def test_the_same_sample_of_two_clients_is_asked_about_once(store):
    asked = {"samples": [row(plain("green"))]}
    with FakeServer(latency=0.5) as server, judged_by(server) as running:
        running.get("/health")
        before = server.stats()["requests"]
        ask = lambda _: running.post("/v1/judge", asked)[1]["verdicts"]
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(ask, range(4)))
        count = server.stats()["requests"] - before
    assert count == 2  # the two questions of one sample
    assert all(answer == answers[0] for answer in answers)


END = b"\r\n--XX--"
PARTS = (
    (b"--XX\r\nbroken", "no header or no end"),
    (PART % b"request" + b"{}\r\n", "no end"),
    (b"--XX--\r\n", "must have a part 'request'"),
    (PART % b"_charset_" + b"x" * 100 + END, "must have a part 'request'"),
    (b"--XX\r\n\r\n{}" + END, "no name"),
    (b"--XX\r\nX: " + b"x" * 9000 + b"\r\n\r\n{}" + END, "no header"),
    ((PART % b"a" + b"\r\n") * 4097 + b"--XX--", "4096 parts"),
)
DOCUMENTS = (
    (b"{", "JSON"),
    (b"[]", "object"),
    (b'{"samples": 1}', "samples"),
    (b'{"samples": [' + b"{}," * 600_000 + b"{}]}", "values"),
    (b'{"rows": []}', "rows"),
    (b"[" * 100_000, "JSON"),
    (b'{"samples": ' + b"9" * 10_000 + b"}", "JSON"),
    (b'{"samples": [{"uid": NaN}]}', "NaN"),
    (b'{"samples": [{"uid": 1e999}]}', "1e999"),
    (b'{"samples": [{"uid": ' + b"[" * 700 + b"]" * 700 + b"}]}", "nested too deeply"),
)


def test_a_malformed_body_is_refused_in_one_line(caplog):
    form = "multipart/form-data; "
    cases = [(*case, f"{form}boundary=XX") for case in PARTS]
    cases += [(*case, "application/json") for case in DOCUMENTS]
    with serving("--reward", "r=sharpness") as running:
        for body, words, kind in [*cases, (PART % b"a" + END, "boundary", form)]:
            headers = {"Content-Type": kind}
            status, answer = running.send("/v1/judge", body, headers)
            expected = 413 if words == "4096 parts" else 400
            assert (status, words in answer["error"]) == (expected, True), answer
            assert "\n" not in answer["error"]
        assert running.post("/v1/judge", {"samples": [row(plain("red"))]})[0] == 200
    assert "broke" not in caplog.text


def test_a_sum_of_rewards_is_the_sum_of_its_parts(server):
    rewards = ["--reward=sum=0.7*viescore:SC+-0.3*sharpness", "--reward=sc=viescore:SC"]
    with judged_by(server, *rewards, "--reward=sharp=sharpness") as running:
        asked = {"samples": [row(plain("red"))]}
        paths = [f"/{name}/v1/judge" for name in ("sum", "sc", "sharp")]
        answers = [running.post(path, asked)[1]["verdicts"][0] for path in paths]
        status, missing = running.post("/v1/judge", {"samples": []})
    total, first, second = (answer["value"] for answer in answers)
    assert total == pytest.approx(0.7 * first - 0.3 * second, abs=1e-15)
    assert len(answers[0]["verdicts"]) == 2
    assert status == 404
    assert "/sharp/v1/judge" in missing["error"]


def test_prompts_and_images_are_in_no_log(server, caplog):
    caplog.set_level("INFO", "vieval")
    rows = [row(plain("red"), "a secret prompt"), row(b"none", "a secret prompt")]
    with judged_by(server) as running:
        running.post("/v1/judge", {"samples": rows})
    assert "1 without a reward" in caplog.text
    assert "secret" not in caplog.text
