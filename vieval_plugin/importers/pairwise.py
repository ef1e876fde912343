"""Builds a user's prompt pack from the wording of GenAI-Bench's authors (TIGER-Lab): a text file
for each of its configs.

Their files have the places of texts and pictures in angle brackets, and ask for one of four labels
such as `[[A>B]]`.
"""

from __future__ import annotations

import re
from pathlib import Path

from vieval_plugin.importers.importing import (
    jinja_template,
    require_checkout,
    unexpected,
    write_pack,
)
from vieval_plugin.prompts.packs import read_text

_TEMPLATES = Path("genaibench") / "templates"
_EDIT = "image_edition"
_IMAGE = "image_generation"
_VIDEO = "video_generation"
_TEXTS = {
    "prompt": "prompt",
    "source_prompt": "source_prompt",
    "target_prompt": "target_prompt",
    "instruct_prompt": "instruction",
}
_FIRST = "candidates[0].place"
_SECOND = "candidates[1].place"
_SOURCE = "places.source"
_PICTURES = {
    **dict.fromkeys(("left_image", "left_output_image", "left_video"), _FIRST),
    **dict.fromkeys(("right_image", "right_output_image", "right_video"), _SECOND),
    "source_image": _SOURCE,
}
_PLACEHOLDER = re.compile(r"<([a-z]+(?:_[a-z]+)*)>")


def import_wording(source: Path, to: Path, context: str | None = None) -> list[Path]:
    """Write a pack of the authors' wording below `to` and return its folder: for edits, images and
    videos of prompts.

    `source` is a checkout of their repository. The pack is answered with the authors' labels; of a
    contest's texts it shows `prompt`, and of an edit's `instruction`, `source_prompt` and
    `target_prompt`, as far as their files do. Raises VievalError naming the file that is missing or
    is not as it was; nothing half-written is left.
    """
    require_checkout(source, context)
    edit = _template(
        source / _TEMPLATES / _EDIT / "pairwise.txt",
        {_FIRST, _SECOND, _SOURCE},
    )
    image, video = (
        _template(source / _TEMPLATES / config / "pairwise.txt", {_FIRST, _SECOND})
        for config in (_IMAGE, _VIDEO)
    )
    texts = {
        "tie": edit,
        "tig": f'{{% if medium == "video" %}}{video}{{% else %}}{image}{{% endif %}}',
    }
    condition_roles = {"tie": ["source"], "tig": []}
    manifest = {
        "judge": "pairwise",
        "name": "pairwise/authors",
        "replies": "labels",
        "questions": {
            kind: {
                "template": f"{kind}.jinja",
                "images": condition_roles[kind],
                "scores": [],
            }
            for kind in ("tie", "tig")
        },
    }
    return [write_pack(to / "authors", manifest, texts)]


def _template(path: Path, pictures: set[str]) -> str:
    """A file as a Jinja template, in which each of these pictures has one place."""
    variables = {}
    for name, variable in (_TEXTS | _PICTURES).items():
        variables[name] = f"{{{{ {variable} }}}}"
    text = read_text(path.parent, path.name, "wording").strip()
    template, names = jinja_template(path, text, _PLACEHOLDER, variables)
    if sorted(_PICTURES[name] for name in names if name in _PICTURES) != sorted(
        pictures
    ):
        raise unexpected(
            path,
            "must have one placeholder for each picture, got "
            f"{', '.join(names) or 'none'}",
        )
    return template
