"""A data set judged into a folder of shards: what is written, resumed, refused, and never lost."""

import gzip
import io
import os
import re
import signal
import socket
import tarfile
from dataclasses import replace
from pathlib import Path
from shlex import split

import PIL.Image
import pytest

from tests.fake_server import FakeServer, Fault
from tests.local_site import answering
from tests.refusals import refuses
from tests.shard_runs import (
    arguments,
    ended,
    files_in,
    less_costs,
    metadata,
    parquet,
    picture,
    pyarrow,
    rows,
    start,
    verdicts,
    write_parquet,
    write_tar,
)
from tests.work import until
from vieval_plugin import __version__
from vieval_plugin.config import Config
from vieval_plugin.run.shards.passes import part_of
from vieval_plugin.run.shards.start import MOST_STORED, choose_store

pytestmark = pytest.mark.usefixtures("no_store")
SMALL = ("--rows-per-shard", "8")
EVERY = [f"u{number}" for number in range(120)]


def uids(out):
    return [row["uid"] for row in verdicts(out)]


def statuses(out):
    return {row["status"] for row in verdicts(out)}


def write_rows(folder, given):
    folder.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(given), folder / "a.parquet")
    return folder


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def command(data, out, server):
    """The command that judges the data set into the folder, eight rows a shard."""
    return arguments(data, out, server, *SMALL)


def test_each_row_has_its_verdict(vieval, server, command, out):
    printed = vieval(*command)
    found = verdicts(out)
    assert [(row["uid"], row["status"]) for row in found] == [(u, "ok") for u in EVERY]
    assert [row["row"] for row in found] == [*range(40)] * 3
    assert (found[0]["scores"].keys(), found[0]["calls"]) == ({"SC", "PQ", "O"}, 2)
    assert found[0]["tokens"]["input"] > 0
    assert found[0]["seconds"] > 0
    assert {score["question"] for score in found[0]["sub_scores"]}
    # row groups of 20 rows are two shards of 8 rows and one of 4
    counted = sorted(metadata(path)["verdicts"] for path in files_in(out))
    assert counted == [4] * 6 + [8] * 12
    assert "18 of 18 done" in printed.out
    assert not list((out / "under_way").iterdir())
    # and the questions that find out what a server can
    assert server.stats()["requests"] <= 2 * 120 + 2


def test_other_inputs_and_options_are_refused(vieval, server, data, command, out):
    vieval(*command)
    asked = server.stats()["requests"]
    others = {
        "--temperature 1": "temperature",
        "--rows-per-shard 9": "rows_per_shard 8, now 9",
        "--judge vqascore": "judge",
    }
    for flags, difference in others.items():
        assert difference in vieval(*command, *split(flags), code=1).err
    plan = out / "plan.json"
    text = plan.read_text()
    older = text.replace(f'"version": "{__version__}"', '"version": "0.0.9"')
    plan.write_text(older)
    vieval(*command)
    plan.write_text(older.replace('"readers": "', '"readers": "0'))
    assert "reads replies differently" in vieval(*command, code=1).err
    plan.write_text(text)
    write_parquet(data / "more", 1)
    assert "--extend" in vieval(*command, code=1).err
    assert server.stats()["requests"] == asked
    old = {path: path.stat().st_mtime_ns for path in files_in(out)}
    vieval(*command, "--extend")
    assert {path: path.stat().st_mtime_ns for path in old} == old
    assert (len(verdicts(out)), len(files_in(out))) == (160, len(old) + 6)


def test_another_limit_is_another_run(vieval, server, data, tmp_path, out):
    file = data / "part-0.parquet"
    command = arguments(file, out, server, *SMALL)
    vieval(*command, "--limit", "20")
    asked = server.stats()["requests"]
    said = vieval(*command, code=1).err
    refused = "contains a run started with --limit 20, now without --limit; use the"
    assert refused in said
    vieval(*command, "--limit", "20")
    assert server.stats()["requests"] == asked
    limited = "of 20, limited to the first 20 rows"
    assert f"rows: 20 {limited}\n" in vieval("shards", out).out
    next((out / "verdicts").iterdir()).unlink()
    counted = f"{limited} (rows are counted when their shard is done)"
    assert counted in vieval("shards", out).out
    vieval(*command, "--limit", "20")
    verified = vieval("shards", out, "--verify").out
    assert "complete: each of the first 20 rows has exactly one verdict" in verified
    whole = arguments(file, tmp_path / "whole", server, *SMALL)
    vieval(*whole)
    said = vieval(*whole, "--limit", "20", code=1).err
    assert "run started without --limit, now with --limit 20" in said


