"""EditReward-Bench of TIGER-Lab: groups from the hub's pairs, a statistic against brute force,
and bad rows.
"""

import json
from itertools import combinations, product

import pytest

from tests.benchmarks.hub import hub_with, stored
from tests.refusals import refusal
from vieval_plugin.benchmarks import editreward_bench_tiger as tiger
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import pairwise, viescore
from vieval_plugin.judges.contests import RANKING, Votes, ranks
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.judges.spec import missing_inputs_reason
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
    assert got == (pytest.approx(sum(whole) / len(whole)))
    assert sum(whole) == 75
    got = found["votes_all_pairs_accuracy_decisive_value"].value
    assert got == (pytest.approx(sum(decided) / len(decided)))
    assert found["votes_all_pairs_accuracy_decisive_value"].n == len(decided) == 75 * 74
    got = found["votes_accuracy_three_way_value"].value
    assert got == (pytest.approx(sum(pairs) / len(pairs)))


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


# the hub


COLOURS = dict(zip("ABCD", ("red", "green", "blue", "white"), strict=True))


def hub_rows(name, of, said, **cells):
    """A row a pair of a group; `said` has what people say of each, such as `AvsB: B>A`."""
    return [
        {
            "id": f"{name}_{number}",
            "instruction": f"edit {name}",
            "source_image": stored("grey"),
            "candidate_1": stored(COLOURS[compared[0]]),
            "candidate_2": stored(COLOURS[compared[-1]]),
            "model_1": f"model {compared[0]}",
            "model_2": f"model {compared[-1]}",
            "ranking": ranking,
            "comparison_type": compared,
            "dataset": f"{of}pair",
            "num_candidates": of,
            **cells,
        }
        for number, (compared, ranking) in enumerate(said.items())
    ]


@pytest.fixture
def hub(monkeypatch):
    rows, _ = hub_with(monkeypatch, "TIGER-Lab/EditReward-Bench", "train")
    return rows[None]


def prepare(root):
    return BENCHMARK.prepare(root, Preparing())


TWO = {"AvsB": "A=B=Good"}
THREE = {"AvsB": "B>A", "AvsC": "A>C", "BvsC": "B>C"}
FOUR = {
    "AvsB": "A=B",
    "AvsC": "C>A",
    "AvsD": "A>D",
    "BvsC": "C>B",
    "BvsD": "B>D",
    "CvsD": "C>D",
}


def test_preparing_makes_groups_of_the_hubs_pairs(tmp_path, hub):
    # the same name in two sizes is two groups
    hub += [*hub_rows("7", 2, TWO), *hub_rows("7", 3, THREE), *hub_rows("8", 4, FOUR)]
    report = prepare(tmp_path)
    assert report.lines[0].startswith(
        "editreward_bench_tiger: Wu et al., EditReward (2025)"
    )
    assert "licence: Apache-2.0" in report.lines[0]
    assert report.lines[1:] == (
        "editreward_bench_tiger/all: ready, 3 contests (the published set has 484)",
    )
    contests = BENCHMARK.load(tmp_path, "all")
    assert [(c.id.uid, c.votes.vote) for c in contests] == [
        ("2-7_0", "1=2"),
        ("3-7", "2>1>3"),
        ("4-8", "3>1=2>4"),
    ]
    four = contests[-1]
    found = [sample.id.image_model for sample in four.candidates]
    assert found == [f"model {letter}" for letter in "ABCD"]
    found = [s.images["output"].source.read_bytes() for s in four.candidates]
    assert found == [stored(c)["bytes"] for c in COLOURS.values()]
    assert {sample.texts["instruction"] for sample in four.candidates} == {"edit 8"}
    assert (
        missing_inputs_reason(viescore.SPEC, four)
        == missing_inputs_reason(pairwise.SPEC, four)
        == ""
    )
    # six pairs of a group show each of its images three times, and it is written once
    assert (
        len(list((tmp_path / "editreward_bench_tiger" / "all" / "images").iterdir()))
        == 5
    )
    assert prepare(tmp_path).complete


def test_pairs_that_no_ranking_fits_are_a_contest_without_a_vote(tmp_path, hub):
    hub += hub_rows("9", 3, {"AvsB": "A>B", "BvsC": "B>C", "AvsC": "C>A"})
    assert prepare(tmp_path).complete
    [contest] = BENCHMARK.load(tmp_path, "all")
    assert contest.votes.vote == ""


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (hub_rows("1", 2, {"AvsB": "A>C"}), "the ranking must contain A, B, got 'A>C'"),
        (
            hub_rows("1", 3, {"AvsB": "A>B"}),
            "cannot combine the rows of TIGER-Lab/EditReward-Bench (ValueError: group 3-1 must have 3 candidates, got 2 in 1 row)",
        ),
        (
            hub_rows("1", 3, THREE) + hub_rows("1", 3, {"AvsB": "A>B"}),
            "must have 3 candidates, got 3 in 4 rows",
        ),
        (
            [{**hub_rows("1", 2, TWO)[0], "ranking": None}],
            "row 0 of TIGER-Lab/EditReward-Bench is malformed",
        ),
    ],
)
def test_rows_of_another_form_are_one_line(tmp_path, hub, rows, said):
    hub += rows
    report = prepare(tmp_path)
    assert not report.complete
    assert said in report.lines[1]
    assert "\n" not in report.lines[1]
    assert not (tmp_path / "editreward_bench_tiger" / "all" / "contests.jsonl").exists()


# rows of our own form


def candidate(model):
    return {
        "image_model": model,
        "uid": "1",
        "images": {"output": f"images/{model}.png"},
    }


@pytest.mark.parametrize("vote", ["2>1", "A>B>C"])
def test_a_vote_on_other_candidates_is_located(tmp_path, vote):
    path = tmp_path / "editreward_bench_tiger" / "all" / "contests.jsonl"
    path.parent.mkdir(parents=True)
    good = {
        "id": "a",
        "candidates": [candidate(model) for model in "xyz"],
        "vote": "2>1=3",
    }
    text = f"{json.dumps(good)}\n{json.dumps({**good, 'id': 'b', 'vote': vote})}\n"
    path.write_text(text)
    line = refusal(BENCHMARK.load, tmp_path, "all")
    assert line.startswith(f"{path}: line 2")
    assert f"a vote must rank 3 candidates, such as 2>1=3, got '{vote}'" in line


def test_published_numbers_stand_in_the_report_and_are_marked(tmp_path):
    [table] = printed_tables(BENCHMARK.printed)
    rows = {row[1]: row[2:] for row in table.rows}
    assert rows["GPT-5 (printed)"] == ("57.53", "38.51", "12.84", "37.81")
    assert all(name.endswith("(printed)") for name in rows)
    by = Provenance("mine", (), ("O",), "mine")
    scores = Choice(scores=({"O": 0.9}, {"O": 0.1}))
    candidates = tuple(SampleId(tiger.NAME, "all", model, "1") for model in "xy")
    record = Record(
        *(
            SampleId(tiger.NAME, "all", "", "1"),
            Verdict({}, Status.OK, choice=scores),
            by,
            {},
        ),
        votes=Votes(RANKING, "1>2"),
        candidates=candidates,
    )
    run = Run("mine", tiger.NAME, "mine", ("O",), {"all": [(record,)]})
    write_report(Results((run,)), tmp_path / "report", OPTIONS)
    told = (tmp_path / "report" / "report.md").read_text()
    assert "Published numbers of other judges, not computed here" in told
    assert "| all | GPT-4o (printed) | 45.69 | 27.33 | 7.31 | 28.31 |" in told
