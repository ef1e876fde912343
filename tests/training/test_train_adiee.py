"""ADIEE's scorer: the token, the head, the position, and a training that was killed."""

import json
import shlex
import shutil
from operator import attrgetter

import pytest

from tests import tiny_judge, tiny_model
from tests.refusals import refusal
from vieval_plugin.backends.metrics.networks import value_head
from vieval_plugin.backends.weights import Origin
from vieval_plugin.benchmarks.vieval_demo.sequences import write_drawn
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.judges.adiee.question import Form, question_text
from vieval_plugin.judges.protocol import Image
from vieval_plugin.prompts import packs
from vieval_plugin.results.training_records import trained_on
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training.adiee import dataset, loop
from vieval_plugin.training.adiee.conversations import Conversations
from vieval_plugin.training.adiee.held_out import values
from vieval_plugin.training.adiee.loop import order
from vieval_plugin.training.adiee.network import TOKEN, load, positions
from vieval_plugin.training.tuning import Tuning, split

torch = pytest.importorskip("torch")
PACK = packs.load("adiee/v1")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of labelled edits, of 20 drawn sequences."""
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
def test_a_killed_training_ends_alike(data, base, tmp_path, monkeypatch, options):
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
    assert train(data, base, killed, *options) == 0
    assert len(steps) == 3 + 4  # two steps of six were kept
    for name in ("model.safetensors", "head.safetensors"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    assert not (killed / loop.CHECKPOINT).exists()


def test_another_checkpoint_is_refused(data, base, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(loop, "_EVALUATION_COUNT", 6)
    keep = loop._write_checkpoint

    def once(*arguments):
        keep(*arguments)
        raise VievalError("stopped")

    monkeypatch.setattr(loop, "_write_checkpoint", once)
    assert train(data, base, tmp_path / "out") == 1
    capsys.readouterr()
    assert train(data, base, tmp_path / "out", "--seed", "1") == 1
    assert "trained with seed 0, got 1" in capsys.readouterr().err


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
        [line] = capsys.readouterr().err.splitlines()
        assert said in line


def test_an_order_takes_each_before_any_comes_again():
    for begin in (0, 5):
        assert sorted(order(5, begin, begin + 5, seed=0)) == list(range(5))
    whole = order(5, 0, 10, seed=0)
    assert whole == [*order(5, 0, 4, seed=0), *order(5, 4, 10, seed=0)]
    assert order(50, 0, 50, seed=0) != order(50, 0, 50, seed=1)
