"""Puts the demo's page and a picture of it beside this file: `make demo-page`.

The page shows drawn images alone. The picture is taken by chromium; where that is not installed, the one that is there stays.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from vieval_plugin.media.files import write_whole

HERE = Path(__file__).parent
PAGE, PICTURE = HERE / "demo.html", HERE / "demo.webp"
MOST_BYTES = 300_000
_SIZE = (1180, 1180)


def main(report: Path) -> None:
    """Copy a report's page, and take a picture of its beginning beside one of its gallery."""
    write_whole(PAGE, report.read_bytes())
    print(f"wrote {PAGE}")
    page = PAGE.read_text(encoding="utf-8")
    shots = list(filter(None, (shot(text, _SIZE) for text in (page, _gallery(page)))))
    if len(shots) < 2:
        print(f"chromium is not installed, so {PICTURE} is as it was")
        return
    both = Image.new("RGB", (sum(picture.width for picture in shots) + 20, _SIZE[1]), "white")
    both.paste(shots[0], (0, 0))
    both.paste(shots[1], (shots[0].width + 20, 0))
    write_picture(both, PICTURE)


def write_picture(picture: Image.Image, path: Path) -> None:
    """Write a picture that README can show, small enough for a repository."""
    picture.thumbnail((1600, 1600), Image.Resampling.LANCZOS)
    for quality in range(90, 20, -10):
        written = io.BytesIO()
        picture.save(written, "WEBP", quality=quality, method=6)
        if written.tell() <= MOST_BYTES:
            break
    write_whole(path, written.getvalue())
    print(f"wrote {path} ({written.tell()} bytes)")


def _gallery(page: str) -> str:
    """The page with its gallery alone; its policy, which allows no other style, is left out."""
    alone = (
        "<style>header, main > section:not(#gallery) { display: none; } h2 { margin-top: 1.5rem !important; }</style>"
    )
    return re.sub(r"<meta http-equiv=[^>]*>", "", page, count=1).replace("</head>", f"{alone}</head>", 1)


def shot(page: str, size: tuple[int, int]) -> Image.Image | None:
    """The beginning of a page as a browser shows it in a window; None where chromium is not installed."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file, shown = Path(folder) / "shot.png", Path(folder) / "page.html"
        shown.write_text(page, encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"]
        window = f"--window-size={size[0]},{size[1]}"
        command = [browser, *flags, window, f"--user-data-dir={folder}/profile", f"--screenshot={file}", shown.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        return Image.open(io.BytesIO(file.read_bytes())).convert("RGB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
