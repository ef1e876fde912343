"""The first screen of a page: the answer as its title, and pictures under it."""

import html
import random
import re
from dataclasses import replace

import pytest

from tests.report.pages import (
    MADE,
    OPTIONS,
    Page,
    generators,
    inside,
    page_of,
    report_of,
    row,
    titled,
)
from tests.runs import run_of
from tests.stored_results import write_results
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, SampleId, Status, Verdict
from vieval_plugin.records import OWN, Run, record_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import write_page, write_report
from vieval_plugin.results.runs import Results, load_results


def plain(text):
    """A text of a page without what keeps lines together in it."""
    return html.unescape(text).replace("\xa0", " ")


def rated(tmp_path, noises, refusing=(), few=()):
    """The page of judges by their noise; `few` score a third of the samples."""
    people = random.Random(0)
    ratings = [people.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(60)]
    rows = []
    for judge, noise in noises.items():
        drawn = random.Random(judge)
        for number, rating in enumerate(ratings):
            score = min(max(rating + drawn.gauss(0, noise), 0), 1)
            refused = judge in refusing or (judge in few and number % 3 > 0)
            given = ({}, Status.REFUSAL) if refused else ({"O": score}, Status.OK)
            scores, status = given
            rows.append(row(f"u{number}", scores, [rating], judge=judge, status=status))
    folder = write_results(tmp_path / "run", rows)
    return report_of(tmp_path, load_results([folder]))


def leads(text):
    """The sentences under the title."""
    return [plain(lead) for lead in re.findall('<p class="lead">(.*?)</p>', text)]


def test_a_judge_that_rates_one_aspect_alone_does_not_choose_the_headline(tmp_path):
    rng = random.Random(0)

    def rated_by(judge, aspects):
        rows = []
        for n in range(40):
            scores = {aspect: rng.gauss(n / 40, 0.02) for aspect in aspects}
            people = dict.fromkeys(("O", "PQ"), (n / 40,))
            rows.append(("tig", "m", str(n), scores, people))
        return run_of(judge, rows, aspects, benchmark="vieval_demo", model=judge)

    runs = (rated_by("whole", ("O", "PQ")), rated_by("looks", ("PQ",)))
    write_report(Results(runs), tmp_path, OPTIONS)
    overall, of_whole, by_looks = (
        (tmp_path / "report.md").read_text().split("\n\n")[1:4]
    )
    said = "whole agrees with the planted order of vieval_demo better than a constant"
    assert overall.startswith(said)
    assert re.match(r"Spearman (1\.00|0\.99\d*) ", of_whole)
    both = r"(whole|looks) .*(looks|whole)"
    assert re.match(rf"By PQ \(looks has no O\): .*{both}", by_looks)


def test_of_several_answers_each_says_where_it_holds(tmp_path):
    scores = {"mine": [0.9] * 9, "theirs": [0.1] * 9}
    judges = ("gpt", "big")
    runs = [run for judge in judges for run in generators(tmp_path, scores, judge).runs]
    text = report_of(tmp_path, Results(tuple(runs)))
    said = "viescore with {} rates mine's images better than theirs'."
    assert titled(text) == said.format("gpt")
    evidence = (
        "Mean SC of mine: 0.90, 0.80 higher than theirs (p = .004), on 9 prompts."
    )
    assert leads(text) == [evidence, said.format("big")]
    assert text.split("<main>")[0].count("These images have no human ratings") == 1


@pytest.mark.parametrize("theirs", [[], [0.1] * 9, [None] * 9])
def test_report_and_rank_make_one_page_of_unrated_images(tmp_path, theirs):
    results = generators(tmp_path, {"mine": [0.9] * 9, "theirs": theirs})
    text, ranked = (page_of(page, tmp_path, results) for page in ("report", "rank"))
    assert "Your images, judged by viescore 0shot (gpt)" in Page(text).said
    screens = [
        page.split("<header>")[1].split('id="appendix"')[0] for page in (text, ranked)
    ]
    assert screens[0] == screens[1]


