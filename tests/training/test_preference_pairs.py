"""`vieval export --pairs`: verdicts on a generator's candidates as pairs, in the columns or the
folders that trainers read.
"""

import io
import json
from shlex import split

import PIL.Image
import pytest

from tests.refusals import refusal
from vieval_plugin.cli import main
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status, Verdict
from vieval_plugin.records import Provenance
from vieval_plugin.run.verdict_lines import write_verdicts
from vieval_plugin.training.preference_pairs import PreferencePair, write_pair_folders

SCORES = {"p0": (0.2, 0.9, 0.5), "p1": (0.5, 0.5, 0.5), "p2": (0.6, None, 0.4)}
"""By prompt, the score of each of three candidates; None for a failure."""


@pytest.fixture
def given(tmp_path):
    """Verdicts on three candidates of each prompt."""
    samples, verdicts = [], []
    for uid, scores in SCORES.items():
        for draw, score in enumerate(scores):
            file = tmp_path / f"{uid}_{draw}.png"
            PIL.Image.new("RGB", (8, 8), (draw, 0, 0)).save(file)
            texts = {"prompt": f"the prompt {uid}"}
            identity = SampleId("own", "tig", "mine", uid, draw)
            sample = Sample(identity, {"output": Image(file)}, texts)
            samples.append(sample)
            verdicts.append(
                Verdict({"SC": score}, Status.OK)
                if score is not None
                else Verdict({}, Status.REFUSAL)
            )
    source = Provenance("vqascore", (), ("SC",), "judge-7b", "vqascore/v1", "abc")
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, source)
    return ["--pairs", tmp_path / "v.jsonl"]


def test_best_and_worst_of_each_prompt_are_a_pair(given, tmp_path, vieval):
    said = vieval("export", *given, "--out", tmp_path / "pairs.jsonl").out
    assert (
        said == f"wrote {tmp_path / 'pairs.jsonl'}: 2 pairs of 2 prompts\n"
    )  # all candidates of p1 are equal
    first, second = map(json.loads, (tmp_path / "pairs.jsonl").read_text().splitlines())
    assert first == {
        "uid": "p0",
        "prompt": "the prompt p0",
        "chosen": str(tmp_path / "p0_1.png"),
        "rejected": str(tmp_path / "p0_0.png"),
        "chosen_score": 0.9,
        "rejected_score": 0.2,
    }
    assert second["chosen"] == str(tmp_path / "p2_0.png")
    assert second["rejected"] == str(tmp_path / "p2_2.png")


@pytest.mark.parametrize("name", ["pairs.txt", "pairs.csv"])
def test_a_file_of_another_format_is_refused(given, tmp_path, vieval, name):
    [line] = vieval("export", *given, "--out", tmp_path / name, code=1).err.splitlines()
    assert "--out must end in .jsonl or .parquet, got " in line


def test_by_a_margin_each_two_that_far_apart_are_a_pair(given, tmp_path, vieval):
    vieval("export", *given, "--out", tmp_path / "pairs.jsonl", "--margin", "0.4")
    rows = map(json.loads, (tmp_path / "pairs.jsonl").read_text().splitlines())
    assert [(row["chosen_score"], row["rejected_score"]) for row in rows] == [
        (0.9, 0.5),
        (0.9, 0.2),
    ]


def test_datasets_reads_the_images_of_a_parquet_file(given, tmp_path, vieval):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    vieval("export", *given, "--out", tmp_path / "pairs.parquet")
    read = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "pairs.parquet"), cache_dir=tmp_path / "c"
    )["train"]
    assert [row["prompt"] for row in read] == ["the prompt p0", "the prompt p2"]
    assert read[0]["chosen"].getpixel((0, 0)) == (1, 0, 0)
    assert read[0]["rejected"].getpixel((0, 0)) == (0, 0, 0)


