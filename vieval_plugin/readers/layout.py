"""Layouts of benchmarks: where the images of a folder stand, and what their paths say of generator, prompt and category.

A layout is a YAML file. `images` and `no_images` are templates of paths below the folder, without a suffix. Their
fields are `uid`, `index` (of an image among those of its prompt), `number` (which counts the images of all prompts),
`prompt`, `category` and `image_model`; `{uid:5}` has five digits. `prompts` says where the texts are: in a JSON file
`beside` the images, in a `table`, or in the paths themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from vieval_plugin.images import images_of_grid
from vieval_plugin.judges.protocol import Image
from vieval_plugin.readers.image_names import SUFFIXES, image_model_of, is_system_file
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.prompt_rows import own_prompts
from vieval_plugin.readers.samples import SampleRow, SampleSource, checked, fingerprint_of, samples_in_rows
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.wording import natural, plural
from vieval_plugin.text.yaml_json import first_row, read_yaml

_FIELD = re.compile(r"\{(uid|index|number|prompt|category|image_model)(?::(\d+))?\}")
_FOLDER = Path(__file__).with_name("layouts")
_DIGITS = ("index", "number")
_TEXT = r"[^/]*\s[^/]*"  # a prompt has several words


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class LayoutPrompts:
    """The place of the prompts of a layout."""

    #: Field or column of the prompt; of several names the first that is there.
    prompt: str | list[str]
    #: Field or column of the category.
    category: str = ""
    #: Template of a JSON file for each uid.
    beside: str = ""
    #: Names of a table in the folder or above it.
    table: list[str] = field(default_factory=list)
    #: Column of the uid in the table.
    uid: str = "uid"


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Layout:
    """The layout of a benchmark's folder."""

    #: Name of the benchmark.
    title: str
    #: Templates of images.
    images: list[str]
    #: Templates of files that are no images of a prompt.
    no_images: list[str] = field(default_factory=list)
    #: Columns and rows of an image that holds several, such as `2x2`.
    grid: str = ""
    #: Place of prompts; None where paths hold them.
    prompts: LayoutPrompts | None = None
    #: Names of categories by their folders; empty where any folder is one.
    categories: dict[str, str] = field(default_factory=dict)
    #: Score from which on an image is right; None where scores are averaged.
    threshold: float | None = None
    #: Totals that are printed: `categories`, `all` and `any`.
    totals: list[str] = field(default_factory=list)
    #: Source of the prompts.
    source: str = ""
    #: Licence of the prompts.
    licence: str = ""
    #: Images that the benchmark asks for; 0 where that is not known.
    images_a_prompt: int = 0
    #: Judges of the printed numbers.
    printed_by: str = ""
    #: Reason why the printed numbers are not reproduced.
    not_reproduced: str = ""


@dataclass(frozen=True)
class _FoundImage:
    """An image of a layout."""

    #: The file.
    file: Path
    #: Values of the fields in its path.
    fields: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """Generator, category and uid; the prompt is the uid where the path has no other."""
        uid = self.fields.get("uid") or self.fields.get("prompt", "")
        return self.fields.get("image_model", ""), self.fields.get("category", ""), uid

    @property
    def order(self) -> int:
        """Number among the images of its prompt."""
        return int(self.fields.get("index") or self.fields.get("number") or 0)


