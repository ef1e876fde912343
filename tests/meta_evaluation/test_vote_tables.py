"""Tables of contests, and the answers of published judges to the last printed digit."""

import csv
import itertools
from dataclasses import replace
from shlex import split

import pytest

from tests.leaderboards import compared_of
from tests.voted import OPTIONS, contest, run, scored, summarise, table, values, voting
from vieval_plugin.benchmarks import registry
from vieval_plugin.judges.contests import RANKING
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.comparison import compare_systems
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.meta_evaluation.vote_answers import VOTES
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Provenance, Run, record_of
from vieval_plugin.report.printed_cells import compare_with_printed
from vieval_plugin.report.tables import statuses_table
from vieval_plugin.results import replay
from vieval_plugin.stats.options import StatisticsOptions

# --- tables


def not_above(made, judge, part="t"):
    """The ways of counting in which a judge is not shown to be above the best constant."""
    prefix = "above_constant_"
    of_judge = [
        n
        for n in made.numbers
        if (n.system, n.part) == (judge, part) and n.statistic.startswith(prefix)
    ]
    return [
        n.statistic.removeprefix(prefix)
        for n in of_judge
        if n.estimate.defined and not n.estimate.low > 0
    ]


def test_a_judge_not_above_the_best_constant_is_marked_and_a_good_one_is_not():
    rows = voting()
    always = [
        replace(
            o,
            contest=replace(
                o.contest, judge_votes={"forward": "first", "reverse": "second"}
            ),
        )
        for o in rows
    ]
    made = ByVotes().findings(
        "b", ("t",), [run("good", rows), run("first shown", always)], OPTIONS
    )
    # it contradicts itself in the two orders, which is a tie each time
    assert not_above(made, "first shown") == ["four_way", "three_way", "decisive"]
    assert not_above(made, "good") == []
    orders = {row["judge"]: row for row in table(made, "orders")}
    assert orders["first shown"]["inconsistent"] == "100.00"
    assert list(orders)[:4] == [
        "always first",
        "always second",
        "always both_good",
        "always both_bad",
    ]


def test_above_by_chance_is_not_above():
    people = ["first"] * 20 + ["second"] * 20
    # right in 23 of 40, where a constant is in 20
    said = ["first"] * 13 + ["second"] * 7 + ["second"] * 10 + ["first"] * 10
    rows = [
        contest(f"{n:02}", p, "two_way", forward=s)
        for n, (p, s) in enumerate(zip(people, said, strict=True))
    ]
    made = ByVotes("two_way").findings("b", ("t",), [run("mine", rows)], OPTIONS)
    found = made.cells[Key("b", "t", "", "mine", "above_constant_decisive", "")]
    assert found == pytest.approx(7.5)
    assert not_above(made, "mine") == ["decisive"]


def test_constants_are_of_all_contests_that_people_voted_on():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "second", status=Status.MISSING),
    ]
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
    shown = {
        row["judge"]: (row["answered"], row["four-way"].split()[0])
        for row in table(made, "accuracy")
    }
    assert shown["always first"] == ("2 of 2", "50.00")
    assert shown["mine"] == ("1 of 1", "100.00")


def test_rankings_of_one_group_are_drawn_together():
    rows = [
        contest(
            str(n),
            "1>2>3",
            RANKING,
            models=tuple("xyz"),
            forward="1>2>3" if n % 3 else "3>2>1",
            group=f"g{n % 3}",
        )
        for n in range(30)
    ]
    alone = [replace(o, group=o.uid) for o in rows]
    together, apart = (
        summarise(some, RANKING).estimates["votes_all_pairs_accuracy_decisive_value"]
        for some in (rows, alone)
    )
    assert together.value == apart.value == pytest.approx(2 / 3)
    assert together.high - together.low > apart.high - apart.low
    by_size = [
        table(
            ByVotes(RANKING).findings("b", ("t",), [run("mine", some)], OPTIONS),
            "sizes",
        )[-1]["decisive"]
        for some in (rows, alone)
    ]
    expected = [
        f"{100 * e.value:.2f} [{100 * e.low:.2f}, {100 * e.high:.2f}]"
        for e in (together, apart)
    ]
    assert by_size == expected


def test_categories_and_pairs_of_image_models():
    rows = [
        contest(
            "a", "first", tags=("people", "text"), forward="first", models=("x", "y")
        ),
        contest("b", "first", tags=("people",), forward="second", models=("y", "x")),
        contest("c", "both_bad", forward="both_bad", models=("x", "y")),
        contest("d", "second", tags=("text",), forward="second", models=("x", "z")),
        contest("e", "second", forward="first", models=("z", "z")),
    ]
    made = ByVotes().findings("b", ("t",), [run("mine", rows)], OPTIONS)
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


