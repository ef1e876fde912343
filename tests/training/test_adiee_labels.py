"""Labels without people: those of editing sequences, through the code that reads folders, and
those by CLIP-D.
"""

import json
from itertools import pairwise
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests.stored_results import read_lines, write_lines
from tests.tiny_scorers import build_clip
from vieval_plugin.benchmarks.sequences import read_sequences, triples
from vieval_plugin.benchmarks.vieval_demo.sequences import draw_sequence
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
            words = [f"edit {n}." for n in range(1, turns + 1)]
            row = {"uid": f"s{number}", "images": names, "instructions": words}
            file.write(json.dumps(row) + "\n")
    text = json.dumps({"source": "here", "licence": "CC0", "trainable": True})
    (folder / "about.json").write_text(text)
    return folder


@pytest.fixture
def refused(vieval, tmp_path):
    """The one line with which data of a folder is refused, and nothing is written."""

    def run(*given):
        said = vieval("data adiee", *given, "--out", tmp_path / "data", code=1).err
        assert said.count("\n") == 1
        assert not (tmp_path / "data").exists()
        return said

    return run


def value_of(file):
    """The one pixel of an image that was drawn."""
    return int(np.asarray(PIL.Image.open(file))[0, 0])


def test_labels_of_a_thousand_sequences_are_exact(drawn, tmp_path, vieval):
    vieval("data adiee", drawn, "--out", tmp_path, "--seed", "3")
    edits, manifest = dataset.read(tmp_path)
    assert len({edit.group for edit in edits}) == 1000 == len(manifest["uids"])
    seen = set()
    for edit in edits:
        # what the images and the words themselves say
        j1, k = (value_of(file) for file in (edit.source, edit.output))
        words = edit.instruction.split()
        named = [int(word.rstrip(".")) for word in words if word != "edit"]
        assert named == list(range(j1 + 1, j1 + 1 + len(named)))
        j2 = named[-1]
        done = max(0, k - j1)
        assert edit.label == (done / len(named) if done <= len(named) else 0.5)
        assert edit.origin == {"j1": j1, "j2": j2, "k": k}
        seen.add((j1, j2, k))
    assert len(triples(3)) == 20
    assert seen >= {one for turns in (1, 2, 3) for one in triples(turns)}
    assert (manifest["seed"], manifest["examples"]) == (3, len(edits))
    assert manifest["data"] == [{"source": "here", "licence": "CC0", "trainable": True}]


def test_the_same_seed_draws_the_same_edits(drawn, tmp_path, vieval):
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        vieval("data adiee", drawn, "--out", tmp_path / name, "--seed", seed)
    files = (tmp_path / name / dataset.EXAMPLES for name in "abc")
    first, again, other = (file.read_text() for file in files)
    assert first == again != other


def test_drawn_sequences_change_one_cell_and_are_read(tmp_path, vieval):
    vieval(f"data drawn --out {tmp_path} --count 12 --seed 5")
    held = read_sequences(tmp_path)
    assert (held.trainable, len(held.sequences)) == (True, 12)
    for number, sequence in enumerate(held.sequences):
        own = draw_sequence(number, 5)
        assert sequence.instructions == own.instructions
        scenes = [np.asarray(PIL.Image.open(file)) for file in sequence.images]
        assert np.array_equal(scenes, [np.asarray(kept) for kept in own.scenes])
        changed = [changed_cells(*both) for both in pairwise(scenes)]
        assert all(len(cells) == 1 for cells in changed)
        assert len(set().union(*changed)) == len(changed)


