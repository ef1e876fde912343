"""Notebooks of the documentation run as they are committed: without outputs, from top to bottom."""

import html
import json
import os
import sys
from pathlib import Path

import pytest

from tests.docs.pages import DOCS
from tests.extras import needs

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
SHOWN = {
    "judge_a_folder": (
        "text_rendering rates new's images better than old's.",
        "0.00  demo/old/p00.png  a poster with an astronaut",
        "Mean SC of new: 1.00, 0.37 higher than old",
    ),
    "is_my_model_a_good_judge": (
        "Posters of vieval demo",
        "text_rendering agrees with the planted order of posters better than",
        "Spearman 0.63",
    ),
}


def test_each_notebook_has_its_expected_outputs():
    assert {notebook.stem for notebook in NOTEBOOKS} == SHOWN.keys()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}


@needs("rapidocr", "skimage")
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    commands = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    notebook = nbformat.read(path, as_version=4)
    about = {"kernel_name": "python3", "resources": {"metadata": {"path": tmp_path}}}
    nbclient.NotebookClient(notebook, timeout=600, **about).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pages = [output.get("data", {}).get("text/html", "") for output in outputs]
    texts = [output.get("text", "") for output in outputs]
    shown = "\n".join([*texts, html.unescape("\n".join(pages))])
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    for sentence in SHOWN[path.stem]:
        assert sentence in shown
    assert "<script" not in shown