def test_diffusion_dpo_columns_hold_the_bytes(given, tmp_path, vieval):
    dpo = tmp_path / "dpo.parquet"
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    vieval("export", *given, "--out", dpo, "--trainer", "diffusers")
    rows = parquet.read_table(dpo).to_pylist()
    assert [(row["caption"], row["label_0"]) for row in rows] == [
        ("the prompt p0", 1.0),
        ("the prompt p2", 1.0),
    ]
    assert rows[0]["jpg_0"] == (tmp_path / "p0_1.png").read_bytes()
    assert rows[0]["jpg_1"] == (tmp_path / "p0_0.png").read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ["--trainer", "diffusers"],
            "diffusers requires image bytes, which JSONL cannot hold; use a .parquet file",
        ),
        (
            ["--margin", "0.95"],
            "no pairs to write, because no prompt has two images whose scores differ (by 0.95)",
        ),
    ],
)
def test_what_cannot_be_paired_is_one_line(given, tmp_path, vieval, change, said):
    pairs = tmp_path / "pairs.jsonl"
    [line] = vieval("export", *given, "--out", pairs, *change, code=1).err.splitlines()
    assert said in line
    assert not pairs.exists()


def test_an_image_that_is_gone_is_in_no_pair(given, tmp_path, vieval):
    (tmp_path / "p0_1.png").unlink()
    vieval("export", *given, "--out", tmp_path / "pairs.jsonl")
    first, _ = map(json.loads, (tmp_path / "pairs.jsonl").read_text().splitlines())
    assert first["chosen"] == str(tmp_path / "p0_2.png")


def test_an_image_that_changed_since_it_was_judged_is_named(given, tmp_path, vieval):
    pairs = tmp_path / "pairs.jsonl"
    PIL.Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "p0_1.png")
    [line] = vieval("export", *given, "--out", pairs, code=1).err.splitlines()
    assert f"{tmp_path / 'p0_1.png'} has changed since it was judged" in line
    assert not pairs.exists()


@pytest.mark.parametrize("different", ["texts", "source"])
def test_two_prompts_that_share_a_uid_are_no_pair(tmp_path, vieval, different):
    samples = []
    for number, (model, prompt) in enumerate(
        {"mine": "a red cat on a mat", "theirs": "a blue dog"}.items()
    ):
        files = {
            role: tmp_path / f"{model}_{role}.png" for role in ("output", "source")
        }
        for shade, (role, file) in enumerate(files.items()):
            changed = number if role == "output" or different == "source" else 0
            PIL.Image.new("RGB", (8, 8), (shade * 50, changed, 0)).save(file)
        texts = {"instruction": prompt if different == "texts" else "add a hat"}
        images = {role: Image(file) for role, file in files.items()}
        samples.append(Sample(SampleId("own", "tie", model, "0"), images, texts))
    source = Provenance("vqascore", (), ("SC",), "judge-7b", "vqascore/v1", "abc")
    verdicts = [Verdict({"SC": score}, Status.OK) for score in (0.9, 0.1)]
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, source)
    command = split(f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}/pairs.jsonl")
    [line] = vieval(*command, code=1).err.splitlines()
    words = (
        "'a red cat on a mat' and 'a blue dog'"
        if different == "texts"
        else "another image source"
    )
    assert "different prompts" in line
    assert words in line


@pytest.mark.parametrize("margin", ["nan", "-1", "2", "much"])
def test_a_margin_that_is_none_is_wrong_usage(given, tmp_path, capsys, margin):
    with pytest.raises(SystemExit):
        main(
            [
                "export",
                *map(str, given),
                *split(f"--out {tmp_path}/pairs.jsonl --margin {margin}"),
            ]
        )
    assert f"must be a number from 0 to 1, got '{margin}'" in capsys.readouterr().err


def test_pairs_never_replace_an_image_that_they_are_made_of(given, tmp_path, vieval):
    p0_1 = tmp_path / "p0_1.png"
    before = p0_1.read_bytes()
    [line] = vieval("export", *given, "--out", p0_1, code=1).err.splitlines()
    assert "--out must end in .jsonl or .parquet" in line
    assert p0_1.read_bytes() == before


