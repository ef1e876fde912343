"""Types that cross the border between judges, backends and hosts.

A judge is a generator without I/O. It yields lists of asks that do not depend on each other, is
sent their replies in the same order, and returns a verdict::

    def judge(sample: Sample) -> Asking[Verdict]: ...

Everything here is frozen data; only these types cross the border between judges, backends and
hosts.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias, TypeVar

from vieval_plugin.judges.arguments import (
    named_arguments,
    require,
    require_all,
    require_mapping,
)


class Status(StrEnum):
    """Outcome of a reply or a verdict, from best to worst.

    `not_applicable`: the sample lacks what the judge asks about, or has an unknown
    kind; it is excluded from all statistics. `no_image`: the generator made no image,
    or an unreadable file, so there is nothing to judge.
    `guessed`: in a replay, a reply that could not be read and for which those who recorded it made
    up a number.
    `missing`: a replay holds no verdict of the sample. `not_asked`: of a question that was left
    out, as nobody wanted its answer or it could change nothing; no verdict has it, and it is no
    failure.
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
    NOT_ASKED = "not_asked"

    @property
    def usable(self) -> bool:
        """Return whether scores were read from the reply."""
        return self in (Status.OK, Status.REPAIRED)


def worst(statuses: Sequence[Status]) -> Status:
    """The status of a whole: that of its worst part, `ok` for no parts."""
    return max(statuses, key=_FROM_BEST.__getitem__, default=Status.OK)


_FROM_BEST = {status: severity for severity, status in enumerate(Status)}

#: Statuses without a score because a call or a tool failed, which may succeed on a
#: retry.
FAILED_CALLS = (Status.API_ERROR, Status.TOOL_ERROR)


#: Beginning of a finding on a sampling field that the model refuses, without which a score may mean
#: something else.
NOT_SENT = "not sent: "

#: JSON schema of an answer.
Schema: TypeAlias = Mapping[str, Any]
#: Sub-scores of an answer.
Scores: TypeAlias = tuple[float, ...]
#: Lowest and highest value.
Interval: TypeAlias = tuple[float, float]

#: Name of the text of a sample that an image must show, one line each.
WANTED_TEXT = "wanted_text"

#: Name of the text of a sample that has the objects that an image should show, in GenEval's form.
WANTED_OBJECTS = "objects"

#: Images that a generator is given, in the order in which it is shown them.
CONDITION_ROLES = ("source", "mask", "subject", "control", "concepts")

#: Image that an output is compared with and that no generator is given, such as the output of
#: another backend.
REFERENCE = "reference"


@dataclass(frozen=True)
class TableCell:
    """Cell of a table."""

    #: File of the table.
    file: pathlib.Path
    row: int
    column: str


@named_arguments
@dataclass(frozen=True)
class Image:
    """Image file, by path or by its bytes as they were written; nothing is read or decoded here."""

    #: Path of the file, or its bytes.
    source: pathlib.Path | bytes
    #: Address that it was fetched from, or cell of a table that holds its bytes; empty for a file
    #: of its own.
    origin: str | TableCell = field(default="", compare=False)
    #: Digest of the file when it was judged, where that is known.
    sha256: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        require(
            self.source,
            (pathlib.Path, bytes),
            "Image.source",
            "a pathlib.Path or the bytes of a file",
        )

    def __repr__(self) -> str:
        if isinstance(self.source, bytes):
            return f"Image({len(self.source)} bytes)"
        return f"Image({self.source})"


@named_arguments
@dataclass(frozen=True)
class SampleId:
    """Identity of an output image of a benchmark."""

    benchmark: str
    #: One of the benchmark's own, such as `527` or `tie`.
    part: str
    #: Generator or editor; empty in the id of a contest, which several are in.
    image_model: str
    #: Name of the sample within its part.
    uid: str
    #: Number of the image among those that one image model made under the same conditions, from 0.
    draw: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "draw" and not isinstance(value, str):
                require(
                    value,
                    str,
                    f"SampleId.{name}",
                    "a string, which may be empty",
                )
        require(
            self.draw,
            int,
            "SampleId.draw",
            "a non-negative integer",
        )

    def __str__(self) -> str:
        image_model = [self.image_model] if self.image_model else []
        draw = [f"draw {self.draw}"] if self.draw else []
        return "/".join(
            [
                self.benchmark,
                self.part,
                *image_model,
                self.uid,
                *draw,
            ]
        )


