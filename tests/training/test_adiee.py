"""ADIEE: labels without people, those of editing sequences and those by CLIP-D; and its scorer, of
which the token, the head and the position are checked, and a training that was killed.
"""

import json
import shlex
import shutil
from itertools import pairwise
from operator import attrgetter

import numpy as np
import PIL.Image
import pytest

from tests import tiny_judge, tiny_model
from tests.refusals import refusal
from tests.stored_results import read_lines, write_lines
from tests.tiny_scorers import build_clip
from vieval_plugin.backends.metrics.networks import value_head
from vieval_plugin.backends.weights import Origin
from vieval_plugin.benchmarks.sequences import read_sequences, triples
from vieval_plugin.benchmarks.vieval_demo.sequences import draw_sequence, write_drawn
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.judges.adiee.question import Form, question_text
from vieval_plugin.judges.protocol import Image
from vieval_plugin.prompts import packs
from vieval_plugin.results.training_records import trained_on
from vieval_plugin.training.adiee import dataset, labels, loop
from vieval_plugin.training.adiee.conversations import Conversations
from vieval_plugin.training.adiee.held_out import values
from vieval_plugin.training.adiee.labels import LabelledEdit
from vieval_plugin.training.adiee.loop import order
from vieval_plugin.training.adiee.network import TOKEN, load, positions
from vieval_plugin.training.tuning import Tuning, split


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder of a thousand sequences; the one pixel of an image is its number."""
    folder = tmp_path_factory.mktemp("drawn")
    (folder / "images").mkdir()
    rows = []
    for number in range(1000):
        turns = 1 + number % 5
        names = [f"images/{number}_{turn}.png" for turn in range(turns + 1)]
        for turn, name in enumerate(names):
            PIL.Image.new("L", (1, 1), turn).save(folder / name)
        words = [f"edit {n}." for n in range(1, turns + 1)]
        rows.append({"uid": f"s{number}", "images": names, "instructions": words})
    write_lines(folder / "sequences.jsonl", rows)
    about = {"source": "here", "licence": "CC0", "trainable": True}
    (folder / "about.json").write_text(json.dumps(about))
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
        done = max(0, k - j1)
        assert edit.label == (done / len(named) if done <= len(named) else 0.5)
        assert edit.origin == {"j1": j1, "j2": named[-1], "k": k}
        seen.add((j1, named[-1], k))
    assert len(triples(3)) == 20
    assert seen >= {one for turns in (1, 2, 3) for one in triples(turns)}
    about = {"source": "here", "licence": "CC0", "trainable": True}
    known = {"seed": 3, "examples": len(edits), "data": [about]}
    assert {name: manifest[name] for name in known} == known


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


BAD_TURNS = [
    (LAST, None, f"{TURN} has no image"),
    (SESSIONS, ALONE, "turn 1 of sequence magicbrush/train/7 has no instruction"),
    (SESSIONS, AGAIN, "previous turn, got 7-input.png"),
    (LAST, "no image", "7-output2.png"),
    (SESSIONS, '{"7": 1}', "does not fit this layout"),
    (SESSIONS, None, "not a folder of turns"),
]


@pytest.mark.parametrize(("file", "text", "said"), BAD_TURNS)
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


def test_a_label_out_of_range_is_one_line(tmp_path, vieval):
    image = tmp_path / "a.png"
    PIL.Image.new("RGB", (4, 4)).save(image)
    good = LabelledEdit("v", "g", image, image, "add", 1.0)
    dataset.write(tmp_path / "data", [good], [dataset.Terms("x", "CC0", True)], 0)
    [row] = read_lines(tmp_path / "data" / dataset.EXAMPLES)
    command = f"train adiee {tmp_path}/data --base none --out {tmp_path}/out"
    for value in (1.5, -0.1, 7, True, "1", None):
        rows = [row, {**row, "label": value}]
        write_lines(tmp_path / "data" / dataset.EXAMPLES, rows)
        [line] = vieval(command, code=1).err.splitlines()
        assert "row 2: `label` must be" in line


EDITORS = ("people", "old", "new")
ALL = "--truth people --weak old --strong new"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Edits of four sources by three editors, with captions; one output of the strong editor is
    the source itself.
    """
    folder, rows = tmp_path_factory.mktemp("outputs"), []
    rng = np.random.default_rng(0)
    for number in range(4):
        drawn = list(rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8))
        drawn[3] = drawn[0] if number == 0 else drawn[3]
        for name, pixels in zip(("source", *EDITORS), drawn, strict=True):
            PIL.Image.fromarray(pixels).save(folder / f"{number}_{name}.png")
        table = f"on the {'red ' * number}table"
        texts = {"instruction": "make it a dog", "source_caption": f"a cat {table}"}
        texts["output_caption"] = f"a dog {table}"
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
    terms = shlex.split(f"--licence CC0 --clip {clip} --out {tmp_path}/data")
    command = ("data adiee --outputs", outputs, *terms)
    return lambda options, code=0: vieval(*command, *shlex.split(options), code=code)


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


