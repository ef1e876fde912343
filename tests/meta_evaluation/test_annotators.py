"""Agreement with each annotator and with their mean, as metrics, as tables, and through
lmms-eval.
"""

import hashlib
import json
import math
import re
from shlex import split

import numpy as np
import pytest
from scipy import stats

from tests import in_process, pairs
from tests.extras import unpacking
from tests.fake_server import FakeServer, instance
from vieval_plugin import config
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation import metrics, statistics
from vieval_plugin.meta_evaluation.annotator_agreement import (
    AnnotatedRows,
    annotator_correlation,
    correlations,
)
from vieval_plugin.meta_evaluation.annotators import WithAnnotators
from vieval_plugin.meta_evaluation.estimates import Bootstrap
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, estimate_of
from vieval_plugin.stats.options import StatisticsOptions

NAN = math.nan
OPTIONS = StatisticsOptions(draws=50)
BOOTSTRAP = Bootstrap.for_part("b/t", OPTIONS)
IMPUTE = StatisticsOptions(draws=50, missing_ratings="impute_mean")
DIMENSIONS = ("appearance", "intrinsic", "relationship")
REPORT = WithAnnotators(DIMENSIONS, "O", 3)
ANNOTATORS = ("1", "2", "3", "avg")
OVERALL_MEAN = "overall_manual_avg_spearman_value"
MEASURES = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


def observation(uid, ratings, scores, status=Status.OK):
    return Observation("unnamed", uid, ratings, scores, status)


def compare(rows, aspects, wanted, options=OPTIONS):
    dimensions = tuple(dict.fromkeys(statistic.aspect for statistic in wanted))
    rating = Rating(aspects, dimensions)
    of_judge = AnnotatedRows.from_observations(rows, rating, REPORT, options)
    return {one.name: estimate_of(one, of_judge, BOOTSTRAP) for one in wanted}


def summarise(rows, aspects, options=OPTIONS):
    rating = Rating(aspects)
    return statistics.summary_of(REPORT, rows, rating, "b", "t", options)


def direct(x, y, kind="spearman"):
    return float(MEASURES[kind](x, y).statistic)


@pytest.fixture(scope="module")
def thirty():
    """Thirty pairs with ratings (3, 30) by aspect and noisy scores by aspect, O among them."""
    rng = np.random.default_rng(1)
    rated = pairs.ratings()
    rated["O"] = rated.pop("overall")
    judged = {}
    for aspect in ("appearance", "intrinsic", "relationship", "O"):
        noise = rng.normal(0, 0.1, 30)
        judged[aspect] = np.clip(rated[aspect].mean(axis=0) / 10 + noise, 0, 1)
    rows = []
    for i in range(30):
        ratings = {aspect: tuple(values[:, i]) for aspect, values in rated.items()}
        scores = {aspect: float(values[i]) for aspect, values in judged.items()}
        rows.append(observation(str(i), ratings, scores))
    return tuple(rows), rated, judged


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_correlations_are_scipys_with_each_annotator_and_with_their_mean(thirty, kind):
    rows, rated, judged = thirty
    found = compare(rows, ("O",), correlations(("overall", *DIMENSIONS), ANNOTATORS))
    assert len(found) == 4 * 4 * 2
    for dimension in ("overall", *DIMENSIONS):
        aspect = "O" if dimension == "overall" else dimension
        for number in (1, 2, 3):
            expected = direct(judged[aspect], rated[aspect][number - 1], kind)
            got = found[f"{dimension}_manual_{number}_{kind}"].value
            assert got == pytest.approx(expected, abs=1e-12)
        mean = found[f"{dimension}_manual_avg_{kind}"]
        human = rated[aspect].mean(axis=0).round(9)
        expected = direct(judged[aspect], human, kind)
        assert mean.value == pytest.approx(expected, abs=1e-12)
        assert mean.low < mean.value < mean.high


def test_intervals_follow_from_the_seed(thirty):
    rows, _, _ = thirty

    def low(seed):
        options = StatisticsOptions("drop", 50, seed)
        return summarise(rows, ("O",), options).estimates[OVERALL_MEAN].low

    assert low(0) == low(0) != low(1)