@named_arguments
@dataclass(frozen=True)
class Sample:
    """Output image with its conditions and, where known, its human ratings."""

    #: Identity.
    id: SampleId
    #: Images by role: `output`, `source`, `mask`, `subject`, `control`, `concepts`, `frame_0`, ...,
    #: `view_0`, ...
    images: Mapping[str, Image]
    #: Texts by name: `prompt`, `instruction`, `subject`, `wanted_text`.
    texts: Mapping[str, str] = field(default_factory=dict)
    #: A value for each annotator by aspect, on the benchmark's own scale (ImagenHub's is [0, 1]).
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    #: The benchmark's skill tags, of which a sample may have many.
    tags: tuple[str, ...] = ()
    #: One of the seven task codes (`tig`, `tie`, ...); the part's name where nothing else is given.
    kind: str = ""
    #: Cluster of the bootstrap; the uid where nothing else is given.
    group: str = ""
    #: Place in the group (the image's and the text's number), where that matters.
    place: tuple[int, ...] = ()
    #: Notes of annotators beside the ratings, as JSON values by name.
    annotations: Mapping[str, Any] = field(default_factory=dict)
    #: Category, if any.
    category: str = ""

    def __post_init__(self) -> None:
        require(
            self.id,
            SampleId,
            "Sample.id",
            "SampleId(benchmark, part, image_model, uid)",
        )
        require_mapping(
            self.images,
            Image,
            "Sample.images",
            'Images by role: {"output": Image(pathlib.Path("x.png"))}',
        )
        require_mapping(
            self.texts,
            str,
            "Sample.texts",
            'strings by name: {"prompt": "a red cube"}',
        )
        require_mapping(
            self.ratings,
            tuple,
            "Sample.ratings",
            'a tuple of numbers for each aspect, one per rater: {"SC": (0.5, 1.0)}',
        )
        require(
            self.kind,
            str,
            "Sample.kind",
            'a string such as "tig", or omit it',
        )
        object.__setattr__(
            self,
            "tags",
            require_all(
                self.tags,
                str,
                "Sample.tags",
                "a tuple of strings",
            ),
        )
        object.__setattr__(self, "kind", self.kind or self.id.part)
        object.__setattr__(self, "group", self.group or self.id.uid)


#: The roles of which a sample has at least one; for `Needs`.
OUTPUTS = ("output", "frame_0", "view_0")


def outputs(sample: Sample) -> list[tuple[str, Image]]:
    """The images a sample is judged by, with their roles: its frames, else its views, else its
    output.

    >>> from vieval_plugin.judges.protocol import SampleId
    >>> frames = {f"frame_{number}": Image(b"") for number in (10, 9)}
    >>> sample = Sample(SampleId("own", "tig", "mine", "1"), {"output": Image(b""), **frames})
    >>> [role for role, _ in outputs(sample)]
    ['frame_9', 'frame_10']
    """
    for kind in ("frame_", "view_"):
        numbers = [
            role.removeprefix(kind) for role in sample.images if role.startswith(kind)
        ]
        if numbers:
            roles = [f"{kind}{number}" for number in sorted(numbers, key=int)]
            return [(role, sample.images[role]) for role in roles]
    return [("output", sample.images["output"])]


#: Where a question stands among those of its sample, outermost first: `("intrinsic", "2",
#: "score")`.
Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Message:
    """Turn of a conversation; the order of texts and images in `parts` is the order the backbone
    sees.
    """

    #: Speaker.
    role: Literal["system", "user", "assistant"]
    #: Texts and images in the order in which the backbone sees them.
    parts: tuple[str | Image, ...]


