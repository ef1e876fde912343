"""The first screen of a page: the answer as its title, pictures under it, and nothing that says nothing."""

import html
import random
import re
from dataclasses import replace

import pytest
from PIL import Image as Pillow

from tests.report.pages import Page, row, write
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, Image, Sample, SampleId, Status, Verdict
from vieval_plugin.records import OWN, Provenance, Run, rated_record, record_of
from vieval_plugin.report.page.charts import forest
from vieval_plugin.report.page.ranking import write_page
from vieval_plugin.report.page.strip import ends
from vieval_plugin.report.ranking import rank_results
from vieval_plugin.report.writing import write_report
from vieval_plugin.results.runs import Results, load_results
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions

OPTIONS = StatisticsOptions(draws=100)
EVIL = "</title></h1><script>document.title = 1</script><img src=x onerror=alert(1)>"
MADE = Provenance("viescore", ("0shot",), ("SC",), "gpt")


def inside(text, tag):
    """What stands in the first element of that name, as it is written."""
    return re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)[1]


def judges(noises, refusing=()):
    """Rows of judges on the same rated samples, each as far from the ratings as its noise."""
    people = random.Random(0)
    ratings = [people.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(60)]
    for judge, noise in noises.items():
        drawn = random.Random(judge)
        for number, rating in enumerate(ratings):
            score = min(max(rating + drawn.gauss(0, noise), 0), 1)
            failed = {"status": Status.REFUSAL} if judge in refusing else {}
            yield row(f"u{number}", {} if failed else {"O": score}, [rating], judge=judge, **failed)


def report_of(tmp_path, results):
    write_report(results, tmp_path / "out", OPTIONS)
    return (tmp_path / "out" / "report.html").read_text()


def rated(tmp_path, noises, refusing=()):
    return report_of(tmp_path, load_results([write(tmp_path / "run", [*judges(noises, refusing)])]))


def generators(tmp_path, scores, judge="gpt", note="", picture=True):
    """A run on images of a user's own: the score of each prompt by generator; None for a refusal."""
    records = []
    for model, values in scores.items():
        for number, value in enumerate(values):
            path = tmp_path / f"{len(records)}.png"
            if picture:
                Pillow.new("RGB", (40, 30), (len(records), 40 * number % 256, 9)).save(path)
            sample = Sample(SampleId(OWN, "tig", model, f"p{number}"), {"output": Image(path)}, {"prompt": "a cat"})
            verdict = Verdict({}, Status.REFUSAL) if value is None else Verdict({"SC": value}, Status.OK, note)
            records.append((record_of(sample, verdict, MADE),))
    return Results((Run(judge, OWN, "viescore", ("SC",), {"tig": records}, setting="0shot", model=judge),))


def test_a_judge_of_too_few_samples_for_a_number_is_named(tmp_path):
    rows = [*judges({"many": 0.1}), *[*judges({"few": 0.1})][:8]]
    text = report_of(tmp_path, load_results([write(tmp_path / "run", rows)]))
    assert inside(text, "h1") == "Only many has enough scores on vieval_demo."
    assert "few: undefined for every image model (8 samples, 10 are needed)." in Page(text).said


def test_a_judge_that_rates_one_aspect_alone_does_not_choose_the_headline(tmp_path):
    rng = random.Random(0)

    def rated_by(judge, aspects):
        made = Provenance(judge, (), aspects, judge)
        records = []
        for number in range(40):
            ratings = {"O": (number / 40,), "PQ": (number / 40,)}
            sample = Sample(SampleId("vieval_demo", "tig", "m", str(number)), {}, ratings=ratings)
            verdict = Verdict({aspect: rng.gauss(number / 40, 0.02) for aspect in aspects}, Status.OK)
            records.append((rated_record(sample, verdict, made),))
        return Run(judge, "vieval_demo", judge, aspects, {"tig": records}, model=judge)

    write_report(Results((rated_by("whole", ("O", "PQ")), rated_by("looks", ("PQ",)))), tmp_path / "out", OPTIONS)
    overall, of_whole, by_looks = (tmp_path / "out" / "report.md").read_text().split("\n\n")[1:4]
    assert overall.startswith("whole agrees with the known defects of vieval_demo better than the same answer")
    assert re.match(r"Spearman (1\.00|0\.99\d*) ", of_whole)
    assert re.match(r"By PQ, as looks has no O: .*(whole|looks) .*(looks|whole)", by_looks)


