"""Published judges: their numbers are the report's, and a changed log has none."""

import shutil
from shlex import split

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.meta_evaluation.tables import Key
from vieval_plugin.results.published import judges
from vieval_plugin.results.published.files import descriptions, published_files
from vieval_plugin.stats.options import StatisticsOptions

AS_PRINTED = StatisticsOptions(policy="as_recorded", draws=20)
CONTROL_GUIDED = "ImagenHub_Control-Guided_IG"


def known_judges(of):
    return (*judges.published_judges(of), *judges.published_baselines(of))


def judge(name, of="imagenhub"):
    [found] = [known for known in known_judges(of) if known.name == name]
    return found


def samples(data, of="imagenhub"):
    known = benchmark(of)
    return [sample for part in known.parts for sample in known.load(data, part)]


def cells_of(run):
    report = benchmark(run.benchmark).report
    parts = tuple(benchmark(run.benchmark).parts)
    return report.findings(run.benchmark, parts, [run], AS_PRINTED).cells


@pytest.fixture(scope="module")
def few_logs(shared_data, tmp_path_factory):
    """The logs of one part of one judge, which a test may spoil."""
    root = tmp_path_factory.mktemp("published")
    folder = f"viescore_logs/results_gpt4o_0shot/{CONTROL_GUIDED}"
    shutil.copytree(shared_data / folder, root / folder)
    return root


def test_every_described_judge_has_files_and_every_file_a_judge():
    claimed = set()
    for of in descriptions():
        for known in known_judges(of):
            folders = benchmark(of).folders
            own = [file for folder in folders for file in known.files(folder)]
            assert own, known
            claimed.update(own)
    # answers for replays alone are no judge's
    found = {file.repository for file in set(published_files()) - claimed}
    assert found == {"j-min/DSG"}
    assert len({known.title for known in judges.published_judges("imagenhub")}) == 16


def test_those_whose_logs_are_there_are_present(shared_data):
    names = [known.name for known in judges.present("imagenhub", shared_data)]
    few = ("llava_0shot", "blip2_0shot")
    assert names == [*split("gpt4o_0shot gpt4o_1shot gpt4v_0shot gpt4v_1shot"), *few]
    assert len(judges.present("genai_bench_tiger", shared_data)) == 7
    own = judge("qwenVL", "genai_bench_tiger")
    assert judges.parts_present(own, shared_data) == ["generation"]


@pytest.mark.slow
def test_the_numbers_are_the_printed_ones(shared_data):
    run = judges.run_of(judge("gpt4v_1shot"), shared_data, samples(shared_data))
    key = Key("T1", "all", "", "GPT-4v one-shot", "spearman", "O")
    assert cells_of(run)[key] == pytest.approx(0.2604, abs=5e-5)


def test_contests_are_read_with_peoples_votes(shared_data):
    of = "genai_bench_tiger"
    run = judges.run_of(judge("gpt4o", of), shared_data, samples(shared_data, of))
    counts = {part: len(rows) for part, rows in run.records.items()}
    assert counts == benchmark(of).parts
    assert run.label == "GPT-4o"
    shown = ("accuracy_paper", "GPT-4o")
    cells = cells_of(run).items()
    found = [value for key, value in cells if (key.statistic, key.judge) == shown]
    assert found == pytest.approx([53.54, 45.59, 48.46], abs=0.005)


def test_a_part_of_the_samples_is_enough(shared_data, few_logs):
    first = samples(shared_data)[-10:]
    run = judges.run_of(judge("gpt4o_0shot"), few_logs, first)
    found = [record.id for [record] in run.records["cig"]]
    assert found == [sample.id for sample in first]
    others = samples(shared_data)[:10]
    line = refusal(judges.run_of, judge("gpt4o_0shot"), few_logs, others)
    assert "GPT-4o zero-shot has no verdicts on these samples" in line


def copied(few_logs, tmp_path):
    """A file of a copy of the logs."""
    shutil.copytree(few_logs, tmp_path, dirs_exist_ok=True)
    return tmp_path / judge("gpt4o_0shot").files(CONTROL_GUIDED)[0].place


def test_logs_of_another_commit_give_no_number(few_logs, tmp_path):
    spoilt = copied(few_logs, tmp_path)
    text = spoilt.read_text()
    spoilt.write_text(text.replace("8", "9", 1))
    assert spoilt.read_text() != text
    line = refusal(judges.verdicts_of, judge("gpt4o_0shot"), tmp_path)
    assert "not the file from TIGER-AI-Lab/VIEScore at commit 1a2d178" in line


def test_of_a_part_some_of_whose_files_are_missing_nothing_is_read(few_logs, tmp_path):
    copied(few_logs, tmp_path).unlink()
    assert judges.present("imagenhub", tmp_path) == []
    line = refusal(judges.verdicts_of, judge("gpt4o_0shot"), tmp_path)
    assert "no logs of GPT-4o zero-shot on ImagenHub; run `vieval prepare publi" in line
