"""Judges in one file: what a file asks and scores, and what is wrong with one in a line."""

import dataclasses
import re
import shutil
from pathlib import Path

import pytest
import yaml

import vieval_plugin.prompt_templates
from tests import bounds
from tests.extras import needs
from tests.judge_files import LEGIBILITY
from tests.judges.viescore_answers import ORDER, SUB_SCORES, answer, sample
from tests.playing import play, prepared
from tests.prompts.hostile import BOMBS, REFUSED
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin import Status
from vieval_plugin.backends.metrics.networks.dual_encoder import DualEncoder
from vieval_plugin.backends.metrics.networks.served import ServedScorer
from vieval_plugin.backends.metrics.networks.value_head import ValueHead
from vieval_plugin.benchmarks import tasks
from vieval_plugin.judges import registry
from vieval_plugin.judges.protocol import (
    Box,
    Failure,
    Measurement,
    Text,
    ToolResult,
    UseTool,
)
from vieval_plugin.judges.required import missed_requirements
from vieval_plugin.judges.spec import INPUTS
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.scale import Scale
from vieval_plugin.prompts.schema import Manifest, QuestionSection

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def file(tmp_path):
    """Writes a judge: the legibility judge with other keys, or a text; its path."""

    def write(text="", **changes):
        path = tmp_path / "judge.yaml"
        document = {**yaml.safe_load(LEGIBILITY), **changes}
        document = {key: value for key, value in document.items() if value is not None}
        path.write_text(text or yaml.safe_dump(document, sort_keys=False))
        return str(path)

    return write


def question(text="Rate it.", scores=("a",), **further):
    return {"text": text, "scores": list(scores), **further}


def judged(judge, *rounds):
    """The played judge on a generated image."""
    return play(judge.program(sample("tig")), *rounds)


def test_the_legibility_judge_is_a_judge_in_few_lines(file):
    assert len(LEGIBILITY.splitlines()) <= bounds.LINES_OF_A_SMALL_JUDGE
    judge = prepared(file(LEGIBILITY))
    played = judged(judge, [answer(7)])
    [ask] = played.asks
    image, text = ask.messages[0].parts
    assert image.source.stem == "output"
    assert text.startswith("Rate from 0 to 10 how legible")
    assert ask.schema["properties"]["score"]["maxItems"] == 1
    assert (played.verdict.scores, played.verdict.status) == ({"PQ": 0.7}, Status.OK)
    spec, source = judge.spec, judge.provenance
    assert (spec.title, spec.aspects) == ("Legibility of text", ("PQ",))
    assert judge.asks_a_model
    assert (source.judge, source.pack) == ("legibility", "legibility")
    assert play(judge.program(sample("cig"))).verdict.status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("kind", ORDER)
def test_viescore_as_a_file_asks_what_viescore_asks(kind, tmp_path):
    pack = Path(vieval_plugin.prompt_templates.__path__[0], "viescore", "v1")
    for file in (*pack.glob("*.jinja"), Path(__file__).parent / "viescore.yaml"):
        shutil.copy(file, tmp_path)
    judges = prepared("viescore"), prepared(str(tmp_path / "viescore.yaml"))
    unread = [Text("I cannot tell."), answer(6, 8)]
    read = [answer(*[9.0, 4.0, 7.0][: SUB_SCORES[kind]])]
    first, second = (play(j.program(sample(kind)), unread, read) for j in judges)
    assert repr(first.rounds) == repr(second.rounds)
    assert first.verdict == second.verdict
    built_in, in_file = (judge.spec for judge in judges)
    assert (built_in.needs, built_in.aspects) == (in_file.needs, in_file.aspects)


