"""`vieval rank`: the order of generators."""

import json
import shlex
from pathlib import Path

from tests.builders import (
    a_contest_file,
    a_label_file,
    a_provenance,
    a_sample,
    a_verdict,
    a_verdict_file,
    some_scores,
)
from vieval_plugin.judges.protocol import Status
from vieval_plugin.run.verdict_lines import write_verdicts

PAIR = ("aurora", "borealis")


def test_three_generators(approve):
    a_verdict_file(
        aurora=some_scores(mean=0.7, seed=1),
        borealis=some_scores(mean=0.69, seed=2),
        cirrus=some_scores(mean=0.45),
    )
    approve("vieval rank v.jsonl")


def test_one_generator(approve):
    a_verdict_file(aurora=some_scores())
    approve("vieval rank v.jsonl")


def test_ties(approve):
    a_verdict_file(aurora=[0.5] * 30, borealis=[0.5] * 30)
    approve("vieval rank v.jsonl")


def test_failures(approve):
    failures = [Status.REFUSAL, Status.NO_IMAGE, Status.PARSE_FAILURE, Status.API_ERROR]
    a_verdict_file(aurora=[*some_scores(36, 0.7), *failures], borealis=some_scores(40))
    approve("vieval rank v.jsonl")


def test_all_failed(approve):
    a_verdict_file(aurora=[None] * 20, borealis=[Status.REFUSAL] * 20)
    approve("vieval rank v.jsonl")


def test_noise(approve):
    a_verdict_file(
        generators={
            name: some_scores(20, noise=0.2, seed=n) for n, name in enumerate("abcdef")
        }
    )
    approve("vieval rank v.jsonl")


def test_contests(approve):
    a_contest_file(votes=["first"] * 40 + ["second"] * 10 + ["both_good"] * 10)
    approve("vieval rank v.jsonl")


def test_two_and_three_judges(approve):
    generators = {"aurora": some_scores(40, 0.7, seed=1), "borealis": some_scores(40)}
    sources = [
        a_provenance(),
        a_provenance("cigeval", "judge-72b"),
        a_provenance("sharpness", "sharpness", ("PQ",)),
    ]
    for number, source in enumerate(sources):
        a_verdict_file(f"{number}.jsonl", generators, source=source)
    approve(
        "vieval rank 0.jsonl 1.jsonl",
        "vieval rank 0.jsonl 1.jsonl 2.jsonl",
        "vieval report 0.jsonl 1.jsonl 2.jsonl --out r",
        "cat r/report.md",
    )


def test_labels_correct_the_judge(approve):
    scores = {"aurora": some_scores(60, 0.7, seed=1), "borealis": some_scores(60)}
    a_verdict_file(generators=scores)
    a_label_file(
        labels=[
            {"uid": f"p{n:03}", "generator": name, "value": round(values[n] * 0.9, 3)}
            for name, values in scores.items()
            for n in range(30)
        ]
    )
    approve("vieval rank v.jsonl --human labels.csv")


def test_uids_of_other_prompts(approve):
    for name, same in (("most", 9), ("none", 0)):
        prompts = {
            model: [
                f"prompt {n}" if n < same else f"prompt {n} of {model}"
                for n in range(12)
            ]
            for model in PAIR
        }
        rows = [
            (a_sample(str(n), model, prompt=prompts[model][n]), a_verdict(0.5 + n / 50))
            for model in PAIR
            for n in range(12)
        ]
        write_verdicts(Path(f"{name}.jsonl"), *zip(*rows, strict=True), a_provenance())
    rows = [
        (a_sample(f"{model}{n}", model, prompt=f"a cat {n}"), a_verdict(0.5))
        for model in PAIR
        for n in range(8)
    ]
    write_verdicts(Path("own.jsonl"), *zip(*rows, strict=True), a_provenance())
    approve(
        "vieval rank most.jsonl",
        "vieval rank most.jsonl --best-of",
        "vieval rank none.jsonl",
        "vieval rank own.jsonl",
        "vieval report most.jsonl --out report",
        "vieval report none.jsonl --out report",
    )
    page = Path("report/report.html").read_text()
    assert "prompt 8" in page
    assert "prompt 11 of" not in page


def test_files_refused(approve):
    lines = a_verdict_file(aurora=[0.5] * 4).read_text().splitlines()
    for name, text in {
        "twice": "\n".join([*lines, lines[3]]),
        "schema": json.dumps({"vieval": 99, "run": "x", "status": "ok"}),
        "empty": "",
        "surrogate": lines[0].replace('"p000"', '"\\ud800"'),
        **{
            score: lines[0].replace("0.5", score)
            for score in ("7", "-3", '"0.5"', "true", "NaN", "Infinity")
        },
    }.items():
        Path(f"{name}.jsonl").write_text(f"{text}\n")
        Path(f"{name}.jsonl.run.json").write_text(Path("v.jsonl.run.json").read_text())
    names = sorted(
        path.name for path in Path().glob("*.jsonl") if path.name != "v.jsonl"
    )
    approve(
        *(shlex.join(["vieval", "rank", name]) for name in names),
        "vieval rank v.jsonl schema.jsonl",
        "vieval report twice.jsonl --out r",
        "vieval show twice.jsonl p003",
    )
