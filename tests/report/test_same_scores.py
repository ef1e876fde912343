"""Judges that score every sample alike are named, as they may be one model."""

import pytest

from tests.report.pages import BENCHMARK, row
from tests.runs import run_of
from tests.stored_results import write_results
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.several_judges import same_scores
from vieval_plugin.report.writing import lines, write_report
from vieval_plugin.results.runs import load_results
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=20)
SAME = "gave the same score to all 48 samples. Are they the same model?"
SENTENCE = f"first and second {SAME}"


def run(label, scores):
    """A run of a judge with these scores of as many samples, None where it gave none."""
    given = [{} if score is None else {"O": score} for score in scores]
    rows = [("p", "m", f"u{n}", one, {}) for n, one in enumerate(given)]
    return run_of(label, rows)


VARYING = [n % 7 / 10 for n in range(48)]


def test_two_and_three_judges_alike_are_one_sentence():
    alike = [run("first", VARYING), run("second", VARYING)]
    other = run("other", [*VARYING[:-1], 0.95])
    assert same_scores([*alike, other]) == [SENTENCE]
    [sentence] = same_scores([*alike, other, run("third", VARYING)])
    assert sentence == f"first, second and third {SAME}"


def test_what_one_of_them_did_not_score_is_not_counted():
    partial = run("second", [None] * 8 + VARYING[8:])
    [sentence] = same_scores([run("first", VARYING), partial])
    both = "to all 40 samples that both scored"
    assert sentence == SENTENCE.replace("to all 48 samples", both)


@pytest.mark.parametrize("scores", [VARYING[:9], [0.5] * 48])
def test_few_samples_and_one_score_for_all_are_no_reason_to_ask(scores):
    assert same_scores([run("first", scores), run("second", scores)]) == []


def test_contests_have_answers():
    def votes(label):
        source = Provenance("pairwise", (), (), label)
        records = []
        for n in range(20):
            choice = Choice({"forward": ("first", "second")[n % 2]})
            verdict = Verdict({}, Status.OK, choice=choice)
            records.append(
                (Record(SampleId("b", "p", "", f"u{n}"), verdict, source, {}),)
            )
        return Run(label, "b", "pairwise", (), {"p": records})

    [sentence] = same_scores([votes("a"), votes("b")])
    said = "a and b gave the same answer to all 20 contests. Are they the same model?"
    assert sentence == said


def test_a_report_and_a_comparison_say_so(tmp_path):
    rows = [
        row(f"u{n}", {"O": score}, [n % 5 / 4], judge=judge)
        for judge in ("first", "second")
        for n, score in enumerate(VARYING)
    ]
    results = load_results([write_results(tmp_path / "run", rows)])
    written = write_report(results, tmp_path / "out", OPTIONS)
    assert f"note: {BENCHMARK}: {SENTENCE}" in written.lines
    assert SENTENCE in (tmp_path / "out" / "report.md").read_text()
    assert SENTENCE in (tmp_path / "out" / "report.html").read_text()
    found = lines(sections_of(results, "judges", OPTIONS), OPTIONS)
    assert f"note: {BENCHMARK}: {SENTENCE}" in found
