"""Types that cross the border between judges, backends and hosts.

A judge is a generator without I/O. It yields lists of asks that do not depend on each other, is sent their replies in
the same order, and returns a verdict::

    def judge(sample: Sample) -> Generator[list[Ask], list[Reply], Verdict]: ...

Everything here is frozen data; only these types cross the border between judges, backends and hosts.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.arguments import named_arguments, require, require_all, require_mapping


class Status(StrEnum):
    """Outcome of a reply or a verdict, from best to worst.

    `not_applicable`: the sample lacks what the judge asks about, or is of a kind it does not know; no statistic sees
    it. `no_image`: the generator made no image, or a file that nobody can read, so there is nothing to judge.
    `guessed`: in a replay, a reply that could not be read and for which those who recorded it made up a number.
    `missing`: a replay holds no verdict of the sample.
    """

    OK = "ok"
    REPAIRED = "repaired"
    PARSE_FAILURE = "parse_failure"
    REFUSAL = "refusal"
    API_ERROR = "api_error"
    TOOL_ERROR = "tool_error"
    NOT_APPLICABLE = "not_applicable"
    NO_IMAGE = "no_image"
    GUESSED = "guessed"
    MISSING = "missing"

    @property
    def usable(self) -> bool:
        """Return whether scores were read from the reply."""
        return self in (Status.OK, Status.REPAIRED)


def worst(statuses: Sequence[Status]) -> Status:
    """The status of a whole: that of its worst part, `ok` for no parts."""
    return max(statuses, key=_FROM_BEST.__getitem__, default=Status.OK)


_FROM_BEST = {status: severity for severity, status in enumerate(Status)}

FAILED_CALLS = (Status.API_ERROR, Status.TOOL_ERROR)
"""Statuses without a score because a call or a tool failed, which may come out otherwise another time."""


CONDITION_ROLES = ("source", "mask", "subject", "control", "concepts")
"""Images that a generator is given, in the order in which it is shown them."""


@dataclass(frozen=True)
class TableCell:
    """Cell of a table."""

    file: pathlib.Path
    """File of the table."""
    row: int
    """Number of the row, from 0."""
    column: str
    """Name of the column."""


@named_arguments
@dataclass(frozen=True)
class Image:
    """Image file, by path or by its bytes as they were written; nothing is read or decoded here."""

    source: pathlib.Path | bytes
    """Path of the file, or its bytes."""
    origin: str | TableCell = field(default="", compare=False)
    """Address that it was fetched from, or cell of a table that holds its bytes; empty for a file of its own."""
    sha256: str = field(default="", compare=False)
    """Digest of the file when it was judged, where that is known."""

    def __post_init__(self) -> None:
        require(self.source, (pathlib.Path, bytes), "Image.source", "a pathlib.Path or the bytes of a file")

    def __repr__(self) -> str:
        source = f"{len(self.source)} bytes" if isinstance(self.source, bytes) else str(self.source)
        return f"Image({source})"


@named_arguments
@dataclass(frozen=True)
class SampleId:
    """Identity of an output image of a benchmark."""

    benchmark: str
    """Name of the benchmark."""
    part: str
    """One of the benchmark's own, such as `527` or `tie`."""
    image_model: str
    """Generator or editor; empty in the id of a contest, which several are in."""
    uid: str
    """Name of the sample within its part."""
    draw: int = 0
    """Number of the image among those that one image model made under the same conditions, from 0."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "draw" and not isinstance(value, str):
                require(value, str, f"SampleId.{name}", "a text, which may be empty")
        require(self.draw, int, "SampleId.draw", "a whole number from 0")

    def __str__(self) -> str:
        suffix = [f"draw {self.draw}"] if self.draw else []
        return "/".join([self.benchmark, self.part, *filter(None, [self.image_model]), self.uid, *suffix])


@named_arguments
@dataclass(frozen=True)
class Sample:
    """Output image with its conditions and, where known, its human ratings."""

    id: SampleId
    """Identity."""
    images: Mapping[str, Image]
    """Images by role: `output`, `source`, `mask`, `subject`, `control`, `concepts`, `frame_0`, ..., `view_0`, ..."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts by name: `prompt`, `instruction`, `subject`."""
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """A value for each annotator by aspect, on the benchmark's own scale (ImagenHub's is [0, 1])."""
    tags: tuple[str, ...] = ()
    """The benchmark's skill tags, of which a sample may have many."""
    kind: str = ""
    """One of the seven task codes (`tig`, `tie`, ...); the part's name where nothing else is given."""
    group: str = ""
    """Cluster of the bootstrap; the uid where nothing else is given."""
    place: tuple[int, ...] = ()
    """Place in the group (the image's and the text's number), where that matters."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """Notes of annotators beside the ratings, as JSON values by name."""
    category: str = ""
    """The one heading that it stands under, if any."""

    def __post_init__(self) -> None:
        require(self.id, SampleId, "Sample.id", "SampleId(benchmark, part, image_model, uid)")
        require_mapping(
            self.images, Image, "Sample.images", 'an Image by role: {"output": Image(pathlib.Path("x.png"))}'
        )
        require_mapping(self.texts, str, "Sample.texts", 'texts by name: {"prompt": "a red cube"}')
        require_mapping(self.ratings, tuple, "Sample.ratings", 'a number a rater by aspect: {"SC": (0.5, 1.0)}')
        require(self.kind, str, "Sample.kind", 'a text such as "tig", or leave it out')
        object.__setattr__(self, "tags", require_all(self.tags, str, "Sample.tags", "a tuple of texts"))
        object.__setattr__(self, "kind", self.kind or self.id.part)
        object.__setattr__(self, "group", self.group or self.id.uid)


OUTPUTS = ("output", "frame_0", "view_0")
"""The roles of which a sample has at least one; for `Needs`."""


def outputs(sample: Sample) -> list[tuple[str, Image]]:
    """The images a sample is judged by, with their roles: its frames, else its views, else its output.

    >>> from vieval_plugin.judges.protocol import SampleId
    >>> frames = {f"frame_{number}": Image(b"") for number in (10, 9)}
    >>> sample = Sample(SampleId("own", "tig", "mine", "1"), {"output": Image(b""), **frames})
    >>> [role for role, _ in outputs(sample)]
    ['frame_9', 'frame_10']
    """
    for kind in ("frame_", "view_"):
        roles = sorted(
            (role for role in sample.images if role.startswith(kind)), key=lambda r: int(r.removeprefix(kind))
        )
        if roles:
            return [(role, sample.images[role]) for role in roles]
    return [("output", sample.images["output"])]


Path: TypeAlias = tuple[str, ...]
"""Where a question stands among those of its sample, outermost first: `("intrinsic", "2", "score")`."""


@dataclass(frozen=True)
class Message:
    """Turn of a conversation; the order of texts and images in `parts` is the order the backbone sees."""

    role: Literal["system", "user", "assistant"]
    """Speaker."""
    parts: tuple[str | Image, ...]
    """Texts and images in the order in which the backbone sees them."""


@dataclass(frozen=True)
class Chat:
    """Ask for a text in answer to a conversation."""

    messages: tuple[Message, ...]
    """The conversation."""
    path: Path
    """Name of the question in traces; no two questions of a sample have the same, but reminders of one."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the answer should satisfy; a backend enforces it where its server can."""
    max_tokens: int = 1024
    """Longest answer."""
    backbone: str = "judge"
    """Name of the model that answers."""
    stop_repeating: bool = False
    """Have a server that can end an answer that goes round in circles."""


