"""Test the labelling page without a browser: it names nobody and runs only its script."""

import base64
import hashlib
import io
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.PngImagePlugin
import pytest

from tests.pictures import encoded
from tests.stored_results import write_lines
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo.contests import contests
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.labelling.page import label_page
from vieval_plugin.labelling.sources import ToLabel


def png(size=(8, 8), colour="red", **told):
    info = PIL.PngImagePlugin.PngInfo()
    for key, value in told.items():
        info.add_text(key, value)
    return encoded(PIL.Image.new("RGB", size, colour), pnginfo=info)


def page_of(*judged, seed=0):
    listed = [ToLabel(one, f"line {n}") for n, one in enumerate(judged, start=1)]
    return label_page(listed, seed).decode()


DATA = r'<script type="application/json" id="data">(.*?)</script>'


def data_of(page):
    return json.loads(re.search(DATA, page, re.DOTALL)[1])


def own(kind="tig", model="m", uid="1", **images):
    """A sample of our own, of pictures in files."""
    shown = {role: Image(file) for role, file in images.items()}
    identity = SampleId("own", kind, model, uid)
    return Sample(identity, shown, {"prompt": "a cat"}, kind=kind)


def keys_of(page):
    return json.loads(base64.b64decode(data_of(page)["keys"]))


NAMED = r"demo_[abc]|vieval_demo|\.png"


def test_nobody_is_named_and_what_people_or_judges_said_is_not_in_it():
    samples = vieval_demo.load(Path(), "tie")[:6]
    page = page_of(*samples)
    ids = [one.id for one in samples]
    names = [[i.benchmark, i.part, i.uid, i.image_model, 0] for i in ids]
    assert [key[:5] for key in keys_of(page)] == names
    assert not re.search(NAMED, page)
    assert page_of(*(replace(one, ratings={}) for one in samples)) == page
    pairs = contests("tie")[:4]
    page = page_of(*pairs)
    assert not re.search(NAMED, page)
    assert page_of(*(replace(one, votes=Votes("four_way")) for one in pairs)) == page


@pytest.mark.parametrize(
    ("kind", "keeps"), [("tig", False), ("tie", True), ("sdie", True)]
)
def test_only_an_edit_is_asked_what_stays_unchanged(kind, keeps):
    page = page_of(own(kind, output=png(), **({"source": png()} if keeps else {})))
    assert ("unchanged" in page) is keeps
    assert not re.search("not to change|leave[s]? alone", page)


def test_sides_are_shown_as_the_key_says():
    pairs = contests("tie")[:6]
    page = page_of(*pairs)
    assert sorted(key[5] for key in keys_of(page)) == [False] * 3 + [True] * 3
    embedded = data_of(page)["images"]
    articles = re.findall(r"<article hidden>(.*?)</article>", page, re.DOTALL)
    for pair, key, article in zip(pairs, keys_of(page), articles, strict=True):
        shown = re.findall(r'data-image="(\d+)" alt="(First|Second)"', article)
        assert [which for _, which in shown] == ["First", "Second"]
        candidates = pair.candidates[::-1] if key[5] else pair.candidates
        for (number, _), candidate in zip(shown, candidates, strict=True):
            alone = data_of(page_of(candidate))["images"]
            assert embedded[int(number)] in alone


HOSTILE = "</script><script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(2)>"


