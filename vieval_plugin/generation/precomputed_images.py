"""Images that were made elsewhere, found by uid or by prompt: to be on a leaderboard takes no GPU."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.errors import VievalError
from vieval_plugin.generation.requests import ImageRequest, answer_json
from vieval_plugin.readers.image_names import SUFFIXES, readings, stems_of
from vieval_plugin.readers.sample_rows import BadLine, draw_of, lines_of_file, samples_of_line
from vieval_plugin.text.untrusted import isdir, path_of
from vieval_plugin.text.yaml_json import read_json

_ANY = ""


class PrecomputedImages:
    """Image files by what they were made of, each with its number.

    Args:
        place: a folder of files called `<uid>.png`, or `<uid>_1.png` for the second image of a prompt, in folders
            called by the part where two parts have the same uids, and by the image model where there are several; or a
            JSONL whose lines are those of a samples file, or have `image` with `uid` or `prompt`.
        image_model: of a file or folder that has images of several image models, the one that is meant.

    Raises:
        VievalError: nothing is there, or a line of the file says nothing of an image.
    """

    def __init__(self, place: Path, image_model: str = "") -> None:
        self.place = place
        self._files: dict[tuple[str, str], dict[int, Path]] = defaultdict(dict)
        self._prompts: dict[str, dict[int, Path]] = defaultdict(dict)
        if isdir(place):
            self._read_folder(image_model)
        else:
            self._read_file(image_model)
        if not self._files and not self._prompts:
            raise VievalError(f"{place}: no images in it; `vieval_images` takes a folder, a JSONL or a samples file")

    def answer(self, request: ImageRequest) -> str:
        """The images wanted that there are, in the form of a host; a text says which there are not."""
        files = self._files_for(request)
        images = [files[draw] for draw in request.draws if draw in files]
        reason = "" if images else f"{self.place} has no image of uid {request.conditions.id.uid!r} or of its prompt"
        return answer_json(images, reason)

    def _files_for(self, request: ImageRequest) -> Mapping[int, Path]:
        identity = request.conditions.id
        for part in (identity.part, request.conditions.kind, _ANY):
            for uid in (identity.uid, *stems_of(identity.uid)):
                if files := self._files.get((part, uid)):
                    return files
        return self._prompts.get(request.prompt.strip(), {})

    def _read_folder(self, image_model: str) -> None:
        images = sorted(
            Path(folder, name)
            for folder, _, names in os.walk(self.place)
            for name in names
            if name.lower().endswith(SUFFIXES)
        )
        folders = {path: path.relative_to(self.place).parent.parts for path in images}
        of_model = [path for path in images if image_model in folders[path]]
        for path in of_model or images:
            for part in [part for part in folders[path] if part != image_model] or [_ANY]:
                for stem, draw in readings(path):
                    self._files[part, stem].setdefault(draw, path)

    def _read_file(self, image_model: str) -> None:
        models: dict[str, None] = {}
        for number, line in lines_of_file(self.place):
            try:
                for part, uid, prompt, model, draw, path in _rows(self.place.parent, number, line):
                    models[model] = None
                    if image_model in ("", model) or not model:
                        if uid:
                            self._files[part, uid][draw] = path
                        if prompt:
                            self._prompts[prompt.strip()].setdefault(draw, path)
            except BadLine as bad:
                raise VievalError(f"{self.place}: line {number}: {bad}") from None
        if len(models) > 1 and image_model not in models:
            known = ", ".join(sorted(models))
            raise VievalError(f"{self.place}: images of several image models; say which with name= ({known})")


def _rows(folder: Path, number: int, line: bytes) -> Iterator[tuple[str, str, str, str, int, Path]]:
    row: Any
    try:
        row = read_json(line.decode())
    except (ValueError, RecursionError):
        raise BadLine("not a JSON object") from None
    if isinstance(row, dict) and "image" in row:
        path, uid, prompt = (row.get(key) for key in ("image", "uid", "prompt"))
        if not isinstance(path, str) or not (uid is not None or isinstance(prompt, str)):
            raise BadLine("image must be a path, beside a uid or a prompt")
        known = "" if uid is None else str(uid)
        yield _ANY, known, str(prompt or ""), str(row.get("image_model", "")), draw_of(row), path_of(path, folder)
        return
    for sample, files in samples_of_line(folder, number, line, None, ""):
        if "output" not in files:
            raise BadLine("it names no image: images.output, or image")
        prompt = sample.texts.get("instruction", sample.texts.get("prompt", ""))
        known = sample.id.uid if isinstance(row, dict) and "uid" in row else ""
        yield sample.kind, known, prompt, sample.id.image_model, sample.id.draw, path_of(files["output"], folder)
