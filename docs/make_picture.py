"""Takes a picture of the beginning of an HTML page, as chromium shows it: `make demo-picture`,
`make leaderboard`.

Usage: make_picture.py PAGE PICTURE WIDTHxHEIGHT [DARK_PICTURE]. Without chromium the pictures that
are there stay.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from vieval_plugin.media.files import write_whole

MOST_BYTES = 120_000


def main(page: str, picture: str, size: str, dark_picture: str = "") -> None:
    """Write the picture of a page, and that of its dark colours."""
    width, height = map(int, size.split("x"))
    for path, dark in ((picture, False), (dark_picture, True)):
        if path and (image := screenshot(Path(page), (width, height), dark)):
            write_picture(image, Path(path))
        elif path:
            print(f"chromium is not installed, so {path} is as it was")


def screenshot(
    page: Path, size: tuple[int, int], dark: bool = False
) -> Image.Image | None:
    """The beginning of a page as a browser shows it in a window; None where chromium is not
    installed.
    """
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shot.png"
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-background-networking",
        ]
        flags.append(f"--blink-settings=preferredColorScheme={0 if dark else 1}")
        window = [
            f"--window-size={size[0]},{size[1]}",
            f"--user-data-dir={folder}/profile",
        ]
        command = [
            browser,
            *flags,
            *window,
            f"--screenshot={file}",
            page.absolute().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        return Image.open(io.BytesIO(file.read_bytes())).convert("RGB")


def write_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture for the documentation, small enough for a repository."""
    picture.thumbnail((1600, 1600), Image.Resampling.LANCZOS)
    for quality in range(90, 20, -10):
        written = io.BytesIO()
        picture.save(written, "WEBP", quality=quality, method=6)
        if written.tell() <= MOST_BYTES:
            break
    write_whole(path, written.getvalue())
    print(f"wrote {path} ({written.tell()} bytes)")


if __name__ == "__main__":
    main(*sys.argv[1:])
