"""The labelling page without a browser: who made what is not to be seen, and nothing in it is
active but its own script.
"""

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.PngImagePlugin
import pytest

from tests.pictures import encoded
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.benchmarks.vieval_demo.contests import contests
from vieval_plugin.cli import main
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.labelling.page import label_page
from vieval_plugin.labelling.sources import ToLabel
from vieval_plugin.text.errors import VievalError


def png(size=(8, 8), colour="red", **told):
    info = PIL.PngImagePlugin.PngInfo()
    for key, value in told.items():
        info.add_text(key, value)
    return encoded(PIL.Image.new("RGB", size, colour), pnginfo=info)


def page_of(*judged, seed=0):
    return label_page(
        [ToLabel(one, f"line {n}") for n, one in enumerate(judged, start=1)], seed
    ).decode()


def data_of(page):
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
        )[1]
    )


def keys_of(page):
    return json.loads(base64.b64decode(data_of(page)["keys"]))


def test_nobody_is_named_and_what_people_or_judges_said_is_not_in_it():
    samples = vieval_demo.load(Path(), "tie")[:6]
    page = page_of(*samples)
    assert [key[:5] for key in keys_of(page)] == [
        [one.id.benchmark, one.id.part, one.id.uid, one.id.image_model, 0]
        for one in samples
    ]
    assert not re.search(r"demo_[abc]|vieval_demo|\.png", page)
    assert page_of(*(replace(one, ratings={}) for one in samples)) == page
    pairs = contests("tie")[:4]
    page = page_of(*pairs)
    assert not re.search(r"demo_[abc]|vieval_demo|\.png", page)
    assert page_of(*(replace(one, votes=Votes("four_way")) for one in pairs)) == page


