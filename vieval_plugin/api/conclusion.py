"""The answers of verdicts as objects: what `vieval rank`, `compare` and `report` print, for
programs and notebooks.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.config import Config, Options, resolved
from vieval_plugin.judges.arguments import described
from vieval_plugin.records import Record, Run
from vieval_plugin.report.answer import Answer
from vieval_plugin.report.build_result import BuildResult, write_build_files
from vieval_plugin.report.files import findings_document
from vieval_plugin.report.printed_cells import PrintedComparison
from vieval_plugin.report.sections import Report, sections_of
from vieval_plugin.report.writing import (
    RANK_MD,
    lines,
    tables_of,
    write_csv,
    write_page,
    write_report,
    write_tables,
)
from vieval_plugin.results.prompt_differences import drop_different_prompts
from vieval_plugin.results.runs import Results, load_results, results_of
from vieval_plugin.text.errors import ExitCode, VievalError
from vieval_plugin.text.untrusted import path_of
from vieval_plugin.text.wording import plural

if TYPE_CHECKING:
    from vieval_plugin.api.verdicts import Verdicts

# objects that one collection of the youngest waits for, and collections that older ones wait for
_RARE_COLLECTION = 100_000, 50, 100

#: The path of a file or a folder, results that are read already, or a data frame.
Input: TypeAlias = "str | os.PathLike[str] | Results | Run | Verdicts | Record | Iterable[Record] | Any"
AnyPath: TypeAlias = "str | os.PathLike[str]"
_INPUTS = (
    "a path, a Run, a Record, the Verdicts of a Judge, or a data frame with the "
    "columns uid and generator and one column per score"
)
#: Methods of data frames that return rows, with their arguments.
_ROW_METHODS: Mapping[str, tuple[str, ...]] = {
    "to_dicts": (),
    "to_pylist": (),
    "to_dict": ("records",),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Conclusion:
    """The answer that verdicts give, its numbers, and the outcome of a command.

    - `answer` is the first sentence, `lines` all that the command prints;
    - `outcome` is a member of `ExitCode`, whose number is the exit code of the command;
    - `to_dataframe()` has all numbers; a notebook shows the answers and their tables.
    """

    #: The outcome with its answers, the gate and the tables to read.
    build: BuildResult
    #: Lines as the command prints them, the answer first.
    lines: tuple[str, ...]
    #: Options in force.
    options: Config
    #: Leaderboards with all that is in them; None where nothing was compared.
    report: Report | None = None
    #: A line for each file that could not be read.
    unreadable: tuple[str, ...] = ()
    #: Lines on judges and calls that failed.
    failed: tuple[str, ...] = ()
    #: Cells beside printed ones.
    comparison: PrintedComparison | None = None

    @property
    def outcome(self) -> ExitCode:
        """The outcome, whose number is the exit code of the command."""
        return self.build.exit_code

    @property
    def answers(self) -> Sequence[Answer]:
        """The answers, each a title with its sentences."""
        return self.build.answers

    @property
    def answer(self) -> str:
        """The first sentence."""
        return next(iter(self.lines), "")

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<{self.outcome.name}: {self.answer}>"

    def to_dataframe(self, table: str = "numbers") -> Any:
        """A `pandas.DataFrame` with the rows of `numbers.csv`, or with `table="pairs"` of
        `pairs.csv`; empty where nothing was compared.

        Raises:
            VievalError: pandas is not installed, or there is no such table.
        """
        if table not in ("numbers", "pairs"):
            raise VievalError(f"`table` must be 'numbers' or 'pairs', got {table!r}")
        from vieval_plugin.api.verdicts import import_pandas

        pandas = import_pandas("to_dataframe")
        if self.report is None:
            return pandas.DataFrame()
        document = findings_document(self.report, self.options.statistics.options())
        return pandas.DataFrame(list(map(asdict, getattr(document, table))))

    def write_tables(self, folder: AnyPath) -> list[Path]:
        """Write all tables as CSV and JSON, those of a ranking as Markdown too; the files.

        Raises:
            VievalError: the folder cannot be written.
        """
        if self.report is None:
            return write_csv(self.build.tables, Path(folder))
        name = RANK_MD if self.report.which == "generators" else ""
        return write_tables(
            self.report,
            Path(folder),
            self.options.statistics.options(),
            name,
        )

    def write_page(self, path: AnyPath) -> None:
        """Write the page with images side by side.

        Raises:
            VievalError: nothing was compared, or the file cannot be written.
        """
        if self.report is None:
            raise VievalError(
                f"cannot write a page, because no generators were compared: {self.answer}"
            )
        statistics = self.options.statistics.options()
        write_page(self.report, Path(path), statistics, self.build.gate)

    def write_build_files(self, **files: AnyPath) -> None:
        """Write what a build reads to `summary` (Markdown), `junit` (XML) and `json`, and to the
        summary of a step on GitHub.
        """
        paths = {name: Path(file) for name, file in files.items()}
        write_build_files(self.build, paths)

    def _repr_html_(self) -> str:
        """The answers with their tables, without scripts; whatever others wrote is shown as text."""
        from vieval_plugin.text.html_page import template

        page = template(Path(__file__).with_name("answers.html.jinja"))
        return page.render(answers=self.answers, tables=self.build.tables)


def compare(
    *inputs: Input,
    label: Sequence[str] = (),
    partial: bool = False,
    benchmarks: Sequence[str] = (),
    draws: int | None = None,
    seed: int | None = None,
    options: Options = None,
) -> Conclusion:
    """Test which of several judges is better, as `vieval compare` does.

    Args:
        inputs: folders of runs and files of verdicts, or each a `Run` or a `Record`.
        label: what tables call the judge of each path.
        partial: read also the verdicts of a run that is not complete.
        benchmarks: folders of benchmarks of your own.
        draws: resamples of the bootstrap and of the test (default: of the options).
        seed: of everything random (default: of the options).
        options: what an options file says, as a mapping or a `Config` (default: the file that
            VIEVAL_CONFIG names).

    Returns:
        The answer with its numbers; `outcome` is `ERROR` where a file could not be read.

    Raises:
        VievalError: nothing can be read, or an option that there is not.

    >>> compare("out/first", "out/second")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    vieval_plugin.text.errors.VievalError: out/first: ...
    """
    current = resolved(options)
    flags = {"draws": draws, "seed": seed}
    passed = {name: value for name, value in flags.items() if value is not None}
    options_set = current.statistics.model_copy(update=passed)
    current = current.model_copy(update={"statistics": options_set})
    statistics = options_set.options()
    _find_benchmarks(benchmarks)
    results = results_given(inputs, label, partial)
    report = sections_of(results, "judges", statistics)
    return _conclusion(
        results,
        report,
        lines(report, statistics, elsewhere="see them with --out FOLDER"),
        current,
    )


@contextlib.contextmanager
def _rare_collection() -> Iterator[None]:
    """Rare garbage collection meanwhile: records and numbers hold no cycles, and to look for some
    among millions of objects takes a tenth of a report's time.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(*_RARE_COLLECTION)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@_rare_collection()
