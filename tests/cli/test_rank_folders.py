"""`vieval rank` of folders: which generator is best, by judges that score and that compare, and the gate."""

import base64
import csv
import io
import json
import re

import numpy as np
import PIL.Image
import pytest
from scipy import stats

from tests.fake_server import FakeServer, Fault, named, score_count
from vieval_plugin.cli import main

PROMPTS = 24


@pytest.fixture(autouse=True)
def fewer_draws(tmp_path, monkeypatch):
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 200}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))


def prompts(folder, number=PROMPTS):
    path = folder / "prompts.csv"
    path.write_text("uid,prompt\n" + "".join(f"p{n},a grey square {n}\n" for n in range(number)))
    return path


def images(folder, name, brightness, number=PROMPTS, draws=1):
    """Grey squares as bright as `brightness(prompt, draw)` from 0 to 1 says; the server takes brighter for better."""
    (folder / name).mkdir()
    for prompt in range(number):
        for draw in range(draws):
            level = round(255 * brightness(prompt, draw))
            file = f"p{prompt}.png" if draws == 1 else f"p{prompt}_{draw}.png"
            PIL.Image.new("RGB", (16, 16), (level,) * 3).save(folder / name / file)
    return folder / name


def levels_of(body):
    """Brightness of each image of a question, in order."""
    urls = [
        part["image_url"]["url"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if "image_url" in part
    ]
    return [
        float(np.asarray(PIL.Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))).mean() / 255)
        for url in urls
    ]


def words_of(body):
    contents = [message["content"] for message in body["messages"]]
    return "\n".join(c if isinstance(c, str) else "\n".join(part.get("text", "") for part in c) for c in contents)


def by_brightness(bias=0.0):
    """A judge that takes the brighter image, and of those that differ by less than `bias` the one shown first."""

    def reply(body):
        levels = levels_of(body)
        if len(levels) < 2:  # a score, or what is asked before the run
            level = round(10 * levels[0]) if levels else 5
            return json.dumps({"score": [level] * score_count(words_of(body)), "reasoning": "fine"})
        ahead = levels[0] - levels[1]
        better = "A" if abs(ahead) < bias or ahead > 0 else "B" if ahead < 0 else "both good"
        return json.dumps({"reasoning": "fine", "better": better})

    return reply


def rough(base, seed, spread=0.1):
    """Brightness around `base`, another for each prompt."""
    rng = np.random.default_rng(seed)
    own = rng.normal(0, spread, (200, 8))
    return lambda prompt, draw: float(np.clip(base + 0.15 * np.sin(prompt) + own[prompt, draw], 0.01, 0.99))


def rank(capsys, server, *arguments, code=0):
    assert main(["rank", *map(str, arguments), *named(server)]) == code
    said = capsys.readouterr()
    return said.out.splitlines(), said.err


def test_two_folders_are_compared_in_both_orders_in_one_command(tmp_path, capsys, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1)), images(tmp_path, "theirs", rough(0.5, 2))
    kept = tmp_path / "verdicts.jsonl"
    given = [mine, theirs, "--prompts", prompts(tmp_path), "--judge", "pairwise"]
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, *given, "--out", kept)
        asked = server.stats()["requests"]
    assert shown[0] == "pairwise with fake prefers mine's images to theirs'."
    first = re.match(
        r"Win rate of mine against theirs (\S+) \(95% interval (\S+) to (\S+)\) on 24 prompts, ties counting half\.",
        shown[1],
    )
    ahead = np.mean([rough(0.6, 1)(n, 0) > rough(0.5, 2)(n, 0) for n in range(PROMPTS)])
    assert float(first[1]) == pytest.approx(ahead, abs=0.0051)
    assert float(first[2]) < float(first[1]) < float(first[3])
    assert asked >= 2 * PROMPTS
    assert "bias" not in "\n".join(shown)
    # what is kept is ranked the same
    assert vieval("rank", kept).out.splitlines()[:2] == shown[:2]


