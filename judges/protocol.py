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


CONDITION_ROLES = ("source", "mask", "subject", "control", "concepts")
"""Images that a generator is given, in the order in which it is shown them."""


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: the file, the number of the row from 0, and the column."""

    file: pathlib.Path
    row: int
    column: str


@named_arguments
@dataclass(frozen=True)
class Image:
    """An image file, by path or by its bytes as they were written; nothing is read or decoded here.

    `origin` is where it came from, if not from a file of its own: the address that it was fetched from, or the cell of
    a table that holds its bytes. `sha256` is what its file had when it was judged, where that is known.
    """

    source: pathlib.Path | bytes
    origin: str | TableCell = field(default="", compare=False)
    sha256: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        require(self.source, (pathlib.Path, bytes), "Image.source", "a pathlib.Path or the bytes of a file")

    def __repr__(self) -> str:
        source = f"{len(self.source)} bytes" if isinstance(self.source, bytes) else str(self.source)
        return f"Image({source})"


@named_arguments
@dataclass(frozen=True)
class SampleId:
    """Identity of an output image of a benchmark; `part` is one of the benchmark's own, such as `527` or `tie`.

    The id of a contest, which several image models are in, names none. `draw` numbers the images that one image model
    made under the same conditions, from 0.
    """

    benchmark: str
    part: str
    image_model: str
    uid: str
    draw: int = 0

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
    """Output image with its conditions and, where known, its human ratings.

    `images` maps a role (`output`, `source`, `mask`, `subject`, `control`, `concepts`) to an image, `texts` a name
    (`prompt`, `instruction`, `subject`) to a text. Frames of a video and views of a 3D object are the roles `frame_0`,
    `frame_1`, ... and `view_0`, ... `ratings` maps an aspect to one value a rater, on the benchmark's own scale
    (ImagenHub's is [0, 1]). `tags` are a benchmark's skill tags, of which a sample may have many, and `category` is
    the one heading that it stands under, if any. `annotations` is what people wrote beside the ratings, as JSON values
    by name.

    `kind` says what the sample is and so what it is asked, one of the seven task codes (`tig`, `tie`, ...); it is the
    part's name where nothing else is given. `group` is what the bootstrap draws together, the uid where nothing else is
    given; `place` is the sample's place in its group (the image's and the text's number), where that matters.
    """

    id: SampleId
    images: Mapping[str, Image]
    texts: Mapping[str, str] = field(default_factory=dict)
    ratings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    kind: str = ""
    group: str = ""
    place: tuple[int, ...] = ()
    annotations: Mapping[str, Any] = field(default_factory=dict)
    category: str = ""

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
    parts: tuple[str | Image, ...]


@dataclass(frozen=True)
class Chat:
    """Asks for a text in answer to a conversation.

    `path` names the question in traces; no two questions of a sample have the same, but reminders of one. `schema` is a
    JSON schema the answer should satisfy; a backend enforces it where its server can. `backbone` names the model that
    answers. `stop_repeating` asks a server that can to end an answer that goes round in circles.
    """

    messages: tuple[Message, ...]
    path: Path
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 1024
    backbone: str = "judge"
    stop_repeating: bool = False


@dataclass(frozen=True)
class Likelihood:
    """Asks for the probability of each continuation as the beginning of the next assistant turn.

    `first_token`: that the turn's first token is the continuation, which should be one token; one that is not has
    probability 0. `beginning`: that the turn begins with the continuation's tokens, however many, and not with those
    of a longer continuation of the same ask: "1" is none where "10" follows. `sequence_mean`: the geometric mean of
    the probabilities of the continuation's tokens and of the end of the turn after them.
    """

    messages: tuple[Message, ...]
    continuations: tuple[str, ...]
    path: Path
    definition: Literal["first_token", "beginning", "sequence_mean"] = "first_token"
    backbone: str = "judge"


@dataclass(frozen=True)
class UseTool:
    """Asks for a named image tool to be run; `arguments` are the tool's own (images, phrases, boxes), all hashable."""

    tool: str
    arguments: Mapping[str, Any]
    path: Path


@dataclass(frozen=True)
class Box:
    """A rectangle of an image in pixels: columns `left` to `right`, rows `top` to `bottom`, the ends not included."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(frozen=True)
class Measure:
    """Asks for a named image metric; `images` maps the metric's own roles to images, `texts` are the sample's.

    `backbone` names the scorer that answers, where the metric is a network's.
    """

    metric: str
    images: Mapping[str, Image]
    path: Path
    texts: Mapping[str, str] = field(default_factory=dict)
    backbone: str = ""


Ask: TypeAlias = Chat | Likelihood | UseTool | Measure


@dataclass(frozen=True)
class Text:
    """A backbone's answer to `Chat`, as it came, less what its server sets apart as thinking.

    `cut` says that its token limit ended it, None where a host or a log does not tell. `notes` are findings of the
    backend's own, for the verdict.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cut: bool | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """The value of a metric, in the metric's own unit.

    `by` names the network that gave it and its version, where it was one; `notes` are as those of `Text`.
    """

    value: float
    by: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probabilities:
    """For each continuation of a `Likelihood`, in order, the lowest and highest its probability can be, in [0, 1].

    Equal where it is known; apart where a server listed only its likeliest tokens and this was not among them.
    `notes` are as those of `Text`.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool: boxes, best or largest first; lines of text; an image to look at. Each may be absent.

    `by` names the model that found it and its version, where it was one.
    """

    boxes: tuple[Box, ...] = ()
    text: str = ""
    image: Image | None = None
    by: str = ""


@dataclass(frozen=True)
class Failure:
    """An ask that brought no answer: `status` says in which way, `reason` what happened."""

    status: Status
    reason: str


Reply: TypeAlias = Text | Probabilities | Measurement | ToolResult | Failure


@dataclass(frozen=True)
class Step:
    """Question of a verdict's trace: what was asked, how it came out, what was answered word for word.

    `path` is that of the ask, `attempt` 0 for the question itself and 1, 2, ... for its reminders. `scores` are the
    sub-scores read from the answer on the rubric's own scale, `bounds` the interval that a probability lies in, in
    [0, 1], or the difference of two, in [-1, 1]. `reason` is the backbone's reasoning where something was read, else
    why nothing was. `recorded` are numbers that a log has for this answer and that are no scores: guesses, and what no
    live reply could have had. `cut` is the answer's own.
    """

    path: Path
    status: Status
    scores: tuple[float, ...] = ()
    answer: str = ""
    reason: str = ""
    attempt: int = 0
    bounds: tuple[float, float] | None = None
    recorded: tuple[float, ...] = ()
    cut: bool | None = None

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
    """Choice of a verdict on a contest: whichever of these its judge gives.

    `votes` maps the order in which candidates were shown (`forward`, `reverse`) to the answer, always about the
    candidates in the contest's order, and lacks an order that could not be read. `preferences` maps an order to how
    much likelier the first was called better than the second, in [-1, 1]. `scores` are those of each candidate, by
    aspect, as in a `Verdict`; `recorded` are these with the numbers that a log keeps apart, empty where it keeps none.
    """

    votes: Mapping[str, str] = field(default_factory=dict)
    preferences: Mapping[str, float] = field(default_factory=dict)
    scores: tuple[Mapping[str, float], ...] = ()
    recorded: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """A judge's result for a sample, or for a contest.

    `scores` maps an aspect (`SC`, `PQ`, `O`) to [0, 1], a metric's to [-1, 1], higher being better. It lacks those that
    could not be rated, and nothing is filled in. `status` is the worst of the steps that decide. `bounds` has, for a
    score that is known to an interval only, its ends. `findings` names what is to be counted over a run, such as a
    violated rule of a structure or a plan that names no tool. `recorded` has the aspects as they would be with the
    numbers that its steps keep apart, and nothing where none does. `choice` is there for contests only.
    """

    scores: Mapping[str, float]
    status: Status
    rationale: str = ""
    trace: tuple[Step, ...] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    recorded: Mapping[str, float] = field(default_factory=dict)
    choice: Choice | None = None

    @property
    def reason(self) -> str:
        """Reason that it is not whole: what the worst of its steps says; empty for a verdict that can be used."""
        reasons = [step.failure for step in self.trace if step.status is self.status and step.reason]
        return "" if self.status.usable else next(iter(reasons), "")


Program: TypeAlias = Generator[list[Ask], list[Reply], Verdict]
Judge: TypeAlias = Callable[[Sample], Program]
