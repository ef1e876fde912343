"""The gate of `vieval rank --margin` on verdicts: failures, what could be judged again, rare
falls, people's ratings.
"""

import json
import re
from pathlib import Path
from shlex import split

import numpy as np
import PIL.Image
import pytest
from scipy import stats

from tests.fake_server import FakeServer, named
from tests.stored_results import write_lines
from tests.verdict_files import copied
from vieval_plugin.cli import main
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import (
    Choice,
    Image,
    Sample,
    SampleId,
    Status,
    Verdict,
)
from vieval_plugin.records import Provenance, unjudged
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.gate import Gate
from vieval_plugin.run.verdict_lines import write_verdicts

SOURCE = Provenance(
    "viescore", ("0shot",), ("SC", "PQ", "O"), "judge-7b", "viescore/v1", "abc"
)
N = 200


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """A function that ranks two generators' scores, with the statuses of those that failed,
    under a margin.
    """
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 100}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))

    def ranked(new, old, *flags, new_failed=(), old_failed=(), margin=0.05):
        judged, verdicts = [], []
        for name, scores, failed in (
            ("new", new, dict(new_failed)),
            ("old", old, dict(old_failed)),
        ):
            for number, score in enumerate(scores):
                judged.append(Sample(SampleId("own", "tig", name, f"p{number:03}"), {}))
                verdicts.append(
                    unjudged(failed[number], "lost")
                    if number in failed
                    else Verdict(
                        dict.fromkeys(("SC", "PQ", "O"), float(np.clip(score, 0, 1))),
                        Status.OK,
                    )
                )
        write_verdicts(tmp_path / "v.jsonl", judged, verdicts, SOURCE)
        command = [
            "rank",
            str(tmp_path / "v.jsonl"),
            *map(str, flags),
            "--margin",
            str(margin),
        ]
        code = main(command)
        return code, capsys.readouterr().out.splitlines()

    return ranked


def scores(seed=0, n=N, level=0.6):
    rng = np.random.default_rng(seed)
    base = rng.normal(level, 0.1, n)
    return [np.clip(base + rng.normal(0, 0.1, n), 0, 1) for _ in range(2)]


@pytest.mark.parametrize(
    "status", [Status.NO_IMAGE, Status.REFUSAL, Status.PARSE_FAILURE]
)
def test_a_generator_whose_images_fail_does_not_pass_whatever_the_status(gate, status):
    new, old = scores()
    assert gate(new, old)[0] == 0
    failed = [(n, status) for n in range(0, N, 3)]
    code, shown = gate(new, old, new_failed=failed)
    assert code == 3
    assert shown[0].startswith("FAIL: new fails more often than old, ")
    sentence = shown[1]
    assert sentence.startswith("Only new fails on 67 prompts, only old on ")
    assert "With failures as the lowest score: 0.2" in sentence
    code, shown = gate(new, old, new_failed=[(n, status) for n in range(N)])
    assert code == 3
    assert any(
        line.startswith(
            "Only new fails on 200 prompts, only old on 0 (p < .001). No prompt has scores of "
            "both generators."
        )
        for line in shown
    )


def test_better_is_said_only_if_it_holds_with_failures_as_the_lowest_score(gate):
    new, old = scores()
    worst = [(int(n), Status.NO_IMAGE) for n in np.argsort(new - old)[:99]]
    code, shown = gate(new, old, new_failed=worst)
    assert code == 3
    assert "With failures as the lowest score: " in shown[1]
    assert "Failed verdicts: new (no_image 99 of 200)." in shown
    assert not any("better than" in line for line in shown)
    code, shown = gate(new + 0.2, old, new_failed=worst[:2])
    assert code == 0
    assert "new is not worse than old" in shown[0]
    assert not any(
        "rates new's images" in line for line in shown
    )  # the gate's answer is the one that is said


