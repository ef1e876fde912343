"""The first screen of a page: the answer as its title, pictures under it, and nothing that says
nothing.
"""

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
)
from tests.stored_results import write_results
from vieval_plugin.judges.contests import Contest, Votes
from vieval_plugin.judges.protocol import Choice, Sample, SampleId, Status, Verdict
from vieval_plugin.records import OWN, Provenance, Run, rated_record, record_of
from vieval_plugin.report.sections import sections_of
from vieval_plugin.report.writing import write_page, write_report
from vieval_plugin.results.runs import Results, load_results


def plain(text):
    """A text of a page without what keeps lines together in it."""
    return html.unescape(text).replace("\xa0", " ")


def judges(noises, refusing=(), few=()):
    """Rows of judges on the same rated samples, each as far from the ratings as its noise; of
    `few` on a third of them.
    """
    people = random.Random(0)
    ratings = [people.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(60)]
    for judge, noise in noises.items():
        drawn = random.Random(judge)
        for number, rating in enumerate(ratings):
            score = min(max(rating + drawn.gauss(0, noise), 0), 1)
            refused = judge in refusing or (judge in few and number % 3 > 0)
            failed = {"status": Status.REFUSAL} if refused else {}
            scores = {} if failed else {"O": score}
            yield row(f"u{number}", scores, [rating], judge=judge, **failed)


def rated(tmp_path, noises, refusing=(), few=()):
    folder = write_results(tmp_path / "run", [*judges(noises, refusing, few)])
    return report_of(tmp_path, load_results([folder]))


def titled(text):
    """The title of a page."""
    return html.unescape(inside(text, "h1"))


def test_a_judge_that_rates_one_aspect_alone_does_not_choose_the_headline(tmp_path):
    out = tmp_path / "out"
    rng = random.Random(0)

    def rated_by(judge, aspects):
        made = Provenance(judge, (), aspects, judge)
        records = []
        for number in range(40):
            ratings = {"O": (number / 40,), "PQ": (number / 40,)}
            identity = SampleId("vieval_demo", "tig", "m", str(number))
            sample = Sample(identity, {}, ratings=ratings)
            scores = {aspect: rng.gauss(number / 40, 0.02) for aspect in aspects}
            verdict = Verdict(scores, Status.OK)
            records.append((rated_record(sample, verdict, made),))
        return Run(judge, "vieval_demo", judge, aspects, {"tig": records}, model=judge)

    runs = (rated_by("whole", ("O", "PQ")), rated_by("looks", ("PQ",)))
    write_report(Results(runs), out, OPTIONS)
    overall, of_whole, by_looks = (out / "report.md").read_text().split("\n\n")[1:4]
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
    first, second = (
        f"viescore with {judge} rates mine's images better than theirs'."
        for judge in judges
    )
    assert titled(text) == first
    leads = [plain(lead) for lead in re.findall('<p class="lead">(.*?)</p>', text)]
    evidence = (
        "Mean SC of mine: 0.90, 0.80 higher than theirs (p = .004), on 9 prompts."
    )
    assert leads == [evidence, second]
    assert text.split("<main>")[0].count("These images have no human ratings") == 1


ONE = "Only the images of mine were judged, so they cannot be compared."
BETTER = "viescore with gpt rates mine's images better than theirs'."
APART = "viescore with gpt cannot tell mine and theirs apart."
SAME = "viescore with gpt gives every image the same score, so it cannot compare them."
NONE = "No generator has enough scores on your images."


@pytest.mark.parametrize(
    ("mine", "theirs", "said"),
    [
        ([0.5, 0.6], [], ONE),
        ([0.9] * 9, [0.1] * 9, BETTER),
        ([0.5, 0.6] * 5, [0.5, 0.6] * 5, APART),
        ([0.5] * 9, [0.5] * 9, SAME),
        ([None] * 9, [None] * 9, NONE),
    ],
)
def test_report_and_rank_make_one_page_of_unrated_images(tmp_path, mine, theirs, said):
    results = generators(tmp_path, {"mine": mine, "theirs": theirs})
    text, ranked = (page_of(page, tmp_path, results) for page in ("report", "rank"))
    assert titled(text) == said
    assert "Your images, judged by viescore 0shot (gpt)" in Page(text).said
    first, second = (
        page.split("<header>")[1].split('id="appendix"')[0] for page in (text, ranked)
    )
    assert first == second


