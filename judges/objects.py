"""objects: which clauses about objects hold of an image, by the boxes of a detector and the colours
that CLIP sees in them.

Source: Ghosh, Hajishirzi, Schmidt, GenEval (NeurIPS Datasets and Benchmarks 2023). The text
`objects` of a sample says which objects its image must show; nothing is read from its prompt. Boxes
are (left, top, right, bottom) in pixels, y downwards. A clause is about one of four aspects: that a
class is there at all, how many there are, their colour, their position. No model is asked.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    WANTED_OBJECTS,
    Box,
    Judge,
    Program,
    Sample,
    Status,
    ToolResult,
    UseTool,
    Verdict,
    not_applicable,
)
from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions
from vieval_plugin.text.errors import VievalError

NAME = "objects"
#: Scorer that tells colours; the detector is the scorer of the judge's name.
COLOR_SCORER = "objects_color"
ASPECTS = ("presence", "count", "color", "position")
COLORS = (
    "red",
    "orange",
    "yellow",
    "green",
    "blue",
    "purple",
    "pink",
    "brown",
    "black",
    "white",
)
RELATIONS = ("left of", "right of", "above", "below")
#: Boxes of a class that count, the surest.
MOST_OBJECTS = 16
COUNTING = "counting"
#: Share of the sides of both boxes by which their centres may differ without a relation.
_TOLERANCE = 0.1
_LEAST_OFFSET = 1e-3
_LEAST_SHARE = 0.5
_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
)
_PLURALS = {
    "person": "people",
    "knife": "knives",
    "computer mouse": "computer mice",
    "sheep": "sheep",
    "skis": "skis",
    "scissors": "scissors",
    "broccoli": "broccoli",
}
_FORM = (
    '`objects` must use the format of GenEval: {"include": [{"class": "clock", "count": 2, '
    '"color": "red"}], "exclude": [{"class": "clock", "count": 3}]}'
)

BoxSides: TypeAlias = tuple[float, float, float, float]


@dataclass(frozen=True)
class WantedObjects:
    """Entry of `include`: objects of a class that the image must show."""

    label: str
    #: Least number.
    count: int = 1
    #: One of `COLORS`; empty for any.
    color: str = ""
    #: One of `RELATIONS`, to the objects of an entry before this; empty for none.
    relation: str = ""
    #: Index of that entry.
    reference: int = 0


@dataclass(frozen=True)
class WantedScene:
    """Objects that an image must show."""

    include: tuple[WantedObjects, ...]
    #: Number by class that the image must stay below.
    exclude: tuple[tuple[str, int], ...] = ()
    #: True where numbers are what the prompt is about, for which a detector must be surer.
    is_counting: bool = False


@dataclass(frozen=True)
class DetectedObject:
    """Object that a detector found."""

    label: str
    box: BoxSides
    #: Confidence in [0, 1].
    score: float = 1.0
    #: One of `COLORS`; empty where it was not asked for.
    color: str = ""


@dataclass(frozen=True)
class Clause:
    """Clause about an image."""

    #: One of `ASPECTS`.
    aspect: str
    holds: bool
    #: Finding where it does not hold; empty where another clause has it.
    reason: str = ""


def read_scene(text: str) -> WantedScene:
    """The scene that the text `objects` of a sample asks for.

    It is a JSON object with `include` and `exclude` as GenEval has them, and perhaps its `tag`; a
    scene without one is about numbers where something is excluded.

    Raises:
        VievalError: the text has another form.
    """
    try:
        document = json.loads(text)
        include = [
            _wanted_objects(entry, number)
            for number, entry in enumerate(document["include"])
        ]
        exclude = [
            (_label(entry), _count(entry)) for entry in document.get("exclude", ())
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f": {error}" if type(error) is ValueError else ""
        raise VievalError(f"{_FORM}{reason}") from None
    if not include and not exclude:
        raise VievalError(f"{_FORM}; it has no entry")
    tag = document.get("tag", COUNTING if exclude else "")
    return WantedScene(tuple(include), tuple(exclude), tag == COUNTING)


def _wanted_objects(entry: Mapping[str, Any], number: int) -> WantedObjects:
    color = entry.get("color", "")
    if color and color not in COLORS:
        raise ValueError(f"unknown color {color!r}; known colors: {', '.join(COLORS)}")
    relation, reference = entry.get("position") or ("", 0)
    if relation and relation not in RELATIONS:
        raise ValueError(
            f"unknown position {relation!r}; known positions: {', '.join(RELATIONS)}"
        )
    if relation and reference not in range(number):
        raise ValueError("a position must refer to an earlier entry")
    return WantedObjects(
        _label(entry),
        _count(entry),
        color,
        relation,
        int(reference),
    )


def _label(entry: Mapping[str, Any]) -> str:
    label = entry["class"]
    if not isinstance(label, str) or not label.strip():
        raise ValueError(f"a class must be a non-empty string, got {json.dumps(label)}")
    return label


def _count(entry: Mapping[str, Any]) -> int:
    count = entry.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"a count must be a positive integer, got {json.dumps(count)}")
    return count


def surest(scores: ArrayLike, threshold: float) -> list[int]:
    """Indices of the scores of a class that count: above the threshold, the highest first, at
    most 16; equal ones in their order.

    >>> surest([0.2, 0.9, 0.3, 0.9], 0.3)
    [1, 3]
    """
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    order = np.argsort(-values, kind="stable")
    above = [int(index) for index in order if values[index] > threshold]
    return above[:MOST_OBJECTS]


def relations(box: BoxSides, reference: BoxSides) -> set[str]:
    """The relations of a box to another.

    >>> sorted(relations((0, 0, 10, 10), (100, 0, 110, 10)))
    ['left of']
    """
    first = np.asarray(box, float)
    second = np.asarray(reference, float)
    corner_sums = first[:2] + first[2:]
    offset = (corner_sums - second[:2] - second[2:]) / 2
    first_sides = first[2:] - first[:2]
    sides = first_sides + (second[2:] - second[:2])
    excess = np.abs(offset) - _TOLERANCE * sides
    beyond = np.maximum(excess, 0) * np.sign(offset)
    if np.all(np.abs(beyond) < _LEAST_OFFSET):
        return set()
    x, y = beyond / math.hypot(*offset)
    shares = {
        "left of": -x,
        "right of": x,
        "above": -y,
        "below": y,
    }
    return {relation for relation, share in shares.items() if share > _LEAST_SHARE}


def check_scene(
    scene: WantedScene, detected: Sequence[DetectedObject]
) -> tuple[Clause, ...]:
    """The clauses of a scene, in its order, and whether they hold of what was detected.

    Args:
        scene: which objects are wanted.
        detected: the boxes that count (`surest`), of each class the surest first.
    """
    by_label = defaultdict[str, list[DetectedObject]](list)
    for detection in detected:
        by_label[detection.label].append(detection)
    clauses = []
    # objects of each entry whose clauses hold so far; None where one of them does not
    matched: list[list[DetectedObject] | None] = []
    for entry in scene.include:
        matches = by_label[entry.label][: entry.count]
        entry_clauses = [
            *_number_clauses(entry, matches),
            *_color_clauses(entry, matches),
        ]
        holds = all(clause.holds for clause in entry_clauses)
        if entry.relation:
            reference = scene.include[entry.reference]
            reference_objects = matched[entry.reference] if holds else None
            clause = _position_clause(
                entry,
                reference,
                matches,
                reference_objects,
            )
            entry_clauses.append(clause)
            holds &= clause.holds
        clauses += entry_clauses
        matched.append(matches if holds else None)
    for label, count in scene.exclude:
        number = len(by_label[label])
        reason = f"{_counted(number, label)}, at most {count - 1}"
        clauses.append(_clause("count", number < count, reason))
    return tuple(clauses)


def _number_clauses(
    entry: WantedObjects, matches: Sequence[DetectedObject]
) -> list[Clause]:
    clauses = [_clause("presence", bool(matches), f"no {entry.label}")]
    if entry.count > 1:
        reason = f"{len(matches)} of {_counted(entry.count, entry.label)}"
        is_enough = len(matches) >= entry.count
        clauses.append(
            _clause(
                "count",
                is_enough,
                reason if matches else "",
            )
        )
    return clauses


def _color_clauses(
    entry: WantedObjects, matches: Sequence[DetectedObject]
) -> list[Clause]:
    if not entry.color:
        return []
    reasons = []
    for number, match in enumerate(matches):
        if match.color != entry.color:
            name = _name(entry, number)
            reasons.append(f"the {name} is {match.color}, not {entry.color}")
    holds = len(matches) >= entry.count and not reasons
    return [_clause("color", holds, "; ".join(reasons))]


def _position_clause(
    entry: WantedObjects,
    reference: WantedObjects,
    matches: Sequence[DetectedObject],
    reference_objects: Sequence[DetectedObject] | None,
) -> Clause:
    """The clause about the position of objects to others, which are None where a clause before
    it fails.
    """
    if reference_objects is None:
        return Clause("position", False)
    pairs = product(matches, reference_objects)
    holds = all(entry.relation in relations(a.box, b.box) for a, b in pairs)
    reason = f"the {entry.label} is not {entry.relation} the {reference.label}"
    return _clause("position", holds, reason)


def _clause(aspect: str, holds: bool, reason: str) -> Clause:
    return Clause(aspect, bool(holds), "" if holds else reason)


def _name(entry: WantedObjects, number: int) -> str:
    """An object among those of its entry in words.

    >>> _name(WantedObjects("clock", 3), 1), _name(WantedObjects("clock"), 0)
    ('second clock', 'clock')
    """
    if entry.count == 1:
        return entry.label
    if number < len(_ORDINALS):
        return f"{_ORDINALS[number]} {entry.label}"
    return f"{number + 1}th {entry.label}"


def _counted(count: int, label: str) -> str:
    """A number of objects in words.

    >>> _counted(3, "bench"), _counted(1, "knife"), _counted(2, "knife")
    ('3 benches', '1 knife', '2 knives')
    """
    if count == 1:
        return f"1 {label}"
    ending = "es" if label.endswith(("s", "x", "ch", "sh")) else "s"
    return f"{count} {_PLURALS.get(label, label + ending)}"


def scores_of_clauses(clauses: Iterable[Clause]) -> dict[str, float]:
    """Scores by aspect: `SC` and `O` are 1 if all clauses hold, else 0, `share` is the share of
    clauses that hold, and of each kind of clause that there is likewise.
    """
    holds = defaultdict[str, list[bool]](list)
    for clause in clauses:
        for name in ("share", clause.aspect):
            holds[name].append(clause.holds)
    strict = float(all(holds["share"]))
    shares = {
        name: sum(holds[name]) / len(holds[name])
        for name in ("share", *ASPECTS)
        if name in holds
    }
    return {"SC": strict, "O": strict, **shares}


def reason_of_clauses(clauses: Sequence[Clause]) -> str:
    """Reason in words: each finding once, or that all clauses hold."""
    findings = dict.fromkeys(clause.reason for clause in clauses if clause.reason)
    return "; ".join(findings) or f"all {len(clauses)} clauses hold"


def detection(scene: WantedScene, sample: Sample) -> UseTool:
    """The ask for the objects of a scene; colours are read of as many of a class as clauses need."""
    labels = [entry.label for entry in scene.include]
    labels += [label for label, _ in scene.exclude]
    colored: dict[str, int] = {}
    for entry in scene.include:
        if entry.color:
            colored[entry.label] = max(colored.get(entry.label, 0), entry.count)
    arguments = {
        "image": sample.images["output"],
        "labels": tuple(dict.fromkeys(labels)),
        "colored": tuple(colored.items()),
        "counting": scene.is_counting,
    }
    return UseTool(NAME, arguments, (NAME,))


def to_result(detected: Iterable[DetectedObject]) -> ToolResult:
    """Detected objects as a tool's result: boxes in whole pixels, and a text with all of them.

    >>> result = to_result([DetectedObject("cat", (0.5, 1.0, 9.2, 8.0), 0.75, "red")])
    >>> result.boxes, detected_objects(result)[0].box
    ((Box(left=0, top=1, right=10, bottom=8),), (0.5, 1.0, 9.2, 8.0))
    """
    boxes = []
    lines = []
    for detection in detected:
        corner = map(math.floor, detection.box[:2])
        boxes.append(Box(*corner, *map(math.ceil, detection.box[2:])))
        lines.append(json.dumps([*vars(detection).values()]))
    return ToolResult(tuple(boxes), "\n".join(lines))


def detected_objects(result: ToolResult) -> list[DetectedObject]:
    """The inverse of `to_result`."""
    rows = map(json.loads, result.text.splitlines())
    objects = [
        DetectedObject(label, tuple(box), score, color)
        for label, box, score, color in rows
    ]
    return objects


def judge(sample: Sample) -> Program:
    """The program of the judge."""
    try:
        scene = read_scene(sample.texts[WANTED_OBJECTS])
    except VievalError as error:
        return not_applicable(str(error))
    [result], steps = yield from tools.use_tools([detection(scene, sample)])
    failure = tools.failed(steps)
    if failure:
        return Verdict({}, failure.status, trace=steps)
    clauses = check_scene(scene, detected_objects(result))
    reason = reason_of_clauses(clauses)
    return Verdict(scores_of_clauses(clauses), Status.OK, reason, steps)


def build(options: NoOptions, pack: Any, setting: str) -> Judge:
    """The judge."""
    return judge


SPEC = JudgeSpec(
    name=NAME,
    title="Objects",
    aspects=("SC", "O", "share"),
    method="a detector checks the objects, their number, colours and positions",
    needs={"tig": Needs(("output",), (WANTED_OBJECTS,))},
    options=NoOptions,
    build=build,
    scored=True,
    grades=lambda options: ASPECTS,
)