def changed_cells(before, after):
    places = np.argwhere((before != after).any(-1))
    return {(y // 32, x // 32) for y, x in places}


def turn(number, start, instruction):
    files = {"mask": f"7-mask{number}.png", "output": f"7-output{number}.png"}
    return {"input": start, **files, "instruction": instruction}


def magicbrush(folder):
    first = turn(1, "7-input.png", "add a cat")
    turns = [first, turn(2, "7-output1.png", "make it red")]
    (folder / "images" / "7").mkdir(parents=True)
    for name in ("7-input", "7-output1", "7-output2"):
        PIL.Image.new("RGB", (4, 4)).save(folder / "images" / "7" / f"{name}.png")
    (folder / "edit_sessions.json").write_text(json.dumps({"7": turns}))
    return folder


def test_magicbrush_is_read_in_its_own_layout(tmp_path, refused):
    held = read_sequences(magicbrush(tmp_path / "train"))
    [sequence] = held.sequences
    assert (held.trainable, sequence.uid) == (True, "magicbrush/train/7")
    names = ["7-input.png", "7-output1.png", "7-output2.png"]
    assert [path.name for path in sequence.images] == names
    assert sequence.instructions == ("add a cat", "make it red")
    # a test split trains nothing
    assert "does not allow training" in refused(magicbrush(tmp_path / "test"))


SESSIONS, LAST = "edit_sessions.json", "images/7/7-output2.png"
TURN = "turn 2 of sequence magicbrush/train/7"
ALONE = json.dumps({"7": [turn(1, "7-input.png", " ")]})
AGAIN = json.dumps({"7": [turn(n, "7-input.png", "add a cat") for n in (1, 2)]})


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (LAST, None, f"{TURN} has no image"),
        (SESSIONS, ALONE, "turn 1 of sequence magicbrush/train/7 has no instruction"),
        (SESSIONS, AGAIN, "previous turn, got 7-input.png"),
        (LAST, "no image", "7-output2.png"),
        (SESSIONS, '{"7": 1}', "does not fit this layout"),
        (SESSIONS, None, "not a folder of turns"),
    ],
)
def test_bad_turns_are_one_line(tmp_path, refused, file, text, said):
    broken = magicbrush(tmp_path / "train") / file
    broken.unlink()
    if text is not None:
        broken.write_text(text)
    assert said in refused(tmp_path / "train")


BAD_SEQUENCES = {
    '{"uid": "x"}': "line 3: not a sequence ('images')",
    "[[": "line 3: not a JSON object",
    "{first}": "sequence drawn/1_00000 occurs 2 times",
}


def test_bad_sequences_are_located(tmp_path, vieval, refused):
    folder = tmp_path / "turns"
    vieval("data", "drawn", "--out", folder, "--count", "2", "--seed", "1")
    rows = folder / "sequences.jsonl"
    text = rows.read_text()
    for line, said in BAD_SEQUENCES.items():
        rows.write_text(f"{text}{line.replace('{first}', text.splitlines()[0])}\n")
        assert said in refused(folder)
    rows.write_text(text)
    (folder / "about.json").unlink()
    assert "about.json: cannot be read" in refused(folder)


@pytest.mark.parametrize("value", [1.5, -0.1, 7, True, "1", None])
def test_a_label_out_of_range_is_one_line(tmp_path, vieval, value):
    image = tmp_path / "a.png"
    PIL.Image.new("RGB", (4, 4)).save(image)
    good = LabelledEdit("v", "g", image, image, "add", 1.0)
    dataset.write(tmp_path / "data", [good], [dataset.Terms("x", "CC0", True)], 0)
    examples = tmp_path / "data" / dataset.EXAMPLES
    row = json.loads(examples.read_text())
    write_lines(examples, [row, {**row, "label": value}])
    command = f"train adiee {tmp_path}/data --base none --out {tmp_path}/out"
    [line] = vieval(command, code=1).err.splitlines()
    assert "row 2: `label` must be" in line