def test_stored_answers_are_no_calls(vieval, server, data, tmp_path):
    options = tmp_path / "options.yaml"
    options.write_text(f"store: {{path: {tmp_path / 'replies.sqlite'}}}\n")
    first = vieval(*arguments(data, tmp_path / "first", server, *SMALL)).out
    again = vieval(*arguments(data, tmp_path / "again", server, *SMALL)).out
    fresh = vieval(*arguments(data, tmp_path / "fresh", server, *SMALL, "--fresh")).out
    assert "model answers: 240 (from the cache: 240), tokens" in again
    cached = " rows per second; 240 results came from the cache, so new calls are slower; use"
    assert re.search(f"^rate: .*{cached} --fresh", again, re.MULTILINE)
    rate = r"^rate: ([0-9.,]+) rows and ([0-9.,]+) calls per second$"
    for printed in (first, fresh):
        assert "from the cache" not in printed
        rates = re.search(rate, printed, re.MULTILINE).groups()
        per_row, per_call = (float(number.replace(",", "")) for number in rates)
        assert per_call == pytest.approx(2 * per_row, abs=0.2)


def test_a_file_that_was_replaced_is_refused(vieval, data, command):
    vieval(*command, "--budget", "20", code=1)
    table = pyarrow.Table.from_pylist(list(rows(range(500, 540))))
    parquet.write_table(table, data / "part-1.parquet", row_group_size=20)
    said = vieval(*command, code=1).err
    assert "part-1.parquet has changed since the plan was made" in said


@pytest.mark.parametrize("form", ["bytes", "path"])
def test_images_are_bytes_or_paths_too(vieval, server, data, tmp_path, form):
    other = write_parquet(tmp_path / form, 1, form="bytes")
    if form == "path":
        names = [f"{number}.jpg" for number in range(40)]
        for number, name in enumerate(names):
            (other / name).write_bytes(picture(number))
        table = parquet.read_table(other / "part-0.parquet")
        table = table.set_column(2, "image", pyarrow.array(names))
        parquet.write_table(table, other / "part-0.parquet", row_group_size=20)
    vieval(*arguments(data / "part-0.parquet", tmp_path / "structs", server))
    vieval(*arguments(other, tmp_path / "others", server))
    found = less_costs(verdicts(tmp_path / "others"))
    assert found == less_costs(verdicts(tmp_path / "structs"))


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_webdataset_tars(vieval, server, tmp_path, name):
    about = b'{"image_model": "mine", "prompt": "a thing %d"}'
    samples = {
        f"x/{number}": {"output.jpg": picture(number), "json": about % number}
        for number in range(30)
    }
    path = write_tar(tmp_path / "data" / name, samples)
    vieval(*arguments(path, tmp_path / "out", server, *SMALL))
    found = verdicts(tmp_path / "out")
    assert [row["uid"] for row in found] == [*samples]
    assert {(row["status"], row["image_model"]) for row in found} == {("ok", "mine")}
    assert len(files_in(tmp_path / "out")) == (1 if name.endswith("gz") else 4)


def labelled(number=24):
    """Samples of a tar with a caption and a source."""
    text = b'{"caption": "a thing", "source": "laion"}'
    return {str(n): {"jpg": picture(n), "json": text} for n in range(number)}


def captioned(number=40, text=b"a thing"):
    """Samples of a tar with a text."""
    return {str(n): {"jpg": picture(n), "txt": text} for n in range(number)}


