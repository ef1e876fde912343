"""Test text_rendering: what is asked for, what was read, and their comparison."""

import itertools
import json
import os
import re
import unicodedata
from fractions import Fraction
from pathlib import Path

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from tests.builders import a_table
from tests.extras import needs
from tests.pictures import encoded
from tests.playing import play
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.backends.cache.store import Store, parse_stored, to_stored
from vieval_plugin.backends.image_tools import text_reader
from vieval_plugin.config import resolved
from vieval_plugin.judges.protocol import Box, ToolResult
from vieval_plugin.judges.text_rendering import (
    MOST_LETTERS,
    SPEC,
    compare,
    is_readable,
    judge,
    letters_of,
    wanted_texts,
)
from vieval_plugin.rewards.in_process import open_reward
from vieval_plugin.run.evaluate import evaluate, provenance_of
from vieval_plugin.run.prepare import prepare

OPEN = "OPEN DAILY"


def sample(prompt, output=b"x", **texts):
    identity = SampleId("own", "tig", "m", "1")
    return Sample(identity, {"output": Image(output)}, {"prompt": prompt, **texts})


def poster(*lines):
    picture = PIL.Image.new("RGB", (640, 90 * len(lines) + 60), "navy")
    pen = PIL.ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        pen.text((40, 40 + 90 * number), line, "white", PIL.ImageFont.load_default(56))
    return encoded(picture)


@pytest.mark.parametrize(*table("texts_wanted.jsonl"))
def test_what_the_words_around_ask_for_is_wanted(prompt, expected):
    assert wanted_texts(sample(prompt)) == expected


def test_the_column_of_its_own_goes_before_the_prompt_a_line_a_text():
    asked = sample('says "OPEN"', wanted_text="one\ntwo words")
    assert wanted_texts(asked) == ["one", "two words"]


@pytest.mark.parametrize(*table("text_alignments.jsonl"))
def test_scores_are_those_of_the_best_alignment(texts, lines, scores):
    found, _ = compare(texts, lines)
    wanted = [float(Fraction(score)) for score in scores.split()]
    assert list(found.values()) == pytest.approx(wanted)


@pytest.mark.parametrize(*table("text_reasons.jsonl"))
def test_the_reason_says_what_was_read_and_what_was_asked_for(texts, lines, reason):
    assert compare(texts, lines)[1] == reason


def test_many_texts_and_a_long_reading_end_soon():
    texts = [f"{number} {'ab' * (number % 7)}" for number in range(120)]
    scores, _ = compare(texts, ["ba" * 40] * 60)
    assert 0 <= scores["SC"] < 1


@pytest.mark.parametrize(*table("incomparable_prompts.jsonl"))
def test_a_prompt_whose_text_cannot_be_compared_is_not_applicable(prompt, reason):
    prompt = prompt.replace("LONG", "a" * (MOST_LETTERS + 1))
    played = play(judge(sample(prompt)))
    assert played.rounds == []
    verdict = played.verdict
    assert (verdict.status, verdict.scores) == (Status.NOT_APPLICABLE, {})
    assert reason in verdict.reason


#: First and last code of blocks, but for the rarest characters of the Chinese one.
BLOCKS = [(0x21, 0x2E80), (0x3041, 0x3130), (0xA000, 0xD800), (0xFB00, 0x20000)]


@needs("rapidocr")
def test_letters_of_the_alphabet_are_readable_and_no_others():
    """Against the list in the weights."""
    import onnxruntime
    import rapidocr

    [file] = (Path(rapidocr.__file__).parent / "models").glob("*_rec_*.onnx")
    held = onnxruntime.InferenceSession(file).get_modelmeta().custom_metadata_map
    alphabet = set(held["character"].split("\n"))
    codes = itertools.chain.from_iterable(range(*block) for block in BLOCKS)
    folded = {letter for code in codes for letter in letters_of(chr(code)).folded}
    letters = {letter for letter in folded if unicodedata.category(letter)[0] == "L"}
    assert {letter for letter in letters if is_readable(letter)} - alphabet == set()


@needs("rapidocr")
def test_a_strip_that_ocr_cannot_read_is_not_applicable():
    strip = encoded(PIL.Image.new("RGB", (5000, 1)))
    asked = [sample(f'says "{OPEN}"', strip)]
    [verdict] = evaluate(asked, judge="text_rendering")
    assert (verdict.status, verdict.scores) == (Status.NOT_APPLICABLE, {})
    assert "5000x1 pixels" in verdict.reason


def test_a_reading_is_stored_and_a_damaged_one_is_none():
    reading = ToolResult((Box(1, 2, 3, 4),), "GRAND\nOPENING")
    assert parse_stored(to_stored(reading)) == reading
    damaged = '"text": 3', '"text": "a", "boxes": [{"left": "b"}]'
    for text in (f'{{"kind": "ToolResult", {fields}}}' for fields in damaged):
        with pytest.raises(ValueError, match="no reply|not valid"):
            parse_stored(text)


