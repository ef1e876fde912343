"""Judges that measure with a network, inside lmms-eval, on the drawn benchmark with tiny
networks.
"""

import json
from shlex import split

import pytest

from tests import in_process
from tests.in_process import refused, replay

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

pytestmark = pytest.mark.usefixtures("no_downloads")

TASKS = {"clip_score": "tig", "clip_i": "sdig", "dino": "mcic", "lpips": "tie"}


def scorer(model=None, **further):
    named = {**({"name": model} if model else {}), **further}
    arguments = ",".join(f"{key}={value}" for key, value in named.items())
    return (
        "--model",
        "vieval_scorer",
        *(("--model_args", arguments) if arguments else ()),
    )


@pytest.mark.parametrize("judge", TASKS)
def test_each_metric_judges_and_replays(evaluate, scorer_weights, judge, tmp_path):
    weights, task = scorer_weights[judge], f"vieval_demo_{judge}_{TASKS[judge]}"
    live = evaluate(*scorer(weights), tasks=task)
    assert set(live.statuses) == {"ok"}
    assert {
        aspect for [verdict] in live.verdicts.values() for aspect in verdict["scores"]
    } == {"SC"}
    # one value, against all that people rated
    assert {f"{aspect}_count,none" for aspect in ("SC", "PQ", "O")} <= set(live.metrics)
    for [verdict] in live.verdicts.values():
        [step] = verdict["trace"]
        assert step["reason"].startswith(f"{weights}@sha256:")
    logs = tmp_path / "logs"
    in_process.run(
        *in_process.command(scorer(weights), task, 6)[1:], "--output_path", logs
    )
    again = evaluate(*replay(logs, tmp_path / "again", task)[:4], tasks=task)
    numbers = [name for name in live.metrics if isinstance(live.metrics[name], float)]
    found = {name: again.metrics[name] for name in numbers}
    assert found == {name: live.metrics[name] for name in numbers}
    found = {n: [v["scores"] for v in vs] for n, vs in again.verdicts.items()}
    assert found == {n: [v["scores"] for v in vs] for n, vs in live.verdicts.items()}


def test_a_network_that_is_shipped_by_name_has_tasks(evaluate, scorer_weights):
    clip = scorer_weights["clip_score"]
    live = evaluate(*scorer(clip), tasks="vieval_demo_pickscore_tig")
    assert set(live.statuses) == {"ok"}
    [[verdict], *_] = live.verdicts.values()
    assert verdict["trace"][0]["reason"].startswith(f"pickscore on {clip}@sha256:")


def test_the_weights_of_several_metrics_come_from_the_options(evaluate, scorer_weights):
    options = {
        name: {"model": str(path), "batch_size": 4}
        for name, path in scorer_weights.items()
    }
    task = "vieval_demo_clip_score_tig"
    found = evaluate(*scorer(), tasks=task, scorers=options)
    [row, *_] = found.rows
    source = json.loads(row["filtered_resps"])["provenance"]
    assert source["backbone"] == "clip_score"
    got = source["options"]["scorers"]["clip_score"]["model"]
    assert got == (str(scorer_weights["clip_score"]))
    named = evaluate(
        *scorer("clip_i"), tasks=task, scorers=options
    )  # one of the options' by its name
    assert named.verdicts == found.verdicts


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nowhere/at/all",), "nowhere/at/all: weights folder not found"),
        (
            ("openai/no-such",),
            "not on this machine and cannot be downloaded from the Hugging Face Hub",
        ),
        (
            (None, {"colour": "red"}),
            "scorer: argument colour: Unexpected keyword argument; known arguments: name, revision",
        ),
        ((None, {"device": "gpu9"}), "cannot use the device 'gpu9'"),
    ],
)
def test_what_will_not_do_ends_with_one_line(arguments, line):
    model, *further = arguments
    assert line in refused(
        *scorer(model, **(further or [{}])[0]),
        *split("--tasks vieval_demo_clip_score_tig --limit 1"),
    )


def test_another_architecture_is_refused_in_one_line(scorer_weights):
    assert "must have the architecture clip (CLIPModel), got vit" in refused(
        *scorer(scorer_weights["dino"]),
        *split("--tasks vieval_demo_clip_score_tig --limit 1"),
    )
