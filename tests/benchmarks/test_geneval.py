"""GenEval: what workers say of an image, agreement with most of them, and its prompts."""

import csv
import json
from collections import defaultdict

import numpy as np
import pytest

from tests.local_site import answering
from tests.stored_results import read_lines
from vieval_plugin.benchmarks import geneval, registry
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.cli import main
from vieval_plugin.judges.objects import read_scene
from vieval_plugin.judges.protocol import Status, Verdict
from vieval_plugin.records import Provenance, Record, Run
from vieval_plugin.stats.agreement import leave_one_out_points
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = registry.benchmark("geneval")
GENERATED = registry.benchmark("generate_geneval")
CLOCK = {"class": "clock", "count": 2}
DOG = {"class": "dog", "count": 1, "position": ["left of", 0]}
BENCH = {"class": "bench", "count": 1, "color": "red"}
PROMPTS = [
    {
        "tag": "counting",
        "include": [CLOCK],
        "exclude": [{**CLOCK, "count": 3}],
        "prompt": "a photo of two clocks",
    },
    {
        "tag": "position",
        "include": [{"class": "cat", "count": 1}, DOG],
        "prompt": "a photo of a dog left of a cat",
    },
    {"tag": "colors", "include": [BENCH], "prompt": "a photo of a red bench"},
]
OPTIONS = StatisticsOptions(draws=20)


def answer(counts=("1", ""), colors=("", ""), places=("neither_x", "neither_y")):
    return {
        **{f"Answer.task-count-{n}": count for n, count in enumerate(counts)},
        **{f"Answer.task-color-{n}": ticked for n, ticked in enumerate(colors)},
        "Answer.task-position-x": places[0],
        "Answer.task-position-y": places[1],
    }


