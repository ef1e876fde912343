"""Results in a folder of shards: counted whole, sampled, and found by row or uid."""

import json
import re
import statistics
from shlex import split

import pytest

from tests.builders import a_table
from tests.shard_runs import (
    parquet,
    picture,
    pyarrow,
    verdicts,
    write_parquet,
    write_tar,
)
from vieval_plugin.results.lookup import open_results
from vieval_plugin.results.shard_sample import sample_shards
from vieval_plugin.text.errors import VievalError

MODELS = ("mine", "theirs")


def write_two_models(folder, prompts=60, **columns):
    """A data set in which two image models have an image of each prompt."""
    folder.mkdir()
    for number, model in enumerate(MODELS):
        given = []
        for prompt in range(prompts):
            row = {"uid": f"u{prompt}", "image_model": model}
            row |= {name: value_of(prompt) for name, value_of in columns.items()}
            image = picture(1000 * number + prompt, 16 + 8 * (prompt % 3))
            row |= {"prompt": f"a thing {prompt}", "image": image}
            given.append(row)
        given[7]["image"] = None
        table = pyarrow.Table.from_pylist(given)
        parquet.write_table(table, folder / f"{model}.parquet", row_group_size=20)
    return folder


@pytest.fixture
def judged(vieval, tmp_path):
    """A folder of shards, by a judge that needs no server."""
    data = write_two_models(tmp_path / "data")
    vieval(f"score {data} --judge sharpness --out {tmp_path}/out --rows-per-shard 8")
    return tmp_path / "out"


def means(folder):
    """The mean of each image model's scores, by hand."""
    scores = {model: [] for model in MODELS}
    for row in verdicts(folder):
        if row["scores"]["PQ"] is not None:
            scores[row["image_model"]].append(row["scores"]["PQ"])
    return {model: statistics.fmean(found) for model, found in scores.items()}


def scores_in(tables):
    return json.loads((tables / "findings.json").read_text())["all_scores"]


def test_ranks_and_reports_are_those_of_the_verdicts(vieval, judged, tmp_path):
    rank = tmp_path / "rank.html"
    printed = vieval(f"rank {judged} --tables {tmp_path}/tables --html {rank}").out
    rows = scores_in(tmp_path / "tables")
    found = {row["image model"]: row["mean"] for row in rows}
    assert found == pytest.approx(means(judged), abs=1e-4)
    assert [row["n"] for row in rows] == [59, 59]
    bins = [name for name in rows[0] if "-" in name or "<" in name]
    assert [sum(row[name] for name in bins) for row in rows] == [59, 59]
    assert "no_image" in printed
    assert "randomly sampled" not in printed
    assert "data:image/webp" in rank.read_text()
    vieval("report", judged, "--out", tmp_path / "report")
    assert "all_scores" in (tmp_path / "report" / "files.json").read_text()
    page = (tmp_path / "report" / "report.html").read_text()
    assert "data:image/webp" in page
    assert "a thing 3" in page


