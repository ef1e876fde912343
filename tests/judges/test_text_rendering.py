"""text_rendering: what is asked for, what was read, and how the two are compared; then read for
real.
"""

import csv
import json
import os
import re
import unicodedata
from pathlib import Path

import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont
import pytest

from tests.extras import needs
from tests.pictures import encoded
from tests.playing import play
from tests.tables import table
from vieval_plugin.backends.cache.store import Store, parse_stored, to_stored
from vieval_plugin.backends.http.server import Usage
from vieval_plugin.backends.image_tools import text_reader
from vieval_plugin.config import resolved
from vieval_plugin.judges.protocol import (
    Box,
    Failure,
    Image,
    Sample,
    SampleId,
    Status,
    ToolResult,
    UseTool,
)
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
from vieval_plugin.run.router import Router, refuse_questions
from vieval_plugin.text.errors import VievalError

OPEN = "OPEN DAILY"


def sample(prompt, output=b"x", **texts):
    return Sample(
        SampleId("own", "tig", "m", "1"),
        {"output": Image(output)},
        {"prompt": prompt, **texts},
    )


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
    assert wanted_texts(sample('says "OPEN"', wanted_text="one\ntwo words")) == [
        "one",
        "two words",
    ]


@pytest.mark.parametrize(
    ("texts", "lines", "scores"),
    [
        (["GRAND OPENING"], ["Grand", "Opening!"], (1, 1, 1)),
        (["GRAND OPENING"], ["GRAND OPENNG"], (11 / 12, 0.5, 1)),
        (["OPENING"], ["OPENINGS"], (7 / 8, 0, 1)),
        (["OPENING"], ["REOPENING"], (7 / 9, 0, 1)),
        (["big red sale"], ["big sale"], (7 / 10, 2 / 3, 1)),
        (["big sale"], ["big red sale"], (7 / 10, 2 / 3, 1)),
        (["OPEN"], [], (0, 0, 1)),
        (["OPEN"], ["OPEN", "9 to 5"], (1, 1, 4 / 8)),
        (["one", "two"], ["two", "one"], (1, 1, 1)),
        (["SALE", "SATURDAY"], ["SALESATURDAY"], (1, 1, 1)),
        (["OPEN", "OPEN"], ["OPEN"], (0.5, 0.5, 1)),
        (["fresh bread", "today"], ["fresh today", "bread"], (1, 1, 1)),
        (["盛大开业"], ["盛大开亚"], (3 / 4, 3 / 4, 1)),
        (["ＯＰＥＮ 24"], ["open 24"], (1, 1, 1)),
        (["9:30"], ["930"], (3 / 4, 0, 1)),
        (["SALE", "SALE ENDS SUNDAY"], ["SALE ENDS SUNDAY", "SALE"], (1, 1, 1)),
        (["SALE ENDS SUNDAY", "SALE"], ["SALE ENDS SUNDAY", "SALE"], (1, 1, 1)),
        (
            ["SALE", "SALE ENDS SUNDAY"],
            ["SALE ENDS SUNDY", "SALE"],
            (17 / 18, 3 / 4, 1),
        ),
        (["GARDEN PARTY", "GARDEN GATE"], ["GARDEN GATE"], (10 / 21, 2 / 4, 1)),
        (["SALE"], ["KING"], (0, 0, 0)),
        (["SALE"], ["PALACE"], (2 / 6, 0, 1)),
        (["盛大开业"], ["盛"], (1 / 4, 1 / 4, 1)),
        (["盛大开业"], ["盛大开业了"], (4 / 5, 4 / 5, 1)),
        (["盛大开业"], ["新盛大开业", "欢迎"], (4 / 5, 4 / 5, 5 / 7)),
    ],
)
def test_scores_are_those_of_the_best_alignment(texts, lines, scores):
    found, _ = compare(texts, lines)
    assert tuple(found.values()) == pytest.approx(scores)


def test_the_reason_says_what_was_read_and_what_was_asked_for():
    assert (
        compare(["GRAND OPENING"], ["GRND OPENING"])[1]
        == 'reads "GRND OPENING" instead of "GRAND OPENING"'
    )
    assert compare(["OPEN", "9 to 5"], ["OPEN"])[1] == '"9 to 5" is missing'
    assert compare(["OPEN"], ["open", "since 1950"])[1] == 'also reads "since 1950"'
    assert compare(["OPEN"], ["open"])[1] == 'reads "OPEN"'
    assert (
        compare(["TO THE STARS"], ["1"])[1]
        == '"TO THE STARS" is missing; also reads "1"'
    )