def test_a_judge_without_o_is_compared_by_sc_and_one_with_o_by_nothing_else():
    rows = tuple(
        observation(str(i), {"O": (i, i, i)}, {"SC": (3 - i) / 10, "O": i / 10})
        for i in range(4)
    )
    failed = observation("4", {"O": (9, 9, 9)}, {"SC": 0.0}, Status.PARSE_FAILURE)
    by_o = summarise((*rows, failed), ("SC", "PQ", "O"))
    assert by_o.estimates["overall_manual_1_spearman_value"].value == 1.0
    assert by_o.scored == 4
    assert by_o.total == 5
    by_sc = compare(rows, ("SC",), correlations(["overall"], ["1"]))
    assert by_sc["overall_manual_1_spearman"].value == -1.0


MISSING = [  # three annotators' ratings of five pairs, the judge's score
    ((1.0, 2.0, 3.0), 0.1),
    ((NAN, 6.0, 3.0), 0.4),
    ((7.0, 4.0, NAN), 0.3),
    ((8.0, 8.0, 9.0), 0.8),
    ((NAN, NAN, NAN), 0.9),
]
GAPPED = tuple(
    observation(str(i), {"O": given}, {"O": score})
    for i, (given, score) in enumerate(MISSING)
)


@pytest.mark.parametrize(
    ("options", "annotator", "rated", "judged"),
    [
        (OPTIONS, "1", [1, 7, 8], [0.1, 0.3, 0.8]),
        (IMPUTE, "1", [1, 4.5, 7, 8], [0.1, 0.4, 0.3, 0.8]),
        (OPTIONS, "3", [3, 3, 9], [0.1, 0.4, 0.8]),
        (IMPUTE, "3", [3, 3, 5.5, 9], [0.1, 0.4, 0.3, 0.8]),
        (OPTIONS, "avg", [2, 4.5, 5.5, 25 / 3], [0.1, 0.4, 0.3, 0.8]),
        (IMPUTE, "avg", [2, 4.5, 5.5, 25 / 3], [0.1, 0.4, 0.3, 0.8]),
    ],
)
@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_missing_ratings_are_filled(options, annotator, rated, judged, kind):
    wanted = correlations(["overall"], [annotator])
    found = compare(GAPPED, ("O",), wanted, options)
    value = found[f"overall_manual_{annotator}_{kind}"].value
    assert value == pytest.approx(direct(judged, rated, kind), abs=1e-12)


def test_a_dimension_without_scores_or_ratings_is_undefined_with_a_reason():
    wanted = correlations(["relationship"], ["avg"])
    for ratings, scores in (
        ({}, {"relationship": 0.5}),
        ({"relationship": (1.0, 2.0, 3.0)}, {}),
    ):
        rows = tuple(observation(str(i), ratings, scores) for i in range(3))
        found = compare(rows, ("O",), wanted)
        for estimate in found.values():
            assert math.isnan(estimate.value)
            assert estimate.reason == "at least two pairs are needed, got 0"


def test_annotators_agree_with_the_mean_of_all_and_with_that_of_the_others(thirty):
    rows, rated, _ = thirty
    overall = rated["O"]
    for number in (1, 2, 3):
        own, others = overall[number - 1], np.delete(overall, number - 1, axis=0)
        with_all, with_others = (
            compare(
                rows, ("O",), annotator_correlation(["overall"], [str(number)], left)
            )
            for left in (False, True)
        )
        for kind in ("spearman", "kendall"):
            name = f"overall_manual_{number}_{kind}"
            for found, people in ((with_all, overall), (with_others, others)):
                expected = direct(own, people.mean(axis=0).round(9), kind)
                assert found[name].value == pytest.approx(expected, abs=1e-12)
            assert with_others[name].value < with_all[name].value


