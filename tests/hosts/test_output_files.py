"""Which files a host's generator may name, in a run through lmms-eval's evaluation."""

import itertools
import json
import os
import re
from collections import Counter

import pytest

from tests import in_process
from tests.builders import an_image_file
from tests.fake_server import FakeServer
from tests.stored_results import write_lines
from vieval_plugin.results.host_samples import records_of

TASK = "generate_prompts_sharpness"


@pytest.fixture
def run(fake_generator, tmp_path, monkeypatch):
    """Runs the fake generator on edits of `source.png`; the records."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    numbers = itertools.count()

    def runs(limit=2, task=TASK, trusted=(), backbones=None, **arguments):
        source = tmp_path / "saved" / "source.png"
        if not source.exists():
            an_image_file(source)
        about = {"kind": "tie", "images": {"source": str(source)}}
        about["texts"] = {"instruction": "add a hat"}
        rows = [{"uid": f"p{n}", **about} for n in range(limit)]
        prompts = write_lines(tmp_path / "prompts.jsonl", rows)
        generate = {"prompts": str(prompts)}
        generate |= {"trusted": [str(one) for one in trusted]} if trusted else {}
        own = {"data": str(tmp_path / "kept"), "generate": generate}
        file = tmp_path / f"o{next(numbers)}.yaml"
        options = in_process.options_file(file, **own, backbones=backbones or {})
        given = ",".join(f"{k}={v}" for k, v in arguments.items())
        model = (*fake_generator, "--model_args", given)
        command = in_process.command(model, task, limit)[1:]
        out = tmp_path / "results"
        in_process.run(*command, "--output_path", out, options=options)
        [path] = out.rglob("*_samples_*.jsonl")
        found = [record for together in records_of(path) for record in together]
        path.unlink()
        return found

    return runs


def statuses(found):
    return Counter(str(record.verdict.status) for record in found)


SAYS = ("output_dir", "output_image_dir", "response_persistent_folder")


@pytest.mark.parametrize("says", [*SAYS, "generated_image_dir"])
def test_a_generator_that_says_where_it_saves_is_judged(run, tmp_path, says):
    found = run(out=tmp_path / "anywhere", says=says)
    assert statuses(found) == {"ok": 2}
    seen = {record.generation.image for record in found}
    assert seen == {str(tmp_path / "anywhere" / f"000{n}_s0.png") for n in range(2)}


@pytest.mark.parametrize("form", ["json", "folder", "path"])
def test_own_folders_need_not_be_named(run, tmp_path, form):
    for out in ("./logs/bagel_images", tmp_path / "results" / "images"):
        assert statuses(run(form=form, out=out, says="")) == {"ok": 2}


def test_any_other_folder_has_to_be_trusted(run, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    found = run(out=elsewhere, says="")
    assert statuses(found) == {"no_image": 2}
    assert "generate.trusted" in found[0].verdict.reason
    said = capsys.readouterr().err
    assert re.search("no_image 2, first.*generate.trusted", said)
    # the folder of the options file is where a relative one begins, as for all paths in it
    for trusted in (elsewhere, "elsewhere"):
        assert statuses(run(out=elsewhere, says="", trusted=[trusted])) == {"ok": 2}


def test_an_output_folder_that_is_a_link_is_the_folder_that_it_leads_to(run, tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "work" / "logs").symlink_to(tmp_path / "scratch")
    assert statuses(run(out="logs/bagel", says="")) == {"ok": 2}


def attacks(tmp_path):
    """Answers that name what their generator has not made, with a word of the reason."""
    secret = an_image_file(tmp_path / "secret" / "0000_s0.png")
    saved = tmp_path / "saved"
    source = an_image_file(saved / "source.png")
    reference = an_image_file(tmp_path / "data" / "reference.png")
    (saved / "link.png").symlink_to(secret)
    (saved / "linked").symlink_to(secret.parent)
    (saved / "twin.png").hardlink_to(source)
    (saved / "own.png").symlink_to(source)
    (saved / "loop.png").symlink_to("loop.png")
    os.mkfifo(saved / "pipe.png")
    outside, condition, absent = "generate.trusted", "own input images", "missing image"
    up = f"logs/../../{secret.parent.name}/{secret.name}"
    named = {
        "an image outside": (secret, outside),
        "the reference output of a benchmark": (reference, outside),
        "a file of the system": ("/etc/passwd", outside),
        "a way up": (saved / ".." / "secret" / "0000_s0.png", outside),
        "a way up from the logs": (up, outside),
        "a link out of the folder": (saved / "link.png", outside),
        "a folder that is a link": (saved / "linked" / secret.name, outside),
        "its own source": (source, condition),
        "its own source, by a link": (saved / "own.png", condition),
        "its own source, by another name": (saved / "twin.png", condition),
        "a link to itself": (saved / "loop.png", absent),
        "a pipe": (saved / "pipe.png", absent),
        "a device": ("/dev/zero", absent),
        "a folder": (saved, absent),
        "nobody's home": ("~nobody-at-all/x.png", absent),
        "a path with a zero byte": ("a\0b.png", ""),
        "half a character": ("\ud800.png", ""),
        "a path of 5,000 characters": ("x" * 5000 + ".png", ""),
        "a path of a million parts": ("/" + "a/" * 1_000_000 + "x.png", ""),
    }
    # first, as `0000_s0.png` is of the first document
    plain = {
        "a folder outside, in words": (str(secret.parent), outside),
        "an image outside, in words": (str(secret), outside),
        "prose of 5,000 characters": ("I cannot draw that. " * 250, "only text"),
    }
    return plain | {what: (answer(path), word) for what, (path, word) in named.items()}


def answer(path):
    return json.dumps({"text": "", "images": [str(path)]})


@pytest.mark.parametrize("by", ["another", "itself"])
def test_an_answer_names_no_other_file(run, tmp_path, by):
    (tmp_path / "work" / "logs").mkdir()
    tried = attacks(tmp_path)
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([text for text, _ in tried.values()]))
    with FakeServer() as server:
        judge = {"judge": {"model": "fake", "base_url": server.base_url}}
        given = {"backbones": {} if by == "itself" else judge, "texts": texts}
        given["task"] = "generate_prompts_viescore"
        found = run(len(tried), out=tmp_path / "saved", **given)
        assert server.stats()["requests"] == 0
    for (what, (_, word)), record in zip(tried.items(), found, strict=True):
        assert record.verdict.status == "no_image", what
        assert word in record.verdict.reason, what
        assert len(record.verdict.reason) < 500
    assert {record.generation.image for record in found} == {""}


def test_an_unchanged_copy_of_the_source_is_an_output(run, tmp_path):
    source = an_image_file(tmp_path / "saved" / "source.png")
    copy = source.with_name("copy.png")
    copy.write_bytes(source.read_bytes())
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([answer(copy)] * 2))
    assert statuses(run(out=tmp_path / "saved", texts=texts)) == {"ok": 2}
