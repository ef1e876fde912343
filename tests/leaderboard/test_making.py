"""The leaderboard from a few published logs: its numbers are the report's."""

import csv
import json
import re
from dataclasses import replace
from itertools import product

import pytest

from tests.leaderboard import cards
from tests.leaderboard.logs import few_logs
from tests.leaderboards import headlines_of
from tests.stored_results import csv_rows
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.leaderboard import writing
from vieval_plugin.leaderboard.making import Sources, make_boards
from vieval_plugin.leaderboard.printed import compare_printed
from vieval_plugin.leaderboard.submissions import Submission, SubmittedRun
from vieval_plugin.leaderboard.writing import json_text, page, title
from vieval_plugin.meta_evaluation.rows import row_table
from vieval_plugin.meta_evaluation.tables import Key, csv_text
from vieval_plugin.report.answer import answer
from vieval_plugin.results.published.judges import present, published_judges, run_of
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=50)
PARTS = ("all", "generation", "video")
TIES = ("four_way", "three_way", "decisive")


@pytest.fixture(scope="module")
def sources(shared_data, tmp_path_factory):
    folder = few_logs(shared_data, tmp_path_factory.mktemp("logs"))
    return Sources(folder, folder)


@pytest.fixture(scope="module")
def steps():
    """Lines on what is computed next."""
    return []


@pytest.fixture(scope="module")
def boards(sources, steps):
    return make_boards(sources, [], OPTIONS, steps.append)


@pytest.fixture(scope="module")
def runs(sources):
    judged = benchmark("imagenhub").load(sources.data, "cig")
    return runs_of(sources.published, judged)


def runs_of(folder, judged):
    judges = present("imagenhub", folder)
    return [
        run_of(judge, folder, judged) for judge in judges if "blip2" not in judge.name
    ]


def view_of(board, **choice):
    [found] = [view for view in board.views if view.choice == choice]
    return found


@pytest.mark.parametrize("policy", ["drop", "worst", "as_recorded"])
def test_numbers_and_ranks_are_those_of_the_report(boards, runs, policy):
    report, parts = benchmark("imagenhub").report, tuple(benchmark("imagenhub").parts)
    options = replace(OPTIONS, policy=policy)
    for board in headlines_of(report, "imagenhub", parts, runs, options):
        chosen = {"aspect": board.aspect, "failures": policy, "setting": "all"}
        of_view, of_report = (
            [(n.system, n.ranks, n.estimate) for n in of.numbers]
            for of in (view_of(boards[0], **chosen).board, board)
        )
        assert of_view == of_report


def test_baselines_and_the_ceiling_have_no_rank(boards):
    beside = [number for number in boards[0].views[0].numbers if number.role != "judge"]
    names = {number.system.split(":")[0] for number in beside}
    assert names == {"human ceiling", "best constant", "LPIPS"}
    assert {number.ranks for number in beside} == {None}
    found = [number.system for number in boards[1].views[0].baselines]
    assert "random answers" in found


def test_every_choice_has_a_table_and_a_setting_ranks_among_itself(boards):
    assert len(boards[0].views) == 3 * 3 * 2  # one judge alone has one-shot answers
    zero = view_of(boards[0], aspect="O", failures="drop", setting="0shot")
    systems = [number.system for number in zero.board.numbers]
    assert systems == ["GPT-4o zero-shot", "GPT-4v zero-shot"]
    choices = {(view.choice["part"], view.choice["ties"]) for view in boards[1].views}
    assert choices == {*product(PARTS, TIES)}


def test_steps_count_tables_of_how_many(boards, steps):
    for board in boards:
        start = f"{benchmark(board.benchmark).title}: table "
        counted = [line.removeprefix(start) for line in steps if line.startswith(start)]
        total = len(board.views)
        assert counted == [f"{number} of {total}" for number in range(1, total + 1)]


def votes_of(boards, part, ties, label):
    view = view_of(boards[1], part=part, ties=ties)
    [number] = [number for number in view.numbers if number.system.startswith(label)]
    return view, number


def test_notes_of_a_part_are_of_its_contests(boards):
    answers = {}
    for part in PARTS:
        note = writing.notes_of(*votes_of(boards, part, "four_way", "LLaVA"))[-1]
        said = re.search(r"of (\d+) answers are the first image shown", note)
        answers[part] = int(said[1])
    assert answers["generation"] <= 1735
    assert answers["video"] <= 1069
    assert answers["all"] == answers["generation"] + answers["video"]


