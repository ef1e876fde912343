"""Paths, addresses and names that others wrote end in a status or in one line, whatever they
hold.
"""

import ast
import json
import os
from pathlib import Path

import pytest

from tests.fake_image_server import FakeImageServer, picture
from tests.verdict_files import write_rows
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.cli import main
from vieval_plugin.generation.image_api import ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.readers.sample_rows import samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.untrusted import (
    address_of,
    exists,
    is_below,
    isdir,
    isfile,
    overlong,
    path_of,
    real,
)

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
    path = path_of(text, tmp_path / "none")
    assert [exists(path), isfile(path), isdir(path)] == [False] * 3
    assert is_below(path, tmp_path) is not text.startswith("/")
    assert real(path).is_absolute()


def test_a_home_that_there_is_stands_for_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert path_of("~/x", Path("elsewhere")) == tmp_path / "x"


def test_links_are_followed_as_far_as_they_lead(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "out.png").touch()
    for name, target in (
        ("loop", "loop"),
        ("out", "../out.png"),
        ("up", ".."),
        ("within", "x.png"),
    ):
        (inside / name).symlink_to(target)
    assert [
        is_below(inside / name, inside)
        for name in ("loop", "out", "up/out.png", "within")
    ] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "http://[::1",
        "http://host:port/",
        "http://host:99999/",
        "host/x",
        "",
        "/x",
        "//",
    ],
)
def test_what_is_no_address_is_none(text):
    assert address_of(text) is None


def test_an_address_has_neither_user_nor_the_port_that_goes_without_saying():
    address = address_of("b.png?key=1", "https://me:pass@HOST:443/a/c.png")
    assert (address.server, address.path, address.origin) == (
        "host",
        "/a/b.png",
        ("https", "host", 443),
    )
    assert address_of("http://[::1]:8000/").server == "[::1]:8000"


def test_names_that_no_table_can_show_are_named():
    assert overlong("x" * 1000, "") == ""
    assert "at most 1000 characters, got 5000" in overlong("fine", "x" * 5000)


def test_no_other_module_reads_paths_and_addresses_by_itself():
    """Those of the system raise for zero bytes, circles of links, long names and users that
    there are not.
    """
    raising = {"expanduser", "resolve", "urlsplit", "urlparse", "urljoin", "realpath"}
    # an answer of a generator has rules of its own; the others ask about files of their own
    free = ("text/untrusted.py", "hosts/vlmevalkit/guard.py")
    calls = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if not str(path.relative_to(PACKAGE)).startswith(free)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (name := getattr(node.func, "attr", getattr(node.func, "id", "")))
        in raising
        if ast.unparse(node.func) != "super().resolve"
    }
    assert calls == set()


# Through the commands.


def verdict(**about):
    by = {
        "judge": "sharpness",
        "settings": [],
        "aspects": ["PQ"],
        "backbone": "sharpness",
        "options": {},
    }
    row = {
        "vieval": 2,
        "uid": "1",
        "image_model": "m",
        "kind": "tig",
        "scores": {"PQ": 0.5},
        "status": "ok",
        "trace": [],
    }
    return {**row, **about, "provenance": {**by, **about.get("provenance", {})}}


STEP = {"path": ["q"] * 5000, "status": "ok"}
LONG = "c" * 200_000
RESULTS = {
    "a step 5,000 levels deep": verdict(trace=[STEP]),
    "a category": verdict(category=LONG),
    "a tag": verdict(tags=[LONG]),
    "a uid": verdict(uid=LONG),
    "an image model": verdict(image_model=LONG),
    "a kind": verdict(kind=LONG),
    "an aspect": verdict(scores={LONG: 0.5}),
    "a finding": verdict(findings=[LONG]),
    "a backbone": verdict(provenance={"backbone": LONG}),
    "a label": verdict(provenance={"label": LONG}),
}


def one_line(capfd, code, wanted=1):
    told = capfd.readouterr()
    last = told.err.rstrip("\n").split("\n")[-1]
    assert code == wanted, last
    assert "unforeseen" not in told.err
    assert "Traceback" not in told.err
    assert len(told.out) + len(last) < 2000
    return last


