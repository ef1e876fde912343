"""The gate on verdicts: failures, lost verdicts, rare falls, people's ratings."""

import itertools
import json
import re

import numpy as np
import pytest
from scipy import stats

from tests.builders import (
    a_contest,
    a_label_file,
    a_provenance,
    a_sample,
    a_verdict,
    a_verdict_file,
    a_vote,
    an_image_file,
)
from tests.fake_server import FakeServer, named
from tests.stored_results import write_lines
from tests.verdict_files import copied
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Image, Status, Step, Verdict
from vieval_plugin.records import unjudged
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.gate import Gate
from vieval_plugin.run.verdict_lines import write_verdicts

N = 200


@pytest.fixture
def gate(few_draws, tmp_path, vieval):
    """Ranks two generators' scores, with the statuses of those that failed, under a margin."""

    def ranked(new, old, *flags, new_failed=(), old_failed=(), margin=0.05, code=0):
        scores = {}
        for name in ("new", "old"):
            levels, failed = (new, new_failed) if name == "new" else (old, old_failed)
            clipped = map(float, np.clip(levels, 0, 1))
            scores[name] = [
                dict(failed).get(n, score) for n, score in enumerate(clipped)
            ]
        file = a_verdict_file(tmp_path / "v.jsonl", fields={"prompt": None}, **scores)
        said = vieval("rank", file, *flags, "--margin", margin, code=code)
        return said.out.splitlines()

    return ranked


def scores(seed=0, n=N, level=0.6):
    rng = np.random.default_rng(seed)
    base = rng.normal(level, 0.1, n)
    return [np.clip(base + rng.normal(0, 0.1, n), 0, 1) for _ in range(2)]


def lowest(differences):
    """The bound of a difference with one prompt more that fell by the whole scale."""
    more = np.append(differences, -1)
    spread = more.std(ddof=1) / np.sqrt(len(more))
    return more.mean() - stats.t.ppf(0.975, len(more) - 1) * spread


FAILURES = (Status.NO_IMAGE, Status.REFUSAL, Status.PARSE_FAILURE)


@pytest.mark.parametrize("status", FAILURES)
def test_a_generator_whose_images_fail_does_not_pass_whatever_the_status(gate, status):
    new, old = scores()
    gate(new, old)
    failed = [(n, status) for n in range(0, N, 3)]
    shown = gate(new, old, new_failed=failed, code=3)
    assert shown[0].startswith("FAIL: new fails more often than old, ")
    assert shown[1].startswith("Only new fails on 67 prompts, only old on ")
    assert "With failures as the lowest score: 0.2" in shown[1]
    failed = [(n, status) for n in range(N)]
    shown = "\n".join(gate(new, old, new_failed=failed, code=3))
    assert (
        "\nOnly new fails on 200 prompts, only old on 0 (p < .001). No prompt has"
        in shown
    )


@pytest.mark.parametrize("status", [Status.API_ERROR, Status.TOOL_ERROR])
@pytest.mark.parametrize("side", ["new", "old"])
def test_what_could_be_judged_again_decides_nothing(gate, status, side):
    new, old = scores()
    lost = [(n, status) for n in range(3)]
    sentence = gate(new + 0.1, old, **{f"{side}_failed": lost}, code=4)[1]
    assert " Allowed: 0.05 lower. " in sentence
    assert f"3 of 200 prompts of {side} have no verdict" in sentence
    assert "To judge them again, run the command that wrote " in sentence
    assert "v.jsonl. The mean O of new is" in sentence
    gate(new + 0.1, old, **{f"{side}_failed": lost[:2]})


def test_prompts_of_the_old_one_without_a_verdict_of_the_new_one_decide_nothing(gate):
    new, old = scores()
    shown = gate(new[:101] + 0.1, old, code=4)
    assert any("99 of 200 prompts of new have no verdict" in line for line in shown)
    gate(new + 0.1, old[:101])


def test_a_margin_of_0_is_passed_by_better_alone(gate):
    _, old = scores()
    gate(old + 0.1, old, margin=0)


