"""Leaderboards of made logs, whose true order is that of each judge's noise."""

import itertools
from dataclasses import replace

import numpy as np

from tests.leaderboards import headlines_of
from tests.refusals import refusal
from tests.runs import run_of
from tests.voted import contest
from tests.voted import run as voting
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.meta_evaluation import leaderboards
from vieval_plugin.meta_evaluation.image_models import ByImageModel
from vieval_plugin.report.answer import answer
from vieval_plugin.report.own_samples import benchmarks_with_runs
from vieval_plugin.report.tables import mark_notes, marks_of
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=200)
MODELS = {"tie": ("A", "B", "C"), "tig": ("D", "E", "F"), "sdie": ("G", "H")}
UIDS = 60


def ratings(part, model, uid, annotators=3):
    rng = np.random.default_rng([ord(model), uid])
    quality = rng.normal()
    told = np.digitize(quality + 0.5 * rng.normal(size=annotators), [-0.5, 0.5])
    return tuple((told / 2).tolist())


def judge(label, noise, scored=lambda *_: True, annotators=3, seed=0):
    rows = []
    for part, models in MODELS.items():
        for model, uid in itertools.product(models, range(UIDS)):
            people = ratings(part, model, uid, annotators)
            seeds = [seed, *label.encode(), ord(model), uid]
            own = np.random.default_rng(seeds).normal()
            points = round(5 + 3 * (np.mean(people) - 0.5 + noise * own))
            scores = {"O": float(np.clip(points, 0, 10)) / 10}
            scores = scores if scored(part, model, uid) else {}
            rows.append((part, model, f"u{uid:03}", scores, {"O": people}))
    return run_of(label, rows, benchmark="imagenhub")


def board(*runs):
    of = ("imagenhub", tuple(MODELS), runs, OPTIONS, "annotators on imagenhub")
    [made] = headlines_of(ByImageModel(rated=("O",)), *of)
    return made


def shown(made):
    return {
        n.system: (n.ranks, n.estimate.value, n.estimate.low, n.estimate.high)
        for n in made.numbers
    }


def few_of_a_part(part, model, uid):
    return part != "sdie" or uid < 5


GOOD, FAIR, POOR = judge("good", 0.3), judge("fair", 0.6), judge("poor", 1.2)
SPARSE = judge("sparse", 0.01, few_of_a_part)


def test_cells_of_a_handful_of_images_move_nobody_and_their_judge_is_in_the_second_list():
    """The correlations of 5 samples an image model would be near 1."""
    with_it, without = board(GOOD, FAIR, POOR, SPARSE), board(GOOD, FAIR, POOR)
    assert [number.system for number in with_it.ranked] == ["good", "fair", "poor"]
    found = {label: of for label, of in shown(with_it).items() if label != "sparse"}
    assert found == shown(without)
    assert with_it.number_of("sparse").unranked == "no value for sdie"
    for pair in without.comparison.pairs:
        again = with_it.comparison.pair_of(pair.first, pair.second)
        assert again is not None
        assert (again.result, again.n) == (pair.better_first().result, pair.n)


def test_a_judge_that_answered_a_twentieth_is_in_no_order_and_no_cell_of_two_has_a_number():
    few = judge("few", 0.01, lambda part, model, uid: uid < (12 if model == "A" else 2))
    made = board(GOOD, POOR, few)
    found = answer(made).title
    assert found == "Of the two ranked, good agrees best with annotators on imagenhub."
    few_number = made.number_of("few")
    assert str(few_number.estimate.coverage) == "1 of 3 task types, 1 of 8 image models"
    assert few_number.unranked == "no value for sdie, tig"
    evidence = answer(board(few)).evidence
    assert evidence.endswith(" on 1 of 3 task types, 1 of 8 image models.")


