"""lmms-eval's command line in the tests' own process, with one index of tasks: 2 s a run, not 20.

Nothing of the host is imported before it is run; the fixture `lmms_eval` starts a process.
"""

import base64
import functools
import gc
import hashlib
import itertools
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.refusals import refusal
from tests.stored_results import read_lines
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image

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
        found = {}
        for several in map(self._answers, self.rows):
            documents = [json.loads(answer) for answer in several]
            identity = documents[0]["id"]
            name = identity["image_model"] + identity["uid"]
            found[name] = [document["verdict"] for document in documents]
        return found

    @property
    def statuses(self):
        several = itertools.chain.from_iterable(self.verdicts.values())
        return Counter(verdict["status"] for verdict in several)

    def answers(self, label=None):
        """By sample and question, the model's answer word for word."""
        return {
            (name, label_of(step)): step["answer"]
            for name, several in self.verdicts.items()
            for step in several[0]["trace"]
            if label in (None, label_of(step))
        }

    @staticmethod
    def _answers(row):
        responses = row["filtered_resps"]
        if not isinstance(responses, list):
            return [responses]
        while responses and isinstance(responses[0], list):
            [responses] = responses
        return responses


def label_of(step):
    """The name of a step in a samples file."""
    reminder = f" (reminder {step['attempt']})" if step["attempt"] else ""
    return "/".join(step["path"]) + reminder


@functools.cache
def demo():
    samples = vieval_demo.load(Path(), "tie")
    return {sample.id.image_model + sample.id.uid: sample for sample in samples}


@functools.cache
def rated():
    """The ratings of each drawn edit, by its pixels."""
    samples = demo().values()
    return {pixels(sample.images["output"]): sample.ratings for sample in samples}


def served(model, server, **further):
    """A model's arguments for a fake server."""
    name = "model" if model == "vieval_openai" else "model_version"
    named = {name: "fake", "base_url": server.base_url, **further}
    if model != "vieval_openai":
        named["api_key"] = "EMPTY"
    arguments = ",".join(f"{k}={v}" for k, v in named.items())
    return ("--model", model, "--model_args", arguments)


def pixels(image):
    picture = decode(image)
    content = repr(picture.size).encode() + picture.tobytes()
    return hashlib.sha256(content).hexdigest()[:12]


def shown(request):
    """The images of a request, by their pixels: hosts encode them anew."""
    return [pixels(Image(data)) for data in images_in(request)]


def images_in(request):
    """The files of a request's images, in order."""
    contents = [message["content"] for message in request["messages"]]
    parts = [part for c in contents if isinstance(c, list) for part in c]
    urls = [part["image_url"]["url"] for part in parts if "image_url" in part]
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def naming_images(request):
    """An answer that names the images it was asked about."""
    return json.dumps({"score": [3, 4], "reasoning": " ".join(shown(request))})


def own_images(name):
    """What `naming_images` must say of a sample when it was shown its own images, by question."""
    images = demo()[name].images
    output = pixels(images["output"])
    return {"SC": f"{pixels(images['source'])} {output}", "PQ": output}


def _full_load(stream):
    """`yaml.full_load` by libyaml if possible: the host's 2,000 files take 1 s, not 6 s."""

    class Loader(getattr(yaml, "CFullLoader", yaml.FullLoader)):
        yaml_constructors = yaml.FullLoader.yaml_constructors

    return yaml.load(stream, Loader=Loader)


@functools.cache
def tasks():
    """The host's index of tasks, ours among them, made once a process: it takes seconds."""
    from lmms_eval.tasks import TaskManager

    from vieval_plugin.hosts.lmms_eval import register

    register()  # what the entry point does when lmms-eval loads its models
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "full_load", _full_load)
        index = TaskManager("WARNING")
    # the host collects garbage twice a run, which with its imports takes 1.5 s of 2.5 s
    gc.collect()
    gc.freeze()
    return index


def run(*arguments, data=None, options=None):
    """Run the host's command line with these arguments and no other options."""
    reason = "lmms-eval is not installed"
    host = pytest.importorskip("lmms_eval.__main__", reason=reason)
    from vieval_plugin.hosts.lmms_eval import command_line

    # a test may have asked for models before this module, which a command never does
    command_line.install()
    index = tasks()

    def with_model(*_, model_name=None, **__):
        index.model_name = model_name
        return index

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "TaskManager", with_model)
        patch.setattr(sys, "argv", ["lmms-eval", *map(str, arguments)])
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        for name, value in (("VIEVAL_DATA", data), ("VIEVAL_CONFIG", options)):
            patch.delenv(name, raising=False)
            if value:
                patch.setenv(name, str(value))
        try:
            host.cli_evaluate()
        except SystemExit as ended:  # as calls failed; there are results
            if "calls FAILED" not in str(ended):
                raise
        finally:
            from loguru import logger

            logger.remove()  # the host's own goes to the test's output, which is closed after it
            index.model_name = None


def refused(*arguments, data=None):
    """The one line with which the host ends."""
    line = refusal(run, *arguments, data=data)
    assert line.startswith("vieval: ")
    return line


def read(folder):
    """The results document of the only run below a folder, and its samples by task."""
    [path] = Path(folder).rglob("*_results.json")
    files = Path(folder).rglob("*_samples_*.jsonl")
    samples = {file.stem.split("_samples_")[1]: read_lines(file) for file in files}
    return json.loads(path.read_text()), samples


@pytest.fixture
def evaluate(tmp_path):
    """Judge a demo task (or another) in this process; only a `store` keeps replies."""
    numbers = itertools.count()

    def judged(*arguments, tasks=TIE, limit=6, store=None, data=None, **options):
        out = tmp_path / f"run{next(numbers)}"
        file = options_file(out.with_suffix(".yaml"), store, **options)
        asked = command(arguments, tasks, limit)[1:]
        run(*asked, "--output_path", out, data=data, options=file)
        document, samples = read(out)
        return Run(document["results"][tasks], document, samples[tasks])

    return judged


def options_file(path, store=None, **options):
    """Writes the options of a run whose replies are kept in `store`, or nowhere."""
    kept = {"path": str(store)} if store else {"use": False}
    path.write_text(json.dumps({"store": kept, **options}))  # which is YAML too
    return path


def command(arguments, tasks=TIE, limit=6):
    """A command line of the host."""
    chosen = ("--tasks", tasks, "--limit", limit, "--log_samples")
    return ("lmms-eval", *arguments, *chosen)


def replay(logs, out, tasks):
    """The arguments of a replay of recorded verdicts."""
    model = ("--model", "vieval_replay", "--model_args", f"name=test,logs={logs}")
    return (*model, "--tasks", tasks, "--output_path", out, "--log_samples")