def test_only_a_judge_that_scores_dimensions_has_metrics_of_them():
    plain = metrics.names(REPORT, Rating(("SC", "PQ", "O")))
    by_dimension = metrics.names(REPORT, Rating(("O",), DIMENSIONS))
    assert "overall_manual_1_spearman_value" in plain
    assert "overall_manual_avg_kendall_ci_high" in plain
    assert metrics.names(REPORT, Rating(("SC",), ("style",))) == plain
    assert not [name for name in plain if name.startswith(DIMENSIONS)]
    assert {n for n in by_dimension if n not in plain} == {
        f"{d}_manual_avg_{k}_{what}"
        for d in DIMENSIONS
        for k in ("spearman", "kendall")
        for what in ("value", "ci_low", "ci_high")
    }
    assert not [(a, b) for a in by_dimension for b in by_dimension if a != b and a in b]


def test_a_policy_for_missing_ratings_other_than_the_default_is_told(tmp_path):
    summary = summarise(GAPPED, ("O",), IMPUTE)
    assert "missing ratings: impute_mean" in metrics.value(summary, "remarks")
    options = tmp_path / "v.yaml"
    options.write_text("statistics: {missing_ratings: impute_mean}\n")
    found = config.read(str(options)).statistics.options()
    assert found == StatisticsOptions(missing_ratings="impute_mean")


class Noisy:
    """A model by script that knows how good each picture is, but for noise and one of which it
    will not speak.
    """

    def __init__(self):
        rated = pairs.ratings().items()
        self.worth = {aspect: values.mean(axis=0) for aspect, values in rated}

    def __call__(self, request):
        if "response_format" not in request:
            return "Yes"
        schema = request["response_format"]["json_schema"]["schema"]
        words = json.dumps(request["messages"])
        found = re.search(r"picture number (\d+):", words)
        number = int(found[1]) if found else None
        if "entities" in schema["properties"]:
            return json.dumps(EXTRACTION)
        if number == 7:
            return "I cannot say."
        reply = instance(schema, hashlib.sha256(words.encode()).digest())
        for aspect in self.worth.keys() & reply if number is not None else ():
            noise = hashlib.sha256(f"{number} {aspect}".encode()).digest()[0] / 64 - 2
            score = np.clip(self.worth[aspect][number] + noise, 0, 10)
            reply[aspect]["score"] = float(score)
        return json.dumps(reply)


def entity(name):
    existence = {"name": "existence", "value": "yes"}
    quantity = {"name": "quantity", "value": "unspecified"}
    return {
        "name": name,
        "appearance_question": f"Does the {name} look real?",
        "attributes": [
            {**existence, "question": f"Is there a {name}?"},
            {**quantity, "question": f"How many {name}s are there?"},
        ],
    }


