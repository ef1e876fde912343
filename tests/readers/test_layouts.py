"""Folders of benchmarks: each image has its own prompt, and each is accounted for."""

import io
import json
import re
import shutil
from itertools import chain, product
from shlex import split

import numpy as np
import PIL.Image
import pytest

from tests.refusals import refusal
from tests.shard_runs import picture
from tests.stored_results import read_lines
from tests.tables import table
from vieval_plugin.images import decode, read_bytes
from vieval_plugin.readers.arrow_tables import reread_cells
from vieval_plugin.readers.layout import (
    find_layout,
    layout_names,
    read_layout,
    read_layout_file,
    read_layouts,
)

JUDGE = ("--judge", "sharpness")
TAGS = ("single_object", "counting", "colors")
PROMPTS = ("a green bench and a red car.", "two dogs", "a cat on a mat")
#: The images of each layout.
IMAGES = {"geneval": 12, "t2i_compbench": 9, "oneig": 48, "gedit": 6, "imgedit": 3}
IMAGES |= {"imgedit_uge": 3, "dpg_bench": 12, "hpsv2": 6}
ADDED = "two dogs subject-add"
#: Layout, uid, draw, text, category, picture and picture of the source; one of the middle of each.
PAIRS = [
    ("geneval", "00001", 2, "two dogs", "counting", 12, None),
    ("t2i_compbench", "two dogs", 1, "two dogs", "", 11, None),
    ("gedit", "subject-add/en/k1", 0, f"{ADDED} en", "subject-add", 11, 511),
    ("imgedit", "101", 0, "two dogs", "counting", 1, 501),
    ("imgedit_uge", "2", 0, "two dogs", "", 1, 501),
    ("dpg_bench", "coco1", 2, "two dogs", "", 12, None),
    ("hpsv2", "anime/00001", 0, "two dogs anime", "Animation", 1, None),
    ("hpsv2", "photo/00002", 0, "a cat on a mat photo", "Photo", 12, None),
]
HPSV2 = "benchmark/benchmark_imgs/mine"
TWICE = (("coco2", "coco1"), "coco1 has two prompts")
CUT = ("coco2,", "coco3,one, two, and "), "line 6: 6 cells"
UNREADABLE = [
    ('{"prompt": "a", "prompt": "b"}', "line 1: duplicate key 'prompt'"),
    ("{", "line 1: not a JSON object"),
    ('{"tag": "colors"}', "line 1: missing prompt"),
]
NO_LAYOUTS = [("title: [", "YAML"), ("title: x", "images"), ("3", "layout")]
HEADER = split("judge generator category mean images scored")
HEADER += ["all right", "prompts (all)", "any right", "prompts (any)"]
OWN = """title: Own
images: ["{uid:5}/samples/{index}"]
no_images: ["{uid:5}/grid"]
threshold: 0.87
totals: [categories, all, any]
prompts: {beside: "{uid:5}/metadata.jsonl", prompt: prompt, category: tag}
"""


