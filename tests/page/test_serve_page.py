"""The reward server's page in a browser: an image is dropped, a verdict comes with its reasons,
nothing else is asked for.
"""

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


def give(browser, role, image, way="choose"):
    """An image chosen as a file, or dropped."""
    content = base64.b64encode(image).decode()
    act = {
        "choose": (
            f"at('{role}').files = moved.files; at('{role}').dispatchEvent(new Event('change'));"
        ),
        "drop": (
            f"at('drop-{role}').dispatchEvent(new DragEvent('drop', {{dataTransfer: moved, "
            f"bubbles: true, cancelable: true}}));"
        ),
    }[way]
    browser.evaluate(
        f"(() => {{ const bytes = Uint8Array.from(atob('{content}'), (sign) => sign.charCodeAt(0));"
        f"const moved = new DataTransfer(); moved.items.add(new File([bytes], 'x.png', {{type: "
        f"'image/png'}})); {act} }})()"
    )
    wait(lambda: browser.visible(f"#shown-{role}"))


def wait(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def judged(browser):
    browser.click("#judge")
    wait(
        lambda: (
            browser.visible("#verdict") and browser.evaluate("!at('judge').disabled")
        )
    )
    return browser.text("#verdict")


@pytest.mark.parametrize("way", ["choose", "drop"])
def test_an_image_is_judged_with_its_reasons(way, browser, running):
    browser.open(running.url + "/")
    assert "Drop one" in judged(browser)
    give(browser, "output", plain("red", (64, 64)), way)
    browser.click("#prompt")
    browser.type("a red square")
    words = judged(browser)
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
    give(browser, "output", plain("red", (64, 64)))
    browser.click("#prompt")
    browser.type("a red square")
    assert "Reward" in judged(browser)
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
        assert browser.violations() == []
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")


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
