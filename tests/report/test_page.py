"""`report.html`: one file that loads nothing and shows what others wrote as text."""

import base64
import hashlib
import json
import random
import re
from dataclasses import replace
from shlex import split

import pytest
from PIL import Image as Pillow

from tests.builders import a_provenance, a_record, a_sample, a_verdict, a_vote
from tests.report.pages import BENCHMARK, Page, report_of, row
from tests.stored_results import csv_rows, write_results
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.images import thumbnail
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.objects import DetectedObject, to_result
from vieval_plugin.judges.protocol import Choice, Image, Status, Step, Verdict
from vieval_plugin.judges.tools import to_json
from vieval_plugin.media.thumbnails import SIDE, Thumbnail, Thumbnails
from vieval_plugin.records import fingerprint
from vieval_plugin.report.page import disagreement, tiles
from vieval_plugin.report.page.disagreement import GalleryItem, Judgement, answer
from vieval_plugin.report.page.gallery import select_items
from vieval_plugin.report.page.tiles import tile_of
from vieval_plugin.report.writing import write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=200)
EVIL = "<script>alert(1)</script>"


def report(tmp_path, rows):
    results = load_results([write_results(tmp_path / "run", rows)])
    written = write_report(results, tmp_path / "out", OPTIONS)
    return Page((tmp_path / "out" / "report.html").read_text()), written


def judged(judge, quality, failing=0, status=Status.REFUSAL):
    """Rows of a judge; `quality` is the weight of people's rating in its scores."""
    people, noise = random.Random(1), random.Random(f"{judge}0")
    rows = []
    for number in range(60):
        rating = people.choice([0.0, 0.25, 0.5, 0.75, 1.0])
        score = quality * rating + (1 - quality) * noise.random()
        failed = {"status": status} if number < failing else {}
        scores = {} if failed else {"O": score}
        rows.append(row(f"u{number}", scores, [rating], judge=judge, **failed))
    return rows


def headline(tmp_path):
    rows = csv_rows(tmp_path / "out" / f"{BENCHMARK}_headline_1.csv")
    return {one["judge"]: one for one in rows}


def count_rows(page, name):
    """The number of rows of tables that have a class."""
    return sum(name in one.get("class", "") for one in page.all("tr"))


def test_rows_are_separated_by_tests_and_warn_of_failures(tmp_path):
    rows = [*judged("bad", 0.1), *judged("good", 0.8), *judged("all", 0.6)]
    some, few = judged("some", 0.8, failing=9), judged("few", 1.0, failing=40)
    page, written = report(tmp_path, [*rows, *some, *few])
    assert count_rows(page, "separated") == 2
    assert count_rows(page, "warned") == 2
    assert all(line in page.said for line in written.lines[:2])
    found = headline(tmp_path)
    assert [*found][-2:] == ["few", "best constant: the same score for all"]
    assert found["few"]["rank"] == ""
    assert found["some"]["failed"] == "9 of 60: 9 refusal"
    assert "Not ranked: few (a score for 20 of 60 samples)." in page.said


def test_samples_that_a_replayed_log_lacks_stand_among_the_failures(tmp_path):
    lacking = judged("log", 0.8, failing=7, status=Status.MISSING)
    page, written = report(tmp_path, [*judged("all", 0.6), *lacking])
    found = headline(tmp_path)
    failed = [found[judge]["failed"] for judge in ("log", "all")]
    assert failed == ["7 of 60 missing", "0"]
    assert "log: the replay has no verdict on 7 of 60 samples." in written.lines
    assert "7 of 60 missing" in page.said


def test_the_page_loads_nothing_by_its_policy(tmp_path):
    page, _ = report(tmp_path, judged("mine", 0.5))
    loading = split("src srcset action style background poster ping formaction")
    for tag, name, value in page.attributes():
        assert name not in loading, (tag, name)
        if name in ("href", "xlink:href"):
            assert value.startswith(("#", "data:")), value
    assert not re.search(r"https?://", page.text)
    assert "url(" not in page.raw["style"]
    assert "@import" not in page.raw["style"]
    metas = {
        one.get("http-equiv"): one["content"]
        for one in page.all("meta")
        if "content" in one
    }
    policy = metas["Content-Security-Policy"]
    for kind in ("style", "script"):
        digest = hashlib.sha256(page.raw[kind].encode()).digest()
        hashed = base64.b64encode(digest).decode()
        assert f"{kind}-src 'sha256-{hashed}';" in policy
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_what_others_wrote_is_shown_and_never_active(tmp_path):
    step = Step(("<b>", EVIL), Status.OK, (1.0,), f"javascript:alert(1) {EVIL}")
    evil = {
        "judge": 'j"><img src=x onerror=alert(1)>',
        "model": "</title></style></script><svg onload=alert(1)>",
        "rationale": f"</p>{EVIL}]]><!--",
        "trace": (step,),
    }

    def page_of(folder, uid, **about):
        rows = [row(uid.format(n), {"O": n / 9}, [n / 9], **about) for n in range(10)]
        return report(folder, rows)[0]

    page = page_of(tmp_path, f"{EVIL}{{}}{{{{{{{{ 7*7 }}}}}}}}", **evil)
    plain = page_of(tmp_path / "plain", "u{}", judge="j", model="m")
    assert len(page.all("script")) == len(plain.all("script")) == 1
    assert page.raw["script"] == plain.raw["script"]
    assert page.all("img") == page.all("iframe") == page.all("b ") == []
    for _, name, value in page.attributes():
        assert not name.startswith("on")
        assert name != "href" or "javascript:" not in value
    assert f"{EVIL}3{{{{ 7*7 }}}}" in page.said
    assert "javascript:alert(1)" in page.said
    assert "49" not in [word for word in page.said.split() if word.startswith(EVIL)]


