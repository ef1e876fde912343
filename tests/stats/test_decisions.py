"""A decision's threshold stands in `stats/decisions.py` alone."""

import ast
from pathlib import Path
from shlex import split

import vieval_plugin
from vieval_plugin.stats import decisions

ROOT = Path(vieval_plugin.__file__).parent
ROOMS = tuple(split("stats meta_evaluation report audit card leaderboard results"))
#: Constants between these are probabilities, shares or differences; smaller ones are rounding.
SMALLEST, LARGEST = 1e-3, 1.0
#: Those that decide nothing, with what they are.
OTHERS = {
    "_NEARLY_ONE": "guard of a transformation that is infinite at 1",
    "_LARGEST_CORRELATION": "guard of a division",
    "_MORE_GROUPS": "part of an estimate",
    "PRIOR_SLOPE": "prior of an estimate",
    "PRIOR_SPREAD": "prior of an estimate",
    "STEEPEST_SLOPE": "prior of an estimate",
    "EVEN": "definition of a win rate",
    "_HALF": "rounding of a picture",
    "_STEPS": "distances of an axis's ticks",
    "_BORDER": "change of an image",
    "_TEXT_WIDTH, _TEXT_HEIGHT": "change of an image",
}


def assignments(module):
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield ", ".join(map(ast.unparse, targets)).strip("()"), node.value


def thresholds(value):
    if any(isinstance(node, ast.Call) for node in ast.walk(value)):
        return []  # an object that describes itself
    return [
        constant.value
        for constant in ast.walk(value)
        if isinstance(constant, ast.Constant)
        and isinstance(constant.value, float)
        and SMALLEST < constant.value < LARGEST
    ]


def test_a_threshold_is_edited_in_one_file_and_named_in_no_other():
    there = {
        (str(path.relative_to(ROOT)), names): value
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for names, value in assignments(path)
        if path != Path(decisions.__file__)
    }
    elsewhere = [
        (path, names)
        for (path, names), value in there.items()
        if {*names.split(", ")} & vars(decisions).keys()
        or (thresholds(value) and names not in OTHERS)
    ]
    assert not elsewhere, "move it to stats/decisions.py, or say in OTHERS what it is"