def test_a_network_answers_in_place_of_a_model(file):
    text = "{{ kind }}: {{ prompt | default('') }}{{ instruction | default('') }}"
    network = {"form": "dual_encoder", "base": "base"}
    changes = {"kinds": None, "scale": [-1, 1], "combine": None, "network": network}
    judge = prepared(file(questions={"SC": {"text": text}}, **changes))
    played = play(judge.program(sample("tie")), [Measurement(0.5, "net")])
    [ask] = played.asks
    assert (ask.metric, ask.backbone) == ("dual_encoder", "legibility")
    assert list(ask.images) == ["image_0"]
    assert ask.texts["text"].startswith("tie: ")
    assert played.verdict.scores == {"SC": 0.75}
    assert judge.spec.scored
    assert judge.spec.against_all
    assert not judge.asks_a_model
    assert set(judge.spec.needs) == set(INPUTS)


def test_kinds_are_those_that_have_what_is_shown_and_named(file):
    edit = question("About {{ instruction }}", images=["source", "output"])
    judge = prepared(file(kinds=None, combine=None, questions={"SC": edit}))
    assert set(judge.spec.needs) == {"mie", "tie"}
    caption = {"SC": question("About {{ caption }} {{ names }}")}
    own = prepared(file(texts=["caption"], combine=None, questions=caption))
    assert own.spec.needs["tig"].texts == ("caption",)


@pytest.mark.parametrize(*table("wrong_judge_files.jsonl"))
def test_what_is_wrong_is_one_line_with_its_file_and_key(file, changes, line):
    path = file(**changes)
    said = refusal(registry.judge, path)
    assert line in said
    assert said.startswith(str(Path(path).parent))


def test_answers_are_words_in_quotation_marks(file):
    path = file(answers={True: 1}, replies="expected")
    assert "words such as Yes and No in quotation" in refusal(registry.judge, path)


def test_two_judges_of_one_name_and_a_file_that_is_not_there(file, tmp_path):
    registry.judge(file())
    (other := tmp_path / "other.yaml").write_text(LEGIBILITY)
    taken = "legibility is already the name of the judge in"
    assert taken in refusal(registry.judge, str(other))
    assert registry.judge(file(title="Changed")).title == "Changed"
    assert "nowhere.yaml: no such file" in refusal(registry.judge, "nowhere.yaml")


@pytest.mark.parametrize(
    "template",
    [BOMBS["doubling by ~"], BOMBS["a number and a text"], REFUSED["a macro"]],
)
def test_a_hostile_template_is_refused_or_its_samples_failure(file, template):
    path = file(questions={"PQ": question(template)}, kinds=["tig"])
    assert len(refusal(lambda: play(prepared(path).program(sample("tig"))))) < 700


def test_a_name_that_is_a_task_of_another_judge_takes_none_of_its_tasks(file):
    registry.judge(file(name="viescore_tie", kinds=["tie"]))
    assert tasks.entries()["imagenhub_viescore_tie"].judge == "viescore"


def test_a_folder_brings_the_judges_that_are_whole(file, tmp_path, monkeypatch, capsys):
    file()
    (tmp_path / "broken.yaml").write_text("name: broken\nquestion: {}\n")
    monkeypatch.setenv(registry.FOLDER_VARIABLE, str(tmp_path))
    registry.judges.cache_clear()
    assert {"legibility", "viescore"} <= set(registry.judges())
    assert "broken.yaml: " in capsys.readouterr().err


def test_the_hash_is_that_of_the_words_and_not_of_other_files(file, tmp_path):
    path = file(questions={"PQ": {"template": "pq.jinja", "scores": ["a"]}})
    (tmp_path / "pq.jinja").write_text("{% include 'part.jinja' %}")
    (tmp_path / "part.jinja").write_text("Rate it.")
    before = packs.load(path).hash
    (tmp_path / "other.jinja").write_text("Another judge's.")
    assert packs.load(path).hash == before
    (tmp_path / "part.jinja").write_text("Rate it well.")
    assert packs.load(path).hash != before


GUIDES = ("judges", "extending")
FORMS = {"value_head": ValueHead, "dual_encoder": DualEncoder, "served": ServedScorer}
PAGES = "".join((DOCS / "guides" / f"{p}.md").read_text() for p in GUIDES)
BLOCKS = re.findall(r"```yaml(?: \S+)?\n(.*?)```", PAGES, re.DOTALL)
SHOWN = [block for block in BLOCKS if "questions:" in block]


