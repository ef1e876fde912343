"""Test the import of CIGEval's wording, from a repository of its shape."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.refusals import refuses

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from tests import playing
from tests.cigeval_script import ASKED, BOX, ROLES, TEXTS, sample
from tests.extras import needs
from tests.fake_server import FakeServer
from tests.playing import label_of
from tests.tables import table
from tests.tool_pictures import edited, file, photograph
from vieval_plugin import Backbone, Image, Sample, SampleId, Status, evaluate
from vieval_plugin.backends.image_tools import grounding
from vieval_plugin.backends.image_tools.grounding import Detection, Grounder
from vieval_plugin.cli import main
from vieval_plugin.config import Config
from vieval_plugin.importers.importing import raw
from vieval_plugin.judges.protocol import Chat, Text, ToolResult
from vieval_plugin.prompts import packs

# Jinja to whoever takes it for that, and a form of JSON in which no brace is a place
SPICE = (
    'Mind {{ this }} {% and %} {# that #}, é and {{.\nSay {\n"score" : "...",\n"reasoning" : '
    '"..."\n}\n'
)
PLACES = {
    "tig": ("Text_Guided_IG", "text"),
    "tie": ("Text_Guided_IE", "instruction"),
    "mie": ("Mask_Guided_IE", "instruction"),
    "cig": ("Control_Guided_IG", "text"),
    "sdig": ("Subject_Driven_IG", "text"),
    "sdie": ("Subject_Driven_IE", "subject"),
    "mcic": ("Multi_Concept_IC", "text"),
}
# of the authors' task; the others are task 1
NUMBER = {"prompt": 2, "restraint": 2, "background": 2}
NOTE = "Look where it is bright. {{ not ours }}"
TWO, ONE = "Of both {%\n1: {scene_graph_1}\n2: {scene_graph_2}", "Of it:\n{scene_graph}"
GRAPH = "Graph it as JSON, {{ please }}.\n"
DRAWN = {"objects": {"hat": ["red"]}, "relationships": ["hat on {{ cat }}"]}


def wording():
    """Every text of the prompts by its name, each of them different."""
    which = "Which tool, for\n{task}\nHighlight, SceneGraph or MaskFocus? "
    texts = {"Tool_Decide": which + SPICE}
    for kind, (task, place) in PLACES.items():
        texts[f"{task}_Rule"] = f"{kind} is about {{{place}}}, {{{{ so }}}}.\n"
        for number in (1,) if kind == "tig" else (1, 2):
            name = f"{task}_Task_{number}"
            texts[name] = f"{name} {{% is %}} this.\n"
            named = "of {subject} " if kind == "mcic" and number == 1 else ""
            texts[f"{name}_evaluation"] = (
                f"\nRate {name} {named}{{{{tool_text}}}} by {{{place}}}.\n{SPICE}"
            )
    texts["Text_Guided_IE_Task_1_llava"] = "for other backbones {whatever}"
    return texts


def tool_text():
    return f"""
import no_such_package
def get_tool_text(tool, links, path):
    if tool=="None":
        return ""
    if tool=="Highlight" or tool=="MaskFocus":
        return {NOTE!r}
    if tool=="SceneGraph":
        text = ""
        if len(links) == 2:
            text = {TWO!r}
            params = {{"{{scene_graph_1}}": draw(links[0]), "{{scene_graph_2}}": draw(links[1])}}
            text = fill(text, params)
        if len(links) == 1:
            text = {ONE!r}
        return text
