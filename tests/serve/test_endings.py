"""Test how a server ends: after SIGTERM, and after kill -9."""

import json
import signal
import socket
import threading
import urllib.error

from tests.fake_server import FakeServer, named
from tests.pictures import plain
from tests.serve.serving import judged_by, row, serve_process
from tests.work import until
from vieval_plugin.backends.cache.store import Store
from vieval_plugin.judges.protocol import Text

GUARD = 60.0


def process(server, tmp_path):
    """`vieval serve` in a process of its own."""
    options = tmp_path / "options.yaml"
    options.write_text("store: {path: replies.sqlite}\n")
    return serve_process("--config", options, "--reward", "r=viescore", *named(server))


def begun(running, rows):
    """A request in a thread, and what became of it."""
    results = []

    def ask():
        try:
            results.append(running.post("/v1/judge", {"samples": rows}))
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, results


def test_sigterm_finishes_what_is_in_flight(tmp_path):
    with FakeServer(latency=1.0) as server, process(server, tmp_path) as started:
        ended, running = started
        running.get("/health")
        before = server.stats()["requests"]
        thread, results = begun(running, [row(plain("red"))])
        asked = lambda: server.stats()["requests"] > before
        until(lambda: server.stats()["in_flight"] or asked())
        ended.send_signal(signal.SIGTERM)
        thread.join(GUARD)
        assert ended.wait(GUARD) == 0
    [(status, answer)] = results
    assert status == 200
    assert answer["verdicts"][0]["value"] is not None


def test_after_kill_9_the_store_answers_what_was_answered(tmp_path):
    done = {"samples": [row(plain((shade, 0, 0))) for shade in range(6)]}
    rest = [row(plain((0, shade, 0))) for shade in range(64)]
    with FakeServer(latency=0.2, capacity=4) as server:
        with process(server, tmp_path) as (started, running):
            _, before = running.post("/v1/judge", done)
            thread, results = begun(running, rest)
            until(lambda: server.stats()["in_flight"] >= 4)
            started.kill()
            thread.join(GUARD)
        assert isinstance(results[0], (urllib.error.URLError, ConnectionError))
        with process(server, tmp_path) as (_, running):
            running.get("/health")
            asked = server.stats()["requests"]
            _, after = running.post("/v1/judge", done)
            assert server.stats()["requests"] == asked
    assert after == before
    assert after["failed"] == []


def test_a_client_that_goes_away_costs_what_was_begun_and_no_more(store):
    rows = [row(plain((shade, 0, 0))) for shade in range(40)]
    with (
        FakeServer(latency=0.5) as server,
        judged_by(server, "--num-concurrent", 2) as running,
    ):
        running.get("/health")
        before = server.stats()["requests"]
        asked = lambda: server.stats()["requests"] - before
        body = json.dumps({"samples": rows}).encode()
        host, length = f"127.0.0.1:{running.port}", f"Content-Length: {len(body)}"
        head = f"POST /v1/judge HTTP/1.1\r\nHost: {host}\r\n{length}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", running.port), GUARD) as client:
            client.sendall(head.encode() + body)
            until(lambda: server.stats()["in_flight"])
        until(lambda: not running.metrics()["vieval_jobs_waiting"])
        until(lambda: not running.front.service.loop.under_way)
        cost = asked()
        gone = 'vieval_requests_total{code="gone",protocol="judge_v1"}'
        assert running.metrics()[gone] == 1
        # begun questions were finished, and are in the store for when the client comes again
        again = running.post("/v1/judge", {"samples": rows[:1]})[1]
        assert again["verdicts"][0]["value"] is not None
        assert asked() == cost
    assert 0 < cost < len(rows)


def test_the_store_keeps_the_newest(tmp_path):
    store = Store(tmp_path / "replies.sqlite")
    for number in range(2500):
        store.add(f"{number:04}", "m", Text(str(number)))
    for _ in range(2):
        store.keep_newest(1000)
        assert store.info()[0][1] == 1000
    assert store.get("2499") is not None
    assert store.get("1499") is None
    store.close()
