"""The EditReward-Bench of EditScore: pairs by dimension from the hub's rows, a tie that is
wrong, and bad rows.
"""

import pytest

from tests.benchmarks.hub import editscore_row as hub_row
from tests.benchmarks.hub import hub_with, stored
from vieval_plugin.benchmarks import editscore_bench
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges.contests import Votes
from vieval_plugin.judges.protocol import Status
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = editscore_bench.BENCHMARK


@pytest.fixture
def hub(monkeypatch):
    rows, _ = hub_with(monkeypatch, "EditScore/EditReward-Bench", "train")
    return rows[None]


def prepare(root, *parts):
    return BENCHMARK.prepare(root, Preparing(parts or None))


def test_preparing_writes_the_pairs_of_each_dimension(tmp_path, hub):
    dimensions = ("overall", "consistency", "overall", "overall")
    hub += [hub_row(n, dimension) for n, dimension in enumerate(dimensions, 1)]
    assert prepare(tmp_path, "overall").complete
    contests = BENCHMARK.load(tmp_path, "overall")
    # the hub has the preferred edit first; here it is first and second by turns
    assert [(c.id.uid, c.votes.vote, c.group) for c in contests] == [
        ("0", "first", "edit 1"),
        ("2", "second", "edit 3"),
        ("3", "first", "edit 4"),
    ]
    better = [
        c.candidates[c.votes.vote == "second"].images["output"].source.read_bytes()
        for c in contests
    ]
    assert better == [stored((n, 0, 0))["bytes"] for n in (1, 3, 4)]
    assert contests[0].tags == ("style_change",)
    # no image of another dimension is written: a source, and two edits of each of three pairs
    found = len(list((tmp_path / "editscore_bench" / "overall" / "images").iterdir()))
    assert found == 7
    line = prepare(tmp_path, "consistency").lines[-1]
    assert line.startswith("editscore_bench/consistency: ready, 1 contest")


def test_a_tie_is_wrong():
    def contest(uid, vote, first, second):
        scores = ({"O": first}, {"O": second})
        votes = Votes("two_way", vote)
        observed = ContestObservation(("x", "y"), votes, scores=scores)
        return Observation("", uid, {}, {}, Status.OK, contest=observed)

    rows = (
        contest("a", "first", 0.9, 0.1),
        contest("b", "second", 0.5, 0.5),
        contest("c", "second", 0.2, 0.4),
    )
    rating, options = Rating(("O",)), StatisticsOptions(draws=5)
    found = summary_of(
        BENCHMARK.report, rows, rating, "editscore_bench", "overall", options
    )
    assert found.estimates["O_accuracy_decisive_value"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        ({"dimension": "beauty"}, "ValueError: unknown dimension"),
        ({"output_images": None}, "TypeError"),
    ],
)
def test_rows_of_another_form_are_one_line(tmp_path, hub, cells, error):
    hub += [{**hub_row(1, "overall"), **cells}, hub_row(2, "overall")]
    report = prepare(tmp_path, "overall")
    assert not report.complete
    said = f"row 0 of EditScore/EditReward-Bench is malformed ({error}"
    assert said in report.lines[1]
    assert not (tmp_path / "editscore_bench" / "overall" / "contests.jsonl").exists()
