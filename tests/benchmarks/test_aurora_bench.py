"""AURORA-Bench: ratings, comparisons and edits from files of the authors' form, and what is
wrong with them.
"""

import json

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.judges import adiee, pairwise, viescore
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.meta_evaluation.tables import printed_tables
from vieval_plugin.stats.options import StatisticsOptions

POINTS = benchmark_registry.benchmark("aurora_bench")
PAIRS = benchmark_registry.benchmark("aurora_bench_pairs")
EDITS = benchmark_registry.benchmark("generate_aurora_bench")
FILES = {
    "points": "human_ratings.json",
    "pairs": "human_ratings_pairwise.json",
    "edits": "test.json",
}


def given(number=0):
    image = f"data/ag/images/{number}_left.png"
    return {"input": image, "prompt": f"edit {number}", "task": "ag"}


def point(number=0, model="aurora", score=1, **cells):
    made = {"gen": f"outputs/{model}/{number}.png", "model": model}
    return {**given(number), **made, "score": score, **cells}


def pair(number=0, winner="aurora", **cells):
    models = ["aurora", "magicbrush"]
    made = [f"outputs/{model}/{number}.png" for model in models]
    return {**given(number), "models": models, "gens": made, "winner": winner, **cells}


def edit(number=0, **cells):
    return {**given(number), "output": f"data/ag/images/{number}_right.png", **cells}


def write(root, part, rows):
    path = root / "aurora_bench" / FILES[part]
    path.parent.mkdir(exist_ok=True)
    path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return path


def load(root, part):
    return {"points": POINTS, "pairs": PAIRS, "edits": EDITS}[part].load(root, part)


def test_points_are_ratings_of_the_whole_edit(tmp_path):
    first = [point(0, "aurora", 2), point(0, "magicbrush", 0.5)]
    rows = [*first, point(1, score=0), point(0, score=1)]
    write(tmp_path, "points", rows)
    samples = load(tmp_path, "points")
    assert [(s.id.image_model, s.ratings, s.group) for s in samples] == [
        # two rows of one output are ratings of two people
        ("aurora", {"O": (2.0, 1.0)}, "data/ag/images/0_left.png | edit 0"),
        ("magicbrush", {"O": (0.5,)}, "data/ag/images/0_left.png | edit 0"),
        ("aurora", {"O": (0.0,)}, "data/ag/images/1_left.png | edit 1"),
    ]
    assert samples[0].texts == {"instruction": "edit 0"}
    assert samples[0].tags == ("ag",)
    assert samples[0].kind == "tie"
    assert missing_inputs_reason(viescore.SPEC, samples[0]) == ""
    assert missing_inputs_reason(adiee.SPEC, samples[0]) == ""


def test_a_judge_of_the_whole_is_correlated_with_the_ratings():
    rng = np.random.default_rng(1)
    people, judge = rng.integers(0, 3, 40), rng.integers(0, 11, 40) / 10
    scores = [{"SC": 0.1, "O": float(value)} for value in judge]
    ratings = [{"O": (float(value),)} for value in people]
    rows = tuple(
        Observation("m", f"{n:02}", rated, scored, Status.OK)
        for n, (rated, scored) in enumerate(zip(ratings, scores, strict=True))
    )
    rating, options = Rating(("SC", "O")), StatisticsOptions(draws=5)
    found = summary_of(POINTS.report, rows, rating, "aurora_bench", "points", options)
    got = found.estimates["spearman_value"].value
    assert got == pytest.approx(stats.spearmanr(people, judge).statistic)


def test_pairs_are_contests_with_ties(tmp_path):
    rows = [pair(0), pair(1, "magicbrush"), pair(2, "tie"), pair(0, "tie")]
    write(tmp_path, "pairs", rows)
    contests = load(tmp_path, "pairs")
    assert [c.votes.vote for c in contests] == ["first", "second", "tie", "tie"]
    assert {c.votes.scheme for c in contests} == {"three_way"}
    shown = [sample.id.image_model for sample in contests[0].candidates]
    assert shown == ["aurora", "magicbrush"]
    assert contests[0].candidates[0] is contests[3].candidates[0]
    found = contests[0].candidates[0].images["source"].source
    assert found == tmp_path / "aurora_bench/data/ag/images/0_left.png"
    assert missing_inputs_reason(pairwise.SPEC, contests[0]) == ""
    assert missing_inputs_reason(viescore.SPEC, contests[0]) == ""


def test_edits_are_conditions_for_a_generator(tmp_path):
    write(tmp_path, "edits", [edit(0), edit(1)])
    one, other = load(tmp_path, "edits")
    assert str(one.id) == "generate_aurora_bench/edits/0"
    assert list(one.images) == ["source"]
    assert one.ratings == {}
    assert (other.texts, other.tags) == ({"instruction": "edit 1"}, ("ag",))
    [line] = EDITS.missing(tmp_path, "edits")
    assert line.startswith("2 of 2 source images missing (first:")
    for sample in (one, other):
        sample.images["source"].source.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4)).save(sample.images["source"].source)
    assert EDITS.missing(tmp_path, "edits") == []
    assert EDITS.generates


def test_published_accuracies_are_of_the_pairs():
    [table] = printed_tables(PAIRS.printed)
    assert ("pairs", "GPT-4o (printed)", "50.81") in table.rows
    assert POINTS.printed == EDITS.printed == ()
