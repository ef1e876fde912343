"""VIEval's own protocol: verdicts as `vieval score` gives them, and failures that are no
numbers.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.api.replies import unreadable
from tests.fake_server import FakeServer, Fault
from tests.pictures import plain
from tests.serve.clients import encoded, rows_of
from tests.serve.serving import judged_by, row, serving

PART = b'--XX\r\nContent-Disposition: form-data; name="%s"\r\n\r\n'


@pytest.mark.parametrize(("judge", "aspect"), [("viescore", "O"), ("ssim", "SC")])
def test_rewards_are_those_of_score_digit_for_digit(
    judge, aspect, server, score, samples_file
):
    flags = (
        ["--model", "fake", "--base-url", server.base_url]
        if judge == "viescore"
        else []
    )
    code, expected, _, _ = score(samples_file, "--judge", judge, *flags)
    assert code == 0
    with serving("--reward", f"r={judge}", *flags) as running:
        status, answer = running.post(
            "/r/v1/judge", {"samples": list(rows_of(samples_file))}
        )
    assert status == 200
    assert [one["value"] for one in answer["verdicts"]] == [
        line["scores"][aspect] for line in expected
    ]
    assert [one["verdicts"][0]["scores"] for one in answer["verdicts"]] == [
        line["scores"] for line in expected
    ]
    assert [one["uid"] for one in answer["verdicts"]] == [
        line["uid"] for line in expected
    ]
    assert answer["failed"] == []


def test_what_cannot_be_judged_is_no_number_and_the_others_are(server):
    good, torn = plain("red"), plain("red")[:30]
    rows = [
        row(good),
        row(torn),
        {"images": {"output": "/etc/passwd"}},
        row(good, group=[1]),
        row(good, typo=1),
        row(good),
    ]
    with judged_by(server) as running:
        status, answer = running.post("/v1/judge", {"samples": rows})
    assert status == 200
    assert answer["failed"] == [1, 2, 3, 4]
    values = [one["value"] for one in answer["verdicts"]]
    assert values[0] == values[5] is not None
    assert values[1:5] == [None] * 4
    reasons = [one["reason"] for one in answer["verdicts"][1:5]]
    assert [
        word in reason
        for word, reason in zip(
            ["image", "base64", "group", "typo"], reasons, strict=True
        )
    ] == [True] * 4


def test_texts_and_names_with_half_of_a_character_are_refused_alone_and_not_echoed(
    server,
):
    fine, half = row(plain("red")), "a\ud800"
    image = fine["images"]["output"]
    rows = [
        {**fine, "uid": half},
        {**fine, "uid": "1", "group": half},
        {**fine, "uid": "2", "texts": {**fine["texts"], half: "x"}},
        {**fine, "uid": "3", "images": {"output": image, half: image}},
        {**fine, "uid": "4", "texts": {"prompt": half}},
        {
            "id": "5",
            "kind": "tig",
            "texts": {"prompt": half},
            "candidates": [{"images": fine["images"]}] * 2,
        },
        {**fine, "uid": "6"},
    ]
    with judged_by(server) as running:
        _, answer = running.post("/v1/judge", {"samples": rows})
        told = running.post("/compute", {"prompt": [half], "image": [image]})[1][
            "error"
        ]
    assert answer["failed"] == [*range(6)]
    assert [verdict["uid"] for verdict in answer["verdicts"]] == [
        "0",
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
    ]
    assert "a\ud800" not in str(answer)
    reasons = [told, *(verdict["reason"] for verdict in answer["verdicts"][:6])]
    assert all(
        "a lone surrogate, which is not valid Unicode" in reason for reason in reasons
    )


@pytest.mark.parametrize(
    ("replies", "asks", "status"), [(2, 3, "ok"), (100, 4, "parse_failure")]
)
def test_a_reply_that_cannot_be_read_is_asked_for_again_past_the_store(
    store, replies, asks, status
):
    reply, asked = unreadable(replies)
    # of two questions one names the prompt; where it and its reminder are not answered, it is asked
    # anew
    with (
        FakeServer(reply=reply, schema_support="ignored") as server,
        judged_by(server, "--attempts", 2) as running,
    ):
        _, answer = running.post("/v1/judge", {"samples": [row(plain("blue"))]})
        metrics = running.metrics()
    [verdict] = answer["verdicts"]
    is_ok = status == "ok"
    assert (verdict["value"], verdict["status"], len(asked)) == (
        pytest.approx(0.7) if is_ok else None,
        status,
        asks,
    )
    assert answer["failed"] == ([] if is_ok else [0])
    assert metrics[f'vieval_verdicts_total{{judge="viescore",status="{status}"}}'] == 1
    assert (
        metrics[
            f'vieval_rewards_total{{outcome="{"ok" if is_ok else "failed"}",reward="r"}}'
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("kind", "status"),
    [("500", "api_error"), ("refusal", "refusal"), ("content_filter", "refusal")],
)
def test_failures_of_the_backbone_are_statuses(kind, status, store, tmp_path):
    options = tmp_path / "quick.yaml"
    with FakeServer(faults=lambda number, body: Fault(kind)) as server:
        options.write_text(
            f"backbones: {{judge: {{model: fake, base_url: '{server.base_url}', retries: 0, "
            f"patience: 0.5}}}}"
        )
        with serving(
            "--reward",
            "r=viescore",
            "--config",
            options,
            "--attempts",
            1,
            "--patience",
            0.5,
        ) as running:
            code, answer = running.post(
                "/v1/judge", {"samples": [row(plain("blue")), row(plain("red"))]}
            )
    assert code == 200
    assert [one["value"] for one in answer["verdicts"]] == [None, None]
    assert {one["status"] for one in answer["verdicts"]} == {status}
    assert all(one["reason"] for one in answer["verdicts"])


def test_contests_are_judged_with_their_votes(server):
    candidates = [
        {"images": {"output": encoded(plain(colour))}} for colour in ("red", "blue")
    ]
    contest = {
        "id": "c",
        "kind": "tig",
        "texts": {"prompt": "red"},
        "candidates": candidates,
    }
    with judged_by(server, reward="r=pairwise") as running:
        _, answer = running.post(
            "/v1/judge",
            {"samples": [contest, {**contest, "candidates": candidates[:1]}]},
        )
    first, second = answer["verdicts"]
    assert set(first["verdicts"][0]["choice"]["votes"]) == {"forward", "reverse"}
    assert (first["uid"], first["failed"], second["failed"]) == ("c", False, True)
    assert "at least 2 candidates" in second["reason"]


def test_images_may_come_as_parts_as_clients_send_them(server):
    image = plain("red")
    outputs = [row(image)["images"]["output"], "part:bild \u00fc", "part:none"]
    samples = [
        {"images": {"output": output}, "texts": {"prompt": "a red cube"}}
        for output in outputs
    ]
    files = {
        "request": (None, json.dumps({"samples": samples})),
        "bild \u00fc": ("name=x; a.png", image, "image/png"),
    }
    with judged_by(server) as running:
        answer = requests.post(
            f"{running.url}/v1/judge", files={**files, "more": ("", b"")}, timeout=60
        ).json()
    first, second, third = [one["value"] for one in answer["verdicts"]]
    assert first == second is not None
    assert third is None
    assert "no part 'none'" in answer["verdicts"][2]["reason"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "words"),
    [
        (b"--XX\r\nbroken", "boundary=XX", 400, "no header or no end"),
        (PART % b"request" + b"{}\r\n", "boundary=XX", 400, "no end"),
        (b"--XX--\r\n", "boundary=XX", 400, "must have a part 'request'"),
        (b"--XX\r\n\r\n{}\r\n--XX--", "boundary=XX", 400, "no name"),
        (
            b"--XX\r\nX: " + b"x" * 9000 + b"\r\n\r\n{}\r\n--XX--",
            "boundary=XX",
            400,
            "no header",
        ),
        (
            PART % b"_charset_" + b"x" * 100 + b"\r\n--XX--",
            "boundary=XX",
            400,
            "must have a part 'request'",
        ),
        (PART % b"a" + b"\r\n--XX--", "", 400, "boundary"),
        ((PART % b"a" + b"\r\n") * 4097 + b"--XX--", "boundary=XX", 413, "4096 parts"),
    ],
)
def test_parts_that_are_none_or_too_many_are_refused_in_one_line(
    body, kind, status, words, caplog
):
    with serving("--reward", "r=sharpness") as running:
        found, answer = running.send(
            "/v1/judge", body, {"Content-Type": f"multipart/form-data; {kind}"}
        )
    assert found == status
    assert words in answer["error"]
    assert "\n" not in answer["error"]
    assert "broke" not in caplog.text


def test_groups_have_their_spread(server):
    rows = [
        row(plain(colour), group=group)
        for colour, group in (("red", "a"), ("blue", "a"), ("red", 2), ("red", 2))
    ]
    with judged_by(server) as running:
        _, answer = running.post("/v1/judge", {"samples": rows})
    first, second = answer["groups"]
    values = [one["value"] for one in answer["verdicts"]]
    assert (first["group"], first["n"], first["failed"]) == ("a", 2, 0)
    assert first["mean"] == pytest.approx(sum(values[:2]) / 2)
    assert first["spread"] == pytest.approx(abs(values[0] - values[1]) / 2)
    assert second["spread"] == 0


def test_the_same_sample_of_two_clients_is_asked_about_once(store):
    with FakeServer(latency=0.5) as server, judged_by(server) as running:
        running.get("/health")
        before = server.stats()["requests"]
        with ThreadPoolExecutor(4) as pool:
            answers = list(
                pool.map(
                    lambda _: running.post(
                        "/v1/judge", {"samples": [row(plain("green"))]}
                    ),
                    range(4),
                )
            )
        asked = server.stats()["requests"] - before
    assert asked == 2  # the two questions of one sample
    assert len({json.dumps(answer["verdicts"]) for _, answer in answers}) == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b'{"samples": 1}', "samples"),
        (b'{"samples": [' + b"{}," * 600_000 + b"{}]}", "values"),
        (b'{"rows": []}', "rows"),
        (b"[" * 100_000, "JSON"),
        (b'{"samples": ' + b"9" * 10_000 + b"}", "JSON"),
        (b'{"samples": [{"uid": NaN}]}', "NaN"),
        (b'{"samples": [{"uid": 1e999}]}', "1e999"),
        (
            b'{"samples": [{"uid": ' + b"[" * 700 + b"]" * 700 + b"}]}",
            "nested too deeply",
        ),
    ],
)
def test_a_body_that_is_none_is_refused_in_one_line(body, words):
    with serving("--reward", "r=sharpness") as running:
        status, answer = running.post("/v1/judge", body)
        assert running.post("/v1/judge", {"samples": [row(plain("red"))]})[0] == 200
    assert status == 400
    assert words in answer["error"]
    assert "\n" not in answer["error"]


def test_a_sum_of_rewards_is_the_sum_of_its_parts(server):
    text = "--reward=sum=0.7*viescore:SC+-0.3*sharpness"
    with judged_by(
        server, text, "--reward", "sc=viescore:SC", "--reward", "sharp=sharpness"
    ) as running:
        answers = [
            running.post(f"/{name}/v1/judge", {"samples": [row(plain("red"))]})
            for name in ("sum", "sc", "sharp")
        ]
        missing = running.post("/v1/judge", {"samples": []})
    total, first, second = (answer["verdicts"][0]["value"] for _, answer in answers)
    assert total == pytest.approx(0.7 * first - 0.3 * second, abs=1e-15)
    assert len(answers[0][1]["verdicts"][0]["verdicts"]) == 2
    assert missing[0] == 404
    assert "/sharp/v1/judge" in missing[1]["error"]


def test_prompts_and_images_are_in_no_log(server, caplog):
    caplog.set_level("INFO", "vieval")
    rows = [row(plain("red"), "a secret prompt"), row(b"none", "a secret prompt")]
    with judged_by(server) as running:
        running.post("/v1/judge", {"samples": rows})
    assert "1 without a reward" in caplog.text
    assert "secret" not in caplog.text