def save(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def geneval(folder):
    for number, (tag, prompt) in enumerate(zip(TAGS, PROMPTS, strict=True)):
        place = folder / f"{number:05}"
        conditions = {"tag": tag, "prompt": prompt, "include": []}
        save(place / "metadata.jsonl", json.dumps(conditions) + "\n")
        save(place / "grid.png", picture(900 + number))
        for index in range(4):
            save(place / f"samples/{index:04}.png", picture(10 * number + index))
    return folder


def t2i_compbench(folder):
    for position, prompt in enumerate(PROMPTS):
        for index in range(3):
            name = f"samples/{prompt}_{3 * position + index:06}.png"
            save(folder / name, picture(10 * position + index))
        save(folder / f"{prompt}-grid-{position:05}.png", picture(900))
    return folder


def grid(numbers):
    """A file of four pictures."""
    pictures = [pixels(picture(number)) for number in numbers]
    file = io.BytesIO()
    rows = np.vstack([np.hstack(pictures[:2]), np.hstack(pictures[2:])])
    PIL.Image.fromarray(rows).save(file, "WEBP", lossless=True)
    return file.getvalue()


def oneig(folder):
    rows = ["category,id,prompt_en,type,prompt_length,class"]
    categories = {"anime": "Anime_Stylization", "text": "Text_Rendering"}
    for (place, category), (number, prompt) in product(
        categories.items(), enumerate(PROMPTS)
    ):
        rows.append(f'{category},{number:03},"{prompt} {category}",NP,short,None')
        for offset, model in ((0, "mine"), (50, "theirs")):
            first = 1000 * (place == "text") + 100 * number + offset
            path = folder / f"images/{place}/{model}/{number:03}.webp"
            save(path, grid(range(first, first + 4)))
    rows.append('Portrait,000,"nobody made it",NP,short,None')
    save(folder / "OneIG-Bench.csv", "\n".join(rows) + "\n")
    return folder / "images"


def gedit(folder):
    rows = ["key,task_type,instruction,instruction_language"]
    for position, task in enumerate(("ps_human", "subject-add")):
        for number, prompt in enumerate(PROMPTS):
            for language in ("en", "cn"):
                rows.append(f'k{number},{task},"{prompt} {task} {language}",{language}')
            place = folder / f"mine/fullset/{task}/en"
            save(place / f"k{number}_SRCIMG.png", picture(500 + 10 * position + number))
            save(place / f"k{number}.png", picture(10 * position + number))
    save(folder / "GEdit-Bench.csv", "\n".join(rows) + "\n")
    return folder / "mine"


def imgedit(folder, table="basic_edit.json", place="animal/", first=100):
    rows = {}
    for number, prompt in enumerate(PROMPTS):
        source, uid = f"{place}{number:09}.jpg", str(first + number)
        rows[uid] = {"id": source, "prompt": prompt}
        if place:
            rows[uid]["edit_type"] = TAGS[number]
        save(folder / "original_images" / source, picture(500 + number))
        save(folder / f"mine/{uid}.png", picture(number))
    save(folder / table, json.dumps(rows, indent=4))
    return folder / "mine"


def imgedit_uge(folder):
    return imgedit(folder, "UGE_edit.json", "", 1)


def dpg_bench(folder):
    rows = ["item_id,text,proposition_id,question_natural_language"]
    for number, prompt in enumerate(PROMPTS):
        row = f'coco{number},"{prompt}"'
        rows += [f"{row},{question},Is it there?" for question in (1, 2)]
        path = folder / f"mine/coco{number}.webp"
        save(path, grid(range(10 * number, 10 * number + 4)))
    save(folder / "dpg_bench.csv", "\n".join(rows) + "\n")
    return folder / "mine"


def hpsv2(folder):
    for position, style in enumerate(("anime", "photo")):
        path = folder / f"benchmark/{style}.json"
        save(path, json.dumps([f"{prompt} {style}" for prompt in PROMPTS]))
        for number in range(3):
            path = folder / f"benchmark/benchmark_imgs/mine/{style}/{number:05}.jpg"
            save(path, picture(10 * position + number))
    return folder / "benchmark/benchmark_imgs/mine"


MAKERS = {make.__name__: make for make in (oneig, gedit, imgedit, imgedit_uge)}
MAKERS |= {"dpg_bench": dpg_bench, "hpsv2": hpsv2}
MAKERS["geneval"] = lambda folder: geneval(folder / "mine")
MAKERS["t2i_compbench"] = lambda folder: t2i_compbench(folder / "mine")


def read(name, folder):
    return list(read_layout(folder, read_layout_file(name)))


def pixels(image):
    if isinstance(image, bytes):
        image = PIL.Image.open(io.BytesIO(image))
    return np.asarray(image)


@pytest.mark.parametrize("name", layout_names())
def test_a_layout_is_known_by_its_shape_alone(name, vieval, tmp_path, monkeypatch):
    folder = MAKERS[name](tmp_path / "gen")
    rows = read(name, folder)
    assert not any(row.verdict for row in rows)
    ids = {row.sample.id for row in rows}
    assert len(rows) == len(ids) == IMAGES[name]
    assert len({one.image_model for one in ids}) == (2 if name == "oneig" else 1)
    shown = [np.asarray(decode(row.sample.images["output"])).tobytes() for row in rows]
    assert len(set(shown)) == IMAGES[name]
    assert find_layout(folder) == name
    monkeypatch.chdir(tmp_path)
    vieval("score", folder.relative_to(tmp_path), *JUDGE, "--out", "v.jsonl")
    assert {row["status"] for row in read_lines(tmp_path / "v.jsonl")} == {"ok"}
    save(folder / "another/strange file.png", picture(1))
    assert find_layout(folder) == ""


@pytest.mark.parametrize(
    ("name", "uid", "draw", "text", "category", "output", "source"), PAIRS
)
def test_own_conditions(name, uid, draw, text, category, output, source, tmp_path):
    samples = [row.sample for row in read(name, MAKERS[name](tmp_path))]
    [sample] = [one for one in samples if (one.id.uid, one.id.draw) == (uid, draw)]
    kind, field = ("tie", "instruction") if source else ("tig", "prompt")
    found = (sample.id.part, sample.id.image_model, sample.category)
    assert found == (kind, "mine", category)
    assert {**sample.texts, "objects": ""} == {field: text, "objects": ""}
    expected = {"output": output, "source": source} if source else {"output": output}
    assert set(sample.images) == set(expected)
    for role, number in expected.items():
        shown = pixels(decode(sample.images[role]))
        assert np.array_equal(shown, pixels(picture(number)))


@pytest.mark.parametrize(
    ("name", "file", "uid", "role"),
    [
        ("gedit", "mine/fullset/ps_human/en/k1.png", "ps_human/en/k1", "output"),
        ("gedit", "mine/fullset/ps_human/en/k1_SRCIMG.png", "ps_human/en/k1", "source"),
        ("imgedit", "mine/101.png", "101", "output"),
        ("imgedit", "original_images/animal/000000001.jpg", "101", "source"),
        ("dpg_bench", "mine/coco1.webp", "coco1", "output"),
        ("hpsv2", f"{HPSV2}/photo/00001.jpg", "photo/00001", "output"),
    ],
)
def test_an_image_that_is_missing_is_named(name, file, uid, role, tmp_path):
    folder = MAKERS[name](tmp_path)
    (tmp_path / file).unlink()
    [row] = [row for row in read(name, folder) if row.verdict]
    status = {"output": "no_image", "source": "tool_error"}[role]
    assert (row.sample.id.uid, str(row.verdict.status)) == (uid, status)
    assert role in row.verdict.reason


def test_prompts_of_another_name_choose_no_layout(tmp_path):
    folder = dpg_bench(tmp_path)
    own = (tmp_path / "dpg_bench.csv").rename(tmp_path / "mine.csv")
    assert find_layout(folder, own) == ""
    assert len(list(read_layout(folder, read_layout_file("dpg_bench"), own))) == 12


@pytest.mark.parametrize(("change", "words"), [TWICE, CUT], ids=["uid", "cells"])
def test_a_table_of_prompts_with_a_fault_is_refused(tmp_path, change, words):
    folder = dpg_bench(tmp_path)
    table = tmp_path / "dpg_bench.csv"
    save(table, table.read_text().replace(*change))
    assert words in refusal(read, "dpg_bench", folder)


@pytest.mark.parametrize(*table("missing_images_are_counted.jsonl"))
def test_missing_images_are_counted(name, removed, words, tmp_path):
    folder = MAKERS[name](tmp_path)
    for path in removed:
        place = tmp_path / path
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    notes = read_layout(folder, read_layout_file(name)).notes
    [line] = [note for note in notes if "without an image" in note]
    assert words in line


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("geneval", "mine/00001/samples/0002.jpg"),
        ("t2i_compbench", "mine/samples/two dogs_000004.jpg"),
        ("oneig", "images/anime/mine/001.png"),
        ("hpsv2", f"{HPSV2}/photo/00001.png"),
    ],
)
def test_two_files_of_one_image_are_refused(name, file, tmp_path):
    folder = MAKERS[name](tmp_path)
    save(tmp_path / file, picture(1))
    line = refusal(read_layout, folder, read_layout_file(name))
    assert "are files of the same image" in line


