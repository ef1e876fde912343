"""Results to make a page of, and a reader of pages."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from tests.stored_results import result
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance

BENCHMARK = "vieval_demo"


def row(uid, scores, ratings=(), *, judge="mine", model="demo_a", part="tie", status=Status.OK, **verdict):
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
        return [(tag, name, value or "") for tag, several in self.elements for name, value in several.items()]

    @property
    def said(self):
        return " ".join(" ".join(self.words).split())
