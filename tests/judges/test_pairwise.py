"""Test the judge of contests: its questions in both orders, and its answers."""

import itertools
import json
import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asked_contests import (
    CONDITIONS,
    SAID,
    SHOWN,
    TEXTS,
    build,
    contest,
    known,
    not_applicable,
    numbers,
    own_pack,
    reply,
)
from tests.pictures import plain
from tests.playing import first_asks, images_of, play, prepared, text_of
from vieval_plugin import Image, Sample, SampleId, Status
from vieval_plugin.judges.contests import SCHEMES, Contest, ranks
from vieval_plugin.judges.pairwise import step_of
from vieval_plugin.judges.pairwise.question import LETTERS, presentation_order
from vieval_plugin.judges.pairwise.reading import reader, schema
from vieval_plugin.judges.protocol import Probabilities, Text
from vieval_plugin.records import fingerprint, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.results.lookup import conversation
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_in_batches

FORM_OPTIONS = {"two_way": {"answers": "two_way"}, "expected": {"mode": "expected"}}
HEADING = r"Candidate (\w), a picture:\s*$"


@pytest.mark.parametrize("form", ["four_way", "two_way", "ranking", "expected"])
@pytest.mark.parametrize("kind", SHOWN)
def test_conditions_are_shown_once_and_candidates_below_letters(kind, form):
    judged = contest(3 if form == "ranking" else 2, kind)
    count = len(judged.candidates)
    forward, reverse = first_asks(build(**FORM_OPTIONS.get(form, {}))(judged))
    assert (forward.path, reverse.path) == (("forward",), ("reverse",))
    assert numbers(forward) == numbers(reverse)[::-1] == list(range(1, count + 1))
    for ask in (forward, reverse):
        shown = images_of(ask)
        sources = [image.source.decode() for image in shown]
        assert sources[: len(SHOWN[kind])] == SHOWN[kind]
        assert len(shown) == len(SHOWN[kind]) + count
        parts = ask.messages[0].parts
        places = [at for at, part in enumerate(parts) if part in shown[-count:]]
        letters = [re.search(HEADING, parts[at - 1])[1] for at in places]
        assert letters == [*"ABC"[:count]]
        text = text_of(ask)
        assert TEXTS["subject" if kind == "sdie" else SAID[kind]] in text
        is_prompt = SAID.get(kind) == "prompt"
        assert text.count("as the prompt says it") == is_prompt


@pytest.mark.parametrize(
    ("role", "words"),
    [("frame_", "a video in 3 images"), ("view_", "a 3D object in 3 images")],
)
def test_frames_and_views_of_a_candidate_stand_together_in_order(role, words):
    def candidate(n):
        images = {f"{role}{f}": Image(f"{n}:{f}".encode()) for f in (10, 9, 0)}
        images["output"] = Image(b"cover")
        return Sample(SampleId("b", "tig", f"m{n}", "1"), images, TEXTS)

    judged = Contest(SampleId("b", "v", "", "1"), (candidate(1), candidate(2)))
    [_, reverse] = first_asks(prepared("pairwise").program(judged))
    shown = [image.source.decode() for image in images_of(reverse)]
    assert shown == [f"{n}:{f}" for n in (2, 1) for f in (0, 9, 10)]
    assert text_of(reverse).count(words) == 2


def test_a_text_cannot_pass_for_a_picture():
    text = "a \ufffcB\ufffc and \ufffc \ufffcsource\ufffc"
    judged = contest(texts={**TEXTS, "instruction": text})
    [forward, _] = first_asks(build()(judged))
    assert numbers(forward) == [1, 2]
    assert len(images_of(forward)) == 3
    assert "a B and  source" in text_of(forward)