@pytest.mark.parametrize(
    ("noises", "said", "evidence"),
    [
        (
            {"only": 0.1},
            r"only agrees with the known defects of vieval_demo better than the same answer for every image does\.",
            r"Spearman 0\.\d\d \(95% interval 0\.\d\d to 0\.\d\d\)\.",
        ),
        (
            {"good": 0.05, "poor": 3.0},
            r"good agrees best with the known defects of vieval_demo\.",
            r"Spearman of good 0\.\d\d, 0\.\d\d more than poor \(95% interval .* to .*, p < \.001\), on the 60 samples that .*\.",
        ),
        (
            {"a": 0.1, "b": 0.1000001},
            r"[ab] and [ab] cannot be told apart\.",
            r"Spearman of [ab] .* more than [ab] \(95% interval -.*, p = \.\d+\), on the 60 .*\.",
        ),
        (
            {"a": 0.1, "b": 0.11, "c": 3.0},
            r"[ab] agrees most with the known defects of vieval_demo, but cannot be told apart from [ab]\.",
            r"Spearman .*; [ab] is better than c; [ab] is better than c \(Holm over 3 pairs\)\.",
        ),
        (
            {f"j{n:02}": 0.3 for n in range(12)},
            r"The 12 judges cannot be told apart\.|j\d\d agrees most with .*, but cannot be told apart from .*\.",
            r"Spearman .*\.",
        ),
    ],
)
def test_the_title_is_the_answer_and_its_numbers_come_next(tmp_path, noises, said, evidence):
    text = rated(tmp_path, noises)
    title = inside(text, "h1")
    assert re.fullmatch(said, title), title
    assert inside(text, "title") == title
    assert re.fullmatch(evidence, html.unescape(re.search('<p class="lead">(.*?)</p>', text)[1]))
    assert Page(text).said.count(title) == 2  # the title and the heading, and no list repeats it


def test_of_several_answers_each_says_where_it_holds(tmp_path):
    scores = {"mine": [0.9] * 9, "theirs": [0.1] * 9}
    runs = [run for judge in ("gpt", "big") for run in generators(tmp_path, scores, judge).runs]
    text = report_of(tmp_path, Results(tuple(runs)))
    title, *leads = (f"viescore 0shot ({judge}) rates mine's images better than theirs's." for judge in ("gpt", "big"))
    assert html.unescape(inside(text, "h1")) == title
    assert [html.unescape(lead) for lead in re.findall('<p class="lead">(.*?)</p>', text)] == [
        "Mean SC of mine 0.90, 0.80 more than theirs (p = .004), on the 9 prompts that both have.",
        *leads,
    ]
    assert text.split("<main>")[0].count("Nobody has rated these images") == 1


@pytest.mark.parametrize("page", ["report", "rank"])
@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"mine": [0.5, 0.6]}, "Only mine's images were judged, so there is nothing to compare them with."),
        ({"mine": [0.9] * 9, "theirs": [0.1] * 9}, "viescore 0shot (gpt) rates mine's images better than theirs's."),
        ({"mine": [0.5] * 9, "theirs": [0.5] * 9}, "mine and theirs cannot be told apart."),
        ({"mine": [None] * 9, "theirs": [None] * 9}, "No generator has enough scores on your images."),
    ],
)
def test_the_title_of_unrated_images(tmp_path, page, scores, said):
    results = generators(tmp_path, scores)
    text = page_of(page, tmp_path, results)
    assert html.unescape(inside(text, "h1")) == said
    assert "Agreement of" not in Page(text).said
    assert "Your images, judged by viescore 0shot (gpt)" in Page(text).said


