"""A card's judge among published ones: GPT-4o and GPT-4v on a task type of ImagenHub."""

import pytest

from tests.leaderboard.logs import few_logs
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.card.placing import place_among
from vieval_plugin.card.sentences import outcome
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.results.published.judges import present, run_of
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.ranking import holm

OPTIONS = StatisticsOptions(draws=50)


@pytest.fixture(scope="module")
def runs(shared_data, tmp_path_factory):
    folder = few_logs(shared_data, tmp_path_factory.mktemp("logs"))
    judged = benchmark("imagenhub").load(folder, "cig")
    return [run_of(judge, folder, judged) for judge in present("imagenhub", folder)]


def test_p_is_adjusted_over_the_published(runs):
    imagenhub, [mine, *published] = benchmark("imagenhub"), runs
    judge = place_among(imagenhub, mine, published, OPTIONS)
    pairs = [judge.pair_with(number.system) for number in judge.published]
    raw = []
    for pair in pairs:
        two = [mine, *(run for run in published if run.label == pair.second)]
        parts = tuple(imagenhub.parts)
        findings = imagenhub.report.findings("imagenhub", parts, two, OPTIONS)
        compared = findings.ranked[0].compared(OPTIONS)
        [alone] = compare_systems(compared, "imagenhub", OPTIONS).pairs
        raw.append(alone.result.p)
    assert len(raw) == 2
    assert [pair.adjusted for pair in pairs] == holm(raw).tolist()
    assert judge.pairs_of_judge.comparison.family == "Holm correction over 2 pairs"
    # of the published ones' own pairs there is one, whose p nothing adjusts
    every = judge.board.comparison.pairs
    [own] = [pair for pair in every if mine.label not in (pair.first, pair.second)]
    assert own.adjusted == own.result.p
    # a place follows from the same tests as the sentence beside it
    assert judge.number.ranks[1] == 3 - sum(outcome(pair) == "better" for pair in pairs)
