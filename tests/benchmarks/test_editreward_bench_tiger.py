"""EditReward-Bench of TIGER-Lab: groups from the hub's pairs, a statistic against brute force,
and bad rows.
"""

from itertools import combinations, product

import pytest

from tests.benchmarks.hub import LETTERS, hub_with, stored
from tests.benchmarks.hub import editreward_rows as hub_rows
from vieval_plugin.benchmarks import editreward_bench_tiger as tiger
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges.contests import RANKING, Votes, ranks
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.meta_evaluation.tables import printed_tables
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.writing import write_report
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = tiger.BENCHMARK
OPTIONS = StatisticsOptions(draws=10)


def rankings(number):
    """All rankings of so many, with ties, as the place of each; there are 75 of four."""
    found = {
        tuple(sorted(set(one)).index(place) for place in one)
        for one in product(range(number), repeat=number)
    }
    return sorted(found)


def written(places):
    levels = [
        [str(n) for n, place in enumerate(places, 1) if place == level]
        for level in range(max(places) + 1)
    ]
    return ">".join("=".join(level) for level in levels)


def test_all_rankings_of_four_against_all_are_right_where_every_pair_is():
    every = rankings(4)
    assert len(every) == 75
    observations, whole, decided, pairs = [], [], [], []
    for number, (people, judge) in enumerate(product(every, every)):
        votes = Votes(RANKING, written(people))
        own = dict.fromkeys(("forward", "reverse"), written(judge))
        contested = ContestObservation(tuple("wxyz"), votes, own)
        observations.append(
            Observation("", f"{number:04}", {}, {}, Status.OK, contest=contested)
        )
        signs = [
            tuple((one[i] > one[j]) - (one[i] < one[j]) for one in (people, judge))
            for i, j in combinations(range(4), 2)
        ]
        pairs += [said == own for said, own in signs]
        whole.append(all(said == own for said, own in signs))
        if preferred := [said == own for said, own in signs if said]:
            decided.append(all(preferred))
    found = summary_of(
        BENCHMARK.report, tuple(observations), Rating(()), "b", "all", OPTIONS
    ).estimates
    got = found["votes_all_pairs_accuracy_three_way_value"].value
    assert got == pytest.approx(sum(whole) / len(whole))
    assert sum(whole) == 75
    got = found["votes_all_pairs_accuracy_decisive_value"].value
    assert got == pytest.approx(sum(decided) / len(decided))
    assert found["votes_all_pairs_accuracy_decisive_value"].n == len(decided) == 75 * 74
    got = found["votes_accuracy_three_way_value"].value
    assert got == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize("number", [2, 3, 4])
def test_each_ranking_comes_back_from_its_pairs(number):
    letters = "ABCD"[:number]
    for places in rankings(number):
        pairs = [
            {one: places[letters.index(one)], other: places[letters.index(other)]}
            for one, other in combinations(letters, 2)
        ]
        again = tiger._ranking(letters, pairs)
        found = [place == min(ranks(again, number)) for place in ranks(again, number)]
        assert found == [p == 0 for p in places]
        assert ranks(again, number) == ranks(written(places), number)


@pytest.fixture
def hub(monkeypatch):
    rows, _ = hub_with(monkeypatch, "TIGER-Lab/EditReward-Bench", "train")
    return rows[None]


def prepare(root):
    return BENCHMARK.prepare(root, Preparing())


TWO = {"AvsB": "A=B=Good"}
THREE = {"AvsB": "B>A", "AvsC": "A>C", "BvsC": "B>C"}
SIGNS = {"AvsB": "A=B", "AvsC": "C>A", "AvsD": "A>D"}
FOUR = {**SIGNS, "BvsC": "C>B", "BvsD": "B>D", "CvsD": "C>D"}


def test_preparing_makes_groups_of_the_hubs_pairs(tmp_path, hub):
    # the same name in two sizes is two groups
    groups = (("7", 2, TWO), ("7", 3, THREE), ("8", 4, FOUR))
    hub += [row for group in groups for row in hub_rows(*group)]
    assert prepare(tmp_path).complete
    contests = BENCHMARK.load(tmp_path, "all")
    votes = {c.id.uid: c.votes.vote for c in contests}
    assert votes == {"2-7_0": "1=2", "3-7": "2>1>3", "4-8": "3>1=2>4"}
    four = contests[-1]
    found = [sample.id.image_model for sample in four.candidates]
    assert found == [f"model {letter}" for letter in "ABCD"]
    found = [s.images["output"].source.read_bytes() for s in four.candidates]
    assert found == [stored(c)["bytes"] for c in LETTERS.values()]
    assert {sample.texts["instruction"] for sample in four.candidates} == {"edit 8"}
    # six pairs of a group show each of its images three times, and it is written once
    folder = tmp_path / "editreward_bench_tiger" / "all" / "images"
    assert len(list(folder.iterdir())) == 5


def test_pairs_that_no_ranking_fits_are_a_contest_without_a_vote(tmp_path, hub):
    hub += hub_rows("9", 3, {"AvsB": "A>B", "BvsC": "B>C", "AvsC": "C>A"})
    assert prepare(tmp_path).complete
    [contest] = BENCHMARK.load(tmp_path, "all")
    assert contest.votes.vote == ""


SIZE = "cannot combine the rows of TIGER-Lab/EditReward-Bench (ValueError: group 3-1 must have"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (hub_rows("1", 2, {"AvsB": "A>C"}), "the ranking must contain A, B, got 'A>C'"),
        (hub_rows("1", 3, {"AvsB": "A>B"}), f"{SIZE} 3 candidates, got 2)"),
        (
            hub_rows("1", 3, THREE) + hub_rows("1", 3, {"AvsB": "A>B"}),
            "must have at most 3 rows, got 4",
        ),
        ([{**hub_rows("1", 2, TWO)[0], "ranking": None}], "is malformed"),
    ],
)
def test_rows_of_another_form_are_one_line(tmp_path, hub, rows, said):
    hub += rows
    report = prepare(tmp_path)
    assert not report.complete
    assert said in report.lines[1]
    assert "\n" not in report.lines[1]


def test_published_numbers_stand_in_the_report_and_are_marked(tmp_path):
    [table] = printed_tables(BENCHMARK.printed)
    rows = {row[1]: row[2:] for row in table.rows}
    assert rows["GPT-5 (printed)"] == ("57.53", "38.51", "12.84", "37.81")
    assert all(name.endswith("(printed)") for name in rows)
    by = Provenance("mine", (), ("O",), "mine")
    scores = Choice(scores=({"O": 0.9}, {"O": 0.1}))
    candidates = tuple(SampleId(tiger.NAME, "all", model, "1") for model in "xy")
    sample = SampleId(tiger.NAME, "all", "", "1")
    verdict = Verdict({}, Status.OK, choice=scores)
    votes = Votes(RANKING, "1>2")
    record = Record(sample, verdict, by, {}, votes=votes, candidates=candidates)
    run = Run("mine", tiger.NAME, "mine", ("O",), {"all": [(record,)]})
    write_report(Results((run,)), tmp_path / "report", OPTIONS)
    told = (tmp_path / "report" / "report.md").read_text()
    assert "Published numbers of other judges, not computed here" in told
    assert "| all | GPT-4o (printed) | 45.69 | 27.33 | 7.31 | 28.31 |" in told
