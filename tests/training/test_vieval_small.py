"""The training of vieval_small: what is interrupted goes on as if it had not been."""

import numpy as np
import pytest

from tests.extras import needs

pytestmark = [needs("torch"), needs("skimage", "sklearn", "matplotlib", "pywt")]


@pytest.fixture(scope="module")
def drawings():
    from bench.vieval_small import pieces

    return {kind: [pieces.piece(kind, 0, cases=3)] for kind in ("tie", "cig")}


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(("part", "kind"), [("control", "cig"), ("edits", "tie")])
def test_an_interrupted_training_ends_with_the_weights_of_one_that_was_not(part, kind, drawings, tmp_path, monkeypatch):
    import torch

    from bench.vieval_small import learn

    monkeypatch.setattr(learn, "KEPT", 2)
    held, plan = {kind: drawings[kind]}, learn.Plan((3, 2), batch=3)
    whole, broken, other = (tmp_path / name for name in ("whole", "broken", "other"))
    for folder in (whole, broken, other):
        folder.mkdir()
    one = learn.train(part, held, held, plan, whole)

    step = learn._step

    def failing(*arguments):
        if arguments[-1] == 3:  # one step after the state was kept last
            raise Interrupted
        return step(*arguments)

    monkeypatch.setattr(learn, "_step", failing)
    with pytest.raises(Interrupted):
        learn.train(part, held, held, plan, broken)
    monkeypatch.setattr(learn, "_step", step)
    two = learn.train(part, held, held, plan, broken)
    three = learn.train(part, held, held, learn.Plan((3, 2), batch=3, seed=1), other)

    states = [torch.load(path, weights_only=True)["network"] for path in (one, two, three)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())
    assert any(not torch.equal(tensor, states[2][name]) for name, tensor in states[0].items())


def test_pieces_that_are_there_are_not_drawn_again(tmp_path):
    from bench.vieval_small import pieces

    pieces.path(tmp_path, "cig", 0).write_bytes(b"there")
    pieces.draw(tmp_path, {"cig": [0, 1]}, workers=1, cases=1)
    assert pieces.path(tmp_path, "cig", 0).read_bytes() == b"there"
    with np.load(pieces.path(tmp_path, "cig", 1)) as held:
        assert held["output"].shape == (1, pieces.EACH, 96, 96, 3)
    assert len(list(tmp_path.iterdir())) == 2


def test_where_things_are_is_shared_out_among_the_nearest_places():
    from bench.vieval_small import losses, pieces
    from bench.vieval_small.synthetic.instructions import Placed
    from bench.vieval_small.world import TRAINED
    from vieval_plugin.benchmarks.vieval_demo.drawing import COLOURS, HUES

    things = [
        Placed(TRAINED.things[3], COLOURS["blue"], (128, 64), 0.5),
        Placed(TRAINED.things[0], (9, 0, 0), (20, 30)),
    ]
    [told] = losses.placed(pieces._things(things)[None])
    there, hues, colours, which = np.split(told, np.cumsum([1, len(HUES), 3]))
    assert there.sum() == pytest.approx(2)  # and not what rows of no thing would bring
    assert hues[HUES.index("blue")].sum() == pytest.approx(0.5, abs=0.03)  # by its opacity
    assert colours[2].sum() == pytest.approx(COLOURS["blue"][2] / 255)
    y, x = np.nonzero(which[3])
    weights = which[3][y, x]
    # the middle of a place is half a place on from its edge
    assert (x + 0.5) @ weights * 256 / 12 == pytest.approx(128, abs=0.1)
    assert (y + 0.5) @ weights * 256 / 12 == pytest.approx(64, abs=0.1)


def test_weights_that_were_written_score_as_those_that_were_learnt(tmp_path):
    import json

    import torch

    from bench.vieval_small import learn
    from bench.vieval_small.export import export
    from bench.vieval_small.network import PARTS
    from tests.backends.test_vieval_small import difference, trained_scores
    from vieval_plugin.backends.metrics.networks.vieval_small import load
    from vieval_plugin.backends.weights import Origin

    torch.manual_seed(0)
    built = {part: learn.build(part, 4).eval() for part in PARTS}
    for part, network in built.items():
        kept = {"network": network.state_dict(), "words": json.dumps(["red", "cup"]), "curve": json.dumps([part])}
        torch.save(kept, tmp_path / f"{part}.pt")
    written = tmp_path / "vieval_small.safetensors"
    assert export(tmp_path, written) == {part: [part] for part in PARTS}
    found = load(Origin(str(written)))
    assert found.parts["edits"].vocabulary == {"red": 2, "cup": 3}
    assert difference(found, "tie", trained_scores(built), limit=4) < 1e-3  # of 16-bit floats