def test_a_judge_of_the_first_place_is_told_in_the_first_lines(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1)), images(tmp_path, "theirs", rough(0.5, 2))
    with FakeServer(reply=by_brightness(bias=0.15)) as server:
        shown, _ = rank(capsys, server, mine, theirs, "--prompts", prompts(tmp_path), "--judge", "pairwise")
    apart = [rough(0.6, 1)(n, 0) - rough(0.5, 2)(n, 0) for n in range(PROMPTS)]
    contradicted = sum(abs(difference) < 0.15 for difference in apart)
    share = (PROMPTS + contradicted) / 2 / PROMPTS  # of the others each place has half
    assert f"Position bias: the judge prefers the image shown first in {100 * share:.0f}% (95% interval " in shown[2]
    assert f"contradicts itself in {contradicted} of 24 contests" in shown[2]


def test_folders_are_compared_by_means_of_any_judge_and_failures_are_said(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.7, 1)), images(tmp_path, "theirs", rough(0.5, 2))
    (mine / "p3.png").unlink()
    (mine / "p4.png").write_text("no image")
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, mine, theirs, "--prompts", prompts(tmp_path), "--judge", "viescore")
    assert shown[0] == "viescore with fake rates mine's images better than theirs'."
    assert re.fullmatch(
        r"Mean score of mine 0\.\d\d, 0\.\d\d more than theirs \(95% interval 0\.\d\d to 0\.\d\d\), on 22 prompts\.",
        shown[1],
    )
    assert shown[2] == "Failed verdicts: mine: no_image 2 of 24."
    assert re.match(r"First no_image: own/tig/mine/p\d: ", shown[3])


@pytest.mark.parametrize(("level", "without_new", "difference"), [(0.1, 0, 0.5), (0.1, 3, 0.425), (0.9, 3, 0.025)])
def test_a_missing_image_is_a_failure_of_its_own_generator_alone(
    tmp_path, capsys, vieval, level, without_new, difference
):
    new, old = images(tmp_path, "new", lambda *_: 0.9, 40), images(tmp_path, "old", lambda *_: level, 40)
    for folder, absent in ((old, range(5)), (new, range(5, 5 + without_new))):
        for prompt in absent:
            (folder / f"p{prompt}.png").unlink()
    kept = tmp_path / "v.jsonl"
    given = [new, old, "--prompts", prompts(tmp_path, 40), "--judge", "pairwise", "--margin", "0.2", "--out", kept]
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, *given)
    of_new = "new: no_image 3 of 40; " if without_new else ""
    assert f"Failed verdicts: {of_new}old: no_image 5 of 40." in shown
    assert shown[0] == "new is not worse than old by more than the margin."
    sentence = shown[1]
    assert f"failures as the lowest score: difference {difference:.3f}, " in sentence
    assert sentence in vieval("rank", kept, "--margin", "0.2").out.splitlines()
    assert main(["show", str(kept), "own/tig/p0 new old", "--html", str(tmp_path / "p0.html")]) == 0
    assert "the image output is not there" in (tmp_path / "p0.html").read_text()


def test_three_and_five_folders_have_an_answer(tmp_path, capsys):
    given = [
        images(tmp_path, name, rough(base, seed))
        for seed, (name, base) in enumerate({"a": 0.8, "b": 0.5, "c": 0.5, "d": 0.25, "e": 0.5}.items())
    ]
    with FakeServer(reply=by_brightness()) as server:
        flags = ["--prompts", prompts(tmp_path), "--judge", "pairwise"]
        three, _ = rank(capsys, server, *given[:3], *flags)
        alike, _ = rank(capsys, server, *given[1:3], given[4], *flags)
        five, _ = rank(capsys, server, *given, *flags)
        behind, _ = rank(capsys, server, *given[1:4], *flags)
    assert three[0] == "pairwise with fake likes a's images best of the three."
    assert re.match(
        r"Win rate of a against [bc] [01]\.\d+ \((95%|p) .*\) on 24 prompts, ties counting half\.", three[1]
    )
    assert alike[0] == "The three generators cannot be told apart."
    assert re.match(r"Win rate from 0\.\d.* for [bce] to 0\.\d.* for [bce]\. The smallest p of 3 pairs is ", alike[1])
    assert five[0] == "pairwise with fake likes a's images best of the five."
    assert any(line.endswith("Holm over 10 pairs") for line in five)
    assert re.match(r"[bc] has the highest win rate, but cannot be told apart from [bc]\.", behind[0])
    assert "b is better than d" in behind[1]


