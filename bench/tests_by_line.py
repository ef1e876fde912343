"""A plugin of pytest for `bench/mutants.py`: records which lines each test executes, and runs a
list of tests in its order.
"""

import json
import os
import resource
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser):
    parser.addoption(
        "--record", help="folder for times and for which lines each test executes"
    )
    parser.addoption("--only", help="file with the ids of the tests to run, in order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("only"):
        order = {
            name: place
            for place, name in enumerate(
                json.loads(Path(config.getoption("only")).read_text())
            )
        }
        items[:] = sorted(
            (item for item in items if item.nodeid in order),
            key=lambda item: order[item.nodeid],
        )


def pytest_configure(config):
    if config.getoption("record") and not config.getoption("numprocesses", None):
        config.pluginmanager.register(
            Recorder(Path(config.getoption("record")).resolve())
        )


class Recorder:
    """Writes coverage by test, in this process and in those that it starts, and CPU and wall
    seconds by test.
    """

    def __init__(self, folder):
        import coverage

        folder.mkdir(parents=True, exist_ok=True)
        include = f"include =\n    {ROOT}/vieval_plugin/*\n    {ROOT}/judges/*\n"
        settings = folder / "coveragerc"
        settings.write_text(
            f"[run]\nparallel = true\ndata_file = {folder}/data\ncontext = ${{TEST_ID}}\n{include}"
        )
        self.times = (
            folder / f"times.{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.jsonl"
        )
        self.coverage = coverage.Coverage(config_file=str(settings), context="")
        self.coverage.start()
        os.environ["COVERAGE_PROCESS_START"] = str(settings)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        os.environ["TEST_ID"] = item.nodeid
        self.coverage.switch_context(item.nodeid)
        before = (_cpu(), time.time())
        try:
            return (yield)
        finally:
            row = [
                item.nodeid.split("::")[0],
                item.nodeid,
                _cpu() - before[0],
                time.time() - before[1],
            ]
            with self.times.open("a") as file:
                file.write(f"{json.dumps(row)}\n")

    def pytest_unconfigure(self):
        self.coverage.stop()
        self.coverage.save()


def _cpu():
    used = [
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    return sum(one.ru_utime + one.ru_stime for one in used)