@pytest.mark.parametrize("command", [("--pairs",), ("t2i_eval",)])
@pytest.mark.parametrize(
    ("benchmark", "reason"),
    [
        (
            "duels",
            "unknown benchmark, so its licence for training is unknown; set VIEVAL_BENCHMARKS",
        ),
        ("winoground", "its licence does not allow training ("),
        ("mmrb2", "its licence does not allow training ("),
    ],
)
def test_unlicensed_images_stay_here(command, benchmark, reason, tmp_path, vieval):
    judged = [
        Sample(SampleId(benchmark, "tig", name, "p0"), {}, {"prompt": "a"})
        for name in ("mine", "theirs")
    ]
    scored = [Verdict({"O": score}, Status.OK) for score in (0.2, 0.8)]
    source = Provenance("t2i_eval", ("paper",), ("O",), "m")
    write_verdicts(tmp_path / "b.jsonl", judged, scored, source)
    given = [*command, tmp_path / "b.jsonl", "--out", tmp_path / "p.jsonl"]
    [line] = vieval("export", *given, code=1).err.splitlines()
    assert f"{benchmark}: {reason}" in line
    assert not (tmp_path / "p.jsonl").exists()


@pytest.mark.parametrize(
    ("trainer", "better", "worse"),
    [("kohya", "w", "l"), ("onetrainer", "chosen", "rejected")],
)
def test_folders_pair_images_by_name(given, tmp_path, vieval, trainer, better, worse):
    """As the pull requests kohya-ss/sd-scripts#1427 and Nerogar/OneTrainer#1403 read them."""
    out = tmp_path / "pairs"
    said = vieval("export", *given, "--out", out, "--trainer", trainer).out
    assert said == f"wrote {out}: 2 pairs of 2 prompts\n"
    written = {str(path.relative_to(out)) for path in out.rglob("*.*")}
    names = ("000000.png", "000000.txt", "000001.png", "000001.txt")
    assert written == {f"{side}/{name}" for side in (better, worse) for name in names}
    first = out / better / "000000.png", out / worse / "000000.png"
    assert first[0].read_bytes() == (tmp_path / "p0_1.png").read_bytes()
    assert first[1].read_bytes() == (tmp_path / "p0_0.png").read_bytes()
    captions = [(out / side / "000001.txt").read_text() for side in (better, worse)]
    assert captions == ["the prompt p2"] * 2


def pair(chosen, rejected, prompt="a cat", **conditions):
    return PreferencePair("7", prompt, chosen, rejected, 0.9, 0.1, conditions)


def encoded(format):
    PIL.Image.new("RGB", (8, 8), (200, 0, 0)).save(file := io.BytesIO(), format)
    return Image(file.getvalue())


@pytest.mark.parametrize(
    ("formats", "name"),
    [
        (("JPEG", "JPEG"), "000000.jpg"),
        (("WEBP", "WEBP"), "000000.webp"),
        (("JPEG", "PNG"), "000000.png"),
        (("TIFF", "TIFF"), "000000.png"),
    ],
)
def test_both_images_of_a_pair_have_one_name_and_its_format(tmp_path, formats, name):
    pairs = [pair(*map(encoded, formats), prompt="a cat\non a mat")]
    write_pair_folders(tmp_path / "pairs", pairs, "kohya")
    for side in ("w", "l"):
        with PIL.Image.open(tmp_path / "pairs" / side / name) as picture:
            assert picture.size == (8, 8)
        caption = (tmp_path / "pairs" / side / "000000.txt").read_text()
        assert caption == "a cat on a mat"


@pytest.mark.parametrize(
    ("pairs", "key"),
    [
        ([pair(encoded("PNG"), encoded("PNG"), source=encoded("PNG"))], "prompt alone"),
        ([pair(encoded("PNG"), Image(b"no image"))] * 2, "not an image"),
    ],
)
def test_what_folders_cannot_hold_leaves_nothing(tmp_path, pairs, key):
    line = refusal(lambda: write_pair_folders(tmp_path / "pairs", pairs, "kohya"))
    assert key in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_added_to(given, tmp_path, vieval):
    (tmp_path / "pairs").mkdir()
    command = ["export", *given, "--out", tmp_path / "pairs", "--trainer", "kohya"]
    assert "already exists" in vieval(*command, code=1).err