@pytest.mark.parametrize("number", [5, 6])
def test_too_few_prompts_for_a_test_are_named_as_such(tmp_path, number):
    mine = [0.1 + n / 99 for n in range(number)]
    theirs = [0.9 - n / 99 for n in range(number)]
    text = report_of(tmp_path, generators(tmp_path, {"mine": mine, "theirs": theirs}))
    said = "At least 6 prompts are needed to show a difference."
    assert (said in Page(text).said) == (number < 6)


def test_a_result_without_verdicts_says_so(tmp_path):
    text = report_of(tmp_path, Results(()))
    assert titled(text) == "No judge has a result."
    assert "Results without verdicts" in text
    assert "Gallery" not in text


def cards(text):
    """The cards of a page by their ids."""
    pattern = r'<article class="card[^"]*" id="([^"]+)"(.*?)</article>'
    return dict(re.findall(pattern, text, re.DOTALL))


def headings(text):
    """Titles of the cards of a section that a text begins with."""
    return re.findall(r"<h3[^>]*>(.*?) <span", text.split("</section>")[0])


def buttons(text):
    """The prompts of a page's first chart: name, scores in words, and whether it is shown."""
    pattern = (
        r'<button type="button" data-card="card\d+" aria-pressed="(\w+)" '
        r'aria-label="tig/(p\d+): ([^"]*)">'
    )
    found = re.findall(pattern, text)
    return [(name, scores, shown == "true") for shown, name, scores in found]


def shown_card(text):
    """The card under a page's first chart."""
    return inside(text.split('class="prompt-place"')[1], "article")


@pytest.mark.parametrize("third", [False, True])
def test_prompts_stand_from_ahead_to_behind_above_the_pictures_of_one(tmp_path, third):
    scores = {"mine": [0.9, 0.5, 0.3, 0.1], "theirs": [0.2, 0.7, 0.3, 0.2]}
    scores |= {"third": [0.1] * 4} if third else {}
    text = report_of(tmp_path, generators(tmp_path, scores, note="a reason"))
    more = ", third 0.10" * third
    assert buttons(text) == [
        ("p0", f"mine 0.90, theirs 0.20{more}", False),
        ("p2", f"mine 0.30, theirs 0.30{more}", False),
        ("p3", f"mine 0.10, theirs 0.20{more}", True),  # the middle: it is undecided
        ("p1", f"mine 0.50, theirs 0.70{more}", False),
    ]
    assert headings(shown_card(text)) == ["p3"]
    assert ('class="bars"' in text) is not third
    if not third:
        drawn = re.findall(r'<rect class="(ahead|behind)" x', text)
        assert drawn == ["ahead", "ahead", "behind", "behind"]
        counts = "mine scores higher on 1 of 4 prompts, theirs on 2, equal on 1."
        assert counts in Page(text).said
    _, worst = text.split("mine scores lower on 2 of 4 prompts")
    loses, fail = worst.split("generators score below 0.5 on 2 of 4 prompts")
    assert headings(loses) == ["p1", "p3"]
    assert headings(fail) == ["p3", "p2"]
    pictures = re.findall(r'<image id="(p\d+)"', text)
    assert len(pictures) == len({*pictures}) == 4 * len(scores)


def test_the_first_pictures_show_what_the_title_says(tmp_path):
    scores = {"mine": [0.1, 0.5, *[0.2] * 10], "theirs": [0.9, 0.7, *[0.8] * 10]}
    text = report_of(tmp_path, generators(tmp_path, scores))
    assert "rates theirs' images better than mine's" in titled(text)
    assert buttons(text)[0] == ("p0", "theirs 0.90, mine 0.10", True)
    named = re.findall(r"<figcaption><b>(\w+)</b>", shown_card(text))
    assert named == ["theirs", "mine"]
    mean = re.search(r'class="mean" role="img" aria-label="([^"]*)"', text)[1]
    assert mean.startswith("theirs minus mine: mean 0.58 (95% interval ")