def test_a_source_of_plain_words_makes_no_edit_of_a_tar(vieval, tmp_path, out):
    path = write_tar(tmp_path / "a.tar", labelled())
    printed = vieval("score", path, "--judge", "sharpness", "--out", out)
    found = {(row["status"], row["kind"]) for row in verdicts(out)}
    assert found == {("ok", "tig")}
    assert "ignoring column 'source', which does not hold images (for" in printed.err


def test_a_misread_run_leaves_nothing(vieval, tmp_path, out):
    path = write_tar(tmp_path / "a.tar", labelled())
    command = ("score", path, "--judge", "sharpness", "--out", out)
    err = vieval(*command, "--columns", "source=source", code=1).err
    said = (
        "cannot judge any of the first 20 rows, so the run stopped; sample 1: missing"
    )
    assert f"{said} source image" in err
    assert not out.exists()
    vieval(*command)
    assert len(verdicts(out)) == 24


@pytest.mark.parametrize("damage", ["a header", "the end"])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_a_damaged_tar_is_refused(vieval, tmp_path, name, damage, out):
    path = write_tar(tmp_path / name, labelled(4))
    with tarfile.open(path) as tar:
        offset = tar.getmembers()[3].offset
    packed = name.endswith("gz")
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    rest = b"Z" * 512 + content[offset + 512 :] if damage == "a header" else b""
    damaged = content[:offset] + rest
    path.write_bytes(gzip.compress(damaged) if packed else damaged)
    err = vieval("score", path, "--judge", "sharpness", "--out", out, code=1).err
    assert f"{path}: not a readable tar file" in err
    assert not out.exists()


@pytest.mark.parametrize(
    "named", ["tars", "tars/a.tar", "tars/*.tar", "data/*.parquet"]
)
def test_a_folder_is_planned_by_its_index(vieval, data, tmp_path, monkeypatch, named):
    write_tar(tmp_path / "tars" / "a.tar", captioned())
    (tmp_path / "tars" / "README.md").write_text("about these files")
    monkeypatch.chdir(tmp_path)
    earlier = sorted(tmp_path.rglob("*"))
    planned = vieval("score", named, "--plan", "--judge", "sharpness").out
    count = 40 if "tar" in named else 120
    answer = f"plan: sharpness, {count} samples: no calls"
    assert planned.startswith(f"{answer}\npilot of 8 (seed 0): ok 8\n")
    assert sorted(tmp_path.rglob("*")) == earlier
    for out in ([], ["--out", "verdicts.jsonl"]):
        said = vieval("score", named, *out, code=1).err
        assert said.endswith("a folder of shards; pass --out FOLDER\n")


def test_the_plan_of_a_tar_is_what_judging_it_costs(vieval, server, tmp_path, out):
    command = arguments(write_tar(tmp_path / "a.tar", captioned()), out, server)
    planned = vieval(*command, "--plan").out
    before = server.stats()["requests"]
    vieval(*command)
    assert f"calls: {server.stats()['requests'] - before}\n" in planned


def test_a_tar_that_was_replaced_is_refused(vieval, server, tmp_path, out):
    path = write_tar(tmp_path / "a.tar", captioned(20, b"old"))
    command = arguments(path, out, server, *SMALL)
    vieval(*command, "--budget", "20", code=1)
    write_tar(path, dict(reversed(captioned(20, b"new").items())))
    assert "changed since it was indexed" in vieval(*command, code=1).err
    assert len(verdicts(out)) == 8


def test_bad_rows_are_rows_with_their_status(vieval, server, tmp_path, out):
    given = list(rows(range(24)))
    # 10,000 x 10,001 pixels, as the header of a PNG says
    sizes = b"\x00\x00\x27\x10\x00\x00\x27\x11\x08\x02\x00\x00\x00"
    large = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + sizes
    given[3]["image"] = None
    given[5]["image"] = {"bytes": b"no image at all", "path": None}
    given[7]["image"] = {"bytes": None, "path": "absent.jpg"}
    given[9]["uid"] = "u8"
    given[11]["image"] = {"bytes": large, "path": None}
    given[13]["prompt"] = None
    vieval(*arguments(write_rows(tmp_path / "data", given), out, server))
    found = verdicts(out)
    bad = {row["row"]: row["status"] for row in found if row["status"] != "ok"}
    assert bad == {**dict.fromkeys((3, 5, 7, 11), "no_image"), 13: "not_applicable"}
    assert found[13]["reason"] == "the sample has no prompt text"
    assert "absent.jpg" in found[7]["reason"]
    expected = [u if u != "u9" else "u8" for u in EVERY[:24]]
    assert [row["uid"] for row in found] == expected