@dataclass(frozen=True)
class Likelihood:
    """Ask for the probability of each continuation as the beginning of the next assistant turn.

    `first_token`: that the turn's first token is the continuation, which should be one token; one that is not has
    probability 0. `beginning`: that the turn begins with the continuation's tokens, however many, and not with those
    of a longer continuation of the same ask: "1" is none where "10" follows. `sequence_mean`: the geometric mean of
    the probabilities of the continuation's tokens and of the end of the turn after them.
    """

    messages: tuple[Message, ...]
    """The conversation."""
    continuations: tuple[str, ...]
    """Texts whose probabilities are asked for."""
    path: Path
    """As that of `Chat`."""
    definition: Literal["first_token", "beginning", "sequence_mean"] = "first_token"
    """Meaning of the probability."""
    backbone: str = "judge"
    """Name of the model that answers."""


@dataclass(frozen=True)
class UseTool:
    """Ask for a named image tool to be run."""

    tool: str
    """Name of the tool."""
    arguments: Mapping[str, Any]
    """The tool's own (images, phrases, boxes), all hashable."""
    path: Path
    """As that of `Chat`."""


@dataclass(frozen=True)
class Box:
    """Rectangle of an image in pixels."""

    left: int
    """First column."""
    top: int
    """First row."""
    right: int
    """Column after the last."""
    bottom: int
    """Row after the last."""


@dataclass(frozen=True)
class Measure:
    """Ask for a named image metric."""

    metric: str
    """Name of the metric."""
    images: Mapping[str, Image]
    """Images by the metric's own roles."""
    path: Path
    """As that of `Chat`."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The sample's texts."""
    backbone: str = ""
    """Name of the scorer that answers, where the metric is a network's."""


Ask: TypeAlias = Chat | Likelihood | UseTool | Measure