def test_a_folder_of_generators_is_one_of_each(vieval, tmp_path):
    for model in ("mine", "theirs"):
        geneval(tmp_path / "gen" / model)
    save(tmp_path / "gen/logs/run.txt", "no images")
    told = vieval("score", tmp_path / "gen", *JUDGE, "--out", tmp_path / "v.jsonl")
    models = [row["image_model"] for row in read_lines(tmp_path / "v.jsonl")]
    assert models == 12 * ["mine"] + 12 * ["theirs"]
    assert told.err.count("read with the GenEval layout, 12 files") == 2
    save(tmp_path / "gen/theirs/strange file.png", picture(1))
    refused = vieval("score", tmp_path / "gen", *JUDGE, "--out", "v.jsonl", code=1)
    assert "images without prompts" in refused.err


def test_folders_are_ranked_and_labelled_by_their_layout(vieval, tmp_path):
    folders = [geneval(tmp_path / "mine"), geneval(tmp_path / "theirs")]
    scores = tmp_path / "v.jsonl"
    vieval("score", *folders, *JUDGE, "--out", scores)
    ranked = ((scores,), (*folders, *JUDGE))
    printed = [vieval("rank", *command, code=None).out for command in ranked]
    [of_scores, of_folders] = [
        text.partition("Totals of GenEval")[2] for text in printed
    ]
    assert of_folders == of_scores != ""
    table = save(tmp_path / "up/dpg_bench.csv", "")
    folder = dpg_bench(table.parent)
    vieval("rank", folder, *JUDGE, "--prompts", table, code=None)
    page = tmp_path / "page.html"
    vieval("label", folders[0], "--out", page)
    assert all(prompt in page.read_text() for prompt in PROMPTS)


