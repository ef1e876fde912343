"""Test that paths, addresses and names of others end in a status or in one line."""

import ast
import json
import os
import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest

from tests.builders import a_sample
from tests.fake_image_server import FakeImageServer, picture
from tests.stored_results import write_lines
from tests.verdict_files import write_rows
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.cli import main
from vieval_plugin.generation.image_api import ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text import untrusted
from vieval_plugin.text.untrusted import address_of, is_below, overlong, retry_after

PACKAGE = Path(__file__).parents[2] / "vieval_plugin"
STRANGE = {
    "a zero byte": "so\0und",
    "nobody's home": "~nouser/x",
    "a name of 5,000 characters": "x" * 5000,
    "5,000 folders": "d/" * 5000,
    "half a character": "\ud800",
    "nothing": "",
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_a_strange_path_is_a_path_where_nothing_is(text, tmp_path):
    path = untrusted.path_of(text, tmp_path / "none")
    asked = (untrusted.exists, untrusted.isfile, untrusted.isdir)
    assert [is_such(path) for is_such in asked] == [False] * 3
    assert is_below(path, tmp_path) is not text.startswith("/")
    assert untrusted.real(path).is_absolute()


def test_a_home_that_there_is_stands_for_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert untrusted.path_of("~/x", Path("elsewhere")) == tmp_path / "x"


@pytest.mark.parametrize(
    ("name", "is_inside"),
    [("loop", True), ("out", False), ("up/out.png", False), ("within", True)],
)
def test_links_are_followed_as_far_as_they_lead(name, is_inside, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "out.png").touch()
    targets = {"loop": "loop", "out": "../out.png", "up": "..", "within": "x.png"}
    for link, target in targets.items():
        (inside / link).symlink_to(target)
    assert is_below(inside / name, inside) is is_inside


NO_ADDRESSES = ["http://[::1", "http://host:port/", "http://host:99999/", "host/x"]


@pytest.mark.parametrize("text", [*NO_ADDRESSES, "", "/x", "//"])
def test_what_is_no_address_is_none(text):
    assert address_of(text) is None


def test_an_address_has_neither_user_nor_the_port_that_goes_without_saying():
    address = address_of("b.png?key=1", "https://me:pass@HOST:443/a/c.png")
    assert (address.server, address.path) == ("host", "/a/b.png")
    assert address.origin == ("https", "host", 443)
    assert address_of("http://[::1]:8000/").server == "[::1]:8000"


def test_names_that_no_table_can_show_are_named():
    assert overlong("x" * 1000, "") == ""
    assert "at most 1000 characters, got 5000" in overlong("fine", "x" * 5000)


def test_no_other_module_reads_paths_and_addresses_by_itself():
    """Python's own raise for zero bytes, circular links, long names and unknown users."""
    raising = {"expanduser", "resolve", "urlsplit", "urlparse", "urljoin", "realpath"}
    # an answer of a generator has rules of its own; the others ask about files of their own
    free = ("text/untrusted.py", "hosts/vlmevalkit/guard.py")
    found = set()
    for path in PACKAGE.rglob("*.py"):
        module = str(path.relative_to(PACKAGE))
        nodes = [] if module.startswith(free) else ast.walk(ast.parse(path.read_text()))
        for call in (node.func for node in nodes if isinstance(node, ast.Call)):
            name = getattr(call, "attr", getattr(call, "id", ""))
            if name in raising and ast.unparse(call) != "super().resolve":
                found.add(f"{module}: {name}")
    assert found == set()


ROW = {"vieval": 2, "uid": "1", "image_model": "m", "kind": "tig", "status": "ok"}
ROW |= {"scores": {"PQ": 0.5}, "trace": []}
BY = {"judge": "sharpness", "settings": [], "aspects": ["PQ"], "backbone": "sharpness"}


def verdict(**about):
    by = {**BY, "options": {}, **about.get("provenance", {})}
    return {**ROW, **about, "provenance": by}


STEP = {"path": ["q"] * 5000, "status": "ok"}
LONG = "c" * 200_000
RESULTS = {
    name: verdict(**{name: LONG}) for name in ("category", "uid", "image_model", "kind")
}
RESULTS |= {name: verdict(**{name: [LONG]}) for name in ("tags", "findings")}
RESULTS |= {name: verdict(provenance={name: LONG}) for name in ("backbone", "label")}
RESULTS |= {"step": verdict(trace=[STEP]), "aspect": verdict(scores={LONG: 0.5})}


def one_line(capfd, code, wanted=1):
    told = capfd.readouterr()
    last = told.err.rstrip("\n").split("\n")[-1]
    assert code == wanted, last
    assert not re.search("unforeseen|Traceback", told.err)
    assert len(told.out) + len(last) < 2000
    return last


@pytest.mark.parametrize("row", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("command", ["show", "report"])
def test_overlong_names_in_results_are_one_line(command, row, tmp_path, capfd):
    write_rows(tmp_path / "v.jsonl", row)
    rest = ["1"] if command == "show" else ["--out", str(tmp_path / "out")]
    code = main([command, str(tmp_path / "v.jsonl"), *rest])
    assert "line 1" in one_line(capfd, code)


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_a_report_asks_after_no_option_but_the_folders_of_models(text, tmp_path, capfd):
    extra = {"chat_template": text * 2, "model": text}
    judge = {"model": "m", "base_url": ["http://[::1"], "extra": extra}
    options = {"backbones": {"judge": judge}, "scorers": {"dino": {"model": text}}}
    row = verdict(provenance={"options": {**options, "uids": text}})
    write_rows(tmp_path / "v.jsonl", row)
    code = main(["report", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "out")])
    # half of a character is refused when it is read
    one_line(capfd, code, 1 if text == "\ud800" else 0)


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("option", ["data", "uids", "pack", "scorer", "base_url"])
def test_a_strange_option_is_one_line(
    option, text, tmp_path, samples_file, monkeypatch, capfd
):
    options = {
        "pack": {"judges": {"viescore": {"pack": text}}},
        "scorer": {"scorers": {"dino": {"model": text}}},
        "base_url": {},
    }.get(option, {option: text})
    url = f"http://[{text}" if option == "base_url" else "http://127.0.0.1:9/v1"
    backbone = {"model": "m", "base_url": url, "retries": 0, "patience": 0.1}
    options |= {"store": {"use": False}, "backbones": {"judge": backbone}}
    path = tmp_path / "vieval.yaml"
    path.write_text(json.dumps(options))
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))
    judge = "dino" if option == "scorer" else "viescore"
    flags = ["--judge", judge, "--out", str(tmp_path / "v.jsonl")]
    one_line(capfd, main(["score", str(samples_file), *flags]))


