"""Options: defaults, a file, and what is said when the file is wrong."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from tests.refusals import refusal, refuses
from tests.tables import table
from vieval_plugin import config
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.run.prepare import prepare


@pytest.fixture
def write(tmp_path, monkeypatch):
    def written(text):
        path = tmp_path / "vieval.yaml"
        path.write_text(text)
        monkeypatch.setenv("VIEVAL_CONFIG", str(path))
        return path

    return written


def test_without_a_file_the_defaults_hold():
    assert config.current() == config.Config()
    assert config.current().statistics.failures == "drop"


def test_the_commented_file_is_the_defaults():
    text = config.commented()
    assert config.Config.model_validate(yaml.safe_load(text)) == config.Config()
    is_entry = lambda line: line.lstrip().startswith("#") or ":" in line
    assert all(map(is_entry, text.splitlines()))


@pytest.mark.parametrize(*table("wrong_options.jsonl"))
def test_a_wrong_file_is_one_line(write, text, message):
    write(text)
    assert re.search(message, refusal(config.current))


def test_scorers_are_read_and_their_paths_begin_at_the_file(write, tmp_path):
    (tmp_path / "alexnet.pth").touch()
    dino = "{model: facebook/dino-vits16, revision: v1, batch_size: 4}"
    write(f"scorers: {{lpips: {{model: alexnet.pth}}, dino: {dino}}}")
    found = config.current().scorers
    assert found["lpips"] == config.Scorer(str(tmp_path / "alexnet.pth"))
    assert found["dino"] == config.Scorer("facebook/dino-vits16", "v1", batch_size=4)


def test_what_a_command_says_of_a_scorer_goes_before_the_file():
    scored = {name for name, spec in judge_registry.judges().items() if spec.scored}
    known = {"dino": config.Scorer("a", "v1"), "mine": config.Scorer("b", "v2")}
    file = config.Config(scorers=known)
    told = file.scored_by({"device": "cpu"}).scorers
    assert set(told) == scored | {"mine"}
    assert told["dino"] == config.Scorer("a", "v1", "cpu")
    # a revision belongs to the weights that it was given with
    for given, name, expected in (
        ({"model": "c"}, "dino", config.Scorer("c")),
        ({"revision": "v3"}, "dino", config.Scorer("a", "v3")),
        ({"model": "mine"}, "lpips", config.Scorer("b", "v2")),
    ):
        assert file.scored_by(given).scorers[name] == expected
    unknown = "scorer: argument colour: .* known arguments: name, revision"
    refuses(unknown, file.scored_by, {"colour": "red"})


def test_the_hash_knows_weights_and_not_where_they_are_run():
    of = lambda *named, **more: (
        config.Config(scorers={"dino": config.Scorer(*named, **more)}).hash
    )
    assert config.Config().hash == config.Config(scorers={}).hash
    assert config.Config().hash != of("a") == of("a", device="cpu", batch_size=2)
    assert of("a") != of("a", "v1")


def test_the_options_of_a_scored_run_can_be_read_again():
    found = config.Config(scorers={"dino": config.Scorer("a", "v1")})
    resolved = found.resolved(judge_registry.judge("dino"))
    assert config.from_document(resolved).scorers == found.scorers
    assert "scorers" not in found.resolved(judge_registry.judge("ssim"))


def test_a_file_that_is_changed_is_read_again(tmp_path, monkeypatch):
    """Also within one tick of the clock, to the same length, and by a folder made since."""
    path = tmp_path / "vieval.yaml"
    monkeypatch.setenv("VIEVAL_CONFIG", str(path))
    for seed in (1, 2, 3):
        path.write_text(f"statistics: {{seed: {seed}}}")
        os.utime(path, (1, 1))
        assert config.current().statistics.seed == seed
    path.write_text("scorers: {dino: {model: weights}}")
    assert config.current().scorers["dino"].model == "weights"
    (tmp_path / "weights").mkdir()
    assert config.current().scorers["dino"].model == str(tmp_path / "weights")
    path.write_text("statistics: [")
    refuses("not YAML", config.current)
    path.unlink()
    refuses("cannot read the options file", config.current)


def test_the_environment_goes_before_the_file_for_data(write, monkeypatch):
    path = write("data: here")
    assert config.current().data_folder() == path.parent / "here"
    monkeypatch.setenv("VIEVAL_DATA", "/elsewhere")
    assert config.current().data_folder() == Path("/elsewhere")


def test_the_hash_follows_what_can_change_a_result(write, tmp_path):
    plain = config.Config().hash
    write("data: here")
    assert config.current().hash == plain
    write("statistics: {seed: 1}")
    assert config.current().hash != plain
    # of a file its content, and not its place
    hashes = []
    for name, uid in zip("abc", (1, 1, 2), strict=True):
        (tmp_path / f"{name}.txt").write_text(f"sample_{uid}.jpg")
        write(f"uids: {name}.txt")
        hashes.append(config.current().hash)
    assert hashes[0] == hashes[1] != hashes[2]


def test_one_shot_without_examples_says_what_to_give():
    required = r"1shot requires an example image with scores for each question \(missing: SC_tig, "
    refuses(required, prepare, "viescore", "1shot", config.Config())


def test_one_shot_examples_come_from_the_file(write, tmp_path):
    kinds = ("tig", "tie", "mie", "cig", "sdig", "sdie", "mcic")
    example = {"images": ["ex.png"], "scores": [5]}
    examples = dict.fromkeys(("PQ", *(f"SC_{kind}" for kind in kinds)), example)
    write(json.dumps({"judges": {"viescore": {"examples": examples}}}))
    prepared = prepare("viescore", "1shot", config.current())
    assert prepared.provenance.pack == "viescore/v1"
    found = config.current().judges.viescore.examples["PQ"].images
    assert found == (tmp_path / "ex.png",)


def test_an_unknown_judge_lists_the_known():
    known = "unknown judge 'vie'; .*known judges: .*, viescore, .*vqascore"
    refuses(known, judge_registry.judge, "vie")