def test_categories_of_t2i_compbench_need_no_folder_of_samples(tmp_path):
    for place in ("color", "shape"):
        save(tmp_path / f"gen/{place}/two dogs_000003.png", picture(1))
        save(tmp_path / f"outputs/m_{place}/two dogs_000003.png", picture(1))
    assert find_layout(tmp_path / "gen") == "t2i_compbench"
    rows = read("t2i_compbench", tmp_path / "gen")
    assert [row.sample.category for row in rows] == ["color", "shape"]
    # other folders are generators, which share prompts
    source = read_layouts([tmp_path / "outputs"])
    assert [row.sample.id.image_model for row in source] == ["m_color", "m_shape"]


@pytest.mark.parametrize(
    "file", ["gen/samples/two dogs_000003.txt", "gen/metadata.csv", "gen/prompts.txt"]
)
def test_images_with_prompts_of_their_own_have_no_layout(file, tmp_path):
    folder = t2i_compbench(tmp_path / "gen")
    save(tmp_path / file, "file_name,text\n")
    assert find_layout(folder) == ""


@pytest.mark.parametrize(("text", "words"), UNREADABLE)
def test_conditions_beside_images_that_cannot_be_read_are_named(text, words, tmp_path):
    folder = geneval(tmp_path / "gen")
    save(folder / "00001/metadata.jsonl", text)
    assert f"00001/metadata.jsonl: {words}" in refusal(read, "geneval", folder)


def test_geneval_has_the_objects_of_a_prompt(tmp_path):
    for row in read("geneval", geneval(tmp_path / "gen")):
        number = int(row.sample.id.uid)
        wanted = {"tag": TAGS[number], "include": []}
        assert json.loads(row.sample.texts["objects"]) == wanted


def test_images_without_a_prompt_are_noted(tmp_path):
    folder = geneval(tmp_path / "gen")
    (folder / "00002/metadata.jsonl").unlink()
    [_, line] = read_layout(folder, read_layout_file("geneval")).notes
    assert "ignored images of 1 uid without a prompt" in line


def test_oneig_cuts_grids_of_each_generator(tmp_path):
    for row in read("oneig", oneig(tmp_path)):
        sample = row.sample
        place, number = sample.id.uid.split("/")
        first = 1000 * (place == "text") + 100 * int(number)
        first += 50 * (sample.id.image_model == "theirs")
        expected = pixels(picture(first + sample.id.draw))
        assert np.array_equal(np.asarray(decode(sample.images["output"])), expected)
        assert sample.texts["prompt"] == f"{PROMPTS[int(number)]} {sample.category}"
        again = read_bytes(reread_cells(sample).images["output"])
        assert again == read_bytes(sample.images["output"])


def test_a_grid_that_cannot_be_cut_is_a_failed_row(tmp_path):
    folder = oneig(tmp_path)
    save(folder / "anime/mine/000.webp", picture(1)[:100])
    bad = [row for row in read("oneig", folder) if row.verdict]
    assert [row.sample.id.uid for row in bad] == ["anime/000"]


