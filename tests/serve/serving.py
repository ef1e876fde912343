"""A reward server in a thread of this process, and clients to call it with."""

import asyncio
import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from tests.fake_server import named
from tests.serve.clients import encoded
from vieval_plugin.cli import read_options
from vieval_plugin.cli.serve import _server_setup
from vieval_plugin.run.loop import LoopThread
from vieval_plugin.serve.run import listening


@dataclass
class Running:
    """A server that listens: its port, and its inside."""

    port: int
    front: object

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def post(self, path, document, **headers):
        """The status and JSON of the answer to a JSON request."""
        is_bytes = isinstance(document, bytes)
        body = document if is_bytes else json.dumps(document).encode()
        return self.send(path, body, {"Content-Type": "application/json", **headers})

    def send(self, path, body=None, headers=None):
        """The status and JSON of an answer; text where it is no JSON."""
        status, content, _ = self.exchange(path, body, headers)
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content.decode(errors="replace")

    def exchange(self, path, body=None, headers=None):
        """The status, bytes and headers of an answer."""
        request = urllib.request.Request(self.url + path, body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return response.status, response.read(), response.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers

    def get(self, path, **headers):
        return self.send(path, None, headers)

    def metrics(self):
        """The numbers of /metrics by name with labels."""
        lines = self.get("/metrics")[1].splitlines()
        rows = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(number) for name, _, number in rows}


@contextmanager
def serving(*flags, bounds=None, **options):
    """A server started from flags; `bounds` and `options` replace fields of its own."""
    _, options_read = read_options(["serve", "--port", "0", *map(str, flags)])
    served = _server_setup(options_read)
    own = replace(served.options.bounds, **{"drain_seconds": 2.0, **(bounds or {})})
    changed = replace(served.options, **{"bounds": own, **options})
    started, stop = threading.Event(), asyncio.Event()
    running = []

    async def run():
        async with listening(replace(served, options=changed)) as (port, front):
            running.append(Running(port, front))
            started.set()
            await stop.wait()

    with closing(LoopThread()) as loop:
        finished = loop.begin(run())
        finished.add_done_callback(lambda _: started.set())
        assert started.wait(60)
        if finished.done():
            finished.result()
        try:
            yield running[0]
        finally:
            loop._loop.call_soon_threadsafe(stop.set)
            finished.result(60)


@contextmanager
def serve_process(*flags):
    """`vieval serve` in a process of its own, killed in the end, and its server."""
    command = [sys.executable, "-m", "vieval_plugin", "serve", "--port", "0"]
    command += map(str, flags)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        try:
            first = started.stderr.readline()
            assert "rewards at" in first, first
            threading.Thread(target=started.stderr.read, daemon=True).start()
            port = re.search(r"http://127\.0\.0\.1:(\d+)", first)[1]
            yield started, Running(int(port), None)
        finally:
            started.kill()


def judged_by(server, *flags, reward="r=viescore", **more):
    """A server whose judge asks a fake backbone, each try once."""
    return serving("--reward", reward, *named(server), *flags, **more)


def row(image, prompt="a red cube", **more):
    """A sample of /v1/judge."""
    return {"images": {"output": encoded(image)}, "texts": {"prompt": prompt}, **more}
