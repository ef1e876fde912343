"""Results to make a page of, and a reader of pages."""

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from PIL import Image as Pillow

from tests.builders import a_sample, a_verdict
from tests.stored_results import result
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Verdict
from vieval_plugin.records import OWN, Provenance, Run, record_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import write_page, write_report
from vieval_plugin.results.runs import Results
from vieval_plugin.stats.options import StatisticsOptions

BENCHMARK = "vieval_demo"


def row(
    uid,
    scores,
    ratings=(),
    *,
    judge="mine",
    model="demo_a",
    part="tie",
    status=Status.OK,
    **verdict,
):
    """A row of a samples file: one verdict on one sample, with one rater's O."""
    identity = SampleId(BENCHMARK, part, model, uid)
    sample = Sample(identity, {}, ratings={"O": tuple(ratings)} if ratings else {})
    given = Verdict(scores, status, **verdict)
    source = Provenance("viescore", ("plain",), ("O",), judge)
    return result(sample, given, source)


@dataclass
class Page(HTMLParser):
    """What stands in a page: its elements with their attributes, and its text."""

    text: str
    elements: list = field(default_factory=list)
    words: list = field(default_factory=list)
    raw: dict = field(default_factory=dict)

    def __post_init__(self):
        HTMLParser.__init__(self)
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        last = self.elements[-1][0] if self.elements else ""
        if last in ("script", "style") and last not in self.raw:
            self.raw[last] = data
        else:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    def attributes(self):
        return [
            (tag, name, value or "")
            for tag, several in self.elements
            for name, value in several.items()
        ]

    @property
    def said(self):
        return " ".join(" ".join(self.words).split())


OPTIONS = StatisticsOptions(draws=100)


MADE = Provenance("viescore", ("0shot",), ("SC",), "gpt")


def inside(text, tag):
    """What stands in the first element of that name, as it is written."""
    return re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)[1]


def titled(text):
    """The title of a page."""
    return html.unescape(inside(text, "h1"))


def report_of(tmp_path, results):
    write_report(results, tmp_path / "out", OPTIONS)
    return (tmp_path / "out" / "report.html").read_text()


def generators(tmp_path, scores, judge="gpt", note="", picture=True):
    """Results on own images: scores of each prompt by generator, None for a refusal."""
    records = []
    for model, values in scores.items():
        for number, value in enumerate(values):
            path = tmp_path / f"{len(records)}.png"
            if picture:
                colour = (len(records), 40 * number % 256, 9)
                Pillow.new("RGB", (40, 30), colour).save(path)
            images = {"output": Image(path)}
            sample = a_sample(f"p{number}", model, prompt="a cat", images=images)
            score = Status.REFUSAL if value is None else {"SC": value}
            about = {} if value is None else {"rationale": note}
            records.append((record_of(sample, a_verdict(score, **about), MADE),))
    about = {"setting": "0shot", "model": judge}
    return Results((Run(judge, OWN, "viescore", ("SC",), {"tig": records}, **about),))


def page_of(page, tmp_path, results):
    if page == "report":
        return report_of(tmp_path, results)
    file = tmp_path / "out" / "rank.html"
    file.parent.mkdir(exist_ok=True)
    write_page(sections_of(results, "generators", OPTIONS), file, OPTIONS)
    return file.read_text()