def test_ties_and_one_prompt_are_no_answer_and_said_so(tmp_path, capsys):
    for number, name in ((PROMPTS, "same"), (1, "one")):
        folder = tmp_path / name
        folder.mkdir()
        mine = images(folder, "mine", lambda prompt, draw: 0.5 + prompt / 100, number)
        base = 0.5 if name == "same" else 0.4
        theirs = images(folder, "theirs", lambda prompt, draw, base=base: base + prompt / 100, number)
        with FakeServer(reply=by_brightness()) as server:
            flags = ["--prompts", prompts(folder, number)]
            won, _ = rank(capsys, server, mine, theirs, *flags, "--judge", "pairwise")
            scored, _ = rank(capsys, server, mine, theirs, *flags, "--judge", "viescore")
        if name == "same":
            assert won[1] == "pairwise with fake calls each of the 24 prompts a tie, so no generator wins."
            assert scored[1].endswith(", 0.00 more than theirs (p = 1.000), on 24 prompts.")
        else:
            assert won[1].startswith("Win rate of mine against theirs 1.00 (")
            assert scored[1].startswith("Mean score of mine 0.50, 0.10 more than theirs (")
            assert scored[1].endswith(", on 1 prompt.")
            assert won[2] == scored[2] == "At least 6 prompts are needed to show a difference."
        assert won[0] == scored[0] == "mine and theirs cannot be told apart."


def test_folders_of_one_name_are_called_by_what_differs_in_their_paths(tmp_path, capsys):
    for run, level in (("runA", 0.9), ("runB", 0.1)):
        (tmp_path / run).mkdir()
        images(tmp_path / run, "images", lambda prompt, draw, level=level: level - prompt / 100, 8)
    folders = [tmp_path / run / "images" for run in ("runA", "runB")]
    with FakeServer(reply=by_brightness()) as server:
        given = ["--prompts", prompts(tmp_path, 8), "--judge", "viescore"]
        shown, _ = rank(capsys, server, *folders, *given)
        _, error = rank(capsys, server, folders[0], folders[0], *given, code=1)
    assert shown[0].endswith(" rates runA's images better than runB's.")
    assert "another folder is called images as well" in error


def test_generators_that_cannot_be_told_apart_keep_the_order_of_the_command(tmp_path, capsys):
    new, old = images(tmp_path, "new", rough(0.47, 1)), images(tmp_path, "old", rough(0.5, 2))
    (tmp_path / "one").mkdir()
    one = images(tmp_path / "one", "new", lambda prompt, draw: 0.4, 1)
    other = images(tmp_path / "one", "old", lambda prompt, draw: 0.5, 1)
    with FakeServer(reply=by_brightness()) as server:
        flags = ["--prompts", prompts(tmp_path), "--judge"]
        scored, _ = rank(capsys, server, new, old, *flags, "viescore", "--margin", "0.2", code=0)
        won, _ = rank(capsys, server, new, old, *flags, "pairwise")
        lost, _ = rank(capsys, server, one, other, "--prompts", prompts(tmp_path / "one", 1), "--judge", "pairwise")
    assert won[0] == lost[0] == "new and old cannot be told apart."
    less, low, high = re.search(
        r"new 0\.\d+, (0\.\d+) less than old \(95% interval (\S+) to (\S+)\)", scored[2]
    ).groups()
    of_gate = re.search(r"Difference (-\S+) \[(\S+), (\S+)\]", scored[1]).groups()
    assert [float(less), float(low), float(high)] == pytest.approx([-float(of_gate[n]) for n in (0, 2, 1)], abs=0.0051)
    assert re.match(r"Win rate of new against old 0\.[1-4]\d ", won[1])
    assert lost[1].startswith("Win rate of new against old 0.00 (")