def test_texts_are_texts_wherever_they_come_from():
    given = Sample(
        SampleId(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        {"output": Image(png()), HOSTILE: Image(png(colour="blue"))},
        {"prompt": HOSTILE, HOSTILE: "\u202eback"},
        kind=HOSTILE,
    )
    page = page_of(given)
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 2
    assert "<img src" not in page
    assert "\u202e" not in page
    assert keys_of(page) == [[HOSTILE, HOSTILE, HOSTILE, HOSTILE, 0, False]]


def test_the_policy_allows_the_pages_own_script_and_style_alone():
    page = page_of(own(output=png()))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    rules = dict(
        rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; ")
    )
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert not re.search(r"https?://|\bon[a-z]+=|style=", page)


def test_images_are_small_once_and_without_what_their_files_say():
    large, source = png((1600, 400), Software="secret-generator"), png(colour="blue")
    outputs = {"a": large, "b": png(colour="green")}
    samples = [own("tie", m, source=source, output=o) for m, o in outputs.items()]
    embedded = [base64.b64decode(one) for one in data_of(page_of(*samples))["images"]]
    assert len(embedded) == 3
    sizes = [PIL.Image.open(io.BytesIO(one)).size for one in embedded]
    assert sorted(sizes) == [(8, 8), (8, 8), (768, 192)]
    assert not any(b"secret" in one for one in embedded)


def write(folder, *rows):
    return write_lines(folder / "samples.jsonl", rows)


def row(uid, **changed):
    whole = {"uid": uid, "image_model": "m", "kind": "tig"}
    return {**whole, "images": {"output": "a.png"}, **changed}


def candidates(*files):
    outputs = enumerate({"output": file} for file in files)
    return [{"image_model": f"m{n}", "images": output} for n, output in outputs]


HEADER = "benchmark,part,uid,generator,draw,rater,aspect,value"


def test_a_seed_makes_one_page(samples_file, tmp_path, vieval, monkeypatch):
    pages = []
    for seed in (7, 7, 8):
        options_file = tmp_path / f"{seed}.yaml"
        options_file.write_text(f"statistics: {{seed: {seed}}}")
        monkeypatch.setenv("VIEVAL_CONFIG", str(options_file))
        page = tmp_path / "a.html"
        said = vieval("label", samples_file, "--n", 3, "--out", page).out
        drawn = "sampled from 3 of 3 strata (kind and generator), 1 from each"
        assert f"3 of 6 to label\n{drawn}, seed {seed}\n" in said
        pages.append(page.read_text())
    first, second, third = pages
    assert first == second
    assert keys_of(first) != keys_of(third)
    assert "seed 7." in first
    assert sorted({key[3] for key in keys_of(first)}) == ["demo_a", "demo_b", "demo_c"]


def test_what_is_rated_is_left_out_of_a_larger_page(samples_file, tmp_path, vieval):
    few, more = tmp_path / "few.html", tmp_path / "more.html"
    ratings = tmp_path / "labels.csv"
    label = ("label", samples_file, "--n")
    vieval(*label, 3, "--out", few)
    rated = keys_of(few.read_text())
    lines = [",".join(map(str, [*key[:5], "ann", "PQ", "0.5"])) for key in rated]
    ratings.write_text("\n".join([HEADER, *lines]) + "\n")
    human = ("--human", ratings, "--out", more)
    assert "2 of 6 to label" in vieval(*label, 5, *human).out
    asked = keys_of(more.read_text())
    assert len(asked) == 2
    assert not [key for key in asked if key in rated]
    told = vieval(*label, 3, *human, code=1).err
    assert "the selected images (3) are already rated; to rate more, " in told


def test_a_plan_stands_beside_the_page_and_asks_up_to_its_looks(tmp_path, vieval):
    """Two generators on 200 prompts, of which people rate one .5 and the other .43 with noise."""
    (tmp_path / "a.png").write_bytes(png())
    each = itertools.product(range(200), ("new", "old"))
    samples = write(tmp_path, *(row(f"u{n}", image_model=model) for n, model in each))
    verdicts = tmp_path / "v.jsonl"
    vieval("score", samples, "--judge", "sharpness", "--out", verdicts)
    page, plan = tmp_path / "page.html", tmp_path / "page.plan.json"
    label = ("label", verdicts, "--until-decided")
    first = vieval(*label, "--n", 400, "--out", page).out
    assert f"wrote {plan}, the order of 200 prompts" in first
    assert "100 of 400 to label" in first
    listed = json.loads(plan.read_text())["images"]
    images = [(image["uid"], image["image_model"]) for image in listed]
    assert [uid for uid, _ in images[::2]] == [uid for uid, _ in images[1::2]]
    assert [(key[2], key[3]) for key in keys_of(page.read_text())] == images[:100]
    rng = np.random.default_rng(0)
    lines, means = [HEADER], {"new": 0.5, "old": 0.43}
    for uid, model in images[:200]:
        value = rng.normal(means[model], 0.1)
        lines.append(f"own,tig,{uid},{model},,ann,PQ,{value:.3f}")
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(lines[:151]) + "\n")
    more = (*label, "--human", plan, labels, "--out", tmp_path / "more.html")
    assert "50 of 400 to label" in vieval(*more).out
    labels.write_text("\n".join(lines) + "\n")
    shown = vieval(*more).out
    assert shown.startswith("The labels are decisive, so no more are needed.\n")
    assert not re.search(r"\bnew\b|\bold\b", shown.partition("next")[0])
    ranked = vieval("rank", verdicts, "--human", plan, labels).out
    assert ranked.startswith("new's images are better than old's")
    for text, reason in (("{}", "not a label plan"), ("[", "invalid JSON")):
        plan.write_text(text)
        assert reason in vieval(*more, code=1).err


