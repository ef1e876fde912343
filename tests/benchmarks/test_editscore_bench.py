"""The EditReward-Bench of EditScore: pairs by dimension from the hub's rows, a tie that is
wrong, and bad rows.
"""

import pytest

from tests.benchmarks.hub import hub_with, stored
from vieval_plugin.benchmarks import editscore_bench
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import pairwise, viescore
from vieval_plugin.judges.protocol import Status
from vieval_plugin.judges.spec import missing_inputs_reason
from vieval_plugin.meta_evaluation.observations import ContestObservation, Observation
from vieval_plugin.meta_evaluation.statistics import Rating, summary_of
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = editscore_bench.BENCHMARK


def hub_row(number, dimension, **cells):
    return {
        "key": [f"{number}_a", f"{number}_b"],
        "instruction": f"edit {number}",
        "input_image": stored("grey"),
        "output_images": [stored((number, 0, 0)), stored((0, number, 9))],
        "task_type": "style_change",
        "dimension": dimension,
        **cells,
    }


@pytest.fixture
def hub(monkeypatch):
    rows, _ = hub_with(monkeypatch, "EditScore/EditReward-Bench", "train")
    return rows[None]


def prepare(root, *parts):
    return BENCHMARK.prepare(root, Preparing(parts or None))


def test_preparing_writes_the_pairs_of_each_dimension(tmp_path, hub):
    hub += [
        hub_row(n, dimension)
        for n, dimension in enumerate(
            ("overall", "consistency", "overall", "overall"), 1
        )
    ]
    report = prepare(tmp_path, "overall")
    assert report.lines[0].startswith("editscore_bench: Luo et al., EditScore (2025)")
    assert "licence: Apache-2.0" in report.lines[0]
    assert report.lines[1:] == (
        "editscore_bench/overall: ready, 3 contests (the published set has 1238)",
    )
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
    assert (
        missing_inputs_reason(viescore.SPEC, contests[0])
        == missing_inputs_reason(pairwise.SPEC, contests[0])
        == ""
    )
    # no image of another dimension is written: a source, and two edits of each of three pairs
    found = len(list((tmp_path / "editscore_bench" / "overall" / "images").iterdir()))
    assert found == 7
    assert (
        prepare(tmp_path, "consistency")
        .lines[-1]
        .startswith("editscore_bench/consistency: ready, 1 contest")
    )


def test_a_tie_is_wrong():
    def contest(uid, vote, first, second):
        from vieval_plugin.judges.contests import Votes

        scores = ({"O": first}, {"O": second})
        return Observation(
            "",
            uid,
            {},
            {},
            Status.OK,
            contest=ContestObservation(
                ("x", "y"), Votes("two_way", vote), scores=scores
            ),
        )

    rows = (
        contest("a", "first", 0.9, 0.1),
        contest("b", "second", 0.5, 0.5),
        contest("c", "second", 0.2, 0.4),
    )
    found = summary_of(
        BENCHMARK.report,
        rows,
        Rating(("O",)),
        "editscore_bench",
        "overall",
        StatisticsOptions(draws=5),
    )
    assert found.estimates["O_accuracy_decisive_value"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (
            {"dimension": "beauty"},
            "row 0 of EditScore/EditReward-Bench is malformed (ValueError: dimension",
        ),
        (
            {"output_images": None},
            "row 0 of EditScore/EditReward-Bench is malformed (TypeError",
        ),
    ],
)
def test_rows_of_another_form_are_one_line(tmp_path, hub, cells, said):
    hub += [{**hub_row(1, "overall"), **cells}, hub_row(2, "overall")]
    report = prepare(tmp_path, "overall")
    assert not report.complete
    assert said in report.lines[1]
    assert not (tmp_path / "editscore_bench" / "overall" / "contests.jsonl").exists()