@pytest.mark.parametrize("block", SHOWN, ids=range(len(SHOWN)))
def test_those_that_the_docs_show_are_judges(tmp_path, block):
    if "judge:" in block:
        pytest.skip("a prompt pack")
    (tmp_path / "mine.yaml").write_text(block)
    (tmp_path / "hpsv3.jinja").write_text("{{ prompt }} <|Reward|>")
    found = registry.judge(str(tmp_path / "mine.yaml"))
    if found.scored:
        form = FORMS[found.file.manifest.network["form"]]
        assert packs.network_settings(found.file, form)


def test_the_docs_name_every_key():
    models = (Manifest, QuestionSection, *FORMS.values())
    keys = [key for model in models for key in model.model_fields]
    assert [key for key in keys if f"`{key}`" not in PAGES] == []


@pytest.mark.parametrize("kind", ["linear", "sigmoid"])
def test_a_score_is_better_the_higher_it_is(kind):
    numbers = [-4.0, -1.0, 0.0, 0.5, 2.0, 900.0]
    higher = [Scale(kind, -2, 3)(number) for number in numbers]
    lower = [Scale(kind, -2, 3, "lower")(number) for number in numbers]
    assert higher == sorted(higher)
    assert lower == pytest.approx([1 - score for score in higher])
    assert all(0 <= score <= 1 for score in higher)
    assert Scale("sigmoid", -2, 3)(-1e9) == 0


RATED = {"SC": ["subject", "style"], "PQ": ["clean"]}
POSTER = {
    "kinds": ["tig"],
    "questions": {key: question(scores=names) for key, names in RATED.items()},
    "combine": {"O": "geometric_mean"},
    "measure": {"text": "text_rendering:words"},
    "require": {"text": 0.9, "style": 0.5},
}
BROKEN = Failure(Status.TOOL_ERROR, "broken")


def poster_of(prompt):
    return dataclasses.replace(sample("tig"), texts={"prompt": prompt})


def read_as(text):
    return ToolResult((Box(0, 0, 9, 9),), text)


@needs("rapidocr")
@pytest.mark.parametrize(
    ("sc", "reading", "overall", "reason"),
    [
        ([9, 5], read_as("OPEN"), 0.5**0.5, ""),
        ([9, 4], read_as("OPEN"), 0, "O: 0, as style is 0.40, below the required 0.5"),
        ([9, 5], read_as("OPN"), 0, "O: 0, as text is 0.00, below the required 0.9"),
        ([9, 5], BROKEN, None, ""),
        ([9, 4], BROKEN, 0, "O: 0, as style is 0.40"),
    ],
)
def test_a_missed_requirement_makes_overall_0(file, sc, reading, overall, reason):
    judge = prepared(file(**POSTER)).judge
    replies = {"SC": answer(*sc), "PQ": answer(10)}
    reply = lambda ask: reading if isinstance(ask, UseTool) else replies[ask.path[0]]
    played = play(judge(poster_of('a sign that says "OPEN"')), answer=reply)
    verdict = played.verdict
    assert verdict.scores.get("O") == (overall and pytest.approx(overall))
    assert verdict.rationale.startswith(reason)
    lines = verdict.rationale.splitlines()
    missed = [line for line in lines if reason and reason in line]
    assert missed_requirements(verdict) == missed
    assert verdict.scores["SC"] == min(sc) / 10
    is_read = isinstance(reading, ToolResult)
    assert (verdict.status is Status.OK) == ("text" in verdict.scores) == is_read
    assert len(played.rounds[0]) == 3


@needs("rapidocr")
def test_a_prompt_that_asks_for_no_text_needs_none(file):
    judge = prepared(file(**POSTER))
    source = judge.by("m")
    assert (source.backbone, source.reader.split()[0]) == ("m", "RapidOCR")
    verdict = play(judge.judge(poster_of("a cat")), [answer(9, 9), answer(9)]).verdict
    assert verdict.status is Status.OK
    assert verdict.scores == pytest.approx({"SC": 0.9, "PQ": 0.9, "O": 0.9})
