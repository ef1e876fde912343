"""Folders of images and the prompts that they were made of -> samples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Status
from vieval_plugin.readers.prompt_rows import PromptRow, prompts_of
from vieval_plugin.readers.sample_table import kind_of
from vieval_plugin.readers.samples import SampleRow, SampleSource, checked, fingerprint_of, samples_in_row
from vieval_plugin.text.untrusted import isdir, real

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
_KIND = "tig"


def read_folders(folders: Sequence[Path], prompts: Path, kind: str | None = None) -> SampleSource:
    """Samples from folders of images, each folder being an image model, and the prompts that all were given.

    An image belongs to the prompt whose uid it is called by (`UID.png`, `UID_1.png` for the second of a prompt). Where
    the prompts have no uids, the images belong to them in the order of their names, numbers in them counted as numbers.

    Args:
        folders: of images; or one or several whose own folders hold the images, one for each image model.
        prompts: see `prompts_of`; images that it names, such as the source of an edit, start at its folder.
        kind: that of prompts which name none (default: what their images and texts tell).

    Raises:
        VievalError: the prompts cannot be read, a folder has no images or as many as there are not prompts, or none
            that is called by a uid.
    """
    prompt_rows, notes = prompts_of(prompts), list[str]()
    paired = [
        (prompt.number, model, prompt, draw, file)
        for model, files in _image_models(folders).items()
        for prompt, draw, file in _paired(files, prompt_rows, prompts, notes)
    ]
    # prompt by prompt, so that the first few samples are of all image models
    paired.sort(key=itemgetter(0))

    def rows() -> Iterator[SampleRow]:
        for number, model, prompt, draw, file in paired:
            conditions = prompt.row.get("images", {})
            # whatever else is there is told where the row is read
            images = {**conditions, "output": str(file.absolute())} if isinstance(conditions, Mapping) else conditions
            row = {**prompt.row, "uid": prompt.uid, "image_model": model, "draw": draw, "images": images}
            for sample in samples_in_row(prompts.parent, number, row, kind or kind_of(row)):
                if sample.verdict and sample.verdict.status is Status.PARSE_FAILURE:
                    raise VievalError(f"{prompts}: {sample.place}: {sample.verdict.reason}")
                yield sample

    named = (f"{model}/{file.name}" for _, model, _, _, file in paired)
    return checked(SampleSource(str(prompts), rows, fingerprint_of([prompts], kind or "", *named), tuple(notes)))


def are_images(named: Sequence[str]) -> bool:
    """Return whether all of these are images themselves, by their names: files or addresses, and no file of samples."""
    return all(name.lower().endswith(SUFFIXES) or "://" in name for name in named)


def read_images(images: Sequence[str], texts: Mapping[str, str], source: str | None, kind: str | None) -> SampleSource:
    """Samples from image files or addresses, all of which were asked for with the same words.

    Args:
        images: each is a sample, called by its file's name.
        texts: `prompt` or `instruction`, as far as they are there.
        source: the image that was edited, where one was.
        kind: the kind of all (default: what images and texts tell, `tig` where they tell nothing).
    """
    stems = [Path(image).stem for image in images]

    def rows() -> Iterator[SampleRow]:
        for number, (image, stem) in enumerate(zip(images, stems, strict=True), start=1):
            row = {"images": {"output": image, **({"source": source} if source else {})}, "texts": texts}
            uid = stem if stems.count(stem) == 1 else f"{stem}_{number}"
            yield from samples_in_row(Path.cwd(), number, {"uid": uid, **row}, kind or kind_of(row) or _KIND, "image")

    named = [*images, source or "", *texts.values(), kind or ""]
    return checked(SampleSource("the images", rows, fingerprint_of([], *named)))


def holds_images(folder: Path) -> bool:
    """Return whether images are in a folder, or in folders of it."""
    return isdir(folder) and any(_images(candidate) for candidate in (folder, *folder.iterdir()) if candidate.is_dir())


def _image_models(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """The image files of each image model, which is called by its folder."""
    files_by_model: dict[str, list[Path]] = {}
    for folder in folders:
        if not isdir(folder):
            raise VievalError(f"{folder}: no folder of images; with --prompts, pass folders of images")
        model_folders = (
            [folder]
            if _images(folder)
            else sorted(subfolder for subfolder in folder.iterdir() if subfolder.is_dir() and _images(subfolder))
        )
        if not model_folders:
            raise VievalError(f"{folder}: no images in it, nor in its folders ({', '.join(SUFFIXES)})")
        for model_folder in model_folders:
            name = real(model_folder).name.encode(errors="replace").decode()  # results hold whole characters only
            if name in files_by_model:
                raise VievalError(
                    f"{model_folder}: another folder is called {name} as well; rename one, as they are image models"
                )
            files_by_model[name] = _images(model_folder)
    return files_by_model


def _images(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file()]


def _paired(
    files: Sequence[Path], prompt_rows: Sequence[PromptRow], prompts: Path, notes: list[str]
) -> Iterator[tuple[PromptRow, int, Path]]:
    """Each prompt with the number and file of each of its images; one without an image is there with the file it lacks."""
    folder = files[0].parent
    if not any(prompt.named for prompt in prompt_rows):
        if len(files) != len(prompt_rows):
            raise VievalError(
                f"{folder}: {len(files)} images, and {prompts} has {len(prompt_rows)} prompts, so nobody can say which belong "
                "together; give the prompts uids (a CSV with the columns uid and prompt) and call the images UID.png"
            )
        ordered = sorted(files, key=_natural)
        yield from ((prompt, 0, file) for prompt, file in zip(prompt_rows, ordered, strict=True))
        return
    files_by_uid, strange = _by_uid(files, {prompt.uid for prompt in prompt_rows})
    if not files_by_uid:
        raise VievalError(
            f"{folder}: no image there is called by a uid of {prompts}, such as {prompt_rows[0].uid}.png; the first is {files[0].name}"
        )
    if strange:
        notes.append(
            f"{folder}: images that belong to no prompt and are left out: {len(strange)}, the first {strange[0]}"
        )
    for prompt in prompt_rows:
        images = files_by_uid.get(prompt.uid, {0: folder / f"{prompt.uid}.png"})
        yield from ((prompt, draw, images[draw]) for draw in sorted(images))


def _by_uid(files: Sequence[Path], uids: set[str]) -> tuple[Mapping[str, dict[int, Path]], list[str]]:
    """The images of each uid by their number, and the names of those that belong to none."""
    files_by_uid: dict[str, dict[int, Path]] = defaultdict(dict)
    strange = []
    for file in sorted(files, key=_natural):
        uid, draw = next(((uid, draw) for uid, draw in _may_be(file) if uid in uids), ("", 0))
        if not uid or draw in files_by_uid[uid]:
            strange.append(file.name)
        else:
            files_by_uid[uid][draw] = file
    return {uid: images for uid, images in files_by_uid.items() if images}, strange


def _may_be(file: Path) -> Iterator[tuple[str, int]]:
    """Readings of a file's name: a uid, and a uid with the number of an image."""
    yield file.stem, 0
    yield file.name, 0
    if numbered := re.fullmatch(r"(.+)_s?(\d{1,6})", file.stem):
        yield numbered[1], int(numbered[2])


def _natural(file: Path) -> list[tuple[int, str]]:
    """A name in pieces that sort as people count: 2.png before 10.png."""
    pieces = re.split(r"(\d+)", file.name)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces]
