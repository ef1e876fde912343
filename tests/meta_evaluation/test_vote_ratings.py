"""People's ratings of candidates beside votes on them: by hand, on made-up contests."""

import math

import pytest

from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, Sample, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.ratings import HumanRatings, rated
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Provenance, Run, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.stats.options import StatisticsOptions

NAN = math.nan
OPTIONS = StatisticsOptions(draws=20)
REPORT = ByVotes("two_way", rated=True)


def record(uid, vote, ratings, choice, status=Status.OK):
    """What is read again of a contest; `ratings` has O of each rater for either candidate."""
    rated = [{"O": given} if given else {} for given in ratings]
    candidates = tuple(
        Sample(SampleId("rated", "tie", model, uid), {}, ratings=by_aspect)
        for model, by_aspect in zip("xy", rated, strict=True)
    )
    contest = Contest(SampleId("b", "tie", "", uid), candidates, Votes("two_way", vote))
    verdict = Verdict({}, status, choice=choice)
    aspects = ("O",) if choice.scores or not choice.votes else ()
    by = Provenance("mine", (), aspects, "mine")
    return (read_record(response_json(contest.id, verdict, by), target_json(contest)),)


def scores(first, second):
    return Choice(scores=({"O": first}, {"O": second}))


def tables(records, aspects=("O",), report=REPORT):
    run = Run("mine", "b", "mine", aspects, {"tie": records})
    made = report.findings("b", ("tie",), [run], OPTIONS)
    return {one.name: one.rows for one in made.tables}


def found(rows):
    """By who, on which pairs: scored, share right, untied, share right of these."""
    return {
        row[1:4]: (row[4], row[5].split()[0], row[6], row[7].split()[0]) for row in rows
    }


CONTESTS = [
    record("1", "first", ((1.0, 0.5), (0.5, 0.5)), scores(0.9, 0.1)),
    record("2", "second", ((1.0, 0.5), (0.5, 0.5)), scores(0.2, 0.2)),
    # in floating point these means differ
    record("3", "second", ((0.1, 0.2), (0.15, 0.15)), scores(0.1, 0.3)),
    record("4", "second", ((0.0, NAN), (NAN, 1.0)), Choice(), Status.REFUSAL),
    record("5", "first", ((0.0, 1.0), (0.0, 0.0)), Choice(), Status.MISSING),
]


def test_ratings_and_judge_are_counted_on_all_pairs_and_on_the_same():
    assert found(tables(CONTESTS)["ratings"]) == {
        ("people's ratings", "O", "all pairs"): ("5", "60.00", "4", "75.00"),
        ("mine", "O", "its own pairs"): ("3", "66.67", "2", "100.00"),
        ("people's ratings", "O", "pairs of mine (O)"): ("3", "33.33", "2", "50.00"),
    }


def test_a_judge_that_votes_stands_beside_the_rating_of_the_whole_image():
    ratings = ((1.0,), (0.0,))
    same = Choice({"forward": "first", "reverse": "first"})
    turned = Choice({"forward": "first", "reverse": "second"})
    voting = [
        record("1", "first", ratings, same),
        record("2", "second", ratings, turned),
    ]
    people = ("2", "50.00", "2", "50.00")
    assert found(tables(voting, ())["ratings"]) == {
        ("people's ratings", "O", "all pairs"): people,
        ("mine", "votes", "its own pairs"): ("2", "50.00", "1", "100.00"),
        ("people's ratings", "O", "pairs of mine (votes)"): people,
    }


def test_strengths_are_those_of_the_model_by_hand():
    """Of models that won 3 and 1 of 4, the log strengths are half of log 3."""
    made = [
        record(str(n), "first" if n else "second", ((1.0,), (0.5,)), scores(0.4, 0.4))
        for n in range(4)
    ]
    rows = {row[1]: row[2:] for row in tables(made)["strengths"]}
    strengths = [rows[model][1].split()[:2] for model in "xy"]
    assert strengths == [["1:", "0.55"], ["2:", "-0.55"]]
    # people's ratings always prefer the first: no finite strength has the greatest likelihood
    assert rows["x"][3].startswith("undefined (the image models split into two sets")
    # the judge ties them all
    assert [rows[model][5].split()[1] for model in "xy"] == ["0.00", "0.00"]


def test_ratings_are_shown_where_all_candidates_have_some_and_the_benchmark_asks_for_it():
    some = [*CONTESTS, record("6", "first", ((1.0,), ()), scores(0.5, 0.4))]
    for named in (tables(some), tables(CONTESTS, report=ByVotes("two_way"))):
        assert not {"ratings", "strengths"} & named.keys()
    [partly], [bare] = some[-1], record("7", "first", ((), ()), scores(1, 0))
    assert (partly.rated, bare.rated) == (({"O": (1.0,)}, {}), ())
    [missing] = CONTESTS[3]
    assert missing.rated[0]["O"] == pytest.approx((0.0, NAN), nan_ok=True)


def test_ratings_of_a_file_take_the_place_of_those_of_candidates():
    scores_given = {SampleId("rated", "tie", "y", "1"): {"O": {"ann": 1.0}}}
    given = HumanRatings(scores_given, {}, dict.fromkeys(scores_given, "line 2"))
    run = Run("mine", "b", "mine", ("O",), {"tie": CONTESTS[:1]})
    [run], unknown = rated([run], given)
    assert (run.records["tie"][0][0].rated, unknown) == (({}, {"O": (1.0,)}), [])