def drawn(folder, colour, size=(300, 200)):
    folder.mkdir(exist_ok=True)
    path = folder / f"{colour}.png"
    Pillow.new("RGB", size, colour).save(path)
    return Image(path)


def test_a_picture_is_small_and_made_once_whatever_its_file_is_called(tmp_path):
    image = drawn(tmp_path, "red", (900, 600))
    files = {name: tmp_path / f"{name}.png" for name in ("copy", "broken", "none")}
    files["copy"].write_bytes(image.source.read_bytes())
    files["broken"].write_bytes(image.source.read_bytes()[:60])
    thumbnails = Thumbnails()
    first = thumbnail(image, thumbnails)
    assert (first.width, first.height) == (SIDE, 373)
    assert first.address.startswith("data:image/webp;base64,UklGR")
    found = [thumbnail(Image(path), thumbnails) for path in files.values()]
    assert found == [first, "unreadable", "missing"]
    assert thumbnails.rendered == [first]


def test_a_page_does_not_grow_beyond_its_size(tmp_path):
    thumbnails = Thumbnails(most_bytes=1)
    colours = ("red", "blue", "red")
    first, *others = (thumbnail(drawn(tmp_path, c), thumbnails) for c in colours)
    assert isinstance(first, Thumbnail)
    assert others == ["omitted to limit the page size", first]
    assert thumbnails.left_out == 1


class Held:
    """Samples at hand."""

    def __init__(self, *samples):
        self.samples = {one.id: one for one in samples}

    def find(self, record):
        return self.samples.get(record.id, "not here")


def card_of(record, *samples):
    item = GalleryItem(record.id, (Judgement("judge", record),))
    return tile_of(item, Held(*samples), Thumbnails())


def test_a_card_has_all_images_and_says_which_changed(tmp_path):
    images = {"output": drawn(tmp_path, "blue"), "source": drawn(tmp_path, "red")}
    sample = a_sample(kind="tie", images=images, texts={"instruction": "add"})
    record = a_record(sample, fingerprint=fingerprint(sample))
    card = card_of(record, sample)
    assert [one.role for one in card.pictures] == ["source", "output"]
    assert card.note == ""
    assert card.texts == (("instruction", "add"),)
    drawn(tmp_path, "blue", (30, 20))
    assert "changed since" in card_of(record, sample).note
    images["output"].source.unlink()
    gone = card_of(record, sample)
    assert gone.pictures[1].thumbnail == "missing"
    assert gone.note == ""
    assert card_of(record).note == "not here"


def test_objects_of_a_trace_are_boxes_on_an_opened_picture(tmp_path):
    found = [DetectedObject(EVIL, (1.5, 2, 9, 8), 0.93, "red")]
    trace = (Step(("objects",), Status.OK, answer=to_json(to_result(found))),)
    rows = []
    for number, sample in enumerate(benchmark(BENCHMARK).load(tmp_path, "tie")[:8]):
        about = {"model": sample.id.image_model, "trace": trace}
        scores = {"O": number / 8}
        rows.append(row(sample.id.uid, scores, sample.ratings["O"], **about))
    page, _ = report(tmp_path, rows)
    assert EVIL not in page.text
    boxes = [attributes for tag, attributes in page.elements if tag == "rect"]
    assert boxes.count({"x": "1.5", "y": "2", "width": "7.5", "height": "6"}) == 8
    assert "red &lt;script&gt;alert(1)&lt;/script&gt; 0.93" in page.text


def trace_of(box):
    return json.dumps({"boxes": [], "text": json.dumps(["cat", box, 0.9, ""])})


BOXES = [trace_of([1, 2]), trace_of([1, 2, 3, "4"]), trace_of(None)]


@pytest.mark.parametrize(
    "answer", ["", "[]", '{"boxes": []}', '{"boxes": [], "text": "1"}', *BOXES]
)
def test_a_trace_of_another_form_has_no_boxes(answer, tmp_path):
    sample = a_sample(images={"output": drawn(tmp_path, "blue")})
    trace = (Step(("objects",), Status.OK, answer=answer),)
    source = a_provenance("objects", settings=())
    record = a_record(sample, a_verdict(trace=trace), source)
    [picture] = card_of(record, sample).pictures
    assert picture.objects == ()


