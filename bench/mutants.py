"""A mutation check: small faults are put into modules, and the tests that execute them are to notice.

Which tests of `make test` execute a module is recorded once, with a plugin of pytest::

    python -m pip install coverage
    python -m pytest -p bench.tests_by_line --record out/mutants -n 2 --dist loadfile

Then each mutant is run against these tests, the quickest first, until one fails or its seconds are
over::

    python -m bench.mutants out/mutants vieval_plugin/readers/tables.py judges/free_text_scores.py

Files of the checkout change one at a time and are always restored; `vieval_plugin` must be
installed with --editable.
"""

import argparse
import ast
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from operator import setitem
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS_AT_ONCE = (
    200  # so that a mutant that many tests notice costs the collection of few files
)
PAIRS = [
    (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE),
    (ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div),
]  # fmt: skip
SWAPS = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])} | {
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
DROPPED = (ast.Expr, ast.AugAssign, ast.Raise, ast.Continue, ast.Break)


def mutations(tree):
    """List of (line, name, function that changes the tree) in the order of the source; no
    docstrings and annotations.
    """
    skipped = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        parts += getattr(node, "decorator_list", [])
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.append(node)  # a docstring
        skipped.update(id(child) for part in parts if part for child in ast.walk(part))
    sites = [
        site
        for node in ast.walk(tree)
        if id(node) not in skipped
        for site in _sites(node, skipped)
    ]
    return sorted(sites, key=lambda site: site[:2])


def _sites(node, skipped):
    owner, key = (node.ops, 0) if isinstance(node, ast.Compare) else (vars(node), "op")
    operator = owner[0] if key == 0 else owner.get(key)
    if swapped := SWAPS.get(type(operator)):
        name = f"{type(operator).__name__} to {swapped.__name__}"
        yield node.lineno, name, partial(setitem, owner, key, swapped())
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield (
            node.lineno,
            "test negated",
            partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test)),
        )
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield (
            node.lineno,
            f"{node.value} to {value}",
            partial(setattr, node, "value", value),
        )
    if (
        isinstance(node, ast.Return)
        and node.value
        and ast.unparse(node.value) != "None"
    ):
        yield (
            node.lineno,
            "return None",
            partial(setattr, node, "value", ast.Constant(None)),
        )
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(node, field, None)
        for number, statement in enumerate(
            statements if isinstance(statements, list) else []
        ):
            if isinstance(statement, DROPPED) and id(statement) not in skipped:
                name = f"dropped: {ast.unparse(statement).splitlines()[0][:60]}"
                yield (
                    statement.lineno,
                    name,
                    partial(setitem, statements, number, ast.Pass()),
                )


def tests_of(folder, module):
    """Ids of the tests that execute lines inside a module's functions, the quickest first."""
    import coverage

    functions = [
        node
        for node in ast.walk(ast.parse((ROOT / module).read_text()))
        if hasattr(node, "args")
    ]
    lines = [
        range(node.body[0].lineno, node.end_lineno + 1)
        for node in functions
        if hasattr(node, "name")
    ]
    inside, seconds, ids = {line for several in lines for line in several}, {}, set()
    for file in folder.glob("*.jsonl"):
        seconds |= {
            row[1]: row[3] for row in map(json.loads, file.read_text().splitlines())
        }
    for file in [*folder.glob("data.*"), *folder.glob("*/data.*")]:
        data = coverage.CoverageData(str(file))
        try:
            data.read()
        except coverage.CoverageException:
            continue  # of a process that was killed while it wrote
        for path in [
            path for path in data.measured_files() if path.endswith(f"/{module}")
        ]:
            by_line = data.contexts_by_lineno(path)
            ids.update(
                name for line in by_line.keys() & inside for name in by_line[line]
            )
    return sorted(ids & seconds.keys(), key=lambda name: (seconds[name], name))


def outcome_of(tests, limit, folder):
    """Outcome of these tests in this order: "caught", "survived" or "timed out"."""
    end, environment = (
        time.monotonic() + limit,
        {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "bench.tests_by_line",
        "--only",
        folder / "tests.json",
    ]
    for start in range(0, len(tests), TESTS_AT_ONCE):
        chunk = tests[start : start + TESTS_AT_ONCE]
        (folder / "tests.json").write_text(json.dumps(chunk))
        files = dict.fromkeys(name.split("::")[0] for name in chunk)
        with (folder / "last.log").open("wb") as log:
            streams = {"stdout": log, "stderr": log, "start_new_session": True}
            running = subprocess.Popen(
                [*command, *files], cwd=ROOT, env=environment, **streams
            )
        try:
            if running.wait(max(1, end - time.monotonic())) not in (
                0,
                5,
            ):  # 5: none of them is in make test any more
                return "caught"
        except subprocess.TimeoutExpired:
            return "timed out"
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    return "survived"


def check(module, folder, options):
    """Print the outcome of each mutant of a module; return their counts, and lines about those
    not caught.
    """
    path, tests, counts, others = ROOT / module, tests_of(folder, module), Counter(), []
    source, when = path.read_text(), path.stat().st_mtime
    sites = range(len(mutations(ast.parse(source))))
    if not tests or outcome_of(tests, 3600, folder) != "survived":
        sys.exit(
            f"{module}: {len(tests)} tests, which do not pass without a mutant: see "
            f"{folder}/last.log"
        )
    sampled = random.Random(f"{options.seed} {module}").sample(
        sites, min(options.mutants, len(sites))
    )
    for turn, site in enumerate(sorted(sampled), 1):
        tree = ast.parse(source)
        line, name, change = mutations(tree)[site]
        change()
        try:
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)))
            os.utime(
                path, (when + turn, when + turn)
            )  # compiled files are known by the second of their source
            outcome = outcome_of(tests, options.seconds, folder)
        finally:
            path.write_text(source)
            os.utime(path, (when, when))
        counts[outcome] += 1
        others += (
            [f"{module}:{line}: {name} ({outcome})"] if outcome != "caught" else []
        )
    print(f"{module}: {len(tests)} tests; mutants: {dict(counts)}", flush=True)
    return counts, others


def main():
    """Check the modules named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="what --record wrote")
    parser.add_argument(
        "modules", nargs="+", help="paths from the root of the checkout"
    )
    for name, default in (("--mutants", 15), ("--seed", 0), ("--seconds", 60)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # files are restored then too
    results = [
        check(module, options.folder.resolve(), options) for module in options.modules
    ]
    total = sum((counts for counts, _ in results), Counter())
    print(
        "\n".join(
            [
                f"in all: {dict(total)}; not caught:",
                *(line for _, lines in results for line in lines),
            ]
        )
    )


if __name__ == "__main__":
    main()
