"""Every code block of README and of the tutorials runs in order, and prints what the page shows."""

import ast
import inspect
import re
import runpy
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.fake_server import FakeServer
from vieval_plugin.cli import read_options
from vieval_plugin.cli.serve import _PATIENCE, _server_setup
from vieval_plugin.rewards import verl_omni
from vieval_plugin.serve.health import FRESH
from vieval_plugin.serve.options import Bounds, ServeOptions

ROOT = Path(__file__).parents[2]
PAGE = runpy.run_path(str(ROOT / "docs" / "run_page.py"))
blocks, matches, run = PAGE["blocks"], PAGE["matches"], PAGE["run"]

README, TUTORIALS = ROOT / "README.md", ROOT / "docs" / "tutorials"
PAGES = [README, *sorted(TUTORIALS.glob("*.md"))]
NEEDS = {
    "README": ("pyarrow", "duckdb"),
    "millions": ("pyarrow", "duckdb"),
    "lmms_eval": ("lmms_eval",),
}  # what their first lines install
# why a block is not run: it changes the environment, or runs what is not ours and has a test of its
# own
LEFT_OUT = (
    "it installs|it downloads|it needs a cluster|it needs GPUs|it needs Docker|"
    "it is the trainer's file|it listens to other machines"
)


def exchanged(page_blocks, server, port):
    """The blocks with the tests' own server and port in place of those of the page."""
    exchanges = {r"http://127\.0\.0\.1:8000/v1": server.base_url, r"\bNAME\b": "fake"}
    exchanges["8200"] = port
    for old, new in exchanges.items():
        put = lambda text, old=old, new=new: text and re.sub(old, new, text)
        changed = [
            (block, put(block.code), put(block.printed)) for block in page_blocks
        ]
        page_blocks = [replace(b, code=code, printed=it) for b, code, it in changed]
    return page_blocks


# the others are read and parsed below, and their commands in tests/docs/test_pages.py
SHORT = ("README", "compare", "lmms_eval")


LONG = {page: () if page.stem in SHORT else pytest.mark.extras for page in PAGES}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=marks, id=p.stem) for p, marks in LONG.items()]
)
def test_the_blocks_of_a_page_run_in_order_and_print_what_it_shows(
    page, tmp_path, monkeypatch
):
    for module in ("skimage", "rapidocr", *NEEDS.get(page.stem, ())):
        pytest.importorskip(module)
    if not all(map(shutil.which, ("bash", "curl"))):
        pytest.skip("the pages need bash and curl")
    for name in ("VIEVAL_MODEL", "VIEVAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    chosen = [block for block in blocks(page) if block.runs]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
    with FakeServer() as server:
        chosen = exchanged(chosen, server, port)
        status, printed, errors = run(chosen, tmp_path, {"CUDA_VISIBLE_DEVICES": ""})
    for block, text in zip(chosen, printed, strict=False):
        if block.printed is not None and not matches(block.printed, text):
            shown = f"shows\n{block.printed}\nand prints\n{text}"
            pytest.fail(f"{block.code}\n{shown}\n{errors}")
    if status or len(printed) < len(chosen):
        last = chosen[len(printed) - 1].code
        pytest.fail(f"{last}\nends with {status}\n{printed[-1]}\n{errors}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_not_run_is_named_and_is_well_formed(page):
    """A block that is not run is still read, as commands are by tests/docs/test_pages.py."""
    for block in blocks(page):
        assert re.fullmatch(rf"(not run: ({LEFT_OUT})|(?!not run: ).*)", block.note)
        assert block.note in ("", "needs: a server") or not block.runs
        if block.language == "python":
            ast.parse(block.code)
        elif block.language == "yaml":
            assert isinstance(yaml.safe_load(block.code), dict)
        else:
            assert block.language in ("bash", "text"), block.language


def test_links_and_pictures_of_readme_lead_to_files_of_this_repository():
    place = r"(?:\]\(|src=\"|srcset=\"|href=\")([^)\s\"]+)"
    links = re.findall(place, README.read_text(encoding="utf-8"))
    # the posters and the logo
    assert sum(link.endswith((".webp", ".svg")) for link in links) == 2
    for link in links:
        # a package index shows README too, and knows no relative link
        assert link.startswith("https://"), link
        address = link.removeprefix("https://github.com/vieval/vieval/")
        path = re.sub(r"^(blob|raw)/main/|#.*", "", address)
        assert address == link or (ROOT / path).exists(), link


REWARD = (TUTORIALS / "reward.md").read_text(encoding="utf-8")


def test_every_reward_of_the_table_is_one():
    terms = re.findall(r"^\| `r=([^`]+)` \|", REWARD, re.MULTILINE)
    named = enumerate(terms)
    flags = [word for n, term in named for word in ("--reward", f"r{n}={term}")]
    server = ["--model", "NAME", "--base-url", "http://127.0.0.1:8000/v1"]
    _, options = read_options(["serve", *flags, *server])
    assert len(_server_setup(options).rewards) == 4


def test_configurations_are_read_by_their_adapters():
    page = blocks(TUTORIALS / "reward.md")
    texts = [block.code for block in page if block.language == "yaml"]
    verl, *flow_factory, unirl = map(yaml.safe_load, texts)
    entry = verl["reward"]["reward_functions"]["judge"]
    parameters = inspect.signature(verl_omni.compute_score).parameters
    assert entry["required"] is True
    assert set(entry) - {"path", "name", "weight", "required"} <= set(parameters)
    names = [settings["rewards"][0]["name"] for settings in flow_factory]
    assert names == ["judge", "judge"]
    assert unirl["required_rewards"] == ["r"]


def test_numbers_of_the_reward_page_are_those_of_the_code():
    options, bounds = ServeOptions(), Bounds()
    assert f"`--patience` seconds ({_PATIENCE:g} here)" in REWARD
    assert f"in the last {FRESH:g} seconds" in REWARD
    assert f"above {options.store_replies:,} are deleted" in REWARD
    assert f"up to `--attempts` times in all ({options.attempts})" in REWARD
    assert f"`--max-imputed` ({options.max_imputed:g})" in REWARD
    assert f"for {bounds.drain_seconds:g} seconds at most" in REWARD


def test_decimals_match_nearly_and_all_else_exactly():
    assert matches("O 0.74 ... of 16\n", "O 0.75 [0.1, 0.2]\nand more of 16")
    assert matches("O 0.786, p .1", "O 0.791, p .2")
    for shown, printed in (("0.74 of 16", "0.76 of 16"), ("0.786", "0.792")):
        assert not matches(f"O {shown}", f"O {printed}")
    assert not matches("O 0.74 of 16", "O 0.74 of 15")
