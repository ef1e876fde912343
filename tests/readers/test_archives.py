"""Archives: no image of a tar is lost silently or paired with another's text."""

import random
import re
import tarfile
from shlex import split

import pytest

from tests.builders import a_tar
from tests.refusals import refusal
from tests.shard_runs import parquet, picture, pyarrow, verdicts
from tests.tables import table
from vieval_plugin.readers.webdataset import tar_index, webdataset_table

JUDGE = ("--judge", "sharpness", "--max-failures", "1")


def write_members(path, members):
    """A tar of members in this order; content is a text or the number of a picture."""
    data = lambda what: picture(what) if isinstance(what, int) else what.encode()
    return a_tar(path, [(name, data(content)) for name, content in members])


def samples(path, **options):
    """The key, the text and the image columns of each sample."""
    index = tar_index(path, **options)
    table = webdataset_table(path, index.members)
    rows = []
    for _, cells in table.read(table.columns):
        images = sorted(name for name, cell in cells.items() if hasattr(cell, "data"))
        text = cells.get("text") or cells.get("prompt", "")
        rows.append((cells["key"], text, images))
    return rows


@pytest.mark.parametrize(*table("tar_shapes.jsonl"))
def test_samples_are_the_members_of_a_key(tmp_path, members, expected):
    found = samples(write_members(tmp_path / "a.tar", members))
    assert [list(sample) for sample in found] == expected


@pytest.mark.parametrize("columns", [(), ("5_0",)])
def test_a_fixed_plan_and_a_column_that_is_named_keep_the_first_dot(tmp_path, columns):
    path = write_members(tmp_path / "a.tar", [("v1.5_0.png", 0), ("v1.5_1.png", 1)])
    fixed = {"columns": columns} if columns else {"last_dot": False}
    assert samples(path, **fixed) == [("v1", "", ["5_0", "5_1"])]


def test_late_members_of_a_compressed_tar_are_refused_with_the_remedy(tmp_path):
    late = [("0.jpg", 0), ("1.jpg", 1), ("0.txt", "a"), ("1.txt", "b")]
    path = write_members(tmp_path / "a.tar.gz", late)
    assert re.search(r"0\.txt .* tar --sort=name", refusal(tar_index, path))


def test_hidden_images_are_counted_and_never_complete(vieval, tmp_path):
    members = [(f"v1.5_{number}.png", number) for number in range(5)]
    members += [("v1.txt", "a"), ("v2.png", 9), ("v2.txt", "b")]
    members.insert(0, members.pop(5))
    write_members(tmp_path / "data" / "a.tar", members)
    out = tmp_path / "out"
    printed = vieval("score", tmp_path / "data", *JUDGE, "--out", out, code=1)
    assert "a.tar: 5 images not judged (first: column '5_0')" in printed.err
    assert "rename the members" in printed.err
    assert "incomplete: " in printed.err
    assert "wrote" not in printed.out
    verified = vieval("shards", out, "--verify", code=1)
    assert "5 images" in verified.err
    assert "complete:" not in verified.out
    shown = vieval("filter", out, "--where", "PQ >= 0", "--out", tmp_path / "kept").out
    assert "5 images" in shown


def test_a_column_after_the_first_samples_is_read(vieval, tmp_path):
    keys = [f"{number:03}" for number in range(110)]
    members = [(f"{key}.json", '{"caption": "a thing"}') for key in keys]
    members += [(f"{key}.jpg", number) for number, key in enumerate(keys)]
    members += [("109.mask.png", 5), ("109.txt", "x")]
    write_members(tmp_path / "data" / "a.tar", members)
    vieval("score", tmp_path / "data", *JUDGE, "--out", tmp_path / "out")
    assert "complete" in vieval("shards", tmp_path / "out", "--verify").out