def test_prompts_are_drawn_by_seed(vieval, judged, tmp_path, monkeypatch):
    tables = tmp_path / "tables"
    monkeypatch.setattr(sample_shards, "__defaults__", (False, 10))
    printed = vieval("rank", judged, "--tables", tables).out
    assert "counts use all 120 verdicts" in printed
    assert "on 10 randomly sampled prompts (seed 0)" in printed
    assert [row["n"] for row in scores_in(tables)] == [59, 59]

    def drawn():
        ids = [record.id for record in sample_shards(judged).records]
        assert len(ids) == len(set(ids)) == 20
        return {(one.uid, one.image_model) for one in ids}

    first = drawn()
    assert len({uid for uid, _ in first}) == 10
    assert first == drawn()
    (tmp_path / "seed.yaml").write_text("statistics: {seed: 1}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "seed.yaml"))
    assert first != drawn()


def test_files_that_were_joined_are_read_as_they_were(vieval, judged, tmp_path):
    vieval("rank", judged, "--tables", tmp_path / "before")
    vieval("shards", judged, "--compact")
    vieval("rank", judged, "--tables", tmp_path / "after")
    for file in (tmp_path / "before").iterdir():
        assert (tmp_path / "after" / file.name).read_bytes() == file.read_bytes()


def test_one_verdict_is_shown_by_row_or_uid(vieval, judged):
    by_row = vieval("show", judged, "theirs.parquet:33").out
    assert "own/tig/theirs/u33" in by_row
    assert by_row == vieval("show", judged, "own/tig/theirs/u33").out
    refused = lambda *asked: vieval("show", judged, *asked, code=1).err
    assert "u33 at mine.parquet:33, u33 at theirs.parquet:33" in refused("u33")
    for name in ("u99", "mine.parquet:60"):
        assert f"no verdict matches {name!r}" in refused(name)
    assert "--trace" in refused("mine.parquet:3", "--html", judged / "x.html")


def test_a_verdict_with_its_trace_is_a_conversation_again(vieval, server, tmp_path):
    data = write_parquet(tmp_path / "data", 1)
    asked = ["--model", "fake", "--base-url", server.base_url]
    vieval("score", data, *asked, "--out", tmp_path / "out", "--trace")
    page = tmp_path / "page.html"
    vieval("show", tmp_path / "out", "part-0.parquet:7", "--html", page)
    assert "a thing 7" in page.read_text()
    assert "data:image" in page.read_text()
    lookup = open_results([tmp_path / "out"])
    conversations = list(map(lookup.conversation, lookup.records))
    assert [len(exchanges) for exchanges in conversations] == [2] * 40


def test_pages_to_label_are_drawn_or_named(vieval, judged, tmp_path):
    printed = vieval("label", judged, "--out", tmp_path / "label.html", "--n", "10").out
    assert "10 of 118 to label" in printed
    assert "5 from each" in printed
    named = ["theirs.parquet:33", "own/tig/mine/u5"]
    printed = vieval("label", judged, *named, "--out", tmp_path / "two.html").out
    assert "2 of 2 to label" in printed
    page = (tmp_path / "two.html").read_text()
    assert "a thing 33" in page
    assert "a thing 5" in page


def test_pairs_for_training_are_made_of_a_folder(vieval, judged, tmp_path):
    vieval("export", "--pairs", judged, "--out", tmp_path / "pairs.parquet")
    pairs = parquet.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert len(pairs) == 59
    rows = verdicts(judged)
    by_uid = {(row["image_model"], row["uid"]): row["scores"]["PQ"] for row in rows}
    for pair in pairs:
        best = max(by_uid[model, pair["uid"]] for model in MODELS)
        found = (pair["prompt"], pair["chosen_score"])
        assert found == (f"a thing {pair['uid'][1:]}", best)


def test_a_replaced_image_is_not_shown(vieval, judged, tmp_path):
    mine = tmp_path / "data" / "mine.parquet"
    table = parquet.read_table(mine)
    parquet.write_table(table.slice(1), mine, row_group_size=20)
    names = ("mine", "u5")
    records = open_results([judged]).records
    [record] = [r for r in records if (r.id.image_model, r.id.uid) == names]
    with pytest.raises(VievalError, match="changed since the plan was made"):
        open_results([judged]).sample(record)
    vieval("report", judged, "--out", tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    assert "changed since the plan was made" in text


def test_rows_of_one_uid_are_told_apart_and_tars_are_read(vieval, tmp_path):
    out = tmp_path / "out"
    text = '{"uid": "same", "prompt": "thing %d"}'
    pairs = [{"jpg": picture(n), "json": (text % n).encode()} for n in range(6)]
    write_tar(tmp_path / "a.tar", {f"x/{n}": pair for n, pair in enumerate(pairs)})
    vieval("score", tmp_path / "a.tar", "--judge", "sharpness", "--out", out)
    read = sample_shards(out)
    assert len({record.id for record in read.records}) == 6
    assert "5 verdicts with the same id as an earlier one" in read.notes[0]
    shown = [open_results([out]).sample(record) for record in read.records]
    texts = [sample.texts["prompt"] for sample in shown]
    assert texts == [f"thing {n}" for n in range(6)]


def test_an_incomplete_run_is_read_only_if_asked(vieval, server, tmp_path):
    data, out = write_parquet(tmp_path / "data"), tmp_path / "out"
    asked = ["--model", "fake", "--base-url", server.base_url]
    limits = split("--rows-per-shard 8 --budget 120")
    vieval("score", data, *asked, "--out", out, *limits, code=1)
    done = len(verdicts(out))
    assert 0 < done < 120
    line = vieval("rank", out, code=1).err
    assert re.search(rf"with verdicts on {done} of 120 rows; .*--partial", line)
    assert f"{done} of 120 rows" in vieval("rank", tmp_path / "out", "--partial").out


def test_a_damaged_file_of_verdicts_is_one_line(vieval, judged):
    file = sorted((judged / "verdicts").iterdir())[3]
    file.write_bytes(file.read_bytes()[:50] + b"x" * 200 + file.read_bytes()[250:])
    line = vieval("rank", judged, code=1).err
    assert str(file) in line
    assert "judge its rows again" in line


def test_contests_are_ranked_by_names_in_rows(vieval, server, tmp_path):
    data = tmp_path / "data"
    names = {"prompt": "a thing", "image_model": [*MODELS]}
    images = [[picture(2 * n), picture(2 * n + 1)] for n in range(10)]
    given = [{"uid": f"c{n}", "image": two, **names} for n, two in enumerate(images)]
    a_table(data / "a.parquet", given)
    asked = ["--model", "fake", "--base-url", server.base_url]
    vieval("score", data, *asked, *split(f"--judge pairwise --out {tmp_path}/out"))
    printed = vieval("rank", tmp_path / "out").out
    assert all(model in printed for model in MODELS)
    vieval("report", tmp_path / "out", "--out", tmp_path / "report")
    assert "data:image/webp" in (tmp_path / "report" / "report.html").read_text()


def test_prompts_of_one_group_count_as_one_as_in_a_file(vieval, tmp_path):
    path = tmp_path / "data"
    data = write_two_models(path, group=lambda prompt: f"template {prompt // 5}")
    answers = []
    for out in (tmp_path / "out", tmp_path / "v.jsonl"):
        vieval("score", data, "--judge", "sharpness", "--out", out)
        printed = vieval("rank", out).out
        assert "60 prompts in 12 groups (each counts as one)" in printed
        answers.append(printed.splitlines()[1])
    assert answers[0] == answers[1]
    page = tmp_path / "label.html"
    printed = vieval("label", tmp_path / "out", "--n", "40", "--out", page).out
    assert re.search(r"20 prompts in 1[0-2] groups \(each counts as one\)", printed)
