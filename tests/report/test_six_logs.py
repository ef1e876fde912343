"""The leaderboard of six published logs, from the authors' files: what it says, and that no number depends on a third."""

from __future__ import annotations

import pytest

from vieval_plugin import config
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.records import Record, Run
from vieval_plugin.report.headlines.leaderboards import leaderboards
from vieval_plugin.report.headlines.sentences import sentences
from vieval_plugin.results import replay
from vieval_plugin.stats.options import StatisticsOptions

pytestmark = pytest.mark.slow

ASPECTS = ("SC", "PQ", "O")
LOGS = ("gpt4o_0shot", "gpt4o_1shot", "gpt4v_0shot", "gpt4v_1shot", "llava_0shot", "blip2_0shot")
IMAGENHUB = benchmark("imagenhub")


@pytest.fixture(scope="module")
def runs(shared_data):
    samples = [sample for part in IMAGENHUB.parts for sample in IMAGENHUB.load(shared_data, part)]
    found = {}
    for name in LOGS:
        recording = replay.load(shared_data / "viescore_logs" / f"results_{name}", "viescore")
        records = {}
        for sample in samples:
            verdict, source = replay.replayed(
                recording, sample.id, 0, "viescore", name.rpartition("_")[2], name, config.Config()
            )
            record = Record(sample.id, verdict, source, sample.ratings, kind=sample.kind, group=sample.group)
            records.setdefault(sample.id.part, []).append((record,))
        found[name] = Run(name, "imagenhub", "viescore", ASPECTS, records)
    return found


def board(runs):
    options = StatisticsOptions()
    headlines = IMAGENHUB.report.tables("imagenhub", tuple(IMAGENHUB.parts), runs, options).headlines[:1]
    [made] = leaderboards(headlines, "imagenhub", runs, options, {})
    return made


def require_equal(more, fewer):
    """No estimate, interval or test of the fewer judges is another among more."""
    estimates = {row.label: row.estimate for row in more.rows}
    for row in fewer.rows:
        again = estimates[row.label]
        assert (row.estimate.value, row.estimate.low, row.estimate.high) == (again.value, again.low, again.high)
    for pair in fewer.comparison.all_pairs:
        assert more.comparison.pair_of(pair.first, pair.second).result == pair.better_first().result


def test_numbers_of_two_are_the_same_with_and_without_a_third(runs):
    three = {label: runs[label] for label in ("gpt4o_0shot", "gpt4v_0shot", "llava_0shot")}
    with_llava, without = (board(list(chosen.values())) for chosen in (three, dict(list(three.items())[:2])))
    require_equal(with_llava, without)
    assert [row.label for row in with_llava.ranked] == ["gpt4o_0shot", "gpt4v_0shot"]


@pytest.mark.extras
def test_four_are_ranked_and_gpt4o_is_alone_first_with_and_without_llava(runs):
    six = board(list(runs.values()))
    first, second, ceiling, *_ = sentences(six)
    assert first == (
        "Of the 4 ranked, gpt4o_0shot agrees best with annotators on imagenhub: Spearman .47 [.44, .50], significantly better "
        "than gpt4o_1shot, gpt4v_0shot and gpt4v_1shot (gpt4o_1shot by .04 [.01, .06], p = .018)."
    )
    assert second == (
        "Not ranked: blip2_0shot (no value for 6 task types), llava_0shot (no value for subject-driven editing)."
    )
    assert ceiling.startswith("gpt4o_0shot is below the human ceiling: ")
    assert [(row.rank, row.label) for row in six.ranked] == [
        ("1", "gpt4o_0shot"),
        ("2", "gpt4o_1shot"),
        ("3", "gpt4v_0shot"),
        ("4", "gpt4v_1shot"),
    ]
    assert six.comparison.pair_of("gpt4o_0shot", "gpt4o_1shot").result.p == pytest.approx(0.011, abs=0.005)
    assert six.comparison.pair_of("gpt4o_1shot", "gpt4v_0shot").result.p <= 0.001
    marks = {row.label: row.marks for row in six.rows if row.marks}
    assert marks == {
        "blip2_0shot": ("place depends on failures: not ranked under drop, 6 under worst",),
        "llava_0shot": ("place depends on failures: not ranked under drop, 5 under worst",),
    }
    five = board([run for label, run in runs.items() if label != "llava_0shot"])
    require_equal(six, five)
