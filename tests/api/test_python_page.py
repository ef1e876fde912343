"""The Python of docs/guides/scoring.md, run as it stands: as a notebook and as a script."""

import re
import sys
from pathlib import Path

import pytest

from tests.fake_server import FakeServer
from tests.work import run_process

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "scoring.md"


@pytest.fixture
def blocks(server, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text().replace('"NAME"', '"fake"')
    text = text.replace("http://127.0.0.1:8000/v1", server.base_url)
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(found) >= 10
    return found


def test_as_a_script_without_a_loop(blocks, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    done = run_process([sys.executable, script], cwd=tmp_path, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert "(3,) float64" in done.stdout
    assert done.stdout.count("\nok {'SC': ") == 2


@pytest.fixture
def slow():
    with FakeServer(latency=0.3) as running:
        yield running


INTERRUPTED = """
import os, signal, threading
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
slow = Judge("viescore", model="fake", base_url="SLOW", bar=True)
pictures = [np.full((32, 32, 3), n / 999) for n in range(400)]
whole = {"kind": "tig", "texts": {"prompt": "x"}}
try:
    slow([{**whole, "images": {"output": one}} for one in pictures])
except KeyboardInterrupt:
    print("interrupted", len(slow.last), {str(one.status) for one in slow.last})
print("again", slow.score([picture], "y").shape)
"""


def test_as_a_notebook(blocks, slow, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [one.replace("asyncio.run(both())", "await both()") for one in blocks]
    cells += [INTERRUPTED.replace("SLOW", slow.base_url), "verdicts"]
    code = [*map(nbformat.v4.new_code_cell, cells)]
    notebook = nbformat.v4.new_notebook(cells=code)
    about = {"timeout": 600, "resources": {"metadata": {"path": tmp_path}}}
    nbclient.NotebookClient(notebook, kernel_name="python3", **about).execute()
    outputs = [out for cell in notebook.cells for out in cell.outputs]
    text = "".join(out.get("text", "") for out in outputs)
    assert "(3,) float64" in text
    assert text.count("ok {'SC': ") == 2
    assert "interrupted 400 " in text
    assert "'missing'" in text
    assert "again (1,)" in text
    [shown] = notebook.cells[-1].outputs
    assert shown.data["text/html"].count("<img ") == 3
    assert "<script" not in shown.data["text/html"]
