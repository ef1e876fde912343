"""What a run would cost, told from a pilot of eight: beside what the run then costs."""

import json
import re
from shlex import split

import pytest

from tests.builders import a_sample_row, an_image_file
from tests.fake_server import FakeServer
from tests.stored_results import write_lines
from vieval_plugin.cli import main

COUNT = 40


@pytest.fixture
def samples(tmp_path):
    rows = [{**a_sample_row("x", "0.png", kind="sculpture"), "texts": {}}]
    for number in range(COUNT):
        an_image_file(tmp_path / f"{number}.png", (6 * number, 90, 200))
        prompt = "a cube " * (1 + number % 7)
        rows.append(a_sample_row(str(number), f"{number}.png", prompt))
    return write_lines(tmp_path / "s.jsonl", rows)


@pytest.fixture
def run(tmp_path, capsys):
    def ran(samples, server, *arguments, plan=True):
        named = ["--model", "fake", "--base-url", server.base_url] if server else []
        given = ["--plan"] if plan else ["--out", str(tmp_path / "v.jsonl")]
        code = main(["score", str(samples), *named, *given, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ran


def numbers(name, said):
    """The least and, where it is more, the most of a line of a plan."""
    line = next(line for line in said.splitlines() if line.startswith(f"{name}: "))
    found = re.findall(r"[\d.,]*\d", line)[: 1 + (" up to " in line)]
    return [float(one.replace(",", "")) for one in found]


@pytest.mark.parametrize("judge", ["viescore", "vqascore"])
def test_a_run_costs_what_its_plan_says(store, samples, run, tmp_path, judge):
    prices = ["--price-input", "0.5", "--price-output", "2"]
    with FakeServer(latency=0.02, capacity=32) as server:
        code, planned, _ = run(samples, server, "--judge", judge, *prices)
        asked = server.stats()["requests"]
    assert (code, (tmp_path / "v.jsonl").exists()) == (0, False)
    answer, trial, *rest, last = planned.splitlines()
    assert answer.startswith(f"plan: {judge} by fake, {COUNT} samples: about ")
    assert trial == "pilot of 8 (seed 0): ok 8"
    assert last == f"no questions would be asked about 1 of {COUNT + 1} samples"
    store.unlink()
    with FakeServer() as server:
        code, _, told = run(samples, server, "--judge", judge, plan=False)
        counted = re.search(r"calls: (\d+), .*in: (\d+), out: (\d+)", told)
        calls, tokens_in, tokens_out = map(int, counted.groups())
        assert server.stats()["requests"] == calls
    assert asked < calls / 3
    assert numbers("calls", planned) == [calls]
    assert numbers("tokens in", planned) == [pytest.approx(tokens_in, rel=0.1)]
    least_out, *most_out = numbers("tokens out", planned)
    assert least_out == pytest.approx(tokens_out, rel=0.1)
    least, *most = numbers("price", planned)
    assert least == pytest.approx((tokens_in * 0.5 + tokens_out * 2) / 1e6, rel=0.1)
    # an answer of vqascore is one token, and what viescore's may have is its limit
    assert most_out == ([2 * 1024 * COUNT] if judge == "viescore" else [])
    expected = [least + (out - least_out) * 2 / 1e6 for out in most_out]
    assert most == pytest.approx(expected, rel=0.01)
    names = ("calls", "tokens", "price")
    assert "(" not in "".join(line for line in rest if line.startswith(names))


def test_cached_tokens_cost_what_they_cost(store, samples, run):
    prices = split("--price-input 1 --price-cached-input 0.25 --price-output 4")
    with FakeServer(cached_share=0.5) as server:
        _, planned, _ = run(samples, server, *prices)
        store.unlink()
        _, _, told = run(samples, server, *prices, plan=False)
    form = r"tokens in: (\d+) \(50% cached\), out: (\d+), price: ([\d.]+)"
    tokens_in, tokens_out, price = map(float, re.search(form, told).groups())
    expected = (tokens_in * (0.5 + 0.5 * 0.25) + tokens_out * 4) / 1e6
    assert price == pytest.approx(expected, rel=0.01)
    estimate, _ = numbers("price", planned)
    assert estimate == pytest.approx(price, rel=0.05)
    assert "50% cached in the pilot" in planned


def test_what_is_not_asked_is_counted_with_what_it_would_have_cost(store, samples, run):
    prices = split("--price-input 1 --price-output 4 --aspects SC")
    with FakeServer() as server:
        _, _, told = run(samples, server, *prices, plan=False)
    # a call of 41 asks what the server can
    share = float(told.partition("price: ")[2].split()[0]) * COUNT / (COUNT + 1)
    skipped = f"skipped by the option aspects: {COUNT} questions, 49% of all, about "
    found = re.search(rf"^{skipped}([\d.]+)", told, re.MULTILINE)
    assert float(found[1]) == pytest.approx(share, rel=0.01)


def test_what_the_pilot_paid_for_is_not_asked_again(store, samples, run):
    with FakeServer() as server:
        _, first, _ = run(samples, server)
        paid = server.stats()["requests"]
        _, again, _ = run(samples, server)
        assert server.stats()["requests"] == paid
        for name, bound in (("calls", {"abs": 1}), ("tokens in", {"rel": 0.05})):
            before = numbers(name, first)[0]
            assert numbers(name, again)[0] == pytest.approx(before, **bound)
        assert "16 pilot answers came from the cache" in again
        _, anew, _ = run(samples, server, "--fresh")
        assert server.stats()["requests"] == 2 * paid
        assert "seconds: unknown" not in anew
        run(samples, server, plan=False)
        assert server.stats()["requests"] == paid + numbers("calls", first)[0]


def test_seconds_are_told_as_a_range(store, samples, run):
    with FakeServer(latency=0.1) as server:
        _, said, _ = run(samples, server, *split("--num-concurrent 4 --judge vqascore"))
    form = r"seconds: ([\d.]+) if 4 concurrent requests .*, ([\d.]+) at"
    fastest, slowest = map(float, re.search(form, said).groups())
    # 40 calls of a tenth of a second, four at once, on a busy machine
    assert 0.8 < fastest < 4
    assert fastest <= slowest


def test_without_tokens_no_price_is_made_up(store, samples, run, monkeypatch):
    tokens = "vieval_plugin.backends.http.openai.tokens_of"
    monkeypatch.setattr(tokens, lambda answer: (None, None))
    with FakeServer() as server:
        limited = split("--limit 3 --price-input 1 --price-output 1")
        _, said, _ = run(samples, server, *limited)
    assert re.search(r", 2 samples: .*\npilot of 2 ", said)
    assert "tokens in: unknown, because the server does not report it" in said
    assert "price: unknown, because the token counts are unknown" in said


def test_stored_scores_of_a_network_are_no_calls(store, samples, run, scorer_weights):
    command = ("--judge", "clip_score", "--scorer", str(scorer_weights["clip_score"]))
    run(samples, None, *command)
    code, said, _ = run(samples, None, *command)
    assert code == 0
    assert re.search(
        "samples: no calls(.*\n)*.*pilot answers came from the cache", said
    )


def test_several_judges_have_a_plan_each_and_measuring_costs_time_alone(
    store, samples, run
):
    with FakeServer() as server:
        _, said, _ = run(samples, server, *split("--judge viescore --judge sharpness"))
    assert re.findall("^plan: (.*?),", said, re.M) == ["viescore by fake", "sharpness"]
    measured = said.partition("plan: sharpness")[2]
    assert "calls: 0, tokens: 0, price: 0\n" in measured
    assert "seconds: about " in measured


def test_a_failing_pilot_is_one_line(store, samples, run, tmp_path):
    with FakeServer(reply=lambda body: "no idea") as server:
        code, said, told = run(samples, server)
    assert (code, said) == (1, "")
    assert "vieval: could not judge any pilot sample (8 tried): " in told
    (tmp_path / "t.jsonl").write_text(json.dumps({"kind": "tie", "images": {}}))
    code, _, told = run(tmp_path / "t.jsonl", None)
    assert code == 1
    none = "vieval: viescore cannot judge any of these samples (first: "
    assert none in told
    assert "the sample has no source image" in told


@pytest.mark.parametrize("price", ["-1", "nan", "inf"])
def test_a_price_that_is_none_is_one_line(samples, run, price):
    named = split(f"--model m --base-url http://127.0.0.1:9/v1 --price-input {price}")
    code, _, told = run(samples, None, *named)
    assert (code, told.count("\n")) == (1, 1)
    assert "vieval: --price-input: Input should be" in told
