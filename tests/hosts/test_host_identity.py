"""Which model judged: its name and what it was made from, from the command line and from Python."""

from collections import ChainMap
from unittest.mock import MagicMock

import pytest
from lmms_eval.api.model import lmms

from tests import in_process
from tests.fake_server import FakeServer
from tests.in_process import TIE, options_file, served
from vieval_plugin.hosts.lmms_eval.model_identity import model_identity
from vieval_plugin.results.documents import read_response

GOOD = '{"score": [3, 4], "reasoning": "fine"}'


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Judges two samples by the host's `simple_evaluate`; the backbones of the verdicts."""
    file = options_file(tmp_path / "options.yaml", tmp_path / "replies.sqlite")
    monkeypatch.setenv("VIEVAL_CONFIG", str(file))

    def judged(model, arguments=""):
        from lmms_eval.evaluator import simple_evaluate

        given = {"tasks": [TIE], "limit": 2, "task_manager": in_process.tasks()}
        rows = simple_evaluate(model, arguments, **given)["samples"][TIE]
        found = [read_response(row["filtered_resps"][0])[2] for row in rows]
        return {provenance.backbone for provenance in found}

    return judged


def arguments_of(server, **further):
    return served("openai", server, **further)[3]


def test_the_command_line_and_python_know_the_same_model(python, evaluate, tmp_path):
    with FakeServer(reply=lambda _: GOOD) as server:
        evaluate(*served("openai", server), limit=2, store=tmp_path / "replies.sqlite")
        asked = server.stats()["requests"]
        for further in ({}, {"api_key": "another-key-of-the-same-model"}):
            assert python("openai", arguments_of(server, **further)) == {"fake"}
        assert server.stats()["requests"] == asked
        found = python("openai", arguments_of(server, model_version="lab/other"))
        assert found == {"other"}
        assert server.stats()["requests"] > asked


class Made(lmms):
    """A model that a user makes, whose weights may be any."""

    def __init__(self, pretrained=""):
        super().__init__()
        self.pretrained, self.asked = pretrained, 0

    def generate_until(self, requests):
        self.asked += len(requests)
        return [GOOD] * len(requests)

    loglikelihood = generate_until_multi_round = None


def test_an_object_is_named_and_its_answers_are_not_kept(python):
    model = Made("folder/tuned/")
    assert python(model) == {"tuned"}
    asked = model.asked
    assert python(model) == {"tuned"}
    assert model.asked == 2 * asked
    assert python(Made()) == {"Made"}


def test_a_key_is_no_part_of_a_model():
    def identity(**changed):
        model = Made()
        arguments = {"model_version": "m", "base_url": "http://h/v1", **changed}
        model.vieval_source = ("openai", arguments)
        return model_identity(model)

    for key in ({"api_key": "sk-1"}, {"hf_token": "hf_1"}):
        assert identity(**key) == identity()
    assert identity(base_url="http://other/v1").hash != identity().hash
    assert identity(model_version="n").name == "n"


def test_weights_and_biases_gets_a_table_of_samples(evaluate, monkeypatch):
    from lmms_eval.loggers import WandbLogger

    run = MagicMock()
    init = lambda self, **_: setattr(self, "run", run)
    monkeypatch.setattr(WandbLogger, "__init__", init)
    for name in ("results_as_table", "results_as_artifact", "samples_as_artifact"):
        monkeypatch.setattr(WandbLogger, f"_log_{name}", lambda *_: None)
    task = "vieval_demo_ssim_tie"
    flags = ("--wandb_args", "project=p", "--wandb_log_samples")
    done = evaluate("--model", "vieval_scorer", *flags, tasks=task, limit=3)
    logged = ChainMap(*(call.args[0] for call in run.log.call_args_list))
    rows = logged[f"{task}_eval_results"].to_dict("records")
    table = {r["image_model"] + r["uid"]: (r["status"], r["SC"]) for r in rows}
    verdicts = {name: verdict for name, [verdict] in done.verdicts.items()}
    expected = {n: (v["status"], v["scores"]["SC"]) for n, v in verdicts.items()}
    assert table == expected
    assert all(0 <= row["SC_rating"] <= 1 for row in rows)
