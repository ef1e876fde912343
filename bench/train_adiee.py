"""ADIEE's scorer learnt from nothing on drawn edits, beside the same base that learns to say
numbers: which judges better.

Twenty minutes on two cores that have nothing else to do, and no weights from anywhere. The base is
a LLaVA of less than a million weights whose image tower begins by comparing the two halves of a
picture; the rest of it is random. Both models see the same edits in the same order, and are judged
on edits of scenes that neither has seen (vieval_demo_sequences).

As a script: ``python bench/train_adiee.py FOLDER [STEPS]``; what is there is not made again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
BIN = Path(sys.executable).parent
SEQUENCES = 2500
BATCH = 32
SEED = 1


def main(folder: Path, steps: int = 1500) -> None:
    import tiny_judge

    from vieval_plugin.prompts import packs

    folder = folder.absolute()
    turns = folder / "turns"
    data = folder / "data"
    base = folder / "base"
    seed = ("--seed", SEED)
    if not (data / "manifest.json").exists():
        run("vieval", "data", "drawn", "--out", turns, "--count", SEQUENCES, *seed)
        run("vieval", "data", "adiee", turns, "--out", data, "--most", 6, *seed)
    if not (base / "config.json").exists():
        rows = (data / "examples.jsonl").read_text().splitlines()
        instructions = [json.loads(row)["instruction"] for row in rows]
        tiny_judge.build(base, instructions, packs.load("adiee/v1"))
    for answer in ("token", "number"):
        trained = folder / answer
        if (trained / "training_record.json").exists():
            continue
        options = ["--base", base, "--out", trained, "--answer", answer]
        options += ["--steps", steps, *seed, "--tune", "full", "--images", "joined"]
        options += ["--batch-size", BATCH, "--learning-rate", 6e-4]
        run("vieval", "train", "adiee", data, *options)
    judged(folder, "token", "adiee_token", "vieval_scorer", "device=cpu")
    model = f"model={folder / 'number'},device=cpu"
    batches = ("--batch_size", "16")
    judged(folder, "number", "adiee", "vieval_transformers", model, *batches)
    run("vieval", "compare", folder / "judged_token", folder / "judged_number")


def judged(
    folder: Path, answer: str, judge: str, model: str, arguments: str, *further: str
) -> None:
    """Judge the drawn edits that are held out."""
    out = folder / f"judged_{answer}"
    if out.exists():
        return
    options = folder / "options.yaml"
    options.write_text("judges: {adiee: {images: joined}}\nstore: {use: false}\n")
    command = ["--model", model, "--model_args", arguments, *further]
    command += ["--tasks", f"vieval_demo_sequences_{judge}"]
    command += ["--output_path", out, "--log_samples"]
    environment = {"VIEVAL_CONFIG": str(options), "VIEVAL_JUDGES": str(folder)}
    run("lmms-eval", *command, **environment)


def run(command: str, *arguments: object, **environment: str) -> None:
    texts = list(map(str, arguments))
    print(f"== {command} {' '.join(texts)}", flush=True)
    variables = {**os.environ, **environment}
    subprocess.run([BIN / command, *texts], check=True, env=variables)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python bench/train_adiee.py FOLDER [STEPS]")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
