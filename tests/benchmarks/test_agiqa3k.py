"""AGIQA-3K: the published scores, correlations against a direct computation, and bad lines."""

import csv
from shlex import split

import numpy as np
import pytest
from scipy import stats

from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.meta_evaluation.observations import observe
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = registry.benchmark("agiqa3k")
OPTIONS = StatisticsOptions(draws=20)
COLUMNS = tuple(
    split("name prompt adj1 adj2 style mos_quality std_quality mos_align std_align")
)


def records(samples, judged, aspects):
    """`judged` has the scores of each sample, in order, by aspect."""
    by = Provenance("mine", (), aspects, "mine")
    found = []
    for sample, row in zip(samples, judged, strict=True):
        verdict = Verdict(dict(zip(aspects, row, strict=True)), Status.OK)
        described = {"tags": sample.tags, "group": sample.group}
        record = Record(sample.id, verdict, by, sample.ratings, **described)
        found.append((record,))
    return found


def scripted(path):
    """Scores of SC and PQ that have something of people's, computed from the raw file and not
    from samples.
    """
    rows = [
        [float(row["mos_align"]), float(row["mos_quality"])]
        for row in csv.DictReader(path.open())
    ]
    people = np.array(rows)
    noise = np.random.default_rng(20).normal(0, 1, people.shape)
    return people, np.clip(people / 5 + 0.2 * noise, 0, 1).round(1)


def direct(people, judged):
    found = {}
    for place, aspect in enumerate(("SC", "PQ")):
        both = people[:, place], judged[:, place]
        found[f"{aspect}_spearman"] = stats.spearmanr(*both).statistic
        found[f"{aspect}_pearson"] = stats.pearsonr(*both).statistic
        found[f"{aspect}_kendall"] = stats.kendalltau(*both).statistic
    return found


def test_correlations_are_those_of_a_direct_computation(shared_data):
    samples = BENCHMARK.load(shared_data, "all")
    people, judged = scripted(shared_data / "agiqa3k" / "data.csv")
    expected = direct(people, judged)
    both = ("SC", "PQ")
    judged_records = {"all": records(samples, judged, both)}
    run = Run("mine", "agiqa3k", "mine", both, judged_records)
    observed = tuple(map(observe, run.records["all"]))
    summary = summary_of(
        BENCHMARK.report, observed, Rating(both), "agiqa3k", "all", OPTIONS
    )
    found = summary.estimates.items()
    estimates = {name.removesuffix("_value"): one.value for name, one in found}
    assert estimates == pytest.approx({**expected, "scored_count": 2982})
    assert summary.scored == 2982
    assert len(set(expected.values())) == 6
    made = BENCHMARK.report.findings("agiqa3k", ("all",), [run], OPTIONS)
    cells = {f"{key.aspect}_{key.statistic}": made.cells[key] for key in made.cells}
    assert cells == pytest.approx(expected)
    headlines = [one.aspect for one in made.ranked if one.is_headline]
    assert headlines == ["SC", "PQ"]


def test_the_published_images(shared_data):
    samples = BENCHMARK.load(shared_data, "all")
    assert len({sample.group for sample in samples}) == 300
    assert len({sample.id.image_model for sample in samples}) == 10
    first = samples[0]
    assert str(first.id) == "agiqa3k/all/AttnGAN_normal/000"
    assert first.group == "statue of a man"
    assert first.ratings == {"SC": (0.40889324,), "PQ": (0.965602553,)}
    tags = {tag for sample in samples for tag in sample.tags}
    assert tags > {"baroque style", "warm color", "top view"}
    assert BENCHMARK.prepare(shared_data, Preparing(images=False)).complete
    assert BENCHMARK.prepare(shared_data, Preparing(images=False)).complete


# on files of our own


def row(number=0, model="sd1.5_normal", **cells):
    name = f"{model}_{number:03}.jpg"
    scores = {"mos_quality": 1, "mos_align": 4, "std_quality": 1, "std_align": 1}
    given = {"name": name, "prompt": f"zebra {number % 4}", **scores}
    return {**dict.fromkeys(COLUMNS, ""), **given, **cells}


def write(root, *rows, columns=COLUMNS):
    folder = root / "agiqa3k"
    folder.mkdir(exist_ok=True)
    with (folder / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return folder


@pytest.mark.parametrize(
    ("rating", "aspects"),
    [
        (Rating(("SC",)), {"SC"}),
        (Rating(("SC", "PQ", "O")), {"SC", "PQ"}),
        # a metric's one score is compared with both
        (Rating(("SC",), against_all=True), {"SC", "PQ"}),
    ],
)
def test_aspects_are_compared_with_what_a_judge_rates(rating, aspects):
    names = [statistic.name for statistic in BENCHMARK.report.statistics(rating)]
    assert {name.split("_")[0] for name in names} == {*aspects, "scored"}


def test_judges_are_compared_by_aspect_those_of_one_score_in_all(tmp_path):
    write(
        tmp_path, *(row(n, mos_quality=n % 5, mos_align=(n * 3) % 5) for n in range(20))
    )
    samples = BENCHMARK.load(tmp_path, "all")
    right = [[sample.ratings[a][0] / 5 for a in ("SC", "PQ")] for sample in samples]
    judged = {"all": records(samples, right, ("SC", "PQ"))}
    both = Run("both", "agiqa3k", "both", ("SC", "PQ"), judged)
    judged = {"all": records(samples, [row[:1] for row in right], ("SC",))}
    one = Run("one", "agiqa3k", "one", ("SC",), judged, True)
    ranked = BENCHMARK.report.findings("agiqa3k", ("all",), [both, one], OPTIONS).ranked
    compared = [statistic.compared(OPTIONS) for statistic in ranked]
    found = [(c.aspect, c.statistic.split("'")[0], c.pair(0, 1).n) for c in compared]
    assert found == [
        ("SC", "Spearman", 20),
        ("PQ", "Spearman", 20),
        ("SC", "Pearson", 20),
        ("PQ", "Pearson", 20),
    ]
    differences = [
        compare_systems(c, "agiqa3k", OPTIONS)
        .pairs[0]
        .better_first()
        .result.difference.value
        for c in compared
    ]
    assert differences[0] == pytest.approx(0)
    assert differences[1] == pytest.approx(0.5, abs=0.01)