def test_a_replay_without_data_has_cards_that_say_so(tmp_path, monkeypatch):
    monkeypatch.setenv("VIEVAL_DATA", str(tmp_path / "nothing"))
    rows = []
    for n in range(8):
        made = row(f"u{n}", {"O": n / 8}, [n / 8] * 3).items()
        rows.append({key: text.replace(BENCHMARK, "imagenhub") for key, text in made})
    page, _ = report(tmp_path, rows)
    assert page.said.count("The data of this benchmark is not on this machine") == 1
    assert page.all("image") == []
    assert "All 8 cards" in page.said


def item(number, apart, judge="j", status=Status.OK):
    sample = a_sample(f"u{number}", f"m{number % 3}", kind="tie", group=f"g{number}")
    record = a_record(sample, Verdict({"O": 0.5}, status))
    judgement = Judgement(judge, record, "O", 0.5, 0.5, apart)
    return GalleryItem(sample.id, (judgement,), apart)


def test_there_are_400_cards_at_most_the_furthest_apart_and_a_seeded_sample():
    items = [item(n, n / 1000) for n in range(1000)]
    random.Random(0).shuffle(items)
    cards = select_items(items, seed=7)
    assert len(cards) == len({one.id for one in cards}) == 400
    furthest = [n / 1000 for n in range(999, 699, -1)]
    assert [one.disagreement for one in cards[:300]] == furthest
    assert select_items(items, seed=7) == cards
    others = select_items(items, seed=8)
    assert {one.id for one in others[:300]} == {one.id for one in cards[:300]}
    assert others != cards
    assert len(select_items(items[:400], seed=7)) == 400


def test_every_judge_and_its_failures_have_a_place_in_the_gallery():
    loud = [item(n, 1.0) for n in range(2000)]
    quiet = [item(5000 + n, 0.01 * n, "quiet") for n in range(50)]
    failing = [item(6000 + n, 0.0, "quiet", Status.REFUSAL) for n in range(50)]
    cards = select_items([*loud, *quiet, *failing], seed=0)
    of_quiet = [one for one in cards if one.judgements[0].label == "quiet"]
    assert len(of_quiet) >= 100
    assert any(one.record.verdict.status is Status.REFUSAL for one in of_quiet)


def test_disagreement_is_between_places_and_not_between_scales(tmp_path):
    scores = {"a": 0.90, "b": 0.91, "c": 0.92}
    people = {"a": 0.0, "b": 1.0, "c": 0.5}
    rows = [row(uid, {"O": score}, [people[uid]]) for uid, score in scores.items()]
    items = disagreement.items_of(load_results([write_results(tmp_path, rows)]).runs)
    found = {one.id.uid: one.disagreement for one in items}
    assert found == {"a": 0.0, "b": 0.5, "c": 0.5}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"votes": {"forward": "first", "reverse": "first"}}, "first"),
        ({"votes": {"forward": "first", "reverse": "second"}}, "tie"),
        ({"preferences": {"forward": -0.5, "reverse": 0.1}}, "second"),
        ({"scores": ({"O": 0.5}, {"O": 0.25})}, "first"),
        ({"scores": ({"O": 0.5}, {"O": 0.5})}, "tie"),
        ({"scores": ({"O": 0.1}, {"O": 0.5}, {"O": 0.1})}, "2>1=3"),
        ({"scores": ({"O": 0.5}, {})}, ""),
        ({}, ""),
    ],
)
def test_a_judge_of_a_contest_says(choice, said):
    verdict = Verdict({}, Status.OK, choice=Choice(**choice))
    assert answer(a_record(verdict=verdict, votes=Votes())) == said


def test_a_reason_on_a_contest_says_which_image_was_which_letter():
    candidates = tuple(a_sample("1", model).id for model in ("aurora", "borealis"))
    rationale = "forward: Picture A is sharper.\nreverse: Picture A lacks the hat."
    verdict = replace(a_vote("first"), rationale=rationale)
    record = a_record(verdict=verdict, candidates=candidates)
    assert tiles.reasons(record).splitlines() == [
        "forward (A: aurora, B: borealis): Picture A is sharper.",
        "reverse (A: borealis, B: aurora): Picture A lacks the hat.",
    ]


def test_a_run_that_failed_shows_a_reply(tmp_path):
    failed = Step(("score",), Status.PARSE_FAILURE, answer="I like cats.\nAll of them.")
    about = {"status": Status.PARSE_FAILURE, "trace": (failed,)}
    rows = [row(f"{n}.png", {}, **about) for n in range(3)]
    results = load_results([write_results(tmp_path / "run", rows)])
    found = Page(report_of(tmp_path, results)).said
    assert "First failed reply of mine: 'I like cats. All of them.'." in found
