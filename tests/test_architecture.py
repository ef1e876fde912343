"""The borders of the house: who may import whom."""

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import bounds
from tests.work import run_process

ROOT = Path(__file__).parents[1]
PACKAGE, JUDGES = ROOT / "vieval_plugin", ROOT / "judges"
# from below; CONTRIBUTING.md says why in this order
LAYERS = [
    "text",
    "media",
    "stats",
    "prompts",
    "judges",
    "images",
    "records",
    "readers",
    "config",
    "backends",
    "generation",
    "run",
    "meta_evaluation",
    "benchmarks",
    "importers",
    "results",
    "report",
    "audit",
    "card",
    "leaderboard",
    "labelling",
    "training",
    "api",
    "rewards",
    "serve",
    "hosts",
    "cli",
    "testing",
]
RESOURCES = {"prompt_templates", "task_configs"}


IMPORTS = """
import json, sys
import grimp
sys.path.insert(0, sys.argv[1])
def imports(running):
    about = {"exclude_type_checking_imports": running, "cache_dir": None}
    graph = grimp.build_graph("vieval_plugin", **about)
    found = graph.find_modules_directly_imported_by
    return {module: sorted(found(module)) for module in graph.modules}
print(json.dumps({"running": imports(True), "typed": imports(False)}))
"""


@pytest.fixture(scope="session")
def imports():
    """The imports of each of our modules as it runs, and with those under TYPE_CHECKING."""
    done = run_process([sys.executable, "-c", IMPORTS, ROOT], cwd=ROOT, check=True)
    found = ast.literal_eval(done.stdout)
    assert "vieval_plugin.judges.protocol" in found["running"]
    return found


def pairs(found):
    return [(one, other) for one, several in found.items() for other in several]


def room(module):
    return [*module.split("."), ""][1]


def test_no_import_goes_up(imports):
    level = {name: number for number, name in enumerate(LAYERS)}
    rooms = [(room(one), room(other)) for one, other in pairs(imports["running"])]
    known = {pair for pair in rooms if {*pair} <= level.keys()}
    assert [pair for pair in known if level[pair[0]] < level[pair[1]]] == []


def test_no_modules_import_each_other_in_a_circle(imports):
    # importing a submodule imports its package first: that is no statement of anybody's
    graph = {
        module: [other for other in several if not module.startswith(f"{other}.")]
        for module, several in imports["typed"].items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))


def test_rooms_and_the_arrows_between_them_are_few(imports):
    """An arrow is a room that imports another; those from and to judges are not counted."""
    arrows = {(room(one), room(other)) for one, other in pairs(imports["typed"])}
    between = {it for it in arrows if it[0] != it[1] and "judges" not in it}
    rooms = {room(module) for module in imports["typed"]} - RESOURCES
    assert len(rooms) <= bounds.ROOMS
    assert len(between) <= bounds.ARROWS, f"{len(between)}: {sorted(between)}"


NO_LINKS = "an sdist has no links to folders"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason=NO_LINKS)
def test_every_import_of_ours_is_found_by_its_path():
    """Editors and checkers of types read paths, and no import hook of an editable installation."""
    files = [
        *sources(),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "bench").rglob("*.py"),
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = [it for it in nodes if isinstance(it, ast.ImportFrom) and not it.level]
    names = {it.module for it in named if it.module.startswith("vieval_plugin")}
    paths = {name: ROOT.joinpath(*name.split(".")) for name in names}
    assert "vieval_plugin.judges.protocol" in names
    found = lambda path: path.is_dir() or path.with_suffix(".py").is_file()
    assert [name for name, path in paths.items() if not found(path)] == []


def test_the_root_holds_what_is_listed_and_nothing_else():
    paths = [path for path in PACKAGE.iterdir() if path.name[0] not in "_."]
    names = {path.stem for path in paths}
    held = names - {"py"} - RESOURCES
    assert held == set(LAYERS)
    listed = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in held if not re.search(rf"\| `{name}/?` \|", listed)] == []


def sources():
    return [*sorted(PACKAGE.rglob("*.py")), *sorted(JUDGES.rglob("*.py"))]


