"""Test bounds of the server: what is too much or too slow is refused or closed."""

import json
import resource
import socket
import time
import zlib
from contextlib import ExitStack

import PIL.Image
import pytest

from tests.pictures import encoded as picture_file
from tests.pictures import plain, png_of
from tests.serve.serving import judged_by, row, serve_process, serving
from tests.work import until
from vieval_plugin import images

GUARD = 30.0


def connected(running):
    """A bare connection to the server."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=GUARD)
    connection.settimeout(GUARD)
    return connection


def answered(connection):
    """Everything that comes until the server closes."""
    content = b""
    try:
        while chunk := connection.recv(65536):
            content += chunk
    except ConnectionResetError:
        pass
    return content


def header(running, *lines):
    host = f"Host: 127.0.0.1:{running.port}"
    return "\r\n".join(["POST /v1/judge HTTP/1.1", host, *lines, "", ""]).encode()


SHARP = ("--reward", "r=sharpness")
EMPTY = (b"", b"P", b"POST /v1/judge HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
CHUNKED = "Transfer-Encoding: chunked"


def fine(running):
    """The server judges a sample of another client."""
    asked = {"samples": [row(plain("red"), kind="tig")]}
    status, answer = running.post("/v1/judge", asked)
    return status == 200 and answer["failed"] == []


BOUNDS = {"header_seconds": 3.0, "body_seconds": 1.0, "body": 100_000, "samples": 3}
BOUNDS |= {"pixels": 10_000, "connections": 8}


@pytest.fixture
def strict():
    with serving(*SHARP, bounds=BOUNDS) as running:
        yield running


@pytest.mark.parametrize("first", EMPTY)
def test_a_header_that_never_ends_is_not_waited_for(strict, first):
    with connected(strict) as slow:
        slow.sendall(first)
        assert fine(strict)
        assert answered(slow) == b""


def test_a_header_that_trickles_is_not_waited_for(strict):
    def is_closed(slow):
        try:
            slow.sendall(b"X")
        except OSError:  # a reset or a broken pipe
            return True
        time.sleep(0.1)
        return False

    with connected(strict) as slow:
        until(lambda: is_closed(slow), GUARD)


def test_a_body_that_does_not_come_is_not_waited_for(strict):
    with connected(strict) as slow:
        slow.sendall(header(strict, "Content-Length: 1000") + b"{")
        assert fine(strict)
        assert b" 408 " in answered(slow)


def test_half_a_request_and_good_bye(strict):
    whole = header(strict, "Content-Length: 1000") + b"{"
    chunk = header(strict, CHUNKED) + b"5\r\nab"
    for part in (whole, header(strict)[:40], chunk):
        with connected(strict) as gone:
            gone.sendall(part)
    assert fine(strict)
    assert strict.get("/live")[0] == 200


CHUNK = b"30000\r\n" + b" " * 0x30000 + b"\r\n"


@pytest.mark.parametrize("length", ["100001", "99999999999999", ""])
def test_a_body_that_is_too_large_is_not_kept(strict, length):
    line, content = (f"Content-Length: {length}", b"") if length else (CHUNKED, CHUNK)
    with connected(strict) as large:
        large.sendall(header(strict, line) + content)
        answer = answered(large)
    assert b" 413 " in answer
    assert b"retry-after" not in answer.lower()
    assert strict.front.bodies.bytes_open == 0
    assert fine(strict)


def test_a_body_that_is_packed_is_not_unpacked(strict):
    packed = zlib.compress(b'{"samples": []}' + b" " * 50_000_000)
    status, answer = strict.post("/v1/judge", packed, **{"Content-Encoding": "deflate"})
    assert status == 415
    assert "compressed" in answer["error"]


@pytest.mark.parametrize(("path", "refused"), [("/v1/judge", 417), ("/compute", 200)])
def test_an_expectation_is_met_or_refused_in_the_form_of_the_protocol(path, refused):
    with serving(*SHARP) as running:
        status, content, _ = running.exchange(path, b"{}", {"Expect": "a miracle"})
        assert status == refused
        assert "Expect: a miracle is not supported" in json.loads(content)["error"]
        _, content, _ = running.exchange(path, b"{}", {"Expect": "100-continue"})
        assert "Expect" not in json.loads(content)["error"]


RED = row(plain("red"))
CANDIDATES = [{"images": RED["images"]}] * 5000
TOO_MANY = "a request may contain at most 1024 samples, got 5000; send several requests"


TOO_MANY_ROWS = {
    "candidates": [{"candidates": CANDIDATES, "texts": RED["texts"]}],
    "prompts": [row(plain("red"), ["a red cube"] * 5000)],
    "rows": [RED] * 5000,
}


@pytest.mark.parametrize("rows", TOO_MANY_ROWS.values(), ids=TOO_MANY_ROWS)
def test_all_that_is_judged_counts_as_a_sample(rows):
    with serving(*SHARP) as running:
        status, answer = running.post("/v1/judge", {"samples": rows})
        assert running.metrics()["vieval_jobs_waiting"] == 0
    assert (status, answer["error"]) == (400, TOO_MANY)


def test_16_large_pictures_at_once_are_decoded_two_at_a_time(server, monkeypatch):
    under_way, most, load = [0], [], images.load_strictly

    def load_beside_others(picture, stream):
        pixels = picture.width * picture.height
        under_way[0] += pixels
        most.append(under_way[0])
        time.sleep(0.01)
        load(picture, stream)
        under_way[0] -= pixels

    monkeypatch.setattr(images, "load_strictly", load_beside_others)
    pictures = [PIL.Image.new("1", (5500 + n, 5900)) for n in range(16)]
    rows = [row(picture_file(picture)) for picture in pictures]
    with judged_by(server) as running:
        status, answer = running.post("/v1/judge", {"samples": rows})
    assert (status, answer["failed"]) == (200, [])
    assert max(most) <= 66_000_000


@pytest.mark.parametrize(
    "image",
    [png_of(10_000, 10_000), b"", b"GIF89a", b"%PDF-1.4", plain("red", (101, 100))],
)
def test_an_image_that_is_none_or_too_large_fails_alone(strict, image):
    rows = [row(image, kind="tig"), row(plain("red"), kind="tig")]
    status, answer = strict.post("/v1/judge", {"samples": rows})
    assert (status, answer["failed"]) == (200, [0])
    assert answer["verdicts"][0]["status"] == "tool_error"


@pytest.mark.parametrize("size", [(1, 30_000_000), (65_536, 1)])
def test_an_image_of_one_endless_row_is_not_decoded(size):
    asked = {"samples": [row(png_of(*size), kind="tig")]}
    with serving(*SHARP) as running:
        _, answer = running.post("/v1/judge", asked)
    assert "more than 65535 per side" in answer["verdicts"][0]["reason"]


def test_more_connections_than_may_be_are_closed_at_once(strict):
    with ExitStack() as opened:
        for _ in range(12):
            opened.enter_context(connected(strict))
        time.sleep(0.5)
        assert strict.front.connections() <= 8
    until(lambda: not strict.front.connections())
    assert fine(strict)


@pytest.mark.parametrize(
    ("bounds", "code", "seconds", "reason"),
    [({"waiting": 0}, 429, "2", "retry later"), ({"bodies": 10}, 503, "2", "")],
)
def test_as_many_as_may_wait_and_then_come_back(bounds, code, seconds, reason):
    with serving(*SHARP, bounds=bounds) as running:
        asked = ("/v1/judge", b'{"samples":     []}')
        status, content, headers = running.exchange(*asked)
        assert running.front.bodies.bytes_open == 0
    assert (status, headers["Retry-After"]) == (code, seconds)
    assert reason in json.loads(content)["error"]


NO_HTTP = [
    "Content-Length: -5\r\nX: secret",
    "Host: secret",
    f"{CHUNKED}\r\n\r\nsecret",
]


@pytest.mark.parametrize("line", [*NO_HTTP, "Content-Length: secret"])
def test_what_is_no_http_is_one_line_without_what_came(strict, line, caplog):
    with connected(strict) as stranger:
        stranger.sendall(header(strict, line))
        head, _, body = answered(stranger).partition(b"\r\n\r\n")
    assert b" 400 " in head
    assert b"application/json" in head
    assert "malformed HTTP" in json.loads(body)["error"]
    assert "secret" not in caplog.text + body.decode()
    assert [record.exc_info for record in caplog.records] == [None]
    assert fine(strict)


def test_a_chunk_that_breaks_off_later_is_one_line(strict, caplog):
    with connected(strict) as stranger:
        stranger.sendall(header(strict, CHUNKED) + b"2\r\n{ \r\n")
        until(lambda: strict.front.requests)
        stranger.sendall(b"secret\r\n")
        content = answered(stranger)
    assert "secret" not in caplog.text + content.decode()
    assert not any(record.exc_info for record in caplog.records)
    assert strict.front.bodies.bytes_open == 0
    assert fine(strict)


def test_connections_that_say_nothing_lock_nobody_out():
    with serving(*SHARP, bounds={"connections": 4}) as running, ExitStack() as opened:
        for _ in range(20):
            opened.enter_context(connected(running))
        assert fine(running)


@pytest.mark.slow
def test_ten_thousand_connections_that_say_nothing():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10_500 if hard == resource.RLIM_INFINITY else min(10_500, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    process = serve_process("--reward", "r=sharpness")
    try:
        with process as (server, running), ExitStack() as opened:
            running.get("/health")
            place = ("127.0.0.1", running.port)
            for _ in range(min(10_000, wanted - 400)):
                opened.enter_context(socket.create_connection(place, timeout=GUARD))
            asked = {"samples": [row(plain("red"), kind="tig")]}
            status, answer = running.post("/v1/judge", asked)
            assert (status, answer["failed"]) == (200, [])
            until(lambda: running.metrics()["vieval_connections_open"] <= 1)
            assert server.poll() is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
