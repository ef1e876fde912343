"""Agreement of two judges on recorded votes and scores."""

from dataclasses import replace

import numpy as np
import pytest

from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import observed
from vieval_plugin.meta_evaluation.two_judges import agreement_of_two
from vieval_plugin.meta_evaluation.vote_answers import answers_of, pairs_of
from vieval_plugin.report.several_judges import agreement_notes
from vieval_plugin.results.published.judges import published_judges, run_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import FIRST, NONE, SECOND, two_judges

pandas = pytest.importorskip("pandas")

NAME = "genai_bench_tiger"


def runs_of(shared_data, benchmark_name, names, part):
    samples = benchmark(benchmark_name).load(shared_data, part)
    judges = {judge.name: judge for judge in published_judges(benchmark_name)}
    return [run_of(judges[name], shared_data, samples) for name in names]


@pytest.mark.parametrize("part", ["edit", "generation"])
def test_gpt_4o_is_right_more_often_where_llava_agrees(shared_data, part):
    runs = runs_of(shared_data, NAME, ("gpt4o", "llava"), part)
    first, second = (
        answers_of(pairs_of(rows, "four_way"), "votes", "four_way", [0])
        for _, rows in observed(runs, part)
    )
    codes = np.array([first.codes["decisive"], second.codes["decisive"]])
    answered = (codes != NONE).all(axis=0)
    votes = codes[:, answered].astype(float)
    right = first.points("decisive")[answered]
    groups = np.array(first.pairs.groups)[answered]
    halves = two_judges(*votes, first.pairs.human[answered], groups.tolist())
    known, alike = ~np.isnan(right), votes[0] == votes[1]
    assert halves.alike.value == pytest.approx(alike.mean())
    assert halves.alike.n == len(right)
    assert halves.right_where_alike.n + halves.first_elsewhere.n == known.sum()
    assert halves.rated_equal == len(right) - known.sum()
    pooled = sum(share.value * share.n for share in halves[1:3]) / known.sum()
    assert pooled == pytest.approx(right[known].mean())
    assert halves.right_where_alike.low > halves.first_elsewhere.high
    of_runs = agreement_of_two(runs, StatisticsOptions())
    found = [(share.value, share.n) for share in of_runs[:4]]
    assert found == [(share.value, share.n) for share in halves[:4]]


def test_scores_agree_where_they_order_two_outputs_for_one_prompt_alike(shared_data):
    """By pandas, on the logs of two judges and people's ratings."""
    runs = runs_of(shared_data, "imagenhub", ("gpt4o_0shot", "gpt4v_0shot"), "tie")
    halves = agreement_of_two(runs, StatisticsOptions())
    tables = []
    for run in runs:
        rows = [
            (o.uid, o.image_model, o.scores.get("O"), np.mean(o.ratings["O"]))
            for o in map(observe, run.records["tie"])
            if o.status is not Status.MISSING
        ]
        table = pandas.DataFrame(rows, columns=["uid", "model", "score", "rating"])
        pairs = table.merge(table, on="uid")
        tables.append(pairs[pairs.model_x < pairs.model_y])
    on = ["uid", "model_x", "model_y"]
    pairs = tables[0].merge(tables[1], on=on, suffixes=("", "_other"))
    pairs = pairs.dropna(
        subset=["score_x", "score_y", "score_x_other", "score_y_other"]
    )
    first, second, people = (
        np.sign(pairs[name.format("x")] - pairs[name.format("y")]).to_numpy()
        for name in ("score_{}", "score_{}_other", "rating_{}")
    )
    alike, rated, right = first == second, people != 0, first == people
    known = {
        "alike": alike,
        "right_where_alike": right[alike & rated],
        "first_elsewhere": right[~alike & rated],
        "second_elsewhere": (second == people)[~alike & rated],
    }
    for name, expected in known.items():
        found = getattr(halves, name)
        assert (found.value, found.n) == (pytest.approx(expected.mean()), len(expected))
    [sentence] = agreement_notes(runs, StatisticsOptions())
    assert "agree on 2,582 of 4,638 pairs of images." in sentence
    assert "(835)" in sentence.partition("Where they disagree")[2]
    assert agreement_notes(runs[:1], StatisticsOptions()) == []
    # one that scores PQ alone is compared by PQ, and one that scores another aspect not at all
    of_pq, of_other = (
        agreement_of_two([runs[0], replace(runs[1], aspects=(a,))], StatisticsOptions())
        for a in ("PQ", "X")
    )
    both = [replace(run, aspects=("PQ",)) for run in runs]
    assert of_pq == agreement_of_two(both, StatisticsOptions())
    assert of_other is None


def test_no_answer_is_like_no_other():
    votes = ([np.nan, np.nan, FIRST], [np.nan, SECOND, FIRST])
    halves = two_judges(*votes, [FIRST] * 3, ["a", "b", "c"])
    assert halves.alike.value == pytest.approx(1 / 3)
    assert (halves.right_where_alike.value, halves.first_elsewhere.value) == (1.0, 0.0)
