"""lmms-eval's command line run in the tests' own process, with its index of tasks made once: 2 s a run, not 20.

Nothing of the host is imported before the fixture `evaluate` is used.
"""

import functools
import itertools
import json
import sys
from collections import Counter
from dataclasses import dataclass

import pytest

TIE = "vieval_demo_viescore_tie"


@dataclass
class Run:
    """What a run left: the task's metrics, the whole results document, the samples file's rows."""

    metrics: dict
    document: dict
    rows: list

    @property
    def verdicts(self):
        """Verdicts by sample, each a list of as many as --repeats."""
        return {
            self._name(answers[0]): [json.loads(answer)["verdict"] for answer in answers]
            for answers in map(self._answers, self.rows)
        }

    @property
    def statuses(self):
        return Counter(verdict["status"] for several in self.verdicts.values() for verdict in several)

    def answers(self, label=None):
        """By sample and question, the model's answer word for word."""
        return {
            (name, step["label"]): step["answer"]
            for name, several in self.verdicts.items()
            for step in several[0]["trace"]
            if label in (None, step["label"])
        }

    @staticmethod
    def _answers(row):
        responses = row["filtered_resps"]
        while isinstance(responses, list) and responses and isinstance(responses[0], list):
            [responses] = responses
        return responses if isinstance(responses, list) else [responses]

    @staticmethod
    def _name(answer):
        identity = json.loads(answer)["id"]
        return identity["image_model"] + identity["uid"]


@functools.cache
def _tasks():
    from lmms_eval.tasks import TaskManager

    return TaskManager("WARNING")


@pytest.fixture
def evaluate(tmp_path, monkeypatch, results_of):
    """Runs lmms-eval's command line in this process; no reply is kept unless `store` names a file."""
    host = pytest.importorskip("lmms_eval.__main__", reason="lmms-eval is not installed")
    monkeypatch.setattr(host, "TaskManager", lambda *_, **__: _tasks())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    numbers = itertools.count()

    def run(*arguments, tasks=TIE, limit=6, store=None, **options):
        out = tmp_path / f"run{next(numbers)}"
        monkeypatch.setenv("VIEVAL_CONFIG", str(options_file(out.with_suffix(".yaml"), store, **options)))
        monkeypatch.setattr(sys, "argv", [str(a) for a in (*command(arguments, tasks, limit), "--output_path", out)])
        host.cli_evaluate()
        document, samples = results_of(out)
        return Run(document["results"][tasks], document, samples[tasks])

    yield run
    from loguru import logger

    logger.remove()  # the host's own goes to this test's output, which is closed after it


def options_file(path, store=None, **options):
    """Writes the options of a run whose replies are kept in `store`, or nowhere."""
    kept = {"path": str(store)} if store else {"use": False}
    path.write_text(json.dumps({"store": kept, **options}))  # which is YAML too
    return path


def command(arguments, tasks=TIE, limit=6):
    """A command line of the host."""
    return ("lmms-eval", *arguments, "--tasks", tasks, "--limit", limit, "--log_samples")
