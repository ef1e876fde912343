"""`vieval calibrate`: from labels to a filtered data set, and each refusal in a line."""

import itertools
import json
import re

import numpy as np
import pytest

from tests.builders import a_label_file, a_provenance, a_verdict_file
from tests.extras import needs
from tests.refusals import refusal
from tests.shard_runs import parquet, pyarrow, verdicts, write_parquet
from tests.stored_results import read_lines
from tests.verdict_files import runs_of
from vieval_plugin.api.judge import Judge

pytestmark = needs("duckdb")
SHARPNESS = ("--judge", "sharpness")


@pytest.fixture
def judged(few_draws, vieval, tmp_path):
    """Verdicts on 240 images, and a function that writes ratings of so many of them."""
    data = write_parquet(tmp_path / "data", files=2, rows_each=120)
    vieval("score", data, *SHARPNESS, "--out", tmp_path / "out")
    rows = verdicts(tmp_path / "out")
    scores = {row["uid"]: row["scores"]["PQ"] for row in rows}
    levels = np.linspace(0, 1, len(scores))
    places = dict(zip(sorted(scores, key=scores.get), levels, strict=True))
    [kind] = {row["kind"] for row in rows}

    def label(number, noise=0.1):
        """People's rating of an image is its place among all by the judge's score, and noise."""
        rng = np.random.default_rng(number)
        noisy = lambda place: np.clip(place + rng.normal(0, noise), 0, 1)
        ratings = {uid: f"{noisy(place):.3f}" for uid, place in places.items()}
        about = {"part": kind, "generator": "", "aspect": "PQ"}
        rated = rng.choice(sorted(scores), number, replace=False)
        labels = [{**about, "uid": uid, "value": ratings[uid]} for uid in rated]
        human = a_label_file(tmp_path / "labels.csv", labels)
        line = f"calibrate {tmp_path}/out --human {human} --out {tmp_path}/cal.json"
        return line.split()

    return label


def kept_rows(folder):
    """The rows of a filtered data set."""
    files = sorted(folder.rglob("*.parquet"))
    return [row for file in files for row in parquet.read_table(file).to_pylist()]


def test_from_labels_to_a_filtered_data_set(vieval, judged, tmp_path):
    cal = tmp_path / "cal.json"
    printed = vieval(*judged(200)).out
    typical = r"typical error 0\.\d\d \(guessing the median: 0\.\d\d\) on new prompts"
    begin = r"PQ of sharpness \(sharpness\) is calibrated with 200 ratings"
    assert re.match(rf"{begin}: {typical}, unknown on new generators\.\n", printed)
    held_out = "on 200 held-out labels, calibrated minus the raw score: -"
    assert f"Squared error {held_out}" in printed
    assert "Typical error on unlabelled generators: unknown" in printed
    assert "seed 0, 200 resamples" in printed
    [(scores, ratings)] = json.loads(cal.read_text())["knots"].values()
    kept = tmp_path / "kept"
    filtered = f"filter {tmp_path}/out --calibration {cal} --out {kept} --where"
    printed = vieval(filtered, "PQ_calibrated > .6").out
    assert NOTE.format(200) in printed
    raw = {row["uid"]: row["scores"]["PQ"] for row in verdicts(tmp_path / "out")}
    expected = {uid: np.interp(score, scores, ratings) for uid, score in raw.items()}
    rows = kept_rows(kept)
    found = {row["uid"]: row["PQ_calibrated"] for row in rows}
    assert found == {u: v for u, v in expected.items() if v > 0.6}
    [digest] = {row["calibration"] for row in rows}
    assert f", calibration {digest}\n" in printed


def test_a_refusal_says_how_to_go_on(judged, vieval, tmp_path, monkeypatch):
    """With so much noise some 40 labels are often too few."""
    monkeypatch.chdir(tmp_path)
    enough = r"^With about ([\d,]+) labels, the difference would be found"
    needed = {}
    for number in range(36, 46):
        printed = vieval(*judged(number, noise=0.45), code=None).out
        found = re.search(enough, printed, re.MULTILINE)
        if printed.startswith("Not calibrated: ") and found:
            needed[number] = int(found[1])
            more = f"--n {found[1]} --human {tmp_path}/labels.csv --out more.html`"
            command = printed.splitlines()[-1]
            assert more in command
    assert needed
    assert all(number < of_these <= 10 * number for number, of_these in needed.items())
    [_, *arguments] = re.search("`(.+)`", command)[1].split()
    assert "to label" in vieval(*arguments).out


