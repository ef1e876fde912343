"""A generator's place among published image models: from verdicts of the same judge, pack, setting and backbone alone."""

import json
from dataclasses import replace

import pytest

from vieval_plugin.judges.protocol import Sample, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.generator_means import with_place
from vieval_plugin.meta_evaluation.statistics import Summary
from vieval_plugin.records import Provenance, response_json, target_json
from vieval_plugin.results.published import published_scores
from vieval_plugin.stats.options import StatisticsOptions

SOURCE = Provenance("viescore", ("0shot",), ("SC", "PQ", "O"), "judge-7b", "viescore/v1", "abc")


@pytest.fixture
def recorded(tmp_path):
    """Two image models on two instructions, to four judges that differ in one thing each."""

    def run(name, source, shift):
        rows = []
        for model, scores in {"SD": (0.2, 0.4), "SDXL": (0.6, 0.8)}.items():
            for uid, score in enumerate(scores):
                sample = Sample(SampleId("imagenhub", "tig", model, f"u{uid}"), {})
                verdict = Verdict({"O": score + shift}, Status.OK)
                response = response_json(sample.id, verdict, source)
                rows.append({"filtered_resps": response, "target": target_json(sample)})
        folder = tmp_path / name
        folder.mkdir()
        (folder / "x_samples_imagenhub.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return folder

    others = {"backbone": "other", "settings": ("1shot",), "judge": "cigeval"}
    odd = [run(field, replace(SOURCE, **{field: value}), 0.1) for field, value in others.items()]
    return [run("same", SOURCE, 0.0), *odd]


def test_only_the_same_judge_counts_and_the_place_is_by_the_common_prompts(recorded):
    found = published_scores(recorded, "imagenhub", "tig", SOURCE, "O")
    assert found == {"SD": {"u0": 0.2, "u1": 0.4}, "SDXL": {"u0": 0.6, "u1": 0.8}}
    placed = with_place(Summary((), {}, {}, StatisticsOptions()), {"u0": 0.5, "u1": 0.5, "new": 0.0}, found).estimates
    assert (placed["place_value"].value, placed["place_among_value"].value) == (2, 3)


@pytest.mark.parametrize("change", [{"pack_hash": "other"}, {"backbone": "nobody"}])
def test_without_verdicts_of_the_same_judge_there_is_no_place(recorded, change):
    found = published_scores(recorded, "imagenhub", "tig", replace(SOURCE, **change), "O")
    assert found == {}
    placed = with_place(Summary((), {}, {}, StatisticsOptions()), {"u0": 0.5}, found).estimates["place_value"]
    assert placed.value != placed.value
    assert placed.reason == "no recorded verdicts of the same judge"
