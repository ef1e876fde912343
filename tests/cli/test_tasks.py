"""`vieval tasks`: what there is to run, and what data it needs."""

from vieval_plugin.cli import main


def test_tasks_are_listed_with_their_data(ratings_folder, monkeypatch, capsys):
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    assert main(["tasks"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "group of 19 tasks" in lines["imagenhub"]
    assert (
        "ratings ready, for live judging run `vieval prepare imagenhub --part cig`" in lines["imagenhub_viescore_cig"]
    )
    assert "not there" in lines["imagenhub_viescore_tie"]
    assert "nothing to prepare" in lines["vieval_demo_ssim_tie"]


def test_tasks_of_judges_and_of_generators_are_told_apart_with_what_they_need_and_cost(capsys):
    assert main(["tasks"]) == 0
    rows = {
        line.split()[0]: [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in capsys.readouterr().out.splitlines()[1:]
    }
    assert rows["task"] == ["task", "of a", "needs", "calls for an image", "data"]
    assert rows["vieval_demo_viescore_tie"][1:4] == ["judge", "a model that judges", "2"]
    assert rows["generate_vieval_demo_viescore_tie"][1:4] == [
        "generator",
        "a model that makes images and a model that judges",
        "2",
    ]
    assert rows["generate_vieval_demo_ssim_tie"][1:4] == ["generator", "a model that makes images", "0"]
    assert rows["vieval_demo_clip_score_tig"][1:4] == ["judge", "a scorer", "0"]
    assert "name the file of prompts as generate.prompts" in rows["generate_prompts_viescore"][4]
