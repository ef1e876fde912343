"""`vieval tasks`: what there is to run, and what data it needs."""

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """A terminal on which no cell is wrapped."""
    monkeypatch.setattr("vieval_plugin.text.tables.MOST_COLUMNS", 1000)
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def listed(vieval):
    """The rows below the header, in cells, by their first word."""

    def rows(*given):
        lines = filter(None, vieval("tasks", *given).out.splitlines())
        cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in lines]
        return {row[0].split()[0]: row for row in cells}

    return rows


def test_each_benchmark_has_a_line(ratings_folder, monkeypatch, listed):
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    rows = listed()
    names = {task.benchmark for task in tasks.tasks()}
    [answer] = rows.keys() - {"benchmark", "`vieval", "data", *names}
    assert rows[answer][0].endswith(f" of {len(names)} benchmarks are ready")
    assert next(iter(rows)) == answer
    assert rows["imagenhub"][1:3] == ["92", "1 of 7 ratings only"]
    demo = rows["vieval_demo_sequences"]
    assert demo[1:] == ["3", "no data needed", "adiee, aesthetic, edit_reward"]
    assert len(rows) == len(names) + 4


def test_a_benchmark_lists_tasks_and_lacks(ratings_folder, monkeypatch, listed):
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    rows = listed("imagenhub")
    model = "a model that judges"
    ready = "1 of 4 ratings only"
    vqascore = ["_tig _cig _sdig _mcic", model, "1", ready]
    assert rows["imagenhub_vqascore"][1:] == vqascore
    assert rows["imagenhub_t2i_eval_tig"][1:] == [model, "about 33", "missing"]
    assert rows["imagenhub"][1] == "runs 4 of these tasks"
    assert not any(name.startswith("generate_") for name in rows)
    assert "Text-To-Image_rater1.tsv: no such file" in " ".join(rows["imagenhub/tig:"])
    found = " ".join(rows["imagenhub/cig:"])
    assert "to judge live, run `vieval prepare imagenhub --part cig`" in found


@pytest.mark.parametrize("given", ["demo_viescore_ti", "*demo_viescore_ti*"])
def test_a_part_of_a_name_or_a_pattern_chooses_tasks(listed, given):
    rows = listed(given)
    common = "parts = _tig _tie, calls per image = 2, data = no data needed"
    assert rows["in"] == [f"in all rows: {common}"]
    assert rows["vieval_demo_viescore"][1:] == ["a model that judges"]
    found = rows["generate_vieval_demo_viescore"][1:]
    assert found == ["a model that generates images and a model that judges"]


def test_every_task_is_in_the_list_of_its_benchmark(listed):
    for name in benchmark_registry.benchmarks():
        own = [task for task in tasks.tasks() if task.benchmark == name]
        rows = listed(name) if own else {}
        [[of_all]] = [rows.get("in", [""])]
        cells = {row[0]: " ".join([of_all, *row[1:2]]) for row in rows.values()}
        parts = {name: it.replace(",", "").split() for name, it in cells.items()}
        ends = {
            name + part
            for name, several in parts.items()
            for part in several
            if part[0] == "_"
        }
        assert {task.name for task in own} <= ends | set(rows)


def test_a_judge_without_tasks_is_told_from_a_misspelt_name():
    said = refusal(tasks.matching, "text_rendering", {"own_viescore": "own"})
    assert "'text_rendering' has no task" in said
    assert "VIEVAL_BENCHMARKS" in said
