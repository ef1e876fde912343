"""A browser for tests of pages: chromium, driven by Playwright (see README.md here)."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path(__file__).with_name("driver.mjs")
TOOLS = Path(sys.prefix) / "page"
CHROMIUM = ("chromium", "/usr/bin/chromium")


def absent():
    """What is missing for a browser, in words; empty where all is there."""
    if not shutil.which("node"):
        return "node is not installed; `make test-page` installs it on Debian"
    if not _chromium():
        return "chromium is not installed; `make test-page` installs it on Debian"
    packages = ("playwright-core", "axe-core")
    lacking = [
        name for name in packages if not (TOOLS / "node_modules" / name).is_dir()
    ]
    if lacking:
        return f"{' and '.join(lacking)} not in {TOOLS}; `make test-page` installs them"
    return ""


def _chromium():
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


@dataclass(frozen=True)
class Download:
    """A file that the page handed out: the name it proposed, and what is in it."""

    name: str
    text: str


class Browser:
    """One browser with one page open at a time. `open` begins anew, with nothing kept; `reopen`
    keeps what was kept.

    Every method returns when the browser has done it, and raises `AssertionError` with the
    browser's words where it cannot. Selectors are CSS or Playwright's (`text=Next`), and the first
    element that fits is meant.
    """

    def __init__(self):
        command = ["node", str(DRIVER), str(TOOLS), _chromium()]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._address = ""

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _do(self, command, **given):
        self._process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the browser has ended; what it said stands above"
        answer = json.loads(line)
        assert "error" not in answer, f"{command} {given}: {answer['error']}"
        return answer["found"]

    def open(self, file, width=1280, height=800, scheme="light", touch=False):
        """Open a local file without a network, or a page of a local server."""
        served = str(file).startswith("http://127.0.0.1:")
        self._address = str(file) if served else Path(file).absolute().as_uri()
        window = {"width": width, "height": height, "scheme": scheme, "touch": touch}
        self._do("open", address=self._address, offline=not served, **window)

    def open_on_phone(self, file, scheme="light"):
        """Open a file as a phone shows it: 390 by 844 pixels, touched and not clicked."""
        self.open(file, 390, 844, scheme, touch=True)

    def reopen(self):
        """Close the page and open it again: what it kept in the browser is there."""
        self._do("reopen", address=self._address)

    def press(self, *keys):
        """Press keys by Playwright's names: `1`, `ArrowLeft`, `Enter`, `Shift+Tab`."""
        self._do("press", keys=keys)

    def type(self, text):
        """Type a text where the focus is."""
        self._do("type", text=text)

    def click(self, selector):
        self._do("click", selector=selector)

    def text(self, selector="body"):
        """The text that can be seen in an element: hidden parts are left out."""
        return self._do("text", selector=selector)

    def visible(self, selector):
        return self._do("visible", selector=selector)

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page, as JSON has it."""
        return self._do("evaluate", expression=expression)

    def count(self, selector):
        """The number of elements that fit."""
        return self.evaluate(f"document.querySelectorAll({selector!r}).length")

    def box(self, selector):
        """The place and size of an element in the window: x, y, width, height, bottom..."""
        element = f"document.querySelector({selector!r})"
        return self.evaluate(f"{element}.getBoundingClientRect().toJSON()")

    def focus(self, selector):
        self.evaluate(f"document.querySelector({selector!r}).focus()")

    def download(self, selector=None, keys=()):
        """The `Download` that a click on an element, or keys, bring about."""
        return Download(**self._do("download", selector=selector, keys=keys))

    def screenshot(self, file, whole=False):
        """Write a PNG of the window, or of the whole page."""
        self._do("screenshot", file=str(file), whole=whole)

    def media(self, media):
        """Show the page as on the `screen`, or as in `print`."""
        self._do("media", media=media)

    def print(self, file):
        """Write the page as a PDF, as the browser prints it."""
        self._do("print", file=str(file))

    def require_quiet_and_readable(self, file, width, scheme="light"):
        """Open a file in a window and require that it is quiet and readable."""
        self.open(file, width=width, height=900, scheme=scheme)
        self.require_quiet()
        self.require_readable()

    def require_quiet(self):
        """Nothing was asked for or complained about since `open`."""
        assert (self.requested(), self.complaints()) == ([], [])

    def require_readable(self):
        """The page is not hard to read, and nothing sticks out of the window."""
        assert self.violations() == []
        assert self.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def cpu_seconds(self):
        """CPU seconds that all processes of the browser have taken so far."""
        return self._do("cpu")

    def violations(self, *impacts):
        """A line for each violation (default: serious and critical ones)."""
        wanted = impacts or ("serious", "critical")
        return [
            f"{one['impact']} {one['id']}: {one['help']} ({', '.join(one['where'][:5])})"
            for one in self._do("violations")
            if one["impact"] in wanted
        ]

    def requested(self):
        """Addresses asked for since `open`, without the file itself, data: and blob:."""
        addresses = self._do("requested")
        return [address for address in addresses if address != self._address]

    def complaints(self):
        """Errors and warnings on the console, also of the security policy."""
        return self._do("complaints")