def test_the_gate_of_a_win_rate_counts_one_more_lost_contest_and_few_prompts_decide_nothing(tmp_path, capsys):
    for number, code in ((12, 0), (5, 4)):
        folder = tmp_path / str(number)
        folder.mkdir()
        mine = images(folder, "mine", lambda prompt, draw: 0.9, number)
        theirs = images(folder, "theirs", lambda prompt, draw: 0.1, number)
        given = [mine, theirs, "--prompts", prompts(folder, number), "--judge", "pairwise", "--margin", "0.02"]
        with FakeServer(reply=by_brightness()) as server:
            shown, said = rank(capsys, server, *given, code=code)
        sentence = shown[1]
        assert "even equal scores could not pass" in said
        if code:
            assert sentence.endswith(" At least 6 prompts are needed.")
            continue
        differences = [*[0.5] * number, -0.5]
        low = np.mean(differences) - stats.t.ppf(0.975, number) * np.std(differences, ddof=1) / np.sqrt(number + 1)
        assert (
            sentence
            == f"Difference 0.500 on 12 prompts, at worst {low:.3f} with one bad prompt more; the margin is 0.02."
        )


def test_several_images_of_a_prompt_are_paired_by_number(tmp_path, capsys):
    mine = images(tmp_path, "mine", rough(0.6, 1), 10, draws=2)
    theirs = images(tmp_path, "theirs", rough(0.5, 2), 10, draws=2)
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, mine, theirs, "--prompts", prompts(tmp_path, 10), "--judge", "pairwise")
    assert shown[1].endswith(" on 20 contests, ties counting half.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["v.jsonl", "--judge", "pairwise"], "--judge is for folders of images, with --prompts"),
        (["v.jsonl", "--columns", "uid=key"], "--columns is for folders of images, with --prompts"),
        (["v.jsonl", "--out", "x.jsonl"], "--out is for folders of images, with --prompts"),
        (["mine", "--prompts", "prompts.csv", "--judge", "pairwise"], "pairwise compares image models, and"),
    ],
)
def test_what_cannot_be_ranked_is_one_line(tmp_path, monkeypatch, vieval, arguments, said):
    monkeypatch.chdir(tmp_path)
    images(tmp_path, "mine", rough(0.5, 1), 3)
    prompts(tmp_path, 3)
    flags = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"] if "pairwise" in arguments[-1:] else []
    assert said in vieval("rank", *arguments, *(flags if "--prompts" in arguments else []), code=1).err.splitlines()[-1]


def test_a_gate_that_cannot_decide_is_refused_before_anything_is_judged(tmp_path, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.5, 1), 3), images(tmp_path, "theirs", rough(0.5, 2), 3)
    out = tmp_path / "v.jsonl"
    given = ["--prompts", prompts(tmp_path, 3), "--judge", "sharpness", "--margin", "0.1", "--out", out]
    assert vieval("rank", mine, *given, code=1).err.splitlines() == [
        "vieval: --margin compares mine with another generator, and there is none; name the folder of its images too"
    ]
    assert vieval("rank", mine, theirs, *given, "--judge", "histogram", code=1).err.splitlines() == [
        "vieval: --margin decides by one judge, and here are 2 (sharpness, histogram); name one"
    ]
    assert not out.exists()
    vieval("rank", mine, *given[:4], "--out", out, code=1)  # grey squares have no sharpness
    [line] = vieval("rank", out, "--margin", "0.1", code=1).err.splitlines()
    assert line.endswith("and there is none; rank verdicts on its images with these")


def test_judges_that_cannot_run_do_not_take_the_others_along(tmp_path, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 8), images(tmp_path, "theirs", rough(0.5, 2), 8)
    given = [mine, theirs, "--prompts", prompts(tmp_path, 8), "--judge", "sharpness", "--judge", "clip_score"]
    said = vieval("rank", *given, "--scorer", tmp_path / "absent", code=1)
    assert "Mean PQ over prompts, by sharpness" in said.out
    assert "clip_score: " in said.err.splitlines()[-1]


def test_failed_calls_end_with_1_without_a_gate(tmp_path, capsys, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 8), images(tmp_path, "theirs", rough(0.5, 2), 8)
    level = round(255 * rough(0.6, 1)(3, 0)) / 255  # of one image, asked about as often as it may be
    faults = lambda number, body: Fault("overlong") if level in levels_of(body) else None  # noqa: E731
    with FakeServer(reply=by_brightness(), faults=faults) as server:
        given = [mine, theirs, "--prompts", prompts(tmp_path, 8), "--judge", "pairwise"]
        shown, said = rank(capsys, server, *given, code=1)
        rank(capsys, server, *given, "--margin", "0.05", "--out", tmp_path / "v.jsonl", code=4)
    assert " on 7 prompts," in shown[1]
    assert "some calls failed" in said.splitlines()[-1]
    printed = vieval("rank", tmp_path / "v.jsonl", "--margin", "0.05", code=4).out
    assert "1 of 8 prompts of mine have no verdict, or one that a failed call or tool left without a score" in printed
    assert f"judge them again: `vieval rank {mine} {theirs} --prompts " in printed


