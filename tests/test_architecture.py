"""The borders of the house: who may import whom."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import bounds

ROOT = Path(__file__).parents[1]
PACKAGE, JUDGES = ROOT / "vieval_plugin", ROOT / "judges"
LAYERS = (  # from below; CONTRIBUTING.md says why in this order
    *({"text"}, {"media"}, {"stats"}),
    *({"prompts"}, {"judges"}, {"images"}, {"records"}, {"readers"}),
    *({"config"}, {"backends"}, {"generation"}, {"run"}),
    *({"meta_evaluation"}, {"benchmarks"}, {"importers"}),
    *(
        {"results"},
        {"report"},
        {"audit"},
        {"card"},
        {"leaderboard"},
        {"labelling"},
        {"training"},
    ),
    *({"api"}, {"rewards"}, {"serve"}, {"hosts"}, {"cli"}, {"testing"}),
)
RESOURCES = {"prompt_templates", "task_configs"}


@pytest.fixture(scope="session")
def imports():
    """Which of our modules imports which as it runs, and which as it is typed: with imports
    under TYPE_CHECKING.
    """
    code = (
        "import grimp, json\n"
        "def imports(running):\n"
        "    g = grimp.build_graph('vieval_plugin', exclude_type_checking_imports=running, "
        "cache_dir=None)\n"
        "    return {m: sorted(g.find_modules_directly_imported_by(m)) for m in g.modules}\n"
        "print(json.dumps({'running': imports(True), 'typed': imports(False)}))"
    )
    command = [
        sys.executable,
        "-c",
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = ast.literal_eval(done.stdout)
    assert any(
        module.startswith("vieval_plugin.judges.") for module in found["running"]
    )
    return found


def room(module):
    return [*module.split("."), ""][1]


def test_no_import_goes_up(imports):
    level = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    upward = [
        f"{importer} imports {imported}"
        for importer, several in imports["running"].items()
        for imported in several
        if room(importer) in level
        and room(imported) in level
        and level[room(importer)] < level[room(imported)]
    ]
    assert upward == []


def test_rooms_of_one_layer_know_nothing_of_each_other(imports):
    beside = [
        f"{importer} imports {imported}"
        for importer, several in imports["running"].items()
        for imported in several
        for layer in LAYERS
        if {room(importer), room(imported)} <= layer
        and room(importer) != room(imported)
    ]
    assert beside == []


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
    """An arrow is a room that imports another; those from and to judges, which most rooms need,
    are not counted.
    """
    arrows = {
        (room(importer), room(other))
        for importer, several in imports["typed"].items()
        for other in several
    }
    between = {
        arrow for arrow in arrows if arrow[0] != arrow[1] and "judges" not in arrow
    }
    rooms = {room(module) for module in imports["typed"]} - RESOURCES
    assert len(rooms) <= bounds.ROOMS
    assert len(between) <= bounds.ARROWS, f"{len(between)}: {sorted(between)}"


@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="an sdist has no links to folders"
)
def test_every_import_of_ours_is_found_by_its_path():
    """Editors and checkers of types read paths, and no import hook of an editable installation."""
    files = [
        *sources(),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "bench").rglob("*.py"),
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    nodes = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    ]
    names = {
        node.module
        for node in nodes
        if str(node.module).startswith("vieval_plugin") and not node.level
    }
    paths = {name: ROOT.joinpath(*name.split(".")) for name in names}
    assert "vieval_plugin.judges.protocol" in names
    assert [
        name
        for name, path in paths.items()
        if not path.is_dir() and not path.with_suffix(".py").is_file()
    ] == []


def test_the_root_holds_what_is_listed_and_nothing_else():
    names = {
        path.stem for path in PACKAGE.iterdir() if not path.name.startswith(("__", "."))
    }
    held = names - {"py"} - RESOURCES
    assert held == set().union(*LAYERS)
    listed = (ROOT / "CONTRIBUTING.md").read_text()
    assert [name for name in held if not re.search(rf"\| `{name}/?` \|", listed)] == []


def sources():
    return [*sorted(PACKAGE.rglob("*.py")), *sorted(JUDGES.rglob("*.py"))]


def test_asks_are_told_apart_in_the_router_and_in_backends_alone():
    found = []
    for path in sources():
        if (
            PACKAGE / "backends" in path.parents
            or path == PACKAGE / "run" / "router.py"
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "isinstance"
            ):
                told = ast.unparse(node.args[1])
                if re.search(
                    r"\b(Chat|Likelihood|UseTool|Measure)\b", told
                ) or ast.unparse(node.args[0]).endswith("ask"):
                    found.append(
                        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
                    )
    assert found == []


# doors whose code everybody behind them needs: options, commands, judges and benchmarks of several
# modules
DOORS_WITH_CODE = r"vieval_plugin(/(api|config|hosts/\w+|cli|cli/\w+|results/logs|benchmarks/\w+))?|judges/\w+"


def test_a_package_door_holds_no_code():
    """Importing a module runs the doors above it, so what one of them needs is paid for by all
    behind it.
    """
    doors = [path for path in sources() if path.name == "__init__.py"]
    with_code = [
        str(d.parent.relative_to(ROOT))
        for d in doors
        if len(ast.parse(d.read_text()).body) > 1
    ]
    assert [door for door in with_code if not re.fullmatch(DOORS_WITH_CODE, door)] == []


def test_no_test_module_imports_another():
    another = re.compile(r"^\s*(from|import) tests\b.*\btest_", re.MULTILINE)
    modules = sorted((ROOT / "tests").rglob("test_*.py"))
    assert [str(path) for path in modules if another.search(path.read_text())] == []


# what a face may do without: statistics of people's ratings, reports, and SciPy's statistics (0.4 s
# of CPU)
REPORTING = (
    "report",
    "meta_evaluation",
    "benchmarks",
    "results",
    "audit",
    "card",
    "leaderboard",
)


@pytest.mark.parametrize(
    ("face", "unused"),
    [
        ("vieval_plugin.api.judge", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.api.batches", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.run.evaluate", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.rewards.flow_grpo", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.rewards.prompt_writer", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.rewards.verl_omni", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.serve.service", ("scipy", "torch", *REPORTING)),
        ("vieval_plugin.serve.run", ("scipy", "torch", *REPORTING)),
        (
            "vieval_plugin.hosts.lmms_eval",
            ("lmms_eval", "scipy", "torch", "api", "run", *REPORTING),
        ),
        (
            "vieval_plugin.hosts.lmms_eval.models",
            ("scipy.stats", "report", "audit", "card", "leaderboard"),
        ),
        (
            "vieval_plugin.hosts.vlmevalkit",
            ("vlmeval", "scipy", "torch", "api", "run", *REPORTING),
        ),
        ("vieval_plugin.report.page.page", ("scipy.stats",)),
    ],
)
def test_a_face_imports_what_it_needs_and_nothing_beside_it(face, unused):
    if face.endswith("lmms_eval.models"):
        pytest.importorskip("lmms_eval")
    if face.startswith("vieval_plugin.serve"):
        pytest.importorskip("aiohttp")
    rooms = {path.stem for path in PACKAGE.iterdir()}
    modules = [f"vieval_plugin.{name}" if name in rooms else name for name in unused]
    code = f"import sys, {face}; print([m for m in {modules!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "judge",
    [
        "viescore",
        "vqascore",
        "auto_metrics",
        "in_file",
        "t2i_eval",
        "cigeval",
        "pairwise",
    ],
)
def test_a_judge_alone_imports_no_more_than_it_needs(judge):
    heavy = (
        "scipy",
        "yaml",
        "PIL",
        "torch",
        "pydantic",
        "vieval_plugin.config",
        "vieval_plugin.backends",
    )
    code = (
        f"import sys, vieval_plugin.judges.{judge}; print([m for m in {heavy!r} if m in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip() == "[]"
