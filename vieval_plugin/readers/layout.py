"""Layouts of benchmark folders: paths of images and the generator, prompt and category
in them.

A layout is a YAML file. `images` and `no_images` are templates of paths below the folder, without a
suffix. Their fields are `uid`, `index` (of an image among those of its prompt), `number` (which
counts the images of all prompts), `prompt`, `category`, `language` and `image_model`; `{uid:5}` has
five digits, `{category:a|b}` is `a` or `b`. `prompts` says where the texts are: in a JSON file
`beside` the images, in a `table` (of all, or one for each `{category}`), or in the paths
themselves. A layout whose images have a source is of edits.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, pairwise, product
from pathlib import Path
from typing import TypeAlias

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from vieval_plugin.images import images_of_grid
from vieval_plugin.judges.protocol import WANTED_OBJECTS, Image
from vieval_plugin.readers.columns import require_columns
from vieval_plugin.readers.image_names import (
    image_model_of,
    is_image_file,
    is_system_file,
)
from vieval_plugin.readers.open_table import metadata_of, open_table
from vieval_plugin.readers.prompt_rows import find_prompts
from vieval_plugin.readers.rows import read_lines
from vieval_plugin.readers.samples import (
    SampleRow,
    SampleSource,
    chained,
    fingerprint_of,
    read_through,
    samples_in_rows,
)
from vieval_plugin.readers.tables import BadLine, Cells, InputTable, NumberedRow
from vieval_plugin.records import Totals
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.wording import natural, plural
from vieval_plugin.text.yaml_json import read_yaml

_FIELD = re.compile(
    r"\{(uid|index|number|prompt|category|language|image_model)"
    r"(?::(?:(\d+)|([^}]+)))?\}"
)
_FOLDER = Path(__file__).with_name("layouts")
_DIGITS = ("index", "number")
_TEXT = r"[^/]*\s[^/]*"  # a prompt has several words

#: Generator, folder of the category, and uid of a prompt.
_Key: TypeAlias = tuple[str, str, str]

#: Folder of the category and uid of a prompt, whichever generator.
_PromptKey: TypeAlias = tuple[str, str]


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
    #: Column of the uid in the table; empty where rows are numbered from 0.
    uid: str = "uid"
    #: Column of the language.
    language: str = ""
    #: Column of the path of the source image.
    source: str = ""
    #: Folder beside the table where these paths begin.
    source_folder: str = ""
    #: Fields of the file beside an image that say which objects it must show.
    objects: list[str] = field(default_factory=list)


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Layout:
    """The layout of a benchmark's folder."""

    #: Name of the benchmark.
    title: str
    #: Templates of images.
    images: list[str]
    #: Templates of files that are no images of a prompt.
    no_images: list[str] = field(default_factory=list)
    #: Template of an image's source, with its suffix.
    source_image: str = ""
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
    file: Path
    #: Values of the fields in its path.
    fields: Mapping[str, str]

    @property
    def key(self) -> _Key:
        """Generator, place and uid; the prompt is the uid where the path has no other."""
        get = self.fields.get
        place = _place(get("category", ""), get("language", ""))
        return (
            get("image_model", ""),
            place,
            get("uid")
            or get(
                "prompt",
                "",
            ),
        )

    @property
    def order(self) -> int:
        """Number among the images of its prompt."""
        return int(self.fields.get("index") or self.fields.get("number") or 0)


@dataclass(frozen=True)
class _Conditions:
    """Conditions of an image."""

    #: The prompt or the instruction.
    text: str
    #: Its category; empty where the path has it.
    category: str = ""
    #: File of the source; empty where it is beside the image or there is none.
    source: str = ""
    #: JSON of the objects that an image must show; empty where that is not said.
    objects: str = ""


@dataclass(frozen=True)
class _Reading:
    """A folder that is read by a layout."""

    layout: Layout
    folder: Path
    #: Images by key, those of a prompt in order.
    images: Mapping[_Key, Sequence[_FoundImage]]
    #: Conditions by place and uid.
    conditions: Mapping[_PromptKey, _Conditions]

    def category(self, key: _PromptKey) -> str:
        """The category of a prompt, by its table or the folder of its images."""
        folder_name = key[0].partition("/")[0]
        named = self.layout.categories.get(folder_name, folder_name)
        return self.conditions[key].category or named


def layout_names() -> list[str]:
    """The names of the known layouts."""
    return sorted(file.stem for file in _FOLDER.glob("*.yaml"))


