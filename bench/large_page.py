"""`vieval report` of a large run: 20 judges of 5,000 images, which are 1,000 photographs of 12 megapixels.

The verdicts are drawn at random around the ratings. The report runs in a process of its own; its
page is opened in Debian's chromium as the tests of pages open theirs (`make test-page` installs
what that needs), and the CPU seconds are those of all of the browser's processes from the open
window to the drawn page, beside those of an empty page.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import Cost, conditions, costs, in_own_process, photographs, table

from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Step, Verdict
from vieval_plugin.records import Provenance, Record, Run, record_of
from vieval_plugin.report.writing import PAGE, write_report
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from page.browser import Browser

MODELS = 5
ASPECTS = ("SC", "PQ", "O")
DIFFERENT = 50
MOST_MEGABYTES = 15
MOST_SECONDS = 2


def pictures(folder: Path, count: int, side: int) -> list[Path]:
    """JPEG files no two of which are the same: fifty photographs, and copies of them with a few
    more bytes at the end.
    """
    files = photographs(folder, min(count, DIFFERENT), side)
    texts = [file.read_bytes() for file in files]
    for number in range(len(files), count):
        files.append(folder / f"copy{number:05}.jpg")
        files[-1].write_bytes(texts[number % len(texts)] + b"%08d" % number)
    return files


def results(files: list[Path], judges: int) -> Results:
    """Results of judges on five image models' outputs for as many prompts as there are
    photographs.
    """
    rng = np.random.default_rng(0)
    samples = [
        Sample(
            SampleId(
                "imagenhub",
                "tig",
                f"model {number % MODELS}",
                f"prompt {number // MODELS}",
            ),
            {"output": Image(files[number % len(files)])},
            {
                "prompt": "a lighthouse on a cliff at dusk, waves below, oil on canvas "
                * 4
            },
            kind="tig",
        )
        for number in range(MODELS * len(files))
    ]
    ratings = rng.integers(0, 5, len(samples)) / 4
    return Results(
        tuple(
            _run(f"judge {number:02}", number / judges, samples, ratings, rng)
            for number in range(judges)
        )
    )


def _run(
    label: str,
    noise: float,
    samples: list[Sample],
    ratings: np.ndarray,
    rng: np.random.Generator,
) -> Run:
    source = Provenance("viescore", ("0shot",), ASPECTS, label)
    records: list[tuple[Record, ...]] = []
    for sample, rating in zip(samples, ratings, strict=True):
        scores = {
            aspect: float(np.clip(rating + rng.normal(0, noise), 0, 1))
            for aspect in ASPECTS
        }
        trace = (
            Step(
                ("SC",),
                Status.OK,
                (scores["SC"],),
                "The lighthouse stands where it was asked for. " * 40,
            ),
        )
        verdict = Verdict(
            scores,
            Status.OK,
            "It has what was asked for, in a style that fits. " * 20,
            trace,
        )
        records.append(
            (
                replace(
                    record_of(sample, verdict, source), ratings={"O": (float(rating),)}
                ),
            )
        )
    return Run(
        label,
        "imagenhub",
        "viescore",
        ASPECTS,
        {"tig": records},
        setting="0shot",
        model=label,
    )


def made(files: list[Path], judges: int, out: Path) -> Cost:
    """The cost of a report."""
    given = results(files, judges)
    with costs() as cost:
        write_report(given, out, StatisticsOptions())
    return cost


def opened(page: Path) -> float:
    """CPU seconds that a browser takes to open a page."""
    browser = Browser()
    try:
        before = browser.cpu_seconds()
        browser.open(page, width=1440, height=900)
        assert not browser.complaints()
        return float(browser.cpu_seconds() - before)
    finally:
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=int, default=1000)
    parser.add_argument(
        "--side",
        type=int,
        default=3464,
        help="pixels of a side; 3464 makes 12 megapixels",
    )
    parser.add_argument("--judges", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = pictures(Path(folder), given.photographs, given.side)
        cost = in_own_process(made, files, given.judges, Path(folder) / "out")
        page = Path(folder) / "out" / PAGE
        empty = Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        seconds = [min(opened(file) for _ in range(3)) for file in (page, empty)]
        text = page.read_text(encoding="utf-8")
    megabytes = len(text.encode()) / 1e6
    print(conditions())
    said = re.search(r"Gallery</h2>\s*<p>(.*?)</p>", text)
    print(said[1] if said else "The page does not say what it shows.")
    header = (
        "verdicts",
        "CPU s to make",
        "peak MiB",
        "MB",
        "cards",
        "CPU s to open",
        "of an empty page",
    )
    verdicts = given.photographs * MODELS * given.judges
    row: tuple[str, ...] = (
        f"{verdicts:,}",
        f"{cost.cpu:.0f}",
        f"{cost.peak:.0f}",
        f"{megabytes:.1f}",
        str(text.count("<article")),
    )
    table(header, [(*row, *(f"{value:.2f}" for value in seconds))])
    assert megabytes <= MOST_MEGABYTES, f"the page has {megabytes:.1f} MB"
    assert seconds[0] - seconds[1] <= MOST_SECONDS, (
        f"the browser takes {seconds[0] - seconds[1]:.1f} s for the page alone"
    )


if __name__ == "__main__":
    main()