def test_what_a_call_failed_on_is_judged_once_more(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 8), images(tmp_path, "theirs", rough(0.5, 2), 8)
    faults = lambda number, body: Fault("overlong") if number == 3 else None  # noqa: E731
    with FakeServer(reply=by_brightness(), faults=faults) as server:
        shown, said = rank(capsys, server, mine, theirs, "--prompts", prompts(tmp_path, 8), "--judge", "pairwise")
    assert " on 8 prompts," in shown[1]
    assert "verdicts: ok 8" in said


def test_the_page_has_the_answer_and_the_pictures_side_by_side(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 8), images(tmp_path, "theirs", rough(0.5, 2), 8)
    for judge in ("pairwise", "viescore"):
        page = tmp_path / f"{judge}.html"
        with FakeServer(reply=by_brightness()) as server:
            given = [mine, theirs, "--prompts", prompts(tmp_path, 8), "--judge", judge, "--html", page]
            shown, _ = rank(capsys, server, *given)
        text = page.read_text()
        assert shown[0].replace("<", "&lt;") in text
        cards = text.split('id="cards"', 1)[1]
        assert cards.count("<article") == 8
        assert cards.count("<use href=") == 16
        assert len(re.findall(r"<figcaption><b>(?:mine|theirs)", cards)) == 16
        assert text.count("<script") == 1
        assert len(re.search('data-cards="([^"]*)"', text)[1].split()) == 8


def test_the_best_image_of_each_prompt(tmp_path, capsys):
    mine = images(tmp_path, "mine", rough(0.5, 1), 4, draws=3)
    given = [mine, "--prompts", prompts(tmp_path, 4), "--judge", "viescore", "--best-of", "--tables", tmp_path / "t"]
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, *given)
    assert shown[0] == "in all rows: generator = mine, of = 3"
    with (tmp_path / "t" / "best_of.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    scores = {n: [round(10 * round(255 * rough(0.5, 1)(n, draw)) / 255) for draw in range(3)] for n in range(4)}
    assert [(row[0], int(row[2]), row[4]) for row in rows] == [
        (f"p{n}", int(np.argmax(levels)), "3") for n, levels in scores.items()
    ]
    assert rows[0][5] == str(mine / f"p0_{np.argmax(scores[0])}.png")


def test_a_judge_that_contradicts_itself_decides_nothing(tmp_path, capsys):
    """One that always says "first" is level on every prompt, with an interval of no width."""
    mine, theirs = images(tmp_path, "mine", rough(0.2, 1)), images(tmp_path, "theirs", rough(0.8, 2))
    given = [mine, theirs, "--prompts", prompts(tmp_path), "--judge", "pairwise", "--margin", "0.02"]
    with FakeServer(reply=by_brightness(bias=2)) as server:
        shown, _ = rank(capsys, server, *given, "--out", tmp_path / "v.jsonl", "--html", tmp_path / "p.html", code=4)
        several, _ = rank(capsys, server, *given[:-2], "--judge", "viescore")
    assert "so its answers decide nothing" in shown[1]
    assert shown[2] == "In 24 of 24 contests it gives opposite answers to the two orders of one pair."
    assert "Take a judge that scores each image." in shown
    assert any(line.endswith("contradicts itself in half of the contests or more") for line in shown)
    assert not any(line.startswith("rank  ") or line.startswith("better - worse") for line in shown)
    assert re.search(rf"<h1[^>]*>{re.escape(shown[0])}", (tmp_path / "p.html").read_text())
    assert several[0].startswith("Of two judges, one finds theirs significantly best and one contradicts itself")
    assert "--human" not in "\n".join(shown)  # which corrects no win rates
    assert main(["report", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "out")]) == 0
    said = "pairwise with fake decides nothing, because it contradicts itself."
    assert said in (tmp_path / "out" / "report.md").read_text()
    assert shown[0] == "It cannot be told whether mine is worse than theirs by more than the margin."
    assert shown[1].endswith(" The judge contradicts itself in 24 of 24 contests, so its answers decide nothing.")