def page_of(page, tmp_path, results):
    if page == "report":
        return report_of(tmp_path, results)
    write_page(rank_results(results, None, OPTIONS), tmp_path / "rank.html", OPTIONS)
    return (tmp_path / "rank.html").read_text()


@pytest.mark.parametrize("page", ["report", "rank"])
def test_a_generator_whose_verdicts_all_failed_is_named_beside_the_other(tmp_path, page):
    text = page_of(page, tmp_path, generators(tmp_path, {"mine": [0.5, 0.6], "theirs": [None] * 2}))
    assert inside(text, "h1") == "Only mine has enough scores on your images."
    said = Page(text).said
    assert re.search(r"Mean SC 0\.55 \(95% interval .*\)\. theirs: no prompts with a score\.", said)
    assert "Failed verdicts: theirs: refusal 2 of 2." in said


@pytest.mark.parametrize("page", ["report", "rank"])
def test_too_few_prompts_for_a_test_are_named_as_such(tmp_path, page):
    said = "Fewer than 6 prompts can show no difference."
    for number in (5, 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        scores = {"mine": [0.1 + n / 99 for n in range(number)], "theirs": [0.9 - n / 99 for n in range(number)]}
        assert (said in Page(page_of(page, folder, generators(folder, scores))).said) == (number < 6)


@pytest.mark.parametrize("page", ["report", "rank"])
def test_one_image_has_no_interval_in_the_answer(tmp_path, page):
    head = page_of(page, tmp_path, generators(tmp_path, {"mine": [0.61]})).split("<main>")[0]
    assert "Mean SC 0.61." in Page(head).said
    assert "interval" not in Page(head).said


def test_where_all_failed_the_sentence_below_the_title_says_how(tmp_path):
    text = report_of(tmp_path, generators(tmp_path, {"mine": [None] * 9, "theirs": [None] * 9}))
    assert '<p class="lead">18 of 18 verdicts have no score (18 refusal).</p>' in text
    assert 'class="strip"' not in text
    one = rated(tmp_path / "judges", {"a": 0.1, "b": 0.1}, refusing=("a", "b"))
    assert inside(one, "h1") == "No judge has enough scores on vieval_demo."
    assert '<p class="lead">120 of 120 verdicts have no score (120 refusal).</p>' in one
    assert "place depends" not in text + one


def test_a_result_without_verdicts_says_so(tmp_path):
    text = report_of(tmp_path, Results(()))
    assert inside(text, "h1") == "No judge has a number here."
    assert "Results without verdicts" in text
    assert "Gallery" not in text.split("Glossary")[0]


def places(text):
    """Places of the strip: the card that each leads to, and its words."""
    strip = re.search(r'<div class="strip">(.*?)</div>', text, re.DOTALL)[1]
    return [
        (card, " ".join(re.sub("<[^>]*>", " ", place).split()))
        for card, place in re.findall(r'<a href="#([^"]+)">(.*?)</a>', strip, re.DOTALL)
    ]


def test_the_strip_has_the_best_and_the_worst_of_each_generator(tmp_path):
    rng = random.Random(3)
    scores = {model: [round(rng.uniform(0.2, 0.7), 3) for _ in range(9)] for model in ("mine", "theirs")}
    scores["mine"][4], scores["mine"][7], scores["theirs"][0], scores["theirs"][8] = 0.99, 0.01, 0.98, 0.02
    text = page_of("report", tmp_path, generators(tmp_path, scores))
    found = places(text)
    assert {words for _, words in found} == {
        "mine best: SC 0.99",
        "mine worst: SC 0.01",
        "theirs best: SC 0.98",
        "theirs worst: SC 0.02",
    }
    for card, words in found:
        [shown] = re.findall(rf'<article class="card" id="{card}".*?</article>', text, re.DOTALL)
        assert words.split()[-1] in shown
    pictures = re.findall(r'<image id="(p\d+)"', text)
    assert len(pictures) == len({*pictures}) == 18
    assert {*re.findall(r'<use href="#(p\d+)"', text)} == {*pictures}


def test_the_best_has_a_card_also_where_the_lowest_fill_the_page(tmp_path):
    scores = {"mine": [n / 1000 for n in range(900)]}
    text = report_of(tmp_path, generators(tmp_path, scores, picture=False))
    cards = re.findall(r'<article class="card".*?</article>', text, re.DOTALL)
    assert len(cards) > 400
    assert any("own/tig/mine/p899" in card for card in cards)


def test_the_strip_has_the_largest_disagreements_where_there_are_ratings(tmp_path):
    [run] = generators(tmp_path, {"mine": [n / 12 for n in range(12)]}).runs
    far = {3: 1.0, 10: 0.0}
    records = [
        (replace(record, ratings={"SC": (far.get(number, number / 12),)}),)
        for number, (record,) in enumerate(run.records["tig"])
    ]
    text = report_of(tmp_path, Results((replace(run, records={"tig": records}),)))
    assert "Agreement of judges with annotators on Your images" in text
    words = [words for _, words in places(text)]
    assert words[0] in {"mine annotators: SC 1.00 gpt: SC 0.25", "mine annotators: SC 0.00 gpt: SC 0.83"}
    assert len(words) <= 6


def contests(tmp_path, votes):
    """Results of a judge that votes so on contests of two generators."""
    [run] = generators(tmp_path, {"mine": [0.5] * len(votes), "theirs": [0.5] * len(votes)}).runs
    samples = [record.sample for (record,) in run.records["tig"]]
    records = []
    for number, vote in enumerate(votes):
        contest = Contest(SampleId(OWN, "tig", "", f"c{number}"), tuple(samples[number :: len(votes)]), Votes())
        verdict = Verdict({}, Status.OK, choice=Choice({"forward": vote, "reverse": vote}))
        records.append((record_of(contest, verdict, MADE),))
    return Results((replace(run, judge="pairwise", aspects=(), records={"tig": records}),))


def test_the_strip_of_contests_has_one_of_each_answer(tmp_path):
    text = page_of("report", tmp_path, contests(tmp_path, ["first"] * 5 + ["second"] + ["first"] * 2))
    assert {words.split(" ", 3)[0] for _, words in places(text)} == {"mine"}
    assert len(places(text)) == 2
    assert text.count('<use href="#p') == 8 * 2 + 2 * 2


def test_contests_that_decide_nothing_say_so_once_and_win_rates_have_a_line_at_one_half(tmp_path):
    text = page_of("rank", tmp_path, contests(tmp_path, ["tie"] * 8))
    assert text.count("calls each of the 8 contests a tie, so no generator wins") == 1
    assert "mine and theirs: a tie" not in text
    decided = page_of("rank", tmp_path, contests(tmp_path, ["first"] * 7 + ["tie"]))
    assert decided.count("mine and theirs: a tie") == 1
    assert 'class="mark-line" x1="50.00%"' in decided


def test_one_generator_alone_is_shown_by_its_lowest_and_its_highest_scores(tmp_path):
    text = page_of("rank", tmp_path, generators(tmp_path, {"mine": [n / 10 for n in range(1, 10)]}))
    lowest, highest = text.split("The lowest scores")[1].split("The highest scores")
    assert re.findall(r"SC (0\.\d+)", lowest) == ["0.10", "0.20", "0.30", "0.40", "0.50"]
    assert re.findall(r"SC (0\.\d+)", highest.split("<footer>")[0].split('id="tables"')[0]) == [
        "0.90",
        "0.80",
        "0.70",
        "0.60",
    ]


@pytest.mark.parametrize("page", ["report", "rank"])
def test_hostile_names_are_text_in_the_title_and_the_strip(tmp_path, page):
    text = page_of(page, tmp_path, generators(tmp_path, {EVIL: [0.9] * 9, f"b{EVIL}": [0.1] * 9}, judge=f"j{EVIL}"))
    assert "&lt;script&gt;" in inside(text, "h1")
    assert "&lt;script&gt;" in inside(text, "title")
    if page == "report":
        assert "&lt;script&gt;" in re.search(r'<div class="strip">(.*?)</div>', text, re.DOTALL)[1]
    assert len(Page(text).all("script")) == 1
    assert Page(text).all("img") == []


def test_no_sentence_says_nothing(tmp_path):
    said = Page(rated(tmp_path, {"good": 0.05, "poor": 3.0, "blind": 30.0})).said
    assert "(0.000)" not in said
    assert "no second judge" not in said
    for low, high in re.findall(r"is lowest on .*? \(([\d.]+), n \d+\) and highest on .*? \(([\d.]+), n", said):
        assert float(high) - float(low) >= 0.04


def test_a_note_of_all_cards_is_said_once_and_scores_are_rounded(tmp_path):
    scores = {"mine": [4.31e-05, 0.5, 0.25], "theirs": [0.5, 0.123456, 0.3]}
    text = report_of(tmp_path, generators(tmp_path, scores, note="trained on its own drawings only"))
    assert text.count("trained on its own drawings only") == 1
    assert "e-05" not in text.split('id="gallery"')[1].split('id="glossary"')[0]
    assert "<dd>0.12</dd>" in text
    assert 'class="status"' not in text


def test_a_chart_is_as_wide_as_the_page_and_has_its_numbers_beside_it():
    estimates = {"a": Estimate(0.5, 0.4, 0.6), "b": Estimate(0.3, 0.2, 0.4), "c": Estimate(float("nan"))}
    drawn = forest(estimates, {"human ceiling: of people": Estimate(0.8)}, (-1.0, 1.0), "title")
    assert drawn.count('class="row') == 4  # two judges, the reference and the axis
    assert ".50</b>" in drawn
    assert "human ceiling</span>" in drawn
    assert drawn.count('class="mark-line"') == 3
    assert all(place.endswith("%") for place in re.findall(r'(?:x1|x2|cx)="([^"]+)"', drawn))
    assert forest({"c": Estimate(float("nan"))}, {}, (0.0, 1.0), "title") == ""
    assert "Grey" not in drawn
    assert "Hollow" not in drawn


def test_the_chart_greys_what_is_significantly_worse_and_says_so(tmp_path):
    text = rated(tmp_path, {"good": 0.05, "poor": 3.0})
    assert text.count('<circle class="dot worse"') == text.count('<circle class="dot"') == 1
    assert "Grey: significantly worse than the first." in text
    drawn = forest({"a": Estimate(0.5), "b": Estimate(0.3)}, {}, (0.0, 1.0), "title", unranked=["b"])
    assert drawn.count('<circle class="dot unranked"') == 1
    assert "Hollow: not ranked." in drawn


@pytest.mark.parametrize(("number", "each", "expected"), [(1, 3, 1), (2, 1, 2), (4, 3, 4), (9, 3, 6)])
def test_none_is_both_best_and_worst(number, each, expected):
    found = [entry for _, entry in ends(range(number), each)]
    assert len(found) == len({*found}) == expected


def test_with_many_judges_there_are_fewer_cards_and_the_page_says_how_many(tmp_path):
    [run] = generators(tmp_path, {"mine": [0.5] * 250}, picture=False).runs
    runs = tuple(replace(run, label=f"judge {n:02}", model=f"judge {n:02}") for n in range(20))
    text = report_of(tmp_path, Results(runs))
    assert 100 <= text.count('<article class="card"') <= 106
    assert re.search(r"10\d of 250 samples and contests are shown, .* and 25 drawn at random", text)


def test_images_that_a_benchmark_draws_are_on_the_page_of_its_verdicts_file(tmp_path, vieval, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vieval.yaml").write_text("store: {use: false}\nstatistics: {draws: 50}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "vieval.yaml"))
    vieval("score", "--benchmark", "vieval_demo", "--judge", "sharpness", "--limit", 24, "--out", "verdicts.jsonl")
    vieval("report", "verdicts.jsonl", "--out", "page")
    page = (tmp_path / "page" / "report.html").read_text()
    assert page.count('<div class="strip">') == 1
    assert page.count('<image id="p') > 20