def layout_names() -> list[str]:
    """The names of the known layouts."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


@cache
def read_layout_file(name: str) -> Layout:
    """The layout of a name or of a user's own file; VievalError where there is none, or it is none."""
    file = Path(name)
    if name in layout_names():
        file = _FOLDER / f"{name}.yaml"
    elif file.suffix not in (".yaml", ".yml"):
        hint = did_you_mean(name, layout_names()) or ";"
        raise VievalError(f"no layout {name[:80]!r}{hint} pass a YAML file or one of {', '.join(layout_names())}")
    try:
        return TypeAdapter(Layout).validate_python(read_yaml(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise VievalError(f"{file}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise VievalError(f"{file}: {where or 'the layout'}: {first['msg']}") from None
    except ValueError as error:
        raise VievalError(f"{file}: not readable as YAML ({error})") from None


def find_layout(folder: Path, prompts: Path | None = None) -> str:
    """The name of the layout that all images below a folder fit and whose prompts are there; empty where none does."""
    files = _image_files(folder)
    has_prompts = prompts is not None or own_prompts(folder) is not None
    names = [
        name for name in layout_names() if files and _fits(read_layout_file(name), folder, files, prompts, has_prompts)
    ]
    if len(names) > 1:
        raise VievalError(f"{folder}: it fits the layouts {' and '.join(names)}; choose one with --layout")
    return "".join(names)


def _fits(layout: Layout, folder: Path, files: Sequence[Path], prompts: Path | None, has_prompts: bool) -> bool:
    if has_prompts and not (layout.prompts and layout.prompts.table):
        return False
    if not all(_matched(layout, folder, file) or _is_no_image(layout, folder, file) for file in files):
        return False
    found = [image for file in files if (image := _matched(layout, folder, file))]
    if not found or not layout.prompts:
        return bool(found)
    if layout.prompts.table:
        return _table_of(layout, folder, prompts) is not None
    return _beside(layout, folder, found[0]).is_file()


def read_layout(folder: Path, layout: Layout, prompts: Path | None = None, kind: str | None = None) -> SampleSource:
    """The samples of a folder by its layout.

    Args:
        folder: of one image model, or where the layout says so of several.
        layout: by `read_layout_file`.
        prompts: the table of prompts (default: by its name in the folder or above it).
        kind: of the samples (default: `tig`).

    Raises:
        VievalError: no image fits the layout, its prompts are not there, or a grid cannot be cut.
    """
    files = _image_files(folder)
    found = [image for file in files if (image := _matched(layout, folder, file))]
    if not found:
        raise VievalError(f"{folder}: no image fits the layout of {layout.title}, which is {layout.images[0]}")
    texts = _texts(layout, folder, found, prompts)
    by_key: dict[tuple[str, str, str], list[_FoundImage]] = defaultdict(list)
    for image in found:
        by_key[image.key].append(image)
    generators = {(image_model, category) for image_model, category, _ in by_key}
    expected = [
        (model, category, uid) for model, category in sorted(generators) for place, uid in texts if place == category
    ]
    keys = list(dict.fromkeys((*expected, *by_key)))
    strange = [key for key in by_key if key[1:] not in texts]

    def rows() -> Iterator[SampleRow]:
        prompts_with_text = ((number, key) for number, key in enumerate(keys, start=1) if key[1:] in texts)
        numbered = (
            (number, row)
            for number, key in prompts_with_text
            for row in _rows(layout, folder, key, texts[key[1:]], by_key.get(key, []))
        )
        return samples_in_rows(numbered, folder, kind or "tig", "prompt")

    left_out = [f for f in files if not (_matched(layout, folder, f) or _is_no_image(layout, folder, f))]
    notes = [
        f"{folder}: read by the layout of {layout.title}, {plural(len(found), 'file')}; --layout NAME chooses another"
    ]
    if left_out:
        notes.append(
            f"{folder}: {plural(len(left_out), 'image')} outside the layout left out, the first {left_out[0].name}"
        )
    if strange:
        _, *place = strange[0]
        notes.append(
            f"{folder}: no prompt for the images of {plural(len(strange), 'uid')}, left out, the first {'/'.join(place)}"
        )
    fingerprint = fingerprint_of(
        [], layout.title, kind or "", *(str(file) for file in files), *map(str, texts.values())
    )
    return checked(SampleSource(str(folder), rows, fingerprint, tuple(notes)))


def _rows(
    layout: Layout, folder: Path, key: tuple[str, str, str], text: tuple[str, str], images: Sequence[_FoundImage]
) -> Iterator[dict[str, Any] | BadLine]:
    """The rows of a prompt, one an image; one whose image is not there where it has none."""
    image_model, place, uid = key
    prompt, category = text
    row = {
        "uid": "/".join(filter(None, (place, uid))),
        "image_model": image_model or image_model_of(folder),
        "category": category or layout.categories.get(place, place),
        "texts": {"prompt": prompt},
    }
    outputs: list[str | Image] = [str(image.file.absolute()) for image in sorted(images, key=lambda image: image.order)]
    numbers = [image.order for image in sorted(images, key=lambda image: image.order)]
    if "{number" in layout.images[0] or not outputs:
        numbers = list(range(len(outputs)))
    if layout.grid:
        try:
            outputs = [cut for image in images for cut in images_of_grid(image.file, layout.grid)]
        except VievalError as error:
            yield BadLine(str(error), row)
            return
        numbers = list(range(len(outputs)))
    if not outputs:
        missing = _filled(layout.images[0], {"image_model": image_model, "category": place, "uid": uid, "prompt": uid})
        outputs, numbers = [str(folder.absolute() / f"{missing}.png")], [0]
    for number, output in zip(numbers, outputs, strict=True):
        yield {**row, "draw": number, "images": {"output": output}}


def _texts(
    layout: Layout, folder: Path, found: Sequence[_FoundImage], prompts: Path | None
) -> dict[tuple[str, str], tuple[str, str]]:
    """Prompt and category by the folder of the category and the uid."""
    place = layout.prompts
    if place is None:
        return {image.key[1:]: (image.fields["prompt"], "") for image in found}
    if place.table:
        return _texts_in_table(layout, place, folder, prompts)
    texts = {}
    pattern = _regex(layout, Path(place.beside).with_suffix("").as_posix())
    for file in sorted(folder.rglob(Path(place.beside).name)):
        match = pattern.fullmatch(file.relative_to(folder).with_suffix("").as_posix())
        document = first_row(file)
        prompt = document.get(_name_of(place.prompt, document))
        if match and isinstance(prompt, str):
            texts["", match["uid"]] = prompt, str(document.get(place.category, ""))
    return texts


def _texts_in_table(
    layout: Layout, place: LayoutPrompts, folder: Path, prompts: Path | None
) -> dict[tuple[str, str], tuple[str, str]]:
    file = _table_of(layout, folder, prompts)
    if file is None:
        raise VievalError(f"{folder}: {' or '.join(place.table)} must be there or above; or name it with --prompts")
    table = open_table(file)
    prompt = _name_of(place.prompt, table.columns)
    if absent := [name for name in (place.uid, prompt, place.category) if name not in table.columns]:
        raise VievalError(f"{file}: no column {absent[0]!r}, which the layout of {layout.title} needs")
    folders = {name: folder_name for folder_name, name in layout.categories.items()}
    texts = {}
    for _, row in table.read([place.uid, prompt, place.category]):
        if not isinstance(row, BadLine):
            category, uid = str(row.get(place.category, "")), str(row.get(place.uid, ""))
            texts[folders.get(category, category), uid] = str(row.get(prompt, "")), category
    return texts


def _table_of(layout: Layout, folder: Path, prompts: Path | None) -> Path | None:
    names = layout.prompts.table if layout.prompts else []
    places = [prompts] if prompts else [above / name for above in (folder, folder.absolute().parent) for name in names]
    return next((place for place in places if place.is_file()), None)


def _name_of(names: str | Sequence[str], available: Iterable[str]) -> str:
    """The first of some names that is there, else the first."""
    candidates = [names] if isinstance(names, str) else list(names)
    return next((name for name in candidates if name in available), candidates[0])


def _image_files(folder: Path) -> list[Path]:
    files = (file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    data = [file for file in files if not is_system_file(file.relative_to(folder).as_posix())]
    return sorted(data, key=lambda file: natural(str(file)))


def _matched(layout: Layout, folder: Path, file: Path) -> _FoundImage | None:
    name = file.relative_to(folder).with_suffix("").as_posix()
    if _is_no_image(layout, folder, file):
        return None
    matches = (_regex(layout, template).fullmatch(name) for template in layout.images)
    return next((_FoundImage(file, match.groupdict()) for match in matches if match), None)


def _is_no_image(layout: Layout, folder: Path, file: Path) -> bool:
    name = file.relative_to(folder).with_suffix("").as_posix()
    return any(_regex(layout, template).fullmatch(name) for template in layout.no_images)


def _beside(layout: Layout, folder: Path, image: _FoundImage) -> Path:
    assert layout.prompts is not None
    return folder / _filled(layout.prompts.beside, image.fields)


def _regex(layout: Layout, template: str) -> re.Pattern[str]:
    return _compiled(template, tuple(layout.categories))


@cache
def _compiled(template: str, categories: tuple[str, ...]) -> re.Pattern[str]:
    pattern, end = "", 0
    for found in _FIELD.finditer(template):
        name, digits = found.groups()
        value = f"\\d{{{digits}}}" if digits else r"\d+" if name in _DIGITS else _TEXT if name == "prompt" else "[^/]+"
        if name == "category" and categories:
            value = "|".join(map(re.escape, categories))
        pattern += f"{re.escape(template[end : found.start()])}(?P<{name}>{value})"
        end = found.end()
    return re.compile(pattern + re.escape(template[end:]))


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """A template with the values of its fields, and zeros for numbers that are not known."""

    def value(match: re.Match[str]) -> str:
        return fields.get(match[1]) or "0" * int(match[2] or 4)

    return _FIELD.sub(value, template)
