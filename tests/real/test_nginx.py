"""nginx before a reward server loses a worker; Prometheus' checker reads the metrics."""

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import RemoteDisconnected
from urllib.error import URLError

import pytest

from tests.fake_server import FakeServer, named
from tests.pictures import encoded, noise, plain
from tests.real.parts import answers, logged
from tests.serve.serving import Running, row, serve_process
from tests.work import free_ports, until

pytestmark = pytest.mark.real
SETTINGS = """\
user root;
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/bodies;
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 256m;
    proxy_read_timeout 600s;
    proxy_set_header Host $http_host;
    location /rewards/ {{ proxy_pass http://127.0.0.1:{behind}/; }}
  }}
}}
"""


@contextmanager
def nginx(folder, behind):
    """A proxy, and the process of its worker's master."""
    [port] = free_ports(1)
    settings = folder / "nginx.conf"
    settings.write_text(SETTINGS.format(folder=folder, port=port, behind=behind))
    command = ["nginx", "-c", settings, "-e", folder / "error.log"]
    with logged(folder / "log", *command) as master:
        try:
            proxy = Running(port, None)
            until(lambda: answers(proxy, "/rewards/live"))
            yield proxy, master
        finally:
            master.terminate()


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx: make test-real")
def test_a_killed_worker_of_a_proxy_loses_no_reward_that_is_asked_for_again(tmp_path):
    with (
        FakeServer(latency=0.3) as server,
        serve_process("--reward", "r=viescore", *named(server)) as (_, behind),
        nginx(tmp_path, behind.port) as (proxy, master),
    ):
        broken = []
        images = [encoded(noise(number)) for number in range(40)]

        def judged(running, path, number):
            document = {"samples": [row(images[number], f"a thing {number}")]}
            for _ in range(5):
                try:
                    status, answer = running.post(path, document)
                except (URLError, RemoteDisconnected, ConnectionError) as error:
                    broken.append(error)
                    continue
                assert status == 200, answer
                return answer["verdicts"][0]["value"]
            pytest.fail("the proxy did not come back")

        with ThreadPoolExecutor(8) as pool:
            ask = lambda number: pool.submit(judged, proxy, "/rewards/v1/judge", number)
            asked = [*map(ask, range(40))]
            until(lambda: sum(future.done() for future in asked) > 8)
            [worker] = workers(master.pid)
            os.kill(worker, signal.SIGKILL)
            through = [future.result() for future in asked]
        assert broken
        assert through == [judged(behind, "/v1/judge", number) for number in range(40)]
        large = encoded(noise(0, (1200, 1200)))  # above nginx's own bound of 1 MB
        assert len(large) > 2**20
        status, _ = proxy.post("/rewards/v1/judge", {"samples": [row(large)]})
        assert status == 200


def workers(master):
    children = f"/proc/{master}/task/{master}/children"
    with open(children) as file:
        return [int(child) for child in file.read().split()]


NO_PROMETHEUS = "no Prometheus: make test-real"


@pytest.mark.skipif(not shutil.which("promtool"), reason=NO_PROMETHEUS)
def test_prometheus_finds_nothing_to_mend_in_the_numbers():
    with (
        FakeServer() as server,
        serve_process("--reward", "r=viescore", *named(server)) as (_, running),
    ):
        running.post("/v1/judge", {"samples": [row(plain("red")), row(b"")]})
        _, metrics, _ = running.exchange("/metrics")
    check = ["promtool", "check", "metrics"]
    checked = subprocess.run(check, input=metrics, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
