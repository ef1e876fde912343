"""Two Ray nodes with addresses of their own, one of which is killed while a folder is scored."""

import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.fake_server import FakeServer
from tests.real.parts import installed, logged, program, report
from tests.shard_runs import arguments, ended, files_in, verdicts, write_parquet
from tests.work import free_ports, run_process, until

pytestmark = [pytest.mark.real, installed("ray")]
ROWS = 160
DEADLINE = 60  # seconds
#: Addresses of the nodes, which Linux has without a network.
HEAD, SECOND = "127.0.0.2", "127.0.0.3"
START = (
    *("--num-cpus", 1, "--num-gpus", 0, "--object-store-memory", 100 << 20),
    *("--disable-usage-stats", "--block"),
)
#: Prints the addresses of living nodes, and of those that judged passes.
LOOK = """
import json, sys
import ray
ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
alive = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
judged = {event["pid"] for event in ray.timeline() if event["name"] == "judge"}
print(json.dumps([sorted(alive), sorted(judged)]))
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """A token of the cluster, and the seconds after which Ray ends a process without a head."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "5")


@contextmanager
def node(address, *words):
    """A function that kills each process of a node, which runs meanwhile."""
    # a path in pytest's own folders is too long for a socket
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        own = ("--node-ip-address", address, "--temp-dir", folder)
        command = [program("ray", "ray"), "start", *words, *own, *START]
        log = Path(folder, "log")
        with logged(log, *command, start_new_session=True) as process:
            try:
                until(lambda: process.poll() or "--block" in log.read_text(), DEADLINE)
                if process.poll():
                    pytest.skip(f"no node starts: {' '.join(log.read_text().split())}")
                yield lambda: kill(process)
            finally:
                kill(process)


def kill(node):
    """kill -9 of all processes in the session that a node's process has begun."""

    def is_dead():
        alive = set(session(node.pid))
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        node.poll()
        return not alive

    until(is_dead, DEADLINE)


def session(number):
    """The processes of a session; workers have groups of their own."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(folder.name)) == number:
                yield int(folder.name)


@contextmanager
def cluster():
    """The address of two nodes, and by node a function that kills it."""
    port, agent, other_agent = free_ports(3)
    listens = "--dashboard-agent-listen-port"
    address = f"{HEAD}:{port}"
    alone = ("--head", "--port", port, "--include-dashboard", "false")
    with (
        node(HEAD, *alone, listens, agent) as kill_head,
        node(SECOND, "--address", address, listens, other_agent) as kill_second,
    ):
        until(lambda: look(address)[0] == [HEAD, SECOND], DEADLINE)
        yield address, {HEAD: kill_head, SECOND: kill_second}


def look(address):
    """Addresses of living nodes, and of those that judged passes."""
    done = run_process([program("ray"), "-c", LOOK, address], timeout=DEADLINE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def begin(*command):
    """`vieval` of Ray's environment."""
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    whole = list(map(str, [program("ray", "vieval"), *command]))
    return subprocess.Popen(whole, text=True, start_new_session=True, **pipes)


@pytest.mark.parametrize("killed", [SECOND, HEAD])
def test_a_node_is_killed_and_each_row_is_judged_once(killed, tmp_path):
    data = write_parquet(tmp_path / "data", files=4, rows_each=40, group=10)
    out = tmp_path / "out"
    begun = time.monotonic()
    with FakeServer(latency=0.2) as server, ExitStack() as stack:

        def command(address):
            small = ("--rows-per-shard", 5, "--num-concurrent", 2)
            return arguments(data, out, server, *small, "--ray", address)

        address, kill_node = stack.enter_context(cluster())
        run = begin(*command(address))
        stack.callback(kill, run)
        until(lambda: len(files_in(out)) > 7, DEADLINE)
        judged_on = look(address)[1]
        kill_node[killed]()
        before = len(files_in(out))
        if killed == HEAD:
            assert "Failed to connect to GCS within 5 seconds" in ended(run, 1)
            address, _ = stack.enter_context(cluster())
        else:
            assert " that had died; these lines" in ended(run)
        ended(begin(*command(address)))
        asked = server.stats()["requests"]
    judged = [row["uid"] for row in verdicts(out)]
    report("ray", begun, before, judged, ROWS)
    assert judged_on == [HEAD, SECOND]
    assert sorted(judged) == sorted(f"u{number}" for number in range(ROWS))
    assert before < len(files_in(out))
    assert asked <= 2 * (ROWS + 4 * 5)