@cache
def read_layout_file(name: str) -> Layout:
    """The layout of a known name or a YAML file; VievalError if it is missing or
    invalid.
    """
    file = Path(name)
    if name in layout_names():
        file = _FOLDER / f"{name}.yaml"
    elif file.suffix not in (".yaml", ".yml"):
        hint = did_you_mean(name, layout_names()) or ";"
        raise VievalError(
            f"unknown layout {name[:80]!r}{hint} pass a YAML file or one of "
            f"{', '.join(layout_names())}"
        )
    try:
        return TypeAdapter(Layout).validate_python(
            read_yaml(file.read_text(encoding="utf-8"))
        )
    except OSError as error:
        raise VievalError(f"cannot read {file}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise VievalError(f"{file}: {where or 'the layout'}: {first['msg']}") from None
    except ValueError as error:
        raise VievalError(f"{file}: invalid YAML ({error})") from None


def find_folders(
    folders: Sequence[Path], prompts: Path | None = None
) -> tuple[str, Sequence[Path]]:
    """The layout that all folders fit, or all folders of images in them, one for each generator,
    and those that fit; an empty name where neither do.
    """
    parts = [part for folder in folders for part in _generator_folders(folder)]
    for candidates in (folders, parts):
        names = {find_layout(candidate, prompts) for candidate in candidates}
        if len(names) == 1 and all(names):
            return names.pop(), candidates
    return "", ()


def _generator_folders(folder: Path) -> list[Path]:
    """The folders of images in a folder that itself has neither images nor prompts."""
    entries = sorted(folder.iterdir())
    if _has_prompts(folder) or any(map(is_image_file, entries)):
        return []
    return [
        entry
        for entry in entries
        if entry.is_dir() and any(map(is_image_file, entry.rglob("*")))
    ]


def _has_prompts(folder: Path) -> bool:
    return bool(find_prompts(folder) or metadata_of(folder))


def find_layout(folder: Path, prompts: Path | None = None) -> str:
    """The name of the layout that all images below a folder fit and whose prompts are there;
    empty where none does.
    """
    files = _image_files(folder)
    names = [
        name
        for name in layout_names()
        if files and _fits(read_layout_file(name), folder, files, prompts)
    ]
    if len(names) > 1:
        raise VievalError(
            f"{folder}: matches the layouts {' and '.join(names)}; choose one "
            "with --layout"
        )
    return "".join(names)


def _fits(
    layout: Layout,
    folder: Path,
    files: Mapping[Path, str],
    prompts: Path | None,
) -> bool:
    table = layout.prompts.table if layout.prompts else []
    if prompts and prompts.name not in table:
        return False
    if _has_prompts(folder) if not table else not _tables(layout, folder, prompts):
        return False
    fields_by_file = {file: _fields(layout, name) for file, name in files.items()}
    if None in fields_by_file.values():
        return False
    prompted = {file: fields for file, fields in fields_by_file.items() if fields}
    if not prompted or table:
        return bool(prompted)
    if not layout.prompts:
        return not any(file.with_suffix(".txt").is_file() for file in prompted)
    first_fields = next(iter(prompted.values()))
    return (folder / _filled(layout.prompts.beside, first_fields)).is_file()


def read_layouts(
    folders: Sequence[Path],
    name: str = "",
    prompts: Path | None = None,
    kind: str | None = None,
) -> SampleSource | None:
    """The samples of folders by one layout, as `read_layout` has them.

    Args:
        folders: of one generator each, or those that these are in.
        name: that of the layout, or the file that it is in (default: the one that all folders
            fit; None where there is none).
        prompts: the table of prompts.
        kind: of the samples.
    """
    if not name:
        name, folders = find_folders(folders, prompts)
    if not name:
        return None
    layout = read_layout_file(name)
    return chained([read_layout(folder, layout, prompts, kind) for folder in folders])


def read_layout(
    folder: Path,
    layout: Layout,
    prompts: Path | None = None,
    kind: str | None = None,
) -> SampleSource:
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
    ordered_files = sorted(files, key=lambda file: natural(str(file)))
    matches = {file: _fields(layout, files[file]) for file in ordered_files}
    found_images = [
        _FoundImage(file, fields) for file, fields in matches.items() if fields
    ]
    if not found_images:
        raise VievalError(
            f"{folder}: no image matches the {layout.title} layout "
            f"({layout.images[0]}); pass the folder of a generator"
        )
    conditions = _all_conditions(layout, folder, found_images, prompts)
    reading = _Reading(
        layout,
        folder,
        _images_by_key(found_images),
        conditions,
    )

    def rows() -> Iterator[SampleRow]:
        default = "tie" if _is_edit(layout) else "tig"
        return samples_in_rows(
            _rows(reading),
            folder,
            kind or default,
            "prompt",
        )

    left_out = [file for file, fields in matches.items() if fields is None]
    contents = [*map(str, matches), *map(str, conditions.values())]
    totals = None
    if layout.totals:
        totals = Totals(
            layout.title,
            tuple(layout.totals),
            layout.threshold,
        )
    fingerprint = fingerprint_of(
        [],
        layout.title,
        kind or "",
        *contents,
    )
    notes = tuple(_notes(reading, left_out))
    return read_through(
        SampleSource(
            str(folder),
            rows,
            fingerprint,
            notes,
            totals=totals,
        )
    )


def _notes(reading: _Reading, left_out: Sequence[Path]) -> Iterator[str]:
    layout = reading.layout
    folder = reading.folder
    files = plural(sum(map(len, reading.images.values())), "file")
    if layout.grid:
        files = f"{files} of {layout.grid} images"
    yield (
        f"{folder}: read with the {layout.title} layout, {files}; use --layout NAME "
        "to choose another"
    )
    if left_out:
        images = plural(len(left_out), "image")
        name = left_out[0].name
        yield f"{folder}: ignored {images} outside the layout (first: {name})"
    strange = [key for key in reading.images if key[1:] not in reading.conditions]
    if strange:
        uids = plural(len(strange), "uid")
        path = "/".join(strange[0][1:])
        yield f"{folder}: ignored images of {uids} without a prompt (first: {path})"
    yield from _absent_images_note(reading)


def _images_by_key(
    found_images: Iterable[_FoundImage],
) -> dict[_Key, list[_FoundImage]]:
    """Images by key, those of a prompt in order; VievalError for two files of one image."""
    by_key = defaultdict[_Key, list[_FoundImage]](list)
    for image in sorted(found_images, key=lambda image: image.order):
        by_key[image.key].append(image)
    _require_one_file(by_key.values())
    return by_key


def _require_one_file(groups: Iterable[Sequence[_FoundImage]]) -> None:
    """Raise VievalError for two files of one image, such as a PNG and a JPEG."""
    for image, following in chain.from_iterable(map(pairwise, groups)):
        if image.order == following.order:
            raise VievalError(
                f"{image.file} and {following.file.name} are files of the same "
                "image; remove one of them"
            )


def _absent_images_note(reading: _Reading) -> Iterator[str]:
    """The line for the user on prompts without an image, by category; a category without a
    folder is left out.
    """
    groups = {key[:2] for key in reading.images}
    image_models = {image_model for image_model, _ in groups}
    missing_counts: Counter[str] = Counter()
    for model, key in product(image_models, reading.conditions):
        if (model, *key) not in reading.images:
            category = reading.category(key) or "no category"
            is_read = (model, key[0]) in groups
            reason = "no_image" if is_read else "skipped, no folder"
            missing_counts[f"{category} ({reason})"] += 1
    if not missing_counts:
        return
    per_generator = ""
    if len(image_models) > 1:
        per_generator = f", counted for each of {len(image_models)} generators"
    prompts = plural(missing_counts.total(), "prompt")
    by_category = sorted(missing_counts.items())
    counts = [f"{count} of {category}" for category, count in by_category]
    yield (
        f"{reading.folder}: {prompts} without an image: "
        f"{', '.join(counts)}{per_generator}"
    )


def _rows(reading: _Reading) -> Iterator[NumberedRow]:
    """The rows of all prompts by generator and category; also of prompts that lack an image."""
    groups = sorted({key[:2] for key in reading.images})
    keys = [
        (*group, uid)
        for group in groups
        for category_folder, uid in reading.conditions
        if category_folder == group[1]
    ]
    for number, key in enumerate(keys, start=1):
        for row in _rows_of_prompt(reading, key):
            yield number, row


def _path_fields(key: _Key) -> dict[str, str]:
    """The values of the fields in the paths of a prompt's files."""
    image_model, category_folder, uid = key
    category, _, language = category_folder.partition("/")
    return {
        "image_model": image_model,
        "category": category,
        "language": language,
        "uid": uid,
        "prompt": uid,
    }


def _shared_cells(reading: _Reading, key: _Key) -> Cells:
    """The cells that the rows of a prompt share."""
    image_model, *path = key
    conditions = reading.conditions[key[1:]]
    text_name = "instruction" if _is_edit(reading.layout) else "prompt"
    texts = {text_name: conditions.text}
    if conditions.objects:
        texts[WANTED_OBJECTS] = conditions.objects
    uid = "/".join(filter(None, path))
    folder = reading.folder.absolute()
    return {
        "uid": uid,
        "image_model": image_model or image_model_of(folder),
        "category": reading.category(key[1:]),
        "texts": texts,
    }


def _rows_of_prompt(reading: _Reading, key: _Key) -> Iterator[Cells | BadLine]:
    """The rows of a prompt, one an image; one whose image is not there where it has none."""
    layout = reading.layout
    folder = reading.folder.absolute()
    images = reading.images.get(key, [])
    fields = _path_fields(key)
    row = _shared_cells(reading, key)
    source = reading.conditions[key[1:]].source
    if layout.source_image:
        source = str(folder / _filled(layout.source_image, fields))
    files = [image.file.absolute() for image in images]
    if not files:
        path = _filled(layout.images[0], fields)
        files = [folder / f"{path}.png"]
    outputs: list[str | Image] = [str(file) for file in files]
    if layout.grid and images:
        try:
            outputs = [
                cut for file in files for cut in images_of_grid(file, layout.grid)
            ]
        except VievalError as error:
            yield BadLine(str(error), row)
            return
    # a number in a name counts the images of all prompts
    is_counted = layout.grid or "{number" in layout.images[0] or not images
    draws = range(len(outputs)) if is_counted else [image.order for image in images]
    sources = {"source": source} if source else {}
    for draw, output in zip(draws, outputs, strict=True):
        yield {
            **row,
            "draw": draw,
            "images": {"output": output, **sources},
        }


def _is_edit(layout: Layout) -> bool:
    return bool(layout.source_image or (layout.prompts and layout.prompts.source))


def _all_conditions(
    layout: Layout,
    folder: Path,
    found_images: Sequence[_FoundImage],
    prompts: Path | None,
) -> dict[_PromptKey, _Conditions]:
    prompt_layout = layout.prompts
    if prompt_layout is None:
        return {
            image.key[1:]: _Conditions(image.fields["prompt"]) for image in found_images
        }
    if prompt_layout.table:
        return _conditions_in_tables(layout, prompt_layout, folder, prompts)
    texts = {}
    pattern = _regex(layout, prompt_layout.beside)
    for file in sorted(folder.rglob(Path(prompt_layout.beside).name)):
        match = pattern.fullmatch(file.relative_to(folder).as_posix())
        if match:
            for row in read_lines(file, "")[:1]:
                cells = row.cells
                prompt = row.text(_name_of(prompt_layout.prompt, cells))
                category = str(cells.get(prompt_layout.category, ""))
                names = filter(cells.__contains__, prompt_layout.objects)
                wanted = {name: cells[name] for name in names}
                objects = json.dumps(wanted) if wanted else ""
                texts["", match["uid"]] = _Conditions(prompt, category, objects=objects)
    return texts


def _conditions_in_tables(
    layout: Layout,
    prompt_layout: LayoutPrompts,
    folder: Path,
    prompts: Path | None,
) -> dict[_PromptKey, _Conditions]:
    tables = _tables(layout, folder, prompts)
    if not tables:
        raise VievalError(
            f"{folder}: no {' or '.join(prompt_layout.table)} in this folder or "
            "its parents; "
            "pass it with --prompts"
        )
    texts: dict[_PromptKey, _Conditions] = {}
    for name, file in tables.items():
        for key, conditions in _rows_of_table(layout, prompt_layout, file, name):
            if texts.setdefault(key, conditions).text != conditions.text:
                path = "/".join(filter(None, key))
                raise VievalError(
                    f"{file}: {path} has two prompts; use a different uid for each"
                )
    return texts


def _rows_of_table(
    layout: Layout,
    prompt_layout: LayoutPrompts,
    file: Path,
    name: str,
) -> Iterator[tuple[_PromptKey, _Conditions]]:
    """Place, uid and conditions of the rows of a table, which is that of one category where this
    has a name.
    """
    table = open_table(file)
    prompt = _name_of(prompt_layout.prompt, table.columns)
    fields = (
        prompt_layout.uid,
        prompt,
        prompt_layout.category,
        prompt_layout.language,
        prompt_layout.source,
    )
    columns = list(filter(None, fields))
    require_columns(table, columns)
    folders = {category: folder for folder, category in layout.categories.items()}
    width = _uid_width(layout)
    for number, (row_number, row) in enumerate(table.read(columns)):
        if isinstance(row, BadLine):
            raise VievalError(
                f"{file}: {table.unit} {row_number}: {row}; correct the file"
            )
        if not row.get(prompt):
            continue
        category = str(row.get(prompt_layout.category, ""))
        place = ""
        if "{category}" in layout.images[0]:
            language = str(row.get(prompt_layout.language, ""))
            place = _place(name or folders.get(category, category), language)
        uid = str(row.get(prompt_layout.uid, number)).zfill(width)
        source = _source_file(prompt_layout, table, row)
        yield (place, uid), _Conditions(str(row[prompt]), category, source)


def _uid_width(layout: Layout) -> int:
    """The number of digits of a uid in the paths of images; 0 where any number will do."""
    digits = re.search(r"\{uid:(\d+)\}", layout.images[0])
    if digits:
        return int(digits[1])
    return 0


def _source_file(
    prompt_layout: LayoutPrompts,
    table: InputTable,
    row: Cells,
) -> str:
    """The file of the source of a row; empty where the table has none."""
    if not prompt_layout.source:
        return ""
    folder = table.folder.absolute() / prompt_layout.source_folder
    return str(folder / str(row[prompt_layout.source]))


def _tables(
    layout: Layout,
    folder: Path,
    prompts: Path | None,
) -> dict[str, Path]:
    """The tables of prompts by the folder of the category; by the empty text where one has them
    all.
    """
    names = layout.prompts.table if layout.prompts else []
    is_for_all = not any("{category}" in name for name in names)
    if prompts and is_for_all:
        return {"": prompts}
    parents = [prompts.parent] if prompts else [folder, *folder.absolute().parents[:2]]
    tables = {}
    for category_folder in [""] if is_for_all else layout.categories:
        files = [
            parent / name.replace("{category}", category_folder)
            for parent in parents
            for name in names
        ]
        file = next(filter(Path.is_file, files), None)
        if file:
            tables[category_folder] = file
    return tables


def _place(category: str, language: str) -> str:
    """The folder of the category and of the language."""
    return "/".join(filter(None, (category, language)))


def _name_of(names: str | Sequence[str], available: Iterable[str]) -> str:
    """The first of some names that is there, else the first."""
    candidates = [names] if isinstance(names, str) else list(names)
    return next((name for name in candidates if name in available), candidates[0])


def _image_files(folder: Path) -> dict[Path, str]:
    """The image files below a folder, and their paths in it without suffix."""
    files = filter(is_image_file, folder.rglob("*"))
    names = {file: file.relative_to(folder) for file in files}
    return {
        file: name.with_suffix("").as_posix()
        for file, name in names.items()
        if not is_system_file(name.as_posix())
    }


def _fields(layout: Layout, name: str) -> Mapping[str, str] | None:
    """The fields in the path of an image; none for a file that is not an image of a
    prompt, None outside the layout.
    """
    for template in layout.no_images:
        if _regex(layout, template).fullmatch(name):
            return {}
    for template in layout.images:
        match = _regex(layout, template).fullmatch(name)
        if match:
            return match.groupdict()
    return None


def _regex(layout: Layout, template: str) -> re.Pattern[str]:
    return _compiled(template, tuple(layout.categories))


@cache
def _compiled(template: str, categories: tuple[str, ...]) -> re.Pattern[str]:
    pattern = ""
    end = 0
    for field_match in _FIELD.finditer(template):
        name, digits, choices = field_match.groups()
        value = "[^/]+"
        if digits:
            value = f"\\d{{{digits}}}"
        elif name in _DIGITS:
            value = r"\d+"
        elif name == "prompt":
            value = _TEXT
        if choices:
            value = "|".join(map(re.escape, choices.split("|")))
        elif name == "category" and categories:
            value = "|".join(map(re.escape, categories))
        literal = re.escape(template[end : field_match.start()])
        pattern += f"{literal}(?P<{name}>{value})"
        end = field_match.end()
    return re.compile(pattern + re.escape(template[end:]))


def _filled(template: str, fields: Mapping[str, str]) -> str:
    """A template with the values of its fields, and zeros for numbers that are not known."""

    def value(match: re.Match[str]) -> str:
        return fields.get(match[1]) or "0" * int(match[2] or 4)

    return _FIELD.sub(value, template)