def test_more_failures_than_the_old_one_has_are_no_pass_however_high_the_scores(gate):
    new, old = scores()
    six = [(n, Status.NO_IMAGE) for n in range(6)]
    assert gate(new + 0.1, old, new_failed=six)[0] == 3
    assert gate(new + 0.1, old, new_failed=six[:5])[0] == 0
    found = gate(
        new + 0.1,
        old,
        new_failed=six,
        old_failed=[(n + 9, status) for n, status in six],
    )[0]
    assert found == 0


@pytest.mark.parametrize("status", [Status.API_ERROR, Status.TOOL_ERROR])
@pytest.mark.parametrize("side", ["new", "old"])
def test_what_could_be_judged_again_decides_nothing(gate, status, side):
    new, old = scores()
    lost = [(n, status) for n in range(3)]
    code, shown = gate(new + 0.1, old, **{f"{side}_failed": lost})
    assert code == 4
    sentence = shown[1]
    assert " Allowed: 0.05 lower. " in sentence
    assert f"3 of 200 prompts of {side} have no verdict" in sentence
    assert "To judge them again, run the command that wrote " in sentence
    assert "v.jsonl. The mean O of new is" in sentence
    assert gate(new + 0.1, old, **{f"{side}_failed": lost[:2]})[0] == 0


def test_prompts_of_the_old_one_without_a_verdict_of_the_new_one_decide_nothing(gate):
    new, old = scores()
    code, shown = gate(new[:101] + 0.1, old)
    assert code == 4
    assert any("99 of 200 prompts of new have no verdict" in line for line in shown)
    assert gate(new + 0.1, old[:101])[0] == 0


def test_one_prompt_more_that_fell_by_the_whole_scale_is_in_the_bound(gate):
    new, old = scores()
    new[:4] = old[:4] - 0.4
    code, shown = gate(new, old)
    assert code == 0
    differences = np.append(new - old, -1)
    low = differences.mean() - stats.t.ppf(0.975, N) * differences.std(
        ddof=1
    ) / np.sqrt(N + 1)
    sentence = shown[1]
    assert (
        f"With one more bad prompt: at most {-low:.3f} lower (one-sided 97.5% bound)."
        in sentence
    )
    fell, rose = int((new - old < -0.3).sum()), int((new - old > 0.3).sum())
    assert sentence.endswith(
        f" Scores fell by more than 0.3 on {fell} of 200 prompts and rose by as much on {rose}."
    )


@pytest.mark.parametrize(("n", "code"), [(20, 4), (59, 4), (60, 0)])
def test_equal_scores_pass_from_the_number_on_that_is_named(gate, n, code):
    same = scores(n=n)[0]
    assert gate(same, same)[0] == code


def test_a_margin_of_0_is_passed_by_better_alone(gate):
    _, old = scores()
    assert gate(old, old, margin=0)[0] == 4
    assert gate(old + 0.1, old, margin=0)[0] == 0
    _, shown = gate(old, old, margin=0)
    assert any("No feasible number of prompts would" in line for line in shown)


def test_corrected_differences_have_the_same_prompt_more(gate, tmp_path):
    new, old = scores(n=100)
    rows = [
        f"own,tig,p{n:03},{name},,ann,O,{value:.6f}"
        for name, values in (("new", new + 0.02), ("old", old))
        for n, value in enumerate(values)
    ]
    text = "\n".join(["benchmark,part,uid,generator,draw,rater,aspect,value", *rows])
    (tmp_path / "people.csv").write_text(text)
    _, shown = gate(new, old, "--human", tmp_path / "people.csv")
    sentence = shown[1]
    differences = np.append(
        new + 0.02 - old, -1
    )  # all rated: Student's t of the ratings' differences
    low = differences.mean() - stats.t.ppf(0.975, 100) * differences.std(
        ddof=1
    ) / np.sqrt(101)
    assert float(
        re.search(r"at most (\d\.\d+) lower \(one-sided 97.5% bound\)", sentence)[1]
    ) == pytest.approx(-low, abs=2e-3)
    lost = [(n, Status.NO_IMAGE) for n in range(30)]
    assert gate(new, old, "--human", tmp_path / "people.csv", new_failed=lost)[0] == 3


