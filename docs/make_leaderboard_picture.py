"""Takes a picture of the leaderboard's page for README: `make leaderboard`. Without chromium the one that is there stays."""

from __future__ import annotations

from pathlib import Path

from make_demo_page import shot, write_picture

FOLDER = Path(__file__).parent / "leaderboard"


def main() -> None:
    picture = shot((FOLDER / "index.html").read_text(encoding="utf-8"), (1280, 860))
    if picture is None:
        print("chromium is not installed, so the picture of the leaderboard is as it was")
    else:
        write_picture(picture, FOLDER / "leaderboard.webp")


if __name__ == "__main__":
    main()