def report(
    *inputs: Input,
    folder: AnyPath | None = None,
    label: Sequence[str] = (),
    partial: bool = False,
    benchmarks: Sequence[str] = (),
    human: Sequence[AnyPath] = (),
    calibration: AnyPath | None = None,
    expect: AnyPath | None = None,
    order: AnyPath | None = None,
    training_records: Sequence[AnyPath] = (),
    options: Options = None,
) -> Conclusion:
    """Report results, as `vieval report` does; pages and tables are written only to a `folder`.

    Args:
        inputs: folders of runs and files of verdicts, or each a `Run`, a `Record`, the `Verdicts` of
            a `Judge`, or a data frame of scores.
        folder: for `report.html`, `report.md` and all tables.
        label: what tables call the judge of each path.
        partial: read also the verdicts of a run that is not complete.
        benchmarks: folders of benchmarks of your own.
        human: CSV files of people's ratings.
        calibration: file of `vieval calibrate`, which adds a score.
        expect: CSV file of printed cells to compare with.
        order: file with an image model a line, the best first, to compare rankings with.
        training_records: folders of models that you trained.
        options: as for `compare`.

    Returns:
        The answers with their numbers; `outcome` is `ERROR` where a file could not be read or a
        cell differs from the printed one.

    Raises:
        VievalError: nothing can be read, no uid has one prompt, a folder that cannot be written, or
            an option that there is not.

    >>> rows = [{"uid": f"p{n}", "generator": g, "O": n / 20 + (g == "new") / 9}
    ...     for n in range(12) for g in ("new", "old")]
    >>> import pandas
    >>> report(pandas.DataFrame(rows), options={"statistics": {"draws": 50}}).answer
    "scores rates new's images better than old's."
    """
    current = resolved(options)
    ratings = None
    if human:
        from vieval_plugin.benchmarks.loading.ratings import read_ratings

        ratings = read_ratings(list(map(Path, human)))
    _find_benchmarks(benchmarks)
    results = drop_different_prompts(results_given(inputs, label, partial))
    if calibration:
        from vieval_plugin.results.calibration import calibrate_scores
        from vieval_plugin.run.calibration import read_calibration

        results = calibrate_scores(results, read_calibration(Path(calibration)))
    written = write_report(
        results,
        optional_path(folder),
        current.statistics.options(),
        optional_path(expect),
        optional_path(order),
        list(map(Path, training_records)),
        ratings,
    )
    return _conclusion(
        results,
        written.report,
        written.lines,
        current,
        written.comparison,
    )


