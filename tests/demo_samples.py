"""Samples files of the drawn benchmark."""

from tests.stored_results import write_lines
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.images import read_bytes


def demo_file(folder, kind, count=6):
    """A samples file of the drawn benchmark's first samples."""
    rows = []
    for number, sample in enumerate(vieval_demo.load(folder, kind)[:count]):
        paths = {}
        for role, image in sample.images.items():
            paths[role] = f"{number}_{role}.png"
            (folder / paths[role]).write_bytes(read_bytes(image))
        named = {"kind": kind, "uid": str(number), "image_model": sample.id.image_model}
        rows.append({**named, "images": paths, "texts": dict(sample.texts)})
    return write_lines(folder / "samples.jsonl", rows)
