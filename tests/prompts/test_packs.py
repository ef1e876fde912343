"""Prompt packs: loading, hashing, the sandbox, and the import of the authors' wording."""

import json
import re
import shutil

import pytest

import vieval_plugin.prompt_templates
from tests.refusals import refuses
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config
from vieval_plugin.importers.viescore import _RULES, import_wording
from vieval_plugin.prompts import packs
from vieval_plugin.run.prepare import prepare

MANIFEST = """
judge: viescore
name: mine
questions:
  PQ: {template: PQ.jinja, images: [output], scores: [naturalness, artifacts]}
"""


@pytest.fixture
def pack(tmp_path):
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    (tmp_path / "PQ.jinja").write_text("Rate it, {{ names | length }} scores.")
    return tmp_path


def test_the_hash_changes_with_a_word_and_with_nothing_else(pack, tmp_path_factory):
    before = packs.load(str(pack)).hash
    copy = shutil.copytree(pack, tmp_path_factory.mktemp("elsewhere") / "copy")
    assert packs.load(str(copy)).hash == before
    (pack / "PQ.jinja").write_text("Rate it, please.")
    assert packs.load(str(pack)).hash != before


def test_a_copy_has_a_name_of_its_own_and_may_be_changed(tmp_path):
    folder = tmp_path / "strict"
    copy = packs.copy("viescore/v1", folder)
    original = packs.load("viescore/v1")
    assert (copy.name, copy.judge) == ("strict", "viescore")
    assert copy.questions == original.questions
    assert copy.environment.texts == original.environment.texts
    (folder / "reminder.jinja").write_text("Again, please.")
    assert packs.load(str(folder)).hash != copy.hash
    refuses("already exists; choose a new folder", packs.copy, "viescore/v1", folder)


@pytest.mark.parametrize(
    "name", ["streng geprüft", "厳しい", "\U0001f600", r"a\1\g<0>", 'a"b']
)
def test_a_copy_is_called_by_its_folder_whatever_characters_that_has(tmp_path, name):
    assert packs.copy("viescore/v1", tmp_path / name).name == name


def test_a_changed_pack_under_a_name_that_is_taken_is_refused(tmp_path):
    shipped = f"{vieval_plugin.prompt_templates.__path__[0]}/viescore/v1"
    folder = shutil.copytree(shipped, tmp_path / "copy")
    assert packs.load(str(folder)).hash == packs.load("viescore/v1").hash
    (folder / "PQ.jinja").write_text("Rate it, please.")
    taken = "viescore/v1 is the name of a built-in pack with different wording"
    refuses(taken, packs.load, str(folder))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("manifest.yaml", None, "not a prompt pack"),
        ("manifest.yaml", "judge: [x", "not a manifest"),
        ("manifest.yaml", f"{MANIFEST}colour: red", "unknown key colour; known keys: "),
        ("PQ.jinja", None, "the template PQ.jinja is not in the folder"),
        ("PQ.jinja", "{% if %}", "PQ.jinja, line 1: Expected an expression"),
        ("PQ.jinja", "\udcff", "PQ.jinja: the template cannot be read"),
    ],
)
def test_a_broken_pack_is_named_in_one_line(pack, file, content, message):
    if content is None:
        (pack / file).unlink()
    else:
        (pack / file).write_text(content, errors="surrogateescape")
    refuses(message, packs.load, str(pack))


def test_an_unknown_format_of_answers_is_refused_with_the_nearest(tmp_path):
    packs.copy("viescore/v1", folder := tmp_path / "mine")
    manifest = folder / "manifest.yaml"
    manifest.write_text(f"{manifest.read_text()}replies: free_jsn\n")
    options = Config.model_validate({"judges": {"viescore": {"pack": str(folder)}}})
    unknown = "unknown format 'free_jsn'; did you mean free_json"
    refuses(unknown, prepare, "viescore", None, options)


CONDITIONS = "<prompt><instruction><subject> in {braces} {{x}} {% y %}"


def checkout(root):
    """A folder in the shape of the authors' repository, with words of our own."""
    for setting in ("0shot", "1shot"):
        rules = root / "questions" / f"prompts_{setting}"
        rules.mkdir(parents=True)
        for file in {file for files in _RULES.values() for file in files}:
            (rules / file).write_text(f"{setting} {file} for {CONDITIONS}\n")
    (root / "questions" / "context.txt").write_text("Be fair.\n")
    (root / "questions" / "context_no_delimit.txt").write_text("Be fair, no marks.\n")
    return root


def test_import_joins_context_and_rules_and_fills_placeholders(tmp_path):
    zero, one = import_wording(checkout(tmp_path / "checkout"), tmp_path / "packs")
    pack = packs.load(str(zero))
    assert (zero.name, one.name) == ("0shot", "1shot")
    assert packs.load(str(one)).settings == ("1shot",)
    texts = {"prompt": "P", "instruction": "<prompt>", "subject": "{{ S }}"}
    told = "for P<prompt>{{ S }} in {braces} {{x}} {% y %}"
    rules = [
        f"0shot {name} {told}"
        for name in ("two_image_edit_rule.txt", "tie_rule_SC.txt")
    ]
    assert pack.render("SC_tie.jinja", texts) == "\n\n".join(["Be fair.", *rules])
    assert pack.questions["SC_mcic"].images == ("concepts", "output")
    assert {question.order for question in pack.questions.values()} == {"text_first"}


def test_import_takes_another_context(tmp_path):
    own = (checkout(tmp_path / "checkout"), tmp_path / "packs")
    zero, _ = import_wording(*own, "context_no_delimit.txt")
    texts = dict.fromkeys(("prompt", "instruction", "subject"), "")
    rendered = packs.load(str(zero)).render("PQ.jinja", texts)
    assert rendered.startswith("Be fair, no marks.")


CONDITION = r"^(?:Text Prompt|Editing instruction|Subject): (.*)$"


def test_the_wording_of_logs_comes_back_word_for_word(shared_data, tmp_path):
    logs = shared_data / "viescore_logs" / "results_gpt4v_1shot"
    [folder] = import_wording(logs, tmp_path / "packs")
    pack = packs.load(str(folder))
    are_same = []
    for name, (_, task) in benchmark_registry.folders().items():
        files = [
            json.loads(path.read_text()) for path in (logs / name).glob("*/SC.json")
        ]
        for row in (row for rows in files for row in rows.values()):
            asked = row["prompt_input"]
            value = re.findall(CONDITION, asked, re.MULTILINE)[-1]
            texts = dict.fromkeys(("prompt", "instruction", "subject"), value)
            are_same.append(pack.render(f"SC_{task}.jinja", texts) == asked.strip())
    assert (are_same.count(False), len(are_same)) == (1, 4594)
