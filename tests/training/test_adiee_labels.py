"""Labels without people: those of editing sequences, through the code that reads folders, and
those by CLIP-D.
"""

import json
from itertools import pairwise
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests.stored_results import write_lines
from tests.tiny_scorers import build_clip
from vieval_plugin.benchmarks.sequences import label, read_sequences, triples
from vieval_plugin.benchmarks.vieval_demo.sequences import draw_sequence
from vieval_plugin.cli import main
from vieval_plugin.training.adiee import dataset, labels
from vieval_plugin.training.adiee.labels import LabelledEdit


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A thousand sequences in a folder of turns; of each image a pixel is kept, which says what
    number it has.
    """
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "images").mkdir()
    with (folder / "sequences.jsonl").open("w") as file:
        for number in range(1000):
            turns = 1 + number % 5
            names = [f"images/{number}_{turn}.png" for turn in range(turns + 1)]
            for turn, name in enumerate(names):
                PIL.Image.new("L", (1, 1), turn).save(folder / name)
            row = {
                "uid": f"s{number}",
                "images": names,
                "instructions": [f"edit {n}." for n in range(1, turns + 1)],
            }
            file.write(json.dumps(row) + "\n")
    text = json.dumps({"source": "here", "licence": "CC0", "trainable": True})
    (folder / "about.json").write_text(text)
    return folder


def refused(capsys, *command):
    capsys.readouterr()
    assert main([str(word) for word in command]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_labels_of_a_thousand_sequences_are_exact(drawn, tmp_path, vieval):
    vieval("data adiee", drawn, "--out", tmp_path, "--seed", "3")
    edits, manifest = dataset.read(tmp_path)
    assert len({edit.group for edit in edits}) == 1000 == len(manifest["uids"])
    seen = set()
    for edit in edits:
        # what the images and the words themselves say
        j1, k = (
            int(np.asarray(PIL.Image.open(file))[0, 0])
            for file in (edit.source, edit.output)
        )
        named = [
            int(word.rstrip(".")) for word in edit.instruction.split() if word != "edit"
        ]
        assert named == list(range(j1 + 1, j1 + 1 + len(named)))
        j2 = named[-1]
        done = max(0, k - j1)
        assert edit.label == (done / len(named) if done <= len(named) else 0.5)
        assert edit.origin == {"j1": j1, "j2": j2, "k": k}
        seen.add((j1, j2, k))
    assert seen >= {one for turns in (1, 2, 3) for one in triples(turns)}
    assert (manifest["seed"], manifest["examples"]) == (3, len(edits))
    assert manifest["data"] == [{"source": "here", "licence": "CC0", "trainable": True}]


def test_the_same_seed_draws_the_same_edits(drawn, tmp_path, vieval):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        vieval("data adiee", drawn, "--out", tmp_path / name, "--seed", seed)
    first, again, other = (
        (tmp_path / name / dataset.EXAMPLES).read_text() for name in "abc"
    )
    assert first == again != other


def test_drawn_sequences_change_one_cell_and_are_read(tmp_path, vieval):
    vieval(f"data drawn --out {tmp_path} --count 12 --seed 5")
    held = read_sequences(tmp_path)
    assert (held.trainable, len(held.sequences)) == (True, 12)
    for number, sequence in enumerate(held.sequences):
        own = draw_sequence(number, 5)
        assert sequence.instructions == own.instructions
        scenes = [np.asarray(PIL.Image.open(file)) for file in sequence.images]
        assert all(
            np.array_equal(scene, np.asarray(kept))
            for scene, kept in zip(scenes, own.scenes, strict=True)
        )
        changed = [
            {(y // 32, x // 32) for y, x in np.argwhere((before != after).any(-1))}
            for before, after in pairwise(scenes)
        ]
        assert all(len(cells) == 1 for cells in changed)
        assert len(set().union(*changed)) == len(changed)


def magicbrush(folder, *, end="7-output1.png"):
    turns = [
        {
            "input": "7-input.png",
            "mask": "7-mask1.png",
            "output": "7-output1.png",
            "instruction": "add a cat",
        },
        {
            "input": end,
            "mask": "7-mask2.png",
            "output": "7-output2.png",
            "instruction": "make it red",
        },
    ]
    (folder / "images" / "7").mkdir(parents=True)
    for name in ("7-input", "7-output1", "7-output2"):
        PIL.Image.new("RGB", (4, 4)).save(folder / "images" / "7" / f"{name}.png")
    (folder / "edit_sessions.json").write_text(json.dumps({"7": turns}))
    return folder


def test_magicbrush_is_read_in_its_own_layout(tmp_path):
    held = read_sequences(magicbrush(tmp_path / "train"))
    [sequence] = held.sequences
    assert (held.trainable, sequence.uid) == (True, "magicbrush/train/7")
    assert [path.name for path in sequence.images] == [
        "7-input.png",
        "7-output1.png",
        "7-output2.png",
    ]
    assert sequence.instructions == ("add a cat", "make it red")


def test_a_test_split_trains_nothing(tmp_path, capsys):
    folder = magicbrush(tmp_path / "test")
    found = refused(capsys, "data", "adiee", folder, "--out", tmp_path / "data")
    assert "does not allow training" in found
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("image", "turn 2 of sequence magicbrush/train/7 has no image"),
        ("instruction", "turn 2 of sequence magicbrush/train/7 has no instruction"),
        ("order", "previous turn, got 7-input.png"),
        ("pixels", "7-output2.png"),
        ("json", "does not fit this layout"),
        ("nothing", "not a folder of turns"),
    ],
)
def test_bad_turns_are_one_line(tmp_path, capsys, broken, said):
    end = "7-input.png" if broken == "order" else "7-output1.png"
    folder = magicbrush(tmp_path / "train", end=end)
    sessions = folder / "edit_sessions.json"
    last = folder / "images" / "7" / "7-output2.png"
    if broken == "image":
        last.unlink()
    elif broken == "pixels":
        last.write_bytes(b"no image")
    elif broken == "instruction":
        sessions.write_text(sessions.read_text().replace("make it red", " "))
    elif broken == "json":
        sessions.write_text('{"7": 1}')
    elif broken == "nothing":
        sessions.unlink()
    assert said in refused(capsys, "data", "adiee", folder, "--out", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("about", "about.json: cannot be read"),
        ("row", "line 3: not a sequence ('images')"),
        ("json", "line 3: not a JSON object"),
        ("twice", "sequence drawn/1_00000 occurs 2 times"),
    ],
)
def test_bad_sequences_are_located(tmp_path, vieval, capsys, broken, said):
    folder = tmp_path / "turns"
    vieval("data", "drawn", "--out", folder, "--count", "2", "--seed", "1")
    rows = folder / "sequences.jsonl"
    more = {
        "row": '{"uid": "x"}',
        "json": "[[",
        "twice": rows.read_text().splitlines()[0],
    }
    if broken == "about":
        (folder / "about.json").unlink()
    else:
        rows.write_text(f"{rows.read_text()}{more[broken]}\n")
    assert said in refused(capsys, "data", "adiee", folder, "--out", tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("value", [1.5, -0.1, 7, True, "1", None])
def test_a_label_out_of_range_is_one_line(tmp_path, capsys, value):
    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    edit = LabelledEdit("u", "g", tmp_path / "a.png", tmp_path / "a.png", "add", value)
    good = LabelledEdit("v", "g", tmp_path / "a.png", tmp_path / "a.png", "add", 1.0)
    dataset.write(tmp_path / "data", [good], [dataset.Terms("x", "CC0", True)], 0)
    rows = (tmp_path / "data" / dataset.EXAMPLES).read_text()
    row = {**json.loads(rows), "label": edit.label}
    (tmp_path / "data" / dataset.EXAMPLES).write_text(rows + json.dumps(row) + "\n")
    said = refused(
        capsys, *split(f"train adiee {tmp_path}/data --base none --out {tmp_path}/out")
    )
    assert "row 2: `label` must be" in said


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Edits of four sources by three editors, with captions; one output of the strong editor is
    the source itself.
    """
    folder = tmp_path_factory.mktemp("outputs")
    rng, rows = np.random.default_rng(0), []
    for number in range(4):
        images = [
            PIL.Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
            for _ in range(4)
        ]
        images[3] = images[0] if number == 0 else images[3]
        for name, image in zip(("source", "people", "old", "new"), images, strict=True):
            image.save(folder / f"{number}_{name}.png")
        rows += [
            {
                "uid": str(number),
                "image_model": editor,
                "images": {
                    "source": f"{number}_source.png",
                    "output": f"{number}_{editor}.png",
                },
                "texts": {
                    "instruction": "make it a dog",
                    "source_caption": f"a cat on the {'red ' * number}table",
                    "output_caption": f"a dog on the {'red ' * number}table",
                },
            }
            for editor in ("people", "old", "new")
        ]
    write_lines(folder / "samples.jsonl", rows)
    return folder / "samples.jsonl"


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    pytest.importorskip("transformers", reason="transformers is not installed")
    return build_clip(tmp_path_factory.mktemp("clip"))