RELATION = {
    "entities": ["cup", "table"],
    "value": "on",
    "question": "Where is the cup?",
}
EXTRACTION = {"entities": [entity("cup"), entity("table")], "relations": [RELATION]}
HEADLINES = {
    "t2i_eval_bench_t2i_eval": "O",
    "t2i_eval_bench_viescore": "O",
    "t2i_eval_bench_vqascore": "SC",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The group of three judges on thirty pairs, one score of which was not given."""
    root = tmp_path_factory.mktemp("data")
    folder = pairs.write(root)
    rows = json.loads((folder / "scores.json").read_text())
    rows[3]["overall"]["overall"]["manual_score"][0] = None
    (folder / "scores.json").write_text(json.dumps(rows))
    assert main(["prepare", "t2i_eval_bench", "--root", str(root)]) == 0
    options = root / "v.yaml"
    judges = "{reminders: 0, t2i_eval: {mode: framework}}"
    lines = ("store: {use: false}", "statistics: {draws: 50}", f"judges: {judges}")
    options.write_text("\n".join(lines) + "\n")
    with FakeServer(reply=Noisy()) as server:
        command = split(
            f"--model vieval_openai --model_args model=fake,base_url={server.base_url} "
            f"--tasks t2i_eval_bench --output_path {root}/out --log_samples"
        )
        in_process.run(*command, data=root, options=options)
    return root / "out", options


def scores_of(samples):
    verdicts = [json.loads(str(row["filtered_resps"])) for row in samples]
    return {int(v["id"]["uid"]): v["verdict"]["scores"] for v in verdicts}


@unpacking
def test_through_lmms_eval_the_metrics_match_a_direct_computation(run, results_of):
    out, _ = run
    rated = pairs.ratings()
    results, samples = results_of(out)
    for task, aspect in HEADLINES.items():
        found = results["results"][task]
        scores = scores_of(samples[task])
        usable = sorted(n for n in scores if aspect in scores[n])
        assert len(scores) == 30
        count = 29 if aspect == "O" else 30
        assert found["scored_count,none"] == len(usable) == count
        judged = [scores[n][aspect] for n in usable]
        for kind in ("spearman", "kendall"):
            for number in (1, 2, 3):
                kept = [n for n in usable if (n, number) != (3, 1)]
                given = [scores[n][aspect] for n in kept]
                expected = direct(given, rated["overall"][number - 1, kept], kind)
                got = found[f"overall_manual_{number}_{kind}_value,none"]
                assert got == pytest.approx(expected, abs=1e-9)
            expected = direct(judged, given_mean(rated["overall"])[usable], kind)
            got = found[f"overall_manual_avg_{kind}_value,none"]
            assert got == pytest.approx(expected, abs=1e-9)
        by_dimension = [name for name in found if name.startswith(DIMENSIONS)]
        assert bool(by_dimension) == (task == "t2i_eval_bench_t2i_eval")
        for dimension in DIMENSIONS if by_dimension else ():
            judged = [scores[n][dimension] for n in usable]
            human = rated[dimension].mean(axis=0)[usable].round(9)
            expected = direct(judged, human, "kendall")
            got = found[f"{dimension}_manual_avg_kendall_value,none"]
            assert got == pytest.approx(expected, abs=1e-9)


def table(path):
    text = path.read_text().replace('"annotators, ', '"annotators ')
    header, *rows = [line.split(",") for line in text.splitlines()]
    return {row[0].strip('"'): dict(zip(header, row, strict=True)) for row in rows}


@unpacking
def test_table_1_has_the_annotators(run, tmp_path, monkeypatch, capsys):
    out, options = run
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    assert main(["report", str(out), "--out", str(tmp_path)]) == 0
    whole = table(tmp_path / "t2i_eval_bench_table_1.csv")
    judges = [f"fake ({judge})" for judge in ("T2I-Eval", "VIEScore", "VQAScore")]
    others = [f"annotators with the mean of {whose}" for whose in ("all", "the others")]
    assert list(whole) == [*others, *judges]
    counts = [(row["n"], row["failed"]) for row in whole.values()]
    assert counts == [("30", "")] * 2 + [("29", "1")] * 2 + [("30", "0")]
    rated = pairs.ratings()["overall"]
    with_all, with_others = list(whole.values())[:2]
    found = float(with_all["manual 2 rho"])
    assert found == pytest.approx(direct(rated[1], given_mean(rated)), abs=6e-5)
    human = np.delete(rated[1:].mean(axis=0).round(9), 3)
    expected = direct(np.delete(rated[0], 3), human, "kendall")
    assert float(with_others["manual 1 tau"]) == pytest.approx(expected, abs=6e-5)
    assert with_all["manual avg rho"] == ""
    looks = table(tmp_path / "t2i_eval_bench_appearance.csv")
    assert list(looks)[2:] == ["fake (T2I-Eval)"]
    looks = looks["fake (T2I-Eval)"]
    assert all(float(looks[name]) > 0.5 for name in looks if "manual" in name)
    [document] = json.loads((tmp_path / "cells.json").read_text())[:1]
    cells = {(c["judge"], c["statistic"]): c["value"] for c in document["cells"]}
    shown = whole["fake (T2I-Eval)"]["manual avg rho"]
    assert f"{cells['fake (T2I-Eval)', 'overall_manual_avg_spearman']:.4f}" == shown
    report = (tmp_path / "report.md").read_text()
    number = r"-?0\.\d{4}"
    assert re.search(rf"\| fake \(VQAScore\) \| tig \| {number} \[{number}, ", report)


def given_mean(rated):
    mean = rated.mean(axis=0)
    mean[3] = rated[1:, 3].mean()
    return mean.round(9)
