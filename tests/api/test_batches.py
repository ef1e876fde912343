"""A judge as the batch function of data engines, as docs/tutorials/millions.md has it."""

import pickle

import numpy as np

from tests.extras import needs
from tests.refusals import refuses
from tests.shard_runs import parquet, picture, rows
from vieval_plugin import Judge, JudgeBatches, verdict_batches

NO_STORE = {"store": {"use": False}}


def test_a_batch_has_the_scores_of_the_judge_and_failures_are_statuses(server):
    asked = {"model": "fake", "base_url": server.base_url, "options": NO_STORE}
    judge = pickle.loads(pickle.dumps(JudgeBatches("viescore", keep=True, **asked)))
    empty = {"bytes": None, "path": None}
    images = [{**empty, "bytes": picture(1)}, picture(2), "absent.png", empty, b"none"]
    batch = {"id": np.array([*"abcde"]), "image": images}
    batch["caption"] = ["one", "two", "three", "four", "five"]
    judged = judge(batch)
    assert judged["id"] is batch["id"]
    assert judged["status"] == ["ok", "ok", *["no_image"] * 3]
    assert "absent.png" in judged["reason"][2]
    assert np.isnan(judged["O"]).tolist() == [False, False, True, True, True]
    with Judge("viescore", **asked) as other:
        scores = other.score([picture(1), picture(2)], ["one", "two"])
    assert judged["O"][:2].tolist() == scores.tolist()
    assert judge({"image": [], "caption": []}).keys() >= {"SC", "PQ", "O", "status"}


def test_what_no_batch_can_be_judged_by_is_one_line():
    refuses("no column", JudgeBatches("sharpness"), {"caption": ["one"]})
    columns = {"outputs": "image"}
    refuses("unknown field", JudgeBatches, "sharpness", columns=columns)
    server = {"model": "fake", "base_url": "http://127.0.0.1:1/v1"}
    refuses("compares images", JudgeBatches, "pairwise", **server)


def test_a_server_that_is_away_is_an_exception_and_no_batch_of_failures():
    away = {"model": "fake", "base_url": "http://127.0.0.1:9/v1"}
    away |= {"patience": 0.2, "retries": 0}
    judge = JudgeBatches("viescore", **away, options=NO_STORE)
    refuses(".", judge, {"image": [picture(1)], "caption": ["one"]})


@needs("datasets")
def test_map_of_the_library_datasets(server, tmp_path):
    import datasets

    images = [{"bytes": picture(number), "path": None} for number in range(20)]
    prompts = [f"a thing {number}" for number in range(20)]
    made = datasets.Dataset.from_dict({"image": images, "prompt": prompts})
    made = made.cast_column("image", datasets.Image())
    # else `map` would write each picture anew
    made = made.cast_column("image", datasets.Image(decode=False))
    named = {"model": "fake", "base_url": server.base_url}
    judge = JudgeBatches("viescore", **named, options=NO_STORE)
    judged = made.map(judge, batched=True, batch_size=8)
    added = ["SC", "PQ", "O", "status", "reason", "rationale"]
    assert judged.column_names == ["image", "prompt", *added]
    assert set(judged["status"]) == {"ok"}
    # the images are the files that were given
    files = [image["bytes"] for image in judged["image"]]
    assert files == [image["bytes"] for image in images]


def test_verdicts_of_a_folder_of_shards_are_arrow_batches(vieval, tmp_path):
    import pyarrow

    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    table = pyarrow.Table.from_pylist(list(rows(range(40))))
    parquet.write_table(table, data / "a.parquet")
    flags = ("--judge", "sharpness", "--rows-per-shard", "8")
    vieval("score", data, *flags, "--out", out)
    batches = list(verdict_batches(out, ["row", "scores"]))
    assert len(batches) == 5
    table = pyarrow.Table.from_batches(batches)
    assert table["row"].to_pylist() == [*range(40)]
    assert table.column_names == ["row", "scores"]