def test_statuses_are_told():
    rows = [
        contest("a", "first", forward="first"),
        contest("b", "first", status=Status.REFUSAL),
    ]
    statuses = statuses_table([run("mine", rows)])
    row = dict(zip(statuses.header, statuses.rows[0], strict=True))
    found = (row["of"], row["ok"], row["refusal"], row["api_error"])
    assert found == (tuple(split("samples 1 1 0")))


def test_who_left_many_unanswered_is_told_where_judges_are_compared():
    whole = [contest(str(n), "first", forward="first") for n in range(40)]
    half = [
        contest(str(n), "first", forward="first" if n % 2 else "") for n in range(40)
    ]
    runs = [run("whole", whole), run("half", half)]
    for compared in compared_of(ByVotes(), "b", ("t",), runs, OPTIONS):
        assert compared.notes == (
            "missing answers count as wrong; answered: whole 40 of 40, half 20 of 40",
        )
    for compared in compared_of(
        ByVotes(), "b", ("t",), [run("whole", whole), run("other", whole)], OPTIONS
    ):
        assert compared.notes == ()


def test_judges_that_score_and_judges_that_vote_stand_in_one_table():
    rows = scored(60, aspects=("SC", "O"))
    votes = [
        replace(
            o, contest=replace(o.contest, scores=(), judge_votes={"forward": "first"})
        )
        for o in rows
    ]
    made = ByVotes().findings(
        "b",
        ("t",),
        [run("scores", rows, aspects=("SC", "O")), run("votes", votes)],
        OPTIONS,
    )
    shown = [(row["judge"], row["votes from"]) for row in table(made, "accuracy")]
    assert shown[4:] == [("scores", "SC"), ("scores", "O"), ("votes", "votes")]
    summary = summarise(rows, aspects=("SC", "O"))
    for aspect, what in itertools.product(
        ("SC", "O"), ("accuracy_four_way", "accuracy_decisive", "upper_bound_four_way")
    ):
        cell = made.cells[Key("b", "t", "", "scores", what, aspect)]
        found = pytest.approx(100 * summary.estimates[f"{aspect}_{what}_value"].value)
        assert cell == found


def test_judges_are_compared_on_the_contests_of_both():
    good, bad = voting(skill=0.9), voting(skill=0.3)
    compared = compared_of(
        ByVotes(), "b", ("t",), [run("good", good), run("bad", bad[:150])], OPTIONS
    )
    assert [(one.aspect, one.statistic) for one in compared] == [
        (VOTES, f"accuracy {counted}")
        for counted in ("four-way", "three-way", "decisive")
    ]
    found = compare_systems(compared[0], "b", OPTIONS)
    systems = {one.label: one for one in found.systems}
    assert found.pairs[0].n == 150
    assert (systems["good"].ranks, systems["bad"].ranks) == ((1, 1), (2, 2))
    got = systems["good"].value
    assert got == (pytest.approx(values(good)["votes_accuracy_four_way"]))
    got = found.pairs[0].better_first().result.first
    assert got == (pytest.approx(values(good[:150])["votes_accuracy_four_way"]))


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
    return benchmark.report.findings(
        benchmark.name, tuple(benchmark.parts), runs, StatisticsOptions(draws=300)
    )


def test_all_printed_cells_of_genai_bench_to_the_last_digit(genai_bench, shared_data):
    expected = shared_data / "expected" / "genai_bench_tiger.csv"
    found = compare_with_printed(expected, genai_bench.cells)
    assert len(found.exact) == len(list(csv.DictReader(expected.open()))) == 18
    assert not found.failed
    # and a judge whose printed value is another is told apart
    key = found.exact[0].key
    assert compare_with_printed(
        expected, {**genai_bench.cells, key: genai_bench.cells[key] + 0.02}
    ).failed


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
    found = shown | {f"always {word}": value for word, value in four_way.items()}
    assert shown == found
    paper = [row for row in table(genai_bench, "paper") if row["task"] == part]
    read = {row["judge"]: row["accuracy"].split()[0] for row in paper}
    assert read == read | {
        f"always {word}": value for word, value in four_way.items()
    } | {"always tie": bare}
    judges = [row["judge"] for row in paper if not row["judge"].startswith("always")]
    assert [
        judge for judge in judges if "paper" not in not_above(genai_bench, judge, part)
    ] == above
