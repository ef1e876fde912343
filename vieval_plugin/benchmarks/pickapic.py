"""Pick-a-Pic: two images of a prompt, of which a person preferred one.

Source: Kirstain et al., Pick-a-Pic (2023). The file is this package's own form: the VQAScore authors use 100 chosen
items of the test split, which docs/benchmarks.md tells how to write down.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.labels import WithLabels
from vieval_plugin.readers.rows import ASPECT, KIND, UNNAMED, image_file, read_lines

NAME = "pickapic"
ADVICE = "write pickapic.jsonl and put the images in images/ (docs/benchmarks.md has the form)"

_SHARES = {0.0: (1.0, 0.0), 1.0: (0.0, 1.0), 0.5: (0.5, 0.5)}


def read(folder: Path, part: str) -> list[Sample]:
    """Two samples an item, `<id>#0` and `<id>#1`: SC 1 for the image that was preferred, 0.5 each where neither was.

    The two are a group, and a sample's place is the number of its image.
    """
    samples, uids = [], set()
    for row in read_lines(folder / "pickapic.jsonl", ADVICE):
        uid, text = row.uid("id"), row.text("prompt")
        if uid in uids:
            raise VievalError(f"{row.where} repeats id {uid}; correct the file")
        uids.add(uid)
        preferred = row.rating("preferred", 0, 1)
        if preferred not in _SHARES:
            raise VievalError(f"{row.where}: preferred is {preferred:g}, not 0, 1 or 0.5; correct the line")
        for number, share in enumerate(_SHARES[preferred]):
            samples.append(
                Sample(
                    SampleId(NAME, part, UNNAMED, f"{uid}#{number}"),
                    {"output": image_file(folder / "images", row.file(f"image_{number}"))},
                    {"prompt": text},
                    {ASPECT: (share,)},
                    kind=KIND,
                    group=uid,
                    place=(number,),
                )
            )
    return samples


_FOLDER = DataFolder(NAME, {"all": 200}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    WithLabels(("preference_accuracy",)),
    kinds=dict.fromkeys(_FOLDER.parts, KIND),
    title="Pick-a-Pic",
    source=(
        "Kirstain et al., Pick-a-Pic (2023), arXiv 2305.01569; 100 items of its test split in pickapic_v1.zip of the hub's "
        "zhiqiulin/vqascore_ablation"
    ),
    licence="the 100 items: MIT says the hub's card of the VQAScore authors; Pick-a-Pic itself: unknown, ask its authors",
)