def test_corrected_differences_have_the_same_prompt_more(gate, tmp_path):
    new, old = scores(n=100)
    rated = {"new": new + 0.02, "old": old}
    labels = [
        {"uid": f"p{n:03}", "generator": name, "aspect": "O", "value": f"{value:.6f}"}
        for name, values in rated.items()
        for n, value in enumerate(values)
    ]
    human = ("--human", a_label_file(tmp_path / "people.csv", labels))
    sentence = gate(new, old, *human, code=None)[1]
    # all rated: Student's t of the ratings' differences
    bound = re.search(r"at most (\d\.\d+) lower \(one-sided 97.5% bound\)", sentence)[1]
    assert float(bound) == pytest.approx(-lowest(new + 0.02 - old), abs=2e-3)
    lost = [(n, Status.NO_IMAGE) for n in range(30)]
    gate(new, old, *human, new_failed=lost, code=3)


@pytest.mark.parametrize("rated", [0, 3])
def test_prompts_too_few_for_a_bound_have_none(gate, tmp_path, rated):
    new, old = scores(n=8 if rated else 1)
    labels = [
        {"uid": f"p{n:03}", "generator": name, "aspect": "O", "value": f"0.{n + 4}"}
        for name in ("new", "old")
        for n in range(rated)
    ]
    human = ("--human", a_label_file(tmp_path / "people.csv", labels)) * bool(rated)
    lost = [(len(new) - 1, Status.NO_IMAGE)]
    shown = gate(new, old, *human, new_failed=lost, code=4)
    assert re.search(r"With failures as the lowest score: \d\.\d+ lower\.", shown[1])
    assert "nan" not in "\n".join(shown)


def missing_first():
    """A verdict on a contest whose first image is none."""
    [step] = unjudged(Status.NO_IMAGE, "lost").trace
    trace = (Step(("1", *step.path), step.status, reason="lost"),)
    return Verdict({}, Status.NO_IMAGE, trace=trace)


def test_contests_without_the_new_image_are_lost(tmp_path, vieval):
    rng = np.random.default_rng(1)
    votes = [a_vote("first" if rng.random() < 0.75 else "second") for _ in range(100)]
    images = {"output": Image(an_image_file(tmp_path / "a.png"))}
    about = ("new", "old")
    judged = [
        a_contest(f"p{number:03}", *about, images=images, prompt="x")
        for number in range(100)
    ]
    file, source = tmp_path / "v.jsonl", a_provenance("pairwise", aspects=("O",))
    write_verdicts(file, judged, [*[missing_first()] * 60, *votes[60:]], source)
    # one picture of one side differs
    text = file.read_text()
    digest = re.search(r'"sha256": "(\w{64})"', text)[1]
    file.write_text(text.replace(digest, "0" * 64, 1))
    shown = vieval("rank", file, "--margin", "0.05", code=3).out
    assert "Only new fails on 60 prompts" in shown
    assert "is better" not in shown


def test_several_images_of_a_prompt_are_compared_with_one(tmp_path, vieval):
    """Of four images of a prompt on one side, as many fail as of one on the other."""
    rng = np.random.default_rng(0)
    for draws in ({"new": 1, "old": 4}, {"new": 4, "old": 1}):
        samples = [
            a_sample(f"p{n}", name, draw=draw)
            for name, count in draws.items()
            for n, draw in itertools.product(range(N), range(count))
        ]
        levels = rng.uniform(0.6, 1, len(samples))
        failing = lambda level: Status.NO_IMAGE if rng.random() < 0.05 else level
        verdicts = [a_verdict(failing(level)) for level in levels]
        write_verdicts(tmp_path / "v.jsonl", samples, verdicts, a_provenance())
        shown = vieval("rank", tmp_path / "v.jsonl", "--margin", "0.2").out
        assert " on 1" in shown.splitlines()[1]


def test_pictures_that_nobody_knows_are_not_the_same_files(tmp_path, vieval):
    tables = []
    for name in ("x", "y"):
        rows = [f"p{n},cat {n},{name}none/p{n}.png,{name}" for n in range(80)]
        text = "\n".join(["uid,prompt,output,image_model", *rows])
        (tmp_path / f"{name}.csv").write_text(text)
        tables.append(tmp_path / f"{name}.jsonl")
        out = ("--judge", "sharpness", "--out", tables[-1])
        vieval("score", tmp_path / f"{name}.csv", *out, code=None)
    shown = vieval("rank", *tables, "--margin", "0.05", code=None).out
    assert not shown.startswith("PASS")
    assert "same files" not in shown