@pytest.mark.parametrize(
    ("kind", "keeps"), [("tig", False), ("tie", True), ("sdie", True)]
)
def test_only_an_edit_is_asked_what_stays_unchanged(kind, keeps):
    images = {"output": Image(png())} | ({"source": Image(png())} if keeps else {})
    page = page_of(
        Sample(SampleId("b", kind, "m", "1"), images, {"prompt": "a cat"}, kind=kind)
    )
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
    page = page_of(Sample(SampleId("own", "tig", "m", "1"), {"output": Image(png())}))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace(
        "&#39;", "'"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        [text] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert (
            rules[name]
            == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        )
    assert not re.search(r"https?://|\bon[a-z]+=|style=", page)


def test_images_are_small_once_and_without_what_their_files_say():
    large = png((1600, 400), Software="secret-generator")
    source = Image(png(colour="blue"))
    samples = [
        Sample(
            SampleId("own", "tie", model, "1"),
            {"source": source, "output": Image(output)},
        )
        for model, output in (("a", large), ("b", png(colour="green")))
    ]
    embedded = [base64.b64decode(one) for one in data_of(page_of(*samples))["images"]]
    assert len(embedded) == 3
    assert sorted(PIL.Image.open(io.BytesIO(one)).size for one in embedded) == [
        (8, 8),
        (8, 8),
        (768, 192),
    ]
    assert not any(b"secret" in one for one in embedded)


def write(folder, *rows):
    path = folder / "samples.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def row(uid, **changed):
    return {
        "uid": uid,
        "image_model": "m",
        "kind": "tig",
        "images": {"output": "a.png"},
        **changed,
    }


def candidates(*files):
    return [
        {"image_model": f"m{n}", "images": {"output": file}}
        for n, file in enumerate(files)
    ]


def run(*arguments):
    return main(["label", *map(str, arguments)])


def test_the_command_makes_the_same_page_for_the_same_seed_and_prints_it(
    samples_file, tmp_path, capsys, monkeypatch
):
    pages = [tmp_path / name for name in ("a.html", "b.html", "c.html")]
    for page, seed in zip(pages, (7, 7, 8), strict=True):
        options_file = tmp_path / f"{seed}.yaml"
        options_file.write_text(f"statistics: {{seed: {seed}}}")
        monkeypatch.setenv("VIEVAL_CONFIG", str(options_file))
        assert run(samples_file, "--n", 3, "--out", page) == 0
    first, second, third = (page.read_text() for page in pages)
    assert first == second
    assert keys_of(first) != keys_of(third)
    assert "seed 7." in first
    assert (
        "3 of 6 to label\nsampled from 3 of 3 strata (kind and generator), 1 from each, seed 7\n"
        in capsys.readouterr().out
    )
    assert sorted({key[3] for key in keys_of(first)}) == ["demo_a", "demo_b", "demo_c"]


def test_what_is_rated_already_is_left_out_of_a_larger_page(
    samples_file, tmp_path, capsys
):
    few, more, ratings = (
        tmp_path / "few.html",
        tmp_path / "more.html",
        tmp_path / "labels.csv",
    )
    assert run(samples_file, "--n", 3, "--out", few) == 0
    rows = [
        [*key[:3], key[3], key[4], "ann", "PQ", "0.5"]
        for key in keys_of(few.read_text())
    ]
    header = "benchmark,part,uid,generator,draw,rater,aspect,value"
    ratings.write_text(
        "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
    )
    assert run(samples_file, "--n", 5, "--human", ratings, "--out", more) == 0
    assert "2 of 6 to label" in capsys.readouterr().out
    asked = {tuple(key) for key in keys_of(more.read_text())}
    assert len(asked) == 2
    assert not asked & {tuple(key) for key in keys_of(few.read_text())}
    assert run(samples_file, "--n", 3, "--human", ratings, "--out", more) == 1
    assert "selects only rated images (3); pass a larger --n" in capsys.readouterr().err


def test_a_plan_stands_beside_the_page_and_asks_up_to_its_looks(tmp_path, vieval):
    """Two generators on 200 prompts, of which people rate one .5 and the other .43 with noise."""
    (tmp_path / "a.png").write_bytes(png())
    rows = [
        row(f"u{n}", image_model=model) for n in range(200) for model in ("new", "old")
    ]
    vieval(
        "score",
        write(tmp_path, *rows),
        "--judge",
        "sharpness",
        "--out",
        tmp_path / "v.jsonl",
    )
    page, plan = tmp_path / "page.html", tmp_path / "page.plan.json"
    label = ("label", tmp_path / "v.jsonl", "--until-decided")
    first = vieval(*label, "--n", 400, "--out", page).out
    assert f"wrote {plan}, the order of 200 prompts" in first
    assert "100 of 400 to label" in first
    images = json.loads(plan.read_text())["images"]
    assert [image["uid"] for image in images[::2]] == [
        image["uid"] for image in images[1::2]
    ]
    assert [[key[2], key[3]] for key in keys_of(page.read_text())] == [
        [image["uid"], image["image_model"]] for image in images[:100]
    ]
    rng = np.random.default_rng(0)
    lines = ["benchmark,part,uid,generator,draw,rater,aspect,value"]
    for image in images[:200]:
        value = rng.normal({"new": 0.5, "old": 0.43}[image["image_model"]], 0.1)
        lines.append(
            f"own,tig,{image['uid']},{image['image_model']},,ann,PQ,{value:.3f}"
        )
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(lines[:151]) + "\n")
    more = (*label, "--human", plan, labels, "--out", tmp_path / "more.html")
    assert "50 of 400 to label" in vieval(*more).out
    labels.write_text("\n".join(lines) + "\n")
    shown = vieval(*more).out
    assert shown.startswith("The labels are decisive, so no more are needed.\n")
    assert not re.search(r"\bnew\b|\bold\b", shown.partition("next")[0])
    assert vieval("rank", tmp_path / "v.jsonl", "--human", plan, labels).out.startswith(
        "new's images are better than old's"
    )
    for text, reason in (("{}", "not a label plan"), ("[", "invalid JSON")):
        plan.write_text(text)
        assert reason in vieval(*more, code=1).err