def test_prompts_that_lack_a_score_have_no_bar_and_are_counted(tmp_path):
    scores = {"mine": [0.9, None, 0.3], "theirs": [0.2, 0.7, None]}
    text = report_of(tmp_path, generators(tmp_path, scores))
    assert [name for name, _, _ in buttons(text)] == ["p0"]
    assert "Left out: 2 prompts without scores to compare" in Page(text).said


def test_each_picture_has_its_reason_of_the_aspect_that_differs_most(tmp_path):
    results = generators(tmp_path, {"a": [0.9], "b": [0.5], "c": [0.1]})
    [run] = results.runs
    told = []
    for (record,) in run.records["tig"]:
        name = record.id.image_model
        scores = {**record.verdict.scores, "PQ": 0.5}
        said = f"PQ: {name} looks fine\nSC: because of {name}\nand more"
        verdict = replace(record.verdict, scores=scores, rationale=said)
        told.append((replace(record, verdict=verdict),))
    text = report_of(tmp_path, Results((replace(run, records={"tig": told}),)))
    captions = cards(text)["card1"].split("<details><summary>3 verdicts")[0]
    found = re.findall(r"because of \w\nand more", captions)
    assert found == [f"because of {name}\nand more" for name in "abc"]
    assert "looks fine" not in captions


def test_the_best_has_a_card_also_where_the_lowest_fill_the_page(tmp_path):
    scores = {"mine": [n / 1000 for n in range(900)]}
    text = report_of(tmp_path, generators(tmp_path, scores, picture=False))
    assert len(cards(text)) > 400
    assert "p899" in headings(text.split('id="cards"')[1])


def test_the_strip_has_the_largest_disagreements(tmp_path):
    text = rated(tmp_path, {"good": 0.05, "poor": 3.0})
    # no pictures are here
    assert "Where judges and the planted order disagree most" not in text
    [run] = generators(tmp_path, {"mine": [n / 12 for n in range(12)]}).runs
    far = {3: 1.0, 10: 0.0}  # people see two otherwise than the judge
    records = [
        (replace(record, ratings={"SC": (far.get(number, number / 12),)}),)
        for number, (record,) in enumerate(run.records["tig"])
    ]
    own = report_of(tmp_path, Results((replace(run, records={"tig": records}),)))
    assert "Your images, judged by viescore 0shot (gpt)" in own
    assert "Only the images of mine were judged" in titled(own)
    # the answer on the judge follows
    assert "gpt " in Page(own.split("<main>")[0]).said
    assert "annotators: SC 1.00" in own
    assert "SC: place by people 5%, by the judge 91% (0% is the lowest, equal" in own


def test_with_few_ratings_the_page_says_who_leads_and_what_would_decide(tmp_path):
    rng = random.Random(1)
    around = lambda mean: [mean + rng.uniform(-0.2, 0.2) for _ in range(40)]
    scores = {"mine": around(0.7), "theirs": around(0.5)}
    [run] = generators(tmp_path, scores, picture=False).runs
    records = []
    for (record,) in run.records["tig"]:
        is_rated = int(record.id.uid[1:]) < 20
        rating = record.verdict.scores["SC"] + rng.uniform(-0.1, 0.1)
        ratings = {"SC": (rating,)} if is_rated else {}
        records.append((replace(record, ratings=ratings),))
    results = Results((replace(run, records={"tig": records}),))
    report = sections_of(results, "generators", OPTIONS)
    sections = tuple(replace(section, by_ratings=True) for section in report.sections)
    write_page(replace(report, sections=sections), tmp_path / "rank.html", OPTIONS)
    text = (tmp_path / "rank.html").read_text()
    assert titled(text) == "mine leads so far."
    lead, *_ = leads(text)
    assert lead.startswith("Rating about 20 more prompts of each generator would ")
    assert '<progress max="80" value="40"' in text
    assert "40 of 80 images are rated" in text
    assert "<td>corrected</td>" in text
    assert "<td>judge alone</td>" in text