@dataclass(frozen=True)
class Chat:
    """Ask for a text in answer to a conversation."""

    #: The conversation.
    messages: tuple[Message, ...]
    #: Name of the question in traces; no two questions of a sample have the same, but reminders of
    #: one.
    path: Path
    #: JSON schema that the answer should satisfy; a backend enforces it where its server can.
    schema: Schema | None = None
    #: Longest answer.
    max_tokens: int = 1024
    #: Name of the model that answers.
    backbone: str = "judge"
    #: Stop a repetitive answer, if the server can.
    stop_repeating: bool = False


@dataclass(frozen=True)
class Likelihood:
    """Ask for the probability of each continuation as the beginning of the next assistant turn.

    `first_token`: that the turn's first token is the continuation, which should be one token; one
    that is not has probability 0. `beginning`: that the turn begins with the continuation's tokens,
    however many, and not with those of a longer continuation of the same ask: "1" does
    not match if the turn begins with "10". `sequence_mean`: the geometric mean of the
    probabilities of the continuation's tokens and of the end of the turn after them.
    """

    #: The conversation.
    messages: tuple[Message, ...]
    #: Texts whose probabilities are asked for.
    continuations: tuple[str, ...]
    #: As that of `Chat`.
    path: Path
    #: Meaning of the probability.
    definition: Literal["first_token", "beginning", "sequence_mean"] = "first_token"
    #: Name of the model that answers.
    backbone: str = "judge"


@dataclass(frozen=True)
class UseTool:
    """Ask for a named image tool to be run."""

    tool: str
    #: The tool's own (images, phrases, boxes), all hashable.
    arguments: Mapping[str, Any]
    #: As that of `Chat`.
    path: Path


@dataclass(frozen=True)
class Box:
    """Rectangle of an image in pixels."""

    #: First column.
    left: int
    #: First row.
    top: int
    #: Column after the last.
    right: int
    #: Row after the last.
    bottom: int


@dataclass(frozen=True)
class Measure:
    """Ask for a named image metric."""

    metric: str
    #: Images by the metric's own roles.
    images: Mapping[str, Image]
    #: As that of `Chat`.
    path: Path
    #: The sample's texts.
    texts: Mapping[str, str] = field(default_factory=dict)
    #: Name of the scorer that answers, where the metric is a network's.
    backbone: str = ""


Ask: TypeAlias = Chat | Likelihood | UseTool | Measure


@dataclass(frozen=True)
class Text:
    """Answer of a backbone to `Chat`."""

    #: As it came, less what its server sets apart as thinking.
    text: str
    #: Tokens of the question.
    input_tokens: int | None = None
    #: Tokens of the answer.
    output_tokens: int | None = None
    #: True where its token limit ended it; None where a host or a log does not tell.
    cut: bool | None = None
    #: Findings of the backend's own, for the verdict.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """Value of a metric."""

    #: In the metric's own unit.
    value: float
    #: Network that gave it and its version, where it was one.
    by: str = ""
    #: As those of `Text`.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probabilities:
    """Lowest and highest that the probability of each continuation of a `Likelihood` can be, in
    order, in [0, 1].
    """

    #: Lowest; equal to the highest where it is known.
    low: tuple[float, ...]
    #: Highest; apart where a server listed only its likeliest tokens and this was not among them.
    high: tuple[float, ...]
    #: As those of `Text`.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool; each field may be absent."""

    #: Boxes, best or largest first.
    boxes: tuple[Box, ...] = ()
    #: Lines of text.
    text: str = ""
    #: Image to look at.
    image: Image | None = None
    #: Model that found it and its version, where it was one.
    by: str = ""


@dataclass(frozen=True)
class Failure:
    """An ask without an answer."""

    #: Way in which it failed.
    status: Status
    #: Cause in words.
    reason: str


Reply: TypeAlias = Text | Probabilities | Measurement | ToolResult | Failure