def test_many_texts_and_a_long_reading_end_soon():
    texts = [f"{number} {'ab' * (number % 7)}" for number in range(120)]
    scores, _ = compare(texts, ["ba" * 40] * 60)
    assert 0 <= scores["SC"] < 1


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("a cat", "got none"),
        ('"LOST CAT"', "got none"),
        (
            'a café called "Luna"',
            'got "Luna"; or pass --columns texts.wanted_text=COLUMN',
        ),
        (f'says "{"a" * (MOST_LETTERS + 1)}"', "at most 2,000 letters"),
        ('says "שלום"', "OCR supports only Latin"),
        ('says "مرحبا"', "got"),
        ('says "I 🦊 NY"', "got 🦊"),
        ('says "привет"', "OCR supports only Latin"),
        ('says "한국"', "OCR supports only Latin"),
    ],
)
def test_a_prompt_whose_text_cannot_be_compared_is_not_applicable(prompt, reason):
    played = play(judge(sample(prompt)))
    assert played.rounds == []
    assert (played.verdict.status, played.verdict.scores) == (Status.NOT_APPLICABLE, {})
    assert reason in played.verdict.reason


@needs("rapidocr")
def test_letters_of_the_alphabet_are_readable_and_no_others():
    """Against the list in the weights, but for the rarest characters of the Chinese block."""
    import onnxruntime
    import rapidocr

    [file] = (Path(rapidocr.__file__).parent / "models").glob("*_rec_*.onnx")
    session = onnxruntime.InferenceSession(file)
    alphabet = set(session.get_modelmeta().custom_metadata_map["character"].split("\n"))
    codes = [
        *range(0x21, 0x2E80),
        *range(0x3041, 0x3130),
        *range(0xA000, 0xD800),
        *range(0xFB00, 0x20000),
    ]
    letters = {
        letter
        for code in codes
        for letter in letters_of(chr(code)).folded
        if unicodedata.category(letter)[0] == "L"
    }
    assert {letter for letter in letters if is_readable(letter)} - alphabet == set()


@needs("rapidocr")
def test_a_strip_that_ocr_cannot_read_is_not_applicable():
    [verdict] = evaluate(
        [sample(f'says "{OPEN}"', encoded(PIL.Image.new("RGB", (5000, 1))))],
        judge="text_rendering",
    )
    assert (verdict.status, verdict.scores) == (Status.NOT_APPLICABLE, {})
    assert "5000x1 pixels" in verdict.reason


def test_a_reading_that_failed_gives_no_score():
    played = play(
        judge(sample('says "OPEN"')), [Failure(Status.TOOL_ERROR, "no image")]
    )
    [[ask]] = played.rounds
    assert isinstance(ask, UseTool)
    assert (played.verdict.scores, played.verdict.status, played.verdict.reason) == (
        {},
        Status.TOOL_ERROR,
        "no image",
    )


def test_a_reading_is_stored_and_a_damaged_one_is_none():
    reading = ToolResult((Box(1, 2, 3, 4),), "GRAND\nOPENING")
    assert parse_stored(to_stored(reading)) == reading
    for text in (
        '{"kind": "ToolResult", "text": 3}',
        '{"kind": "ToolResult", "text": "a", "boxes": [{"left": "b"}]}',
    ):
        with pytest.raises(ValueError, match="no reply|not valid"):
            parse_stored(text)


@pytest.mark.parametrize(
    "text", ["0.5*text_rendering:words+sharpness", "text_rendering"]
)
@needs("rapidocr")
def test_as_a_reward_it_is_refused_unless_failures_are_neutral(text, vieval):
    with pytest.raises(
        VievalError,
        match="scores only prompts that ask for text in quotation marks.*--on-failure neutral",
    ):
        open_reward(text)
    assert open_reward(text, on_failure="neutral").definition == text
    assert (
        "--on-failure neutral" in vieval("serve", "--reward", f"r={text}", code=1).err
    )


# Read for real.


@needs("rapidocr")
def test_a_poster_is_read_and_its_reading_is_kept_with_its_version(tmp_path):
    options = {"store": {"path": tmp_path / "replies.sqlite"}}
    samples = [
        sample(f'says "{OPEN}"', poster(OPEN)),
        sample(f'says "{OPEN}"', poster("OPEN DALY")),
        sample('says "x"', b"no image"),
    ]
    right, wrong, broken = evaluate(samples, judge="text_rendering", options=options)
    assert right.scores == {"SC": 1, "words": 1, "no_extra_text": 1}
    assert wrong.scores == {
        "SC": pytest.approx(8 / 9),
        "words": 0.5,
        "no_extra_text": 1,
    }
    assert wrong.rationale == 'reads "OPEN DALY" instead of "OPEN DAILY"'
    assert broken.status is Status.NO_IMAGE
    [(model, count, *_)] = Store(tmp_path / "replies.sqlite").info()
    assert count == 2
    current = resolved(options)
    provenance = provenance_of(prepare("text_rendering", None, current), current, None)
    assert (provenance.backbone, provenance.reader) == ("text_rendering", model)
    assert re.fullmatch(r"RapidOCR 3\.\d+\.\d+, weights [0-9a-f]{12}", model)


