"""Messages name pages of the documentation and ways to install that there are, and the page of
messages has theirs.
"""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import anchors
from vieval_plugin.images import FORMATS, MAX_BYTES, MAX_PIXELS, MAX_SIDE
from vieval_plugin.text.errors import PROJECT, docs_url, install_advice

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "vieval_plugin").rglob("*.py"), *(ROOT / "judges").rglob("*.py")]
# a page that a message names with what is only known as it is printed
GENERATED_ANCHORS = {"reference/results.md#": "reference/results.md"}


def linked():
    """Every page that the code links to, with its anchor."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "docs_url"
            ):
                [page] = node.args
                match page:
                    case ast.Constant(value=str(text)):
                        yield text
                    case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
                        yield GENERATED_ANCHORS[text]
                    case _:
                        pytest.fail(
                            f"{path}: {ast.unparse(page)} names no page that a reader of the code "
                            "can see"
                        )
        if "cli" in path.parts:
            yield from re.findall(
                r"^(?:.* )?docs/(\S+\.md)$", path.read_text(), re.MULTILINE
            )


@pytest.mark.parametrize("link", sorted(set(linked())))
def test_each_page_and_anchor_is_there(link):
    name, _, anchor = link.partition("#")
    assert not anchor or anchor in anchors(
        (ROOT / "docs" / name).read_text(encoding="utf-8")
    )
    assert (ROOT / "docs" / name).is_file()


@pytest.mark.parametrize(
    "status",
    [
        "api_error",
        "parse_failure",
        "refusal",
        "tool_error",
        "not_applicable",
        "no_image",
    ],
)
def test_each_status_has_its_heading(status):
    assert {status, "statuses"} <= {
        *anchors(
            (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
        )
    }


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
    """Parts of a message in a table, without what varies: parentheses, dots, names, numbers and
    addresses.
    """
    varying = r"\([^)]*\)?|\S*[A-Z0-9_=./<-]\S*"
    return list(
        filter(None, (part.strip(" ,;:?") for part in re.split(varying, message)))
    )


def test_messages_of_the_page_are_those_of_the_code():
    page = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?`) \|", page.split("\n## Errors\n")[1], re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    texts = "\n".join(code_texts())
    assert len(messages) > 80
    assert [
        message
        for message in messages
        if any(words not in texts for words in fixed_words(message))
    ] == []


def test_limits_of_images_on_the_page_are_those_of_the_code():
    page = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    limits = f"{MAX_BYTES >> 20} MiB, {MAX_PIXELS // 10**6} megapixels and {MAX_SIDE:,} pixels a side"
    assert (
        f"An image may have {limits}, as {', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
        in page
    )


def test_links_lead_to_the_project():
    assert (
        docs_url("guides/scoring.md#vllm")
        == f"{PROJECT}/blob/main/docs/guides/scoring.md#vllm"
    )
    for path in SOURCES:
        if path.name != "errors.py":
            text = path.read_text()
            assert PROJECT not in text, f"{path}: the address stands in errors.py alone"
            assert not re.search(
                r'["{(].*docs/\w+/\w+\.md.*["\')]',
                re.sub(r'""".*?"""', "", text, flags=re.DOTALL),
            ), path


def test_nothing_advises_to_install_what_no_index_has():
    advised = subprocess.run(
        [
            "git",
            "grep",
            "-nE",
            r"vieval\[|pip install (--upgrade )?vieval\b",
            "--",
            "vieval_plugin",
            "judges",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    ).stdout
    assert advised == ""
    assert 'pip install ".[http]" in a checkout' in install_advice("http")