NOTE = "PQ_calibrated estimates people's ratings: calibrated with {} ratings: typical error 0."


def test_each_command_adds_the_calibrated_score(vieval, judged, tmp_path):
    shards, report, data = (tmp_path / name for name in ("shards", "report", "data"))
    vieval(*judged(100))
    cal = tmp_path / "cal.json"
    note = NOTE.format(100)
    calibration = ("--calibration", cal)
    scored = ("score", data / "part-0.parquet", *SHARPNESS, *calibration, "--out")
    place = tmp_path / "v.jsonl"
    printed = vieval(*scored, place).out
    assert note in printed
    assert re.search(r"samples +PQ +PQ_calibrated", printed)
    rows = read_lines(place)
    assert all(row["scores"].keys() == {"PQ", "PQ_calibrated"} for row in rows)
    [run] = runs_of(place).values()
    name, sentence, digest = run["provenance"]["calibration"]
    assert (name, len(digest)) == ("PQ_calibrated", 16)
    assert sentence in note + printed
    vieval(*scored, tmp_path / "v.csv")
    header, *_ = (tmp_path / "v.csv").read_text().splitlines()
    assert "PQ,PQ_calibrated,status" in header
    scored = ("score", data, *SHARPNESS, "--out", shards)
    assert note in vieval(*scored, *calibration).out
    by_uid = {row["uid"]: row["scores"] for row in verdicts(shards)}
    assert {row["uid"]: row["scores"] for row in rows}.items() <= by_uid.items()
    # the same folder is not gone on with without it
    assert "calibration" in vieval(*scored, code=1).err
    image = kept_rows(data)[0]["image"]["bytes"]
    judge_in_python(cal, image, by_uid["u0"])
    # of verdicts that have the score already its error is said as well, and which calibration it is
    # by
    filtered = ("filter", shards, "--where", "PQ_calibrated > 0", "--out")
    assert note in vieval(*filtered, tmp_path / "kept").out
    kept = kept_rows(tmp_path / "kept")
    assert {row["calibration"] for row in kept} == {digest}
    assert note in vieval("report", place, "--out", report).out
    assert f"calibration {digest}" in (report / "findings.json").read_text()
    vieval(*judged(120))
    replaced = f"replacing PQ_calibrated from calibration {digest} in the verdicts"
    for printed in (
        vieval("report", place, *calibration, "--out", report).out,
        vieval(*filtered, tmp_path / "again", *calibration).out,
    ):
        assert f"note: {replaced}\n" in printed
        assert "calibrated with 120 ratings" in printed
        assert note not in printed
    printed = vieval("report", tmp_path / "out", *calibration, "--out", report).out
    assert NOTE.format(120) in printed
    assert "replacing" not in printed
    assert "PQ_calibrated" in (report / "numbers.csv").read_text()
    page = (report / "report.html").read_text()
    assert "typical error 0." in page
    assert re.search(r"PQ 0\.\d\d, PQ \(calibrated\) 0\.\d\d</span>", page)


def judge_in_python(calibration, image, scores):
    """A judge in Python has the scores of the commands, and says what it is not calibrated for."""
    options = {"store": {"use": False}}
    made = {"kind": "tig", "images": {"output": image}}
    made["texts"] = {"prompt": "a thing 0"}
    images = {"output": image, "source": image}
    edit = {"kind": "tie", "images": images, "texts": {"instruction": "x"}}
    with Judge("sharpness", calibration=calibration, options=options) as judge:
        assert judge.aspects == ("PQ", "PQ_calibrated")
        assert dict(judge([made])[0].scores) == pytest.approx(scores)
        found = judge.score([image], "a thing", aspect="PQ_calibrated")
        assert found == pytest.approx(scores["PQ_calibrated"])
        said = "for task type tig, but some samples have type tie; label samples"
        assert said in refusal(judge, [edit])


