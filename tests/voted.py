"""Contests as they are observed, and the numbers and tables that come of them."""

import numpy as np

from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation import statistics
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation
from vieval_plugin.meta_evaluation.statistics import Rating
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.stats import thresholds
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.stats.votes import BOTH_BAD, BOTH_GOOD, FIRST, SECOND

OPTIONS = StatisticsOptions(draws=100)
CODES = {"first": FIRST, "second": SECOND, "both_good": BOTH_GOOD, "both_bad": BOTH_BAD}


def contest(uid, vote, scheme="four_way", status=Status.OK, models=("x", "y"), **said):
    """`forward`, `reverse` and `paper` are the judge's votes; or `preferences` or `scores`."""
    group, tags = said.pop("group", ""), said.pop("tags", ())
    annotators = said.pop("annotators", ())
    preferences, scores = said.pop("preferences", {}), said.pop("scores", ())
    words = {order: word for order, word in said.items() if word or order == "paper"}
    votes = Votes(scheme, vote, annotators)
    contested = ContestObservation(models, votes, words, preferences, tuple(scores))
    more = {"tags": tags, "group": group, "contest": contested}
    return Observation("", uid, {}, {}, status, **more)


def summarise(observations, scheme="four_way", aspects=(), options=OPTIONS):
    return statistics.summary_of(
        ByVotes(scheme), tuple(observations), Rating(aspects), "b", "t", options
    )


def values(observations, scheme="four_way", aspects=(), options=OPTIONS):
    estimates = summarise(observations, scheme, aspects, options).estimates.items()
    return {name.removesuffix("_value"): estimate.value for name, estimate in estimates}


def findings(*runs, scheme="four_way", options=OPTIONS, parts=("t",)):
    """What the family finds in runs on the benchmark b."""
    return ByVotes(scheme).findings("b", parts, runs, options)


def run(label, observations, part="t", benchmark="b", aspects=()):
    """Records that are observed as these observations are."""
    records = []
    for o in observations:
        seen = o.contest
        choice = Choice(seen.judge_votes, seen.preferences, seen.scores)
        candidates = tuple(
            SampleId(benchmark, part, model, o.uid) for model in seen.image_models
        )
        verdict = Verdict({}, o.status, choice=choice)
        provenance = Provenance("mine", (), aspects, label)
        identity = SampleId(benchmark, part, "", o.uid)
        more = {"group": o.group, "votes": seen.votes, "candidates": candidates}
        records.append((Record(identity, verdict, provenance, {}, o.tags, **more),))
    return Run(label, benchmark, "mine", aspects, {part: records})


def table(made, name):
    [found] = [one for one in made.tables if one.name == name]
    rows = [dict(zip(found.header, row, strict=True)) for row in found.rows]
    return [dict(enumerate(row.values())) | row for row in rows]


def scored(n=120, seed=0, noise=0.2, scheme="four_way", aspects=("O",)):
    """Contests of two scored candidates, with votes by thresholds 0.1 and 0.5 on the truth."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        truth = rng.random(2)
        code = int(thresholds.vote_of_scores(truth[:1], truth[1:], 0.1, 0.5)[0])
        given_scores = [
            {a: float(np.clip(t + noise * rng.normal(), 0, 1)) for a in aspects}
            for t in truth
        ]
        vote = next(word for word, one in CODES.items() if one == code)
        more = {"group": f"g{number // 3}", "scores": given_scores}
        rows.append(contest(f"{number:03}", vote, scheme, **more))
    return rows


def voting(n=200, skill=0.9, seed=0, **kept):
    rng = np.random.default_rng(seed)
    people = rng.choice(list(CODES), n, p=[0.3, 0.3, 0.1, 0.3])
    said = np.where(rng.random(n) < skill, people, rng.choice(list(CODES), n))
    return [
        contest(f"{k:03}", str(p), forward=str(s), reverse=str(s), **kept)
        for k, (p, s) in enumerate(zip(people, said, strict=True))
    ]
