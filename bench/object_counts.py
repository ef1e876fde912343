"""How often a real detector and our rules count right: photographs that scikit-image has, two by two.

Each scene has a known number of people, cats and cups among pictures of none of these. Of each class
it is asked whether the scene has exactly so many, from one to four.

    python -m bench.object_counts --threshold 0.3

The detector is a CenterNet on COCO, 4 MB, in npm's `@vladmandic/human`, whose weights have no clear
licence: it is fetched into a temporary folder, and is no part of VIEval. npm and node are needed.
"""

import argparse
import json
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

import common
import numpy as np
import PIL.Image
import skimage.data

from vieval_plugin.judges.objects import (
    DetectedObject,
    check_scene,
    read_scene,
    scores_of_clauses,
    surest,
)

SIDE = 512
PICTURES = {
    "astronaut": "person",
    "camera": "person",
    "chelsea": "cat",
    "coffee": "cup",
    "coins": "",
    "moon": "",
    "page": "",
    "text": "",
}
#: Numbers that COCO's classes have in the detector's answers.
CLASSES = {"person": 0, "cat": 15, "cup": 41}
PACKAGES = ("tfjs-core", "tfjs-converter", "tfjs-backend-wasm", "tfjs-backend-cpu")
DETECTOR = "@vladmandic/human@3.3.6"
SCRIPT = """
import * as tf from '@tensorflow/tfjs-core';
import {loadGraphModel} from '@tensorflow/tfjs-converter';
import {setWasmPaths} from '@tensorflow/tfjs-backend-wasm';
import fs from 'fs';
const [folder, ...scenes] = process.argv.slice(2);
setWasmPaths('node_modules/@tensorflow/tfjs-backend-wasm/dist/');
await tf.setBackend('wasm');
const described = JSON.parse(fs.readFileSync(`${folder}/centernet.json`));
const weights = new Uint8Array(fs.readFileSync(`${folder}/centernet.bin`)).buffer;
const model = await loadGraphModel({load: async () => ({
  modelTopology: described.modelTopology,
  weightSpecs: described.weightsManifest[0].weights,
  weightData: weights,
  signature: described.signature,
})});
for (const scene of scenes) {
  const pixels = new Float32Array(fs.readFileSync(scene));
  const found = model.execute(tf.tensor4d(pixels, [1, 512, 512, 3]), ['tower_0/detections']);
  console.log(JSON.stringify((await found.array())[0]));
}
"""


def scene(rng):
    """The pixels of four pictures, and how many there are of each class."""
    pixels = np.zeros((SIDE, SIDE, 3), np.uint8)
    classes = Counter()
    half = SIDE // 2
    for cell in range(4):
        name = str(rng.choice(list(PICTURES)))
        photograph = getattr(skimage.data, name)()
        picture = PIL.Image.fromarray(photograph).convert("RGB")
        if rng.random() < 0.5:
            picture = picture.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
        cut = 0.1 * rng.random()
        box = (cut * picture.width, cut * picture.height, *picture.size)
        resized = picture.resize((half, half), box=box)
        top, left = divmod(cell, 2)
        rows = slice(top * half, (top + 1) * half)
        columns = slice(left * half, (left + 1) * half)
        pixels[rows, columns] = np.asarray(resized)
        classes[PICTURES[name]] += 1
    return pixels, classes


def detections(scenes):
    """What the detector finds in each scene: rows of two corners, confidence and class."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = [f"@tensorflow/{name}" for name in PACKAGES]
        install = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
        subprocess.run(
            [*install, "--ignore-scripts", *names, DETECTOR], cwd=folder, check=True
        )
        (folder / "detect.mjs").write_text(SCRIPT)
        files = []
        for number, pixels in enumerate(scenes):
            files.append(f"{number}.rgb")
            (folder / files[-1]).write_bytes(pixels.tobytes())
        models = "node_modules/@vladmandic/human/models"
        done = subprocess.run(
            ["node", "detect.mjs", models, *files],
            cwd=folder,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def counted(found, threshold):
    """The objects that count, of each class the surest first."""
    objects = []
    for label, number in CLASSES.items():
        rows = [row for row in found if row[5] == number]
        for index in surest([row[4] for row in rows], threshold):
            box = tuple(rows[index][:4])
            objects.append(DetectedObject(label, box, rows[index][4]))
    return objects


def is_right(objects, label, count):
    """Whether our rules find exactly so many."""
    wanted = {
        "tag": "counting",
        "include": [{"class": label, "count": count}],
        "exclude": [{"class": label, "count": count + 1}],
    }
    clauses = check_scene(read_scene(json.dumps(wanted)), objects)
    return scores_of_clauses(clauses)["SC"] == 1


def outcomes(scenes, found, label, threshold):
    """How often a count is found and true, found and false, and so on."""
    counts = Counter()
    for (_, classes), detected in zip(scenes, found, strict=True):
        objects = counted(detected, threshold)
        for count in range(1, 5):
            is_found = is_right(objects, label, count)
            is_true = classes[label] == count
            counts[is_found, is_true] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threshold", type=float, nargs="+", default=[0.2, 0.3, 0.4])
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    scenes = [scene(rng) for _ in range(given.scenes)]
    found = detections([pixels for pixels, _ in scenes])
    rows = []
    for threshold in given.threshold:
        for label in CLASSES:
            counts = outcomes(scenes, found, label, threshold)
            hits = counts[True, True]
            true = hits + counts[False, True]
            claimed = hits + counts[True, False]
            precision = "none said"
            if claimed:
                precision = f"{hits / claimed:.2f}"
            rows.append([threshold, label, true, precision, hits / true])
    print(f"{given.scenes} scenes, seed {given.seed}")
    columns = {
        "threshold": "g",
        "class": "",
        "scenes": "",
        "precision": "",
        "recall": ".2f",
    }
    common.table(columns, rows)


if __name__ == "__main__":
    main()