def test_an_unreadable_row_group_is_left(vieval, data, command, out):
    path = data / "part-1.parquet"
    group = parquet.ParquetFile(path).metadata.row_group(1)
    content = bytearray(path.read_bytes())
    for column in map(group.column, range(group.num_columns)):
        begin = column.dictionary_page_offset or column.data_page_offset
        size = column.total_compressed_size
        content[begin : begin + size] = os.urandom(size)
    path.write_bytes(content)
    printed = vieval(*command, code=1)
    assert "part-1.parquet: row group 1, rows 20 to 27" in printed.err
    assert len(verdicts(out)) == 100
    assert "15 of 18 done" in printed.out


def test_what_cannot_be_done_is_told_first(vieval, server, data, out):
    out.write_text("a file")
    command = arguments(data, out, server)
    assert "cannot write" in vieval(*command, code=1).err
    out.unlink()
    table = pyarrow.table({"uid": ["1"], "prompt": ["x"]})
    parquet.write_table(table, data / "part-9.parquet")
    told = vieval(*command, code=1).err
    assert "part-9.parquet: no column 'image'" in told
    assert "; all files must have the columns of " in told
    assert server.stats()["requests"] == 0


FULL = """import resource
from vieval_plugin.run.shards import worker
judge = worker.ShardWorker.work
def full(self, passes):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    return judge(self, passes)
worker.ShardWorker.work = full
"""


def test_a_full_disk_leaves_no_half_shard(vieval, server, data, out):
    command = arguments(data, out, server, "--rows-per-shard", "20")
    vieval(*command, "--budget", "50", code=1)
    kept = files_in(out)
    assert len(kept) == 1
    assert "cannot write" in ended(start(*command, code=FULL), 1)
    assert files_in(out) == kept
    assert not list((out / "verdicts").glob("*.part"))
    vieval(*command)
    assert len(verdicts(out)) == 120


def test_a_budget_that_no_shard_fits_is_to_be_raised(vieval, command):
    said = vieval(*command, "--budget", "7", code=1).err  # a shard of 4 rows takes 8
    assert "rows 0 to 7: its calls exceed --budget 7 per worker" in said
    assert "raise --budget, or lower --rows-per-shard with another --out" in said
    again = "run the same command again"
    assert again not in said
    assert again in vieval(*command, "--budget", "8", code=1).err


def test_at_most_three_shards_are_open(data, out):
    faults = lambda number, body: Fault("hang") if number == 6 else None
    with FakeServer(faults=faults) as server:
        more = split("--timeout 2 --num-concurrent 8")
        process = start(*arguments(data, out, server, *SMALL, *more))
        stats = server.stats
        until(lambda: stats()["in_flight"] == 1 and stats()["requests"] > 30)
        assert 1 <= len(list((out / "under_way").iterdir())) <= 3
        ended(process)
    assert len(verdicts(out)) == 120


def test_failing_shards_are_not_written(vieval, data, out):
    broken = [True]
    fault = lambda number, body: Fault("overlong") if broken and number > 60 else None
    with FakeServer(faults=fault) as server:
        command = arguments(data, out, server, *SMALL)
        assert "3 shards in a row were not written" in vieval(*command, code=1).err
        assert server.stats()["requests"] < 220
        assert 0 < len(verdicts(out)) < 60
        broken.clear()
        vieval(*command)
    assert len(verdicts(out)) == 120