def test_asks_are_told_apart_in_the_router_and_in_backends_alone():
    found = []
    for path in sources():
        in_backends = PACKAGE / "backends" in path.parents
        if in_backends or path == PACKAGE / "run" / "router.py":
            continue
        calls = [
            it
            for it in ast.walk(ast.parse(path.read_text()))
            if isinstance(it, ast.Call)
        ]
        for node in calls:
            if getattr(node.func, "id", "") == "isinstance":
                told, kinds = map(ast.unparse, node.args)
                is_kind = re.search(r"\b(Chat|Likelihood|UseTool|Measure)\b", kinds)
                if is_kind or told.endswith("ask"):
                    found.append(f"{path}:{node.lineno} {ast.unparse(node)}")
    assert found == []


# doors whose code everybody behind them needs: options, commands, judges and benchmarks of several
# modules
DOORS_WITH_CODE = r"vieval_plugin(/(api|config|hosts/\w+|cli|cli/\w+|results/logs|benchmarks/\w+))?|judges/\w+"


def test_a_package_door_holds_no_code():
    """Importing a module runs the doors above it, so all behind a door pay for its code."""
    doors = [path for path in sources() if path.name == "__init__.py"]
    long = [path for path in doors if len(ast.parse(path.read_text()).body) > 1]
    with_code = [str(path.parent.relative_to(ROOT)) for path in long]
    assert [door for door in with_code if not re.fullmatch(DOORS_WITH_CODE, door)] == []


def test_no_test_module_imports_another():
    another = re.compile(r"^\s*(from|import) tests\b.*\btest_", re.MULTILINE)
    modules = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [str(path) for path in modules if another.search(path.read_text())] == []


# what a face may do without: statistics of people's ratings, reports, and SciPy's statistics (0.4 s
# of CPU)
REPORTING = [
    "report",
    "meta_evaluation",
    "benchmarks",
    "results",
    "audit",
    "card",
    "leaderboard",
]
JUDGING = ("scipy", "torch", *REPORTING)
FACES = dict.fromkeys(
    (
        *("api.judge", "api.batches", "run.evaluate", "rewards.flow_grpo"),
        *("rewards.prompt_writer", "rewards.verl_omni", "serve.service", "serve.run"),
    ),
    JUDGING,
)
FACES["hosts.lmms_eval"] = ("lmms_eval", "api", "run", *JUDGING)
FACES["hosts.lmms_eval.models"] = [
    "scipy.stats",
    "report",
    "audit",
    "card",
    "leaderboard",
]
FACES["hosts.vlmevalkit"] = ("vlmeval", "api", "run", *JUDGING)
FACES["report.page.page"] = ("scipy.stats",)


@pytest.mark.parametrize("face", FACES)
def test_a_face_imports_what_it_needs_and_nothing_beside_it(face):
    if face.endswith("lmms_eval.models"):
        pytest.importorskip("lmms_eval")
    if face.startswith("serve"):
        pytest.importorskip("aiohttp")
    rooms = {path.stem for path in PACKAGE.iterdir()}
    unused = [f"vieval_plugin.{it}" if it in rooms else it for it in FACES[face]]
    assert imported(f"vieval_plugin.{face}", unused) == []


def imported(module, names):
    """Which of these modules are imported with a module."""
    listed = f"print([m for m in {names!r} if m in sys.modules])"
    code = f"import sys, {module}; {listed}"
    done = run_process([sys.executable, "-c", code], check=True, cwd="/")
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


HEAVY = ["scipy", "yaml", "PIL", "torch", "pydantic"]
HEAVY += ["vieval_plugin.config", "vieval_plugin.backends"]
ALONE = [
    "viescore",
    "vqascore",
    "auto_metrics",
    "in_file",
    "t2i_eval",
    "cigeval",
    "pairwise",
]


@pytest.mark.parametrize("judge", ALONE)
def test_a_judge_alone_imports_no_more_than_it_needs(judge):
    assert imported(f"vieval_plugin.judges.{judge}", HEAVY) == []
