"""What the plugin for VLMEvalKit is made of, without VLMEvalKit."""

import json
import re
from pathlib import Path
from shlex import split

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refuses
from tests.stored_results import read_lines
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.hosts.vlmevalkit import command, guard, names, tables
from vieval_plugin.hosts.vlmevalkit.host_model import identity_of, interleaved
from vieval_plugin.hosts.vlmevalkit.results import (
    KeptVerdict,
    SheetCell,
    VerdictFiles,
    append,
    cell,
    finish,
    read_cell,
)
from vieval_plugin.judges.protocol import Chat, Image, Message, Status, Verdict
from vieval_plugin.text.errors import VievalError

# what the host looks for in names, in its --judge tables and its functions for types
LOOKED_FOR = split(
    "GEN EDIT VIDEO MMMU MMT-Bench_ALL MMVet LLaVABench MMBench VGRPBench MathVista "
    "LENS MOAT SIUO XSTest Flames OlympiadBench MMLongBench MMDU DUDE SLIDEVQA VDC "
    "WildVision ChartMimic CVQA_EN M4Bench MathCanvas MMReason WorldVQA MaCBench WeMath"
)


def test_names_of_datasets_are_those_of_the_table_and_as_papers_write_them():
    known = names.datasets()
    assert not [name for name in known if name.startswith("generate_")]
    found = [task.part for task in known["ImagenHub_VIEScore"]]
    assert found == ["tig", "mie", "tie", "sdig", "sdie", "mcic", "cig"]
    assert known["ImagenHub_VIEScore_tie"] == known["imagenhub_viescore_tie"]
    assert not [(name, word) for name in known for word in LOOKED_FOR if word in name]
    assert not re.search("openended|moviechat1k", " ".join(known).lower())
    for held in known.values():
        assert len({(task.judge, task.setting) for task in held}) == 1
    misspelt = "ImagenHub_VIEScore_ti"
    refuses(f"did you mean {misspelt}[eg]", names.tasks_of, misspelt)


def row(index=0, response="{}", by="us"):
    return KeptVerdict(index, "target", response, by)


def test_a_cell_says_which_verdict_is_meant():
    text = cell(Verdict({"SC": 1 / 3, "PQ": 1.0}, Status.OK), row())
    assert read_cell(text) == SheetCell("us", row().digest, False)
    assert len(text) < 1000
    failed = cell(Verdict({}, Status.API_ERROR), row())
    assert failed.startswith("Failed to obtain answer via API.")
    assert read_cell(failed) == SheetCell("us", row().digest, True)


@given(st.one_of(st.text(), st.floats(), st.none(), st.integers()))
def test_other_cells_are_none_of_ours(text):
    assert read_cell(text) is None


def test_verdicts_that_a_sheet_means_come_from_any_run(tmp_path):
    runs = ("T20260102_Gb", "T20260101_Ga")
    new, old = (VerdictFiles(tmp_path / name, "m", "d") for name in runs)
    append(old.part(0), row(1, "old"))
    append(new.part(0), row(0, "first"))
    with new.part(0).open("a") as file:  # killed in the middle of a line
        file.write('{"doc_id": 5, "targ')
    append(new.part(0), row(0, "again"))
    append(new.part(1), row(2, "third"))
    expected = {2: "third", 0: "again", 1: "old"}
    means = lambda n, text: SheetCell("us", row(n, text).digest, False)
    wanted = {number: means(number, text) for number, text in expected.items()}
    found = [verdict.response for verdict in finish(new, wanted)]
    assert found == list(expected.values())
    lines = [(x["doc_id"], x["filtered_resps"]) for x in read_lines(new.samples)]
    assert lines == [(number, [text]) for number, text in expected.items()]
    assert new.parts() == []
    lost = {0: wanted[0], 7: SheetCell("us", "0" * 16, False)}
    refuses("missing 1 of 2 verdicts of the sheet", finish, new, lost)


def asked(*messages):
    return Chat(messages, ("question",))


def test_a_question_becomes_parts_in_order_with_stripped_images(tmp_path):
    image = vieval_demo.load(Path(), "tie")[0].images["output"]
    chat = asked(Message("user", ("look at", image, "well")))
    first = interleaved(chat, tmp_path)
    again = interleaved(chat, tmp_path)
    assert [part["type"] for part in first] == ["text", "image", "text"]
    assert again == first
    assert again[0] is not first[0]  # the host changes what it is given
    [file] = tmp_path.iterdir()
    assert first[1]["value"] == str(file)
    turns = asked(Message("user", ("one",)), Message("assistant", ("two",)))
    values = [part["value"] for part in interleaved(turns, tmp_path)]
    assert values == ["user:\n", "one", "assistant:\n", "two"]


