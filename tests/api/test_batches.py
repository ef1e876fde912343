"""A judge as the batch function of data engines, as docs/tutorials/millions.md has it."""

import pickle

import numpy as np
import pytest

from tests.extras import needs
from tests.shard_runs import parquet, picture, rows
from vieval_plugin import Judge, JudgeBatches, VievalError, verdict_batches

NO_STORE = {"store": {"use": False}}


def test_a_batch_has_the_scores_of_the_judge_and_failures_are_statuses(server):
    asked = {"model": "fake", "base_url": server.base_url, "options": NO_STORE}
    judge = pickle.loads(pickle.dumps(JudgeBatches("viescore", keep=True, **asked)))
    batch = {
        "id": np.array(["a", "b", "c", "d", "e"]),
        "image": [
            {"bytes": picture(1), "path": None},
            picture(2),
            "absent.png",
            {"bytes": None, "path": None},
            b"none",
        ],
        "caption": ["one", "two", "three", "four", "five"],
    }
    judged = judge(batch)
    assert judged["id"] is batch["id"]
    assert judged["status"] == ["ok", "ok", *["no_image"] * 3]
    assert "absent.png" in judged["reason"][2]
    assert np.isnan(judged["O"]).tolist() == [False, False, True, True, True]
    with Judge("viescore", **asked) as other:
        assert (
            judged["O"][:2].tolist()
            == other.score([picture(1), picture(2)], ["one", "two"]).tolist()
        )
    assert judge({"image": [], "caption": []}).keys() >= {"SC", "PQ", "O", "status"}


def test_what_no_batch_can_be_judged_by_is_one_line():
    with pytest.raises(VievalError, match="no column"):
        JudgeBatches("sharpness")({"caption": ["one"]})
    with pytest.raises(VievalError, match="unknown field"):
        JudgeBatches("sharpness", columns={"outputs": "image"})
    with pytest.raises(VievalError, match="compares images"):
        JudgeBatches("pairwise", model="fake", base_url="http://127.0.0.1:1/v1")


def test_a_server_that_is_away_is_an_exception_and_no_batch_of_failures():
    judge = JudgeBatches(
        "viescore", model="fake", base_url="http://127.0.0.1:9/v1", options=NO_STORE
    )
    with pytest.raises(VievalError):
        judge({"image": [picture(1)], "caption": ["one"]})


@needs("datasets")
def test_map_of_the_library_datasets(server, tmp_path):
    import datasets

    images = [{"bytes": picture(number), "path": None} for number in range(20)]
    made = datasets.Dataset.from_dict(
        {"image": images, "prompt": [f"a thing {number}" for number in range(20)]}
    )
    made = made.cast_column("image", datasets.Image())
    made = made.cast_column(
        "image", datasets.Image(decode=False)
    )  # else `map` would write each picture anew
    judge = JudgeBatches(
        "viescore", model="fake", base_url=server.base_url, options=NO_STORE
    )
    judged = made.map(judge, batched=True, batch_size=8)
    assert judged.column_names == [
        "image",
        "prompt",
        "SC",
        "PQ",
        "O",
        "status",
        "reason",
        "rationale",
    ]
    assert set(judged["status"]) == {"ok"}
    # the images are the files that were given
    assert [image["bytes"] for image in judged["image"]] == [
        image["bytes"] for image in images
    ]


def test_verdicts_of_a_folder_of_shards_are_arrow_batches(vieval, tmp_path):
    import pyarrow

    (tmp_path / "data").mkdir()
    parquet.write_table(
        pyarrow.Table.from_pylist(list(rows(range(40)))),
        tmp_path / "data" / "a.parquet",
    )
    vieval(
        "score",
        tmp_path / "data",
        "--judge",
        "sharpness",
        "--out",
        tmp_path / "out",
        "--rows-per-shard",
        "8",
    )
    batches = list(verdict_batches(tmp_path / "out", ["row", "scores"]))
    assert len(batches) == 5
    table = pyarrow.Table.from_batches(batches)
    assert table["row"].to_pylist() == [*range(40)]
    assert table.column_names == ["row", "scores"]
