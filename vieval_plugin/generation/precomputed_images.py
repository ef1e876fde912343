"""Images made elsewhere, looked up by uid or prompt, so that a generator can be ranked without
running it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from vieval_plugin.generation.requests import ImageRequest, answer_json
from vieval_plugin.judges.protocol import Sample, Status
from vieval_plugin.readers.columns import fields_of, rows_of
from vieval_plugin.readers.image_names import SUFFIXES, readings, stems_of
from vieval_plugin.readers.open_table import open_table
from vieval_plugin.readers.sample_rows import address_among, samples_of_row
from vieval_plugin.readers.tables import BadLine
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import isdir
from vieval_plugin.text.wording import plural

_ANY = ""


class PrecomputedImages:
    """Image files by their conditions, each with its number.

    Args:
        path: a folder of files called `<uid>.png`, or `<uid>_1.png` for the second image of a
            prompt, in folders called by the part where two parts have the same uids, and by the
            image model where there are several; or a table with a uid or a prompt beside each
            image, see `open_table`.
        image_model: of a file or folder that has images of several image models, the one that is
            meant.

    Raises:
        VievalError: nothing is there, or a line of the file says nothing of an image.
    """

    def __init__(self, path: Path, image_model: str = "") -> None:
        self.path = path
        self._files: dict[tuple[str, str], dict[int, Path]] = defaultdict(dict)
        self._prompts: dict[str, dict[int, Path]] = defaultdict(dict)
        if isdir(path):
            self._read_folder(image_model)
        else:
            self._read_file(image_model)
        if not self._files and not self._prompts:
            raise VievalError(
                f"{path} contains no images; pass `vieval_images` a folder of images, a JSONL or "
                "a samples file"
            )

    def answer(self, request: ImageRequest) -> str:
        """The requested images that exist, in the form of a host, or a text if there are none."""
        files = self._files_for(request)
        images = [files[number] for number in request.numbers if number in files]
        if images:
            return answer_json(images)
        uid = request.conditions.id.uid
        reason = f"{self.path} has no image for uid {uid!r} or its prompt"
        return answer_json([], reason, status=Status.NO_IMAGE)

    def require_any(self, requests: Sequence[ImageRequest]) -> None:
        """VievalError if no request has an image, as in the folder of other prompts."""
        if requests and not any(map(self._files_for, requests)):
            uid = requests[0].conditions.id.uid
            raise VievalError(
                f"{self.path} has no image for any prompt "
                f"({plural(len(requests), 'prompt')}, first uid {uid!r}); pass a folder "
                "with their images, each named after its uid"
            )

    def _files_for(self, request: ImageRequest) -> Mapping[int, Path]:
        identity = request.conditions.id
        for part in (identity.part, request.conditions.kind, _ANY):
            for uid in (identity.uid, *stems_of(identity.uid)):
                if files := self._files.get((part, uid)):
                    return files
        return self._prompts.get(request.prompt.strip(), {})

    def _read_folder(self, image_model: str) -> None:
        files = []
        for folder, _, names in os.walk(self.path):
            files += [Path(folder, name) for name in names]
        images = sorted(file for file in files if file.name.lower().endswith(SUFFIXES))
        folders = {path: path.relative_to(self.path).parent.parts for path in images}
        model_folders = [path for path in folders if image_model in folders[path]]
        for path in model_folders or folders:
            parts = [part for part in folders[path] if part != image_model]
            for part in parts or [_ANY]:
                for stem, number in readings(path):
                    self._files[part, stem].setdefault(number, path)

    def _read_file(self, image_model: str) -> None:
        table = open_table(self.path)
        models = set[str]()
        for number, row in rows_of(table, fields_of(table, {})):
            try:
                if isinstance(row, BadLine):
                    raise row
                for sample, files in samples_of_row(
                    table.folder,
                    number,
                    row,
                    "",
                    "",
                ):
                    model = sample.id.image_model
                    models.add(model)
                    if not image_model or model in ("", image_model):
                        self._keep(sample, files, has_uid="uid" in row)
            except BadLine as bad:
                where = f"{self.path}: {table.unit} {number}"
                raise VievalError(f"{where}: {bad}") from None
        if len(models) > 1 and image_model not in models:
            names = ", ".join(sorted(models))
            raise VievalError(
                f"{self.path} has images of several image models; choose one with name= ({names})"
            )

    def _keep(self, sample: Sample, files: Mapping[str, str], has_uid: bool) -> None:
        prompt = sample.texts.get("instruction", sample.texts.get("prompt", "")).strip()
        output = sample.images.get("output")
        if output is None or not (has_uid or prompt):
            raise BadLine(
                "an image and a uid or prompt are required; use columns such as uid, image and "
                "prompt"
            )
        if not isinstance(output.source, Path):
            raise BadLine(
                "the image must be a separate file, but is stored in the table; save the "
                "images as files"
            )
        output_files = {role: file for role, file in files.items() if role == "output"}
        if address := address_among(output_files):
            raise BadLine(address)
        if has_uid:
            self._files[sample.kind, sample.id.uid][sample.id.draw] = output.source
        if prompt:
            self._prompts[prompt].setdefault(sample.id.draw, output.source)
