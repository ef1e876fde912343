"""Contests through lmms-eval's command line, on drawn images whose truth is known."""

import json
import re

import pytest

from tests import in_process
from tests.fake_server import FakeServer
from tests.in_process import demo, pixels, rated, served, shown
from vieval_plugin.benchmarks.vieval_demo.contests import contests

PAIRWISE = "vieval_demo_contests_pairwise_tie"
VIESCORE = "vieval_demo_contests_viescore_tie"


def truthful(request):
    """The better of the two last images of a question, as those who drew them know."""
    if len(images := shown(request)) < 2:
        return "yes"  # whether schemas are enforced is asked without any
    first, second = (rated()[image]["O"][0] for image in images[-2:])
    better = "both good" if first >= 0.5 else "both bad"
    if first != second:
        better = "A" if first > second else "B"
    return json.dumps({"reasoning": "fine", "better": better})


def scoring(request):
    """Sub-scores that say what those who drew the image know of it."""
    if not (images := shown(request)):
        return "yes"
    value = rated()[images[-1]]["SC" if len(images) > 1 else "PQ"][0] * 10
    return json.dumps({"score": [value, value], "reasoning": "fine"})


@pytest.mark.parametrize("model", ["vieval_openai", "openai"])
def test_a_judge_that_knows_the_truth_is_right_in_both_orders(evaluate, model):
    with FakeServer(reply=truthful) as server:
        run = evaluate(*served(model, server), tasks=PAIRWISE, limit=48)
    assert run.statuses == {"ok": 48}
    accuracies = re.compile("accuracy.*_value,none$").search
    right = [value for name, value in run.metrics.items() if accuracies(name)]
    assert right == [1.0] * len(right)
    assert len(right) >= 6
    assert run.metrics["votes_inconsistent_share_value,none"] == 0.0


def test_a_judge_that_always_names_the_first_is_flagged(evaluate, tmp_path, vieval):
    answer = json.dumps({"reasoning": "fine", "better": "A"})
    with FakeServer(reply=lambda asked: answer if shown(asked) else "yes") as server:
        run = evaluate(*served("vieval_openai", server), tasks=PAIRWISE, limit=48)
        pairs = {
            tuple(pixels(one.images["output"]) for one in contest.candidates)
            for contest in contests("tie")
        }
        found = server.stats()["requests"]
        assert found == len(pairs | {pair[::-1] for pair in pairs}) + 1
    assert run.metrics["votes_inconsistent_share_value,none"] == 1.0
    steps = [step for [one] in run.verdicts.values() for step in one["trace"]]
    assert {step["path"][0] for step in steps} == {"forward", "reverse"}
    vieval(f"report {tmp_path}/run0 --out {tmp_path}/report")
    report = (tmp_path / "report" / "report.md").read_text()
    # how far it is above the best constant, four-way, three-way and decisive
    [row] = re.findall(r"^\| tie \| fake \| votes \| 48 of 48.*\|$", report, re.M)
    cells = row.rstrip(" |").split("|")[-5::2]
    assert all(cell.strip().startswith("-") for cell in cells)
    assert len(re.findall(r"^.*\| always.*48 of 48", report, re.M)) == 4


def test_a_judge_of_samples_judges_candidates_once(evaluate, tmp_path):
    with FakeServer(reply=scoring) as server:
        run = evaluate(*served("vieval_openai", server), tasks=VIESCORE, limit=48)
        # each edit is in two contests, and a few are the same picture under one instruction
        samples = demo().values()
        different = {(one.id.uid, pixels(one.images["output"])) for one in samples}
        assert server.stats()["requests"] == 2 * len(different) + 1
        evaluate(*served("vieval_openai", server), limit=48)
    assert run.metrics["O_accuracy_decisive_value,none"] == 1.0
    again = in_process.replay(tmp_path / "run1", "", "")[:4]
    assert evaluate(*again, tasks=VIESCORE, limit=48).metrics == run.metrics


def test_contests_are_shown_with_their_votes(evaluate, tmp_path, vieval):
    with FakeServer(reply=truthful) as server:
        evaluate(*served("vieval_openai", server), tasks=PAIRWISE, limit=2)
    page = tmp_path / "page.html"
    command = ("show", tmp_path / "run0", "demo_00.png#demo_a-demo_b")
    said = vieval(*command).out
    assert "people: " in said
    assert re.search("vote, forward: (first|second|both_good|both_bad)", said)
    vieval(*command, "--html", page)
    # the source and both candidates, in both orders
    assert page.read_text().count("<img") == 6
