"""Judges in one file: what a file asks and scores, and what is wrong with one in a line."""

import dataclasses
import json
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
from vieval_plugin.backends.metrics.networks.dual_encoder import DualEncoder
from vieval_plugin.backends.metrics.networks.served import ServedScorer
from vieval_plugin.backends.metrics.networks.value_head import ValueHead
from vieval_plugin.benchmarks import tasks
from vieval_plugin.judges import registry
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import (
    Box,
    Failure,
    Likelihood,
    Measure,
    Measurement,
    Probabilities,
    SampleId,
    Status,
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


def test_the_legibility_judge_is_a_judge_in_few_lines(file):
    assert len(LEGIBILITY.splitlines()) <= bounds.LINES_OF_A_SMALL_JUDGE
    judge = prepared(file(LEGIBILITY))
    played = play(judge.program(sample("tig")), [answer(7)])
    [ask] = played.asks
    image, text = ask.messages[0].parts
    assert image.source.stem == "output"
    assert text.startswith("Rate from 0 to 10 how legible")
    assert ask.schema["properties"]["score"]["maxItems"] == 1
    assert (played.verdict.scores, played.verdict.status) == ({"PQ": 0.7}, Status.OK)
    assert (judge.spec.title, judge.spec.aspects, judge.asks_a_model) == (
        "Legibility of text",
        ("PQ",),
        True,
    )
    assert (judge.provenance.judge, judge.provenance.pack) == (
        "legibility",
        "legibility",
    )
    assert play(judge.program(sample("cig"))).verdict.status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("kind", ORDER)
def test_viescore_as_a_file_asks_what_viescore_asks(kind, tmp_path):
    for template in Path(
        vieval_plugin.prompt_templates.__path__[0], "viescore", "v1"
    ).glob("*.jinja"):
        shutil.copy(template, tmp_path)
    shutil.copy(Path(__file__).parent / "viescore.yaml", tmp_path)
    built_in, in_file = prepared("viescore"), prepared(str(tmp_path / "viescore.yaml"))
    replies = (
        [Text("I cannot tell."), answer(6, 8)],
        [answer(*[9.0, 4.0, 7.0][: SUB_SCORES[kind]])],
    )
    first, second = (
        play(judge.program(sample(kind)), *replies) for judge in (built_in, in_file)
    )
    assert repr(first.rounds) == repr(second.rounds)
    assert first.verdict == second.verdict
    assert built_in.spec.needs == in_file.spec.needs
    assert built_in.spec.aspects == in_file.spec.aspects


@pytest.mark.parametrize(
    ("combination", "score"),
    [("min", 0.4), ("mean", 0.65), ("product", 0.36), ("geometric_mean", 0.6)],
)
def test_sub_scores_combine_within_an_aspect_and_across(file, combination, score):
    questions = {"SC": question(scores=("a", "b")), "PQ": question()}
    judge = prepared(
        file(questions=questions, combine={"SC": combination, "O": "mean"})
    )
    verdict = play(judge.program(sample("tig")), [answer(9, 4), answer(10)]).verdict
    assert verdict.scores == {
        "SC": pytest.approx(score),
        "PQ": 1.0,
        "O": pytest.approx((score + 1) / 2),
    }
    half = play(
        judge.program(sample("tig")), [answer(9, 4), Text("no idea")], [Text("none")]
    ).verdict
    assert set(half.scores) == {"SC"}


def test_a_scale_has_ends_and_a_direction(file):
    judge = prepared(file(scale=[1, 5], better="lower"))
    played = play(judge.program(sample("tig")), [answer(2)])
    assert played.asks[0].schema["properties"]["score"]["items"] == {
        "type": "number",
        "minimum": 1,
        "maximum": 5,
    }
    assert played.verdict.scores == {"PQ": 0.75}
    again = play(judge.program(sample("tig")), [answer(0)], [answer(1)])
    assert "from 1 to 5" in again.asks[1].messages[-1].parts[0]
    above = play(judge.program(sample("tig")), [answer(6)], [answer(1)])
    assert "from 1 to 5" in above.asks[1].messages[-1].parts[0]
    assert (again.verdict.scores, again.verdict.status) == (
        {"PQ": 1.0},
        Status.REPAIRED,
    )


@pytest.mark.parametrize(
    ("reply", "status"),
    [(" 7.5\n", "ok"), ("Score: 7.5/10", "repaired"), ("about 7", None)],
)
def test_a_reply_may_be_one_number(file, reply, status):
    judge = prepared(file(replies="number"))
    played = play(
        judge.program(sample("tig")),
        *[[Text(reply)], [Text("none")]][: 1 if status else 2],
    )
    assert played.asks[0].schema is None
    if status:
        assert (played.verdict.scores, played.verdict.status) == ({"PQ": 0.75}, status)
    else:
        assert played.asks[1].messages[-1].parts[0].endswith("with one number alone.")


def test_a_reply_may_be_labelled_lines(file):
    shown = question("Rate it.", ("Fidelity", "Sharpness"))
    described = file(replies="labelled_lines", scale=[1, 5], questions={"PQ": shown})
    played = play(
        prepared(described).program(sample("tig")),
        [Text("A little soft.\nFidelity (1-5): 4")],
        [Text("A little soft.\nFidelity (1-5): 4\nSharpness (1-5): 2")],
    )
    assert played.asks[0].schema is None
    assert played.asks[1].messages[-1].parts[0].endswith("its number behind it.")
    verdict = played.verdict
    assert (verdict.scores, verdict.status) == ({"PQ": 0.25}, Status.REPAIRED)
    assert verdict.rationale == "PQ: A little soft."


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        ('{"score": [5], "text": "STOP"}', True),
        ('{"score": [5], "text": "STOP", "confidence": 0.3}', True),
        ('{"score": [5]}', False),
        ('{"score": [5], "text": "STOP", "reasoning": "x"}', True),
    ],
)
def test_an_answer_has_the_keys_that_the_words_show_and_those_marked_as_optional(
    file, reply, read
):
    shown = question('Rate it as {"score": [n], "text": "..."}', ("a",))
    judge = prepared(
        file(replies="free_json", optional=["confidence"], questions={"PQ": shown})
    )
    game = play(
        judge.program(sample("tig")),
        *[[Text(reply)], [Text("none")]][: 1 if read else 2],
    )
    assert game.asks[0].schema is None
    assert game.verdict.scores == ({"PQ": 0.5} if read else {})


