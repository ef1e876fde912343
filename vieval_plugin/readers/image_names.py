"""The names of image files and the uids that they stand for."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path, PurePosixPath

from vieval_plugin.text.untrusted import real

#: The suffixes of files that are taken for images where a folder is searched for them; what they
#: are, their bytes say.
SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
    ".webp",
    ".bmp",
    ".gif",
    ".tif",
    ".tiff",
    ".avif",
    ".heic",
    ".heif",
)

_SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
_LONGEST = 100
_IMPOSSIBLE = re.compile(r'[/\\<>:"|?*\x00-\x1f\x7f]|^\.+|[. ]+$')


def is_image_file(file: Path) -> bool:
    """Return whether a path is a file with the suffix of an image."""
    return file.suffix.lower() in SUFFIXES and file.is_file()


def is_system_file(name: str) -> bool:
    """Return whether a name is that of a file which an operating system leaves beside data, in
    folders and archives.

    >>> is_system_file("a/._7.png"), is_system_file("__MACOSX/a/7.png"), is_system_file("a/7.png")
    (True, True, False)
    """
    path = PurePosixPath(name)
    return (
        path.name.startswith("._")
        or path.name in _SYSTEM_FILES
        or "__MACOSX" in path.parts
    )


def expected_name(uid: str) -> str:
    """The file name of the first image of a uid.

    >>> expected_name("7"), expected_name("7.png"), expected_name("a/7")
    ('7.png', '7.png', 'a_7-c28444f7.png')
    """
    stem = _stem(uid)
    if stem.lower().endswith(".png"):
        return stem
    return f"{stem}.png"


def stems_of(uid: str) -> tuple[str, ...]:
    """The names without a suffix that images of a uid have, as it is and then as it is written; it
    may be a file's name.

    >>> stems_of("7"), stems_of("cat.jpg"), stems_of("a cat.")
    (('7',), ('cat.jpg', 'cat'), ('a cat.', 'a cat_-31de96b9'))
    """
    suffix = PurePosixPath(uid).suffix
    stems = [uid, _stem(uid)]
    if suffix.lower() in SUFFIXES:
        name = uid.removesuffix(suffix)
        stems += [name, _stem(name)]
    return tuple(dict.fromkeys(stems))


def composed(name: str) -> str:
    """A name whose accents are part of their letters, as file systems and tables write them in
    two ways.
    """
    return unicodedata.normalize("NFC", name)


def numbers_of(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """The number and the draw in each name, of files whose names differ in one number alone, or in
    one and a draw behind.

    >>> [*numbers_of([Path("a_0.png"), Path("a_1.png"), Path("grid.png")]).values()]
    [(0, 0), (1, 0)]
    """
    by_form: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        by_form[_form(file)].append(file)
    numbers = {}
    for form, alike in by_form.items():
        digits = [re.findall(r"\d+", file.stem) for file in alike]
        columns = [*zip(*digits, strict=True)]
        different = [
            position
            for position, column in enumerate(columns)
            if len(columns) == 1 or len({*column}) > 1
        ]
        last = len(columns) - 1
        has_draws = len(different) == 2 and different[1] == last
        if has_draws:
            has_draws = re.search(r"_s?#$", form) is not None
        if len(different) == 1 or has_draws:
            for file, texts in zip(alike, digits, strict=True):
                draw = int(texts[-1]) if has_draws else 0
                numbers[file] = int(texts[different[0]]), draw
    return numbers


def _form(file: Path) -> str:
    return re.sub(r"\d+", "#", file.stem)


def readings(file: Path) -> Iterator[tuple[str, int]]:
    """The stems that a file's name may stand for, each with the number of the image: `7_1.png` is
    the second of `7`.

    >>> list(readings(Path("7_1.png")))
    [('7_1.png', 0), ('7_1', 0), ('7', 1)]
    """
    yield file.name, 0
    yield file.stem, 0
    numbered = re.fullmatch(r"(.+)_s?(\d{1,6})", file.stem)
    if numbered:
        yield numbered[1], int(numbered[2])


def image_model_of(folder: Path) -> str:
    """The name of the image model whose images a folder holds."""
    return _encodable(real(folder).name)


def image_models_of(folders: Sequence[Path]) -> list[str]:
    """The names of the image models whose images folders hold: of folders of one name the parts of
    paths that differ.

    >>> image_models_of([Path("/a/new"), Path("/a/one/old"), Path("/a/two/old")])
    ['new', 'one', 'two']
    """
    paths = [real(folder) for folder in folders]
    return [
        _distinct(path, {other.parts for other in paths if other.name == path.name})
        for path in paths
    ]


def _distinct(path: Path, namesakes: Collection[tuple[str, ...]]) -> str:
    if len(namesakes) < 2:
        return image_model_of(path)
    start = _equal(namesakes)
    reversed_parts = [parts[::-1] for parts in namesakes]
    end = len(path.parts) - _equal(reversed_parts)
    start = min(start, end - 1)
    return _encodable("/".join(path.parts[start:end]))


def _equal(paths: Iterable[Sequence[str]]) -> int:
    """The number of parts that paths begin with alike."""
    parts_by_depth = zip(*paths, strict=False)
    alike = takewhile(lambda parts: len({*parts}) == 1, parts_by_depth)
    return len(list(alike))


def _encodable(name: str) -> str:
    return name.encode(errors="replace").decode()  # results hold whole characters only


def are_numbered(files: Sequence[Path], rows: Sequence[int]) -> bool:
    """Return whether names differ in one number alone, which counts from 0 or 1 or is that of the
    rows of prompts.

    >>> are_numbered([Path("a_0.png"), Path("a_1.png")], [1, 2]), are_numbered([Path("cat.png"), Path("dog.png")], [1, 2])
    (True, False)
    """
    if len(files) == 1:
        return True
    if len(set(map(_form, files))) != 1:
        return False
    pairs = numbers_of(files).values()
    numbers = sorted(number for number, draw in pairs if not draw)
    count = len(files)
    return numbers in (
        [*range(count)],
        [*range(1, count + 1)],
        [*rows],
    )


def _stem(uid: str) -> str:
    """A uid as the name of a file: itself where it can be one, else what is left of it and a
    digest.
    """
    plain = _IMPOSSIBLE.sub("_", uid)[:_LONGEST]
    if plain == uid:
        return uid
    digest = hashlib.sha256(uid.encode(errors="replace")).hexdigest()
    return f"{plain}-{digest[:8]}"
