"""Examples of two images and two captions, of which each image fits one caption: four samples an
example.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.readers.rows import (
    ASPECT,
    KIND,
    UNNAMED,
    Row,
    image_file,
    read_object,
    rows_by_uid,
    tag_list,
)

#: The statistics of a benchmark of such examples.
STATISTICS = ("text_score", "image_score", "group_score")

_TAGS = ("collapsed_tag", "tag", "secondary_tag")


def read_two_by_two(
    folder: Path, benchmark: str, part: str, rows: Sequence[Row]
) -> list[Sample]:
    """Each image with each caption, SC 1 where they belong together and 0 elsewhere.

    A sample's group is its example, its place the numbers of image and caption: `7#i0t1` is example
    7 at (0, 1). Tags are the dataset's own (its tag columns and number of main predicates) or,
    where `skills.json` (id -> list of skills) is there, those of that file. An image that is there
    as a NumPy array (`.npy`) is named as the PNG to be made of it.

    Raises:
        VievalError: a row is malformed or repeats an id.
    """
    skills_file = folder / "skills.json"
    skills = None
    if skills_file.exists():
        skills = read_object(skills_file, "it must map ids to lists of skills")
        for uid, tags in skills.items():
            skills[uid] = tag_list(tags, f"{skills_file}: id {uid}")
    samples = []
    for uid, row in rows_by_uid(rows).items():
        images = [_image(folder / "images", row.file(f"image_{i}")) for i in (0, 1)]
        captions = [row.text(f"caption_{t}") for t in (0, 1)]
        tags = _tags(row) if skills is None else skills.get(uid, ())
        for i, image in enumerate(images):
            for t, caption in enumerate(captions):
                sample_id = SampleId(benchmark, part, UNNAMED, f"{uid}#i{i}t{t}")
                samples.append(
                    Sample(
                        sample_id,
                        {"output": image},
                        {"prompt": caption},
                        ratings={ASPECT: (float(i == t),)},
                        tags=tags,
                        kind=KIND,
                        group=uid,
                        place=(i, t),
                    )
                )
    return samples


def _image(folder: Path, name: str) -> Image:
    image = image_file(folder, name)
    path = image.source
    if isinstance(path, Path) and path.suffix.lower() == ".npy":
        return Image(path.with_suffix(".png"))
    return image


def _tags(row: Row) -> tuple[str, ...]:
    values = [row.text(column) for column in _TAGS if row.cells.get(column)]
    predicates = row.cells.get("num_main_preds")
    if predicates:
        values.append(f"{predicates} Main Pred")
    return tuple(dict.fromkeys(values))