OPENED = ["/", "https://example.org/a.png", "data:image/png;base64,xyz", __file__]


@pytest.mark.parametrize("text", OPENED)
def test_a_text_that_the_host_would_open_is_none_any_more(text, tmp_path):
    [part] = interleaved(asked(Message("user", (text,))), tmp_path)
    assert part == {"type": "text", "value": f"\n{text}"}
    with pytest.raises(VievalError):
        interleaved(asked(Message("user", (Image(b"no image"),))), tmp_path)


class Served:
    def __init__(self, model, temperature, key, api_base, retry):
        own = {"model": model, "temperature": temperature, "key": key}
        vars(self).update(own, api_base=api_base, retry=retry, network=object())


def test_a_model_is_told_from_others_by_what_changes_its_answers():
    def identity(**changed):
        given = {"model": "m", "temperature": 0, "key": "sk-1", "api_base": "http://a"}
        return identity_of(Served(**{**given, "retry": 1, **changed}), "name", {})

    assert identity(key="sk-2", api_base="http://b", retry=9) == identity()
    assert "sk-1" not in json.dumps(identity())
    assert identity(temperature=1) != identity()
    named = {"class": "Served", "name": "name", "arguments": {}}
    assert identity_of("name", "name", {"name": Served}) == named


def test_the_summary_calls_a_run_by_its_best_numbers():
    best = {"split=Overall|SC_fisher": 0.5, "split=Overall|auroc_value": 0.9}
    others = ("tie|SC_fisher", "Overall|SC_paper", "Overall|SC_ci_low")
    metrics = {**best, **{f"split={name}": 0.3 for name in others}}
    assert tables.headline({**metrics, "split=Overall|status_ok": 12}) == best


def test_what_the_host_prints_is_rounded_and_has_reasons_but_no_status_of_nobody():
    shown = {"split": "tie", "SC_fisher": 1 / 3, "zeros_value": 0.0, "status_ok": 4}
    row = {**shown, "status_refusal": 0, "remarks": "seed 0"}
    lacking = "SC needs 10 samples, got 4"
    remarks = f"failures: drop; seed 0; undefined: {lacking}; counted as 0: b"
    without = {**row, "SC_fisher": None, "remarks": remarks}
    short = tables.short(pandas.DataFrame([row, {**row, "split": "Overall"}]))
    assert list(short.columns) == list(shown)
    assert short["SC_fisher"].tolist() == [0.3333, 0.3333]
    short = tables.short(pandas.DataFrame([without, row]))
    assert short["undefined"].tolist() == [lacking, ""]


@pytest.mark.parametrize("option", ["--judge", "--judge=gpt-4o", "--judge-args"])
def test_a_second_judge_is_refused(option):
    given = ["--data", "ImagenHub_VIEScore", option, "x"]
    refuses("does not apply to VIEval's datasets", command._split_arguments, given)


def test_a_line_a_dataset_and_the_reasons_once(vieval, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, *lines, last = vieval("vlmevalkit", "--list").out.splitlines()
    listed = {line.split()[0]: line for line in lines}
    assert listed.keys() == names.datasets().keys()
    assert max(map(len, lines)) <= 80
    assert listed["imagenhub_viescore"].split()[1:] == ["7", "missing"]
    assert last.endswith("`vieval tasks NAME` shows missing data")


def bring(folder, name, version):
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (about / "METADATA").write_text(text)
    (about / "top_level.txt").write_text("vlmeval\n")


def test_which_vlmevalkit_is_here_and_that_there_is_only_one(tmp_path, monkeypatch):
    (tmp_path / "vlmeval").mkdir()
    (tmp_path / "vlmeval" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert guard.installation().name == f"a checkout in {tmp_path}"
    bring(tmp_path, "ms-vlmeval", "0.0.20")
    expected = guard.Installation("ms-vlmeval 0.0.20", tmp_path / "vlmeval")
    assert guard.installation() == expected
    bring(tmp_path, "nvidia-vlmeval", "26.3")
    both = r"(ms-vlmeval 0.0.20|nvidia-vlmeval 26.3) and .* overwrite each other"
    refuses(both, guard.installation)
