"""A line of a samples file that is bad is that sample's verdict; the others are judged."""

import json

import PIL.Image
import pytest

from tests.fake_server import named

PROMPT = {"texts": {"prompt": "a teal square"}, "kind": "tig"}


@pytest.fixture
def folder(tmp_path):
    for name in ("a.png", "b.jpg"):
        PIL.Image.effect_noise((64, 48), 60).convert("RGB").save(tmp_path / name)
    return tmp_path


@pytest.fixture
def score(score, server, folder):
    """Scores lines of a samples file."""

    def scored(*lines, options=(), joined=b"\n"):
        encoded = lambda it: it if isinstance(it, bytes) else json.dumps(it).encode()
        (folder / "s.jsonl").write_bytes(joined.join(map(encoded, lines)))
        return score(folder / "s.jsonl", *named(server), *options)

    return scored


def line(uid, file="a.png", **more):
    return {"uid": uid, "images": {"output": file}, **PROMPT, **more}


WHOLE = "`draw` must be a non-negative integer"
UNTOLD = "the sample has no prompt text"
DEEP = b'{"uid": "u", "texts": '
BAD_LINES = {
    "parse_failure": [
        (b"{", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b'"' + b"x" * 100_000 + b'"', "not a JSON object"),
        (DEEP + b"[" * 20_000 + b"}", "nested too deeply"),
        (DEEP + b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}}", "nested too"),
        (b'{"uid": "\\ud800", "images": {"output": "a.png"}}', "a lone surrogate"),
        (b'{"uid": "\xff\xfe"}', "not UTF-8"),
        (b'{"uid": ' + b"9" * 5000 + b"}", "not a JSON object"),
        (line(["x"]), "`uid` must be a string"),
        (line("u", image="x"), "unknown key 'image'"),
        (line("u", texts={"prompt": [None]}), "must contain at least one prompt"),
        (line("u", texts={"prompt": 3}), "`texts` must map names"),
        (line("u", images={"output": 3}), "`images` must map roles (output, source"),
        (line("u", kind=7), "`kind` must be a string, got 7"),
        (line("u", draw=-1), WHOLE),
        (line("u", draw=True), WHOLE),
        (line("u", tags="red"), "`tags` must be a list of strings"),
    ],
    "no_image": [
        (line("u", "nowhere.png"), "missing output image"),
        (line("u", ""), "missing output image"),
        (line("u", "x" * 5000), "missing output image"),
        (line("u", "a\0.png"), "missing output image"),
        (line("u", images={}), "the sample has no output image"),
    ],
    "tool_error": [(line("u", "https://example.com/a.png"), "is a URL, not a local")],
    "not_applicable": [
        (line("u", texts={}), UNTOLD),
        (line("u", texts={}, kind=""), UNTOLD),
        (line("u", kind="sculpture"), "does not support the kind 'sculpture'"),
    ],
}


CASES = [
    (bad, status, said) for status, rows in BAD_LINES.items() for bad, said in rows
]


@pytest.mark.parametrize(
    ("bad", "status", "reason"), CASES, ids=[str(case[0])[:24] for case in CASES]
)
def test_a_bad_line_is_its_samples_verdict(score, server, bad, status, reason):
    code, rows, said, _ = score(line("first"), bad, line("last"))
    assert [row["status"] for row in rows] == ["ok", status, "ok"]
    is_named = not isinstance(bad, bytes) and bad["uid"] == "u"
    assert rows[1]["uid"] == ("u" if is_named else "line 2")
    assert reason in rows[1]["trace"][0]["reason"]
    assert len(rows[1]["trace"][0]["reason"]) < 500
    assert reason in said
    assert code == (not reason.startswith(("the sample has no", "does not support")))
    # the two samples have the same questions; one asks about schemas
    assert server.stats()["requests"] == 3


@pytest.mark.parametrize("name", ["a.png", "b.jpg"])
@pytest.mark.parametrize("kept", [0.99, 0.5, 60])
def test_damaged_images_fail_their_samples(score, folder, name, kept):
    whole = (folder / name).read_bytes()
    (folder / "cut").write_bytes(whole[: kept if kept > 1 else int(len(whole) * kept)])
    code, rows, _, said = score(line("first"), line("cut", "cut"), line("last", name))
    assert [row["status"] for row in rows] == ["ok", "no_image", "ok"]
    assert code == 1
    assert "FAILED CALLS: unreadable image" in said


def test_a_line_without_a_uid_is_called_by_its_output_or_number(score):
    unnamed = {name: value for name, value in line("").items() if name != "uid"}
    of_model = {**unnamed, "image_model": "m"}
    empty = {**unnamed, "images": {}}
    _, rows, _, _ = score(unnamed, unnamed, of_model, empty)
    found = [(row["image_model"], row["uid"]) for row in rows]
    assert found == [("", "a"), ("", "a_2"), ("m", "a"), ("", "4")]
    code, _, _, said = score(unnamed, line("a"))
    assert code == 1
    assert "line 1 and line 2 both have uid 'a' (tig)" in said


def test_a_byte_order_mark_and_carriage_returns_are_read(score):
    first = b"\xef\xbb\xbf" + json.dumps(line("1")).encode()
    code, rows, _, _ = score(first, line("2"), b"", joined=b"\r\n")
    assert code == 0
    assert [(row["uid"], row["status"]) for row in rows] == [("1", "ok"), ("2", "ok")]


STRICT = (
    (b"{", "not a JSON object"),
    (line("u", image="x"), "unknown key 'image'; known keys: "),
    (line("u", "nowhere.png"), "missing output image"),
    (line("u", texts={}), "the sample has no prompt text"),
    (line("u", "cut"), "/cut "),
)


def test_strict_stops_at_the_first_bad_line(score, server, folder):
    (folder / "cut").write_bytes((folder / "a.png").read_bytes()[:900])
    last = line("4", "nowhere.png")
    for bad, reason in STRICT:
        code, rows, _, said = score(line("1"), b"", bad, last, options=["--strict"])
        assert (code, rows) == (1, [])
        assert said.startswith(f"vieval: {folder / 's.jsonl'}: line 3: ")
        assert reason in said
    assert server.stats()["requests"] == 0


def test_a_run_of_bad_lines_alone_says_that_nothing_could_be_judged(score, server):
    code, rows, _, said = score(b"{", line("u", "nowhere.png"))
    assert code == 1
    assert [row["status"] for row in rows] == ["parse_failure", "no_image"]
    assert said.endswith("vieval: no sample could be judged (see above)\n")
    assert server.stats()["requests"] == 0


def test_a_verdict_on_a_bad_line_can_be_shown(score, folder, vieval):
    score(line("first"), b"{", line("u", "nowhere.png"))
    verdicts = folder / "verdicts.jsonl"
    page = folder / "p.html"
    for uid in ("line 2", "u"):
        vieval("show", verdicts, uid)
    vieval("show", verdicts, "u", "--html", page)
    assert "missing output image" in page.read_text()
