"""Several judges of the same generators or samples: the first sentence is true of all."""

import re
from dataclasses import replace

import pytest

from tests.builders import a_provenance, a_record, a_sample, a_vote
from tests.report.pages import (
    BENCHMARK,
    OPTIONS,
    Page,
    generators,
    page_of,
    row,
    titled,
)
from tests.runs import run_of
from tests.stored_results import write_results
from vieval_plugin.judges.protocol import Status
from vieval_plugin.records import Run
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.several_judges import same_scores
from vieval_plugin.report.writing import lines, write_report
from vieval_plugin.results.runs import Results, load_results


def scores_of(mine, theirs):
    return {"mine": [mine] * 9, "theirs": [theirs] * 9}


MINE, THEIRS, NEITHER = scores_of(0.9, 0.1), scores_of(0.1, 0.9), scores_of(0.5, 0.5)


def judged(tmp_path, *scores, **about):
    found = []
    for number, given in enumerate(scores):
        [run] = generators(tmp_path, given, f"j{number}", picture=False).runs
        found.append(replace(run, **about, setting=run.label if about else run.setting))
    return Results(tuple(found))


UNREAD = dict.fromkeys(MINE, [None] * 9)
ONE_OF_TWO = "Of two judges, one finds mine significantly best and one"


@pytest.mark.parametrize(
    ("scores", "about", "said"),
    [
        ([MINE, THEIRS], {}, f"{ONE_OF_TWO} finds theirs significantly best."),
        ([MINE, NEITHER], {}, f"{ONE_OF_TWO} cannot tell which is best."),
        ([MINE, UNREAD], {}, f"{ONE_OF_TWO} has too few scores."),
        ([MINE] * 3, {}, "All three judges find mine significantly best."),
        ([MINE] * 3, {"model": "m7b"}, "All three judges (all use m7b) find mine significantly best."),
        ([NEITHER] * 3, {}, "Of three judges, none finds a generator significantly best."),
    ],
)  # fmt: skip
def test_the_title_is_of_all_judges_and_not_of_the_first(tmp_path, scores, about, said):
    text = page_of("report", tmp_path, judged(tmp_path, *scores, **about))
    assert titled(text) == said
    assert Page(text).said.count("j0") > 1  # what each says stands below


@pytest.mark.parametrize("scores", [[MINE], [MINE, MINE], [{"mine": [0.5] * 9}] * 3])
def test_one_two_that_agree_and_one_generator_need_no_such_sentence(tmp_path, scores):
    text = page_of("report", tmp_path, judged(tmp_path, *scores))
    assert "judges find" not in Page(text).said


def test_many_notes_and_many_judges_leave_the_first_screen_readable(tmp_path):
    unread = tuple(f"file {n}.log: no result" for n in range(9))
    results = replace(judged(tmp_path, *[MINE] * 30), unreadable=unread)
    text = page_of("report", tmp_path, results)
    said = Page(text).said
    assert text.count('class="lead"') == 4
    assert "26 more answers" in said
    assert re.search(r"\d more notes", said), said[:3000]
    assert "file 8.log" in said
    assert "Your images, judged by 30 judges" in said
    assert text.count('<details class="further">') == 29
    assert len(sections_of(results, "all", OPTIONS).answers) >= 31


SAME = "gave the same score to all 48 samples. Are they the same model?"
VARYING = [n % 7 / 10 for n in range(48)]


def run(label, scores=VARYING):
    """A run of a judge with these scores of as many samples, None where it gave none."""
    given = [{} if score is None else {"O": score} for score in scores]
    return run_of(label, [("p", "m", f"u{n}", one, {}) for n, one in enumerate(given)])


def votes(label):
    source = a_provenance("pairwise", label, ())
    records = [
        (a_record(a_sample(f"u{n}"), a_vote(("first", "second")[n % 2]), source),)
        for n in range(20)
    ]
    return Run(label, "own", "pairwise", (), {"tig": records})


def partly_failed(judged, number):
    """A run whose first verdicts failed, and have some scores all the same."""
    records = [*judged.records["p"]]
    for n, (record,) in enumerate(records[:number]):
        failed = replace(record.verdict, status=Status.REFUSAL)
        records[n] = (replace(record, verdict=failed),)
    return replace(judged, records={"p": records})


OTHER = run("other", [*VARYING[:-1], 0.95])
PARTIAL = run("second", [None] * 8 + VARYING[8:])
FEW, CONSTANT = VARYING[:9], [0.5] * 48


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([run("first"), run("second"), OTHER], f"first and second {SAME}"),
        ([run("first"), run("second"), OTHER, run("third")], f"first, second and third {SAME}"),
        ([run("first"), PARTIAL], f"first and second {SAME.replace('48 samples', '40 samples that both scored')}"),
        ([run("first"), partly_failed(run("second"), 8)], f"first and second {SAME.replace('48 samples', '40 samples that both scored')}"),
        ([run("first", FEW), run("second", FEW)], None),
        ([run("first", CONSTANT), run("second", CONSTANT)], None),
        ([votes("a"), votes("b")], "a and b gave the same answer to all 20 contests. Are they the same model?"),
    ],
    ids=["two", "three", "a part not scored", "failed with some scores", "few samples", "one score for all", "contests"],
)  # fmt: skip
def test_judges_that_score_alike_may_be_one_model(runs, said):
    assert same_scores(runs) == ([said] if said else [])


def test_a_report_and_a_comparison_say_so(tmp_path):
    rows = [
        row(f"u{n}", {"O": score}, [n % 5 / 4], judge=judge)
        for judge in ("first", "second")
        for n, score in enumerate(VARYING)
    ]
    results = load_results([write_results(tmp_path / "run", rows)])
    written = write_report(results, tmp_path / "out", OPTIONS)
    said = f"first and second {SAME}"
    found = lines(sections_of(results, "judges", OPTIONS), OPTIONS)
    assert f"note: {BENCHMARK}: {said}" in written.lines
    assert f"note: {BENCHMARK}: {said}" in found
    for name in ("report.md", "report.html"):
        assert said in (tmp_path / "out" / name).read_text()
