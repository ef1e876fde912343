"""Descriptions of scorers: those that the docs show can be read, and a number becomes a score in the right direction."""

import re
from pathlib import Path

import pytest

from vieval_plugin.backends.metrics.networks.dual_encoder import DualEncoder
from vieval_plugin.backends.metrics.networks.served import ServedScorer
from vieval_plugin.backends.metrics.networks.value_head import ValueHead
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.scorer import Scale
from vieval_plugin.prompts import descriptions

DOCS = Path(__file__).parents[2] / "docs" / "scorers.md"
FORMS = {"value_head": ValueHead, "dual_encoder": DualEncoder, "served": ServedScorer}
SHOWN = [block for block in re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL) if "form:" in block]


@pytest.mark.parametrize("block", SHOWN, ids=range(len(SHOWN)))
def test_those_that_the_docs_show_can_be_read(tmp_path, block):
    (tmp_path / "mine.yaml").write_text(block)
    (tmp_path / "hpsv3.jinja").write_text("{{ prompt }} <|Reward|>")
    found = descriptions.load(str(tmp_path / "mine.yaml"))
    assert found.parsed(FORMS[found.form])
    assert found.render({"prompt": "a red dog", "instruction": "a red dog", "kind": "tig"}).count("a red dog") == 1


def test_the_docs_name_every_key():
    told = DOCS.read_text()
    keys = [key for model in (descriptions.Written, *FORMS.values()) for key in model.model_fields]
    assert [key for key in keys if f"`{key}`" not in told] == []


@pytest.mark.parametrize("kind", ["linear", "sigmoid"])
def test_a_score_is_better_the_higher_it_is(kind):
    numbers = [-4.0, -1.0, 0.0, 0.5, 2.0, 900.0]
    higher = [Scale(kind, -2, 3)(number) for number in numbers]
    lower = [Scale(kind, -2, 3, "lower")(number) for number in numbers]
    assert higher == sorted(higher)
    assert lower == pytest.approx([1 - score for score in higher])
    assert all(0 <= score <= 1 for score in higher)
    assert Scale("sigmoid", -2, 3)(-1e9) == 0


def test_a_template_without_its_text_is_one_line(tmp_path):
    (tmp_path / "scorer.yaml").write_text("form: served\ntext: '{{ instruction }}'\nscore: {linear: [0, 1]}\n")
    with pytest.raises(VievalError, match="template, line 1: 'instruction' is undefined"):
        descriptions.load(str(tmp_path)).render({"prompt": "a dog"})
