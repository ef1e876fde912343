"""Judges that measure with a tiny network, inside lmms-eval on the drawn benchmark."""

import json

import pytest

from tests.in_process import refused, replay

pytestmark = pytest.mark.usefixtures("no_downloads")
TASKS = {"clip_score": "tig", "clip_i": "sdig", "dino": "mcic", "lpips": "tie"}


def scorer(model=None, **further):
    named = {"name": model, **further} if model else further
    arguments = ",".join(f"{key}={value}" for key, value in named.items())
    return ("--model", "vieval_scorer", *(("--model_args", arguments) if named else ()))


def scores_of(run):
    return {n: [v["scores"] for v in several] for n, several in run.verdicts.items()}


@pytest.mark.parametrize("judge", TASKS)
def test_each_metric_judges_and_replays(evaluate, scorer_weights, judge, tmp_path):
    weights, task = scorer_weights[judge], f"vieval_demo_{judge}_{TASKS[judge]}"
    live = evaluate(*scorer(weights), tasks=task)
    assert set(live.statuses) == {"ok"}
    # one value, against all that people rated
    assert {f"{aspect}_count,none" for aspect in ("SC", "PQ", "O")} <= set(live.metrics)
    for [verdict] in live.verdicts.values():
        [step] = verdict["trace"]
        assert set(verdict["scores"]) == {"SC"}
        assert step["reason"].startswith(f"{weights}@sha256:")
    replayed = replay(tmp_path / "run0", tmp_path / "again", task)[:4]
    again = evaluate(*replayed, tasks=task)
    numbers = {n: v for n, v in live.metrics.items() if isinstance(v, float)}
    assert {name: again.metrics[name] for name in numbers} == numbers
    assert scores_of(again) == scores_of(live)


def test_the_weights_of_several_metrics_come_from_the_options(evaluate, scorer_weights):
    weights = {name: str(path) for name, path in scorer_weights.items()}
    options = {n: {"model": path, "batch_size": 4} for n, path in weights.items()}
    judged = {"tasks": "vieval_demo_clip_score_tig", "scorers": options}
    found = evaluate(*scorer(), **judged)
    source = json.loads(found.rows[0]["filtered_resps"])["provenance"]
    assert source["backbone"] == "clip_score"
    model = source["options"]["scorers"]["clip_score"]["model"]
    assert model == weights["clip_score"]
    # one of the options' by its name
    assert evaluate(*scorer("clip_i"), **judged).verdicts == found.verdicts
    # a network that is shipped by name
    clip = weights["clip_score"]
    live = evaluate(*scorer(clip), tasks="vieval_demo_pickscore_tig")
    assert set(live.statuses) == {"ok"}
    [[verdict], *_] = live.verdicts.values()
    assert verdict["trace"][0]["reason"].startswith(f"pickscore on {clip}@sha256:")


UNKNOWN = "scorer: argument colour: Unexpected keyword argument; known arguments: name, revision"
WRONG = [
    ("nowhere/at/all", {}, "nowhere/at/all: weights folder not found"),
    (None, {"colour": "red"}, UNKNOWN),
    (None, {"device": "gpu9"}, "cannot use the device 'gpu9'"),
]


@pytest.mark.parametrize(("model", "further", "line"), WRONG)
def test_what_will_not_do_ends_with_one_line(model, further, line):
    task = ("--tasks", "vieval_demo_clip_score_tig", "--limit", "1")
    assert line in refused(*scorer(model, **further), *task)