def test_an_expected_value_over_answers_and_its_interval(file):
    judge = prepared(
        file(replies="expected", scale=[0, 1], answers={"Yes": 1, "No": 0})
    )
    known = Probabilities((0.1, 0.1, 0.5, 0.1), (0.1, 0.1, 0.5, 0.1))
    played = play(judge.program(sample("tig")), [known])
    [ask] = played.asks
    assert isinstance(ask, Likelihood)
    assert ask.continuations == ("No", " No", "Yes", " Yes")
    assert played.verdict.scores == {"PQ": pytest.approx(0.75)}
    wide = Probabilities((0.0, 0.1, 0.5, 0.1), (0.2, 0.1, 0.5, 0.1))
    bounds = play(judge.program(sample("tig")), [wide]).verdict.bounds["PQ"]
    assert bounds == pytest.approx((0.6 / 0.9, 0.6 / 0.7))
    numbers = prepared(file(replies="expected", scale=[1, 3], better="lower"))
    assert next(numbers.program(sample("tig")))[0].continuations[:2] == ("3", " 3")


CHOOSE = """\
name: clearer
kinds: [tie]
questions:
  choice:
    text: |
      The instruction was: {{ instruction }}. The original: {{ places.source }}
      {% for candidate in candidates %}{{ candidate.name }}: {{ candidate.place }} {% endfor %}
      Which is clearer? Answer as JSON: {"reasoning": "...", "better": "A" or "B"}
    images: [source, output]
replies: two_way
"""