@pytest.mark.parametrize("status", ["parse_failure", "refusal"])
def test_unreadable_replies_are_failures(vieval, data, status, out):
    filtered = {"faults": lambda number, body: Fault("content_filter")}
    answers = filtered if status == "refusal" else {}
    with FakeServer(reply=lambda chat: "I cannot say.", **answers) as server:
        said = vieval(*arguments(data, out, server, *SMALL), code=1).err
        assert server.stats()["requests"] < 200
    failed = (
        rf"(8 of 8|4 of 4) rows failed, more than --max-failures 0.2 .*\({status}: "
    )
    assert re.search(failed, said)
    assert "3 shards in a row were not written" in said
    assert "or raise --max-failures, then run the same command to resume" in said
    assert not verdicts(out)


def test_a_run_that_scores_no_row_exits_with_1_and_says_so(vieval, data, out):
    again = split(f"shards {out} --rejudge parse_failure --model fake --base-url")
    none = "no row could be scored (parse_failure 120)"
    with FakeServer(reply=lambda chat: "I cannot say.") as server:
        command = arguments(data, out, server, *SMALL, "--max-failures", "1")
        for _ in range(2):
            said = vieval(*command, code=1).err
            assert f"vieval: {none} (see the reasons above)" in said
        assert "not written" not in vieval(*again, server.base_url).err
    printed = vieval("shards", out, "--verify").out
    complete = "complete: each row has exactly one verdict"
    assert f"{none}, but the folder is {complete}" in printed
    with FakeServer() as server:
        vieval(*again, server.base_url)
    assert complete in vieval("shards", out, "--verify").out.splitlines()[-1]


def test_a_column_that_is_no_text_is_named(vieval, server, data, tmp_path):
    path = data / "part-0.parquet"
    table = parquet.read_table(path).append_column("aesthetic", [[0.5] * 40])
    parquet.write_table(table, path)
    for out in ("out", "out.jsonl"):
        named = (tmp_path / out, server, "--columns", "prompt=aesthetic")
        said = vieval(*arguments(path, *named), code=1).err
        wrong = "part-0.parquet: column 'aesthetic' must hold text, got double; use"
        assert f"{wrong} --columns prompt=COLUMN to choose another" in said
    assert server.stats()["requests"] == 0


@pytest.mark.parametrize("is_dead", [True, False], ids=["dead", "expired key"])
def test_a_server_that_is_lost_ends_the_run(vieval, data, monkeypatch, out, is_dead):
    monkeypatch.setenv("OPENAI_API_KEY", "old-key-of-yesterday")
    with FakeServer(api_key="old-key-of-yesterday", latency=0.005) as server:
        more = split("--num-concurrent 4 --patience 1")
        command = arguments(data, out, server, *SMALL, *more)
        process = start(*command)
        until(lambda: len(files_in(out)) > 2)
        if is_dead:
            server.die(60)
            assert "has not answered for" in ended(process, 1)
        else:
            server.settings = replace(server.settings, api_key="new-key-of-today")
            ended(process, 1)
            monkeypatch.setenv("OPENAI_API_KEY", "new-key-of-today")
        assert statuses(out) == {"ok"}
        assert len(verdicts(out)) < 120
        if not is_dead:
            vieval(*command)
            assert statuses(out) == {"ok"}
    assert "key-of" not in (out / "plan.json").read_text()


DYING = """import os
rename, count = os.replace, [0]
def dying(a, b):
    count[0] += str(b).endswith('.parquet')
    if count[0] == 3:
        os.kill(os.getpid(), 9)
    rename(a, b)
os.replace = dying
"""


def test_a_killed_worker_leaves_no_shard(vieval, command, out):
    ended(start(*command, code=DYING), -9)
    assert len(files_in(out)) == 2
    assert list((out / "verdicts").glob("*.part"))
    vieval(*command)
    assert uids(out) == EVERY


def test_two_drivers_at_once_share_the_work(data, out):
    with FakeServer(latency=0.02) as server:
        command = arguments(data, out, server, *SMALL, "--num-concurrent", "4")
        for process in [start(*command), start(*command)]:
            ended(process)
        asked = server.stats()["requests"]
    assert uids(out) == EVERY
    # twice at most what both had open at the end
    assert asked <= 2 * (120 + 2 * 3 * 8) + 4