def test_the_best_constant_says_a_tie_where_ties_count_alike(boards):
    for view in boards[1].views:
        labels = " ".join(number.system for number in view.numbers)
        assert "both_" not in labels
        assert view.choice["ties"] == "four_way" or "both" not in labels


def test_printed_votes_stand_in_four_way_tables_alone_as_they_were_printed(boards):
    for part in ("all", "video"):
        view, _ = votes_of(boards, part, "four_way", "GPT-4o")
        numbers = boards[1].printed_of(view, "GPT-4o")
        printed = {number.task: number for number in numbers}
        assert printed["video"].digits(printed["video"].printed) == "48.46"
        for ties in ("three_way", "decisive"):
            view, _ = votes_of(boards, part, ties, "GPT-4o")
            assert boards[1].printed_of(view, "GPT-4o") == []
    html = page(boards, OPTIONS)
    # 0.81 percent on a scale from 0 to 1
    assert '<b>0.01</b><span class="mark">printed, not recomputed</span>' in html
    # in the one table of all parts; of generation alone GPT-4o has no row
    missing = '<span class="mark">not recomputed: logs are missing</span>'
    assert html.count(f"generation 45.59 {missing}") == 1
    rows = [row for row in _rows(boards) if row["benchmark"] == "genai_bench_tiger"]
    assert {row["ties"] for row in rows if row["printed"]} == {"four_way"}
    printed = [row["printed"] for row in rows if row["printed"]]
    assert all(re.fullmatch(r"\d+\.\d\d", text) for text in printed)


def test_ties_are_counted_as_chosen(boards, sources):
    known = benchmark("genai_bench_tiger")
    [judge] = [judge for judge in published_judges(known.name) if judge.name == "gpt4o"]
    run = run_of(judge, sources.published, known.load(sources.data, "video"))
    cells = known.report.findings(known.name, ("video",), [run], OPTIONS).cells
    for ties in TIES:
        _, number = votes_of(boards, "video", ties, "GPT-4o")
        key = Key(known.name, "video", "", "GPT-4o", f"accuracy_{ties}", "")
        assert 100 * number.estimate.value == pytest.approx(cells[key])


def test_absent_judges_are_named_and_present_ones_dated(boards):
    names = [judge.name for judge in boards[0].judges.values()]
    assert names == ["gpt4o_0shot", "gpt4v_0shot", "gpt4v_1shot"]
    assert "Gemini 1.5 Pro zero-shot" in [judge.title for judge in boards[0].absent]
    html = page(boards, OPTIONS)
    # named under the chart, and a grey row of the table
    found = html.count("Gemini 1.5 Pro zero-shot")
    assert found == 2 * len([view for view in boards[0].views if view.is_default])
    assert '<th scope="row">Gemini 1.5 Pro</th><td>printed, not recomputed</td>' in html
    assert "All published judges date from 2023 and 2024; newer models appear" in html
    assert "gpt-4o-2024-05-13, 2024-05" in html
    assert "Logs of tig, mie, tie, sdig, sdie, mcic were not available" in html


def test_a_printed_row_of_other_answers_is_an_erratum_and_says_so(boards):
    errata = {(one.image_model, one.aspect): one for one in boards[0].errata}
    assert {model for model, _ in errata} == {"ControlNet", "UniControl"}
    assert all(number.label == "GPT-4v zero-shot" for number in errata.values())
    of_row = errata["ControlNet", "SC"]
    assert (of_row.printed, round(of_row.computed, 4)) == (0.4270, 0.3902)
    average = "the paper's own average for the task, 0.4360"
    assert of_row.reason.startswith(f"The published answers reproduce {average}")
    assert boards[1].errata == []


def test_the_title_is_the_answer_and_the_page_loads_nothing(boards):
    found = title(boards)
    assert found == " ".join(answer(board.views[0].board).title for board in boards)
    first = boards[0].views[0]
    below = replace(first.board, ceiling=lambda label: Estimate(-0.2, -0.3, -0.1))
    assert title([replace(boards[0], views=(replace(first, board=below),))]) == (
        "All three judges recomputed here agree with people on ImagenHub less than people agree "
        "with each other. GPT-4o zero-shot comes closest."
    )
    html = page(boards, OPTIONS)
    # numbers that are printed elsewhere are in no data and no title
    assert "Gemini 3 Pro" in html
    assert "Gemini 3" not in title(boards) + _csv(boards) + json_text(boards, OPTIONS)
    assert '<a href="https://arxiv.org/abs/2512.16899">' in html
    assert f"<title>{title(boards)}</title>" in html.replace("&#39;", "'")
    assert "http" not in re.sub(r"<a href=\"[^\"]*\"|http-equiv", "", html)
    views = sum(len(board.views) for board in boards)
    assert html.count('<details class="view"') == views
    # without scripts the first table of each is open, and all others can be opened
    assert len(re.findall(r'<details class="view"[^>]* open>', html)) == 2
    assert '<form class="filters" hidden' in html