EDITORS = ("people", "old", "new")
ALL = "--truth people --weak old --strong new"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Edits of four sources by three editors, with captions; one output of the strong editor is
    the source itself.
    """
    folder = tmp_path_factory.mktemp("outputs")
    rng, rows = np.random.default_rng(0), []
    for number in range(4):
        drawn = list(rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8))
        drawn[3] = drawn[0] if number == 0 else drawn[3]
        for name, pixels in zip(("source", *EDITORS), drawn, strict=True):
            PIL.Image.fromarray(pixels).save(folder / f"{number}_{name}.png")
        table = f"on the {'red ' * number}table"
        captions = {"source_caption": f"a cat {table}"}
        captions["output_caption"] = f"a dog {table}"
        texts = {"instruction": "make it a dog", **captions}
        for editor in EDITORS:
            names = {"source": "source", "output": editor}
            images = {role: f"{number}_{name}.png" for role, name in names.items()}
            row = {"uid": str(number), "image_model": editor, "images": images}
            rows.append({**row, "texts": texts})
    write_lines(folder / "samples.jsonl", rows)
    return folder / "samples.jsonl"


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    pytest.importorskip("transformers", reason="transformers is not installed")
    return build_clip(tmp_path_factory.mktemp("clip"))


def by_hand(clip, before, after, texts):
    """CLIP-D as transformers alone computes it."""
    import torch
    from transformers import CLIPModel, CLIPProcessor

    pictures = [PIL.Image.open(file).convert("RGB") for file in (before, after)]
    read = {"padding": True, "truncation": True, "max_length": 16}
    processor = CLIPProcessor.from_pretrained(clip)
    inputs = processor(images=pictures, text=texts, return_tensors="pt", **read)
    with torch.no_grad():
        found = CLIPModel.from_pretrained(clip).eval()(**inputs)
    # both are of length 1
    changes = [ends[1] - ends[0] for ends in (found.image_embeds, found.text_embeds)]
    return float(torch.nn.functional.cosine_similarity(*changes, dim=0))


@pytest.fixture
def label_outputs(outputs, clip, tmp_path, vieval):
    """Runs the command that labels these edits by CLIP-D; has what it printed."""
    terms = split(f"--licence CC0 --clip {clip} --out {tmp_path}/data")
    command = ("data adiee --outputs", outputs, *terms)
    return lambda options, code=0: vieval(*command, *split(options), code=code)


def test_labels_by_clip_d_are_computed(
    outputs, clip, tmp_path, monkeypatch, label_outputs
):
    # between the values that the tiny weights give, so that each rule meets some
    monkeypatch.setattr(labels, "FAILED", 0.05)
    monkeypatch.setattr(labels, "SUCCEEDED", 0.02)
    label_outputs(ALL)
    edits, _ = dataset.read(tmp_path / "data")
    found = {edit.uid: edit for edit in edits}
    expected = {}
    for row in read_lines(outputs):
        uid, editor = row["uid"], row["image_model"]
        images = (row["images"][role] for role in ("source", "output"))
        source, output = (outputs.parent / image for image in images)
        texts = row["texts"]["source_caption"], row["texts"]["output_caption"]
        same = source.read_bytes() == output.read_bytes()
        direction = 0.0 if same else by_hand(clip, source, output, list(texts))
        expected[f"{uid}/unedited"] = 0.0
        name = f"{uid}/{editor}"
        if editor == "people":
            expected[name] = 1.0
        elif editor == "new":
            score = 1.0 if direction > 0.02 else 0.5
            expected[name] = 0.0 if same else score
        elif direction < 0.05:
            expected[name] = 0.0
        if name in found:
            got = found[name].origin["clip_d"]
            assert got == pytest.approx(direction, abs=1e-5)
    assert {uid: edit.label for uid, edit in found.items()} == expected
    assert {0.0, 0.5, 1.0} == set(expected.values())


def test_unnamed_editors_are_one_line(label_outputs):
    for options, said in (
        ("--truth people --weak old", "unknown editor 'new'"),
        (f"{ALL} --clip /nowhere", "weights folder not found"),
    ):
        [line] = label_outputs(options, code=1).err.splitlines()
        assert said in line