def test_a_gate_compares_the_same_prompts_alone(tmp_path, vieval):
    prompt = lambda name, n: f"cat {n}{' ' if name == 'new' and n else ''}"
    both = itertools.product(("new", "old"), range(N))
    samples = [a_sample(f"p{n}", name, prompt=prompt(name, n)) for name, n in both]
    path = tmp_path / "v.jsonl"
    write_verdicts(path, samples, [a_verdict(0.8)] * 2 * N, a_provenance())
    vieval(f"rank {path}")
    said = vieval("rank", path, "--margin", "0.05", code=1).err
    assert "requires the same prompts for all generators; judge-7b: 199 uids" in said
    said = vieval("rank", path, "--margin", "0.05", "--best-of", code=1).err
    assert "--best-of and --margin cannot be combined" in said


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A file of verdicts by VIEScore on images of two generators."""
    folder = tmp_path_factory.mktemp("judged")
    rows = []
    for number in range(6):
        an_image_file(folder / f"{number}.png", (number, 0, 0), (16, 16))
        row = {"uid": f"p{number // 2}", "prompt": f"a thing {number // 2}"}
        row |= {"image_model": ("new", "old")[number % 2], "output": f"{number}.png"}
        rows.append(row)
    write_lines(folder / "s.jsonl", rows)
    with FakeServer() as server:
        out = folder / "v.jsonl"
        arguments = ["score", folder / "s.jsonl", "--out", out, *named(server)]
        assert main([*map(str, arguments)]) == 0
    return out


def spoil_question(row):
    """Make the answer to the question about SC one that could not be read."""
    step = next(step for step in row["trace"] if step["path"] == ["SC"])
    step["status"] = "refusal"


def updated(**fields):
    return lambda row: row.update(fields)


def scored(**scores):
    return lambda row: row["scores"].update(scores)


UNASKED = [{"path": ["sample"], "status": "tool_error"}]
NOT_ASKED = "it has scores, but its trace shows that the judge gave none (status ok)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (updated(), ""),
        (
            updated(status="parse_failure"),
            "all scores, but its status is parse_failure",
        ),
        (spoil_question, "it has a score for SC, but that question failed (refusal)"),
        (scored(O=0.123), "its O is 0.123, but its replies give 0."),
        (scored(SC=-0.5), "SC of viescore must be at least 0, got -0.5"),
        (updated(judge="ssim"), "its judge is 'ssim', but its run has 'viescore'"),
        (updated(trace=UNASKED), NOT_ASKED),
        (updated(trace=[]), "no recorded answer to SC"),
        (
            lambda row: row["trace"][0].update(scores=[14.0]),
            "SC differs from its reply",
        ),
        (updated(bounds={"O": [0.9, 0.1]}), "its bounds differ"),
    ],
)
def test_contradictory_verdicts_are_no_gate(judged, tmp_path, vieval, change, message):
    def changed(text):
        first, *others = text.splitlines(keepends=True)
        change(row := json.loads(first))
        return "".join([f"{json.dumps(row)}\n", *others])

    for image in judged.parent.glob("*.png"):
        (tmp_path / image.name).write_bytes(image.read_bytes())
    file = copied(judged, tmp_path / "v.jsonl", changed)
    told = vieval("rank", file, "--margin", "0.05", code=1 if message else None)
    assert message in told.err


@pytest.mark.parametrize(
    ("decision", "unreadable", "alarm", "code"),
    [
        ("worse", True, True, 4),
        ("worse", False, True, 3),
        ("undecided", False, True, 4),
        ("not_worse", True, True, 4),
        ("not_worse", False, True, 6),
        ("not_worse", False, False, 0),
    ],
)
def test_the_first_exit_code_is_that_of_the_page(decision, unreadable, alarm, code):
    answer = Answer("Decided.", "")
    told = {"unreadable": unreadable, "alarm": alarm}
    assert Gate("new", decision, answer, **told).exit_code == code


def test_the_page_of_a_gate_begins_with_failures_and_the_largest_falls(gate, tmp_path):
    new, old = scores(n=70)
    new[7] = 0
    page = tmp_path / "gate.html"
    failed = [(3, Status.REFUSAL)]
    gate(new, old, "--html", page, new_failed=failed, code=None)
    text = page.read_text()
    falls = text.index("<h3>new&#39;s largest falls</h3>")
    chart = text.index('class="exhibit"')
    assert falls < chart < text.index("<table class=")
    cards = re.findall(r'<h3 id="[^"]*">(p\d+)', text[falls:chart])
    assert cards[:2] == ["p003", "p007"]
    assert len(cards) == 3