FOUR_WAY = {"1": "first", "2": "second", "3": "both good", "4": "both bad"}
DEMO = ("vieval_demo_contests", "tie")
STEPS = {"0": "0", "1": "0.25", "2": "0.5", "3": "0.75", "4": "1"}


def test_own_contests_and_benchmarks_are_labelled(tmp_path, vieval):
    (tmp_path / "a.png").write_bytes(png())
    pair = {"texts": {"prompt": "a cube"}, "candidates": candidates("a.png", "a.png")}
    own, out = write(tmp_path, {"id": "x", **pair}), tmp_path / "page.html"
    votes = {"1": "first", "2": "second", "3": "tie"}
    for source, benchmark, answers in (
        ((own, "--kind", "tig"), ("own", "tig"), {"vote": votes}),
        (("vieval_demo_contests/tie",), DEMO, {"vote": FOUR_WAY}),
        (("vieval_demo/tie",), ("vieval_demo", "tie"), {"SC": STEPS, "PQ": STEPS}),
    ):
        vieval("label", *source, "--out", out)
        page = out.read_text()
        assert data_of(page)["answers"] == answers
        assert {tuple(key[:2]) for key in keys_of(page)} == {benchmark}


NEGATIVE = encoded(PIL.Image.new("F", (8, 8), -1.5), "TIFF")

BAD = {"empty": b"", "text": b"text", "cut off": png()[:-20], "no range": NEGATIVE}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("contests", [False, True])
def test_another_is_drawn_for_an_unreadable_image(tmp_path, vieval, bad, contests):
    (tmp_path / "a.png").write_bytes(png())
    rows = []
    for uid in "12345":
        file = f"{uid}.png"
        (tmp_path / file).write_bytes(bad if uid in "24" else png())
        pair = {"id": uid, "candidates": candidates("a.png", file)}
        rows.append(row(uid) | (pair if contests else {"images": {"output": file}}))
    out, samples = tmp_path / "page.html", write(tmp_path, *rows)
    label = ("label", samples, "--kind", "tig", "--out", out)
    shown = vieval(*label).out.splitlines()
    assert sorted(key[2] for key in keys_of(out.read_text())) == ["1", "3", "5"]
    assert shown[0].endswith(": 3 of 3 to label")
    [line] = [line for line in shown if "left out" in line]
    first = f"{samples}: line 2: {tmp_path / '2.png'} "
    missing = "left out 2 of 5 samples, because the image is missing or unreadable"
    assert line.startswith(f"{missing} (first: {first}")
    vieval(*label, "--n", 3)
    assert len(keys_of(out.read_text())) == 3


def test_verdicts_on_missing_images_are_left_out(tmp_path, vieval):
    verdicts, page = tmp_path / "v.jsonl", tmp_path / "page.html"
    samples = write(tmp_path, row("1"), row("2", images={"output": "b.png"}), 5)
    for name, colour in (("a", "red"), ("b", "blue")):
        (tmp_path / f"{name}.png").write_bytes(png(colour=colour))
    vieval("score", samples, "--judge", "sharpness", "--out", verdicts, code=1)
    (tmp_path / "b.png").unlink()
    shown = vieval("label", verdicts, "--out", page).out
    assert [key[2] for key in keys_of(page.read_text())] == ["1"]
    missing = "left out 2 of 3 samples, because the image is missing or unreadable"
    assert f"{missing} (first: own/tig/m/2: " in shown
    following = f"--human {tmp_path / 'page.plan.json'} labels-*.csv`"
    assert shown.rstrip("\n").endswith(following)
