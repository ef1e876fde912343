"""An editor finds every import of ours in a fresh editable checkout: pyright resolves them all."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.extras import needs
from tests.work import run_process

PRODUCT = ("vieval_plugin", "judges", "tests", "bench", "docs")


def statements(root):
    """The imports of ours that a checkout has, one a line."""
    paths = [path for folder in PRODUCT for path in (root / folder).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {
        f"from {node.module} import {alias.name} as _"
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
        if str(node.module).partition(".")[0] == "vieval_plugin"
    }


@pytest.mark.extras
@needs("basedpyright")
def test_pyright_finds_every_import_of_ours(source):
    """`source` is a clone; its environment has VIEval alone, installed to be edited."""
    python = source / ".venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", source / ".venv"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable"]
    subprocess.run([*install, source], check=True, timeout=300)
    imports = statements(source)
    assert "from vieval_plugin.judges.protocol import Sample as _" in imports
    file = source / "every_import.py"
    file.write_text("\n".join([*sorted(imports), "import vieval_plugin.lost"]))
    rules = {"reportMissingImports": "error", "reportAttributeAccessIssue": "error"}
    settings = {"include": [file.name], "typeCheckingMode": "off", **rules}
    (source / "pyrightconfig.json").write_text(json.dumps(settings))
    checker = [sys.executable, "-m", "basedpyright", "--pythonpath", python]
    environment = {**os.environ, "PYTHONPATH": ""}
    ran = run_process([*checker, "--outputjson"], cwd=source, env=environment)
    found = [fault["message"] for fault in json.loads(ran.stdout)["generalDiagnostics"]]
    assert found == ['Import "vieval_plugin.lost" could not be resolved']
