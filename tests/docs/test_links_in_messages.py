"""Messages link to pages and advise installs that exist; the page of messages quotes the code."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import anchors
from tests.work import run_process
from vieval_plugin.images import FORMATS, MAX_BYTES, MAX_PIXELS, MAX_SIDE
from vieval_plugin.text.errors import PROJECT, docs_url, install_advice

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
SOURCES = [*(ROOT / "vieval_plugin").rglob("*.py"), *(ROOT / "judges").rglob("*.py")]
# a page that a message names with what is only known as it is printed
GENERATED_ANCHORS = {"reference/results.md#": "reference/results.md"}


def linked():
    """Every page that the code links to, with its anchor."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if is_named and node.func.id == "docs_url":
                [page] = node.args
                match page:
                    case ast.Constant(value=str(text)):
                        yield text
                    case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                        yield GENERATED_ANCHORS[text]
                    case _:
                        pytest.fail(f"{path}: no page is named by {ast.unparse(page)}")
        if "cli" in path.parts:
            named = r"^(?:.* )?docs/(\S+\.md)$"
            yield from re.findall(named, path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(linked())))
def test_each_page_and_anchor_is_there(link):
    name, _, anchor = link.partition("#")
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert not anchor or anchor in anchors(text)


def test_each_status_has_its_heading():
    named = (
        "api_error parse_failure refusal tool_error not_applicable no_image statuses"
    )
    assert {*named.split()} <= anchors(RESULTS)


def code_texts():
    """Every text of the code; where a value is filled in, a NUL stands."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    part.value if isinstance(part, ast.Constant) else "\0"
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def fixed_words(message):
    """The fixed parts of a message: without parentheses, names, numbers and addresses."""
    varying = r"\([^)]*\)?|\S*[A-Z0-9_=./<-]\S*"
    parts = (part.strip(" ,;:?") for part in re.split(varying, message))
    return [*filter(None, parts)]


def test_messages_of_the_page_are_those_of_the_code():
    errors = RESULTS.split("\n## Errors\n")[1]
    cells = re.findall(r"^\| (`.*?`) \|", errors, re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    texts = "\n".join(code_texts())
    assert len(messages) > 80
    lost = lambda message: any(words not in texts for words in fixed_words(message))
    assert [*filter(lost, messages)] == []


def test_limits_of_images_on_the_page_are_those_of_the_code():
    formats = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
    limits = f"{MAX_BYTES >> 20} MiB, {MAX_PIXELS // 10**6} megapixels and {MAX_SIDE:,} pixels a side"
    assert f"An image may have {limits}, as {formats}." in RESULTS


def test_links_lead_to_the_project():
    address = f"{PROJECT}/blob/main/docs/guides/scoring.md#vllm"
    assert docs_url("guides/scoring.md#vllm") == address
    for path in SOURCES:
        if path.name != "errors.py":
            text = path.read_text()
            assert PROJECT not in text, f"{path}: the address stands in errors.py alone"
            code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
            assert not re.search(r'["{(].*docs/\w+/\w+\.md.*["\')]', code), path


def test_nothing_advises_to_install_what_no_index_has():
    advice = r"vieval\[|pip install (--upgrade )?vieval\b"
    grep = ["git", "grep", "-nE", advice, "--", "vieval_plugin", "judges"]
    assert run_process(grep, cwd=ROOT).stdout == ""
    assert 'pip install ".[http]" in a checkout' in install_advice("http")