def test_a_choice_among_candidates_is_asked_in_both_orders(file):
    judge = prepared(file(CHOOSE))
    candidates = tuple(sample("tie") for _ in "ab")
    contest = Contest(SampleId("own", "tie", "", "1"), candidates)
    better = [
        Text('{"reasoning": "x", "better": "A"}'),
        Text('{"reasoning": "x", "better": "B"}'),
    ]
    played = play(judge.program(contest), better)
    assert [ask.path for ask in played.asks] == [("forward",), ("reverse",)]
    assert played.verdict.choice.votes == {"forward": "first", "reverse": "first"}
    assert (judge.spec.rates, judge.spec.aspects) == ("contest", ())


def test_a_network_answers_in_place_of_a_model(file):
    questions = {
        "SC": {
            "text": "{{ kind }}: {{ prompt | default('') }}{{ instruction | default('') }}"
        }
    }
    network = {"form": "dual_encoder", "base": "base"}
    judge = prepared(
        file(
            questions=questions,
            kinds=None,
            scale=[-1, 1],
            combine=None,
            network=network,
        )
    )
    played = play(judge.program(sample("tie")), [Measurement(0.5, "net")])
    [ask] = played.asks
    assert isinstance(ask, Measure)
    assert (ask.metric, ask.backbone, list(ask.images)) == (
        "dual_encoder",
        "legibility",
        ["image_0"],
    )
    assert ask.texts["text"].startswith("tie: ")
    assert played.verdict.scores == {"SC": 0.75}
    assert (judge.spec.scored, judge.spec.against_all, judge.asks_a_model) == (
        True,
        True,
        False,
    )
    assert set(judge.spec.needs) == set(INPUTS)


def test_kinds_are_those_that_have_what_is_shown_and_named(file):
    judge = prepared(
        file(
            kinds=None,
            combine=None,
            questions={
                "SC": question("About {{ instruction }}", images=["source", "output"])
            },
        )
    )
    assert set(judge.spec.needs) == {"mie", "tie"}
    own = prepared(
        file(
            texts=["caption"],
            combine=None,
            questions={"SC": question("About {{ caption }} {{ names }}")},
        )
    )
    assert own.spec.needs["tig"].texts == ("caption",)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"scael": [0, 1]}, "unknown key scael; did you mean scale?"),
        (
            {"questions": {"PQ": {**question(), "imags": ["output"]}}},
            "unknown key questions.PQ.imags; did you mean images?",
        ),
        (
            {"scale": [10, 0]},
            "scale: the first number must be less than the second (use better: lower to reverse the scale)",
        ),
        ({"scale": [-1, 1]}, "scale: must not go below 0"),
        ({"scale": [0, float("inf")]}, "scale: both numbers must be finite"),
        (
            {"name": "viescore"},
            "name: viescore is already the name of the judge VIEScore; choose another name",
        ),
        (
            {"name": "My judge"},
            "name: must contain only lowercase letters, digits and _, got 'My judge'",
        ),
        (
            {"judge": "viescore"},
            "judge: this file is a prompt pack for viescore, not a judge; set judges.viescore.pack to its path",
        ),
        (
            {"kinds": ["tgi"]},
            "kinds: unknown name 'tgi'; did you mean tig?; known names: tig, mie,",
        ),
        (
            {"questions": {"QP": question()}},
            "questions: unknown name 'QP'; did you mean PQ?; known names: SC, PQ, O",
        ),
        ({"questions": {"PQ_xyz": question()}}, "questions.PQ_xyz: unknown name 'xyz'"),
        (
            {"questions": {"PQ_tig": question()}},
            "questions: unknown name 'PQ' for the kind tie",
        ),
        (
            {"questions": {"PQ": question(images=["sorce"])}},
            "questions.PQ.images: unknown name 'sorce' in the kind tig",
        ),
        (
            {"questions": {"PQ": question("{{ instruction }}")}},
            "questions.PQ: PQ: unknown name 'instruction' in the kind tig; known names: prompt",
        ),
        (
            {"kinds": ["tie"], "questions": {"PQ": question("{{ instructon }}")}},
            "did you mean instruction?",
        ),
        (
            {"questions": {"PQ": question(scores=())}},
            "questions.PQ.scores: must list a name for each number",
        ),
        (
            {"questions": {"PQ": {"scores": ["a"]}}},
            "questions.PQ: must have exactly one of text and template",
        ),
        (
            {"questions": {"PQ": {"template": "x.jinja", "scores": ["a"]}}},
            "the template x.jinja is not in",
        ),
        (
            {"questions": {"PQ": question("{% for %}")}},
            "PQ, line 1: Expected an expression",
        ),
        (
            {"questions": {"PQ": question("{{ prompt | pprint }}")}},
            "unknown filter 'pprint'; known in prompts",
        ),
        ({"questions": {}}, "questions: Dictionary should have at least 1 item"),
        ({"combine": {"SC": "min"}}, "combine: unknown name 'SC'"),
        (
            {"combine": {"O": "min"}},
            "combine.O: requires questions about SC and PQ, got PQ only",
        ),
        (
            {"combine": {"PQ": "median"}},
            "combine.PQ: Input should be 'min', 'mean', 'product' or 'geometric_mean'",
        ),
        ({"replies": "markdown"}, "replies: unknown name 'markdown'"),
        (
            {"replies": "number", "questions": {"PQ": question(scores=("a", "b"))}},
            "must contain only one name if `replies` is `number`",
        ),
        (
            {
                "replies": "labelled_lines",
                "questions": {"PQ": question(scores=("score", "Final Score"))},
            },
            "labels must not contain each other, got 'score' in 'Final Score'",
        ),
        ({"answers": {"Yes": 1}}, "answers: does not apply to `replies: json`"),
        (
            {"answers": {True: 1}, "replies": "expected"},
            "answers: write words such as Yes and No in quotation marks",
        ),
        (
            {"replies": "expected", "scale": [0, 1000]},
            "answers: required because the scale has more than 100 steps",
        ),
        (
            {"network": {"base": "x"}, "combine": None},
            "network.form: must be the type of the network",
        ),
        (
            {"network": {"form": "x"}, "combine": None, "scale": None},
            "scale: set either scale or sigmoid",
        ),
        (
            {"network": {"form": "x"}, "replies": "number"},
            "combine: does not apply to a judge with a network",
        ),
    ],
)
def test_what_is_wrong_is_one_line_with_its_file_and_key(file, changes, line):
    path = file(**changes)
    said = refusal(registry.judge, path)
    assert line in said
    assert said.startswith(str(Path(path).parent))


