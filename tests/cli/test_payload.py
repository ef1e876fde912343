"""A marked payload in every field that others write, and a look at every output: console, Markdown,
CSV, JSON, HTML.

The payload is an escape sequence, Markdown, a formula, a tag and marks that change the direction of
text.
"""

import csv
import itertools
import json
import re
from shlex import split

import numpy as np
import PIL.Image
import pytest
from markdown_it import MarkdownIt

from tests.harmless import NAME, harmless_console
from tests.local_site import answering
from tests.report.pages import Page
from tests.stored_results import read_lines, result, write_lines, write_results
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Step, Verdict
from vieval_plugin.meta_evaluation.tables import Table, markdown
from vieval_plugin.records import Provenance

LINKS = (
    "[link](http://evil.example) ![picture](http://evil.example/x.png) "
    "<script>alert(1)</script> http://evil.example"
)
PAYLOAD = f"{NAME}\r\n```\n## {LINKS} [ref]: http://evil.example"
FORMULAS = (
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|x",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    " =1",
)
BLOCKS = split("heading_open heading_close inline paragraph_open paragraph_close fence")
TABLES = split("table thead tbody tr th td")
WORDS = split("code_inline text softbreak text_special strong_open strong_close")
WORDS += split("em_open em_close link_open link_close")


def harmless_markdown(text):
    """What it renders to has our headings, and no link, image, code or tag."""
    harmless_console(text)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or []]
    cells = (f"{part}_{end}" for part in TABLES for end in ("open", "close"))
    assert {token.type for token in tokens} <= {*BLOCKS, *cells}
    assert {child.type for child in inline} <= {*WORDS}
    said = [child.content for child in inline if child.type == "code_inline"]
    assert not [content for content in said if "code" in content]
    assert not [child for child in inline if "evil" in str(child.attrs)]
    pairs = itertools.pairwise(tokens)
    titles = [after.content for one, after in pairs if one.type == "heading_open"]
    assert not [title for title in titles if title.startswith("Heading")]
    assert re.search(r"^\|", text, re.MULTILINE)
    return tokens


def harmless_csv(path):
    harmless_console(path.read_text())
    with path.open(newline="") as file:
        rows = [*csv.reader(file)]
    assert {len(row) for row in rows} == {len(rows[0])}
    for cell in (cell for row in rows for cell in row):
        is_number = re.fullmatch(r"[-+0-9.,e \[\]]*", cell)
        assert is_number or not cell.lstrip().startswith(("=", "+", "-", "@")), cell
    return rows


TAGS = split("html head link body main p meta title style details summary span pre")
TAGS += split("h1 img em")


def harmless_html(text):
    harmless_console(text)
    seen = Page(text)
    names = {name for name, _ in seen.elements}
    assert names <= {*TAGS}
    for _, name, value in seen.attributes():
        assert not name.startswith("on")
        assert "evil" not in value
    return names


def harmless_json(text):
    assert text.isascii()
    assert "\x1b" not in text
    assert [json.loads(line) for line in text.splitlines() if line]


# A run of our own: what servers, samples files and file names say.


def scored(asked):
    form = json.loads(asked).get("response_format", {})
    wanted = form.get("json_schema", {}).get("schema", {})
    if "probe" in wanted.get("properties", {}):
        return json.dumps({"probe": "vieval"})
    count = wanted["properties"]["score"]["minItems"] if wanted else 1
    return json.dumps({"score": [7] * count, "reasoning": PAYLOAD})


def hostile(path, body, _):
    """Answers by what a prompt asks for."""
    asked = body.decode()
    ways = ("refuse", "decline", "error", "prose")
    way = next((way for way in ways if f"way {way}" in asked), "score")
    if way == "error":
        error = {"message": PAYLOAD, "type": PAYLOAD, "code": PAYLOAD}
        return 400, {}, json.dumps({"error": error}).encode()
    says = {"score": {"content": scored(asked)}, "prose": {"content": PAYLOAD}}
    says["refuse"] = {"content": None, "refusal": PAYLOAD}
    says["decline"] = {"content": f"I'm sorry, I can't assist with that. {PAYLOAD}"}
    message = says[way]
    choice = {"message": {"role": "assistant", **message}, "finish_reason": "stop"}
    reply = {"choices": [choice], "usage": {"prompt_tokens": 1}, "model": PAYLOAD}
    return 200, {}, json.dumps(reply).encode()


