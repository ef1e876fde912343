"""Fixtures that several test modules use."""

import atexit
import gc
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import extras, in_process, tiny_scorers
from tests.documents import require_valid
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.cli import main
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.text.errors import VievalError

evaluate = in_process.evaluate  # a fixture

CACHES = itertools.count()
HERE = Path(__file__).parent
SHARED = Path(__file__).parents[2] / "shared" / "data"


# several processes test at once: a processor each is what there is, also for those that they start
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# rooms whose tests start no process and no server: `make test` begins with those that are not slow
UNIT_ROOMS = ("judges", "media", "text", "test_architecture.py", "test_style.py")
ELSEWHERE = {"slow", "extras", "page", "vllm", "attack", "vlmevalkit", "wheel"}

# what takes longest goes first, so that no process is left with it when the others are done
LONGEST = (
    "test_twenty_thousand.py",
    "test_processes.py",
    "test_card.py",
    "test_paper_tables.py",
    "test_tutorials.py",
    "test_host_models.py",
    "test_ray.py",
    "test_audit.py",
    "test_generate_killed.py",
    "test_endings_in_a_host.py",
    "test_example_plugin.py",
    "test_program_end.py",
    "test_generate_in_a_host.py",
    "test_scorers.py",
    "test_endings.py",
    "test_vieval_demo.py",
    "test_six_logs.py",
)


def room_of(path):
    """First folder or file of a path below this folder; empty for others."""
    return path.parts[len(HERE.parts)] if HERE in path.parents else ""


def pytest_ignore_collect(collection_path, config):
    """Only rooms of unit tests are imported where nothing else is asked for."""
    alone = config.getoption("markexpr") == "unit" and HERE in collection_path.parents
    return True if alone and room_of(collection_path) not in UNIT_ROOMS else None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if room_of(item.path) in UNIT_ROOMS and not ELSEWHERE & {
            mark.name for mark in item.iter_markers()
        }:
            item.add_marker("unit")
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