def test_two_judges_of_one_name_and_a_file_that_is_not_there(file, tmp_path):
    registry.judge(file())
    (tmp_path / "other.yaml").write_text(LEGIBILITY)
    assert "legibility is already the name of the judge in" in refusal(
        registry.judge, str(tmp_path / "other.yaml")
    )
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


def test_a_folder_of_judges_brings_those_that_are_whole(
    file, tmp_path, monkeypatch, capsys
):
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


FORMS = {"value_head": ValueHead, "dual_encoder": DualEncoder, "served": ServedScorer}
SHOWN = [
    block
    for page in ("guides/judges.md", "guides/extending.md")
    for block in re.findall(
        r"```yaml(?: \S+)?\n(.*?)```", (DOCS / page).read_text(), re.DOTALL
    )
    if "questions:" in block
]


@pytest.mark.parametrize("block", SHOWN, ids=range(len(SHOWN)))
def test_those_that_the_docs_show_are_judges(tmp_path, block):
    if "judge:" in block:
        pytest.skip("a prompt pack")
    (tmp_path / "mine.yaml").write_text(block)
    (tmp_path / "hpsv3.jinja").write_text("{{ prompt }} <|Reward|>")
    found = registry.judge(str(tmp_path / "mine.yaml"))
    if found.scored:
        assert packs.network_settings(
            found.file, FORMS[found.file.manifest.network["form"]]
        )


def test_the_docs_name_every_key():
    told = (DOCS / "guides" / "extending.md").read_text() + (
        DOCS / "guides" / "judges.md"
    ).read_text()
    keys = [
        key
        for model in (Manifest, QuestionSection, *FORMS.values())
        for key in model.model_fields
    ]
    assert [key for key in keys if f"`{key}`" not in told] == []


