"""`vieval prepare` where there is no network."""

import pytest

from vieval_plugin.readers import download

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.setattr(download, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.delenv("HF_HUB_OFFLINE")


HOSTS = [
    part
    for source in ("ratings", "hub", "museum")
    for part in ("--mirror", f"{source}={NOWHERE}")
]


@pytest.mark.parametrize(
    ("name", "given"), [("imagenhub", HOSTS), ("genai_bench_tiger", []), ("mmrb2", [])]
)
def test_two_lines_say_what_to_fetch_and_where(tmp_path, vieval, name, given):
    first, why, what = vieval(
        "prepare", name, "--root", tmp_path, *given, code=1
    ).out.splitlines()
    assert first == f"data folder: {tmp_path}"
    assert why.startswith(f"{name}: cannot be downloaded on this machine: ")
    assert "127.0.0.1:9" in why
    assert what == (
        f"on a machine with network access, run `vieval prepare {name} --root FOLDER`, then copy "
        f"FOLDER/{name} to {tmp_path / name}"
    )
