"""Images, and folders of images with the prompts that they were made of -> samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from vieval_plugin.images import begins_as_image
from vieval_plugin.judges.protocol import REFERENCE, Status
from vieval_plugin.readers.arrow_tables import is_saved
from vieval_plugin.readers.image_names import (
    SUFFIXES,
    expected_name,
    image_model_of,
    image_models_of,
    is_image_file,
    is_system_file,
)
from vieval_plugin.readers.layout import read_layouts
from vieval_plugin.readers.open_table import (
    metadata_of,
    other_than_table,
    parquet_files,
)
from vieval_plugin.readers.pairing import ImageModels, PairedImage, pair_images
from vieval_plugin.readers.prompt_rows import NAMES, Prompts, find_prompts, prompts_of
from vieval_plugin.readers.sample_rows import is_address, stem_of
from vieval_plugin.readers.samples import (
    SampleRow,
    SampleSource,
    chained,
    fingerprint_of,
    read_samples,
    read_through,
    samples_in_rows,
)
from vieval_plugin.readers.tables import BadLine, Cells, Columns, NumberedRow
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.untrusted import is_below, isdir, isfile, path_of, real
from vieval_plugin.text.wording import natural, plural

_LONGEST_TEXT = 1 << 20


def read_named(
    locations: Sequence[str],
    prompts: Path | None = None,
    kind: str | None = None,
    columns: Columns | None = None,
    layout: str = "",
    reference: Path | None = None,
) -> SampleSource:
    """Samples from folders of a benchmark layout, other image folders (`read_folders`),
    or tables (`read_samples`).

    A folder of parquet files stands for these. In several tables a row without a uid is called by
    its table and number. `layout` is the name or the file of one that folders have. `reference` is
    a folder of images that those of other folders are compared with.
    """
    paths = [path_of(location) for location in locations]
    if all(map(isdir, paths)) and not reference:
        source = read_layouts(paths, layout, prompts, kind)
        if source:
            return source
    if layout:
        raise VievalError("--layout applies only to image folders")
    if reference or prompts or all(map(is_of_images, paths)):
        return read_folders(
            paths,
            prompts,
            kind,
            columns,
            reference=reference,
        )
    tables: dict[str | Path, str] = {}
    for location, path in zip(locations, paths, strict=True):
        files = parquet_files(path)
        for file in files:
            tables[file] = f"{file.relative_to(path).as_posix()}:"
        if not files:
            tables[location] = f"{path.name}:"
    if len(tables) == 1:
        [table] = tables
        return read_samples(table, kind, columns)
    return chained(
        [read_samples(table, kind, columns, name) for table, name in tables.items()]
    )


def read_folders(
    folders: Sequence[Path],
    prompts: Path | None = None,
    kind: str | None = None,
    columns: Columns | None = None,
    unmade: bool = False,
    reference: Path | None = None,
) -> SampleSource:
    """Samples from folders of images, each folder being an image model, and the prompts that all
    were given.

    An image belongs to the prompt whose uid it is called by (`UID.png`, `UID_1.png` for the second
    of a prompt), see `pair_images`.

    Args:
        folders: of images; or one or several whose own folders hold the images, one for each image
            model.
        prompts: see `prompts_of`; images that it names, such as the source of an edit, start at its
            folder. Without it, the folder's own file of prompts is taken, or that of each of its
            folders, or a `.txt` beside each image.
        kind: that of prompts which name none (default: what their images and texts tell).
        columns: what columns of the prompts are, by `parse_columns`.
        unmade: images may be yet to be made: one a prompt of a file, in one folder, called by its
            uid.
        reference: a folder of images of the same prompts, each the `reference` of the images of
            its prompt, of the same draw where it has several.

    Raises:
        VievalError: the prompts cannot be read, a folder has no images or as many as there are not
            prompts, or none that is called by a uid.
    """
    if prompts is None:
        prompts = _prompts_in(folders)
    if prompts is None:
        if reference:
            raise VievalError("--reference requires --prompts")
        return _read_without_prompts(folders, kind, columns)
    conditions = prompts_of(prompts, columns)
    if unmade:
        pairs = _expected_images(folders, conditions)
        notes = list[str]()
    else:
        pairs, notes = _pair_folders(folders, conditions)
    # prompt by prompt, so that the first few samples are of all image models
    pairs.sort(key=lambda pair: pair.prompt.number)
    references = _references(reference, conditions) if reference else {}

    def read() -> Iterator[SampleRow]:
        rows = ((pair.prompt.number, _row_of_pair(pair, references)) for pair in pairs)
        for sample in samples_in_rows(rows, conditions.folder, kind, conditions.unit):
            if sample.verdict and sample.verdict.status is Status.PARSE_FAILURE:
                raise VievalError(f"{prompts}: {sample.place}: {sample.verdict.reason}")
            yield sample

    outputs = (f"{pair.image_model}/{pair.file.name}" for pair in pairs)
    fingerprint = fingerprint_of(
        [prompts],
        kind or "",
        *outputs,
        *references.values(),
    )
    return read_through(
        SampleSource(
            str(prompts),
            read,
            fingerprint,
            (*conditions.notes, *notes),
        )
    )


def _prompts_in(folders: Sequence[Path]) -> Path | None:
    files = list(filter(None, map(find_prompts, filter(isdir, folders))))
    if len(files) > 1:
        names = abbreviated(list(map(str, files)))
        raise VievalError(f"several prompt files: {names}; choose one with --prompts")
    return files[0] if files else None


def _read_without_prompts(
    folders: Sequence[Path],
    kind: str | None,
    columns: Columns | None,
) -> SampleSource:
    sources = []
    for folder in filter(isdir, folders):
        for part in sorted(folder.iterdir()):
            prompts = find_prompts(part)
            if prompts:
                sources.append(read_folders([part], prompts, kind, columns))
    if not sources:
        sources = [_samples_with_texts(_image_models(folders), kind)]
    return chained(sources)


def _pair_folders(
    folders: Sequence[Path], conditions: Prompts
) -> tuple[list[PairedImage], list[str]]:
    """Match prompts with the images in folders; also return lines for the user."""
    condition_folders = _folders_of_conditions(conditions)
    models = _image_models(folders, condition_folders)
    pairs, notes = pair_images(models, conditions)
    notes += _deeper_images_notes(models, condition_folders)
    return pairs, notes


def _expected_images(folders: Sequence[Path], conditions: Prompts) -> list[PairedImage]:
    [folder] = folders
    model = image_model_of(folder)
    return [
        PairedImage(
            prompt,
            model,
            0,
            folder / expected_name(prompt.uid),
        )
        for prompt in conditions.rows
    ]


def _references(folder: Path, conditions: Prompts) -> dict[tuple[int, int], str]:
    """The files of a folder of references by number of their prompt and draw."""
    models = _image_models([folder])
    if len(models) > 1:
        raise VievalError(
            "--reference must be one image folder, got "
            f"{plural(len(models), 'folder')} in {folder}"
        )
    pairs, _ = pair_images(models, conditions)
    return {
        (pair.prompt.number, pair.draw): str(pair.file.absolute())
        for pair in pairs
        if isfile(pair.file)
    }


def _row_of_pair(pair: PairedImage, references: Mapping[tuple[int, int], str]) -> Cells:
    row = pair.prompt.row
    number = pair.prompt.number
    images = row.get("images", {})
    reference = references.get((number, pair.draw)) or references.get((number, 0))
    # whatever else is there is an error where the row is read
    if isinstance(images, Mapping):
        compared = {REFERENCE: reference} if reference else {}
        images = {
            **images,
            **compared,
            "output": str(pair.file.absolute()),
        }
    return {
        **row,
        "uid": pair.prompt.uid,
        "image_model": pair.image_model,
        "draw": pair.draw,
        "images": images,
    }


def are_images(locations: Sequence[str]) -> bool:
    """Return whether all of these are images themselves, and no table: addresses, or files by
    their names or content.
    """
    return all(map(_is_image, locations))


def _is_image(name: str) -> bool:
    if name.lower().endswith(SUFFIXES) or is_address(name):
        return True
    path = path_of(name)
    return isfile(path) and begins_as_image(path)


def other_than_images(locations: Sequence[str]) -> str:
    """Words on the first location that is not an image, and how to pass its prompts."""
    location = next(location for location in locations if not are_images([location]))
    path = path_of(location)
    if isdir(path):
        return f", and {location} is a folder; pass its prompts file with --prompts"
    kind = other_than_table(path) if isfile(path) else ""
    if kind:
        return f", and {location} is {kind}, not an image"
    if len(locations) > 1:
        return f", and {location} is not an image; omit it"
    return "; a samples file contains its own prompts"


def read_image_samples(
    images: Sequence[str],
    texts: Mapping[str, str],
    source: str | None,
    kind: str | None,
) -> SampleSource:
    """Samples from image files or URLs that share one prompt.

    Args:
        images: each is a sample, called by its file's name; all are in one group, as images of
            one prompt are.
        texts: `prompt` or `instruction`, as far as they are there.
        source: the image that was edited, where one was.
        kind: the kind of all (default: what images and texts tell, `tig` where they tell nothing).
    """
    stems = [stem_of(image) or "image" for image in images]
    conditions = {"source": source} if source else {}
    rows = []
    for number, (image, stem) in enumerate(zip(images, stems, strict=True), start=1):
        is_unique = stems.count(stem) == 1
        uid = stem if is_unique else f"{stem}_{number}"
        row = {
            "uid": uid,
            "images": {"output": image, **conditions},
            "texts": texts,
            "group": stems[0],
        }
        rows.append((number, row))
    is_edit = bool(source) or "instruction" in texts
    default = "tie" if is_edit else "tig"
    options = "--prompt TEXT, or --source IMAGE and --instruction TEXT"
    if source:
        options = "--instruction TEXT"

    def read() -> Iterator[SampleRow]:
        return samples_in_rows(
            rows,
            Path.cwd(),
            kind or default,
            "image",
        )

    fingerprint = fingerprint_of(
        [],
        *images,
        source or "",
        *texts.values(),
        kind or "",
    )
    no_text = "" if texts else f"no prompt; pass {options}"
    return read_through(SampleSource("the images", read, fingerprint, no_text=no_text))


def is_of_images(folder: Path) -> bool:
    """Return whether images are in a folder or in folders of it, or prompts for them, and no
    table says what they are.
    """
    if not isdir(folder) or is_saved(folder) or metadata_of(folder):
        return False
    return any(
        find_prompts(candidate) or _images(candidate)
        for candidate in _add_subfolders(folder)
    )


def has_prompts(folder: Path) -> bool:
    """Return whether a folder of images has a prompts file or text files with prompts."""
    for candidate in _add_subfolders(folder):
        text_files = (file.with_suffix(".txt") for file in _images(candidate))
        if find_prompts(candidate) or any(map(isfile, text_files)):
            return True
    return False


def _add_subfolders(folder: Path) -> list[Path]:
    return list(filter(Path.is_dir, (folder, *folder.iterdir())))


def _samples_with_texts(
    models: Mapping[str, list[Path]], kind: str | None
) -> SampleSource:
    """Samples from images beside each of which is a text file of the same name, with its prompt."""
    files = [(model, file) for model, images in models.items() for file in images]
    if not any(isfile(file.with_suffix(".txt")) for _, file in files):
        _, first_file = files[0]
        raise VievalError(
            f"{first_file.parent}: images without prompts; pass the prompts file with "
            f"--prompts, rename it to {NAMES[0]}, or put a .txt file next to each "
            "image"
        )
    files.sort(key=lambda pair: natural(pair[1].name))

    def rows() -> Iterator[NumberedRow]:
        for number, (model, file) in enumerate(files, start=1):
            row = {
                "uid": file.stem,
                "image_model": model,
                "images": {"output": str(file.absolute())},
            }
            try:
                yield number, {**row, "texts": {"prompt": _text_beside(file)}}
            except BadLine as bad:
                yield number, BadLine(str(bad), row)

    texts = (file.with_suffix(".txt") for _, file in files)
    names = (f"{model}/{file.name}" for model, file in files)
    fingerprint = fingerprint_of(filter(isfile, texts), kind or "", *names)
    source = SampleSource(
        ", ".join(models),
        lambda: samples_in_rows(rows(), Path(), kind, "image"),
        fingerprint,
        tuple(_deeper_images_notes(models)),
    )
    return read_through(source)


def _text_beside(file: Path) -> str:
    """The prompt in the text file beside an image; BadLine if it is missing or
    unreadable.
    """
    path = file.with_suffix(".txt")
    if not isfile(path):
        raise BadLine(f"no {path.name} next to {file.name}")
    # a link could show a server any file of this machine
    if not is_below(path, path.parent):
        raise BadLine(f"{path.name} links to a file outside its folder")
    try:
        with path.open("rb") as opened:
            text = opened.read(_LONGEST_TEXT + 1).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        raise BadLine(f"{path.name} cannot be read as UTF-8") from None
    if not text or len(text) > _LONGEST_TEXT:
        raise BadLine(f"{path.name} is {'longer than 1 MiB' if text else 'empty'}")
    return text


def _folders_of_conditions(prompts: Prompts) -> set[Path]:
    """The folders of the images that prompts show, which are not image models."""
    images = (prompt.row.get("images") for prompt in prompts.rows)
    return {
        real((prompts.folder / file).parent)
        for files in images
        if isinstance(files, dict)
        for file in files.values()
        if isinstance(file, str)
    }


def _image_models(
    folders: Sequence[Path], but: Collection[Path] = ()
) -> dict[str, list[Path]]:
    """The image files of each image model, which is called by its folder; `but` are
    folders that are not.

    Folders of one name are called by the parts of their paths that differ: `runA/images` is `runA`
    beside `runB/images`.
    """
    all_folders: list[Path] = []
    for folder in folders:
        if not isdir(folder):
            raise VievalError(
                f"{folder}: not a folder; --prompts requires image folders"
            )
        model_folders = [folder]
        if not _images(folder):
            model_folders = [
                path
                for path in sorted(folder.iterdir())
                if path.is_dir() and real(path) not in but and _images(path)
            ]
        if not model_folders:
            raise VievalError(
                f"{folder}: no images in this folder or its subfolders "
                f"({', '.join(SUFFIXES)})"
            )
        all_folders += model_folders
    files_by_model: dict[str, list[Path]] = {}
    names = image_models_of(all_folders)
    for model_folder, name in zip(all_folders, names, strict=True):
        if name in files_by_model:
            raise VievalError(
                f"{model_folder}: another folder is also named {name}; rename "
                "one, because folder names identify image models"
            )
        files_by_model[name] = _images(model_folder)
    return files_by_model


def _deeper_images_notes(models: ImageModels, but: Collection[Path] = ()) -> list[str]:
    """Lines for the user on folders of images below those of image models; `but` are
    folders that are not.
    """
    notes = []
    for files in models.values():
        folder = files[0].parent
        unread_names = [
            path.name
            for path in sorted(folder.iterdir())
            if path.is_dir() and not path.is_symlink()
            if real(path) not in but and _images(path)
        ]
        if unread_names:
            notes.append(
                f"{folder}: ignored images in subfolders: {abbreviated(unread_names)}"
            )
    return notes


def _images(folder: Path) -> list[Path]:
    """The image files in a folder, less those that macOS writes beside each."""
    files = filter(is_image_file, folder.iterdir())
    return [file for file in files if not is_system_file(f"{folder.name}/{file.name}")]