@pytest.mark.parametrize("kind", ["linear", "sigmoid"])
def test_a_score_is_better_the_higher_it_is(kind):
    numbers = [-4.0, -1.0, 0.0, 0.5, 2.0, 900.0]
    higher = [Scale(kind, -2, 3)(number) for number in numbers]
    lower = [Scale(kind, -2, 3, "lower")(number) for number in numbers]
    assert higher == sorted(higher)
    assert lower == pytest.approx([1 - score for score in higher])
    assert all(0 <= score <= 1 for score in higher)
    assert Scale("sigmoid", -2, 3)(-1e9) == 0


# Sub-scores that are required, and those that are measured.

POSTER = {
    "kinds": ["tig"],
    "questions": {
        "SC": question(scores=["subject", "style"]),
        "PQ": question(scores=["clean"]),
    },
    "combine": {"O": "geometric_mean"},
    "measure": {"text": "text_rendering:words"},
    "require": {"text": 0.9, "style": 0.5},
}


def poster_of(prompt):
    return dataclasses.replace(sample("tig"), texts={"prompt": prompt})


def read_as(text):
    return ToolResult((Box(0, 0, 9, 9),), text)


@needs("rapidocr")
@pytest.mark.parametrize(
    ("subject_and_style", "reading", "overall", "reason"),
    [
        ([9, 5], read_as("OPEN"), 0.5**0.5, ""),
        ([9, 4], read_as("OPEN"), 0, "O: 0, as style is 0.40, below the required 0.5"),
        ([9, 5], read_as("OPN"), 0, "O: 0, as text is 0.00, below the required 0.9"),
        ([9, 5], Failure(Status.TOOL_ERROR, "broken"), None, ""),
        ([9, 4], Failure(Status.TOOL_ERROR, "broken"), 0, "O: 0, as style is 0.40"),
    ],
)
def test_where_a_required_sub_score_is_less_the_overall_score_is_0(
    file, subject_and_style, reading, overall, reason
):
    judge = prepared(file(**POSTER)).judge
    one = poster_of('a sign that says "OPEN"')
    scores = {"SC": subject_and_style, "PQ": [10]}

    def reply(ask):
        return (
            reading
            if isinstance(ask, UseTool)
            else Text(json.dumps({"score": scores[ask.path[0]], "reasoning": "r"}))
        )

    played = play(judge(one), answer=reply)
    verdict = played.verdict
    assert verdict.scores.get("O") == (
        None if overall is None else pytest.approx(overall)
    )
    assert verdict.rationale.startswith(reason)
    assert missed_requirements(verdict) == [
        line for line in verdict.rationale.splitlines() if reason and reason in line
    ]
    assert verdict.scores["SC"] == min(subject_and_style) / 10
    assert (verdict.status is Status.OK) == isinstance(reading, ToolResult)
    assert ("text" in verdict.scores) == isinstance(reading, ToolResult)
    assert len(played.rounds[0]) == 3


@needs("rapidocr")
def test_a_prompt_that_asks_for_no_text_needs_none(file):
    judge = prepared(file(**POSTER))
    assert (judge.by("m").backbone, judge.by("m").reader.split()[0]) == (
        "m",
        "RapidOCR",
    )
    verdict = play(judge.judge(poster_of("a cat")), [answer(9, 9), answer(9)]).verdict
    assert (verdict.status, verdict.scores) == (
        Status.OK,
        pytest.approx({"SC": 0.9, "PQ": 0.9, "O": 0.9}),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"require": {"styl": 0.5}},
            "require: unknown name 'styl'; did you mean style",
        ),
        (
            {"require": {"style": 5}},
            "require.style: Input should be less than or equal to 1",
        ),
        (
            {"measure": {"text": "text_rendering:word"}},
            "measure.text: unknown name 'text_rendering:word'; did you mean",
        ),
        (
            {"measure": {"clean": "text_rendering:SC"}},
            "measure.clean: already the name of another score",
        ),
        (
            {"combine": {"SC": "min"}},
            "require: requires O; add `combine: {O: geometric_mean}`",
        ),
    ],
)
def test_what_is_wrong_with_a_requirement_is_one_line(file, changes, message):
    assert message in refusal(lambda: registry.judge(file(**{**POSTER, **changes})))