def optional_path(path: AnyPath | None) -> Path | None:
    """A path, None where none is given."""
    return Path(path) if path else None


def results_given(
    inputs: Sequence[Input], labels: Sequence[str], partial: bool
) -> Results:
    """The results that are passed: read from paths, or grouped by their judges.

    Raises:
        VievalError: nothing is passed, something that is none of these, paths beside what is read
            already, or two verdicts of one judge on one sample.
    """
    inputs = flattened(inputs)
    if not inputs:
        raise VievalError(f"no results; pass {_INPUTS}")
    paths = paths_of(inputs)
    if len(paths) == len(inputs):
        return load_results(paths, labels, partial)
    if paths:
        raise VievalError(
            f"{paths[0]}: paths and verdicts cannot be mixed; pass only paths, or "
            "only verdicts"
        )
    if len(inputs) == 1 and isinstance(inputs[0], Results):
        return inputs[0]
    runs = tuple(value for value in inputs if isinstance(value, Run))
    if len(runs) == len(inputs):
        return Results(runs)
    records = list(chain.from_iterable(map(_records_of, inputs)))
    results = results_of(records)
    if len(results.records) < len(records):
        sample_count = len(results.records)
        raise VievalError(
            f"{len(records)} verdicts cover {plural(sample_count, 'sample')}; pass one "
            "verdict per judge and sample, and number the images of a prompt with `draw`"
        )
    return results


def flattened(inputs: Sequence[Input]) -> list[Input]:
    """Inputs, with those that are lists of them in the lists' places."""
    flat = []
    for value in inputs:
        flat += flattened(value) if isinstance(value, (list, tuple)) else [value]
    return flat


def paths_of(inputs: Sequence[Input]) -> list[Path]:
    """The inputs that are paths."""
    return [
        path_of(os.fspath(path))
        for path in inputs
        if isinstance(path, (str, os.PathLike))
    ]


def _records_of(value: Input) -> Sequence[Record]:
    """The records that are passed in one way or another."""
    from vieval_plugin.api.verdicts import Verdicts
    from vieval_plugin.results.flat_table import records_of_rows

    if isinstance(value, Record):
        return [value]
    if isinstance(value, Run):
        return value.all_records
    if isinstance(value, Verdicts):
        return value.records
    if hasattr(value, "columns"):
        for method, arguments in _ROW_METHODS.items():
            rows = getattr(value, method, None)
            if rows:
                return records_of_rows(rows(*arguments))
    raise VievalError(f"{described(value)} does not contain verdicts; pass {_INPUTS}")


def _find_benchmarks(folders: Sequence[str]) -> None:
    for folder in folders:
        benchmark_registry.benchmark(folder)


def _conclusion(
    results: Results,
    report: Report,
    sentences: Sequence[str],
    options: Config,
    comparison: PrintedComparison | None = None,
) -> Conclusion:
    """The conclusion of a comparison or a report."""
    is_fine = not results.unreadable and not (comparison and comparison.failed)
    outcome = ExitCode.FINE if is_fine else ExitCode.ERROR
    build = BuildResult(outcome, report.answers, tables=tables_of(report))
    return Conclusion(
        build=build,
        lines=tuple(sentences),
        options=options,
        report=report,
        unreadable=results.unreadable,
        comparison=comparison,
    )
