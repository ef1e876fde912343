"""VIEVAL_PLAN=1: what a run of lmms-eval would cost, instead of the run."""

import pytest

from tests.in_process import command, options_file, run, served


@pytest.fixture
def planned(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("VIEVAL_PLAN", "1")
    both = "vieval_demo_viescore_tie,vieval_demo_vqascore_tig"

    def said(*arguments, tasks=both, limit=12):
        options = options_file(tmp_path / "options.yaml", tmp_path / "replies.sqlite")
        asked = command(arguments, tasks, limit)[1:]
        with pytest.raises(SystemExit) as ended:
            run(*asked, "--output_path", tmp_path / "out", options=options)
        lines = capfd.readouterr().err.splitlines()
        return ended.value.code, [line for line in lines if line.startswith("vieval: ")]

    return said


def test_a_run_by_a_server_is_planned_by_judge(planned, server, tmp_path):
    model = served("vieval_openai", server, price_input=1, price_output=2)
    code, lines = planned(*model)
    assert code == 0
    found = {line.rpartition(": about ")[0] for line in lines if "plan:" in line}
    judges = ("viescore", "vqascore")
    assert found == {f"vieval: plan: {judge} by fake, 12 samples" for judge in judges}
    found = {line for line in lines if "calls:" in line}
    assert found == {"vieval: calls: 25", "vieval: calls: 12"}
    rates = "at 1 per million input tokens and 2 per million output tokens"
    assert sum("price: " in line and rates in line for line in lines) == 2
    # two of the eight are one question of vqascore
    assert server.stats()["requests"] == 8 * 2 + 1 + 7
    assert not list((tmp_path / "out").rglob("*_results.json"))


def test_a_model_of_the_host_and_one_of_this_process_are_planned_too(planned, server):
    viescore = "vieval_demo_viescore_tie"
    code, lines = planned(*served("async_openai", server), tasks=viescore)
    assert code == 0
    plan = "vieval: plan: viescore, 12 samples: about "
    assert any(line.startswith(plan) for line in lines)
    assert "vieval: calls: 24" in "\n".join(lines)
    code, lines = planned("--model", "vieval_scorer", tasks="vieval_demo_sharpness_tig")
    assert code == 0
    assert "vieval: calls: 0, tokens: 0, price: 0" in lines


def test_what_cannot_be_planned_says_what_can(planned, tmp_path):
    code, [line] = planned("--model", "dummy", tasks="generate_vieval_demo_sharpness")
    assert code == 1
    assert "VIEVAL_PLAN is set, but a generate_* task generates images first" in line
