"""Files with people's ratings of image models by prompt.

All have the form `{id: {"prompt": ..., "models": {image model: [ratings]}}}` with ratings from 1 to
5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rows import ASPECT, KIND, Row, rating
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.suggestions import abbreviated
from vieval_plugin.text.yaml_json import JsonObject

#: The images of a sample by role, from its image model and its prompt's id.
Images: TypeAlias = Callable[[str, str], Mapping[str, Image]]


def read_rated(
    path: Path,
    prompts: JsonObject,
    benchmark: str,
    part: str,
    models: Sequence[str],
    images: Images,
    tags: Mapping[str, tuple[str, ...]] | None = None,
) -> list[Sample]:
    """Samples by prompt and then image model, so that a limit does not pick one model.

    Args:
        path: the file that `prompts` comes from, for errors.
        benchmark, part: whose samples they are.
        models: the image models there are, in order.
        images: the images of a sample.
        tags: skill tags by prompt id.

    Raises:
        VievalError: a prompt is malformed or names an image model that there is not.
    """
    samples = []
    for uid, cells in prompts.items():
        where = f"{path}: prompt {uid}"
        # it becomes a file name and must stay below its folder
        if not re.fullmatch(r"\w[\w.-]*", uid):
            raise VievalError(
                f"{where}: the id must be a valid file name; correct the file"
            )
        if not isinstance(cells, dict) or not isinstance(cells.get("models"), dict):
            raise VievalError(f"{where}: `models` must be an object; correct the file")
        texts = {"prompt": Row(where, cells).text("prompt")}
        for model in cells["models"]:
            if model not in models:
                known_models = abbreviated(list(models))
                raise VievalError(
                    f"{where}: unknown image model {model!r}; known image models: {known_models}"
                )
        for model in models:
            if model in cells["models"]:
                ratings = _ratings(cells["models"][model], f"{where}, {model}")
                identity = SampleId(benchmark, part, model, uid)
                sample_tags = (tags or {}).get(uid, ())
                samples.append(
                    Sample(
                        identity,
                        images(model, uid),
                        texts,
                        {ASPECT: ratings},
                        sample_tags,
                        KIND,
                    )
                )
    return samples


def numbered_roles(role: str, files: Sequence[Path]) -> dict[str, Image]:
    """Frames or views as the roles `<role>_0`, `<role>_1`, ...; `output` is the first."""
    return {
        **{f"{role}_{k}": Image(file) for k, file in enumerate(files)},
        "output": Image(files[0]),
    }


def _ratings(values: Any, where: str) -> tuple[float, ...]:
    if not isinstance(values, list) or not values:
        got = str(values)[:40]
        raise VievalError(
            f"{where}: must be a non-empty list of ratings, got {got}; correct the file"
        )
    return tuple(
        rating(
            value,
            1,
            5,
            f"{where}: rating {n}",
        )
        for n, value in enumerate(values, start=1)
    )