@pytest.mark.parametrize("row", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("command", ["show", "report"])
def test_results_with_names_that_nobody_can_read_are_one_line(
    command, row, tmp_path, capfd
):
    write_rows(tmp_path / "v.jsonl", row)
    rest = ["1"] if command == "show" else ["--out", str(tmp_path / "out")]
    assert "line 1" in one_line(
        capfd, main([command, str(tmp_path / "v.jsonl"), *rest])
    )


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_a_report_asks_after_no_option_but_the_folders_of_models(text, tmp_path, capfd):
    extra = {
        "model": "m",
        "base_url": ["http://[::1"],
        "extra": {"chat_template": text * 2, "model": text},
    }
    options = {
        "backbones": {"judge": extra},
        "scorers": {"dino": {"model": text}},
        "uids": text,
    }
    row = verdict(provenance={"options": options})
    write_rows(tmp_path / "v.jsonl", row)
    code = main(["report", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "out")])
    one_line(
        capfd, code, 1 if text == "\ud800" else 0
    )  # half of a character is refused when it is read


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("option", ["data", "uids", "pack", "scorer", "base_url"])
def test_an_option_that_is_no_path_is_one_line(
    option, text, tmp_path, samples_file, monkeypatch, capfd
):
    options = {
        "data": {"data": text},
        "uids": {"uids": text},
        "pack": {"judges": {"viescore": {"pack": text}}},
        "scorer": {"scorers": {"dino": {"model": text}}},
        "base_url": {},
    }[option]
    url = f"http://[{text}" if option == "base_url" else "http://127.0.0.1:9/v1"
    options["store"] = {"use": False}
    options["backbones"] = {
        "judge": {"model": "m", "base_url": url, "retries": 0, "patience": 0.1}
    }
    path = tmp_path / "vieval.yaml"
    path.write_text(json.dumps(options))
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))
    judge = "dino" if option == "scorer" else "viescore"
    one_line(
        capfd,
        main(
            [
                "score",
                str(samples_file),
                "--judge",
                judge,
                "--out",
                str(tmp_path / "v.jsonl"),
            ]
        ),
    )


@pytest.mark.parametrize(
    "text",
    [one for one in STRANGE.values() if one and "\0" not in one],
    ids=lambda text: text[:9],
)
def test_a_file_of_options_that_cannot_be_is_one_line(text, monkeypatch, capfd):
    monkeypatch.setenv(
        "VIEVAL_CONFIG",
        os.fsencode(text.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogateescape"
        ),
    )
    assert "cannot read the options file" in one_line(
        capfd, main(["tasks", "vieval_demo"])
    )


def test_results_in_a_circle_of_links_are_one_line(tmp_path, capfd):
    (tmp_path / "a_samples_x.jsonl").symlink_to("a_samples_x.jsonl")
    assert "cannot be read" in one_line(
        capfd, main(["report", str(tmp_path), "--out", str(tmp_path / "out")])
    )


@pytest.mark.parametrize(
    "about",
    [
        {"category": LONG},
        {"uid": LONG},
        {"tags": [LONG]},
        {"images": {LONG: "x.png"}},
        {LONG: 1},
    ],
)
def test_a_sample_with_a_name_that_nobody_can_read_is_a_bad_line(about, tmp_path):
    row = {
        "uid": "1",
        "kind": "tig",
        "images": {"output": "x.png"},
        "texts": {"prompt": "a cat"},
        **about,
    }
    with pytest.raises(BadLine) as raised:
        samples_of_row(tmp_path, 1, row, None, "own")
    assert len(str(raised.value)) < 300


def test_an_image_of_a_contest_that_a_link_leads_out_to_is_on_no_page(tmp_path, capfd):
    """A file of contests names files below its folder, and a folder that somebody sent may hold
    links.
    """
    folder = tmp_path / "sent"
    folder.mkdir()
    (tmp_path / "private.png").write_bytes(picture(b"private"))
    (folder / "a.png").symlink_to("../private.png")
    (folder / "b.png").write_bytes(picture(b"sent"))
    candidates = [
        {"image_model": name, "images": {"output": f"{name}.png"}} for name in "ab"
    ]
    (folder / "contests.jsonl").write_text(
        json.dumps({"id": "1", "texts": {"prompt": "x"}, "candidates": candidates})
        + "\n"
    )
    page = tmp_path / "page.html"
    line = one_line(
        capfd,
        main(
            [
                "label",
                str(folder / "contests.jsonl"),
                "--kind",
                "tig",
                "--out",
                str(page),
            ]
        ),
    )
    assert "a.png links to a file outside" in line
    assert not page.exists()


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1",
        "http://host:port/x.png",
        "so\0und",
        "",
        "http://me:hunter2/x@elsewhere/x.png?key=hidden",
    ],
)
def test_an_address_that_is_none_is_the_failure_of_its_image_alone(address, tmp_path):
    def answer(path, body):
        return (
            (200, {"data": [{"url": address or " "}]}) if b"strange" in body else None
        )

    with FakeImageServer(answer) as server:
        api = ImageApi(
            "painter",
            ServerOptions((server.base_url,), "key", retries=0, patience=1.0),
            tmp_path,
            {},
        )
        conditions = {
            prompt: Sample(SampleId("b", "tig", "", prompt), {}, {"prompt": prompt})
            for prompt in ("strange", "fine")
        }
        asked = [
            ImageRequest(sample, prompt, 1, 0) for prompt, sample in conditions.items()
        ]
        strange, fine = map(json.loads, make(api, asked, Usage(), bar=False))
    assert (strange["images"], strange["status"], len(fine["images"])) == (
        [],
        "api_error",
        1,
    )
    assert "another host" in strange["text"]
    assert "hunter2" not in strange["text"]
    assert "hidden" not in strange["text"]
