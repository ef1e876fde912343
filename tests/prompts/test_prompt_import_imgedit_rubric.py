"""ImgEdit's rubric, read from lmms-eval's Python file (the words of the files made here are ours)."""

from __future__ import annotations

import pytest

from tests.playing import play, prepared, text_of
from vieval_plugin.cli import main
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Text
from vieval_plugin.prompts import installed

NAMES = ("Fit", "Looks & Feel", "Detail")
SCORES = "".join(f"{name}: A number from 1 to 5.\n" for name in NAMES)
FILE = f"""
raise SystemExit("it was executed")
IMGEDIT_PROMPTS = {{
    "add": '''Rate {{{{ what }}}} was added. {{% on %}}\n{SCORES}It is: <edit_prompt>.''',
    "style": '''Rate the style.\n{SCORES}<edit_prompt>''',
}}
"""


def edit(category="add"):
    images = {"source": Image(b"source"), "output": Image(b"output")}
    return Sample(SampleId("b", "tie", "m", "1"), images, {"instruction": "a <hat> {{ x }}"}, category=category)


def imported(tmp_path, text=FILE, source="prompt.py"):
    path = tmp_path / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    code = main(["prompts", "import", "imgedit_rubric", str(path), "--to", str(tmp_path / "packs")])
    return code, str(tmp_path / "packs" / "lmms-eval")


@pytest.fixture
def rubric(tmp_path):
    code, folder = imported(tmp_path)
    assert code == 0
    return prepared("imgedit_rubric", pack=folder)


def said(*numbers, before="Brief reasoning: seams.\n"):
    return before + "\n".join(f"{name}: {number}" for name, number in zip(NAMES, numbers, strict=False))


def judged(rubric, *replies, category="add"):
    asks = []

    def answer(ask):
        asks.append(ask)
        return Text(replies[min(len(asks), len(replies)) - 1])

    return play(rubric.program(edit(category)), answer=answer).verdict, asks


def test_each_type_is_asked_its_own_words_with_the_instruction_and_both_images(rubric):
    verdict, [ask] = judged(rubric, said(5, 4, 3))
    assert text_of(ask) == f"Rate {{{{ what }}}} was added. {{% on %}}\n{SCORES}It is: a <hat> {{{{ x }}}}."
    assert [part.source for part in ask.messages[0].parts[1:]] == [b"source", b"output"]
    assert (verdict.status, verdict.scores) == (Status.OK, {"O": 0.75})  # mean 4 on 1 to 5
    assert (verdict.trace[0].scores, verdict.rationale, verdict.findings) == ((5, 4, 3), "seams.", ())
    assert text_of(judged(rubric, said(1, 1, 1), category="style")[1][0]).startswith("Rate the style.")
    assert judged(rubric, said(1, 1, 1))[0].scores == {"O": 0}


@pytest.mark.parametrize(
    "reply",
    ["It is lovely.", said(5, 4), said(5, 4, 6), said(5, 4, 0), said(5, 4, "3 or 4"), said(5, 4, 3) + "\nFit: 2"],
)
def test_what_is_not_one_number_for_each_is_never_a_score(rubric, reply):
    verdict, asks = judged(rubric, reply)
    assert (verdict.status, verdict.scores) == (Status.PARSE_FAILURE, {})
    assert len(asks) == 2
    assert "format above" in text_of(asks[1])
    saved, _ = judged(rubric, reply, said(4, 4, 4))
    assert (saved.status, saved.scores) == (Status.REPAIRED, {"O": 0.75})


def test_a_reply_that_breaks_the_rubrics_own_rule_is_counted(rubric):
    verdict, _ = judged(rubric, said("**2**", "5/5", "2."))
    assert (verdict.scores, verdict.findings) == ({"O": 0.5}, ("a score above the first",))


def test_a_type_without_a_rubric_is_not_asked_about(rubric):
    verdict, asks = judged(rubric, said(1, 1, 1), category="dance")
    assert (verdict.status, asks) == (Status.NOT_APPLICABLE, [])
    assert "no rubric for the type 'dance' (it has add, style)" in verdict.trace[0].reason


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("PROMPTS = {}", "no constant IMGEDIT_PROMPTS with a text for each type"),
        ("IMGEDIT_PROMPTS = read()", "no constant IMGEDIT_PROMPTS with a text for each type"),
        (FILE.replace("<edit_prompt>'''", "'''"), "the text of 'style' has not one <edit_prompt> and three scores"),
        (FILE.replace("Detail: A number from 1 to 5", "Detail: yes"), "the text of 'add' has not one"),
        ("IMGEDIT_PROMPTS = {", "cannot be read as Python"),
    ],
)
def test_a_file_that_is_not_as_expected_is_one_line(tmp_path, capsys, text, line):
    assert imported(tmp_path, text)[0] == 1
    told = capsys.readouterr().err.strip()
    assert line in told
    assert "\n" not in told
    assert not (tmp_path / "packs").exists() or not list((tmp_path / "packs").iterdir())


def test_the_rubric_of_the_installed_host_is_the_default(monkeypatch):
    host = pytest.importorskip("lmms_eval.tasks.imgedit.prompt", reason="lmms-eval is not installed")
    pack = installed.load("installed/imgedit_rubric")
    assert set(pack.questions) == set(host.IMGEDIT_PROMPTS)
    for kind, text in host.IMGEDIT_PROMPTS.items():
        words = pack.render(pack.questions[kind].template, {"instruction": "add {{ a }} hat"})
        assert words == text.replace("<edit_prompt>", "add {{ a }} hat").strip()
    assert prepared("imgedit_rubric").provenance.pack_hash == pack.hash
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VievalError, match="which is not installed"):
        installed.load("installed/imgedit_rubric")
    with pytest.raises(VievalError, match="no wording of 'nobody' is read from a package; known: imgedit_rubric"):
        installed.load("installed/nobody")
