"""Tables of contests, and the answers of published judges to the last printed digit."""

import csv
import itertools
from dataclasses import replace

import pytest

from tests.leaderboards import compared_of
from tests.voted import (
    CODES,
    OPTIONS,
    contest,
    findings,
    run,
    scored,
    summarise,
    table,
    values,
    voting,
)
from vieval_plugin.benchmarks import registry
from vieval_plugin.judges.contests import RANKING
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import VOTES
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Provenance, Run, record_of
from vieval_plugin.report.printed_cells import compare_with_printed
from vieval_plugin.results import replay
from vieval_plugin.stats.options import StatisticsOptions

# --- tables


def not_above(made, judge, part="t"):
    """The ways of counting in which a judge is not shown to be above the best constant."""
    prefix = "above_constant_"
    of_judge = [n for n in made.numbers if (n.system, n.part) == (judge, part)]
    return [
        n.statistic.removeprefix(prefix)
        for n in of_judge
        if n.statistic.startswith(prefix)
        if n.estimate.defined and not n.estimate.low > 0
    ]


def test_a_judge_not_above_the_best_constant_is_marked_and_a_good_one_is_not():
    rows = voting()
    said = {"forward": "first", "reverse": "second"}
    always = [replace(o, contest=replace(o.contest, judge_votes=said)) for o in rows]
    made = findings(run("good", rows), run("first shown", always))
    # it contradicts itself in the two orders, which is a tie each time
    assert not_above(made, "first shown") == ["four_way", "three_way", "decisive"]
    assert not_above(made, "good") == []
    orders = {row["judge"]: row for row in table(made, "orders")}
    assert orders["first shown"]["inconsistent"] == "100.00"
    assert list(orders)[:4] == [f"always {word}" for word in CODES]


def test_above_by_chance_is_not_above():
    people = ["first"] * 20 + ["second"] * 20
    # right in 23 of 40, where a constant is in 20
    said = ["first"] * 13 + ["second"] * 7 + ["second"] * 10 + ["first"] * 10
    rows = [
        contest(f"{n:02}", people[n], "two_way", forward=said[n]) for n in range(40)
    ]
    made = findings(run("mine", rows), scheme="two_way")
    found = made.cells[Key("b", "t", "", "mine", "above_constant_decisive", "")]
    assert found == pytest.approx(7.5)
    assert not_above(made, "mine") == ["decisive"]


def test_rankings_of_one_group_are_drawn_together():
    rows = []
    for n in range(30):
        said = {"forward": "1>2>3" if n % 3 else "3>2>1", "group": f"g{n % 3}"}
        rows.append(contest(str(n), "1>2>3", RANKING, models=tuple("xyz"), **said))
    alone = [replace(o, group=o.uid) for o in rows]
    together, apart = (
        summarise(some, RANKING).estimates["votes_all_pairs_accuracy_decisive_value"]
        for some in (rows, alone)
    )
    assert together.value == apart.value == pytest.approx(2 / 3)
    assert together.high - together.low > apart.high - apart.low
    for some, number in ((rows, together), (alone, apart)):
        row = table(findings(run("mine", some), scheme=RANKING), "sizes")[-1]
        value, low, high = (100 * v for v in (number.value, number.low, number.high))
        assert row["decisive"] == f"{value:.2f} [{low:.2f}, {high:.2f}]"


def test_categories_and_pairs_of_image_models():
    tags = ("people", "text")
    rows = [
        contest("a", "first", tags=tags, forward="first", models=("x", "y")),
        contest("b", "first", tags=tags[:1], forward="second", models=("y", "x")),
        contest("c", "both_bad", forward="both_bad", models=("x", "y")),
        contest("d", "second", tags=tags[1:], forward="second", models=("x", "z")),
        contest("e", "second", forward="first", models=("z", "z")),
    ]
    made = findings(run("mine", rows))
    by_tag = {(row["category"], row["judge"]): row for row in table(made, "categories")}
    assert by_tag["people", "mine"]["four-way"].startswith("50.00")
    assert by_tag["text", "mine"]["four-way"].startswith("100.00")
    # two of five are for the second, more than for anything else but the first; of constants one
    # stands there
    assert {judge for _, judge in by_tag} == {"mine", "always first"}
    assert by_tag["people", "always first"]["four-way"].startswith("100.00")
    pairs = {
        (*row["image models"].split(", "), row["judge"]): row
        for row in table(made, "image_model_pairs")
    }
    mine = pairs["x", "y", "mine"]
    # people: x in a, y in b, a tie in c; the judge: x, x, a tie
    assert mine["people prefer first"].startswith("50.00")
    assert mine["judge prefers first"].startswith("83.33")
    assert mine["four-way"].startswith("66.67")
    assert pairs["x", "z", "mine"]["people prefer first"].startswith("0.00")
    assert pairs["z", "z", "mine"]["judge prefers first"] == ""
    assert ("y", "x", "mine") not in pairs


