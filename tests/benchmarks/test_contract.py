"""What every benchmark does: as many samples as it states, ids that are unique, missing images
counted, a source and a licence, and one line of what to do where its files are absent.
"""

import json
import re
from dataclasses import asdict

import pytest

from tests.benchmarks.alignment_files import FILES
from tests.benchmarks.hub import HUB, hub_with
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.benchmarks import registry
from vieval_plugin.benchmarks.benchmark import Preparing
from vieval_plugin.judges import pairwise, viescore
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.contests import candidates_of
from vieval_plugin.judges.spec import missing_inputs_reason

BENCHMARKS = registry.benchmarks()
#: The folder of public files of each benchmark that has some.
PUBLISHED = {
    "agiqa3k": "agiqa3k",
    "genai_bench_tiger": "genai_bench_tiger",
    "geneval": "geneval",
    "imagenhub": "imagenhub",
    "mmrb2": "mmrb2",
    **dict.fromkeys(("seetrue", "stanfordt23d", "t2vscore", "tifa160"), "t2v_metrics"),
}
PARTS = [(name, part) for name in PUBLISHED for part in BENCHMARKS[name].parts]
DEMOS = {name for name in BENCHMARKS if "vieval_demo" in name}
BY_HOST = {"generate_gedit_bench", "generate_imgedit", "generate_prompts"}


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_published_files_have_the_samples_that_are_stated(
    shared_data, tmp_path, name, part
):
    path = shared_data / PUBLISHED[name]
    (tmp_path / name).symlink_to(path, target_is_directory=True)
    found = BENCHMARKS[name].load(tmp_path, part)
    assert len(found) == len({one.id for one in found}) == BENCHMARKS[name].parts[part]
    lines = BENCHMARKS[name].missing(tmp_path, part)
    assert lines
    assert all(
        re.search(r"\b(\d+) of \1 (images|outputs|uids)", line) for line in lines
    )


def test_each_says_its_source_and_its_licence():
    for benchmark in BENCHMARKS.values():
        assert benchmark.source
        assert benchmark.licence
        assert "\n" not in benchmark.source + benchmark.licence
    # those whose licence permits it
    trainable = {name for name, one in BENCHMARKS.items() if one.trainable}
    ours = {"imagenhub", "t2i_eval_bench"}
    generated = {f"generate_{name}" for name in ours}
    demos = DEMOS - {"vieval_demo_sequences"}
    assert trainable == ours | generated | demos | {"generate_prompts"}


@pytest.mark.parametrize("name", sorted(BENCHMARKS.keys() - DEMOS - BY_HOST))
def test_absent_files_are_one_line_that_says_what_to_do(tmp_path, name):
    for part in BENCHMARKS[name].parts:
        [line] = BENCHMARKS[name].missing(tmp_path, part)
        assert refusal(BENCHMARKS[name].load, tmp_path, part) == line
        assert line.startswith(f"{tmp_path}/{name.removeprefix('generate_')[:5]}")
        assert re.search(
            ": no such file(; |, and .*; )(put|unpack|write|run|down)", line
        )


def write(root, benchmark, files):
    """Write files over the few rows that a benchmark has in tests."""
    own = FILES.get(benchmark, {}).items()
    for name, text in {**{f"{benchmark}/{n}": t for n, t in own}, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def as_json(judged, root):
    """A sample or a contest as a table has it: without empty fields, paths below the root."""
    path_of = lambda path: path.relative_to(root).as_posix()
    without_empty = lambda fields: {key: one for key, one in fields.items() if one}
    text = json.dumps(asdict(judged), default=path_of)
    return json.loads(text, object_hook=without_empty)


@pytest.mark.parametrize(*table("files_as_samples.jsonl"))
def test_files_are_read_as_samples(tmp_path, benchmark, part, files, judges, found):
    """`judges` are those that can judge the first sample once its images are there."""
    write(tmp_path, benchmark, files)
    loaded = BENCHMARKS[benchmark].load(tmp_path, part)
    assert [as_json(one, tmp_path) for one in loaded] == found
    for name in judges:
        assert missing_inputs_reason(judge_registry.judge(name), loaded[0]) == ""
    # a sample of several contests is one object, which is judged once
    samples = [sample for one in loaded for sample in candidates_of(one)]
    assert len(set(map(id, samples))) == len({sample.id for sample in samples})


@pytest.mark.parametrize(*table("malformed_files.jsonl"))
def test_a_malformed_file_is_located(tmp_path, benchmark, part, files, messages):
    write(tmp_path, benchmark, files)
    line = refusal(BENCHMARKS[benchmark].load, tmp_path, part)
    assert all(message in line for message in messages)
    assert BENCHMARKS[benchmark].missing(tmp_path, part) == [line]


@pytest.mark.parametrize("case", HUB, ids=lambda case: case.name)
def test_rows_of_the_hub_become_contests_once(tmp_path, monkeypatch, case):
    rows, asked = hub_with(monkeypatch, *case.repository)
    rows[case.config] = case.rows()
    benchmark = BENCHMARKS[case.name]
    for _ in range(2):
        report = benchmark.prepare(tmp_path, Preparing([case.part]))
        assert report.complete
        assert report.lines[0].startswith(f"{case.name}: {benchmark.source}")
        assert f"licence: {benchmark.licence}" in report.lines[0]
        assert report.lines[1:] == (f"{case.name}/{case.part}: ready, {case.ready}",)
        assert asked == [case.config]
    contests = benchmark.load(tmp_path, case.part)
    assert len({contest.id for contest in contests}) == len(contests)
    assert benchmark.missing(tmp_path, case.part) == []
    for judge in (viescore, pairwise):
        assert missing_inputs_reason(judge.SPEC, contests[0]) == ""


@pytest.mark.parametrize("case", HUB, ids=lambda case: case.name)
def test_a_malformed_row_of_the_hub_is_one_line(tmp_path, monkeypatch, case):
    rows, _ = hub_with(monkeypatch, *case.repository)
    rows[case.config] = [{"prompt": "a cat"}]
    report = BENCHMARKS[case.name].prepare(tmp_path, Preparing([case.part]))
    assert not report.complete
    assert f"row 0 of {case.repository[0]} is malformed (KeyError" in report.lines[1]
    assert "\n" not in report.lines[1]
    assert not (tmp_path / case.name / case.part / "contests.jsonl").exists()