"""


def checkout(folder):
    """A checkout that ends whoever executes it."""
    prompts = "".join(f"{name} = {text!r}\n" for name, text in wording().items())
    files = {
        "agent/prompt_agent.py": prompts,
        "evaluate.py": tool_text(),
        "tools/scene_graph.py": f"sgPrompt = {GRAPH!r}\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text += "\nraise SystemExit('it was executed')\n"
        path.write_text(text, encoding="utf-8")
    return folder


def run(repo, to, *more):
    return main(["prompts", "import", "cigeval", str(repo), "--to", str(to), *more])


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cigeval")
    assert run(checkout(folder / "repo"), folder / "packs") == 0
    return str(folder / "packs" / "authors")


def filled(text, /, **given):
    """What the released code makes of a text: each place is replaced, one after the other."""
    for name, value in given.items():
        text = text.replace(f"{{{name}}}", value)
    return text.strip()


def expected_plan(kind):
    texts, (task, place) = wording(), PLACES[kind]
    rule = texts[f"{task}_Rule"].replace(f"{{{place}}}", said(kind, place))
    tasks = texts[f"{task}_Task_1"] + texts.get(f"{task}_Task_2", "")
    return filled(texts["Tool_Decide"], task=rule + tasks)


def said(kind, place):
    return TEXTS[kind]["prompt" if place == "text" else place]


def expected(kind, question, told=""):
    task, place = PLACES[kind]
    number = 1 if kind == "tig" else NUMBER.get(question, 1)
    is_concept = question.startswith("concept")
    subject = {"subject": TEXTS[kind][question]} if is_concept else {}
    text = wording()[f"{task}_Task_{number}_evaluation"]
    return filled(text, **{place: said(kind, place)}, **subject, tool_text=told)


def entries(*tools):
    plan = []
    for number, tool in enumerate(tools, start=1):
        used = {"used": "yes" if tool else "no", "tool": tool or "None"}
        plan.append({"task_id": str(number), "reasoning": "fine", **used})
    return json.dumps(plan)


RATED = json.dumps({"score": "7", "reasoning": "so so"})


# Through a server: the authors' words arrive, and their form of answer is read.

PLANS = {
    "tig": ("SceneGraph",),
    "tie": ("Highlight", "SceneGraph"),
    "mie": ("MaskFocus", None),
    "cig": (None, "Highlight"),
    "sdig": ("SceneGraph", "Highlight"),
    "sdie": ("Highlight", "Highlight"),
    "mcic": ("Highlight", "SceneGraph"),
}


def drawn(kind):
    # no two pictures are the same, which would be described once
    number = 10 * list(PLANS).index(kind)
    pictures = {role: photograph(64, number + n) for n, role in enumerate(ROLES[kind])}
    before = pictures.get("source", pictures["output"])
    pictures["output"] = edited(before, 10, 10, 30, 30)
    images = {role: file(one) for role, one in pictures.items()}
    return Sample(SampleId("own", kind, "m", "1"), images, TEXTS[kind])


def answered(request, asked):
    """The reply of a server that plans for each task; notes texts, numbers of images, formats."""
    if '"probe"' in json.dumps(request.get("response_format")):
        return json.dumps({"probe": "vieval"})
    parts = request["messages"][0]["content"]
    text = "".join(part.get("text", "") for part in parts)
    shown = sum("image_url" in part for part in parts)
    asked.append((text, shown, request.get("response_format")))
    if text == GRAPH.strip():
        return f"```json\n{json.dumps(DRAWN)}\n```"
    planned = [kind for kind in PLANS if text == expected_plan(kind)]
    return entries(*PLANS[planned[0]]) if planned else RATED


def told():
    """What tools found, by kind and question."""
    drawing = json.dumps(DRAWN)
    both = filled(TWO, scene_graph_1=drawing, scene_graph_2=drawing)
    one = filled(ONE, scene_graph=drawing)
    noted = ["tie/edit", "mie/edit", "cig/prompt", "sdig/prompt", "sdie/subject"]
    noted += ["sdie/background", "mcic/concept_1", "mcic/concept_2"]
    graphs = {"tig/prompt": one, "tie/restraint": both, "sdig/subject": both}
    return {**dict.fromkeys(noted, NOTE), **graphs, "mcic/prompt": one}


@needs("cv2", "torch", "transformers")
def test_all_seven_tasks_are_judged_in_the_authors_words(pack, monkeypatch):
    box = Detection(0.9, grounding.Box(16, 16, 48, 48))
    found = Grounder(lambda rows: [box for _ in rows])
    monkeypatch.setattr(grounding, "grounder", lambda *_: found)
    asked = []
    about = {"store": {"use": False}, "judges": {"cigeval": {"pack": pack}}}
    options = Config.model_validate(about)
    with FakeServer(reply=lambda request: answered(request, asked)) as server:
        backbone = Backbone(model="fake", base_url=(server.base_url,))
        samples = [drawn(kind) for kind in PLANS]
        by = {"judge": "cigeval", "backbone": backbone, "options": options}
        verdicts = evaluate(samples, **by)
    assert {verdict.status for verdict in verdicts} == {Status.OK}
    assert [verdict.scores for verdict in verdicts] == [{"SC": 0.7}] * 7
    # the authors' form of answer is not ours, so no schema is enforced
    wanted = Counter({(GRAPH.strip(), 1, None): 6})
    for kind in PLANS:
        shown = 2 if kind == "mcic" else len(ASKED[kind][1])
        wanted[expected_plan(kind), shown, None] += 1
        for name, images in ASKED[kind][0].items():
            text = expected(kind, name, told().get(f"{kind}/{name}", ""))
            wanted[text, len(images), None] += 1
    assert Counter(asked) == wanted


def played(pack, kind, plan, *, without=(), rated=RATED):
    options = {"pack": pack, "removed": ("ocr", "grounding", "difference")}

    def answer(ask):
        if not isinstance(ask, Chat):
            return ToolResult((BOX,), image=Image(Path(label_of(ask))))
        return Text(plan if label_of(ask) == "plan" else rated)

    program = playing.prepared("cigeval", **options).program(sample(kind, without))
    return playing.play(program, answer=answer)


def test_a_tool_is_known_by_the_authors_name_for_it_and_a_wrong_one_counted(pack):
    game = played(pack, "tie", entries("SceneGraph", "Magnifier"))
    assert game.verdict.findings == ("plan: scene_graph", "plan: unknown tool")
    game = played(pack, "sdie", entries("Highlight", None))
    assert game.verdict.findings == ("plan: tool not offered", "plan: no tool")


def test_a_score_in_quotation_marks_is_as_asked_and_a_bad_one_is_not_read(pack):
    plan = entries(None)
    assert played(pack, "tig", plan).verdict.status is Status.OK
    bare = played(pack, "tig", plan, rated='{"score": 7, "reasoning": "x"}')
    assert bare.verdict.scores == {"SC": 0.7}
    game = played(pack, "tig", plan, rated='{"score": "...", "reasoning": "..."}')
    assert (game.verdict.status, game.verdict.scores) == (Status.PARSE_FAILURE, {})
    reminder = str(game.rounds[2][0].messages[-1].parts[0])
    assert "in the JSON format asked for above" in reminder


@pytest.mark.parametrize("kind", ["tie", "mcic"])
def test_a_scene_graph_of_no_json_is_a_tool_that_failed(pack, kind):
    game = played(pack, kind, entries(None, "SceneGraph"), rated="there is a hat")
    assert "tool failed: scene_graph" in game.verdict.findings


def test_concepts_are_planned_on_side_by_side_however_they_come(pack):
    def shown(game, label):
        return [str(image.source) for image in game.shown(label)]

    plan = entries(None, None)
    apart = played(pack, "mcic", plan, without=("concepts",))
    joined = apart.asked("side by side").arguments
    assert joined["left"] == Image(Path("concept_1"))
    assert joined["right"] == Image(Path("concept_2"))
    assert shown(apart, "plan") == ["side by side", "output"]
    together = played(pack, "mcic", plan, without=("concept_1", "concept_2"))
    assert shown(together, "plan") == ["concepts", "output"]
    assert shown(together, "concept_2/rating") == ["half concept_2", "output"]


def test_what_the_wording_does_not_ask_for_is_refused(pack):
    options = {"pack": pack, "removed": ("ocr", "grounding", "difference")}
    other = "cigeval/authors is for cigeval paper, not for react"
    refuses(other, playing.prepared, "cigeval", "react", **options)
    for name in ("named_entity", "plan_each_subject"):
        unused = f"{name} does not apply to prompt pack cigeval/authors"
        refuses(unused, playing.prepared, "cigeval", improvements=(name,), **options)


def test_a_pack_that_names_a_tool_that_there_is_not_is_refused(pack, tmp_path):
    mine = shutil.copytree(pack, tmp_path / "mine")
    manifest = mine / "manifest.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace("SceneGraph: scene_graph", "SceneGraph: sketch"))
    known = "tools: unknown tool 'sketch'; known tools: difference"
    refuses(known, playing.prepared, "cigeval", pack=str(mine))


def test_what_is_left_out_is_said(tmp_path, capsys):
    assert run(checkout(tmp_path / "repo"), tmp_path / "packs") == 0
    left_out, _ = capsys.readouterr().out.strip().splitlines()
    one_image = "backbones that accept one image: Text_Guided_IE_Task_1_llava"
    assert left_out.endswith(one_image)


@pytest.mark.parametrize(
    "text", ["{", "{{", "{{{", "a {%", "{{% {#", "}} -%} {", "'{{'"]
)
def test_any_text_stands_before_an_expression_as_it_is(text):
    environment = packs.PackEnvironment({"it": raw(text) + "{{ x }}" + raw(text)})
    assert environment.text("it", {"x": "1"}) == f"{text}1{text}"


NOTES, SCENES = "evaluate.py", "tools/scene_graph.py"
SUM = "sgPrompt = 'x'" + " + 'x'" * 9000
LONG = "too large for a prompts file (limit 131072 bytes)"
COLUMNS, CHANGES = table("changed_cigeval_wording.jsonl")


@pytest.mark.parametrize(
    COLUMNS,
    [
        *CHANGES,
        (SCENES, "(?s).*", "sgPrompt = " + "(" * 5000, "cannot be read as Python ("),
        (SCENES, "(?s).*", SUM, "cannot be read as Python ("),
        (NOTES, r"\Z", "# " + "x" * 140_000, LONG),
        (NOTES, None, "", "cannot be read as Python (No such file"),
        (SCENES, None, "", "cannot be read as Python (No such file"),
    ],
)
def test_a_changed_file_is_one_line(tmp_path, capsys, file, old, new, line):
    """`old` is a pattern of what `new` takes the place of; None removes the file."""
    repo = checkout(tmp_path / "repo")
    text = (repo / file).read_text(encoding="utf-8")
    changed = re.sub(old or "", lambda _: new, text, count=1, flags=re.MULTILINE)
    assert changed != text or old is None
    (repo / file).write_text(changed, encoding="utf-8")
    if old is None:
        (repo / file).unlink()
    assert run(repo, tmp_path / "packs") == 1
    told = capsys.readouterr().err.strip()
    assert line in told
    assert str(repo / file) in told
    assert "\n" not in told
    assert not (tmp_path / "packs").exists()