@dataclass(frozen=True)
class Step:
    """Question of a verdict's trace."""

    #: That of the ask.
    path: Path
    #: Outcome.
    status: Status
    #: Sub-scores read from the answer on the rubric's own scale.
    scores: Scores = ()
    #: Answer word for word.
    answer: str = ""
    #: The backbone's reasoning where something was read, else why nothing was.
    reason: str = ""
    #: 0 for the question itself, 1, 2, ... for its reminders.
    attempt: int = 0
    #: Interval that a probability lies in, in [0, 1], or the difference of two, in [-1, 1].
    bounds: Interval | None = None
    #: Numbers that a log has for this answer and that are no scores: guesses, and what no live
    #: reply could have.
    recorded: Scores = ()
    #: The answer's own.
    cut: bool | None = None

    @property
    def failure(self) -> str:
        """Reason why the reply could not be read, with its beginning if there is one."""
        if self.reason and self.answer and self.status is Status.PARSE_FAILURE:
            return f"{self.reason}; the reply: {self.answer[:120]!r}"
        return self.reason

    @property
    def label(self) -> str:
        """The path in words, for people."""
        path = "/".join(self.path)
        return f"{path} (reminder {self.attempt})" if self.attempt else path


#: Steps of a verdict, in order.
Trace: TypeAlias = tuple[Step, ...]


def failed_step(
    reply: Reply,
    path: Path,
    expected: str,
    status: Status = Status.API_ERROR,
    attempt: int = 0,
) -> Step:
    """Step for a reply that failed or has an unexpected type."""
    reason = f"expected {expected}, got {type(reply).__name__}"
    if isinstance(reply, Failure):
        status = reply.status
        reason = reply.reason
    return Step(path, status, reason=reason, attempt=attempt)


@dataclass(frozen=True)
class Choice:
    """Choice of a verdict on a contest: whichever of these its judge gives."""

    #: Answer by order (`forward`, `reverse`), about the candidates in the contest's order; without
    #: unread orders.
    votes: Mapping[str, str] = field(default_factory=dict)
    #: By order, how much likelier the first was called better than the second, in [-1, 1].
    preferences: Mapping[str, float] = field(default_factory=dict)
    #: Scores of each candidate by aspect, as in a `Verdict`.
    scores: tuple[Mapping[str, float], ...] = ()
    #: These with the numbers that a log keeps apart; empty where it keeps none.
    recorded: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Result of a judge for a sample, or for a contest."""

    #: [0, 1] by aspect (`SC`, `PQ`, `O`), a metric's [-1, 1], higher being better; without those
    #: not rated.
    scores: Mapping[str, float]
    #: Worst of the steps that decide.
    status: Status
    #: Reasons in words.
    rationale: str = ""
    #: Questions and answers.
    trace: Trace = ()
    #: Ends of each score that is known to an interval only.
    bounds: Mapping[str, Interval] = field(default_factory=dict)
    #: What is counted over a run, such as a violated rule of a structure or a plan that names no
    #: tool.
    findings: tuple[str, ...] = ()
    #: Aspects as they would be with the numbers that its steps keep apart; empty where none does.
    recorded: Mapping[str, float] = field(default_factory=dict)
    #: Of contests only.
    choice: Choice | None = None

    @property
    def reason(self) -> str:
        """Reason of the worst of its steps; empty for a usable verdict."""
        if not self.status.usable:
            for step in self.trace:
                if step.status is self.status and step.reason:
                    return step.failure
        return ""


def not_applicable(reason: str, path: Path = ("sample",)) -> Verdict:
    """The verdict on what a judge cannot be asked about."""
    step = Step(path, Status.NOT_APPLICABLE, reason=reason)
    return Verdict({}, step.status, trace=(step,))


T = TypeVar("T")

#: Asks questions, gets their replies, and returns what they came to.
Asking: TypeAlias = Generator[list[Ask], list[Reply], T]
Program: TypeAlias = Asking[Verdict]
Judge: TypeAlias = Callable[[Sample], Program]
