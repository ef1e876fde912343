"""The card of a model: its numbers are a report's, it goes on where it was, and known answers
come out in their place.
"""

import json
import re
import shutil
from shlex import split

import pytest

from tests.batch_server import BatchServer
from tests.brightness import by_brightness
from tests.card.stand_ins import answering, knowing, museum, published
from tests.fake_server import FakeServer, Fault, named
from tests.stored_results import write_lines
from vieval_plugin.backends.http import batches
from vieval_plugin.benchmarks import registry
from vieval_plugin.card.plan import draw_sample
from vieval_plugin.card.read import read_card
from vieval_plugin.records import Provenance, response_json, target_json
from vieval_plugin.results.published.judges import present, verdicts_of

#: Samples of ImagenHub: ten of each cell, the fewest that are allowed.
N = 290
PAIRWISE = ("--benchmark", "vieval_demo_contests", "--judge", "pairwise")


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory, shared_data):
    """A data folder with ImagenHub's ratings, stand-ins for its images and the published logs;
    and its samples.
    """
    data = tmp_path_factory.mktemp("data")
    found = museum(data, shared_data / "imagenhub" / "human_ratings")
    (data / "published_verdicts").symlink_to(shared_data)
    return data, found


@pytest.fixture
def options(tmp_path, monkeypatch):
    path = tmp_path / "vieval.yaml"
    path.write_text("store: {path: replies.sqlite}\nstatistics: {draws: 200}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))


@pytest.fixture
def imagenhub(stand_ins, options, monkeypatch):
    data, found = stand_ins
    monkeypatch.setenv("VIEVAL_DATA", str(data))
    return found


def make(vieval, server, out, *more, samples=N, code=0):
    sizes = ("--samples", samples, "--repeats", 20, "--audit", 0)
    return vieval("card", *named(server), "--out", out, *sizes, *more, code=code)


def made_of_contests(vieval, server, out, *more):
    return make(vieval, server, out, *PAIRWISE, *more, samples=70)


def judge_of(name, benchmark, data):
    [judge] = [judge for judge in present(benchmark, data) if judge.name == name]
    return judge


def entries_of(out):
    return {entry.benchmark: entry for entry in read_card(out).entries}


def numbers_of(entry, system, statistic="spearman", aspect="O"):
    """Value, ends, n and ranks of a judge by part or value of a breakdown."""
    names = ("value", "low", "high", "n", "rank_from", "rank_to")
    return {
        row.breakdown_value or row.part: [getattr(row, name) for name in names]
        for row in entry.numbers
        if (row.system, row.statistic, row.aspect) == (system, statistic, aspect)
    }


def pairs_with(entry, rival):
    """Pairs with a published judge by part."""
    return {row.part: row for row in entry.pairs if rival in (row.better, row.worse)}


def less_cost(out):
    """A card as JSON values without what it took."""
    document = json.loads((out / "card.json").read_text())
    for entry in document["entries"]:
        del entry["seconds"], entry["files"]
    for repeats in document["repeats"]:
        del repeats["files"]
    return document


@pytest.mark.extras
def test_known_answers_have_their_place(imagenhub, stand_ins, tmp_path, vieval):
    data = stand_ins[0] / "published_verdicts"
    judge = judge_of("gpt4v_0shot", "imagenhub", data)
    recording, known = verdicts_of(judge, data), registry.benchmark("imagenhub")

    def recorded(sample):
        return recording.verdict(sample.id)[0]

    with FakeServer(reply=answering(imagenhub, published(recorded))) as server:
        make(vieval, server, tmp_path / "card", samples=600)
    entry = entries_of(tmp_path / "card")["imagenhub"]
    assert numbers_of(entry, "fake") == numbers_of(entry, judge.title)
    same = pairs_with(entry, judge.title)
    assert same.keys() == {"all", *known.parts}
    assert {pair.difference for pair in same.values()} == {0}
    assert same["all"].p_adjusted == 1
    assert len({row.system for row in entry.numbers if row.role == "judge"}) >= 7


@pytest.mark.slow
def test_a_knowing_judge_is_first(imagenhub, tmp_path, vieval):
    report = tmp_path / "report"
    out = tmp_path / "card"
    with FakeServer(reply=answering(imagenhub, knowing(0.8))) as server:
        printed = make(vieval, server, out, "--audit", 10)
        assert server.base_url not in (out / "card.json").read_text()
    entry = entries_of(out)["imagenhub"]
    of_parts = numbers_of(entry, "fake")
    assert of_parts["all"][4:] == [1, 1]
    assert "\nfake has rank 1 of " in printed.out
    ahead = pairs_with(entry, "GPT-4o zero-shot")["all"]
    assert (ahead.better, ahead.significant) == ("fake", True)
    found = {"card.html", "card.md", "card.json"}
    assert found <= {path.name for path in out.iterdir()}
    [verdicts] = [out / file for file in entry.files if file.endswith(".jsonl")]
    vieval("report", verdicts, "--out", report)
    reported = json.loads((report / "findings.json").read_text())["numbers"]
    place = {"aspect": "O", "statistic": "spearman", "system": "fake", "breakdown": ""}
    of_report = [row for row in reported if place.items() <= row.items()]
    assert len(of_report) == 8
    for row in of_report:
        found = of_parts[row["part"]][:4]
        assert found == [row[name] for name in ("value", "low", "high", "n")]
    # from results, without asking
    vieval("card", verdicts, "--out", tmp_path / "again")
    again = entries_of(tmp_path / "again")["imagenhub"]
    assert (again.numbers, again.pairs) == (entry.numbers, entry.pairs)
    found = read_card(tmp_path / "again").left_out[0]
    assert "so it does not show whether the model repeats its answers" in found


def test_what_was_ended_goes_on_and_comes_out_the_same(options, tmp_path, vieval):
    """The server is gone after 60 calls, and then after 50 more; a card made at once is the
    same.
    """

    def until(last):
        return lambda number, body: Fault("hang") if last and number > last else None

    for last in (60, 50, 0):
        with FakeServer(reply=by_brightness(), faults=until(last)) as server:
            impatient = ["--patience", 0.5, "--timeout", 2] if last else []
            how = {"samples": 70, "code": 1 if last else 0}
            make(vieval, server, tmp_path / "card", *PAIRWISE, *impatient, **how)
        assert (tmp_path / "card" / "card.json").exists() == (last == 0)
    with FakeServer(reply=by_brightness()) as server:
        made_of_contests(vieval, server, tmp_path / "whole", "--fresh")
        asked = server.stats()["requests"]
        made_of_contests(vieval, server, tmp_path / "whole")
        assert server.stats()["requests"] == asked
    assert less_cost(tmp_path / "card") == less_cost(tmp_path / "whole")


def test_no_more_calls_than_planned(options, tmp_path, vieval):
    """The demo has samples that look alike, which are asked about once, but again each time past
    the store.
    """
    card = tmp_path / "card"
    more = ["--benchmark", "vieval_demo", "--judge", "viescore", "--repeats", 210]
    with FakeServer() as server:
        plan = make(vieval, server, card, *more, "--plan", samples=210).out
        form = r"in all: ([\d,]+) calls for ([\d,]+) answers"
        found = re.search(form, plan).groups()
        calls, answers = (int(number.replace(",", "")) for number in found)
        printed = make(vieval, server, card, *more, "--budget", calls, samples=210)
        asked = server.stats()["requests"]
    assert "vieval_demo by viescore, 210 samples: 418 calls for 420 answers" in plan
    assert "viescore, 210 samples three times: 1,260 calls for 1,260 answers" in plan
    schemas = "whether the server enforces JSON schemas: at most 4 calls for 0 answers"
    assert schemas in plan
    assert 4 * 418 <= asked <= calls
    text = (card / "card.md").read_text()
    [total] = re.findall(r"Failures and cost: ([\d,]+) answers in total", text)
    assert int(total.replace(",", "")) == answers
    form = r"calls: (\d+), .*duplicates not asked: (\d+)"
    made, same = map(int, re.search(form, printed.err).groups())
    assert made == asked
    assert answers <= made + same <= answers + 4
    # its interval includes 0
    said = "fake is not shown to be better than giving every image the same score."
    assert said in printed.out


def test_a_card_by_batches_is_that_of_calls(options, tmp_path, vieval, monkeypatch):
    card = tmp_path / "card"
    monkeypatch.setattr(batches, "_POLL", 0.001)
    monkeypatch.setattr(batches, "MOST_BYTES", 20_000_000)
    more = ["--benchmark", "vieval_demo", "--judge", "viescore", "--audit", 12]
    with FakeServer() as server:
        make(vieval, server, tmp_path / "live", *more, samples=210)
        # whether schemas are enforced, and in each repeat again
        asked = server.stats()["requests"] - 4
    for file in tmp_path.glob("replies.sqlite*"):
        file.unlink()
    with BatchServer() as service:
        prices = ["--price-input", 1, "--price-output", 4]
        told = make(vieval, service, card, *more, "--batch", *prices, samples=210).err
        assert set(service.paid.values()) == {1}
        assert service.paid.total() == asked
        assert told.count("vieval: wave ") == 1
        assert max(map(len, service.contents.values())) <= 20_000_000
        files = len(service.files)
        make(vieval, service, card, *more, "--batch", samples=210)  # all is there
        assert len(service.files) == files
    assert re.search(r"saved by batches: [\d.]+", told)
    assert less_cost(card) == less_cost(tmp_path / "live")
    assert not (card / "batches").exists()


def test_the_cache_does_not_change_a_card(options, tmp_path, vieval):
    outs = [tmp_path / name for name in ("first", "again")]
    for out in outs:
        line = (
            "card --judge sharpness --benchmark vieval_demo --samples 210 --repeats 0"
        )
        vieval(line, *split("--audit 10 --out"), out)
    first, again = map(less_cost, outs)
    assert first == again
    assert first["audits"][0]["calls"] > 60


def test_missing_verdicts_are_told(options, tmp_path, monkeypatch, vieval, stand_ins):
    data = tmp_path / "data"
    data.mkdir()
    (data / "imagenhub").symlink_to(stand_ins[0] / "imagenhub")
    monkeypatch.setenv("VIEVAL_DATA", str(data))
    with FakeServer() as server:
        more = split("--plan --benchmark imagenhub --judge viescore")
        printed = make(vieval, server, tmp_path / "card", *more).out
    note = "note: no published verdicts on ImagenHub were found; run `vieval prepare"
    assert f"{note} published_verdicts` to download them" in printed
    assert not (tmp_path / "card").exists()


def test_missing_images_are_named(options, monkeypatch, vieval, shared_data):
    monkeypatch.setenv("VIEVAL_DATA", str(shared_data))
    at = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    printed = vieval("card", "--plan", *at, "--benchmark", "imagenhub", code=1).err
    folder = shared_data / "imagenhub" / "museum" / "ImagenHub_Text-Guided_IG" / "SD"
    missing = (
        f"images are missing: {folder}: 197 of 197 images missing (first: sample_0"
    )
    assert f"imagenhub has ratings, but {missing}.jpg), and more in " in printed
    assert "; run: vieval prepare imagenhub;" in printed
    assert "not prepared;" not in printed


def test_a_card_is_compared_with_cards(options, tmp_path, vieval):
    card = tmp_path / "card"
    with FakeServer() as server:
        made_of_contests(vieval, server, card)
    empty = tmp_path / "empty"
    empty.mkdir()
    for order in ((card, empty), (empty, card)):
        said = vieval("compare", *order, code=1).err
        assert said.startswith(f"vieval: {empty} is not a model card")
    for path in (card, card / "verdicts"):
        steps = vieval("card", path, "--out", tmp_path / f"of-{path.name}").err
        said = "computing numbers and comparing with published judges; this takes"
        assert f"vieval: vieval_demo_contests by pairwise: {said}" in steps
        assert "70" in vieval("report", path, "--out", tmp_path / "report").out
        said = vieval("card", path, "--out", card, code=1).err
        there = "already contains the card for these verdicts; choose another folder"
        assert f"{there} with --out" in said
    found = str(entries_of(tmp_path / "of-verdicts")["vieval_demo_contests"].files)
    assert "vieval_demo_contests_pairwise" in found


def test_votes_of_a_published_judge(shared_data, options, tmp_path, vieval):
    """GPT-4o's votes on 400 contests, as lmms-eval writes them."""
    run = tmp_path / "run"
    of = "genai_bench_tiger"
    judge = judge_of("gpt4o", of, shared_data)
    recording = verdicts_of(judge, shared_data)
    contests = []
    for part in ("edit", "generation"):
        contests += registry.samples(of, part, shared_data)
    by = Provenance("pairwise", (), (), "played")
    rows = [
        {
            "filtered_resps": response_json(c.id, recording.verdict(c)[0], by),
            "target": target_json(c),
        }
        for c in draw_sample(contests, 400, 0)
    ]
    run.mkdir()
    write_lines(run / "1_samples_task.jsonl", rows)
    out = tmp_path / "card"
    shown = vieval("card", run, "--published", shared_data, "--out", out).out
    entry = entries_of(out)["genai_bench_tiger"]
    own, same = (
        numbers_of(entry, system, "accuracy_four_way", "votes")
        for system in ("played", judge.title)
    )
    assert {"all", "edit", "generation"} <= own.keys()
    assert own == same
    assert (entry.samples, entry.cells) == (400, 2)
    assert {row.role for row in entry.numbers} == {"judge", "baseline"}
    answer = f"played is as good as {judge.title}, the best published judge."
    assert shown.startswith(f"{answer}\nplayed has rank ")
    vieval("compare", out, out, "--label", "a", "--label", "b")


def test_two_cards_are_compared_on_the_samples_in_common(options, tmp_path, vieval):
    outs = [tmp_path / name for name in ("a", "b", "c")]
    replies = (by_brightness(), by_brightness(2), by_brightness())
    for out, reply, seed in zip(outs, replies, (0, 0, 1), strict=True):
        with FakeServer(reply=reply) as server:
            more = ("--fresh", "--repeats", 0, "--seed", seed)
            made_of_contests(vieval, server, out, *more)
    labels = ("--label", "one", "--label", "other")
    shown = vieval("compare", *outs[:2], *labels).out
    entries = [entries_of(out)["vieval_demo_contests"] for out in outs]
    higher = r"^Accuracy .* higher than other \(95% interval .*\), on \d+ pairs of candidates"
    assert re.search(higher, shown, re.MULTILINE)
    first, second, third = (entry.sample_digest for entry in entries)
    assert first == second != third
    same = [numbers_of(entry, "fake", "consistent_share", "votes") for entry in entries]
    assert same[0]["tig"][0] > same[1]["tig"][0]
    files = (outs[0] / "card.json", outs[2] / "card.json")
    [line] = vieval("compare", *files, *labels, code=1).err.splitlines()
    assert "make both with the same --samples and --seed" in line
    [line] = vieval("compare", outs[0], outs[1], code=1).err.splitlines()
    assert "pass one --label per card" in line


def test_a_log_of_another_commit(imagenhub, shared_data, tmp_path, vieval):
    logs = tmp_path / "published" / "viescore_logs"
    path = shared_data / "viescore_logs" / "results_gpt4o_0shot"
    shutil.copytree(path, logs / "results_gpt4o_0shot")
    changed = next(logs.rglob("*.json"))
    changed.write_text(changed.read_text().replace("score", "Score", 1))
    with FakeServer() as server:
        more = ("--samples", N, "--published", logs.parent, "--out", tmp_path / "card")
        command = ("card", *named(server), "--benchmark", "imagenhub", *more)
        [line] = vieval(*command, code=1).err.splitlines()
        assert server.stats()["requests"] == 0
    said = (
        f"vieval: {changed}: not the file from TIGER-AI-Lab/VIEScore at commit 1a2d178"
    )
    assert line.startswith(said)


def test_a_dead_server_is_one_line_and_leaves_no_card(options, tmp_path, vieval):
    card = tmp_path / "card"
    at = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--patience", 0.2]
    printed = vieval("card", *at, "--benchmark", "vieval_demo", "--out", card, code=1)
    assert printed.err.splitlines()[-1].startswith("vieval: ")
    assert not [path for path in card.rglob("card.*") if path.is_file()]


def test_a_card_that_is_no_card_is_one_line(options, tmp_path, vieval):
    card = tmp_path / "card"
    with FakeServer() as server:
        made_of_contests(vieval, server, card)
    other = shutil.copytree(card, tmp_path / "other")

    def compared():
        labels = ("--label", "a", "--label", "b")
        [line] = vieval("compare", card, other, *labels, code=1).err.splitlines()
        return line

    whole = json.loads((card / "card.json").read_text())
    [entry] = whole["entries"]
    endless, outside = {"seconds": float("nan")}, {"files": {"../x": "0"}}
    for change, words in (
        ({"card": 2}, "the card has version 2, but this VIEval reads version 1"),
        ({"seed": "zero"}, "seed: Input should be a valid integer"),
        ({"extra": 1}, "extra: Unexpected keyword argument"),
        ({"date": "../<b>"}, "date: Input should be a valid date"),
        ({"entries": [entry, entry]}, "pairwise on vieval_demo_contests twice"),
        ({"entries": [entry | endless]}, "entries.0.seconds: Input should be a finite"),
        ({"entries": [entry | outside]}, "refers to a file outside its folder (../x)"),
    ):
        (other / "card.json").write_text(json.dumps({**whole, **change}))
        assert words in compared()
    (other / "card.json").write_text(json.dumps(whole))
    [verdicts] = (other / "verdicts").glob("*.jsonl")
    verdicts.write_text(verdicts.read_text().replace("second", "first"))
    assert "not the verdicts that the card was made from" in compared()
    verdicts.unlink()
    assert "requires its verdicts in the same folder" in compared()
