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
PROMPT = "a lighthouse on a cliff at dusk, waves below, oil on canvas " * 4
REASON = "The lighthouse stands where it was asked for. " * 40
RATIONALE = "It has what was asked for, in a style that fits. " * 20
MOST_MEGABYTES = 15
MOST_SECONDS = 2


def pictures(folder: Path, count: int, side: int) -> list[Path]:
    """JPEG files no two of which are the same: fifty photographs, and copies of them with a few
    more bytes at the end.
    """
    files = photographs(folder, min(count, DIFFERENT), side)
    contents = [file.read_bytes() for file in files]
    for number in range(len(files), count):
        file = folder / f"copy{number:05}.jpg"
        file.write_bytes(contents[number % len(contents)] + b"%08d" % number)
        files.append(file)
    return files


def results(files: list[Path], judges: int) -> Results:
    """Results of judges on five image models' outputs for as many prompts as there are
    photographs.
    """
    rng = np.random.default_rng(0)
    samples = []
    for number in range(MODELS * len(files)):
        model = f"model {number % MODELS}"
        identity = SampleId("imagenhub", "tig", model, f"prompt {number // MODELS}")
        image = Image(files[number % len(files)])
        sample = Sample(identity, {"output": image}, {"prompt": PROMPT}, kind="tig")
        samples.append(sample)
    ratings = rng.integers(0, 5, len(samples)) / 4
    runs = []
    for number in range(judges):
        noise = number / judges
        runs.append(_run(f"judge {number:02}", noise, samples, ratings, rng))
    return Results(tuple(runs))


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
        record = record_of(sample, _verdict(rating, noise, rng), source)
        rated = replace(record, ratings={"O": (float(rating),)})
        records.append((rated,))
    return Run(
        label,
        "imagenhub",
        "viescore",
        ASPECTS,
        {"tig": records},
        setting="0shot",
        model=label,
    )


def _verdict(rating: float, noise: float, rng: np.random.Generator) -> Verdict:
    """A verdict drawn around a rating."""
    scores = {}
    for aspect in ASPECTS:
        score = np.clip(rating + rng.normal(0, noise), 0, 1)
        scores[aspect] = float(score)
    step = Step(("SC",), Status.OK, (scores["SC"],), REASON)
    return Verdict(scores, Status.OK, RATIONALE, (step,))


def made(files: list[Path], judges: int, out: Path) -> Cost:
    """The cost of a report."""
    runs = results(files, judges)
    with costs() as cost:
        write_report(runs, out, StatisticsOptions())
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = pictures(folder, given.photographs, given.side)
        cost = in_own_process(made, files, given.judges, folder / "out")
        page = folder / "out" / PAGE
        empty = folder / "empty.html"
        empty.write_text("<!doctype html><title>empty</title>")
        seconds = min(opened(page) for _ in range(3))
        empty_seconds = min(opened(empty) for _ in range(3))
        text = page.read_text(encoding="utf-8")
    print(conditions())
    caption = re.search(r"Gallery</h2>\s*<p>(.*?)</p>", text)
    print(caption[1] if caption else "The page does not say what it shows.")
    megabytes = len(text.encode()) / 1e6
    columns = {
        "verdicts": ",",
        "CPU s to make": ".0f",
        "peak MiB": ".0f",
        "MB": ".1f",
        "cards": "",
        "CPU s to open": ".2f",
        "of an empty page": ".2f",
    }
    row = [
        given.photographs * MODELS * given.judges,
        cost.cpu,
        cost.peak,
        megabytes,
        text.count("<article"),
        seconds,
        empty_seconds,
    ]
    table(columns, [row])
    assert megabytes <= MOST_MEGABYTES, f"the page has {megabytes:.1f} MB"
    page_seconds = seconds - empty_seconds
    assert page_seconds <= MOST_SECONDS, (
        f"the browser takes {page_seconds:.1f} s for the page alone"
    )


if __name__ == "__main__":
    main()