def test_a_layout_of_ones_own(tmp_path):
    prompts = "prompts: {table: [p.csv], prompt: text, category: kind}"
    images = 'images: ["{category}/{uid}-{index}"]'
    save(tmp_path / "mine.yaml", f"title: Mine\n{images}\n{prompts}\n")
    save(tmp_path / "images/cats/7-1.png", picture(1))
    save(tmp_path / "images/cats/7-2.png", picture(2))
    save(tmp_path / "p.csv", "uid,kind,text\n7,cats,a cat\n")
    rows = read(str(tmp_path / "mine.yaml"), tmp_path / "images")
    samples = [row.sample for row in rows]
    found = [(one.id.uid, one.id.draw, one.texts["prompt"]) for one in samples]
    assert found == [("cats/7", 1, "a cat"), ("cats/7", 2, "a cat")]


NO_LAYOUTS.append(("title: x\nimages: [a]\nimagess: [b]", "imagess"))


@pytest.mark.parametrize(("text", "key"), NO_LAYOUTS)
def test_a_file_that_is_no_layout_is_refused(tmp_path, text, key):
    save(tmp_path / "mine.yaml", text)
    assert key in refusal(read_layout_file, str(tmp_path / "mine.yaml"))


def test_a_name_that_is_no_layout_is_refused():
    assert "did you mean geneval" in refusal(read_layout_file, "genevall")


def rows_in_terminal(printed):
    """The rows of totals with the columns that are the same in all, which stand above."""
    rows = []
    for block in printed.split("Totals of Own")[1:]:
        shared, header, *body = block.partition("\n\n")[2].split("\n\n")[0].splitlines()
        cells = dict(cell.split(" = ") for cell in shared[13:].split(", "))
        for line in body:
            row = zip(re.split("  +", header), re.split("  +", line), strict=True)
            row = {**cells, **dict(row)}
            rows.append(" ".join(row[name] for name in HEADER))
    return rows


@pytest.mark.parametrize("generators", [1, 2, 3])
@pytest.mark.parametrize("command", ["score", "rank", "report"])
def test_published_totals(command, generators, vieval, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "own.yaml", OWN)
    files, printed = [f"{number}.jsonl" for number in range(generators)], ""
    for number, file in enumerate(files):
        folder = geneval(tmp_path / f"gen{number}")
        if number:
            (folder / "00001/samples/0002.png").unlink()
            save(folder / "00002/samples/0003.png", b"no image")
        asked = (folder, *JUDGE, "--out", file, "--layout", "own.yaml")
        printed += vieval("score", *asked, code=1 if number else 0).out
    if command == "rank":
        vieval("rank", *files, "--tables", "tables", code=None)
        printed = (tmp_path / "tables/rank.md").read_text()
    elif command == "report":
        vieval("report", *files, "--out", "report", code=None)
        printed = (tmp_path / "report/totals_1.csv").read_text().replace(",", " ")
    lines = [" ".join(line.replace("|", "").split()) for line in printed.splitlines()]
    if command == "score":
        lines = rows_in_terminal(printed)
    records = [read_lines(tmp_path / file) for file in files]
    for row in chain(*map(expected_totals, records)):
        assert any(row in line for line in lines), (row, lines)
    if command != "report":
        assert "Totals of Own: share of correct images (score at least 0.87)" in printed


def expected_totals(records):
    """The rows of totals on the verdicts of a generator, by their definition."""
    scores = {}
    for record in records:
        scores.setdefault(record["uid"], []).append(record["scores"].get("PQ"))
    right = {
        uid: [score >= 0.87 for score in values if score is not None]
        for uid, values in scores.items()
    }
    shares = [sum(values) / len(values) for values in right.values()]
    cells = f"{sum(shares) / 3:.3f} {len(records)} {sum(map(len, right.values()))}"
    # what is lacking decides a prompt but where it cannot change the answer
    for decide, sure in ((all, False), (any, True)):
        decided = [
            decide(values)
            for uid, values in right.items()
            if None not in scores[uid] or decide(values) == sure
        ]
        cells += f" {sum(decided) / len(decided):.3f} {len(decided)}"
    rows = [f"mean of 3 categories {cells}"]
    for category, uid, share in zip(TAGS, right, shares, strict=True):
        rows.append(f"{category} {share:.3f} {len(scores[uid])}")
    return rows


def test_a_layout_is_for_folders(vieval, tmp_path):
    file = save(tmp_path / "a.png", picture(1))
    command = (file, "--prompt", "x", *JUDGE, "--layout", "geneval")
    refused = vieval("score", *command, code=1)
    assert "applies only to image folders" in refused.err
