"""`vieval export --pairs`: verdicts on a generator's candidates as pairs, in the columns or the
folders that trainers read.
"""

import PIL.Image
import pytest

from tests.benchmarks import folders
from tests.builders import a_provenance, a_sample, a_verdict
from tests.pictures import plain
from tests.refusals import refusal
from tests.stored_results import read_lines
from vieval_plugin.judges.protocol import Image
from vieval_plugin.run.verdict_lines import write_verdicts
from vieval_plugin.training.preference_pairs import PreferencePair, write_pair_folders

write = folders.write  # a fixture

SCORES = {"p0": (0.2, 0.9, 0.5), "p1": (0.5, 0.5, 0.5), "p2": (0.6, None, 0.4)}
"""By prompt, the score of each of three candidates; None for a failure."""


SOURCE = a_provenance("vqascore", aspects=("SC",))


@pytest.fixture
def given(tmp_path):
    """Verdicts on three candidates of each prompt."""
    samples, verdicts = [], []
    for uid, scores in SCORES.items():
        for draw, score in enumerate(scores):
            file = tmp_path / f"{uid}_{draw}.png"
            PIL.Image.new("RGB", (8, 8), (draw, 0, 0)).save(file)
            about = {"prompt": f"the prompt {uid}", "images": {"output": Image(file)}}
            samples.append(a_sample(uid, "mine", draw=draw, **about))
            verdicts.append(a_verdict(score, ("SC",)))
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, SOURCE)


@pytest.fixture
def export(given, tmp_path, vieval):
    """Writes pairs to a file or folder of a name; has what was printed."""
    command = f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}"
    return lambda name, *options: vieval(f"{command}/{name}", *options).out


@pytest.fixture
def refused(tmp_path, vieval):
    """The one line with which pairs are refused, and no pair is written."""

    def run(name, *options):
        before = sorted(tmp_path.rglob("*"))
        command = f"export --pairs {tmp_path}/v.jsonl --out {tmp_path}/{name}"
        [line] = vieval(command, *options, code=1).err.splitlines()
        assert sorted(tmp_path.rglob("*")) == before
        return line

    return run


def test_best_and_worst_of_each_prompt_are_a_pair(export, tmp_path):
    said = export("pairs.jsonl")
    # all candidates of p1 are equal
    assert said == f"wrote {tmp_path / 'pairs.jsonl'}: 2 pairs of 2 prompts\n"
    first, second = read_lines(tmp_path / "pairs.jsonl")
    image = lambda name: str(tmp_path / f"{name}.png")
    pair = {"chosen": image("p0_1"), "rejected": image("p0_0")}
    scores = {"chosen_score": 0.9, "rejected_score": 0.2}
    assert first == {"uid": "p0", "prompt": "the prompt p0", **pair, **scores}
    assert (second["chosen"], second["rejected"]) == (image("p2_0"), image("p2_2"))


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
        ("pairs.txt", "", FORMATS),
        ("pairs.csv", "", FORMATS),
        # an image that a pair is made of is not replaced
        ("p0_1.png", "", FORMATS),
        ("pairs.jsonl", "--trainer diffusers", "JSONL cannot hold; use a .parquet"),
        ("pairs.jsonl", "--margin 0.95", "two images whose scores differ by 0.95"),
        (".", "--trainer kohya", "already exists"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    given, tmp_path, refused, name, options, said
):
    before = (tmp_path / "p0_1.png").read_bytes()
    assert said in refused(name, *options.split())
    assert (tmp_path / "p0_1.png").read_bytes() == before


def test_an_image_that_is_gone_is_in_no_pair_and_one_that_changed_is_named(
    export, refused, tmp_path
):
    (tmp_path / "p0_1.png").unlink()
    export("pairs.jsonl")
    first, _ = read_lines(tmp_path / "pairs.jsonl")
    assert first["chosen"] == str(tmp_path / "p0_2.png")
    PIL.Image.new("RGB", (8, 8), (9, 9, 9)).save(tmp_path / "p0_2.png")
    changed = f"{tmp_path / 'p0_2.png'} has changed since it was judged"
    assert changed in refused("others.jsonl")


@pytest.mark.parametrize(
    ("prompts", "words"),
    [
        (("a cat on a mat", "a blue dog"), "'a cat on a mat' and 'a blue dog'"),
        (("add a hat", "add a hat"), "another image source"),
    ],
)
def test_two_prompts_that_share_a_uid_are_no_pair(tmp_path, refused, prompts, words):
    samples = []
    for number, prompt in enumerate(prompts):
        shared = number if prompts[0] == prompts[1] else 0
        images = {}
        for role, colour in (("output", (0, number, 0)), ("source", (50, shared, 0))):
            images[role] = Image(tmp_path / f"{number}_{role}.png")
            PIL.Image.new("RGB", (8, 8), colour).save(images[role].source)
        about = {"texts": {"instruction": prompt}, "images": images}
        samples.append(a_sample("0", f"m{number}", kind="tie", **about))
    verdicts = [a_verdict(score, ("SC",)) for score in (0.9, 0.1)]
    write_verdicts(tmp_path / "v.jsonl", samples, verdicts, SOURCE)
    line = refused("pairs.jsonl")
    assert "different prompts" in line
    assert words in line


@pytest.mark.parametrize("margin", ["nan", "-1", "2", "much"])
def test_a_margin_that_is_none_is_wrong_usage(export, capsys, margin):
    with pytest.raises(SystemExit):
        export("pairs.jsonl", "--margin", margin)
    assert f"must be a number from 0 to 1, got '{margin}'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["--pairs", "t2i_eval"])
@pytest.mark.parametrize(
    ("benchmark", "reason"),
    [
        ("duels", "duels: unknown benchmark, so its licence for training is unknown"),
        ("winoground", "winoground: its licence does not allow training ("),
        ("mmrb2", "mmrb2: its licence does not allow training ("),
        ("signs", "signs: its licence does not allow training (CC0-1.0)"),
    ],
)
def test_unlicensed_images_stay_here(
    command, benchmark, reason, tmp_path, vieval, write
):
    about = {"benchmark": benchmark, "prompt": "a"}
    judged = [a_sample(image_model=name, **about) for name in ("mine", "theirs")]
    scored = [a_verdict(score, ("O",)) for score in (0.2, 0.8)]
    source = a_provenance("t2i_eval", aspects=("O",), settings=("paper",))
    write_verdicts(tmp_path / "b.jsonl", judged, scored, source)
    export = f"export {command} {tmp_path}/b.jsonl --out {tmp_path}/p.jsonl"
    own = write(folders.SIGNS, folders.rating_rows())
    [line] = vieval(export, "--benchmark", own, code=1).err.splitlines()
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
    written = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.*")}
    images = {better: ("p0_1", "p2_0"), worse: ("p0_0", "p2_2")}
    expected = {}
    for side, names in images.items():
        for number, name in enumerate(names):
            image = (tmp_path / f"{name}.png").read_bytes()
            prompt = f"the prompt {name[:2]}".encode()
            stem = f"{side}/00000{number}"
            expected |= {f"{stem}.png": image, f"{stem}.txt": prompt}
    assert written == expected


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
