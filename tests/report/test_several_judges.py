"""Several judges of the same generators: the first sentence is true of all of them."""

import re
from dataclasses import replace

import pytest

from tests.report.pages import OPTIONS, Page, generators, inside, page_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.results.runs import Results


def scores_of(mine, theirs):
    return {"mine": [mine] * 9, "theirs": [theirs] * 9}


MINE, THEIRS, NEITHER = scores_of(0.9, 0.1), scores_of(0.1, 0.9), scores_of(0.5, 0.5)


def judged(tmp_path, *scores):
    found = []
    for number, given in enumerate(scores):
        found += generators(tmp_path, given, f"j{number}", picture=False).runs
    return Results(tuple(found))


UNREAD = dict.fromkeys(MINE, [None] * 9)
ONE_OF_TWO = "Of two judges, one finds mine significantly best and one"


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([MINE, THEIRS], f"{ONE_OF_TWO} finds theirs significantly best."),
        ([MINE, NEITHER], f"{ONE_OF_TWO} cannot tell which is best."),
        ([MINE, UNREAD], f"{ONE_OF_TWO} has too few scores."),
        ([MINE] * 3, "All three judges find mine significantly best."),
        ([NEITHER] * 3, "Of three judges, none finds a generator significantly best."),
    ],
)
def test_the_title_is_of_all_judges_and_not_of_the_first(tmp_path, scores, said):
    text = page_of("report", tmp_path, judged(tmp_path, *scores))
    assert inside(text, "h1") == said
    assert Page(text).said.count("j0") > 1  # what each says stands below


@pytest.mark.parametrize("scores", [[MINE], [MINE, MINE], [{"mine": [0.5] * 9}] * 3])
def test_one_two_that_agree_and_one_generator_need_no_such_sentence(tmp_path, scores):
    text = page_of("report", tmp_path, judged(tmp_path, *scores))
    assert "judges find" not in Page(text).said


def test_judges_that_ask_one_model_are_said_to(tmp_path):
    runs = judged(tmp_path, MINE, MINE, MINE).runs
    named = [replace(run, model="m7b", setting=run.label) for run in runs]
    title = inside(page_of("report", tmp_path, Results(tuple(named))), "h1")
    assert title == "All three judges (all use m7b) find mine significantly best."


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