def test_equal_scores_decide_nothing_on_too_few_prompts_and_the_very_same_files_need_no_judge(tmp_path, capsys, vieval):
    mine, same = (images(tmp_path, name, lambda prompt, draw: 0.5) for name in ("mine", "same"))
    theirs = images(tmp_path, "theirs", lambda prompt, draw: 0.51)
    given = ["--prompts", prompts(tmp_path), "--judge", "viescore", "--margin"]
    with FakeServer(reply=by_brightness()) as server:
        shown, said = rank(capsys, server, mine, theirs, *given, "0.02", code=4)
        assert "on all 24 prompts even equal scores could not pass, which takes 148" in said
        assert any(line.endswith(" prompts would tell, if the difference stays at 0.000.") for line in shown)
        asked = server.stats()["requests"]
        for margin in ("0.02", "0"):
            shown, _ = rank(capsys, server, mine, same, *given, margin)
            assert shown == [
                "mine is not worse than same by more than the margin.",
                "All their pictures are the very same files, so the difference is 0.",
            ]
        assert server.stats()["requests"] == asked
        out = tmp_path / "v.jsonl"
        rank(capsys, server, mine, same, *given, "0.02", "--out", out)
    assert "the very same files" in vieval("rank", out, "--margin", "0.02").out


def test_replies_that_say_nothing_end_with_1(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 3), images(tmp_path, "theirs", rough(0.5, 2), 3)
    with FakeServer(reply=lambda body: "I cannot say.") as server:
        given = [mine, theirs, "--prompts", prompts(tmp_path, 3), "--judge", "viescore"]
        shown, _ = rank(capsys, server, *given, code=1)
    assert shown[:2] == [
        "No generator has enough scores on your images.",
        "6 of 6 verdicts have no score (6 parse_failure).",
    ]


def test_folders_of_images_without_prompts_are_told_to_name_them(tmp_path, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 3), images(tmp_path, "theirs", rough(0.5, 2), 3)
    for flags in ([], ["--judge", "sharpness"], ["--model", "m"]):
        [line] = vieval("rank", mine, theirs, *flags, code=1).err.splitlines()
        assert line == f"vieval: {mine} and {theirs}: images without prompts; pass --prompts FILE"


def test_columns_of_prompts_may_have_other_names(tmp_path, vieval):
    folders = [images(tmp_path, name, rough(0.5, seed), 3) for seed, name in enumerate(("mine", "theirs"))]
    path = tmp_path / "prompts.csv"
    path.write_text("name,wording\n" + "".join(f"p{n},a grey square {n}\n" for n in range(3)))
    given = ["rank", *folders, "--prompts", path, "--judge", "sharpness", "--out", tmp_path / "v.jsonl"]
    vieval(*given, "--columns", "uid=name,prompt=wording", code=1)  # grey squares have no sharpness
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert {(row["uid"], row["texts"]["prompt"]) for row in rows} == {(f"p{n}", f"a grey square {n}") for n in range(3)}
    [line] = vieval(*given, "--columns", "uid=nam,prompt=wording", code=1).err.splitlines()
    assert "'nam'" in line


def numbered(folder, names):
    """Images brighter and brighter, under these names."""
    folder.mkdir()
    for place, name in enumerate(names):
        PIL.Image.new("RGB", (16, 16), (20 * place,) * 3).save(folder / name)
    return folder


def test_images_without_uids_are_those_of_the_prompts_that_their_names_number(tmp_path, vieval):
    mine = numbered(tmp_path / "mine", [f"{n}.png" for n in range(11)])
    theirs = numbered(tmp_path / "theirs", [f"image_{n:02}_s3.png" for n in range(1, 12)])
    texts = [f"square {n}" for n in range(11)]
    (tmp_path / "prompts.txt").write_text("\n".join(texts))
    (tmp_path / "prompts.csv").write_text("prompt\n" + "\n".join(texts))
    for name in ("prompts.txt", "prompts.csv"):
        out = tmp_path / f"{name}.jsonl"
        vieval("rank", mine, theirs, "--prompts", tmp_path / name, "--judge", "sharpness", "--out", out, code=1)
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert {(row["uid"], row["texts"]["prompt"]) for row in rows} == {
            (str(n), text) for n, text in enumerate(texts, start=1)
        }
        files = {(row["image_model"], row["uid"]): row["images"]["output"]["file"] for row in rows}
        assert (files["mine", "3"], files["mine", "11"]) == ("mine/2.png", "mine/10.png")
        assert files["theirs", "11"] == "theirs/image_11_s3.png"


