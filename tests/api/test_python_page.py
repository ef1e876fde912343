"""The Python of docs/guides/scoring.md, run as it stands: as a notebook and as a script."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "scoring.md"


@pytest.fixture
def blocks(server, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) >= 10
    return [
        one.replace('"NAME"', '"fake"').replace(
            "http://127.0.0.1:8000/v1", server.base_url
        )
        for one in found
    ]


def test_as_a_script_without_a_loop(blocks, tmp_path):
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "(3,) float64" in done.stdout
    assert done.stdout.count("\nok {'SC': ") == 2


@pytest.fixture
def slow():
    from tests.fake_server import FakeServer

    with FakeServer(latency=0.3) as running:
        yield running


def test_as_a_notebook(blocks, slow, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [one.replace("asyncio.run(both())", "await both()") for one in blocks]
    interrupted = textwrap.dedent("""
        import os, signal, threading
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        slow = Judge("viescore", model="fake", base_url=SLOW, bar=True)
        try:
            slow([{"kind": "tig", "images": {"output": np.full((32, 32, 3), n / 999)}, "texts": {"prompt": "x"}} for n in range(400)])
        except KeyboardInterrupt:
            print("interrupted", len(slow.last), {str(one.status) for one in slow.last})
        print("again", slow.score([picture], "y").shape)
    """).replace("SLOW", repr(slow.base_url))
    last = "verdicts"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(one) for one in (*cells, interrupted, last)]
    )
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": tmp_path}},
    ).execute()
    text = "".join(
        out.get("text", "") for cell in notebook.cells for out in cell.outputs
    )
    assert "(3,) float64" in text
    assert text.count("ok {'SC': ") == 2
    assert "interrupted 400 " in text
    assert "'missing'" in text
    assert "again (1,)" in text
    [shown] = notebook.cells[-1].outputs
    assert shown.data["text/html"].count("<img ") == 3
    assert "<script" not in shown.data["text/html"]