PACK = packs.load("adiee/v1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of labelled edits, of 20 drawn sequences."""
    pytest.importorskip("torch", reason="torch is not installed")
    folder = tmp_path_factory.mktemp("edits")
    write_drawn(folder / "turns", 20, seed=0)
    command = f"data adiee {folder}/turns --out {folder}/data"
    assert main(shlex.split(command)) == 0
    return folder / "data"


@pytest.fixture(scope="module")
def base(tmp_path_factory, data):
    instructions = [edit.instruction for edit in dataset.read(data)[0]]
    return tiny_judge.build(tmp_path_factory.mktemp("base"), instructions, PACK)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory, data, base):
    out = tmp_path_factory.mktemp("scorer")
    assert train(data, base, out) == 0
    return out


def train(data, base, out, *options):
    plan = "--tune full --images joined --steps 6 --batch-size 4 --held-out 0.2"
    command = f"train adiee {data} --base {base} --out {out} {plan}"
    return main([*shlex.split(command), *options])


def scored(folder, edits):
    """What the scorer in a folder says, loaded as any described scorer is."""
    import torch

    network = value_head.load(Origin(str(folder), device="cpu"))
    form = Form("question_1", "answer_1")
    wording = question_text("@", form, PACK, "joined", "token")
    found = []
    with torch.inference_mode():
        for edit in edits:
            files = enumerate((edit.source, edit.output))
            images = {f"image_{n}": decode(Image(file)) for n, file in files}
            text = wording.replace("@", edit.instruction)
            shown = value_head.show(network, images, {"text": text})
            batch = {name: [tensor] for name, tensor in shown.tensors.items()}
            found.append(float(value_head.value_head(network, batch)[0]))
    return found


def in_training(folder, base, edits):
    """What training itself computes of the weights in a scorer's folder."""
    import transformers
    from safetensors.torch import load_file

    trained = load(str(base), "full", with_head=True)
    model = transformers.AutoModelForImageTextToText
    kept = model.from_pretrained(folder, dtype="float32")
    trained.network.load_state_dict(kept.state_dict())
    trained.head.load_state_dict(load_file(folder / "head.safetensors"))
    trained.module.eval()
    conversations = Conversations(trained.processor, PACK, "joined", True)
    return values(trained, conversations, edits, "question_1", 4)


def test_a_scorer_says_what_its_training_computed(scorer, base, data):
    edits, _ = dataset.read(data)
    found = scored(scorer, edits[:6])
    assert found == pytest.approx(in_training(scorer, base, edits[:6]), abs=1e-5)
    assert len({round(value, 6) for value in found}) > 3


@pytest.mark.parametrize("changed", ["the token's row", "the head", "the position"])
def test_each_choice_decides(scorer, data, tmp_path, changed):
    """Each is changed, and the scorer must no longer say what it said, or no longer load."""
    from safetensors.torch import load_file, save_file

    edits = dataset.read(data)[0][:4]
    before = scored(scorer, edits)
    folder = shutil.copytree(scorer, tmp_path / "scorer")
    if changed == "the head":
        held = load_file(folder / "head.safetensors")
        held["2.bias"] = held["2.bias"] + 0.25
        save_file(held, folder / "head.safetensors")
        raised = [value + 0.25 for value in before]
        assert scored(folder, edits) == pytest.approx(raised, abs=1e-5)
    elif changed == "the position":
        description = folder / "manifest.yaml"
        description.write_text(description.read_text().replace("before:", "at:"))
        assert scored(folder, edits) != pytest.approx(before, abs=1e-4)
    else:
        weights = load_file(folder / "model.safetensors")
        row = value_head.load(Origin(str(folder), device="cpu")).base.token(TOKEN)
        [name] = [name for name in weights if name.endswith("embed_tokens.weight")]
        weights[name][row] += 1
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        said = refusal(scored, folder, edits)
        assert "is not the base that the head was trained on" in said


def test_a_head_without_its_token_is_one_line(scorer, base, data, tmp_path):
    import torch

    folder = shutil.copytree(scorer, tmp_path / "scorer")
    for file in base.glob("*token*"):
        shutil.copy(file, folder / file.name)
    edits, _ = dataset.read(data)
    assert "[SCORE]" in refusal(scored, folder, edits[:1])
    # the head reads where the token is predicted
    assert positions(torch.tensor([[5, 9, 7, 0], [5, 6, 9, 9]]), 9).tolist() == [0, 1]
    for rows in ([[5, 6]], [[9, 5]]):
        assert "[SCORE]" in refusal(positions, torch.tensor(rows), 9)


