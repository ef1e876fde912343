"""`vieval rank`: the order of generators."""

import json
import shlex
from itertools import product
from pathlib import Path

import pytest

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
FAILURES = [Status.REFUSAL, Status.NO_IMAGE, Status.PARSE_FAILURE, Status.API_ERROR]
BETTER = some_scores(mean=0.7, seed=1)
NOISY = {name: some_scores(20, noise=0.2, seed=n) for n, name in enumerate("abcdef")}

#: Scores of each generator.
CASES = {
    "three_generators": {
        "aurora": BETTER,
        "borealis": some_scores(mean=0.69, seed=2),
        "cirrus": some_scores(mean=0.45),
    },
    "one_generator": {"aurora": some_scores()},
    "ties": dict.fromkeys(PAIR, [0.5] * 30),
    "failures": {
        "aurora": [*some_scores(36, 0.7), *FAILURES],
        "borealis": some_scores(40),
    },
    "all_failed": {"aurora": [None] * 20, "borealis": [Status.REFUSAL] * 20},
    "noise": NOISY,
}


@pytest.mark.parametrize("name", CASES)
def test_scores(approve, name):
    a_verdict_file(generators=CASES[name])
    approve("vieval rank v.jsonl")


def test_contests(approve):
    a_contest_file(votes=["first"] * 40 + ["second"] * 10 + ["both_good"] * 10)
    approve("vieval rank v.jsonl")


def test_two_and_three_judges(approve):
    generators = {"aurora": some_scores(40, 0.7, seed=1), "borealis": some_scores(40)}
    sharpness = a_provenance("sharpness", "sharpness", ("PQ",))
    sources = (a_provenance(), a_provenance("cigeval", "judge-72b"), sharpness)
    for number, source in enumerate(sources):
        a_verdict_file(f"{number}.jsonl", generators, source=source)
    approve(
        "vieval rank 0.jsonl 1.jsonl",
        "vieval rank 0.jsonl 1.jsonl 2.jsonl",
        "vieval report 0.jsonl 1.jsonl 2.jsonl --out r",
        "cat r/report.md",
    )


def test_labels_correct_the_judge(approve):
    scores = {"aurora": BETTER, "borealis": some_scores()}
    a_verdict_file(generators=scores)
    labels = [
        {"uid": f"p{n:03}", "generator": name, "value": round(values[n] * 0.9, 3)}
        for name, values in scores.items()
        for n in range(30)
    ]
    a_label_file(labels=labels)
    approve("vieval rank v.jsonl --human labels.csv")


def write_prompts(name, rows):
    """A file of verdicts from rows (uid, generator, prompt, score)."""
    judged = [
        (a_sample(uid, model, prompt=prompt), a_verdict(score))
        for uid, model, prompt, score in rows
    ]
    write_verdicts(Path(name), *zip(*judged, strict=True), a_provenance())


def test_uids_of_other_prompts(approve):
    for name, same in (("most", 9), ("none", 0)):
        rows = []
        for model, n in product(PAIR, range(12)):
            prompt = f"prompt {n}" if n < same else f"prompt {n} of {model}"
            rows.append((str(n), model, prompt, 0.5 + n / 50))
        write_prompts(f"{name}.jsonl", rows)
    own = [(f"{m}{n}", m, f"a cat {n}", 0.5) for m, n in product(PAIR, range(8))]
    write_prompts("own.jsonl", own)
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


def test_no_prompt_in_common(approve):
    rows = []
    labels = []
    for model, n in product(PAIR, range(16)):
        failed = model == "borealis" and n < 8
        uid = f"{model}{n}"
        prompt = f"prompt {n} of {model}"
        rows.append((uid, model, prompt, Status.REFUSAL if failed else n / 20))
        labels.append({"uid": uid, "generator": model, "value": n / 20})
    write_prompts("v.jsonl", rows)
    a_label_file(labels=labels)
    approve(
        "vieval rank v.jsonl",
        "vieval rank v.jsonl --human labels.csv",
        "vieval rank v.jsonl --human labels.csv --margin 0.1",
    )


def test_files_refused(approve):
    lines = a_verdict_file(aurora=[0.5] * 4).read_text().splitlines()
    texts = {
        "twice": "\n".join([*lines, lines[3]]),
        "schema": json.dumps({"vieval": 99, "run": "x", "status": "ok"}),
        "empty": "",
        "surrogate": lines[0].replace('"p000"', '"\\ud800"'),
    }
    for score in ("7", "-3", '"0.5"', "true", "NaN", "Infinity"):
        texts[score] = lines[0].replace("0.5", score)
    for name, text in texts.items():
        Path(f"{name}.jsonl").write_text(f"{text}\n")
        Path(f"{name}.jsonl.run.json").write_text(Path("v.jsonl.run.json").read_text())
    approve(
        *(shlex.join(["vieval", "rank", f"{name}.jsonl"]) for name in sorted(texts)),
        "vieval rank v.jsonl schema.jsonl",
        "vieval report twice.jsonl --out r",
        "vieval show twice.jsonl p003",
    )