def test_verify_says_what_is_wrong(vieval, data, command, out):
    def verified(code=1):
        printed = vieval("shards", out, "--verify", code=code)
        return printed.err if code else printed.out

    vieval(*command, "--budget", "100", code=1)
    assert re.search(r"no verdicts in .* shards \(first: part-", verified())
    vieval(*command)
    complete = "complete: each row has exactly one verdict; compared 18 images"
    assert complete in verified(code=0)
    first, second, *_ = files_in(out)
    (out / "verdicts" / f"{'0' * 24}.parquet").write_bytes(first.read_bytes())
    kept = parquet.read_table(second)
    twice = pyarrow.concat_tables([kept.slice(1), kept.slice(1, 1)])
    parquet.write_table(twice, second)
    assert "contains the same row several times" in verified()
    (data / "part-1.parquet").write_bytes((data / "part-0.parquet").read_bytes())
    err = verified()
    assert "part-1.parquet: changed since the plan was made; restore it, or" in err
    assert "--out" not in err


def test_verify_finds_an_image_that_is_another(vieval, server, tmp_path, out):
    names = [f"{number}.jpg" for number in range(3)]
    rows = zip("aab", names, strict=True)
    given = [{"uid": uid, "image": name, "prompt": "x"} for uid, name in rows]
    folder = write_rows(tmp_path / "data", given)
    for number, name in enumerate(names):
        (folder / name).write_bytes(picture(number))
    vieval(*arguments(folder, out, server, "--rows-per-shard", "1"))
    assert "2 rows have the same uid" in vieval("shards", out, "--verify").out
    (folder / "1.jpg").write_bytes(picture(9))
    said = vieval("shards", out, "--verify", code=1).err
    assert "a.parquet: the image of row 1 has changed" in said


def test_rejudge_asks_only_about_rows_of_these_statuses(vieval, data, out):
    broken = [True]

    def faults(number, body):
        is_broken = broken and "thing 7" in str(body["messages"])
        return Fault("overlong") if is_broken else None

    with FakeServer(faults=faults) as server:
        command = arguments(data, out, server, *SMALL, "--max-failures", "1")
        vieval(*command)
        before = verdicts(out)
        failed = [row["uid"] for row in before if row["status"] == "api_error"]
        assert failed == ["u7", *EVERY[70:80]]
        broken.clear()
        server.reset_stats()
        vieval("shards", out, "--compact")
        assert len(files_in(out)) == 1
        vieval("shards", out, "--rejudge", "api_error,tool_error")
        assert server.stats()["requests"] <= 2 * len(failed) + 2
        vieval("shards", out, "--verify")
    found = verdicts(out)
    assert [(row["uid"], row["status"]) for row in found] == [(u, "ok") for u in EVERY]
    rows = zip(before, found, strict=True)
    assert all(old == new for old, new in rows if old["uid"] not in failed)


def test_addresses_are_fetched_from_allowed_hosts(vieval, server, tmp_path, out):
    fetched = []

    def answer(path, body, headers):
        fetched.append(path)
        number = int(path.strip("/").partition(".")[0])
        return (404, {}, b"") if number == 5 else (200, {}, picture(number))

    with answering(answer) as host:
        place = write_parquet(tmp_path / "bytes", 1, 24)
        addresses = [f"http://{host}/{number}.jpg" for number in range(24)]
        table = parquet.read_table(place / "part-0.parquet")
        (tmp_path / "data").mkdir()
        table = table.set_column(2, "image", pyarrow.array(addresses))
        parquet.write_table(table, tmp_path / "data" / "part-0.parquet")
        more = (*SMALL, "--max-failures", "1", "--allow-urls")
        vieval(*arguments(tmp_path / "data", out, server, *more, host))
        found = verdicts(out)
        failed = {row["row"]: row["reason"] for row in found if row["status"] != "ok"}
        assert ([*failed], len(fetched)) == ([5], 24)
        assert "404" in failed[5]
        assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("fetched"))
        private = tmp_path / "private"
        vieval(*arguments(tmp_path / "data", private, server, *more, "*"), code=1)
        assert (statuses(private), len(fetched)) == ({"tool_error"}, 24)
    vieval(*arguments(place, tmp_path / "same", server, *SMALL))
    for one, two in zip(found, verdicts(tmp_path / "same"), strict=True):
        if one["row"] != 5:
            assert (one["digest"], one["scores"]) == (two["digest"], two["scores"])


