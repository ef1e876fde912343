"""Agreement of two judges on recorded votes: where they agree, the first is right more often than elsewhere."""

import numpy as np
import pytest

from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.meta_evaluation.statistics import observed
from vieval_plugin.meta_evaluation.vote_answers import answers_of, pairs_of
from vieval_plugin.published.judges import published_judges, run_of
from vieval_plugin.stats.votes import NONE, two_judges

NAME = "genai_bench_tiger"


def answers(shared_data, name, part):
    """A judge's answers to the pairs of a part."""
    contests = benchmark(NAME).load(shared_data, part)
    [judge] = [judge for judge in published_judges(NAME) if judge.name == name]
    [(_, observations)] = observed([run_of(judge, shared_data, contests)], part)
    pairs = pairs_of(observations, "four_way")
    return answers_of(pairs, "votes", "four_way", [0])


@pytest.mark.parametrize("part", ["edit", "generation"])
def test_gpt_4o_is_right_more_often_where_llava_agrees(shared_data, part):
    first, second = (answers(shared_data, name, part) for name in ("gpt4o", "llava"))
    votes = [np.where(codes == NONE, np.nan, codes) for codes in (first.codes["decisive"], second.codes["decisive"])]
    right = first.points("decisive")
    halves = two_judges(*votes, right, first.pairs.groups)
    known, alike = ~np.isnan(right), votes[0] == votes[1]
    assert halves.alike.value == pytest.approx(alike.mean())
    assert halves.alike.n == len(right)
    assert halves.right_where_alike.n + halves.right_elsewhere.n == known.sum()
    pooled = sum(share.value * share.n for share in halves[1:]) / known.sum()
    assert pooled == pytest.approx(right[known].mean())
    assert halves.right_where_alike.low > halves.right_elsewhere.high


def test_no_answer_is_like_no_other():
    halves = two_judges([np.nan, np.nan, 0.0], [np.nan, 1.0, 0.0], [0.0, 0.0, 1.0], ["a", "b", "c"])
    assert halves.alike.value == pytest.approx(1 / 3)
    assert (halves.right_where_alike.value, halves.right_elsewhere.value) == (1.0, 0.0)