def by_hand(clip, before, after, texts):
    """CLIP-D as transformers alone computes it."""
    import torch
    from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel

    model = CLIPModel.from_pretrained(clip).eval()
    images = CLIPImageProcessor.from_pretrained(clip)
    tokenizer = AutoTokenizer.from_pretrained(clip)
    with torch.no_grad():
        pictures = [PIL.Image.open(file).convert("RGB") for file in (before, after)]
        seen = model.get_image_features(**images(pictures, return_tensors="pt"))
        said = model.get_text_features(
            **tokenizer(
                list(texts),
                padding=True,
                truncation=True,
                max_length=16,
                return_tensors="pt",
            )
        )
        seen, said = (
            torch.nn.functional.normalize(getattr(one, "pooler_output", one), dim=-1)
            for one in (seen, said)
        )
        return float(
            torch.nn.functional.cosine_similarity(
                seen[1] - seen[0], said[1] - said[0], dim=0
            )
        )


def test_labels_by_clip_d_are_computed(outputs, clip, tmp_path, monkeypatch, vieval):
    # between the values that the tiny weights give, so that each rule meets some
    monkeypatch.setattr(labels, "FAILED", 0.05)
    monkeypatch.setattr(labels, "SUCCEEDED", 0.02)
    command = [
        *split("data adiee --outputs"),
        outputs,
        *split(f"--licence CC0 --clip {clip} --out {tmp_path}"),
    ]
    rules = ["--truth", "people", "--weak", "old", "--strong", "new"]
    vieval(*[str(word) for word in [*command, *rules]])
    edits, _ = dataset.read(tmp_path)
    found = {edit.uid: edit for edit in edits}
    rows = {
        (row["uid"], row["image_model"]): row
        for row in map(json.loads, outputs.read_text().splitlines())
    }
    expected = {}
    for (uid, editor), row in rows.items():
        source, output = (
            outputs.parent / row["images"][role] for role in ("source", "output")
        )
        texts = row["texts"]["source_caption"], row["texts"]["output_caption"]
        same = source.read_bytes() == output.read_bytes()
        direction = 0.0 if same else by_hand(clip, source, output, texts)
        expected[f"{uid}/unedited"] = 0.0
        if editor == "people":
            expected[f"{uid}/{editor}"] = 1.0
        elif editor == "new":
            expected[f"{uid}/{editor}"] = (
                0.0 if same else 1.0 if direction > 0.02 else 0.5
            )
        elif direction < 0.05:
            expected[f"{uid}/{editor}"] = 0.0
        if f"{uid}/{editor}" in found:
            got = found[f"{uid}/{editor}"].origin["clip_d"]
            assert got == (pytest.approx(direction, abs=1e-5))
    assert {uid: edit.label for uid, edit in found.items()} == expected
    assert {0.0, 0.5, 1.0} == set(expected.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--truth", "people", "--weak", "old"], "unknown editor 'new'"),
        (
            split("--truth people --weak old --strong new --clip /nowhere"),
            "weights folder not found",
        ),
    ],
)
def test_unnamed_editors_are_one_line(outputs, clip, tmp_path, capsys, options, said):
    command = [
        *split("data adiee --outputs"),
        outputs,
        *split(f"--licence CC0 --clip {clip} --out {tmp_path}/data"),
    ]
    assert said in refused(capsys, *command, *options)


def test_a_label_is_what_the_paper_says():
    assert [label(0, 2, k) for k in range(4)] == [0.0, 0.5, 1.0, 0.5]
    assert len(triples(3)) == 20