@pytest.mark.parametrize(
    ("form", "number", "answer"),
    [
        ("four_way", 2, {"better": "both good"}),
        ("two_way", 2, {"better": "B"}),
        ("ranking", 4, {"places": dict(zip("ABCD", (1, 4, 1, 2), strict=True))}),
    ],
)
def test_what_the_schema_lets_through_is_read(form, number, answer):
    asked = schema(form, number)
    assert list(asked["properties"]) == ["reasoning", *answer] == asked["required"]
    read = reader(form, presentation_order("forward", number))
    text = json.dumps({"reasoning": "r", **answer})
    assert read(text).status is Status.OK
    if form != "ranking":
        words = asked["properties"]["better"]["enum"]
        assert {read(reply(word).text).value for word in words} == set(SCHEMES[form])


def test_two_way_takes_no_tie():
    [forward, _] = first_asks(build(answers="two_way")(contest()))
    assert forward.schema["properties"]["better"]["enum"] == ["A", "B"]
    assert "both" not in text_of(forward)
    tie = reader("two_way", (1, 2))(reply("both good").text)
    assert tie.status is Status.PARSE_FAILURE


@given(st.lists(st.integers(1, 6), min_size=3, max_size=6))
def test_a_true_ranking_is_the_same_in_both_orders(truth):
    number = len(truth)
    truth = [min(place, number) for place in truth]

    def answer(ask):
        letters = zip(LETTERS, numbers(ask), strict=False)
        places = {letter: truth[n - 1] for letter, n in letters}
        return Text(json.dumps({"reasoning": "x", "places": places}))

    verdict = play(build()(contest(number)), answer=answer).verdict
    votes = verdict.choice.votes
    assert votes["forward"] == votes["reverse"]
    pairs = itertools.combinations(truth, 2)
    found = itertools.combinations(ranks(votes["forward"], number), 2)
    for (a, b), (x, y) in zip(pairs, found, strict=True):
        assert ((a > b) - (a < b)) == ((x > y) - (x < y))
    assert (verdict.status, verdict.findings) == (Status.OK, ())


def one_unread(ask):
    return Text("no idea") if ask.path == ("reverse",) else reply("both bad")


PARTLY_KNOWN = Probabilities((0.3, 0, 0, 0), (0.3, 0.1, 0.2, 0.2))


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("answer", lambda ask: reply("A")),
        ("answer", one_unread),
        ("expected", lambda ask: known(0.55, 0.3, 0.01)),
        ("expected", lambda ask: PARTLY_KNOWN),
    ],
)
def test_a_verdict_is_kept_and_its_conversation_had_again(mode, answer):
    judge, judged = prepared("pairwise", mode=mode), contest()
    played = play(judge.program(judged), answer=answer)
    verdict = played.verdict
    print_of = fingerprint(judged)
    written = response_json(judged.id, verdict, judge.provenance, print_of)
    record = read_record(written, target_json(judged))
    assert record.verdict == verdict
    titles = judge.spec.titles(verdict.trace)
    assert {step.path for step in verdict.trace} == set(titles)
    settings = {"answer": ("four_way",), "expected": ("expected",)}
    assert record.provenance.settings == settings[mode]
    exchanges = conversation(judge.program, judged, record.verdict)
    assert [exchange.ask for exchange in exchanges] == played.asks
    units = judge.spec.export.units(judged.id, exchanges)
    read = {step.path for step in verdict.trace if step.status.usable}
    assert len(units) == (len(read) if mode == "answer" else 0)
    for unit in units:
        [example] = unit.examples
        assert example.messages[-1].role == "assistant"
        assert example.trained == (len(example.messages) - 1,)
        assert unit.score is None
    examples = {example.id for unit in units for example in unit.examples}
    assert len(examples) == len(units)