@dataclass(frozen=True)
class Text:
    """Answer of a backbone to `Chat`."""

    text: str
    """As it came, less what its server sets apart as thinking."""
    input_tokens: int | None = None
    """Tokens of the question."""
    output_tokens: int | None = None
    """Tokens of the answer."""
    cut: bool | None = None
    """True where its token limit ended it; None where a host or a log does not tell."""
    notes: tuple[str, ...] = ()
    """Findings of the backend's own, for the verdict."""


@dataclass(frozen=True)
class Measurement:
    """Value of a metric."""

    value: float
    """In the metric's own unit."""
    by: str = ""
    """Network that gave it and its version, where it was one."""
    notes: tuple[str, ...] = ()
    """As those of `Text`."""


@dataclass(frozen=True)
class Probabilities:
    """Lowest and highest that the probability of each continuation of a `Likelihood` can be, in order, in [0, 1]."""

    low: tuple[float, ...]
    """Lowest; equal to the highest where it is known."""
    high: tuple[float, ...]
    """Highest; apart where a server listed only its likeliest tokens and this was not among them."""
    notes: tuple[str, ...] = ()
    """As those of `Text`."""


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool; each field may be absent."""

    boxes: tuple[Box, ...] = ()
    """Boxes, best or largest first."""
    text: str = ""
    """Lines of text."""
    image: Image | None = None
    """Image to look at."""
    by: str = ""
    """Model that found it and its version, where it was one."""


@dataclass(frozen=True)
class Failure:
    """Ask that brought no answer."""

    status: Status
    """Way in which it failed."""
    reason: str
    """Cause in words."""


Reply: TypeAlias = Text | Probabilities | Measurement | ToolResult | Failure


@dataclass(frozen=True)
class Step:
    """Question of a verdict's trace."""

    path: Path
    """That of the ask."""
    status: Status
    """Outcome."""
    scores: tuple[float, ...] = ()
    """Sub-scores read from the answer on the rubric's own scale."""
    answer: str = ""
    """Answer word for word."""
    reason: str = ""
    """The backbone's reasoning where something was read, else why nothing was."""
    attempt: int = 0
    """0 for the question itself, 1, 2, ... for its reminders."""
    bounds: tuple[float, float] | None = None
    """Interval that a probability lies in, in [0, 1], or the difference of two, in [-1, 1]."""
    recorded: tuple[float, ...] = ()
    """Numbers that a log has for this answer and that are no scores: guesses, and what no live reply could have."""
    cut: bool | None = None
    """The answer's own."""

    @property
    def failure(self) -> str:
        """Reason that nothing was read, with the beginning of the reply where there is one."""
        quoted = self.reason and self.answer and self.status is Status.PARSE_FAILURE
        return f"{self.reason}; the reply: {self.answer[:120]!r}" if quoted else self.reason

    @property
    def label(self) -> str:
        """The path in words, for people."""
        return "/".join(self.path) + (f" (reminder {self.attempt})" if self.attempt else "")


@dataclass(frozen=True)
class Choice:
    """Choice of a verdict on a contest: whichever of these its judge gives."""

    votes: Mapping[str, str] = field(default_factory=dict)
    """Answer by order (`forward`, `reverse`), about the candidates in the contest's order; without unread orders."""
    preferences: Mapping[str, float] = field(default_factory=dict)
    """By order, how much likelier the first was called better than the second, in [-1, 1]."""
    scores: tuple[Mapping[str, float], ...] = ()
    """Scores of each candidate by aspect, as in a `Verdict`."""
    recorded: tuple[Mapping[str, float], ...] = ()
    """These with the numbers that a log keeps apart; empty where it keeps none."""


@dataclass(frozen=True)
class Verdict:
    """Result of a judge for a sample, or for a contest."""

    scores: Mapping[str, float]
    """[0, 1] by aspect (`SC`, `PQ`, `O`), a metric's [-1, 1], higher being better; without those not rated."""
    status: Status
    """Worst of the steps that decide."""
    rationale: str = ""
    """Reasons in words."""
    trace: tuple[Step, ...] = ()
    """Questions and answers."""
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ends of each score that is known to an interval only."""
    findings: tuple[str, ...] = ()
    """What is counted over a run, such as a violated rule of a structure or a plan that names no tool."""
    recorded: Mapping[str, float] = field(default_factory=dict)
    """Aspects as they would be with the numbers that its steps keep apart; empty where none does."""
    choice: Choice | None = None
    """Of contests only."""

    @property
    def reason(self) -> str:
        """Reason that it is not whole: what the worst of its steps says; empty for a verdict that can be used."""
        reasons = [step.failure for step in self.trace if step.status is self.status and step.reason]
        return "" if self.status.usable else next(iter(reasons), "")


Program: TypeAlias = Generator[list[Ask], list[Reply], Verdict]
Judge: TypeAlias = Callable[[Sample], Program]