class Killed(BaseException):
    """Ends a process as a signal does."""


@pytest.mark.parametrize("options", [(), ("--tune", "lora", "--accumulate", "2")])
def test_a_killed_training_ends_alike(
    data, base, tmp_path, monkeypatch, capsys, options
):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train(data, base, whole, *options) == 0
    # so a checkpoint every second step
    monkeypatch.setattr(loop, "_EVALUATION_COUNT", 3)
    step, steps, last = loop._step, [], [3]

    def counting(*arguments):
        if len(steps) in last:
            raise Killed
        steps.append(1)
        return step(*arguments)

    monkeypatch.setattr(loop, "_step", counting)
    with pytest.raises(Killed):
        train(data, base, killed, *options)
    assert not (killed / "training_record.json").exists()
    last.clear()
    assert train(data, base, killed, *options, "--seed", "1") == 1
    assert "trained with seed 0, got 1" in capsys.readouterr().err
    assert train(data, base, killed, *options) == 0
    assert len(steps) == 3 + 4  # two steps of six were kept
    for name in ("model.safetensors", "head.safetensors"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not (killed / loop.CHECKPOINT).exists()


def test_the_training_record_says_what_was_learnt_and_what_was_held_out(scorer, data):
    record = json.loads((scorer / "training_record.json").read_text())
    edits, manifest = dataset.read(data)
    learnt, held_out = split(edits, attrgetter("group"), Tuning("", held_out=0.2))
    assert set(record["uids"]) == {edit.group for edit in learnt} == trained_on(scorer)
    assert set(record["held_out_uids"]) == {edit.group for edit in held_out}
    assert set(record["uids"]) | set(record["held_out_uids"]) == set(manifest["uids"])
    assert not set(record["uids"]) & set(record["held_out_uids"])
    assert record["data"] == manifest["data"]
    assert [point["step"] for point in record["curves"]] == [1, 2, 3, 4, 5, 6]
    assert record["held_out"]["agreement"]["n"] == len(held_out)
    assert record["recipe"]["seed"] == 0


@pytest.mark.parametrize("answer", ["token", "number"])
def test_adapters_leave_the_rest_alone(data, tmp_path, answer, request):
    """Adapters, embeddings, output layer and head learn; a base that takes two images is shown
    two.
    """
    import torch
    from safetensors.torch import load_file

    base, out = tiny_model.build(tmp_path / "base"), tmp_path / "out"
    plan = f"--tune lora --images two --steps 2 --answer {answer}"
    assert train(data, base, out, *shlex.split(plan)) == 0
    before, after = (load_file(folder / "model.safetensors") for folder in (base, out))
    changed = set()
    for name, held in before.items():
        is_grown = "embed" in name or "lm_head" in name
        learnt = after[name][: len(held)] if is_grown else after[name]
        if not torch.equal(held, learnt):
            changed.add(name)
    found = {name.rpartition(".")[0].rpartition(".")[2] for name in changed}
    assert found <= {"q_proj", "v_proj", "embed_tokens", "lm_head"}
    assert changed
    assert not any("visual" in name for name in changed)
    assert (out / "head.safetensors").exists() == (answer == "token")


def test_bad_options_and_data_are_one_line(data, base, tmp_path, capsys):
    forbidden = shutil.copytree(data, tmp_path / "data")
    manifest = json.loads((data / dataset.MANIFEST).read_text())
    manifest["data"][0] |= {"trainable": False, "licence": "CC BY-NC"}
    (forbidden / dataset.MANIFEST).write_text(json.dumps(manifest))
    for folder, options, said in (
        (data, ("--base", "/nowhere"), "cannot be loaded"),
        (data, ("--held-out", "1"), "--held-out must be at least 0 and below 1, got 1"),
        (data, ("--learning-rate", "nan"), "--learning-rate must be above 0, got nan"),
        (forbidden, (), "does not allow training (CC BY-NC)"),
    ):
        assert train(folder, base, tmp_path / "out", *options) == 1
        err = capsys.readouterr().err
        assert said in err
        assert "Traceback" not in err


def test_an_order_takes_each_before_any_comes_again():
    for begin in (0, 5):
        assert sorted(order(5, begin, begin + 5, seed=0)) == list(range(5))
    whole = order(5, 0, 10, seed=0)
    assert whole == [*order(5, 0, 4, seed=0), *order(5, 4, 10, seed=0)]
    assert order(50, 0, 50, seed=0) != order(50, 0, 50, seed=1)
