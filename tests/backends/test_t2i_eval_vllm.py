"""Test T2I-Eval on a real vLLM that enforces its schemas (`make test-vllm`)."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests import pairs
from tests.extras import VLLM_URL, served_by_vllm
from vieval_plugin.cli import main
from vieval_plugin.results.lookup import open_results
from vieval_plugin.results.tree import outline, text

pytestmark = pytest.mark.vllm


def test_every_reply_parses_under_enforced_schemas(lmms_eval, tmp_path, monkeypatch):
    model = served_by_vllm()["id"]
    pairs.write(tmp_path, 6)
    assert main(["prepare", "t2i_eval_bench", "--root", str(tmp_path)]) == 0
    options, out = tmp_path / "v.yaml", tmp_path / "out"
    options.write_text("store: {use: false}\nstatistics: {draws: 50}\n")
    named = f"model={model},base_url={VLLM_URL},num_concurrent=4"
    flags = ["--model", "vieval_openai", "--model_args", named, "--log_samples"]
    flags += ["--tasks", "t2i_eval_bench_t2i_eval", "--output_path", out]
    done = lmms_eval(*flags, data=tmp_path, options=options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert "vieval: verdicts: " in done.stderr
    monkeypatch.setenv("VIEVAL_DATA", str(tmp_path))
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    lookup = open_results([out])
    steps = [step for record in lookup.records for step in record.verdict.trace]
    # random weights end no explanation, so that some replies are cut by the limit of tokens
    counts = Counter(str(step.status) for step in steps)
    assert counts.keys() <= {"ok", "repaired", "parse_failure"}
    assert counts["ok"]
    assert all(step.answer.startswith("{") for step in steps if step.answer)
    for record in lookup.records:
        exchanges = lookup.conversation(record)
        # a question is asked again after all others were asked, and stands beside its first
        # answer in the trace
        asked = [exchange.step for exchange in exchanges]
        place = lambda step: (step.path, step.attempt)
        assert sorted(asked, key=place) == sorted(record.verdict.trace, key=place)
        shown = "\n".join(text(outline(record, exchanges)))
        marks = re.findall(r"\[(ok|repaired|parse_failure)\]", shown)
        assert len(marks) == 1 + len(exchanges)