def test_too_few_prompts_for_a_test_are_named_as_such(tmp_path):
    said = "At least 6 prompts are needed to show a difference."
    for number in (5, 6):
        folder = tmp_path / str(number)
        folder.mkdir()
        rising = [n / 99 for n in range(number)]
        mine, theirs = [0.1 + n for n in rising], [0.9 - n for n in rising]
        results = generators(folder, {"mine": mine, "theirs": theirs})
        assert (said in Page(report_of(folder, results)).said) == (number < 6)


def test_a_result_without_verdicts_says_so(tmp_path):
    text = report_of(tmp_path, Results(()))
    assert inside(text, "h1") == "No judge has a result."
    assert "Results without verdicts" in text
    assert "Gallery" not in text


def cards(text):
    """The cards of a page by their ids."""
    pattern = r'<article class="card[^"]*" id="([^"]+)"(.*?)</article>'
    return dict(re.findall(pattern, text, re.DOTALL))


def heading(card):
    """The title of a card."""
    return re.search(r"<h3[^>]*>(.*?) <span", card)[1]


def headings(text):
    """Titles of the cards of a section that a text begins with."""
    return [heading(card) for card in cards(text.split("</section>")[0]).values()]


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
    assert heading(shown_card(text)) == "p3"
    assert ('class="bars"' in text) is not third
    if not third:
        drawn = re.findall(r'<rect class="(ahead|behind)" x', text)
        assert drawn == ["ahead", "ahead", "behind", "behind"]
        assert "mine scores higher on 1 of 4 prompts" in Page(text).said
        assert "theirs on 2, equal on 1." in Page(text).said
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
    assert "p899" in map(heading, cards(text.split('id="cards"')[1]).values())


def rated_results(tmp_path):
    """A run on images of a user's own, of which people see two otherwise than the judge."""
    [run] = generators(tmp_path, {"mine": [n / 12 for n in range(12)]}).runs
    far = {3: 1.0, 10: 0.0}
    records = [
        (replace(record, ratings={"SC": (far.get(number, number / 12),)}),)
        for number, (record,) in enumerate(run.records["tig"])
    ]
    return replace(run, records={"tig": records})


def test_the_strip_has_the_largest_disagreements(tmp_path):
    text = rated(tmp_path, {"good": 0.05, "poor": 3.0})
    # no pictures are here
    assert "Where judges and the planted order disagree most" not in text
    own = report_of(tmp_path, Results((rated_results(tmp_path),)))
    assert "Your images, judged by viescore 0shot (gpt)" in own
    assert "Only the images of mine were judged" in titled(own)
    # the answer on the judge follows
    assert "gpt " in Page(own.split("<main>")[0]).said
    assert "annotators: SC 1.00" in own
    assert "SC: place by people 5%, by the judge 91% (0% is the lowest, equal" in own


def test_with_few_ratings_the_page_says_who_leads_and_what_would_decide(tmp_path):
    rng = random.Random(1)
    scores = {
        name: [mean + rng.uniform(-0.2, 0.2) for _ in range(40)]
        for name, mean in (("mine", 0.7), ("theirs", 0.5))
    }
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
    assert inside(text, "h1") == "mine leads so far."
    lead = plain(re.search('<p class="lead">(.*?)</p>', text)[1])
    confirmed = "would confirm a lead this large four times in five. Result so far: "
    rating = "Rating about 20 more prompts of each generator"
    assert lead.startswith(f"{rating} {confirmed}Corrected mean SC of mine: ")
    assert '<progress max="80" value="40"' in text
    assert "40 of 80 images are rated" in text
    rows = [line for line in text.splitlines() if "<tr><td>" in line]
    assert any("<td>corrected</td>" in row for row in rows)
    assert any("<td>judge alone</td>" in row for row in rows)


