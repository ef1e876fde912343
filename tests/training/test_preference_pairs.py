"""`vieval export --pairs`: verdicts on a generator's candidates as pairs, in the columns or the
folders that trainers read.
"""

import PIL.Image
import pytest

from tests.pictures import plain
from tests.refusals import refusal
from tests.stored_results import read_lines
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
            samples.append(Sample(identity, {"output": Image(file)}, texts))
            verdicts.append(a_verdict(score))
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, SOURCE)


SOURCE = Provenance("vqascore", (), ("SC",), "judge-7b", "vqascore/v1", "abc")


def a_verdict(score):
    if score is None:
        return Verdict({}, Status.REFUSAL)
    return Verdict({"SC": score}, Status.OK)


@pytest.fixture
def export(given, tmp_path, vieval):
    """Writes pairs to a file or folder of a name; has what was printed."""
    command = f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}"
    return lambda name, *options: vieval(f"{command}/{name}", *options).out


@pytest.fixture
def refused(tmp_path, vieval):
    """The one line with which pairs are refused, and nothing is written."""

    def run(name, *options):
        command = f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}/{name}"
        [line] = vieval(command, *options, code=1).err.splitlines()
        assert not list(tmp_path.glob("pairs*"))
        return line

    return run


def test_best_and_worst_of_each_prompt_are_a_pair(export, tmp_path):
    said = export("pairs.jsonl")
    # all candidates of p1 are equal
    assert said == f"wrote {tmp_path / 'pairs.jsonl'}: 2 pairs of 2 prompts\n"
    first, second = read_lines(tmp_path / "pairs.jsonl")
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


def test_by_a_margin_each_two_that_far_apart_are_a_pair(export, tmp_path):
    export("pairs.jsonl", "--margin", "0.4")
    rows = read_lines(tmp_path / "pairs.jsonl")
    scores = [(row["chosen_score"], row["rejected_score"]) for row in rows]
    assert scores == [(0.9, 0.5), (0.9, 0.2)]


def test_datasets_reads_the_images_of_a_parquet_file(export, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    export("pairs.parquet")
    given = {"data_files": str(tmp_path / "pairs.parquet"), "cache_dir": tmp_path / "c"}
    read = datasets.load_dataset("parquet", **given)["train"]
    assert [row["prompt"] for row in read] == ["the prompt p0", "the prompt p2"]
    assert read[0]["chosen"].getpixel((0, 0)) == (1, 0, 0)
    assert read[0]["rejected"].getpixel((0, 0)) == (0, 0, 0)


def test_diffusion_dpo_columns_hold_the_bytes(export, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export("dpo.parquet", "--trainer", "diffusers")
    rows = parquet.read_table(tmp_path / "dpo.parquet").to_pylist()
    captions = [(row["caption"], row["label_0"]) for row in rows]
    assert captions == [("the prompt p0", 1.0), ("the prompt p2", 1.0)]
    assert rows[0]["jpg_0"] == (tmp_path / "p0_1.png").read_bytes()
    assert rows[0]["jpg_1"] == (tmp_path / "p0_0.png").read_bytes()


FORMATS = "--out must end in .jsonl or .parquet, got "


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("pairs.txt", (), FORMATS),
        ("pairs.csv", (), FORMATS),
        # an image that a pair is made of is not replaced
        ("p0_1.png", (), FORMATS),
        (
            "pairs.jsonl",
            ("--trainer", "diffusers"),
            "JSONL cannot hold; use a .parquet",
        ),
        ("pairs.jsonl", ("--margin", "0.95"), "two images whose scores differ by 0.95"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    given, tmp_path, refused, name, options, said
):
    before = (tmp_path / "p0_1.png").read_bytes()
    assert said in refused(name, *options)
    assert (tmp_path / "p0_1.png").read_bytes() == before


def test_an_image_that_is_gone_is_in_no_pair(export, tmp_path):
    (tmp_path / "p0_1.png").unlink()
    export("pairs.jsonl")
    first, _ = read_lines(tmp_path / "pairs.jsonl")
    assert first["chosen"] == str(tmp_path / "p0_2.png")


def test_an_image_that_changed_since_it_was_judged_is_named(given, tmp_path, refused):
    PIL.Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "p0_1.png")
    changed = f"{tmp_path / 'p0_1.png'} has changed since it was judged"
    assert changed in refused("pairs.jsonl")


PROMPTS = {"mine": "a red cat on a mat", "theirs": "a blue dog"}


@pytest.mark.parametrize(
    ("different", "words"),
    [
        ("texts", "'a red cat on a mat' and 'a blue dog'"),
        ("source", "another image source"),
    ],
)
def test_two_prompts_that_share_a_uid_are_no_pair(tmp_path, refused, different, words):
    samples = []
    for number, (model, prompt) in enumerate(PROMPTS.items()):
        roles = ("output", "source")
        files = {role: tmp_path / f"{model}_{role}.png" for role in roles}
        for shade, (role, file) in enumerate(files.items()):
            changed = number if role == "output" or different == "source" else 0
            PIL.Image.new("RGB", (8, 8), (shade * 50, changed, 0)).save(file)
        texts = {"instruction": prompt if different == "texts" else "add a hat"}
        images = {role: Image(file) for role, file in files.items()}
        samples.append(Sample(SampleId("own", "tie", model, "0"), images, texts))
    verdicts = [a_verdict(score) for score in (0.9, 0.1)]
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, SOURCE)
    line = refused("pairs.jsonl")
    assert "different prompts" in line
    assert words in line