def test_who_left_many_unanswered_is_told_where_judges_are_compared():
    whole = run("whole", [contest(str(n), "first", forward="first") for n in range(40)])
    said = ["first" if n % 2 else "" for n in range(40)]
    half = run("half", [contest(str(n), "first", forward=said[n]) for n in range(40)])
    note = "missing answers count as wrong; answered: whole 40 of 40, half 20 of 40"
    for other, notes in ((half, (note,)), (replace(whole, label="other"), ())):
        for compared in compared_of(ByVotes(), "b", ("t",), [whole, other], OPTIONS):
            assert compared.notes == notes


def test_judges_that_score_and_judges_that_vote_stand_in_one_table():
    rows = scored(60, aspects=("SC", "O"))
    said = {"scores": (), "judge_votes": {"forward": "first"}}
    votes = [replace(o, contest=replace(o.contest, **said)) for o in rows]
    judged = run("scores", rows, aspects=("SC", "O"))
    made = findings(judged, run("votes", votes))
    shown = [(row["judge"], row["votes from"]) for row in table(made, "accuracy")]
    assert shown[4:] == [("scores", "SC"), ("scores", "O"), ("votes", "votes")]
    summary = summarise(rows, aspects=("SC", "O"))
    whats = ("accuracy_four_way", "accuracy_decisive", "upper_bound_four_way")
    for aspect, what in itertools.product(("SC", "O"), whats):
        cell = made.cells[Key("b", "t", "", "scores", what, aspect)]
        value = summary.estimates[f"{aspect}_{what}_value"].value
        assert cell == pytest.approx(100 * value)


def test_judges_are_compared_on_the_contests_of_both():
    good, bad = voting(skill=0.9), voting(skill=0.3)
    runs = [run("good", good), run("bad", bad[:150])]
    compared = compared_of(ByVotes(), "b", ("t",), runs, OPTIONS)
    ways = ("four-way", "three-way", "decisive")
    found = [(one.aspect, one.statistic) for one in compared]
    assert found == [(VOTES, f"accuracy {counted}") for counted in ways]
    found = compare_systems(compared[0], "b", OPTIONS)
    systems = {one.label: one for one in found.systems}
    assert found.pairs[0].n == 150
    assert (systems["good"].ranks, systems["bad"].ranks) == ((1, 1), (2, 2))
    got = systems["good"].value
    assert got == pytest.approx(values(good)["votes_accuracy_four_way"])
    got = found.pairs[0].better_first().result.first
    assert got == pytest.approx(values(good[:150])["votes_accuracy_four_way"])


# --- published judges


@pytest.fixture(scope="module")
def genai_bench(shared_data):
    """The report on the given logs, read as the authors do."""
    benchmark = registry.benchmark("genai_bench_tiger")
    home = shared_data / "genai_bench_tiger"
    if not home.is_dir():
        pytest.skip("the logs of GenAI-Bench are not there")
    contests = {part: benchmark.load(shared_data, part) for part in benchmark.parts}
    runs = []
    for name in sorted({path.parent.name for path in home.glob("*/*/pairwise.json")}):
        recording = replay.load(home, "pairwise", name)
        by = Provenance("pairwise", (), (), name)
        records = {
            part: [
                (record_of(judged, recording.verdict(judged)[0], by),)
                for judged in contests[part]
            ]
            for part in benchmark.parts
            if f"{benchmark.name}/{part}" in recording.covered
        }
        runs.append(Run(name, benchmark.name, "pairwise", (), records))
    options = StatisticsOptions(draws=300)
    return benchmark.report.findings(
        benchmark.name, tuple(benchmark.parts), runs, options
    )


def test_all_printed_cells_of_genai_bench_to_the_last_digit(genai_bench, shared_data):
    expected = shared_data / "expected" / "genai_bench_tiger.csv"
    found = compare_with_printed(expected, genai_bench.cells)
    assert len(found.exact) == len(list(csv.DictReader(expected.open()))) == 18
    assert not found.failed
    # and a judge whose printed value is another is told apart
    key = found.exact[0].key
    other = {**genai_bench.cells, key: genai_bench.cells[key] + 0.02}
    assert compare_with_printed(expected, other).failed


@pytest.mark.parametrize(
    ("part", "four_way", "bare", "above"),
    [
        ("edit", {"both_bad": "42.66", "first": "26.12"}, "45.27", ["gpt4o"]),
        ("generation", {"second": "38.21"}, "24.73", ["gpt4o", "idefics2"]),
        ("video", {"second": "35.08"}, "34.52", ["gpt4o"]),
    ],
)
def test_constants_stand_beside_judges(genai_bench, part, four_way, bare, above):
    rows = [row for row in table(genai_bench, "accuracy") if row["task"] == part]
    shown = {row["judge"]: row["four-way"].split()[0] for row in rows}
    constants = {f"always {word}": value for word, value in four_way.items()}
    assert shown == shown | constants
    paper = [row for row in table(genai_bench, "paper") if row["task"] == part]
    read = {row["judge"]: row["accuracy"].split()[0] for row in paper}
    assert read == read | constants | {"always tie": bare}
    judges = [judge for judge in read if not judge.startswith("always")]
    found = [one for one in judges if "paper" not in not_above(genai_bench, one, part)]
    assert found == above