CHANGES = (
    ({"judge": "ssim"}, "the judge ssim"),
    ({"backbone": "other"}, "the backbone other"),
    ({"setting": "1shot"}, "the setting 1shot"),
    ({"pack_hash": "abc"}, "the wording abc"),
    ({"aspect": "O"}, "is for O"),
    ({"knots": {"tie": [[0], [0]]}}, "task type tie"),
    ({"knots": {"tig": [[0.5, 0.1], [0, 1]]}}, "length and be in increasing order"),
    *(({"labels": it}, "not a calibration") for it in (None, -1, True)),
    *(({"knots": it}, "not a calibration") for it in ({}, {"tig": [[True], [1]]})),
)


def test_a_calibration_of_something_else_is_refused(vieval, judged, tmp_path):
    vieval(*judged(60))
    path = tmp_path / "cal.json"
    accepted = json.loads(path.read_text())
    judge = "--judge sharpness"
    parquet_file = tmp_path / "data" / "part-0.parquet"
    commands = (
        f"filter {tmp_path}/out --where 'PQ > 0' --out {tmp_path}/kept",
        f"report {tmp_path}/out --out {tmp_path}/report",
        f"score {tmp_path}/data {judge} --out {tmp_path}/again",
        f"score {parquet_file} {judge} --out {tmp_path}/again.jsonl",
    )
    for (change, key), command in itertools.product(CHANGES, commands):
        path.write_text(json.dumps({**accepted, **change}))
        lines = vieval(command, "--calibration", path, code=1).err.splitlines()
        assert key in lines[-1], (change, command)
        assert all(line.startswith("vieval: ") for line in lines)
        written = {file.name for file in tmp_path.iterdir()}
        assert not written & {"kept", "again", "again.jsonl"}


WRONG = ("", "[1]", '"x"', "{}", '{"knots": {"tig": [[NaN], [1]]}}', "\0\1", "[" * 5000)


def test_no_file_and_other_contents_are_lines(vieval, judged, tmp_path):
    kept = f"--out {tmp_path}/kept --calibration"
    filtered = f"filter {tmp_path}/out --where 'PQ > 0' {kept}"
    said = vieval(filtered, tmp_path / "none.json", code=1).err
    assert "none.json: not a calibration (" in said
    for text in WRONG:
        (tmp_path / "cal.json").write_text(text)
        [line] = vieval(filtered, tmp_path / "cal.json", code=1).err.splitlines()
        assert "cal.json: not a calibration (" in line


def test_a_verdict_without_a_score_is_not_calibrated(vieval, judged, tmp_path):
    vieval(*judged(60))
    data = tmp_path / "data" / "part-0.parquet"
    broken = tmp_path / "broken"
    rows = parquet.read_table(data).to_pylist()
    rows[0]["image"] = {"bytes": b"no image", "path": "0.jpg"}
    parquet.write_table(pyarrow.Table.from_pylist(rows), data)
    vieval("score", tmp_path / "data", *SHARPNESS, "--out", broken)
    kept = f"--calibration {tmp_path}/cal.json --out {tmp_path}/kept"
    filtered = f"filter {broken} {kept}"
    assert "239 of 240 rows" in vieval(filtered, "--where", "PQ_calibrated >= 0").out


def test_an_accepted_calibration_that_is_no_nearer_than_the_median_says_so(
    vieval, tmp_path
):
    """Most images are rated 0, and the judge likes half of the others and a quarter of these."""
    rng = np.random.default_rng(0)
    people = rng.choice([0, 0.5], 640, p=[0.6, 0.4])
    likes = rng.uniform(size=640) < 0.25 + people / 2
    judged = np.where(likes, 0.9, 0.2).reshape(16, 40)
    scores = {f"model{n}": row.tolist() for n, row in enumerate(judged)}
    source = a_provenance(aspects=("O",))
    file = a_verdict_file(tmp_path / "v.jsonl", scores, source=source)
    images = itertools.product(scores, range(40))
    labels = [
        {"generator": name, "aspect": "O", "uid": f"p{n:03}", "value": f"{value:.3f}"}
        for (name, n), value in zip(images, people, strict=True)
    ]
    human = a_label_file(tmp_path / "labels.csv", labels)
    command = f"calibrate {file} --human {human} --out {tmp_path}/cal.json"
    sentence = "Predicting the median label for every image is, on average, at least as accurate"
    assert sentence in vieval(command).out