def contests(tmp_path, votes):
    """Results of a judge that votes so on contests of two generators."""
    equal = [0.5] * len(votes)
    [run] = generators(tmp_path, {"mine": equal, "theirs": equal}).runs
    samples = [record.sample for (record,) in run.records["tig"]]
    records = []
    for number, vote in enumerate(votes):
        identity = SampleId(OWN, "tig", "", f"c{number}")
        contest = Contest(identity, tuple(samples[number :: len(votes)]), Votes())
        choice = Choice({"forward": vote, "reverse": vote})
        verdict = Verdict({}, Status.OK, choice=choice)
        records.append((record_of(contest, verdict, MADE),))
    about = {"judge": "pairwise", "aspects": (), "records": {"tig": records}}
    return Results((replace(run, **about),))


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
    title = inside(text, "h1")
    first_card = shown_card(text)
    assert f"prefers {winner}" in title
    assert f'<b>{winner}</b> <span class="score">beat {loser}<' in first_card
    assert f'<b>{loser}</b> <span class="score">lost to {winner}<' in first_card


def test_a_card_says_how_an_image_fared_in_several_contests(tmp_path):
    names = ("aurora", "borealis", "dune")
    runs = generators(tmp_path, {name: [0.5] for name in names}).runs
    samples = [record.sample for run in runs for (record,) in run.records["tig"]]
    votes = {(0, 1): "first", (0, 2): "first", (1, 2): "tie"}
    records = []
    for (one, other), vote in votes.items():
        identity = SampleId(OWN, "tig", "", f"c{one}{other}")
        contest = Contest(identity, (samples[one], samples[other]), Votes(), group="p0")
        choice = Choice({"forward": vote, "reverse": vote})
        verdict = Verdict({}, Status.OK, f"on {one} and {other}", choice=choice)
        records.append((record_of(contest, verdict, MADE),))
    run = Run("gpt", OWN, "pairwise", (), {"tig": records}, model="gpt")
    card = inside(plain(report_of(tmp_path, Results((run,)))), "article")
    assert re.findall(r'<b>(\w+)</b> <span class="score">([^<]*)<', card) == [
        ("aurora", "won 2 of 2: beat borealis and dune"),
        ("borealis", "won 0 of 2: tied with dune; lost to aurora"),
        ("dune", "won 0 of 2: tied with borealis; lost to aurora"),
    ]
    reasons = re.findall(r"on \d and \d", card.split("3 verdicts")[0])
    assert reasons == ["on 0 and 1", "on 1 and 2", "on 1 and 2"]


SHARPER = "sharpness finds noisy's images sharper than mine's."
SHARPEST = "sharpness finds noisy's images the sharpest of the three."
ALIKE = "sharpness cannot tell {mine} and {} apart."


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"mine": [0.9] * 9, "noisy": [1.0] * 9}, SHARPER),
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


def test_drawn_images_are_on_the_page(tmp_path, vieval, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = tmp_path / "vieval.yaml"
    options.write_text("store: {use: false}\nstatistics: {draws: 50}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    command = "score --benchmark vieval_demo --judge sharpness --limit 24"
    vieval(f"{command} --out verdicts.jsonl")
    vieval("report", "verdicts.jsonl", "--out", "page")
    page = (tmp_path / "page" / "report.html").read_text()
    assert page.count('<div class="strip">') == 1
    assert page.count('<image id="p') > 20


def test_a_judge_that_refuses_much_says_so_on_the_first_screen(tmp_path):
    some = {"aurora": [0.8, None] * 6, "borealis": [0.6, 0.7, None] * 4}
    text = report_of(tmp_path, generators(tmp_path, some))
    [lead] = re.findall('<p class="lead">(.*?)</p>', text)
    assert lead.endswith(" 10 of 24 verdicts have no score (10 refusal).")
    few = {"aurora": [0.8] * 12, "borealis": [0.6] * 11 + [None]}
    assert "have no score" not in report_of(tmp_path, generators(tmp_path, few))
