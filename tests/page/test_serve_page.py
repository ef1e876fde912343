"""The reward server's page in a browser: a dropped image gets a verdict with reasons."""

import base64
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.pictures import plain
from tests.serve.serving import judged_by, serving

HOSTILE = "</textarea><script>document.title = 'taken'</script>"


@pytest.fixture
def running(server):
    with judged_by(server, "--reward", "sharp=sharpness") as running:
        yield running


ACTS = {
    "choose": "at('{0}').files = moved.files; at('{0}').dispatchEvent(new Event('change'));",
    "drop": (
        "at('drop-{0}').dispatchEvent("
        "new DragEvent('drop', {{dataTransfer: moved, bubbles: true, cancelable: true}}));"
    ),
}
MOVED = """
const bytes = Uint8Array.from(atob('{content}'), (sign) => sign.charCodeAt(0));
const moved = new DataTransfer();
moved.items.add(new File([bytes], 'x.png', {{type: 'image/png'}}));
"""


def give(browser, role, image, way="choose"):
    """An image chosen as a file, or dropped."""
    moved = MOVED.format(content=base64.b64encode(image).decode())
    browser.evaluate(f"(() => {{ {moved} {ACTS[way].format(role)} }})()")
    wait(lambda: browser.visible(f"#shown-{role}"))


def wait(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def judged(browser):
    def is_judged():
        return browser.visible("#verdict") and browser.evaluate("!at('judge').disabled")

    browser.click("#judge")
    wait(is_judged)
    return browser.text("#verdict")


def ask(browser, way="choose"):
    """Judge a red square that is chosen or dropped; the verdict's words."""
    give(browser, "output", plain("red", (64, 64)), way)
    browser.click("#prompt")
    browser.type("a red square")
    return judged(browser)


@pytest.mark.parametrize("way", ["choose", "drop"])
def test_an_image_is_judged_with_its_reasons(way, browser, running):
    browser.open(running.url + "/")
    assert "Drop one" in judged(browser)
    words = ask(browser, way)
    assert "Reward" in words
    assert "SC" in words
    assert "fake" in words  # the judge's own reasons
    give(browser, "source", plain("blue", (64, 64)), way)
    assert "Reward" in judged(browser)
    assert browser.complaints() == []
    assert set(browser.requested()) == {f"{running.url}/r/v1/judge"}


@pytest.fixture
def proxied(running):
    """The address of the page behind a proxy that serves it under a path."""

    class Forward(BaseHTTPRequestHandler):
        def do_GET(self):
            length = int(self.headers.get("Content-Length", 0))
            request = urllib.request.Request(
                running.url + self.path.removeprefix("/rewards"),
                self.rfile.read(length) or None,
                dict(self.headers),
                method=self.command,
            )
            with urllib.request.urlopen(request) as answer:
                body = answer.read()
                self.send_response(answer.status)
                for name in ("Content-Type", "Content-Security-Policy"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.end_headers()
                self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}/rewards"
        proxy.shutdown()


def test_the_page_works_under_a_path(browser, proxied):
    browser.open(f"{proxied}/")
    assert "Reward" in ask(browser)
    assert set(browser.requested()) == {f"{proxied}/r/v1/judge"}


def test_what_fails_is_said(browser, running):
    browser.open(running.url + "/")
    give(browser, "output", b"no image")
    words = judged(browser)
    assert "No reward" in words
    assert "tool_error" in words


def test_it_is_readable_on_a_phone_and_in_the_dark(browser, running):
    for scheme in ("light", "dark"):
        browser.open_on_phone(running.url + "/", scheme)
        browser.require_readable()


def test_texts_of_others_are_texts(browser, server):
    with serving("--reward", "r=sharpness") as running:
        browser.open(running.url + "/")
        give(browser, "output", plain("red", (64, 64)))
        browser.evaluate(f"at('prompt').value = {HOSTILE!r}")
        judged(browser)
        assert browser.evaluate("document.title") == "Rewards of this server"


def test_there_is_an_example_to_try(browser, running):
    browser.open(running.url + "/")
    browser.click("#example")
    wait(lambda: browser.visible("#shown-output"))
    assert "Reward" in judged(browser)
    assert browser.complaints() == []
