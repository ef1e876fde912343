"""Makes README's picture of judged posters, photographs with planted faults: `make hero`."""

from __future__ import annotations

import tempfile
import textwrap
from pathlib import Path

from make_picture import write_picture
from PIL import Image, ImageDraw, ImageFont

from vieval_plugin import Judge
from vieval_plugin.generation import posters

HERO = Path(__file__).parent / "images" / "hero.webp"
POSTERS = {
    "new/p10": ("LIFT OFF", "no fault planted"),
    "old/p03": ("LOST CAT", "planted: title misspelt"),
    "old/p08": ("DEEP FIELD", "planted: title lost"),
}
"""By poster of `vieval demo` the title in its prompt, and its fault."""
WIDTH, MARGIN, SIDE, HEIGHT = 400, 8, 384, 578  # pixels
LETTERS_A_LINE = 27


def picture() -> Image.Image:
    """The posters side by side, each above its score, its fault and the judge's reason."""
    judge = Judge("text_rendering")
    shown = Image.new("RGB", (len(POSTERS) * WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(shown)
    with tempfile.TemporaryDirectory() as folder:
        posters.make(Path(folder), seed=0)
        for number, (name, (title, fault)) in enumerate(POSTERS.items()):
            left, path = number * WIDTH + MARGIN, Path(folder) / f"{name}.png"
            texts = {"prompt": f'a poster with the title "{title}"'}
            [verdict] = judge(
                [{"images": {"output": path}, "texts": texts}], kind="tig"
            )
            poster = Image.open(path)
            square = (0, poster.height - poster.width, *poster.size)
            shown.paste(poster.resize((SIDE, SIDE), box=square), (left, MARGIN))
            score = f"SC {verdict.scores['SC']:.2f}"
            reason = textwrap.fill(verdict.rationale, LETTERS_A_LINE)
            for text, size, top in ((score, 44, 20), (f"{fault}\n{reason}", 28, 78)):
                font = ImageFont.load_default(size)
                draw.text((left, SIDE + top), text, "#222", font)
    return shown


if __name__ == "__main__":
    write_picture(picture(), HERO)
