"""Published judges beside a user's own: their numbers are the report's, and a changed log gives
none.
"""

from __future__ import annotations

import shutil
from shlex import split

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.results.published.files import descriptions, published_files
from vieval_plugin.results.published.judges import (
    parts_present,
    present,
    published_baselines,
    published_judges,
    run_of,
    verdicts_of,
)
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.errors import VievalError

AS_PRINTED = StatisticsOptions(policy="as_recorded", draws=20)


def judge(name, of="imagenhub"):
    [found] = [
        judge
        for judge in (*published_judges(of), *published_baselines(of))
        if judge.name == name
    ]
    return found


def samples(data, of="imagenhub"):
    return [
        sample
        for part in benchmark(of).parts
        for sample in benchmark(of).load(data, part)
    ]


@pytest.fixture(scope="module")
def few_logs(shared_data, tmp_path_factory):
    """The logs of one part of one judge, which a test may spoil."""
    root = tmp_path_factory.mktemp("published")
    folder = "viescore_logs/results_gpt4o_0shot/ImagenHub_Control-Guided_IG"
    shutil.copytree(shared_data / folder, root / folder)
    return root


def test_every_described_judge_has_files_and_every_file_a_judge():
    claimed = set()
    for of in descriptions():
        for known in (*published_judges(of), *published_baselines(of)):
            of_judge = [
                file for folder in benchmark(of).folders for file in known.files(folder)
            ]
            assert of_judge, known
            claimed.update(of_judge)
    # answers for replays alone are no judge's
    found = {file.repository for file in set(published_files()) - claimed}
    assert found == {"j-min/DSG"}
    assert len({known.title for known in published_judges("imagenhub")}) == 16


def test_those_whose_logs_are_there_are_present(shared_data):
    assert [known.name for known in present("imagenhub", shared_data)] == [
        *split(
            "gpt4o_0shot gpt4o_1shot gpt4v_0shot gpt4v_1shot llava_0shot blip2_0shot"
        )
    ]
    assert len(present("genai_bench_tiger", shared_data)) == 7
    found = parts_present(judge("qwenVL", "genai_bench_tiger"), shared_data)
    assert found == ["generation"]


@pytest.mark.slow
def test_the_numbers_are_the_printed_ones(shared_data):
    run = run_of(judge("gpt4v_1shot"), shared_data, samples(shared_data))
    known = benchmark("imagenhub")
    cells = known.report.findings(
        "imagenhub", tuple(known.parts), [run], AS_PRINTED
    ).cells
    found = cells[Key("T1", "all", "", "GPT-4v one-shot", "spearman", "O")]
    assert found == pytest.approx(0.2604, abs=5e-5)


def test_contests_are_read_with_peoples_votes(shared_data):
    run = run_of(
        judge("gpt4o", "genai_bench_tiger"),
        shared_data,
        samples(shared_data, "genai_bench_tiger"),
    )
    assert {part: len(rows) for part, rows in run.records.items()} == {
        "edit": 919,
        "generation": 1735,
        "video": 1069,
    }
    assert run.label == "GPT-4o"
    cells = (
        benchmark(run.benchmark)
        .report.findings(run.benchmark, tuple(run.records), [run], AS_PRINTED)
        .cells
    )
    assert [
        round(value, 2)
        for key, value in cells.items()
        if key.statistic == "accuracy_paper" and key.judge == "GPT-4o"
    ] == [*(53.54, 45.59, 48.46)]


def test_a_part_of_the_samples_is_enough(shared_data, few_logs):
    first = samples(shared_data)[-10:]
    run = run_of(judge("gpt4o_0shot"), few_logs, first)
    found = [record.id for [record] in run.records["cig"]]
    assert found == [sample.id for sample in first]
    line = refusal(run_of, judge("gpt4o_0shot"), few_logs, samples(shared_data)[:10])
    assert "GPT-4o zero-shot has no verdicts on these samples" in line


def test_logs_of_another_commit_give_no_number(few_logs, tmp_path):
    shutil.copytree(few_logs, tmp_path, dirs_exist_ok=True)
    spoilt = (
        tmp_path / judge("gpt4o_0shot").files("ImagenHub_Control-Guided_IG")[0].place
    )
    text = spoilt.read_text()
    spoilt.write_text(text.replace("8", "9", 1))
    assert spoilt.read_text() != text
    with pytest.raises(VievalError) as refused:
        verdicts_of(judge("gpt4o_0shot"), tmp_path)
    assert "\n" not in str(refused.value)
    found = str(refused.value)
    assert "not the file from TIGER-AI-Lab/VIEScore at commit 1a2d178" in found


def test_of_a_part_some_of_whose_files_are_missing_nothing_is_read(few_logs, tmp_path):
    shutil.copytree(few_logs, tmp_path, dirs_exist_ok=True)
    (
        tmp_path / judge("gpt4o_0shot").files("ImagenHub_Control-Guided_IG")[0].place
    ).unlink()
    assert present("imagenhub", tmp_path) == []
    assert (
        "no logs of GPT-4o zero-shot on ImagenHub; run `vieval prepare published_verdicts`"
        in refusal(verdicts_of, judge("gpt4o_0shot"), tmp_path)
    )