def test_own_contests_and_benchmarks_are_labelled(tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "b.png").write_bytes(png(colour="blue"))
    path = write(
        tmp_path,
        {
            "id": "x",
            "texts": {"prompt": "a cube"},
            "candidates": candidates("a.png", "b.png"),
        },
    )
    out = tmp_path / "page.html"
    assert run(path, "--kind", "tig", "--out", out) == 0
    assert "votes on pairs cannot correct a judge's means" in capsys.readouterr().out
    assert [key[:5] for key in keys_of(out.read_text())] == [
        ["own", "tig", "x", "", ""]
    ]
    assert data_of(out.read_text())["answers"] == {
        "vote": {"1": "first", "2": "second", "3": "tie"}
    }
    assert run("vieval_demo_contests/tie", "--n", 3, "--out", out) == 0
    four_way = {"1": "first", "2": "second", "3": "both good", "4": "both bad"}
    assert data_of(out.read_text())["answers"] == {"vote": four_way}
    assert run("vieval_demo/tie", "--n", 7, "--out", out) == 0
    assert {tuple(key[:2]) for key in keys_of(out.read_text())} == {
        ("vieval_demo", "tie")
    }
    steps = {"0": "0", "1": "0.25", "2": "0.5", "3": "0.75", "4": "1"}
    assert data_of(out.read_text())["answers"] == {"SC": steps, "PQ": steps}


@pytest.mark.parametrize(
    "bad",
    [b"", b"text", png()[:-20], encoded(PIL.Image.new("F", (8, 8), -1.5), "TIFF")],
    ids=["empty", "text", "cut off", "no range"],
)
@pytest.mark.parametrize("contests", [False, True])
def test_another_is_drawn_for_an_image_that_cannot_be_read(
    tmp_path, vieval, bad, contests
):
    (tmp_path / "a.png").write_bytes(png())
    rows = []
    for uid in "12345":
        (tmp_path / f"{uid}.png").write_bytes(bad if uid in "24" else png())
        images = (
            {"candidates": candidates("a.png", f"{uid}.png")}
            if contests
            else {"images": {"output": f"{uid}.png"}}
        )
        rows.append({**row(uid), **images, "id" if contests else "uid": uid})
    out, samples = tmp_path / "page.html", write(tmp_path, *rows)
    shown = vieval("label", samples, "--kind", "tig", "--out", out).out.splitlines()
    assert sorted(key[2] for key in keys_of(out.read_text())) == ["1", "3", "5"]
    assert shown[0].endswith(": 3 of 3 to label")
    [line] = [line for line in shown if "left out" in line]
    assert line.startswith(
        f"left out 2 of 5 samples, because the image is missing or unreadable (first: {samples}: "
        f"line 2: {tmp_path / '2.png'} "
    )
    vieval("label", samples, "--kind", "tig", "--n", 3, "--out", out)
    assert len(keys_of(out.read_text())) == 3


def test_verdicts_on_missing_images_are_left_out_and_named_in_the_next_command(
    tmp_path, vieval
):
    verdicts = tmp_path / "v.jsonl"
    samples = write(
        tmp_path,
        row("1"),
        row("2", images={"output": "gone.png"}),
        row("3", images={"output": "b.png"}),
        5,
    )
    for name, colour in (("a", "red"), ("b", "blue")):
        (tmp_path / f"{name}.png").write_bytes(png(colour=colour))
    vieval("score", samples, "--judge", "sharpness", "--out", verdicts, code=1)
    (tmp_path / "b.png").unlink()
    shown = vieval("label", verdicts, "--out", tmp_path / "page.html").out.splitlines()
    assert [key[2] for key in keys_of((tmp_path / "page.html").read_text())] == ["1"]
    assert (
        "left out 3 of 4 samples, because the image is missing or unreadable (first: own/tig/m/2: "
        in "\n".join(shown)
    )
    assert shown[-1].endswith(
        f"`vieval rank {verdicts} --human {tmp_path / 'page.plan.json'} labels-*.csv`"
    )


def test_a_ranking_of_three_is_no_question_that_the_page_asks():
    three = tuple(
        Sample(SampleId("own", "tig", model, "1"), {"output": Image(png())})
        for model in "abc"
    )
    with pytest.raises(
        VievalError, match="line 1: a contest must have two candidates, got 3"
    ):
        page_of(Contest(SampleId("own", "tig", "", "1"), three))
