"""Test what every importer of authors' wording does, from a repository of its shape."""

import pytest

from tests.prompts import (
    test_packs,
    test_prompt_import_cigeval,
    test_prompt_import_pairwise,
    test_prompt_import_t2i_eval,
)
from vieval_plugin.prompts import packs

CHECKOUTS = {
    "viescore": test_packs.checkout,
    "cigeval": test_prompt_import_cigeval.checkout,
    "pairwise": test_prompt_import_pairwise.checkout,
    "t2i_eval": test_prompt_import_t2i_eval.checkout,
}
EDIT, CONSTANTS = "image_edition/pairwise.txt", "src/prompt/templates.py"
#: By judge, a file of its checkout, and what is said where that is not there.
FILES = {
    "viescore": ("questions/prompts_0shot/rule_PQ.txt", "0shot: rule_PQ.txt missing"),
    "cigeval": ("agent/prompt_agent.py", "cannot be read as Python (No such file"),
    "pairwise": (f"genaibench/templates/{EDIT}", f"{EDIT}: the wording is not a file"),
    "t2i_eval": (CONSTANTS, "INTRINSIC_ANSWER_TEMPLATE"),
}
#: By judge, a file with a text in it, and that with a place in it that nobody knows.
PLACES = {
    "cigeval": ("tools/scene_graph.py", "Graph it", "Graph {mood} it"),
    "pairwise": (f"genaibench/templates/{EDIT}", "Before", "<mood>"),
    "t2i_eval": (CONSTANTS, "{text_prompt}", "{text_prompt} {mood}"),
}


@pytest.fixture(params=CHECKOUTS)
def judge(request):
    return request.param


@pytest.fixture
def repo(judge, tmp_path):
    return CHECKOUTS[judge](tmp_path / "repo")


@pytest.fixture
def imported(judge, repo, tmp_path, vieval):
    """Imports the wording of a repository; has what was printed."""
    line = f"prompts import {judge} --to {tmp_path}/packs"
    return lambda source=repo, *flags, code=0: vieval(line, source, *flags, code=code)


@pytest.fixture
def refused(imported, tmp_path):
    """The one line with which a repository is refused, and nothing is written."""

    def run(*arguments):
        [line] = imported(*arguments, code=1).err.splitlines()
        assert not list(tmp_path.glob("packs/*"))
        return line

    return run


def test_each_pack_is_of_its_judge_and_named(judge, imported, tmp_path):
    told = imported().out
    folders = list((tmp_path / "packs").iterdir())
    assert folders
    for folder in folders:
        assert packs.load(str(folder)).judge == judge
        assert f"judges.{judge}.pack: {folder}" in told


def test_a_pack_that_is_there_is_not_replaced(imported):
    imported()
    assert "already exists" in imported(code=1).err


def test_a_file_that_is_missing_is_named(judge, repo, refused):
    file, said = FILES[judge]
    (repo / file).unlink()
    assert said in refused()


def test_a_file_that_is_no_text_is_one_line(judge, repo, refused):
    file, said = FILES[judge]
    (repo / file).write_bytes(b"x = '\xff\xfe'")
    told = refused()
    assert str(repo / file) in told or said in told


def test_a_folder_that_is_not_there_is_named(tmp_path, refused):
    line = refused(tmp_path / "nowhere")
    assert "nowhere: no such folder; pass a checkout" in line


@pytest.mark.parametrize("judge", PLACES, indirect=True)
def test_a_place_that_is_not_known_is_named(judge, repo, refused):
    file, old, new = PLACES[judge]
    text = (repo / file).read_text()
    (repo / file).write_text(text.replace(old, new))
    assert "has an unknown placeholder 'mood'" in refused()


@pytest.mark.parametrize("judge", PLACES, indirect=True)
def test_a_context_is_refused_where_the_wording_has_none(judge, repo, refused):
    line = refused(repo, "--context", "x.txt")
    assert "--context does not apply to this wording" in line