def test_the_last_dot_goes_through_run_filter_and_a_second_run(vieval, tmp_path):
    members = [(f"cfg3.5_{number}.png", number) for number in range(6)]
    members += [(f"cfg3.5_{number}.txt", "a text") for number in range(6)]
    write_members(tmp_path / "data" / "a.tar", members)
    printed = vieval("score", tmp_path / "data", *JUDGE, "--out", tmp_path / "out")
    assert "keys end at the last dot of each name" in printed.err
    found = [row["uid"] for row in verdicts(tmp_path / "out")]
    assert found == [f"cfg3.5_{number}" for number in range(6)]
    vieval("filter", tmp_path / "out", "--where", "row < 2", "--out", tmp_path / "few")
    with tarfile.open(tmp_path / "few" / "a.tar") as tar:
        found = {name.removeprefix("cfg3.5_") for name in tar.getnames()}
    assert found == set(split("0.png 0.txt 0.vieval.json 1.png 1.txt 1.vieval.json"))
    vieval("filter", tmp_path / "out", "--where", "PQ >= 0", "--out", tmp_path / "kept")
    vieval("score", tmp_path / "kept", *JUDGE, "--out", tmp_path / "again")
    digests = lambda name: {row["digest"] for row in verdicts(tmp_path / name)}
    assert digests("out") == digests("again")
    assert len(digests("out")) == 6


def test_a_folder_of_img2dataset_is_read_as_its_tars(vieval, tmp_path):
    data = tmp_path / "data"
    for shard in ("00000", "00001"):
        keys = [f"{shard}{number:04}" for number in range(3)]
        members = [(f"{key}.jpg", number) for number, key in enumerate(keys)]
        members += [(f"{key}.txt", "a text") for key in keys]
        write_members(data / f"{shard}.tar", members)
        urls = pyarrow.table({"url": ["http://host/a.jpg"] * 3, "key": keys})
        parquet.write_table(urls, data / f"{shard}.parquet")
        (data / f"{shard}_stats.json").write_text("{}")
    vieval("score", data, *JUDGE, "--out", tmp_path / "out")
    found = verdicts(tmp_path / "out")
    assert [row["status"] for row in found] == ["ok"] * 6
    assert {row["file"] for row in found} == {"00000.tar", "00001.tar"}
    refused = vieval("score", data, *JUDGE, "--out", tmp_path / "v.jsonl", code=1)
    assert "require a folder of shards" in refused.err


def members_of(seed):
    """Random members of a tar: gaps, dots, repeated keys, late members, foreign files."""
    chance = random.Random(seed)
    numbers = sorted(chance.sample(range(40), 8))
    stems = [f"{number:0{chance.choice([1, 3])}}" for number in numbers]
    style = chance.choice(["{}", "v1.5_{}", "x/{}", "a.b.{}", "a.b/{}"])
    members = []
    for position, stem in enumerate(stems):
        key = style.format(stem)
        number = 100 * seed + position
        pair = [(f"{key}.png", number), (f"{key}.txt", f"text {number}")]
        members += pair if chance.random() < 0.9 else pair[:1]
    if chance.random() < 0.5:  # appended once more
        first, number = members[0][0], 100 * seed + 50
        text = (first.replace(".png", ".txt"), f"text {number}")
        members += [(first, number), text]
    else:
        chance.shuffle(members)
    names = (f"._{stems[0]}.png", "__MACOSX/0.png", "README", "notes.md", ".DS_Store")
    foreign = [(name, "x") for name in names]
    return members + chance.sample(foreign, chance.randrange(5))


@pytest.mark.parametrize("seed", range(40))
def test_no_image_is_lost_or_paired_with_another_text(tmp_path, seed):
    path = write_members(tmp_path / "a.tar", members_of(seed))
    with tarfile.open(path) as tar:  # counted without the reader
        names = [name for name in tar.getnames() if name.endswith(".png")]
    names = [name for name in names if not name.startswith(("._", "__MACOSX"))]
    index = tar_index(path)
    assert sum(index.images.values()) == len(names)
    numbers = {picture(n): n for n in range(100 * seed, 100 * seed + 100)}
    table = webdataset_table(path, index.members)
    seen = []
    for _, cells in table.read(table.columns):
        images = {name: cell for name, cell in cells.items() if hasattr(cell, "data")}
        seen += [numbers[cell.data] for cell in images.values()]
        if set(images) == {"image"} and "text" in cells:
            assert cells["text"] == f"text {numbers[images['image'].data]}"
    assert len(seen) == len(set(seen)) == len(names)