@pytest.fixture(scope="module")
def address():
    with answering(hostile) as host:
        yield f"http://{host}/v1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose own name is hostile, and options with a store in it."""
    made = tmp_path / NAME.replace("/", "-")
    made.mkdir()
    (made / "vieval.yaml").write_text("store: {path: replies.sqlite}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(made / "vieval.yaml"))
    return made


@pytest.fixture
def ran(folder, address, capsys):
    """A scored file of hostile samples: the folder, and what was said."""
    picture = f"{NAME}.png".replace("/", "-")
    PIL.Image.effect_noise((32, 32), 60).save(folder / picture)
    (folder / "broken\x1b.png").write_bytes(b"no image \x1b[31m")

    def row(uid, image=picture, prompt="x", **cells):
        texts, images = {"prompt": prompt}, {"output": image}
        return {"uid": uid, "kind": "tig", "images": images, "texts": texts, **cells}

    ways = ("score", "refuse", "decline", "error", "prose")
    uids = {way: f"{way} {PAYLOAD}" for way in ways}
    about = {"image_model": PAYLOAD}
    rows = [row(uid, prompt=f"way {uid}", **about) for uid in uids.values()]
    rows += [row("kind", kind=PAYLOAD), {"uid": "key", PAYLOAD: 1}]
    rows += [row("absent", PAYLOAD), row("address", f"http://x/{PAYLOAD}")]
    rows += [row("broken", "broken\x1b.png")]
    rows += [row(f"{n}", image_model=model) for n, model in enumerate(FORMULAS)]
    write_lines(folder / "s.jsonl", rows)
    command = ["score", str(folder / "s.jsonl"), "--out", str(folder / "v.jsonl")]
    assert main([*command, "--model", NAME, "--base-url", address]) == 1
    return folder, capsys.readouterr()


def without_bar(text):
    """What was said less the progress bar, which goes back in its line."""
    return "\n".join(line.rsplit("\r", 1)[-1] for line in text.split("\n"))


def test_score_and_show_say_nothing_that_steers(ran, vieval):
    folder, said = ran
    harmless_console(said.out)
    harmless_console(without_bar(said.err))
    verdicts = folder / "v.jsonl"
    harmless_json(verdicts.read_text())
    rows = read_lines(verdicts)
    statuses = [row["status"] for row in rows[:5]]
    assert statuses == split("ok refusal parse_failure api_error parse_failure")
    for row in rows:
        shown = vieval("show", verdicts, row["uid"]).out
        harmless_console(shown)
        assert f"[{row['status']}]" in shown.splitlines()[0]


def test_pages_show_words_as_words(ran, vieval):
    folder, _ = ran
    page = folder / "page.html"
    for way in ("score", "refuse", "error", "prose"):
        command = ("show", folder / "v.jsonl", f"{way} {PAYLOAD}", "--html", page)
        harmless_console(vieval(*command).out)
        assert "img" in harmless_html(page.read_text())  # that of the sample


#: What goes wrong with hostile words; names in capitals stand for them and for paths.
WRONG = """
show RESULTS PAYLOAD
show RESULTS SAMPLE --judge PAYLOAD
show PAYLOAD x
report RESULTS --out REPORT
report PAYLOAD --out REPORT
export viescore RESULTS --out EXPORT
export PAYLOAD RESULTS --out EXPORT
export PAYLOAD RESULTS --out NOWHERE
score PAYLOAD --out RESULTS
score SAMPLES --out FOLDER --model x --base-url ADDRESS
score SAMPLES --out RESULTS --judge PAYLOAD
score SAMPLES --out RESULTS --setting PAYLOAD
score SAMPLES --strict --out RESULTS --model x --base-url ADDRESS
prepare PAYLOAD
prompts import viescore PAYLOAD --to PACKS
config --of RESULTS
cache info
cache export
tasks
doctor
"""


def require_harmless(command, vieval):
    """Run a command that may fail; what it says steers nothing."""
    said = vieval(*command, code=None)
    harmless_console(said.out)
    harmless_console(without_bar(said.err))
    assert "unforeseen" not in said.err, (command, said.err)
    return said


def test_errors_and_lists_say_nothing_that_steers(ran, vieval, address):
    folder, _ = ran
    names = {"RESULTS": "v.jsonl", "SAMPLES": "s.jsonl", "REPORT": "report"}
    names |= {"EXPORT": "x", "PACKS": "packs", "NOWHERE": "nowhere\x1b/v.jsonl/x"}
    words = {name: str(folder / path) for name, path in names.items()}
    words |= {"PAYLOAD": PAYLOAD, "SAMPLE": f"score {PAYLOAD}", "ADDRESS": address}
    words["FOLDER"] = str(folder)
    for line in WRONG.strip().splitlines():
        said = require_harmless([words.get(w, w) for w in line.split()], vieval)
        assert said.out + said.err, line


# Results of a host: what models, tags, findings and logs say.


@pytest.fixture
def results(folder):
    """Results of a host with judges, image models, findings and reasons of others' making."""
    rng, rows = np.random.default_rng(3), []
    for number in range(60):
        model = (PAYLOAD, *FORMULAS)[number % 8]
        identity = SampleId("vieval_demo", "tie", model, f"{number // 8} {PAYLOAD}")
        ratings = {"SC": tuple(map(float, rng.choice([0.0, 0.5, 1.0], 3)))}
        group = PAYLOAD + str(number // 8)
        sample = Sample(identity, {}, ratings=ratings, tags=(PAYLOAD,), group=group)
        status = Status.OK if number % 5 else Status.REFUSAL
        trace = (Step((PAYLOAD, "x"), status, (7.0,), PAYLOAD, PAYLOAD),)
        scores = {"SC": float(rng.random())} if number % 5 else {}
        verdict = Verdict(scores, status, PAYLOAD, trace, findings=(PAYLOAD, *FORMULAS))
        options = {"options": {PAYLOAD: PAYLOAD}}
        for judge in (PAYLOAD, *FORMULAS[:2]):
            told = ("mine", (PAYLOAD,), ("SC",), judge, PAYLOAD, PAYLOAD)
            rows.append(result(sample, verdict, Provenance(*told, **options)))
    return write_results(folder / "run", rows)


EXPECTED = "table,task,image_model,judge,statistic,aspect,printed,reproducible,why_not"


def test_a_title_of_a_table_is_text_too():
    table = markdown(Table("t", PAYLOAD, ("judge",), ((PAYLOAD,),)))
    tokens = harmless_markdown(table)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h3"]


def test_a_report_holds_nothing_that_steers_links_or_computes(results, folder, vieval):
    row = ["T1", "all", PAYLOAD, PAYLOAD, "fisher", "SC", "0.5", "no", PAYLOAD]
    with (folder / "expected.csv").open("w", newline="") as file:
        csv.writer(file).writerows([EXPECTED.split(","), row])
    out = folder / "report"
    flags = ("--out", out, "--expect", folder / "expected.csv")
    said = vieval("report", results, *flags, code=None)
    harmless_console(said.out)
    harmless_console(said.err)
    harmless_markdown((out / "report.md").read_text())
    page = (out / "report.html").read_text()
    harmless_console(page)
    seen = Page(page)
    names = {name for name, _ in seen.elements}
    assert not names & {"img", "iframe", "object", "embed", "base"}
    assert len(seen.all("script")) == 1
    for tag, name, value in seen.attributes():
        assert not re.match("on|(src|action|style|srcset)$", name), tag
        assert name != "href" or value.startswith(("#", "data:")), value
    rows = [row for path in out.glob("*.csv") for row in harmless_csv(path)]
    cells = [cell for row in rows for cell in row]
    assert any("'=1+1" in cell for cell in cells)
    assert any(re.fullmatch(r"-0\.\d+.*", cell) for cell in cells)
    document = (out / "cells.json").read_text()
    assert document.isascii()
    assert json.loads(document)


def test_options_and_traces_of_results_are_shown_harmlessly(results, folder, vieval):
    record, compared = f"{FORMULAS[0]}/0 {PAYLOAD}", folder / "compared"
    for command in (
        ["config", "--of", results],
        ["show", results, record],
        ["show", results, "nothing"],
        ["show", results, record, "--html", folder / "p.html"],
        ["report", results, "--out", folder / "r", "--traces"],
        ["compare", results, "--draws", "20", "--out", compared],
        ["export", "mine", results, "--out", folder / "t.jsonl"],
    ):
        require_harmless(command, vieval)
    assert [harmless_csv(compared / name) for name in ("numbers.csv", "pairs.csv")]


def test_a_row_that_is_no_result_is_quoted_harmlessly(results, folder, vieval):
    wrong = json.dumps({"filtered_resps": PAYLOAD, "target": PAYLOAD})
    for text in (wrong, PAYLOAD, "[" * 5000, '{"\\ud800": "\\ud800"}'):
        (results / "1_samples_task.jsonl").write_text(text)
        said = vieval("report", results, "--out", folder / "r", code=1)
        harmless_console(said.err)
        assert said.err.count("\n") == 1
        assert "unforeseen" not in said.err