def test_twelve_judges_of_different_noise_are_not_all_alike():
    noises = [0.3] * 4 + [0.7] * 4 + [2.5] * 4
    judges = [judge(f"judge {n:02}", noise, seed=1) for n, noise in enumerate(noises)]
    made = board(*judges)
    first = answer(made).title
    assert first.startswith("judge 0")
    assert "agrees most" in first or "agrees best" in first
    assert made.comparison.family == "Holm correction over 66 pairs"
    names = [f"judge {n:02}" for n in range(12)]
    beats = made.comparison.beats
    assert all(itertools.starmap(beats, itertools.product(names[:4], names[8:])))
    assert not any(itertools.starmap(beats, itertools.product(names[:4], names[:4])))


def test_more_pairs_than_permutations_can_resolve_are_said():
    made = board(GOOD, POOR)
    many = replace(made.comparison, pairs=made.comparison.pairs * 501)
    assert "no test supports the ranks" in many.warnings()[0]
    assert many.warnings()[0] in "\n".join(answer(replace(made, comparison=many)).lines)


def test_no_sentence_on_a_constant_contradicts_an_interval(monkeypatch):
    """The first has a small p, and an interval around 0; the second is the reverse."""
    p_values = {"blind": 0.01, "good": 0.2}
    monkeypatch.setattr(leaderboards, "above_constant_p", lambda *_: p_values)
    alone = [board(one) for one in (judge("blind", 1e6), GOOD)]
    for made in alone:
        [number] = made.numbers
        assert (number.estimate.low > 0) == (number.system == "good")
        lines = answer(made).lines
        assert "not shown to be better than a constant answer" in lines[0]
        decides = "Here the permutation test decides, " in " ".join(lines)
        assert decides == (number.system == "good")


def test_failures_that_decide_a_place_are_marked_and_missing_samples_are_no_failures():
    def lost(status):
        """A good judge without the samples on which people agree that the image is good."""
        made = judge("lossy", 0.2)
        for rows in made.records.values():
            for place, (record,) in enumerate(rows):
                if np.mean(record.ratings["O"]) > 0.8:
                    rows[place] = (replace(record, verdict=Verdict({}, status)),)
        return made

    for status, marked in ((Status.REFUSAL, True), (Status.MISSING, False)):
        made = board(lost(status), FAIR, POOR)
        assert ("place depends on" in str(marks_of(made, "lossy"))) is marked
        assert bool(mark_notes([made])) is marked


def test_ratings_of_one_annotator_have_no_ceiling_and_a_number():
    made = board(judge("a", 0.4, annotators=1), judge("b", 2.0, annotators=1))
    text = answer(made).lines
    assert text[0] == "a agrees best with annotators on imagenhub."
    assert not any("ceiling" in line for line in text)
    found = [reference.system for reference in made.references]
    assert found == ["best constant: the same score for all"]


def test_results_on_ratings_of_another_commit_are_refused_in_one_line():
    other = judge("other", 0.3)
    [record] = other.records["tie"][7]
    other.records["tie"][7] = (replace(record, ratings={"O": (0.0, 0.0, 0.5)}),)
    line = refusal(benchmarks_with_runs, [GOOD, other])
    assert line.startswith("imagenhub/tie/A/u007: people's ratings of O are ")
    assert line.endswith("0, 0, 0.5 in those of other; run both on the same data")
    found = [benchmark.name for benchmark, _ in benchmarks_with_runs([GOOD, FAIR])]
    assert found == ["imagenhub"]
    voted = [
        voting(label, [contest("a", vote, forward="first")])
        for label, vote in (("one", "first"), ("other", "second"))
    ]
    said = "b/t/a: people's votes are first in the results of one, but second in those"
    assert refusal(benchmarks_with_runs, voted).startswith(said)


def test_samples_that_a_log_of_another_commit_has_and_others_lack_change_no_pair():
    """A log with other uids in one part: what both have is compared, and coverage is said."""
    renamed = judge("renamed", 0.5)
    for place, (record,) in enumerate(renamed.records["sdie"]):
        identity = replace(record.id, uid=f"new{record.id.uid}")
        changed = replace(record, id=identity, group=f"new{record.group}")
        renamed.records["sdie"][place] = (changed,)
    made = board(GOOD, renamed)
    pair = made.comparison.pair_of("good", "renamed")
    assert pair is not None
    assert pair.n == 6 * UIDS
    assert "ranked" not in answer(made).title
