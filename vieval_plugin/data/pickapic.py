"""Pick-a-Pic: two images of a prompt, of which a person preferred one.

Source: Kirstain et al., Pick-a-Pic (2023). The file is this package's own form: the VQAScore authors use 100 chosen items
of the test split, which docs/benchmarks.md tells how to write down.
"""

from __future__ import annotations

from pathlib import Path

from vieval_plugin.data.alignment_files import ASPECT, UNNAMED, image_file, read_lines
from vieval_plugin.errors import VievalError
from vieval_plugin.judges.protocol import Sample, SampleId

PICKAPIC = "pickapic"
ADVICE = "write pickapic.jsonl and put the images in images/ (docs/benchmarks.md has the form)"

_SHARES = {0.0: (1.0, 0.0), 1.0: (0.0, 1.0), 0.5: (0.5, 0.5)}


def pickapic(folder: Path, task: str) -> list[Sample]:
    """Two samples an item, `<id>#0` and `<id>#1`: SC 1 for the image that was preferred, 0.5 each where neither was."""
    samples, seen = [], set()
    for row in read_lines(folder / "pickapic.jsonl", ADVICE):
        uid, text = row.uid("id"), row.text("prompt")
        if uid in seen:
            raise VievalError(f"{row.where} repeats id {uid}; correct the file")
        seen.add(uid)
        preferred = row.rating("preferred", 0, 1)
        if preferred not in _SHARES:
            raise VievalError(f"{row.where}: preferred is {preferred:g}, not 0, 1 or 0.5; correct the line")
        for number, share in enumerate(_SHARES[preferred]):
            images = {"output": image_file(folder / "images", row.file(f"image_{number}"))}
            sample_id = SampleId(PICKAPIC, task, UNNAMED, f"{uid}#{number}")
            samples.append(Sample(sample_id, images, {"prompt": text}, {ASPECT: (share,)}))
    return samples