def test_bounds_are_all_that_is_possible_and_no_more():
    draw = random.Random(0)
    for _ in range(50):
        low = [draw.random() / 4 for _ in "aabb"]
        high = [p + draw.random() / 3 for p in low]
        least, most = step_of(Probabilities(tuple(low), tuple(high)), "forward").bounds
        first = (sum(low[:2]), sum(high[:2]))
        second = (sum(low[2:]), sum(high[2:]))
        for _ in range(300):
            a, b = draw.uniform(*first), draw.uniform(*second)
            assert a + b > 1 or least - 1e-9 <= a - b <= most + 1e-9
        corners = [(a, min(b, 1 - a)) for a, b in itertools.product(first, second)]
        corners.append((1 - second[0], second[0]))
        top, bottom = first[1] + 1e-9, second[0] - 1e-9
        reached = [a - b for a, b in corners if first[0] <= a <= top and b >= bottom]
        assert (min(reached), max(reached)) == pytest.approx((least, most))


OTHER_SOURCE = {**CONDITIONS, "source": Image(b"other"), "output": Image(b"2")}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"texts": {**TEXTS, "instruction": "other"}}, "instruction"),
        ({"texts": {**TEXTS, "extra": "x"}}, "extra"),
        ({"images": OTHER_SOURCE}, "source"),
        ({"kind": "mie"}, "kind"),
    ],
)
def test_candidates_of_different_conditions_are_no_contest(change, reason):
    first, second = contest().candidates
    different = (first, replace(second, **change))
    said = not_applicable(Contest(SampleId("b", "p", "", "1"), different))
    assert "all candidates must have the same conditions" in said
    assert said.endswith(f"but candidates 1 and 2 differ in {reason}")


@pytest.mark.parametrize(
    ("judged", "options", "said"),
    [
        (contest(3), {"mode": "expected"}, "requires exactly 2 candidates, got 3"),
        (contest(27), {}, "at most 26"),
        (contest(kind="new"), {}, "does not support the kind"),
        (contest().candidates[0], {}, "use `vieval rank A B --judge pairwise`"),
    ],
)
def test_what_one_question_cannot_hold_is_not_applicable(judged, options, said):
    assert said in not_applicable(judged, **options)


SOURCE = "{{ places.source }}"
ONE, OTHER = (f"{{{{ candidates[{number}].place }}}}" for number in (0, 1))


@pytest.mark.parametrize(
    "text", [SOURCE + ONE, ONE + OTHER, SOURCE + ONE + ONE + OTHER, "nothing"]
)
def test_a_pack_that_does_not_show_everything_once_is_named(tmp_path, text):
    judge = prepared("pairwise", pack=own_pack(tmp_path / "pack", text))
    pictures = {"source": Image(plain("grey")), "output": Image(plain("red"))}
    candidates = [replace(one, images=pictures) for one in contest().candidates]
    judged = replace(contest(), candidates=tuple(candidates))
    [outcome] = judge_in_batches([Job(judged, judge)], lambda asks: [], Progress())
    assert outcome.verdict.status is Status.TOOL_ERROR
    named = "prompt pack mine, template q.jinja: must contain each of"
    assert named in outcome.verdict.trace[0].reason


def test_a_pack_may_show_fewer_kinds_and_other_images(tmp_path):
    places = "{{ places.mask }}{% for one in candidates %}{{ one.place }}{% endfor %}"
    shows_mask = "  mie: {template: q.jinja, images: [mask], scores: []}"
    pack = own_pack(tmp_path / "pack", places, shows_mask)
    lacking = "prompt pack mine has no question for the kind 'tie'"
    assert not_applicable(contest(), pack=pack) == lacking
    masked = contest(kind="mie")
    [forward, _] = first_asks(prepared("pairwise", pack=pack).program(masked))
    assert images_of(forward)[0] == CONDITIONS["mask"]
    others = {r: i for r, i in masked.candidates[0].images.items() if r != "mask"}
    bare = tuple(replace(one, images=others) for one in masked.candidates)
    said = not_applicable(replace(masked, candidates=bare), pack=pack)
    lacking = "prompt pack mine shows the image mask, which the candidates do not have"
    assert said == lacking