def pytest_configure():
    os.environ["COLUMNS"] = (
        "100"  # tables are the same in every window in which tests are run
    )
    # a busy machine is no failure
    settings.register_profile(
        "vieval", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("vieval")
    # `nohup make test` and `make test &` ignore these, and so would all that tests start
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure():
    # see in_process.tasks; else libraries find at the end of the process that they leak
    gc.unfreeze()


def skipping_without_extras(item):
    try:
        return (yield)
    except VievalError as error:
        if extras.lacking(error):
            pytest.skip(str(error))
        raise


# what ends with the advice to install an extra needs it
pytest_runtest_setup = pytest.hookimpl(wrapper=True)(skipping_without_extras)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(skipping_without_extras)


@pytest.fixture(scope="session", autouse=True)
def nothing_said_at_exit():
    """What VIEval says when a process ends would stand below the results of the tests."""
    register = atexit.register

    def but_ours(function, *args, **kwargs):
        ours = str(getattr(function, "__module__", "")).startswith("vieval_plugin")
        return function if ours else register(function, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atexit, "register", but_ours)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_cache_of_the_users(tmp_path_factory):
    """Also where a fixture runs something for several tests, nobody's own replies are used or
    added to.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch, tmp_path_factory):
    """Each test has the default options, and a cache folder of its own."""
    for name in ("VIEVAL_CONFIG", "VIEVAL_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv(
        "XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / f"cache-{next(CACHES)}")
    )


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    """Benchmarks and judges in files that a test named are unknown to the next."""
    yield
    shipped = set(judge_registry.shipped().values())
    for registered in (benchmark_registry.benchmarks, judge_registry.judges):
        known = getattr(
            registered, "cache_info", None
        )  # a test may have put another there
        if (
            known
            and known().currsize
            and any(
                entry.file and getattr(entry.file, "path", None) not in shipped
                for entry in registered().values()
            )
        ):
            registered.cache_clear()


@pytest.fixture(scope="session")
def shared_data():
    """Public ratings and answers, which are not part of this repository."""
    if not SHARED.is_dir():
        pytest.skip(
            "the public ratings and answers (../shared/data) are not beside this checkout"
        )
    return SHARED


@pytest.fixture
def ratings_folder(tmp_path):
    """A data folder with two instructions of ImagenHub's cig, small enough to read in a test."""

    def cells(values):
        return "\t".join(values)

    folder = tmp_path / "imagenhub" / "human_ratings" / "ImagenHub_Control-Guided_IG"
    folder.mkdir(parents=True)
    for rater in (1, 2, 3):
        rows = [
            "uid\tControlNet\tUniControl",
            f"sample_10.jpg\t{cells(['[1,0.5]', '[0,0]'])}",
            "sample_2.jpg\t[0, 1]\t[0.5,1]",
        ]
        (folder / f"Control-Guided_IG_rater{rater}.tsv").write_text("\n".join(rows))
    return tmp_path


@pytest.fixture(scope="session")
def scorer_weights(tmp_path_factory):
    """By judge, the weights of its scorer: real architectures, random and small (see
    tests/tiny_scorers.py).
    """
    for module in ("torchmetrics", "torchvision", "transformers"):
        pytest.importorskip(
            module, reason=f'{module} is not installed: pip install ".[scorers]"'
        )
    folder = tmp_path_factory.mktemp("scorers")
    clip, dino = (
        tiny_scorers.build_clip(folder / "clip"),
        tiny_scorers.build_dino(folder / "dino"),
    )
    alexnet = tiny_scorers.build_alexnet(folder / "alexnet.pth")
    by_clip = dict.fromkeys(("clip_score", "clip_i", "clip_direction"), clip)
    return {**by_clip, "dino": dino, "lpips": alexnet}


@pytest.fixture(scope="session")
def lmms_eval():
    """Runs lmms-eval as a user does, in a process of its own; returns the completed process with
    its output as text.

    That takes some 15 s. Where the process is not the point, `in_process.run` and the fixture
    `evaluate` take 2.
    """
    pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

    def run(*arguments, data=None, options=None, timeout=600):
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith("VIEVAL_")
        }
        environment |= {
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        environment |= {
            name: str(value)
            for name, value in (("VIEVAL_DATA", data), ("VIEVAL_CONFIG", options))
            if value
        }
        command = [sys.executable, "-m", "lmms_eval", *map(str, arguments)]
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def results_of():
    """Reads the results JSON of the only run below a folder, and its samples by task."""
    return in_process.read


@pytest.fixture
def no_downloads(monkeypatch):
    """The hub's own library, which may have been imported before this test, is told that there
    is no network.
    """
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Options with a store of this test's own."""
    path = tmp_path / "vieval.yaml"
    path.write_text("store: {path: replies.sqlite}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))
    return tmp_path / "replies.sqlite"


@pytest.fixture
def server():
    """A server that answers everything."""
    from tests.fake_server import FakeServer  # which needs aiohttp

    with FakeServer() as running:
        yield running


@pytest.fixture
def vieval(capsys):
    """Runs the command `vieval`, which is to end with `code`, any for None; what it printed
    since, as `out` and `err`.

    The first argument is split as a shell would; those after it are passed as they are.
    """

    def run(line, *further, code=0):
        arguments = [*shlex.split(str(line)), *map(str, further)]
        ended = main(arguments)
        assert code in (None, ended), (code, ended)
        for argument in arguments if code == 0 else ():
            require_valid(argument)
        return capsys.readouterr()

    return run


@pytest.fixture(autouse=True)
def unchecked_sight(request, monkeypatch):
    """Servers of tests in this process are not asked for colours, but in tests of that."""

    async def nothing_required(backend):
        return None

    if not any(word in request.path.name for word in ("sight", "services")):
        backend = "vieval_plugin.backends.http.openai.OpenAIBackend"
        monkeypatch.setattr(f"{backend}._require_sight", nothing_required)


@pytest.fixture
def score(store, tmp_path, capsys):
    """Runs `vieval score` into verdicts.jsonl: the exit code, the verdicts, and what it printed
    on stdout and stderr.
    """

    def scored(*arguments):
        out = tmp_path / "verdicts.jsonl"
        out.unlink(missing_ok=True)
        code = main(["score", *map(str, arguments), "--out", str(out)])
        printed = capsys.readouterr()
        rows = (
            [json.loads(line) for line in out.read_text().splitlines()]
            if out.exists()
            else []
        )
        return code, rows, printed.out, printed.err

    return scored


@pytest.fixture
def samples_file(tmp_path):
    """Six samples of two image models in the form of `vieval score`."""
    rows = []
    for sample in vieval_demo.load(Path(), "tie")[:6]:
        images = {}
        for role in ("source", "output"):
            name = f"{sample.id.image_model}-{sample.id.uid}-{role}.png"
            (tmp_path / name).write_bytes(sample.images[role].source)
            images[role] = name
        rows.append(
            {
                "uid": sample.id.uid,
                "image_model": sample.id.image_model,
                "kind": "tie",
                "images": images,
                "texts": dict(sample.texts),
            }
        )
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path