def test_lists_of_outputs_are_contests(vieval, server, tmp_path):
    given = [
        {
            "uid": f"c{number}",
            "prompt": f"a thing {number}",
            "image": [picture(2 * number), picture(2 * number + 1)],
            "image_model": ["mine", "theirs"],
        }
        for number in range(10)
    ]
    given[4]["image"] = [picture(8)]
    data = write_rows(tmp_path / "data", given)
    for judge in ("pairwise", "viescore"):
        more = ("--max-failures", "1", "--judge", judge)
        vieval(*arguments(data, tmp_path / judge, server, *more))
    voted, scored = verdicts(tmp_path / "pairwise"), verdicts(tmp_path / "viescore")
    assert [row["uid"] for row in voted] == [f"c{number}" for number in range(10)]
    assert [row["status"] for row in scored].count("ok") == 9
    assert "must have the same length" in voted[4]["reason"]
    orders = {vote["order"] for vote in voted[0]["choice"]["votes"]}
    assert orders == {"forward", "reverse"}
    assert [len(row["choice"]["scores"]) for row in scored if row["choice"]] == [2] * 9
    assert scored[0]["choice"]["scores"][1]["SC"] is not None


def test_a_file_of_the_datasets_library(vieval, server, tmp_path, out):
    datasets = pytest.importorskip("datasets")
    images = [PIL.Image.open(io.BytesIO(picture(number))) for number in range(12)]
    columns = {"caption": [f"a thing {n}" for n in range(12)], "image": images}
    made = datasets.Dataset.from_dict(columns).cast_column("image", datasets.Image())
    name = "train-00000-of-00001.parquet"
    (tmp_path / "data").mkdir()
    made.to_parquet(tmp_path / "data" / name)
    vieval(*arguments(tmp_path / "data", out, server))
    assert uids(out) == [f"{name}:{number}" for number in range(12)]
    assert statuses(out) == {"ok"}


@pytest.mark.parametrize("more", [[], ["--processes", "2"]])
def test_ctrl_c_ends_a_run_in_order(data, more, out):
    with FakeServer(latency=0.05) as server:
        command = arguments(data, out, server, *SMALL, "--num-concurrent", "4", *more)
        process = start(*command)
        until(lambda: len(files_in(out)) > 2)
        process.send_signal(signal.SIGINT)
        ended(process, 130)
        assert not list((out / "under_way").iterdir())
        ended(start(*command))
    assert len(verdicts(out)) == 120


def test_many_rows_are_stored_only_where_the_options_say_so(tmp_path):
    assert choose_store(Config(), MOST_STORED, is_shared=False).store.use
    assert not choose_store(Config(), MOST_STORED + 1, is_shared=False).store.use
    asked_for = Config(store={"use": True, "path": tmp_path / "replies.sqlite"})
    kept = choose_store(asked_for, MOST_STORED + 1, is_shared=True).store
    name = f"replies-{socket.gethostname()}.sqlite"
    assert (kept.use, kept.path) == (True, tmp_path / name)


def test_parts_share_the_row_groups(vieval, data, tmp_path, server):
    command = arguments(data, tmp_path / "out", server, *SMALL)
    for part in ("1/3", "3/3", "2/3"):
        before = {row["uid"] for row in verdicts(tmp_path / "out")}
        vieval(*command, "--part", part)
        assert len(verdicts(tmp_path / "out")) == len(before) + 40
    assert [row["uid"] for row in verdicts(tmp_path / "out")] == EVERY


def test_a_part_is_that_of_a_slurm_array():
    named = {"ID": "5", "COUNT": "4", "MIN": "3"}
    array = {f"SLURM_ARRAY_TASK_{name}": value for name, value in named.items()}
    assert part_of("auto", array) == (2, 4)
    for named in ("0/4", "5/4", "x", "auto"):
        refuses("part", part_of, named, {})
    refuses("part", part_of, "auto", {**array, "SLURM_ARRAY_TASK_ID": "9"})
