"""Test that hostile YAML and JSON are an error after little work."""

import json

import pytest

from tests.verdict_files import write_rows
from tests.work import calls_at_most
from vieval_plugin.run.verdict_lines import run_file
from vieval_plugin.text.yaml_json import read_json, read_yaml

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghi", "bcdefghij", strict=True)
)
BOMBS = {
    "aliases of aliases": (LAUGHS, "more than 100000 values"),
    "merged aliases": ("a: &a {b: 1}\n" + "".join((f"k{n}: &k{n} {{<<: "
                                                  f"[{', '.join(['*a' if n == 0 else f'*k{n - 1}'] * 9)}]}}\n") for n in range(9)), "more than 100000 values"),
    "a list that holds itself": ("a: &a [*a]", "nested too deeply|more than"),
    "a mapping that holds itself": ("a: &a {b: *a}", "nested too deeply|more than"),
    "deep lists": ("[" * 100_000, "nested too deeply"),
    "deep mappings": ("{a: " * 300 + "1" + "}" * 300, "nested too deeply"),
    "deep blocks": ("".join(" " * n + "a:\n" for n in range(700)), "nested too deeply"),
    "long": ("a: " + "x" * (1 << 20), "longer than 1 MiB"),
    "an object of Python": ("!!python/object/apply:os.system [true]", "could not determine a constructor"),
    "a date that is none": ("a: 2024-99-99", "month must be in"),
    "a key that is a list": ("{[a]: b}", "unhashable"),
    "a number without end": ("a: 0x" + "F" * 6000, "a number of 6002 digits in line 1"),
    "a number to base 60": ("a: 1" + ":59" * 6000, "a number of 18001 digits in line 1"),
    "not YAML": ("a: [b", r"line 1, column 6: expected ',' or ']'"),
    "half a character": ("a: 1\nb: \"x\\ud800\"", "incomplete character in line 2"),
    "a control character": ("a: \x07", "special characters are not allowed"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), BOMBS.values(), ids=BOMBS.keys())
def test_yaml_that_is_too_much_is_an_error_in_a_line_after_little_work(text, reason):
    with (
        calls_at_most(5_000_000),  # some 600,000
        pytest.raises(ValueError, match=reason) as caught,
    ):
        read_yaml(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [text for text, _ in BOMBS.values()], ids=BOMBS.keys())
def test_an_options_file_that_is_one_is_one_line(text, tmp_path, monkeypatch, vieval):
    (tmp_path / "vieval.yaml").write_text(text)
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    said = vieval("tasks", code=1).err
    assert said.startswith(f"vieval: {tmp_path / 'vieval.yaml'}: not YAML (")
    assert said.count("\n") == 1


def test_ordinary_yaml_is_read_with_its_aliases():
    text = "base: &base {a: 1, b: [1, 2]}\nother: {<<: *base, c: *base}\nday: 2024-05-06\nnone:\n"
    read = read_yaml(text)
    assert read["other"] == {"a": 1, "b": [1, 2], "c": {"a": 1, "b": [1, 2]}}
    assert (read["day"].year, read["none"]) == (2024, None)
    assert read_yaml("") is None


@pytest.mark.parametrize("depth", [61, 900, 200_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_json_that_is_nested_too_deeply_is_an_error(depth, opened, closed):
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(opened * depth + "1" + closed * depth)


def test_ordinary_json_is_read():
    assert read_json("[" * 60 + "]" * 60)
    held = {"a": [1, {"b": None}], "c": "[[["}
    assert read_json(json.dumps(held).encode()) == held
    with pytest.raises(ValueError, match="Expecting"):
        read_json("{")


@pytest.mark.parametrize("where", ["options", "answer", "row"])
def test_deep_json_in_results_is_one_line_or_shown(where, tmp_path, vieval):
    deep = "[" * 500 + "]" * 500
    source = {"judge": "mine", "settings": [], "aspects": ["SC"]}
    source["options"] = {"deep": "HERE"} if where == "options" else {}
    answer = f'{{"a": {deep}}}' if where == "answer" else ""
    step = {"path": ["q"], "status": "ok", "answer": answer}
    row = {"vieval": 2, "uid": "u", "image_model": "m", "kind": "tig", "scores": {}}
    row |= {"status": "ok", "trace": [step], "provenance": source}
    write_rows(path := tmp_path / "v.jsonl", row)
    run_file(path).write_text(run_file(path).read_text().replace('"HERE"', deep))
    if where == "row":
        path.write_text(f"{path.read_text()}{deep}\n")
    code = 0 if where == "answer" else 1
    said = vieval("show", tmp_path / "v.jsonl", "u", code=code)
    assert "unforeseen" not in said.err
    assert said.err.count("\n") == code