NAMES = [one for one in STRANGE.values() if one and "\0" not in one]


@pytest.mark.parametrize("text", NAMES, ids=lambda text: text[:9])
def test_a_file_of_options_that_cannot_be_is_one_line(text, monkeypatch, capfd):
    name = text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    monkeypatch.setenv("VIEVAL_CONFIG", os.fsencode(name))
    code = main(["tasks", "vieval_demo"])
    assert "cannot read the options file" in one_line(capfd, code)


def test_results_in_a_circle_of_links_are_one_line(tmp_path, capfd):
    (tmp_path / "a_samples_x.jsonl").symlink_to("a_samples_x.jsonl")
    code = main(["report", str(tmp_path), "--out", str(tmp_path / "out")])
    assert "cannot be read" in one_line(capfd, code)


OVERLONG = [{"category": LONG}, {"uid": LONG}, {"tags": [LONG]}, {LONG: 1}]


@pytest.mark.parametrize("about", [*OVERLONG, {"images": {LONG: "x.png"}}])
def test_a_sample_with_a_name_that_nobody_can_read_is_a_bad_line(about, tmp_path):
    row = {"uid": "1", "kind": "tig", "images": {"output": "x.png"}}
    row |= {"texts": {"prompt": "a cat"}, **about}
    with pytest.raises(BadLine) as raised:
        samples_of_row(tmp_path, 1, row, None, "own")
    assert len(str(raised.value)) < 300


def test_an_image_of_a_contest_that_a_link_leads_out_to_is_on_no_page(tmp_path, capfd):
    """A folder that somebody sent may hold links."""
    folder, page = tmp_path / "sent", tmp_path / "page.html"
    folder.mkdir()
    (tmp_path / "private.png").write_bytes(picture(b"private"))
    (folder / "a.png").symlink_to("../private.png")
    (folder / "b.png").write_bytes(picture(b"sent"))
    candidates = [
        {"image_model": name, "images": {"output": f"{name}.png"}} for name in "ab"
    ]
    contest = {"id": "1", "texts": {"prompt": "x"}, "candidates": candidates}
    file = write_lines(folder / "contests.jsonl", [contest])
    code = main(["label", str(file), "--kind", "tig", "--out", str(page)])
    assert "a.png links to a file outside" in one_line(capfd, code)
    assert not page.exists()


SECRETIVE = "http://me:hunter2/x@elsewhere/x.png?key=hidden"


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://host:port/x.png", "so\0und", " ", SECRETIVE]
)
def test_an_address_that_is_none_is_the_failure_of_its_image_alone(address, tmp_path):
    strange = (200, {"data": [{"url": address}]})
    answer = lambda path, body: strange if b"strange" in body else None
    samples = [a_sample(prompt, "", prompt=prompt) for prompt in ("strange", "fine")]
    asked = [ImageRequest(sample, sample.id.uid, 1, 0) for sample in samples]
    with FakeImageServer(answer) as server:
        options = ServerOptions((server.base_url,), "key", retries=0, patience=1.0)
        api = ImageApi("painter", options, tmp_path, {})
        failed, fine = map(json.loads, make(api, asked, Usage(), bar=False))
    assert (failed["images"], failed["status"]) == ([], "api_error")
    assert len(fine["images"]) == 1
    assert "another host" in failed["text"]
    assert not re.search("hunter2|hidden", failed["text"])


UNREAD = ["", " ", "soon", "nan", "inf", "1e999", "Wed, 99 Foo 2015", None]
SECONDS = {"0": 0, " 7 ": 7, "2.5": 2.5, "86400": 86400, "-3": 0}
SECONDS |= dict.fromkeys([*UNREAD, "31 Dec 99999 00:00"])


@pytest.mark.parametrize(("header", "seconds"), SECONDS.items())
def test_a_number_is_seconds_and_never_less_than_none(header, seconds):
    assert retry_after(header) == seconds


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-5))])
def test_a_date_is_seconds_from_now(zone):
    later = datetime.now(zone) + timedelta(seconds=100)
    utc = later.astimezone(UTC)
    dates = [format_datetime(later), format_datetime(utc, usegmt=True)]
    for date in (*dates, format_datetime(utc.replace(tzinfo=None))):
        assert retry_after(date) == pytest.approx(100, abs=5)
    assert retry_after(format_datetime(later - timedelta(seconds=200))) == 0