def of_contests(contests, votes):
    """Results of a judge of contests that gives these votes, with reasons."""
    records = []
    for contest, (vote, reason) in zip(contests, votes, strict=True):
        choice = Choice({"forward": vote, "reverse": vote})
        verdict = Verdict({}, Status.OK, reason, choice=choice)
        records.append((record_of(contest, verdict, MADE),))
    run = Run(
        "gpt", OWN, "pairwise", (), {"tig": records}, setting="0shot", model="gpt"
    )
    return Results((run,))


def contests(tmp_path, votes):
    """Results of a judge that votes so on contests of two generators."""
    equal = [0.5] * len(votes)
    [run] = generators(tmp_path, {"mine": equal, "theirs": equal}).runs
    samples = [record.sample for (record,) in run.records["tig"]]
    asked = []
    for number in range(len(votes)):
        identity = SampleId(OWN, "tig", "", f"c{number}")
        asked.append(Contest(identity, tuple(samples[number :: len(votes)]), Votes()))
    return of_contests(asked, [(vote, "") for vote in votes])


@pytest.mark.parametrize(
    ("votes", "winner", "loser"),
    [
        (["first"] * 5 + ["second"] + ["first"] * 6, "mine", "theirs"),
        (["second"] * 5 + ["first"] + ["second"] * 6, "theirs", "mine"),
        (["tie"] * 3 + ["second"] + ["first"] * 9, "mine", "theirs"),
    ],
)
def test_the_first_card_is_that_of_the_title(tmp_path, votes, winner, loser):
    text = plain(report_of(tmp_path, contests(tmp_path, votes)))
    title = titled(text)
    first_card = shown_card(text)
    assert f"prefers {winner}" in title
    assert f'<b>{winner}</b> <span class="score">beat {loser}<' in first_card
    assert f'<b>{loser}</b> <span class="score">lost to {winner}<' in first_card


def test_a_card_says_how_an_image_fared_in_several_contests(tmp_path):
    names = ("aurora", "borealis", "dune")
    runs = generators(tmp_path, {name: [0.5] for name in names}).runs
    samples = [record.sample for run in runs for (record,) in run.records["tig"]]
    votes = {(0, 1): "first", (0, 2): "first", (1, 2): "tie"}
    asked = []
    for one, other in votes:
        identity = SampleId(OWN, "tig", "", f"c{one}{other}")
        pair = (samples[one], samples[other])
        asked.append(Contest(identity, pair, Votes(), group="p0"))
    said = [(vote, f"on {one} and {other}") for (one, other), vote in votes.items()]
    card = inside(plain(report_of(tmp_path, of_contests(asked, said))), "article")
    assert re.findall(r'<b>(\w+)</b> <span class="score">([^<]*)<', card) == [
        ("aurora", "won 2 of 2: beat borealis and dune"),
        ("borealis", "won 0 of 2: tied with dune; lost to aurora"),
        ("dune", "won 0 of 2: tied with borealis; lost to aurora"),
    ]
    reasons = re.findall(r"on \d and \d", card.split("3 verdicts")[0])
    assert reasons == ["on 0 and 1", "on 1 and 2", "on 1 and 2"]


SHARPEST = "sharpness finds noisy's images the sharpest of the three."
ALIKE = "sharpness cannot tell {mine} and {} apart."


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"mine": [0.2] * 9, "noisy": [1.0] * 9, "third": [0.1] * 9}, SHARPEST),
        ({"{mine}": [0.4, 0.6] * 4, "{}": [0.6, 0.4] * 4}, ALIKE),
    ],
)
def test_a_pixel_measure_says_what_it_measures(tmp_path, scores, said):
    [run] = generators(tmp_path, scores).runs
    named = dict.fromkeys(("label", "judge", "model"), "sharpness")
    text = report_of(tmp_path, Results((replace(run, **named, setting=""),)))
    assert titled(text) == said
    assert "sharpness measures edges, including those of noise." in Page(text).said