def contests(tmp_path, votes, lost=(), unread=()):
    """Verdicts on contests of new and old, lost being the prompts of which new is no image."""
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    judged, verdicts = [], []
    for number, vote in enumerate(votes):
        sides = [
            Sample(
                SampleId("own", "tig", name, f"p{number:03}"),
                {"output": Image(tmp_path / "a.png")},
                {"prompt": "x"},
            )
            for name in ("new", "old")
        ]
        judged.append(
            Contest(
                SampleId("own", "tig", "", f"p{number:03}"),
                tuple(sides),
                group=f"p{number:03}",
            )
        )
        choice = Choice({"forward": vote, "reverse": vote})
        verdict = Verdict({}, Status.OK, choice=choice)
        if number in lost:
            verdict = unjudged(Status.NO_IMAGE, "lost")
            [step] = verdict.trace
            trace = (type(step)(("1", *step.path), step.status, reason="lost"),)
            verdict = Verdict({}, Status.NO_IMAGE, trace=trace)
        if number in unread:
            verdict = Verdict({}, Status.PARSE_FAILURE)
        verdicts.append(verdict)
    source = Provenance("pairwise", (), ("O",), "judge-7b", "pairwise/v1", "abc")
    write_verdicts(tmp_path / "v.jsonl", judged, verdicts, source)
    return tmp_path / "v.jsonl"


def test_contests_without_the_new_image_are_lost(gate, tmp_path, vieval):
    rng = np.random.default_rng(1)
    votes = ["first" if rng.random() < 0.75 else "second" for _ in range(100)]
    file = contests(tmp_path, votes)
    text = file.read_text()
    assert "identical files" in vieval("rank", file, "--margin", "0.05").out
    digest = re.search(r'"sha256": "(\w{64})"', text)[1]
    other = text.replace(digest, "0" * 64, 1)  # one picture of one side differs
    file.write_text(other)
    assert "With one more bad prompt" in vieval("rank", file, "--margin", "0.05").out
    file = contests(tmp_path, votes, lost=range(60))
    file.write_text(file.read_text().replace(digest, "0" * 64, 1))
    shown = vieval("rank", file, "--margin", "0.05", code=3).out
    assert "Only new fails on 60 prompts" in shown
    assert "is better" not in shown


def written(folder, samples, values):
    """A file of verdicts on samples with these scores."""
    verdicts = [Verdict({"SC": v, "PQ": v, "O": v}, Status.OK) for v in values]
    write_verdicts(folder / "v.jsonl", samples, verdicts, SOURCE)
    return str(folder / "v.jsonl")


def test_several_images_of_a_prompt_are_compared_with_one(tmp_path, vieval):
    """Of four images of a prompt on one side, as many fail as of one on the other."""

    def samples(name, draws):
        return [
            Sample(SampleId("own", "tig", name, f"p{n}", draw), {})
            for n in range(N)
            for draw in range(draws)
        ]

    rng = np.random.default_rng(0)
    for draws in ((1, 4), (4, 1)):
        both = [*samples("new", draws[0]), *samples("old", draws[1])]
        path = written(tmp_path, both, rng.uniform(0.6, 1, len(both)))
        lines = Path(path).read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        for row in rows:
            if rng.random() < 0.05:
                row |= {"scores": {}, "status": "no_image"}
        Path(path).write_text("\n".join(map(json.dumps, rows)) + "\n")
        assert " on 1" in vieval("rank", path, "--margin", "0.2").out.splitlines()[1]


def test_pictures_that_nobody_knows_are_not_the_same_files(tmp_path, capsys):
    tables = []
    for name in ("x", "y"):
        rows = [f"p{n},cat {n},{name}none/p{n}.png,{name}" for n in range(80)]
        text = "\n".join(["uid,prompt,output,image_model", *rows])
        (tmp_path / f"{name}.csv").write_text(text)
        main(
            split(
                f"score {tmp_path}/{name}.csv --judge sharpness "
                f"--out {tmp_path}/{name}.jsonl"
            )
        )
        tables.append(str(tmp_path / f"{name}.jsonl"))
    assert main(["rank", *tables, "--margin", "0.05"]) != 0
    assert "same files" not in capsys.readouterr().out


