"""VIEVAL_PLAN=1: what a run of lmms-eval would cost, instead of the run."""

import pytest

from tests.in_process import command, options_file, run, served


@pytest.fixture
def planned(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("VIEVAL_PLAN", "1")

    def said(
        *arguments, tasks="vieval_demo_viescore_tie,vieval_demo_vqascore_tig", limit=12
    ):
        options = options_file(tmp_path / "options.yaml", tmp_path / "replies.sqlite")
        with pytest.raises(SystemExit) as ended:
            run(
                *command(arguments, tasks, limit)[1:],
                "--output_path",
                tmp_path / "out",
                options=options,
            )
        told = capfd.readouterr()
        return ended.value.code, [
            line for line in told.err.splitlines() if line.startswith("vieval: ")
        ]

    return said


def test_a_run_by_a_server_is_planned_by_judge(planned, server, tmp_path):
    code, lines = planned(
        *served("vieval_openai", server, price_input=1, price_output=2)
    )
    assert code == 0
    assert {line.rpartition(": about ")[0] for line in lines if "plan:" in line} == {
        "vieval: plan: viescore by fake, 12 samples",
        "vieval: plan: vqascore by fake, 12 samples",
    }
    assert {line for line in lines if "calls:" in line} == {
        "vieval: calls: 25",
        "vieval: calls: 12",
    }
    found = sum(
        "price: " in line
        and "at 1 per million input tokens and 2 per million output tokens" in line
        for line in lines
    )
    assert found == 2
    assert (
        server.stats()["requests"] == 8 * 2 + 1 + 7
    )  # two of the eight are one question of vqascore
    assert not list((tmp_path / "out").rglob("*_results.json"))


def test_a_model_of_the_host_and_one_of_this_process_are_planned_too(planned, server):
    code, lines = planned(
        *served("async_openai", server), tasks="vieval_demo_viescore_tie"
    )
    assert code == 0
    assert any(
        line.startswith("vieval: plan: viescore, 12 samples: about ") for line in lines
    )
    assert "vieval: calls: 24" in "\n".join(lines)
    code, lines = planned("--model", "vieval_scorer", tasks="vieval_demo_sharpness_tig")
    assert code == 0
    assert "vieval: calls: 0, tokens: 0, price: 0" in lines


def test_what_cannot_be_planned_says_what_can(planned, tmp_path):
    code, [line] = planned("--model", "dummy", tasks="generate_vieval_demo_sharpness")
    assert code == 1
    assert "VIEVAL_PLAN is set, but a generate_* task generates images first" in line