@pytest.mark.parametrize(
    "text", ["0.5*text_rendering:words+sharpness", "text_rendering"]
)
@needs("rapidocr")
def test_as_a_reward_it_is_refused_unless_failures_are_neutral(text):
    only = "scores only prompts that ask for text in quotation marks"
    refuses(f"{only}.*--on-failure neutral", open_reward, text)
    assert open_reward(text, on_failure="neutral").definition == text


@needs("rapidocr")
def test_a_poster_is_read_and_its_reading_is_kept_with_its_version(tmp_path):
    options = {"store": {"path": tmp_path / "replies.sqlite"}}
    prompt = f'says "{OPEN}"'
    samples = [sample(prompt, poster(OPEN)), sample(prompt, poster("OPEN DALY"))]
    samples.append(sample('says "x"', b"no image"))
    right, wrong, broken = evaluate(samples, judge="text_rendering", options=options)
    assert right.scores == {"SC": 1, "words": 1, "no_extra_text": 1}
    scores = {"SC": 8 / 9, "words": 0.5, "no_extra_text": 1}
    assert wrong.scores == pytest.approx(scores)
    assert wrong.rationale == 'reads "OPEN DALY" instead of "OPEN DAILY"'
    assert broken.status is Status.NO_IMAGE
    [(model, count, *_)] = Store(tmp_path / "replies.sqlite").info()
    assert count == 2
    current = resolved(options)
    provenance = provenance_of(prepare("text_rendering", None, current), current, None)
    assert (provenance.backbone, provenance.reader) == ("text_rendering", model)
    assert re.fullmatch(r"RapidOCR 3\.\d+\.\d+, weights [0-9a-f]{12}", model)


@needs("rapidocr")
def test_several_images_at_a_time_are_read_as_one_by_one():
    lines = ["GRAND OPENING", "Fresh Bread", "SUMMER SALE", "Jazz Night", "Book Fair"]
    samples = [sample(f'says "{line}"', poster(line)) for line in lines]
    options = {"store": {"use": False}}
    verdicts = evaluate(samples, judge="text_rendering", options=options)
    read = [f'reads "{line}"' for line in lines]
    assert [verdict.rationale for verdict in verdicts] == read


@pytest.fixture
def posters(tmp_path, monkeypatch):
    """A folder of right and wrong posters, and tables of their texts in `words`."""
    monkeypatch.chdir(tmp_path)
    texts = {"p0": OPEN, "p1": "BOOK FAIR"}
    for generator in ("new", "old"):
        (tmp_path / generator).mkdir()
        for uid, text in texts.items():
            shown = poster(text if generator == "new" else text[:-2])
            (tmp_path / generator / f"{uid}.png").write_bytes(shown)
    for name, prompt in (("words", {}), ("prompts", {"prompt": "a poster"})):
        rows = [{"uid": uid, **prompt, "words": text} for uid, text in texts.items()]
        a_table(tmp_path / f"{name}.csv", rows)
    return tmp_path


WORDS = ("--columns", "texts.wanted_text=words", "--judge", SPEC.name)


@pytest.mark.parametrize("prompts", ["words.csv", "prompts.csv"])
@needs("rapidocr")
def test_a_column_has_what_is_asked_for(prompts, posters, vieval):
    flags = ("new", "old", "--prompts", prompts, *WORDS)
    vieval("score", *flags, "--out", "verdicts.jsonl")
    verdicts = map(json.loads, (posters / "verdicts.jsonl").open())
    scores = [verdict["scores"]["SC"] for verdict in verdicts]
    assert scores == pytest.approx([1, 7 / 9, 1, 6 / 8])
    assert "Mean SC of new: 1.00, 0.24 higher than old" in vieval("rank", *flags).out


@needs("rapidocr", "pyarrow")
def test_a_data_set_is_read_in_shards(posters, vieval):
    from pyarrow import Table, parquet

    images = [(posters / "old" / f"p{n}.png").read_bytes() for n in range(2)]
    rows = [{"image": i, "words": w} for i, w in zip(images, (OPEN, "x"), strict=True)]
    parquet.write_table(Table.from_pylist(rows), posters / "data.parquet")
    vieval("score", "data.parquet", *WORDS, "--out", "verdicts")
    [file] = (posters / "verdicts" / "verdicts").glob("*.parquet")
    scores = [row["scores"]["SC"] for row in parquet.read_table(file).to_pylist()]
    assert scores == pytest.approx([7 / 9, 0])


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    finding = "vieval_plugin.judges.tools.importlib.util.find_spec"
    monkeypatch.setattr(finding, lambda name: None)
    lacking = r"requires rapidocr and onnxruntime; run pip install \"\.\[text\]\""
    refuses(lacking, SPEC.build, SPEC.options(), None, "")


def test_the_reader_keeps_nothing_of_the_machine_for_its_maker(monkeypatch):
    pytest.importorskip("rapidocr")
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    text_reader.engine.__wrapped__()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
