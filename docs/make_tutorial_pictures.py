"""Takes the pictures of the tutorials of what their own commands leave: `make tutorial-pictures`.

Usage: make_tutorial_pictures.py [TUTORIAL ...]. It needs chromium, and for the page of the reward
server the browser of `make test-page`.
"""

from __future__ import annotations

import base64
import io
import runpy
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from make_picture import screenshot, write_picture
from PIL import Image
from run_page import blocks, run

DOCS = Path(__file__).parent
WIDTH = 1000
LEFT = {
    "score": ("report/report.html", 1240),
    "lmms_eval": ("report/report.html", 830),
    "compare": ("rank.html", 1240),
    "millions": ("report/report.html", 700),
}
"""By tutorial the page that its commands leave, and how many pixels of it are shown."""
SERVER = "http://127.0.0.1:8200/"
DROP = """(() => {
const bytes = Uint8Array.from(atob('%s'), (sign) => sign.charCodeAt(0)), given = new DataTransfer()
given.items.add(new File([bytes], 'poster.png', {type: 'image/png'}))
const field = document.querySelector('#output')
field.files = given.files
field.dispatchEvent(new Event('change'))
})()"""


def main(names: list[str]) -> None:
    """Write the pictures of some tutorials, or of all."""
    for name in names or [*LEFT, "reward"]:
        chosen = [
            block
            for block in blocks(DOCS / "tutorials" / f"{name}.md")
            if block.runs and not block.note
        ]
        with tempfile.TemporaryDirectory() as folder:
            status, _, errors = run(chosen, Path(folder), {})
            if status:
                sys.exit(f"{name}: {errors}")
            if name in LEFT:
                page, height = LEFT[name]
                picture = screenshot(Path(folder) / page, (WIDTH, height))
            else:
                picture = _of_server(Path(folder) / "demo" / "old" / "p03.png")
        if picture:
            write_picture(picture, DOCS / "images" / f"{name}.webp")


def _of_server(image: Path) -> Image.Image:
    """The page of the reward server with a verdict on an image."""
    server = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("vieval")),
            "serve",
            "--reward",
            "text=text_rendering",
            "--on-failure",
            "neutral",
        ]
    )
    browser = runpy.run_path(str(DOCS.parent / "tests" / "page" / "browser.py"))[
        "Browser"
    ]()
    try:
        _wait(lambda: urllib.request.urlopen(SERVER + "health").status == 200)
        browser.open(SERVER, WIDTH, 1000)
        browser.evaluate(DROP % base64.b64encode(image.read_bytes()).decode())
        browser.click("#prompt")
        browser.type('a poster with a cat and the title "LOST CAT"')
        browser.click("#judge")
        _wait(lambda: browser.visible("#verdict"))
        with tempfile.TemporaryDirectory() as folder:
            browser.screenshot(Path(folder) / "shot.png")
            return Image.open(
                io.BytesIO((Path(folder) / "shot.png").read_bytes())
            ).convert("RGB")
    finally:
        browser.close()
        server.terminate()
        server.wait()


def _wait(condition) -> None:
    for _ in range(600):
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise TimeoutError(SERVER)


if __name__ == "__main__":
    main(sys.argv[1:])