def test_folders_with_prompts_of_their_own_need_no_flag(tmp_path, capsys):
    mine, theirs = images(tmp_path, "mine", rough(0.6, 1), 3), images(tmp_path, "theirs", rough(0.5, 2), 3)
    prompts(mine, 3)
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, mine, theirs, "--judge", "viescore")
        assert shown[1].endswith(", on 3 prompts.")
        (mine / "prompts.csv").unlink()
        for file in [*mine.glob("*.png"), *theirs.glob("*.png")]:
            file.with_suffix(".txt").write_text("a grey square")
        shown, _ = rank(capsys, server, mine, theirs, "--judge", "viescore")
        assert shown[1].endswith(", on 3 prompts.")


def test_an_image_is_no_results(tmp_path, vieval):
    image = images(tmp_path, "mine", rough(0.6, 1), 1) / "p0.png"
    [line] = vieval("rank", image, code=1).err.splitlines()
    assert line.startswith(f"vieval: {image}: an image, no results; ")


def test_a_report_of_contests_has_the_answer_and_win_rates(tmp_path, capsys, vieval):
    mine, theirs = images(tmp_path, "mine", rough(0.9, 1)), images(tmp_path, "theirs", rough(0.2, 2))
    given = [mine, theirs, "--prompts", prompts(tmp_path), "--judge", "pairwise", "--out", tmp_path / "v.jsonl"]
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, *given)
    assert vieval("report", tmp_path / "v.jsonl", "--out", tmp_path / "out").out.splitlines()[:2] == shown[:2]
    text = (tmp_path / "out" / "report.md").read_text()
    assert "Win rate of mine against theirs 1.00 (" in text
    assert "| 1 | mine | 1.000" in text
    assert "Generators: means over prompts" not in text


def test_differences_of_win_rates_name_their_unit_and_equals_are_not_better(tmp_path, capsys):
    given = [images(tmp_path, name, lambda prompt, draw: 0.5) for name in ("a", "b", "c")]
    with FakeServer(reply=by_brightness()) as server:
        shown, _ = rank(capsys, server, *given, "--prompts", prompts(tmp_path), "--judge", "pairwise")
    # of equals it is the same for every pair, and what the table is about is not folded
    [header] = [line for line in shown if line.startswith("first - second ")]
    assert "win rate minus one half [95%]" in header
    assert re.match(r"a - b +0\.000$", shown[shown.index(header) + 1])


@pytest.mark.parametrize(("flag", "suffix"), [("--out", ".jsonl"), ("--html", ".html"), ("--junit", ".xml")])
@pytest.mark.parametrize("read", ["prompts.csv", "mine/p0.png", "people.csv", "people.html"])
def test_nothing_that_is_read_is_replaced(tmp_path, vieval, flag, suffix, read):
    folders = [images(tmp_path, name, lambda prompt, draw: 0.5, number=2) for name in ("mine", "theirs")]
    prompts(tmp_path, 2)
    for name in ("people.csv", "people.html"):
        (tmp_path / name).write_text("benchmark,part,uid,generator,draw,rater,aspect,value\n")
    before = (tmp_path / read).read_bytes()
    given = [*folders, "--prompts", tmp_path / "prompts.csv", "--judge", "sharpness", "--margin", "0.1"]
    human = ["--human", tmp_path / read] if read.startswith("people") else []
    [line] = vieval("rank", *given, *human, flag, tmp_path / read, code=1).err.splitlines()
    assert (tmp_path / read).read_bytes() == before
    is_page = read.endswith(suffix)
    assert line.endswith(f"replace it; choose another {flag}" if is_page else f"end the name of {flag} in {suffix}")