def test_undecided_contests_say_so_once(tmp_path):
    text = report_of(tmp_path, contests(tmp_path, ["tie"] * 8))
    assert text.count("finds only ties on 8 prompts, so no generator wins") == 1
    assert "a tie" not in text.split('id="cards"')[1].split("verdict</summary>")[0]
    assert 'class="exhibit"' not in text
    decided = report_of(tmp_path, contests(tmp_path, ["first"] * 7 + ["tie"]))
    assert decided.count(", a tie</span>") == 1
    assert "tied with" in decided
    assert 'class="mark-line" x1="50.00%"' in decided


def test_one_generator_is_shown_by_its_extremes(tmp_path):
    scores = {"mine": [n / 10 for n in range(1, 10)]}
    text = report_of(tmp_path, generators(tmp_path, scores))
    lowest, highest = text.split("The lowest scores")[1].split("The highest scores")
    assert headings(lowest) == ["p0", "p1", "p2", "p3"]
    assert headings(highest) == ["p8", "p7", "p6", "p5"]
    assert "Distribution of SC, semantic consistency" in text


def test_a_note_of_all_cards_is_said_once_and_scores_are_rounded(tmp_path):
    scores = {"mine": [4.31e-05, 0.5, 0.25], "theirs": [0.5, 0.123456, 0.3]}
    note = "trained on its own drawings only"
    text = report_of(tmp_path, generators(tmp_path, scores, note=note))
    assert text.count(note) == 1
    assert "e-05" not in text.split('id="gallery"')[1].split('id="appendix"')[0]
    assert '<span class="score">SC 0.12</span>' in text
    assert 'class="status"' not in text


def test_the_chart_is_as_wide_as_the_page_and_has_a_legend(tmp_path):
    text = rated(tmp_path, {"good": 0.05, "poor": 3.0, "few": 0.1}, few=("few",))
    [drawn] = re.findall(r'<div class="forest".*?</div>\n</div>', text, re.DOTALL)
    for kind in ("dot worse", "dot"):
        assert drawn.count(f'<circle class="{kind}"') == 1
    assert "Grey: significantly worse than the first." in text
    assert drawn.count('<circle class="dot unranked"') == 1
    assert "not ranked: a score for 20 of 60 samples" in drawn
    assert drawn.count(">best constant answer</text>") == 1
    assert drawn.count('class="band"') == 3
    places = re.findall(r'(?:x1|x2|cx)="([^"]+)"', drawn)
    assert all(place.endswith("%") for place in places)
    assert "Grey" not in rated(tmp_path / "one", {"good": 0.05})


def test_with_many_judges_there_are_fewer_cards_and_the_page_says_how_many(tmp_path):
    [run] = generators(tmp_path, {"mine": [0.5] * 250}, picture=False).runs
    names = [f"judge {n:02}" for n in range(20)]
    runs = tuple(replace(run, label=name, model=name) for name in names)
    text = report_of(tmp_path, Results(runs))
    assert 100 <= text.split('id="cards"')[1].count("<article") <= 106
    assert re.search(r"10\d of 250 cards are shown, .* and 25 random cards", text)


def test_a_judge_that_refuses_much_says_so_on_the_first_screen(tmp_path):
    some = {"aurora": [0.8, None] * 6, "borealis": [0.6, 0.7, None] * 4}
    text = report_of(tmp_path, generators(tmp_path, some))
    [lead] = leads(text)
    assert lead.endswith(" 10 of 24 verdicts failed (10 refusal).")
    few = {"aurora": [0.8] * 12, "borealis": [0.6] * 11 + [None]}
    assert "verdicts failed" not in report_of(tmp_path, generators(tmp_path, few))