def test_a_gate_compares_the_same_prompts_alone(tmp_path, vieval):
    samples = [
        Sample(
            SampleId("own", "tig", name, f"p{n}"),
            {},
            {"prompt": f"cat {n}{' ' if name == 'new' and n else ''}"},
        )
        for name in ("new", "old")
        for n in range(N)
    ]
    path = written(tmp_path, samples, [0.8] * N + [0.8] * N)
    vieval(f"rank {path}")
    assert (
        "--margin requires the same prompts for all generators; judge-7b: 199 uids"
        in vieval("rank", path, "--margin", "0.05", code=1).err
    )
    said = vieval("rank", path, "--margin", "0.05", "--best-of", code=1).err
    assert "--best-of and --margin cannot be combined" in said


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A file of verdicts by VIEScore on images of two generators."""
    folder = tmp_path_factory.mktemp("judged")
    rows = []
    for number in range(6):
        PIL.Image.new("RGB", (16, 16), (number, 0, 0)).save(folder / f"{number}.png")
        name = ("new", "old")[number % 2]
        prompt = f"a thing {number // 2}"
        row = {
            "uid": f"p{number // 2}",
            "image_model": name,
            "output": f"{number}.png",
            "prompt": prompt,
        }
        rows.append(row)
    write_lines(folder / "s.jsonl", rows)
    with FakeServer() as server:
        out = folder / "v.jsonl"
        arguments = ["score", folder / "s.jsonl", "--out", out, *named(server)]
        assert main([*map(str, arguments)]) == 0
    return out


def spoil_question(row):
    """Make the answer to the question about SC one that could not be read."""
    row["trace"] = [
        step if step["path"] != ["SC"] else {**step, "status": "refusal"}
        for step in row["trace"]
    ]


def updated(**fields):
    return lambda row: row.update(fields)


UNASKED = [{"path": ["sample"], "status": "tool_error"}]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (updated(), ""),
        (
            updated(status="parse_failure"),
            "it has all scores, but its status is parse_failure",
        ),
        (spoil_question, "it has a score for SC, but that question failed (refusal)"),
        (
            lambda row: row["scores"].update(O=0.123),
            "its O is 0.123, but its replies give 0.",
        ),
        (
            lambda row: row["scores"].update(SC=-0.5),
            "SC of viescore must be at least 0, got -0.5",
        ),
        (
            updated(judge="sharpness"),
            "its judge is 'sharpness', but its run has 'viescore'",
        ),
        (
            updated(trace=UNASKED),
            "it has scores, but its trace says that the judge was not asked, or that "
            "it failed (status ok)",
        ),
        (updated(trace=[]), "no recorded answer to SC"),
        (
            lambda row: row["trace"][0].update(scores=[14.0]),
            "its step SC differs from its reply",
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
    gate = Gate(
        "new", decision, Answer("Decided.", ""), unreadable=unreadable, alarm=alarm
    )
    assert gate.exit_code == code


def test_the_page_of_a_gate_begins_with_failures_and_the_largest_falls(gate, tmp_path):
    new, old = scores(n=70)
    new[7] = 0
    page = tmp_path / "gate.html"
    failed = [(3, Status.REFUSAL)]
    gate(new, old, "--html", page, new_failed=failed)
    text = page.read_text()
    falls = text.index("<h3>new&#39;s largest falls</h3>")
    chart = text.index('class="exhibit"')
    assert falls < chart < text.index("<table class=")
    cards = re.findall(r'<h3 id="[^"]*">(p\d+)', text[falls:chart])
    assert cards[:2] == ["p003", "p007"]
    assert len(cards) == 3