def _csv(boards):
    rows = writing.rows_of(boards)
    return csv_text(row_table("leaderboard", writing.LeaderboardRow, rows))


def _rows(boards):
    return list(csv.DictReader(_csv(boards).splitlines()))


def test_data_beside_the_page_has_every_row(boards):
    rows = _rows(boards)
    views = [view for board in boards for view in board.views]
    assert len(rows) == sum(len(view.numbers) for view in views)
    own = [row for row in rows if row["system"] == "GPT-4v zero-shot"]
    first = next(row for row in own if row["part"] == "all")
    about = [first[name] for name in ("version", "date", "role")]
    assert about == ["gpt-4-vision-preview", "2023-12", "judge"]
    document = json.loads(json_text(boards, OPTIONS))
    found = [row["system"] for row in document["numbers"]]
    assert found == [row["system"] for row in rows]
    assert {pair["part"] for pair in document["pairs"]} == {"all"}


def test_rows_of_the_first_tables_open_to_parts_and_pairs_of_generators(boards):
    first, number = boards[0].views[0], boards[0].views[0].board.numbers[0]
    found = first.board.breakdowns["kind"]["cig"][number.system].value
    assert found == pytest.approx(number.estimate.value)
    assert first.generators.keys() >= {number.system for number in first.board.numbers}
    opened = page([replace(boards[0], views=(first,))], OPTIONS)
    for name in ("control-guided generation", "failed"):
        assert opened.count(f"<dt>{name}</dt>") == 3
    of_worst = view_of(boards[0], aspect="O", failures="worst", setting="all")
    found = page([replace(boards[0], views=(of_worst,))], OPTIONS)
    assert "<dt>failed</dt>" not in found


@pytest.mark.slow
def test_a_submission_stands_among_the_published(sources, runs):
    of = {str(record.id): record for [record] in runs[0].records["cig"]}
    source = replace(next(iter(of.values())).provenance, options={}, label="")
    verdicts = {name: record.verdict for name, record in of.items()}
    run = SubmittedRun("imagenhub", source, {}, verdicts)
    submission = Submission(1, cards.MODEL, "2026-11-23", (run,))
    [board, _] = make_boards(sources, [submission, submission], OPTIONS)
    numbers = {number.system: number for number in board.views[0].numbers}
    assert numbers["maker/mine-7b"].estimate == numbers["GPT-4o zero-shot"].estimate
    # the second of one name has more of it
    assert numbers["maker/mine-7b viescore"].ranks
    assert "2026-11-23, submitted" in page([board], OPTIONS)


def test_a_folder_without_logs_is_one_line(vieval, tmp_path, monkeypatch, sources):
    monkeypatch.setenv("VIEVAL_DATA", str(sources.data))
    given = ("leaderboard", "make", "--published", tmp_path, "--out", tmp_path / "out")
    [line] = vieval(*given, code=1).err.splitlines()
    said = f"vieval: {tmp_path}: no published logs of ImagenHub; run `vieval prepare"
    assert line == f"{said} published_verdicts`"
    assert not (tmp_path / "out" / "index.html").exists()


@pytest.mark.extras
def test_errata_are_the_cells_that_are_known_to_be_wrong(shared_data):
    expected = csv_rows(shared_data / "expected" / "viescore_paper_tables.csv")
    titles = {judge.name: judge.title for judge in published_judges("imagenhub")}
    known = benchmark("imagenhub")
    judged = [s for part in known.parts for s in known.load(shared_data, part)]
    runs = runs_of(shared_data, judged)
    numbers = compare_printed(known, runs, titles, OPTIONS)
    errata = [number for number in numbers if number.reason]
    columns = ("table", "task", "image_model", "aspect")
    wrong = [row for row in expected if row["reproducible"] == "no"]
    assert {
        (one.label, *(getattr(one, name) for name in columns)) for one in errata
    } == {(titles[row["judge"]], *(row[name] for name in columns)) for row in wrong}
    assert {re.split("[,:]", number.reason)[0] for number in errata} == {
        "It is the value for Prompt2prompt",
        "It is the value for MagicBrush",
        "The published answers reproduce the paper's own average for the task",
        "It averages printed numbers",
    }
    assert all(number.computed is not None for number in numbers)
