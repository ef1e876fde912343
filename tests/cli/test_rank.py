"""`vieval rank`: which generator is best, on a terminal and in files."""

import itertools
import json

import numpy as np
import pytest

from tests.stored_results import csv_rows, result, write_results
from vieval_plugin.cli import main
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, Sample, SampleId, Status, Verdict
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED
from vieval_plugin.records import Provenance
from vieval_plugin.run.verdict_lines import write_verdicts

SOURCE = Provenance(
    "viescore", ("0shot",), ("SC", "PQ", "O"), "judge-7b", "viescore/v1", "abc"
)
MEAN, LABELS = "mean over prompts", "mean of people's labels"
HEADER = "benchmark,part,uid,generator,draw,rater,aspect,value"


@pytest.fixture(autouse=True)
def fewer_draws(tmp_path, monkeypatch):
    (tmp_path / "vieval.yaml").write_text("statistics: {draws: 200}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))


def quality(base, seed):
    """A generator whose images are as good as `base` and as the prompt lets them be."""
    rng = np.random.default_rng([5, seed])
    own = rng.normal(0, 0.08, (60, 8))
    return lambda prompt, draw: float(
        np.clip(base + 0.2 * np.sin(prompt) + own[prompt, draw], 0, 1)
    )


GENERATORS = {
    "good": quality(0.7, 1),
    "also": quality(0.69, 2),
    "poor": quality(0.45, 3),
}


def verdicts(path, generators, prompts=40, draws=1, source=SOURCE):
    """What `vieval score` writes of two kinds of prompts, half of them with a tag."""
    samples, found = [], []
    for name, score in generators.items():
        for prompt in range(prompts):
            for draw in range(draws):
                identity = SampleId(
                    "own", "tie" if prompt % 4 == 0 else "tig", name, f"u{prompt}", draw
                )
                tags = ("people",) if prompt % 2 else ()
                category = "cats" if prompt % 3 else "dogs"
                sample = Sample(identity, {}, tags=tags, category=category)
                samples.append(sample)
                value = score(prompt, draw)
                scored = (
                    {}
                    if value is None
                    else {"SC": value, "PQ": 0.5, "O": (value * 0.5) ** 0.5}
                )
                found.append(
                    Verdict(scored, Status.REFUSAL if value is None else Status.OK)
                )
    write_verdicts(path, samples, found, source)
    return path


def ratings(path, rows):
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def rank(capsys, *arguments, code=0):
    assert main(["rank", *map(str, arguments)]) == code
    said = capsys.readouterr()
    return said.out + said.err


def rows_under(shown, title):
    """The rows of the table below the first title that begins so."""
    lines = shown.splitlines()
    [start, *_] = [
        number for number, line in enumerate(lines) if line.startswith(title)
    ]
    end = lines.index("", start + 2)
    table = [
        line for line in lines[start + 2 : end] if not line.startswith("in all rows: ")
    ]
    return [line.split() for line in table[1:]]


def rows_of_markdown(text, title):
    """The first two cells of the rows of the table below the first title that begins so."""
    [start, *_] = [
        number for number, line in enumerate(text.splitlines()) if title in line
    ]
    rows = itertools.takewhile(
        lambda line: line.startswith("|"), text.splitlines()[start + 4 :]
    )
    return [[cell.strip() for cell in row.split("|")[1:3]] for row in rows]


def test_generators_are_ranked_and_their_differences_tested(tmp_path, capsys):
    out = tmp_path / "out"
    shown = rank(capsys, verdicts(tmp_path / "v.jsonl", GENERATORS), "--tables", out)
    title = "Your images: Mean O over prompts, by viescore 0shot (judge-7b); Holm correction over 3 pairs"
    first, evidence, *_ = shown.splitlines()
    assert (
        first
        == "viescore with judge-7b gives good the highest O, but cannot tell it apart from also."
    )
    assert evidence.startswith("Mean O of good: 0.59 (95% interval 0.57 to 0.6")
    assert evidence.endswith(". good is better than poor. also is better than poor.")
    assert [row[:2] for row in rows_under(shown, title)] == [
        ["1-2", "good"],
        ["1-2", "also"],
        ["3", "poor"],
    ]
    assert (
        "These images have no human ratings, and a judge can disagree with people. Rate 40 prompts of "
        "each generator"
    ) in shown
    assert f"`vieval label {tmp_path / 'v.jsonl'} --n 120 --out label.html`" in shown
    written = [row for row in csv_rows(out / "numbers.csv") if not row["breakdown"]]
    of_poor = {(row["aspect"], row["system"]): row for row in written}["SC", "poor"]
    score = [GENERATORS["poor"](prompt, 0) for prompt in range(40)]
    assert float(of_poor["value"]) == pytest.approx(np.mean(score), abs=1e-5)
    assert float(of_poor["low"]) < np.mean(score) < float(of_poor["high"])
    [pair] = [
        row
        for row in csv_rows(out / "pairs.csv")
        if (row["aspect"], row["breakdown"], row["better"], row["worse"])
        == ("SC", "", "good", "poor")
    ]
    assert float(pair["p_adjusted"]) < 0.02
    assert 0.15 < float(pair["low"]) < float(pair["difference"]) < float(pair["high"])
    document = json.loads(
        (out / "findings.json").read_text(), parse_constant=pytest.fail
    )
    assert len(document["numbers"]) == len(csv_rows(out / "numbers.csv"))
    assert document["answers"][0]["title"] == first


def test_kinds_tags_and_categories_have_rankings_of_their_own(tmp_path, capsys):
    out = tmp_path / "out"
    rank(capsys, verdicts(tmp_path / "v.jsonl", GENERATORS), "--tables", out)
    shown = (out / "rank.md").read_text()
    values = {"part": ["tie", "tig"], "category": ["dogs", "cats"], "tag": ["people"]}
    for breakdown, expected in values.items():
        assert (
            list(
                dict.fromkeys(
                    row[0] for row in rows_of_markdown(shown, f"### By {breakdown}")
                )
            )
            == expected
        )
    written = csv_rows(out / "numbers.csv")
    counts = {
        (row["breakdown"], row["breakdown_value"]): row["n"]
        for row in written
        if row["breakdown"]
    }
    assert counts == {
        **{("part", "tie"): "10", ("part", "tig"): "30", ("tag", "people"): "20"},
        **{("category", "dogs"): "14", ("category", "cats"): "26"},
    }
    [of_poor] = [
        r
        for r in written
        if (r["breakdown_value"], r["aspect"], r["system"]) == ("tie", "O", "poor")
    ]
    assert (of_poor["rank_from"], of_poor["rank_to"]) == ("3", "3")


def test_generators_in_several_files_are_ranked_together(tmp_path, capsys):
    failing = {
        "poor": lambda prompt, draw: (
            None if prompt < 10 else GENERATORS["poor"](prompt, draw)
        )
    }
    first = verdicts(tmp_path / "a.jsonl", {"good": GENERATORS["good"]})
    shown = rank(capsys, first, verdicts(tmp_path / "b.jsonl", failing))
    assert rows_under(
        shown,
        "Your images: Mean O over prompts, by viescore 0shot (judge-7b); Holm correction over 1 pair",
    )[1][-5:] == [*("30", "of", "40"), *("refusal", "10")]
    assert "in all rows: PQ = 0.500, images = 40" in shown
    title = shown.splitlines()[0]
    assert title == (
        "viescore with judge-7b rates good's images better than poor's, and poor fails more "
        "often than good."
    )
    assert "), on 30 prompts." in shown
    assert "Failed verdicts: poor (refusal 10 of 40)." in shown


def test_the_best_of_several_images_counts_the_same_number_for_all(tmp_path, capsys):
    """One generator has four images of each prompt and the other two: both count by the best of
    two.
    """
    four = verdicts(tmp_path / "four.jsonl", {"good": GENERATORS["good"]}, draws=4)
    two = verdicts(tmp_path / "two.jsonl", {"poor": GENERATORS["poor"]}, draws=2)
    rank(capsys, four, two, "--tables", tmp_path / "out")
    best = {
        row["system"]: float(row["value"])
        for row in csv_rows(tmp_path / "out" / "numbers.csv")
        if (row["aspect"], row["breakdown"]) == ("SC", "")
        and "best of 2" in row["statistic"]
    }
    rows = [
        [GENERATORS["good"](prompt, draw) for draw in range(4)] for prompt in range(40)
    ]
    images = np.array(rows)
    pairs = [images[:, [i, j]].max(axis=1) for i in range(4) for j in range(i)]
    assert best["good"] == pytest.approx(np.mean(pairs), abs=1e-5)
    assert best["poor"] == pytest.approx(
        np.mean(
            [
                max(GENERATORS["poor"](prompt, draw) for draw in range(2))
                for prompt in range(40)
            ]
        ),
        abs=1e-5,
    )


def labels(generator, bias, count=20, raters=("ann",)):
    """Ratings of a judge that is wrong by `bias`, of the first images."""
    for prompt in range(count):
        value = min(max((GENERATORS[generator](prompt, 0) or 0) - bias, 0), 1)
        for rater in raters:
            yield f"own,{'tie' if prompt % 4 == 0 else 'tig'},u{prompt},{generator},,{rater},SC,{value:.4f}"


def test_some_ratings_correct_a_judge_that_likes_a_generator_too_much(tmp_path, capsys):
    rows = [*labels("good", 0.25), *labels("poor", -0.1)]
    given = (
        verdicts(tmp_path / "v.jsonl", GENERATORS),
        "--human",
        ratings(tmp_path / "r.csv", rows),
    )
    shown = rank(capsys, *given, "--tables", tmp_path / "out")
    assert "by prediction-powered inference" in shown
    written = [
        row
        for row in csv_rows(tmp_path / "out" / "numbers.csv")
        if (row["aspect"], row["breakdown"]) == ("SC", "")
    ]
    alone, corrected, labelled = (
        {row["system"]: row for row in written if row["statistic"] == name}
        for name in (MEAN, CORRECTED.name, LABELS)
    )
    assert corrected["also"]["value"] == ""
    assert corrected["also"]["reason"] == "its images have no ratings"
    for name, bias in (("good", 0.25), ("poor", -0.1)):
        judged = np.mean([GENERATORS[name](prompt, 0) for prompt in range(40)])
        assert float(alone[name]["value"]) == pytest.approx(judged, abs=1e-5)
        assert float(corrected[name]["value"]) == pytest.approx(judged - bias, abs=0.01)
        widths = [
            float(row["high"]) - float(row["low"])
            for row in (corrected[name], labelled[name])
        ]
        assert widths[0] < widths[1]
        assert (labelled[name]["n"], corrected[name]["n"]) == ("20", "40")


def test_raters_are_told_how_far_they_agree(tmp_path, capsys):
    rows = [
        *labels("good", 0.25, raters=("ann", "ben")),
        *labels("poor", 0, 4, raters=("cem",)),
    ]
    given = verdicts(tmp_path / "v.jsonl", GENERATORS)
    shown = rank(capsys, given, "--human", ratings(tmp_path / "r.csv", rows))
    found = rows_under(shown, "Agreement between human raters")
    assert found == [["SC", "3", "24", "20", "1.000"]]


def test_ratings_of_some_other_samples_are_left_out_with_a_note(tmp_path, capsys):
    rows = [*labels("good", 0.25), "own,tig,elsewhere,good,,ann,SC,1"]
    given = verdicts(tmp_path / "v.jsonl", {"good": GENERATORS["good"]})
    shown = rank(capsys, given, "--human", ratings(tmp_path / "r.csv", rows))
    assert "note: ratings of 1 sample without a verdict are left out (first: " in shown
    assert "line 22: own/tig/good/elsewhere" in shown


def contests(folder, beats, names="abc"):
    """A samples file of contests of three models, each with each on 30 prompts."""
    rows = []
    for prompt in range(30):
        for first, second in itertools.combinations(names, 2):
            candidates = tuple(
                Sample(SampleId("vieval_demo_contests", "tie", m, f"p{prompt}"), {})
                for m in (first, second)
            )
            identity = SampleId(
                "vieval_demo_contests", "tie", "", f"p{prompt}-{first}{second}"
            )
            contest = Contest(
                identity, candidates, Votes("four_way", "first"), group=f"p{prompt}"
            )
            vote = beats(first, second, prompt)
            choice = Choice(votes={"forward": vote, "reverse": vote})
            verdict = Verdict({}, Status.OK, choice=choice)
            source = Provenance("pairwise", (), (), "judge-7b")
            rows.append(result(contest, verdict, source))
    return write_results(folder, rows)


def test_contests_rank_image_models_by_strength(tmp_path, capsys):
    """The judge prefers a to b and to c in four contests of five, and b to c in every other one."""
    out = tmp_path / "out"

    def beats(first, second, prompt):
        return "first" if prompt % (2 if first == "b" else 5) else "second"

    shown = rank(capsys, contests(tmp_path / "run", beats), "--tables", out)
    title = (
        "vieval_demo_contests/tie, contests by pairwise (judge-7b): Bradley-Terry with ties "
        "(Davidson)"
    )
    assert [row[:2] for row in rows_under(shown, title)] == [
        ["1", "a"],
        ["2-3", "b"],
        ["2-3", "c"],
    ]
    strengths = {
        row["system"]: float(row["value"])
        for row in csv_rows(out / "numbers.csv")
        if (row["statistic"], row["judge"]) == ("log strength", "pairwise (judge-7b)")
    }
    a, b = (strengths[model] for model in "ab")
    assert strengths["c"] == pytest.approx(b, abs=1e-5)
    by_contests, by_wins = (
        {
            (row["better"], row["worse"]): (
                row["p"],
                row["p_adjusted"],
                row["low"],
                row["high"],
            )
            for row in csv_rows(out / "pairs.csv")
            if (row["statistic"], row["judge"]) == (statistic, "pairwise (judge-7b)")
        }
        for statistic in ("log strength", "win rate")
    )
    assert len(by_contests) == 3
    assert by_contests == by_wins
    # a won 48 of 60 and lost 12, whichever the other was
    assert a - b == pytest.approx(np.log(4), rel=1e-4)
    assert (
        "no ranking: the image models split into two sets" in shown
    )  # by people, to whom the first is always better


def test_contests_that_name_no_generators_rank_none_and_say_so(tmp_path, capsys):
    unnamed = contests(tmp_path / "run", lambda *_: "first", ("unnamed", "unnamed"))
    shown = rank(capsys, unnamed, code=1)
    assert shown.startswith(
        "vieval: cannot rank generators on vieval_demo_contests: the judged contests must "
        "compare "
    )
    assert len(shown.splitlines()) == 1
