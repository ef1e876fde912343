"""Hand-written pages name what exists, and keep to their budget."""

import re
import runpy

import pytest

from tests import bounds
from tests.docs import pages

WRITTEN = [
    pytest.param(page, id=str(page.relative_to(pages.ROOT))) for page in pages.written()
]


@pytest.mark.parametrize("page", WRITTEN)
def test_commands_and_options_are_there(page):
    commands = pages.commands(page.read_text(encoding="utf-8"))
    faults = {" ".join(words): pages.fault(words) for words in commands}
    assert {command: it for command, it in faults.items() if it} == {}


@pytest.mark.parametrize("page", WRITTEN)
def test_no_sentence_is_long(page):
    text = pages.FENCE.sub("", page.read_text(encoding="utf-8"))
    kept = [
        it for it in text.splitlines() if not it.lstrip().startswith(("|", "#", "<"))
    ]
    lines = [re.sub(r"\]\([^)]*\)", "]", line) for line in kept]
    ends = r"(?<=[.!?])\s+(?=[A-Z`\[])"
    sentences = [sentence for line in lines for sentence in re.split(ends, line)]
    long = [s for s in sentences if len(s.split()) > bounds.SENTENCE_WORDS]
    assert long == []


@pytest.mark.parametrize("page", WRITTEN)
def test_files_are_there(page):
    named = list(pages.files(page.read_text(encoding="utf-8")))
    assert [path for path in named if not (pages.ROOT / path).exists()] == []


@pytest.mark.parametrize("page", WRITTEN)
def test_links_lead_to_pages_and_headings(page):
    """Sphinx checks those of the site again; these also hold on GitHub and for README."""
    lost = []
    text = pages.FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in pages.LINK.findall(text):
        address = link.removeprefix("https://github.com/vieval/vieval/blob/main/")
        home = page.parent if address == link else pages.ROOT
        if re.match(r"[a-z]+:", address):
            continue
        path, _, anchor = address.partition("#")
        target = (home / path).resolve() if path else page
        within = str(target).removeprefix(f"{pages.DOCS}/")
        if within.startswith(pages.GENERATED) or within == "demo.html":
            continue
        if not target.exists() or (
            anchor and anchor not in pages.anchors(target.read_text(encoding="utf-8"))
        ):
            lost.append(link)
    assert lost == []


def test_the_pages_keep_to_their_budget():
    own = [page for page in pages.DOCS.rglob("*.md") if page.parent.name != "space"]
    notebooks = [*pages.DOCS.rglob("*.ipynb")]
    texts = [page.read_text(encoding="utf-8") for page in (*own, *notebooks)]
    readme = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    assert 10 < len(own) <= bounds.PAGES
    assert len(notebooks) <= bounds.NOTEBOOKS
    words = sum(len(re.findall(r"\S*\w\S*", text)) for text in texts)
    assert words <= bounds.PAGE_WORDS
    lines = [len(text.splitlines()) for text in texts[: len(own)]]
    assert sum(lines) <= bounds.PAGE_LINES
    assert len(readme.splitlines()) <= bounds.README_LINES


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("vieval score a.png --promt x", "vieval score has no option --promt"),
        ("OPENAI_API_KEY=x vieval skore a.png", "vieval has no command skore"),
        ("vieval prompts shwo v/v1 | head", "vieval prompts has no command shwo"),
        ("make dem", "make has no target dem"),
        ("vieval prompts show viescore/v1 > a.txt && make demo", ""),
        ("vieval COMMAND --help", ""),
        ("lmms-eval --model vieval --tasks imagenhub", ""),
    ],
)
def test_a_wrong_command_is_found(command, fault):
    commands = pages.commands(f"```bash\n{command}\n```\n")
    found = [*filter(None, map(pages.fault, commands))]
    assert found == ([fault] if fault else [])


def test_a_file_is_looked_for_unless_the_page_writes_it():
    named = "`judges/mine.py`, `docs/lost.md` and `viescore/v1`"
    page = f"{named}\n\n```python judges/mine.py\nSPEC = None\n```\n"
    assert list(pages.files(page)) == ["docs/lost.md"]


def test_the_prose_check_finds_turns_and_leaves_code_alone():
    pytest.importorskip("proselint")
    check = runpy.run_path(str(pages.DOCS / "check_prose.py"))
    check["CheckRegistry"]().register_many(check["__register__"])
    turns = "It is very slow.\n\nThe run is\nput right.\n\n```\nvery\n```\n\n"
    page = f'{turns}See `very`, and `pip install "vieval[http]"`.\n'
    assert [line for line, _ in sorted(check["findings"](page))] == [1, 4, 10]