@pytest.mark.parametrize("margin", ["nan", "-1", "2", "much"])
def test_a_margin_that_is_none_is_wrong_usage(export, capsys, margin):
    with pytest.raises(SystemExit):
        export("pairs.jsonl", "--margin", margin)
    assert f"must be a number from 0 to 1, got '{margin}'" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("--pairs",), ("t2i_eval",)])
@pytest.mark.parametrize(
    ("benchmark", "reason"),
    [
        ("duels", "duels: unknown benchmark, so its licence for training is unknown"),
        ("winoground", "winoground: its licence does not allow training ("),
        ("mmrb2", "mmrb2: its licence does not allow training ("),
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
    assert reason in line
    assert not (tmp_path / "p.jsonl").exists()


@pytest.mark.parametrize(
    ("trainer", "better", "worse"),
    [("kohya", "w", "l"), ("onetrainer", "chosen", "rejected")],
)
def test_folders_pair_images_by_name(export, tmp_path, trainer, better, worse):
    """As the pull requests kohya-ss/sd-scripts#1427 and Nerogar/OneTrainer#1403 read them."""
    out = tmp_path / "pairs"
    said = export("pairs", "--trainer", trainer)
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


def red(form="PNG"):
    return Image(plain((200, 0, 0), form=form))


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
    pairs = [pair(*map(red, formats), prompt="a cat\non a mat")]
    write_pair_folders(tmp_path / "pairs", pairs, "kohya")
    for side in ("w", "l"):
        with PIL.Image.open(tmp_path / "pairs" / side / name) as picture:
            assert picture.size == (8, 8)
        caption = (tmp_path / "pairs" / side / "000000.txt").read_text()
        assert caption == "a cat on a mat"


@pytest.mark.parametrize(
    ("pairs", "key"),
    [
        ([pair(red(), red(), source=red())], "prompt alone"),
        ([pair(red(), Image(b"no image"))] * 2, "not an image"),
    ],
)
def test_what_folders_cannot_hold_leaves_nothing(tmp_path, pairs, key):
    line = refusal(lambda: write_pair_folders(tmp_path / "pairs", pairs, "kohya"))
    assert key in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_added_to(given, tmp_path, vieval):
    (tmp_path / "pairs").mkdir()
    command = f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}/pairs"
    assert "already exists" in vieval(command, "--trainer", "kohya", code=1).err
