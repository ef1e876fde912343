"""Posters as two image generators would make them, for `vieval demo`: one that spells and one that
does not.

Each is a photograph of scikit-image's own with a title. The photographs are those that the
docstrings of `skimage.data` call public domain or CC0 and that lie in its package, so nothing is
fetched.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
from PIL import ImageDraw, ImageFilter, ImageFont, ImageOps

from vieval_plugin.judges.text_rendering import compare
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError, install_advice
from vieval_plugin.text.escaping import csv_text

#: The generators, which are the folders of their images.
CAREFUL = "new"
CARELESS = "old"
_SIZE = (512, 640)
_STRIP, _LETTERING, _BLUR = 110, 48, 6  # pixels
_BENCHMARK = """\
name: posters
title: Posters of vieval demo
table: truth.csv
kind: tig
columns: {uid: uid, prompt: prompt, image_model: generator, output: "{generator}/{uid}.png"}
ratings: {SC: [similarity], PQ: [sharpness]}
scale: [0, 1]
statistics: [spearman]
synthetic: true
source: vieval demo
licence: CC0-1.0 and public domain; truth.csv has the licence of each photograph
note: "Computed, not rated by people: SC is the edit similarity of the drawn and the requested title, PQ is 1 if sharp."
"""


@dataclass(frozen=True)
class Scene:
    """Photograph of a poster, with its title."""

    #: Function of `skimage.data` that has it.
    photograph: str
    #: Terms and author of the photograph.
    licence: str
    #: Its subject in the prompt.
    subject: str
    #: Title in the prompt.
    title: str
    #: Colours of its shadows and its lights; empty for its own.
    tint: tuple[str, str] | None = None
    #: Middle of the crop, from (0, 0) for the upper left to (1, 1).
    middle: tuple[float, float] = (0.5, 0.5)


SCENES = (
    Scene("astronaut", "public domain, NASA", "an astronaut", "TO THE STARS"),
    Scene("brick", "CC0, CC0Textures", "a brick wall", "BRICK BY BRICK"),
    Scene(
        "camera",
        "CC0, Lav Varshney",
        "a photographer",
        "HOLD STILL",
        middle=(0.2, 0.5),
    ),
    Scene("chelsea", "CC0, Stefan van der Walt", "a cat", "LOST CAT"),
    Scene(
        "chelsea",
        "CC0, Stefan van der Walt",
        "a cat in red light",
        "CATS WELCOME",
        ("#3a0d12", "#ffd9b0"),
        (0, 0),
    ),
    Scene("coffee", "CC0, Rachel Michetti", "a cup of coffee", "FRESH COFFEE"),
    Scene(
        "grass",
        "CC0, CC0Textures",
        "grass",
        "GARDEN PARTY",
        ("#10351a", "#c6f29b"),
    ),
    Scene(
        "gravel",
        "CC0, CC0Textures",
        "gravel",
        "ROAD WORK",
        ("#301c10", "#f4cf9c"),
    ),
    Scene(
        "hubble_deep_field",
        "public domain, NASA",
        "galaxies",
        "DEEP FIELD",
    ),
    Scene(
        "retina",
        "CC0, Häggström",
        "the inside of an eye",
        "EYE TEST TODAY",
    ),
    Scene(
        "rocket",
        "public domain, SpaceX",
        "a rocket before liftoff",
        "LIFT OFF",
        middle=(0.55, 0.5),
    ),
    Scene(
        "rocket",
        "public domain, SpaceX",
        "a launch site at night",
        "NIGHT SHIFT",
        ("#0b1033", "#ffb37a"),
        (0, 1),
    ),
)


def make(folder: Path, seed: int) -> bool:
    """Write `prompts.csv`, the posters of both generators as `GENERATOR/UID.png`, and `truth.csv`
    with all errors.

    The careless generator misspells five titles, loses three and blurs six photographs, which ones
    by `seed`. Beside them `benchmark.yaml` makes a benchmark of the truth. A folder that an
    interrupted call left is completed.

    Returns:
        Whether they were made; False where the folder has them from an earlier call with this seed.

    Raises:
        VievalError: scikit-image is not installed, or the folder holds something else or cannot be
            written.
    """
    if importlib.util.find_spec("skimage") is None:
        raise VievalError(
            "the demo requires scikit-image for its photographs; "
            f"{install_advice('metrics')}"
        )
    rng = random.Random(seed)
    kinds = ["misspelt"] * 5 + ["lost"] * 3 + ["right"] * 4
    errors = rng.sample(kinds, len(SCENES))
    blurs = rng.sample([True] * 6 + [False] * 6, len(SCENES))
    prompts = list[dict[str, str]]()
    truth = list[dict[str, str]]()
    pictures = {}
    makings_of_scenes = zip(SCENES, errors, blurs, strict=True)
    for number, (scene, error, is_blurred) in enumerate(makings_of_scenes):
        uid = f"p{number:02}"
        source = f"skimage.data.{scene.photograph} ({scene.licence})"
        prompt = f'a poster with {scene.subject} and the title "{scene.title}"'
        prompts.append({"uid": uid, "prompt": prompt})
        misspelt_title = misspelt(scene.title, rng)
        titles = {
            "right": scene.title,
            "misspelt": misspelt_title,
            "lost": "",
        }
        makings = {
            CAREFUL: (scene.title, "right", False),
            CARELESS: (titles[error], error, is_blurred),
        }
        for generator, (title, title_is, blurred) in makings.items():
            pictures[f"{generator}/{uid}.png"] = scene, title, blurred
            similarity = compare([scene.title], [title])[0]["SC"]
            truth.append(
                {
                    **prompts[-1],
                    "generator": generator,
                    "title": title,
                    "title_is": title_is,
                    "similarity": f"{similarity:.3f}",
                    "photograph_is": "blurred" if blurred else "sharp",
                    "sharpness": str(int(not blurred)),
                    "photograph": source,
                }
            )
    tables = {"prompts.csv": _csv(prompts), "truth.csv": _csv(truth)}
    if _is_complete(folder, tables):
        return False
    write_whole(folder / "prompts.csv", tables["prompts.csv"])
    for name, (scene, title, blurred) in pictures.items():
        file = io.BytesIO()
        poster(scene, title, _BLUR * blurred).save(file, "PNG")
        write_whole(folder / name, file.getvalue())
    write_whole(folder / "benchmark.yaml", _BENCHMARK.encode())
    write_whole(
        folder / "truth.csv", tables["truth.csv"]
    )  # the last: with it all are there
    return True


def _is_complete(folder: Path, tables: Mapping[str, bytes]) -> bool:
    """Return whether a folder has all tables; VievalError where it is neither empty nor an
    earlier call's.
    """
    try:
        files = [folder / name for name in tables]
        earlier = {file.name: file.read_bytes() for file in files if file.is_file()}
        is_empty = not folder.exists() or not any(folder.iterdir())
    except OSError as error:
        raise VievalError(
            f"cannot read {folder} ({error.strerror}); choose another folder with --out"
        ) from None
    if not is_empty and earlier.get("prompts.csv") != tables["prompts.csv"]:
        raise VievalError(
            f"{folder} contains other files; choose another folder with --out"
        )
    return earlier == tables


def _csv(rows: Sequence[Mapping[str, str]]) -> bytes:
    return csv_text([[*rows[0]], *([*row.values()] for row in rows)]).encode()


def misspelt(title: str, rng: random.Random) -> str:
    """A title of capitals that has lost a letter, and has two others changed places.

    >>> misspelt("FRESH COFFEE", random.Random(0))
    'FRESH CFEFE'
    """
    letters = list(title)
    neighbours = enumerate(itertools.pairwise(letters), 1)
    indices = [i for i, pair in neighbours if " " not in pair and len(set(pair)) == 2]
    index = rng.choice(indices)
    letters[index - 1 : index + 1] = reversed(letters[index - 1 : index + 1])
    far_indices = [i for i in range(len(letters)) if abs(i - index) > 1]
    del letters[rng.choice([i for i in far_indices if letters[i] != " "])]
    return "".join(letters)


def poster(scene: Scene, title: str, blur: float) -> PIL.Image.Image:
    """A poster of 512 x 640 pixels; `blur` is the radius in pixels, and an empty title leaves
    its strip out.
    """
    from skimage import data

    photograph = PIL.Image.fromarray(np.asarray(getattr(data, scene.photograph)()))
    if scene.tint:
        photograph = ImageOps.colorize(photograph.convert("L"), *scene.tint)
    picture = ImageOps.fit(
        photograph.convert("RGB"),
        _SIZE,
        centering=scene.middle,
    )
    picture = picture.filter(ImageFilter.GaussianBlur(blur))
    if title:
        pen = ImageDraw.Draw(picture, "RGBA")
        pen.rectangle((0, _SIZE[1] - _STRIP, *_SIZE), (0, 0, 0, 200))
        middle = (_SIZE[0] / 2, _SIZE[1] - _STRIP / 2)
        font = ImageFont.load_default(_LETTERING)
        pen.text(middle, title, "white", font, anchor="mm")
    return picture
