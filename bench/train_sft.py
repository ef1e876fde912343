"""A model of random weights tuned on T2I-Eval's conversations: how many of its replies can be read,
before and after.

No weights from anywhere, and some minutes on two cores. A model by script, which knows what was
drawn, judges pictures that are drawn here; a Qwen2.5-VL of a million weights learns from its
conversations. Before and after that it judges the drawn benchmark (vieval_demo), whose prompts are
of the same kind and not among those that were learnt.

As a script: ``python bench/train_sft.py FOLDER [STEPS] [SEED]``; what is there is not made again.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import our_tests  # noqa: F401

from tests import tiny_model
from tests.fake_server import FakeServer
from tests.scripted_t2i_eval import Scene, Script, entity, over_http
from vieval_plugin.benchmarks.vieval_demo import load
from vieval_plugin.benchmarks.vieval_demo.backgrounds import PLACES, backdrop
from vieval_plugin.benchmarks.vieval_demo.drawing import (
    COLOURS,
    HUES,
    THINGS,
    draw_thing,
    place,
)
from vieval_plugin.results.lookup import open_results

BIN = Path(sys.executable).parent
SCENES, BATCH, RATE = 40, 4, 2e-3
NUMBERS = ("no", "one", "two", "three", "four", "five")
CENTRES = ((66, 66), (190, 66), (190, 190), (66, 190), (128, 128))
LONGEST = 600  # tokens of a reply: a model that has learnt nothing does not end
SIDE = 112  # pixels, of what the model sees


def main(folder: Path, steps: int = 200, seed: int = 0) -> None:
    folder = folder.absolute()
    learnt, base, tuned = folder / "train.jsonl", folder / "base", folder / "tuned"
    print(f"seed {seed}")
    if not learnt.exists():
        judged_by_script(folder, scenes(seed))
        asked = [
            "--samples",
            folder / "samples.jsonl",
            "--trainer",
            "trl",
            "--rebalance",
            "--seed",
            seed,
        ]
        run(
            "vieval",
            "export",
            "t2i_eval",
            folder / "verdicts.jsonl",
            *asked,
            "--out",
            learnt,
        )
    if not (base / "config.json").exists():
        tiny_model.build(base, seed, list(texts(learnt)), tokens=1500, side=SIDE)
    if not (tuned / "training_record.json").exists():
        plan = [
            "--steps",
            steps,
            "--batch-size",
            BATCH,
            "--learning-rate",
            RATE,
            "--tune",
            "full",
            "--seed",
            seed,
        ]
        run("vieval", "train", "sft", learnt, "--base", base, "--out", tuned, *plan)
    losses = json.loads((tuned / "training_record.json").read_text())["losses"]
    print(
        f"loss of held-out turns: {losses['held_out_before']:.3f} before, "
        f"{losses['held_out_after']:.3f} after"
    )
    for name, model in (("before", base), ("after", tuned)):
        judged(folder / name, model)
        told(name, folder / name)


def scenes(seed: int) -> list[Scene]:
    """Prompts of things with colours in places, half of them drawn as they say and half in
    another colour.
    """
    rng = random.Random(seed)
    known = {sample.texts["prompt"] for sample in load(Path(), "tig")}
    found: dict[str, Scene] = {}
    while len(found) < SCENES:
        where, right = rng.choice(list(PLACES)), rng.random() < 0.5
        several = rng.random() < 0.5
        things = rng.sample(THINGS, 1 if several else 2)
        colours, count = rng.sample(HUES, len(things)), rng.randint(2, 5)
        named = [
            f"{'an' if colour == 'orange' else 'a'} {colour} {thing}"
            for thing, colour in zip(things, colours, strict=True)
        ]
        what = (
            f"{NUMBERS[count]} {colours[0]} {things[0]}s"
            if several
            else " and ".join(named)
        )
        prompt = f"{what} {PLACES[where]}"
        if prompt in known:
            continue
        picture = backdrop(where)
        for number in range(count if several else 2):
            thing, colour = things[number % len(things)], colours[number % len(things)]
            shown = colour if right else HUES[(HUES.index(colour) + 3) % len(HUES)]
            picture = place(
                picture, draw_thing(thing, COLOURS[shown], 90), CENTRES[number]
            )
        written = io.BytesIO()
        picture.convert("RGB").save(written, "PNG")
        entities = tuple(
            entity(thing, NUMBERS[count] if several else "one", colour=colour)
            for thing, colour in zip(things, colours, strict=True)
        )
        found[prompt] = Scene(
            prompt, entities, (), 9.0 if right else 3.0, written.getvalue()
        )
    return list(found.values())


def judged_by_script(folder: Path, drawn: list[Scene]) -> None:
    rows = []
    (folder / "drawn").mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(drawn):
        file = folder / "drawn" / f"{number}.png"
        file.write_bytes(scene.drawn)
        row = {"uid": f"s{number}", "kind": "tig", "image_model": "drawn"}
        rows.append(
            {**row, "images": {"output": str(file)}, "texts": {"prompt": scene.prompt}}
        )
    samples = folder / "samples.jsonl"
    samples.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with FakeServer(reply=over_http(Script(tuple(drawn)))) as server:
        asked = [
            "--judge",
            "t2i_eval",
            "--model",
            "scripted",
            "--base-url",
            server.base_url,
        ]
        run(
            "vieval",
            "score",
            samples,
            *asked,
            "--out",
            folder / "verdicts.jsonl",
            options=options(folder),
        )


def texts(learnt: Path) -> set[str]:
    """All that is said in the conversations, once."""
    rows = map(json.loads, learnt.read_text().splitlines())
    said = (
        part["text"]
        for row in rows
        for message in row["messages"]
        for part in message["content"]
    )
    return set(filter(None, said))


def judged(out: Path, model: Path) -> None:
    if out.exists():
        return
    asked = [
        "--model",
        "vieval_transformers",
        "--model_args",
        f"model={model},device=cpu",
        "--batch_size",
        "16",
    ]
    asked += [
        "--tasks",
        "vieval_demo_t2i_eval_tig",
        "--output_path",
        str(out),
        "--log_samples",
    ]
    asked += ["--gen_kwargs", f"max_new_tokens={LONGEST}"]
    run("lmms-eval", *asked, options=options(out.parent))


def told(name: str, out: Path) -> None:
    """How many samples have a verdict, and how many replies could be read, reminded ones counted
    by themselves.
    """
    records = open_results([out]).records
    samples = Counter(str(record.verdict.status) for record in records)
    replies = [
        step.status.usable for record in records for step in record.verdict.trace
    ]
    scored = sum(record.verdict.status.usable for record in records)
    print(
        f"{name}: of {len(records)} held-out samples {scored} have a verdict ({dict(samples)}); of "
        f"{len(replies)} replies {sum(replies)} could be read ({sum(replies) / len(replies):.1%})"
    )


def options(folder: Path) -> Path:
    file = folder / "options.yaml"
    file.write_text("store: {use: false}\n")
    return file


def run(command: str, *arguments: object, options: Path | None = None) -> None:
    print(f"== {command} {' '.join(map(str, arguments))}", flush=True)
    # so small a model is quicker on one thread
    environment = {
        "OMP_NUM_THREADS": "1",
        **os.environ,
        **({"VIEVAL_CONFIG": str(options)} if options else {}),
    }
    subprocess.run([BIN / command, *map(str, arguments)], check=True, env=environment)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        sys.exit("usage: python bench/train_sft.py FOLDER [STEPS] [SEED]")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