def write(root, answers=(), prompts=PROMPTS):
    """A data folder; an answer is the number of a prompt and of an image, and its fields."""
    folder = root / "geneval"
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(prompt) + "\n" for prompt in prompts)
    (folder / geneval.PROMPTS).write_text(lines)
    columns = ["Input.prompt_id", "Input.image_id", *answer()]
    with (folder / "annotations_clip.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        for prompt, image, fields in answers:
            table.writerow(dict(zip(columns, (prompt, image), strict=False)) | fields)
    return folder


def run_of(samples, scores):
    by = Provenance("mine", (), ("SC",), "mine")
    records = defaultdict(list)
    for sample, score in zip(samples, scores, strict=True):
        verdict = Verdict({"SC": float(score)}, Status.OK)
        record = Record(sample.id, verdict, by, sample.ratings, group=sample.group)
        records[sample.id.part].append((record,))
    return Run("mine", "geneval", "mine", ("SC",), records)


def references(run):
    found = BENCHMARK.report.findings("geneval", tuple(run.records), [run], OPTIONS)
    return {
        (number.part, number.role): number.estimate
        for statistic in found.ranked
        if statistic.statistic == "majority_agreement"
        for number in statistic.references
    }


def test_one_worker_beside_the_others_is_what_the_protocol_prints(shared_data):
    points = {}
    for part in BENCHMARK.parts:
        ratings = [sample.ratings["SC"] for sample in BENCHMARK.load(shared_data, part)]
        points[part] = [point for one in ratings for point in leave_one_out_points(one)]
    every = [point for of_part in points.values() for point in of_part]
    assert (round(np.mean(every), 3), len(every)) == (0.920, 5661)
    shares = {part: round(np.mean(of_part), 3) for part, of_part in points.items()}
    assert list(shares.values()) == [0.992, 0.916, 0.933, 0.922, 0.871, 0.899]


def test_shares_right_by_most_workers_are_what_the_protocol_prints(shared_data):
    rights = defaultdict(list)
    for part in BENCHMARK.parts:
        for sample in BENCHMARK.load(shared_data, part):
            assert len(sample.ratings["SC"]) == 5
            rights[sample.id.image_model].append(np.mean(sample.ratings["SC"]) > 0.5)
    shares = {model: round(np.mean(right), 2) for model, right in rights.items()}
    assert shares == {"if-xl": 0.72, "sdv2": 0.57, "clip": 0.40}
    assert {len(right) for right in rights.values()} == {400}


def test_a_judge_stands_between_the_ceiling_and_the_better_constant(shared_data):
    samples = BENCHMARK.load(shared_data, "counting")
    right = np.array([np.mean(s.ratings["SC"]) > 0.5 for s in samples])
    run = run_of(samples, np.where(np.arange(len(right)) % 4 == 0, ~right, right))
    found = BENCHMARK.report.findings("geneval", ("counting",), [run], OPTIONS)
    [number] = [n for n in found.numbers if n.statistic == "majority_agreement"]
    assert number.estimate.value == pytest.approx(0.75)
    assert number.estimate.low < 0.75 < number.estimate.high
    beside = references(run)
    assert beside["counting", "ceiling"].value == pytest.approx(0.933, abs=5e-4)
    constant = max(right.mean(), 1 - right.mean())
    assert beside["counting", "baseline"].value == pytest.approx(constant)


def test_an_even_number_of_workers_who_tie_counts_half(tmp_path):
    two, one = answer(("2", "")), answer(("1", ""))
    write(tmp_path, [(0, 0, two), (0, 0, one), (0, 1, two), (0, 1, two)])
    run = run_of(BENCHMARK.load(tmp_path, "counting"), [1, 1])
    found = BENCHMARK.report.findings("geneval", ("counting",), [run], OPTIONS)
    [number] = [n for n in found.numbers if n.statistic == "majority_agreement"]
    assert number.estimate.value == 0.75
    assert references(run)["counting", "ceiling"].value == 0.5


@pytest.mark.parametrize(
    ("prompt", "fields", "right"),
    [
        (0, answer(("2", "")), True),
        (0, answer(("2.0", "")), True),
        (0, answer(("1", "")), False),
        (0, answer(("3", "")), False),
        (0, answer(("", "")), False),
        (1, answer(("1", "1.0"), places=("left", "above")), True),
        (1, answer(("4", "2"), places=("neither_x", "left")), True),
        (1, answer(("1", "1.0"), places=("right", "above")), False),
        (1, answer(("1", ""), places=("left", "above")), False),
        (2, answer(("1", ""), ("red", "")), True),
        (2, answer(("1", ""), ("brown|red", "")), True),
        (2, answer(("1", ""), ("brown", "")), False),
        (2, answer(("1", ""), ("", "red")), False),
    ],
)
def test_an_answer_is_right_where_each_clause_holds(prompt, fields, right):
    assert geneval.is_right(read_scene(json.dumps(PROMPTS[prompt])), fields) is right


def test_prompts_are_fetched_once(tmp_path, monkeypatch, shared_data):
    body = (shared_data / "geneval" / geneval.PROMPTS).read_bytes()
    bodies = [b"{}\n", body]
    with answering(lambda *_: (200, {}, bodies.pop(0))) as host:
        monkeypatch.setattr(geneval, "ADDRESS", f"http://{host}/prompts")
        refused = GENERATED.prepare(tmp_path, Preparing())
        assert not refused.complete
        assert "SHA-256 mismatch: expected 5c48e0813e81" in refused.lines[0]
        assert not (tmp_path / "geneval" / geneval.PROMPTS).exists()
        for _ in range(2):
            done = GENERATED.prepare(tmp_path, Preparing())
            assert done.complete
            assert done.lines[0].endswith("ready, 553 prompts")
    for part, count in GENERATED.parts.items():
        assert len(GENERATED.load(tmp_path, part)) == count
    checked = BENCHMARK.prepare(tmp_path, Preparing())
    assert not checked.complete
    assert "annotations_clip.csv: no such file" in checked.lines[0]


def test_exported_prompts_have_objects(tmp_path, monkeypatch, capsys):
    write(tmp_path)
    monkeypatch.setenv("VIEVAL_DATA", str(tmp_path))
    assert main(["prompts", "export", "geneval", "--out", str(tmp_path / "all")]) == 0
    assert "3 prompts" in capsys.readouterr().out
    rows = read_lines(tmp_path / "all" / "prompts.jsonl")
    assert [row["uid"] for row in rows] == ["00000", "00001", "00002"]
    assert [row["category"] for row in rows] == ["counting", "position", "colors"]
    for row, prompt in zip(rows, PROMPTS, strict=True):
        assert row["texts"]["prompt"] == prompt["prompt"]
        found = json.loads(row["texts"]["objects"])
        assert found == {key: value for key, value in prompt.items() if key != "prompt"}
    some = ["prompts", "export", "geneval/colors", "--out", str(tmp_path / "some")]
    assert main(some) == 0
    assert len((tmp_path / "some/colors/prompts.jsonl").read_text().splitlines()) == 1
