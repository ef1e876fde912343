"""From observations to a task's and a group's numbers."""

import math

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import Observation, Options, combine, fill, human, observe, over_tasks, summarise  # noqa: F401

ASPECTS = ("SC", "PQ", "O")


def observations(n=40, models=("A", "B"), seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    found = []
    for model in models:
        for i in range(n):
            raters = rng.integers(0, 3, size=(3, 2)) / 2
            truth = raters.mean(axis=0)
            sc, pq = np.clip(truth + noise * rng.normal(size=2), 0, 1)
            ratings = (
                ("SC", tuple(raters[:, 0])),
                ("PQ", tuple(raters[:, 1])),
                ("O", tuple(np.sqrt(raters[:, 0] * raters[:, 1]))),
            )
            scores = (("SC", float(sc)), ("PQ", float(pq)), ("O", math.sqrt(sc * pq)))
            found.append(Observation(model, f"u{i}", ratings, scores, Status.OK))
    return tuple(found)


def test_a_task_averages_the_correlations_of_its_image_models():
    rows = observations()
    summary = summarise(rows, ASPECTS, "t")
    by_model = []
    for model in ("A", "B"):
        human_means = [np.mean(dict(o.ratings)["SC"]) for o in rows if o.image_model == model]
        judged = [dict(o.scores)["SC"] for o in rows if o.image_model == model]
        by_model.append(stats.spearmanr(np.round(human_means, 9), judged).statistic)
    found = summary.aspects["SC"]
    assert found.fisher == pytest.approx(math.tanh(np.mean(np.arctanh(by_model))))
    assert found.paper == pytest.approx(math.tanh(np.mean(np.round(by_model, 4))))
    assert found.low < found.fisher < found.high
    assert found.count == 80


def test_row_order_does_not_change_a_digit():
    rows = observations()
    mixed = tuple(np.random.default_rng(3).permutation(len(rows)))
    a, b = summarise(rows, ASPECTS, "t"), summarise(tuple(rows[i] for i in mixed), ASPECTS, "t")
    assert a.aspects == b.aspects


def test_a_sample_without_every_aspect_is_in_no_correlation():
    rows = observations()
    broken = Observation("A", "extra", rows[0].ratings, (("SC", 0.0),), Status.PARSE_FAILURE)
    with_broken = summarise((*rows, broken), ASPECTS, "t")
    assert with_broken.aspects["SC"].count == 80
    assert with_broken.aspects["SC"].paper == summarise(rows, ASPECTS, "t").aspects["SC"].paper
    assert with_broken.statuses == {Status.OK: 80, Status.PARSE_FAILURE: 1}


def test_policies_fill_what_failed_and_say_nothing_of_what_is_missing():
    ratings = observations(1)[0].ratings
    failed = Observation("A", "f", ratings, (("SC", 0.9),), Status.REFUSAL)
    missing = Observation("A", "m", ratings, (), Status.MISSING)
    assert fill([failed, missing], ASPECTS, Options("drop")) == [failed, missing]
    worst = fill([failed, missing], ASPECTS, Options("worst"))
    assert dict(worst[0].scores) == {"SC": 0.9, "PQ": 0.0, "O": 0.0}
    assert worst[1] == missing
    drawn = [dict(fill([failed], ASPECTS, Options("random", seed=s))[0].scores)["PQ"] for s in range(300)]
    assert set(np.round(np.array(drawn) * 10)) == set(range(11))
    assert fill([failed], ASPECTS, Options("random", seed=5)) == fill([failed], ASPECTS, Options("random", seed=5))


def test_a_constant_judge_is_undefined_with_a_reason_and_left_out():
    rows = tuple(
        Observation(
            o.image_model,
            o.uid,
            o.ratings,
            tuple((a, 0.5) for a in ASPECTS) if o.image_model == "B" else o.scores,
            o.status,
        )
        for o in observations()
    )
    found = summarise(rows, ASPECTS, "t").aspects["SC"]
    alone = summarise(tuple(o for o in rows if o.image_model == "A"), ASPECTS, "t").aspects["SC"]
    assert found.fisher == pytest.approx(alone.fisher)
    assert math.isnan(found.paper)
    assert found.reasons == ("B: the judge is constant",)


def test_groups_average_over_tasks_with_an_interval_of_their_own():
    a, b = summarise(observations(seed=1), ASPECTS, "a"), summarise(observations(seed=2, noise=0.8), ASPECTS, "b")
    group = combine((a, b))
    found = group.aspects["SC"]
    parts = [a.aspects["SC"], b.aspects["SC"]]
    assert found.fisher == pytest.approx(math.tanh(np.mean(np.arctanh([p.fisher for p in parts]))))
    assert found.high - found.low < max(p.high - p.low for p in parts)
    assert group.total == 160


def test_tasks_are_resampled_independently():
    rows = observations()
    assert not np.array_equal(
        summarise(rows, ASPECTS, "a").aspects["SC"].draws, summarise(rows, ASPECTS, "b").aspects["SC"].draws
    )


def test_human_agreement_of_identical_raters_is_nearly_one():
    rows = tuple(
        Observation(o.image_model, o.uid, tuple((a, (v[0],) * 3) for a, v in o.ratings), o.scores, o.status)
        for o in observations()
    )
    assert human(rows, ("SC",), "t")["SC"].fisher == pytest.approx(0.9999)