@needs("rapidocr")
def test_what_is_stored_is_not_read_again(tmp_path, monkeypatch):
    ask = UseTool("ocr", {"image": Image(poster(OPEN))}, ("text",))
    store = Store(tmp_path / "replies.sqlite")
    with Router(Usage(), store) as router:
        [first] = router.answer_batch([(0, ask)], refuse_questions)
    monkeypatch.setattr(
        "vieval_plugin.backends.image_tools.text_reader.engine",
        lambda: pytest.fail("read again"),
    )
    with Router(usage := Usage(), store) as router:
        assert router.answer_batch([(0, ask)], refuse_questions) == [first]
    assert (usage.cached, usage.measured) == (1, 0)


@needs("rapidocr")
def test_several_images_at_a_time_are_read_as_one_by_one():
    lines = [
        "GRAND OPENING",
        "Fresh Bread",
        "SUMMER SALE",
        "Jazz Night",
        "Open House",
        "Book Fair",
    ]
    samples = [sample(f'says "{line}"', poster(line)) for line in lines]
    verdicts = evaluate(
        samples, judge="text_rendering", options={"store": {"use": False}}
    )
    assert [verdict.rationale for verdict in verdicts] == [
        f'reads "{line}"' for line in lines
    ]


@pytest.fixture
def posters(tmp_path, monkeypatch):
    """The folder with a right and a wrong poster of two texts, which are columns `words` of
    tables with and without prompts.
    """
    monkeypatch.chdir(tmp_path)
    texts = {"p0": OPEN, "p1": "BOOK FAIR"}
    for generator in ("new", "old"):
        (tmp_path / generator).mkdir()
        for uid, text in texts.items():
            (tmp_path / generator / f"{uid}.png").write_bytes(
                poster(text if generator == "new" else text[:-2])
            )
    for name, prompt in (("words", {}), ("prompts", {"prompt": "a poster"})):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["uid", *prompt, "words"])
            writer.writeheader()
            writer.writerows(
                {"uid": uid, **prompt, "words": text} for uid, text in texts.items()
            )
    return tmp_path


@pytest.mark.parametrize("table", ["words", "prompts"])
@needs("rapidocr")
def test_a_column_has_what_is_asked_for(table, posters, vieval):
    flags = (
        "new",
        "old",
        "--prompts",
        f"{table}.csv",
        "--columns",
        "texts.wanted_text=words",
        "--judge",
        SPEC.name,
    )
    vieval("score", *flags, "--out", "verdicts.jsonl")
    verdicts = [
        json.loads(line)
        for line in (posters / "verdicts.jsonl").read_text().splitlines()
    ]
    assert [verdict["scores"]["SC"] for verdict in verdicts] == pytest.approx(
        [1, 7 / 9, 1, 6 / 8]
    )
    assert "Mean SC of new: 1.00, 0.24 higher than old" in vieval("rank", *flags).out


@needs("rapidocr", "pyarrow")
def test_a_data_set_is_read_in_shards(posters, vieval):
    from pyarrow import Table, parquet

    rows = [
        {"image": (posters / "old" / f"p{n}.png").read_bytes(), "words": text}
        for n, text in enumerate((OPEN, "x"))
    ]
    parquet.write_table(Table.from_pylist(rows), posters / "data.parquet")
    vieval(
        "score",
        "data.parquet",
        "--columns",
        "texts.wanted_text=words",
        "--judge",
        SPEC.name,
        "--out",
        "verdicts",
    )
    [file] = (posters / "verdicts" / "verdicts").glob("*.parquet")
    scores = [row["scores"]["SC"] for row in parquet.read_table(file).to_pylist()]
    assert scores == pytest.approx([7 / 9, 0])


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(
        "vieval_plugin.judges.tools.importlib.util.find_spec", lambda name: None
    )
    with pytest.raises(
        VievalError,
        match=r"requires rapidocr and onnxruntime; run pip install \"\.\[text\]\"",
    ):
        SPEC.build(SPEC.options(), None, "")


def test_the_reader_keeps_nothing_of_the_machine_for_its_maker(monkeypatch):
    pytest.importorskip("rapidocr")
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    text_reader.engine.__wrapped__()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
