"""A judge of contests: what it asks in both orders, how answers are turned round, and what an
unread order is.
"""

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
    knowing,
    known,
    not_applicable,
    numbers,
    own_pack,
    reply,
)
from tests.pictures import plain
from tests.playing import first_asks, images_of, play, prepared, text_of
from vieval_plugin.judges import pairwise
from vieval_plugin.judges.contests import FIRST, SCHEMES, SECOND, Contest, ranks
from vieval_plugin.judges.pairwise import preference_of, step_of
from vieval_plugin.judges.pairwise.question import LETTERS, presentation_order
from vieval_plugin.judges.pairwise.reading import reader, schema
from vieval_plugin.judges.protocol import (
    Failure,
    Image,
    Measurement,
    Probabilities,
    Sample,
    SampleId,
    Status,
    Text,
)
from vieval_plugin.records import fingerprint, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.results.lookup import conversation
from vieval_plugin.run.jobs import Job
from vieval_plugin.run.progress import Progress
from vieval_plugin.run.runner import judge_in_batches

# What is asked.


@pytest.mark.parametrize(
    ("kind", "form"),
    [*itertools.product(SHOWN, ["four_way", "two_way", "ranking", "expected"])],
)
def test_each_kind_shows_its_conditions_once_and_every_candidate_below_its_letter(
    kind, form
):
    options = (
        {"mode": "expected"}
        if form == "expected"
        else {"answers": "two_way"}
        if form == "two_way"
        else {}
    )
    judged = contest(3 if form == "ranking" else 2, kind)
    for ask, order in zip(
        first_asks(build(**options)(judged)), ("forward", "reverse"), strict=True
    ):
        assert ask.path == (order,)
        count = len(judged.candidates)
        assert numbers(ask) == list(
            range(1, count + 1) if order == "forward" else range(count, 0, -1)
        )
        assert [i.source.decode() for i in images_of(ask)][: len(SHOWN[kind])] == SHOWN[
            kind
        ]
        assert len(images_of(ask)) == len(SHOWN[kind]) + count
        parts = ask.messages[0].parts
        headings = [
            parts[at - 1]
            for at, part in enumerate(parts)
            if part in images_of(ask)[-count:]
        ]
        assert [
            re.search(r"Candidate (\w), a picture:\s*$", heading)[1]
            for heading in headings
        ] == [*"ABC"[:count]]
        words = TEXTS["subject"] if kind == "sdie" else TEXTS[SAID[kind]]
        assert words in text_of(ask)
        assert text_of(ask).count("as the prompt says it") == (
            SAID.get(kind) == "prompt"
        )


def test_both_orders_are_asked_at_once_and_one_where_one_is_wanted():
    assert play(build()(contest()), answer=knowing(FIRST)).labels == [
        ["forward", "reverse"]
    ]
    played = play(build(orders="one")(contest()), answer=knowing(FIRST))
    assert (played.labels, dict(played.verdict.choice.votes)) == (
        [["forward"]],
        {"forward": FIRST},
    )


@pytest.mark.parametrize(
    ("role", "words"),
    [("frame_", "a video in 3 images"), ("view_", "a 3D object in 3 images")],
)
def test_frames_and_views_of_a_candidate_stand_together_in_order(role, words):
    def candidate(n):
        return Sample(
            SampleId("b", "tig", f"m{n}", "1"),
            {
                "output": Image(b"cover"),
                **{f"{role}{f}": Image(f"{n}:{f}".encode()) for f in (10, 9, 0)},
            },
            TEXTS,
        )

    judged = Contest(SampleId("b", "v", "", "1"), (candidate(1), candidate(2)))
    [_, reverse] = first_asks(prepared("pairwise").program(judged))
    assert [i.source for i in images_of(reverse)] == [
        f"{n}:{f}".encode() for n in (2, 1) for f in (0, 9, 10)
    ]
    assert text_of(reverse).count(words) == 2


def test_a_text_cannot_pass_for_a_picture():
    judged = contest(
        texts={**TEXTS, "instruction": "a \ufffcB\ufffc and \ufffc \ufffcsource\ufffc"}
    )
    [forward, _] = first_asks(build()(judged))
    assert numbers(forward) == [1, 2]
    assert len(images_of(forward)) == 3
    assert "a B and  source" in text_of(forward)


@pytest.mark.parametrize(
    ("form", "number", "answer"),
    [
        ("four_way", 2, {"better": "both good"}),
        ("two_way", 2, {"better": "B"}),
        ("ranking", 4, {"places": {"A": 1, "B": 4, "C": 1, "D": 2}}),
    ],
)
def test_what_the_schema_lets_through_is_read(form, number, answer):
    asked = schema(form, number)
    assert list(asked["properties"]) == ["reasoning", *answer] == asked["required"]
    assert (
        reader(form, presentation_order("forward", number))(
            json.dumps({"reasoning": "r", **answer})
        ).status
        is Status.OK
    )
    if form != "ranking":
        votes = {
            reader(form, (1, 2))(json.dumps({"reasoning": "r", "better": word})).value
            for word in asked["properties"]["better"]["enum"]
        }
        assert votes == set(SCHEMES[form])


# Verdicts.


@pytest.mark.parametrize("vote", SCHEMES["four_way"])
def test_a_backbone_that_knows_the_truth_is_right_in_both_orders(vote):
    verdict = play(build()(contest()), answer=knowing(vote)).verdict
    assert dict(verdict.choice.votes) == {"forward": vote, "reverse": vote}
    assert (verdict.status, verdict.findings, verdict.scores) == (Status.OK, (), {})
    assert verdict.rationale == "forward: because\nreverse: because"


@pytest.mark.parametrize(
    ("letter", "votes"), [("A", (FIRST, SECOND)), ("B", (SECOND, FIRST))]
)
def test_a_backbone_that_names_a_position_is_inconsistent(letter, votes):
    verdict = play(build()(contest()), answer=lambda ask: reply(letter)).verdict
    assert tuple(verdict.choice.votes.values()) == votes
    assert (verdict.status, verdict.findings) == (Status.OK, ("inconsistent",))


def test_both_good_in_one_order_and_both_bad_in_the_other_is_inconsistent():
    verdict = play(build()(contest()), [reply("both good"), reply("both bad")]).verdict
    assert verdict.findings == ("inconsistent",)


UNREAD = [
    (Text("I'm sorry, but I can't assist with that."), Status.PARSE_FAILURE),
    (Failure(Status.REFUSAL, "the filter"), Status.REFUSAL),
    (Failure(Status.API_ERROR, "timed out"), Status.API_ERROR),
    (Measurement(1.0), Status.API_ERROR),
    (Text("What lovely pictures."), Status.PARSE_FAILURE),
]


@pytest.mark.parametrize(("bad", "status"), UNREAD)
@pytest.mark.parametrize("unread", ["forward", "reverse"])
def test_an_order_that_is_not_read_has_its_status_and_no_vote(bad, status, unread):
    verdict = play(
        build(0)(contest()),
        answer=lambda ask: bad if ask.path == (unread,) else reply("B"),
    ).verdict
    assert verdict.status is status
    other = {"forward": "reverse", "reverse": "forward"}[unread]
    assert dict(verdict.choice.votes) == {
        other: SECOND if other == "forward" else FIRST
    }
    assert {step.path[0]: step.status for step in verdict.trace} == {
        unread: status,
        other: Status.OK,
    }
    assert verdict.findings == ()


def test_neither_order_read_is_no_vote_at_all():
    verdict = play(
        build()(contest()), answer=lambda ask: Failure(Status.API_ERROR, "gone")
    ).verdict
    assert (verdict.status, dict(verdict.choice.votes)) == (Status.API_ERROR, {})


def test_a_reply_that_cannot_be_read_is_asked_for_again():
    played = play(
        build()(contest()), [Text("A or B, hard to say."), reply("B")], [reply("A")]
    )
    assert played.labels == [["forward", "reverse"], ["forward"]]
    assert "no JSON object found" in text_of(played.asks[-1])
    assert played.verdict.status is Status.REPAIRED
    assert dict(played.verdict.choice.votes) == {"forward": FIRST, "reverse": FIRST}


def test_two_way_takes_no_tie():
    [forward, _] = first_asks(build(answers="two_way")(contest()))
    assert forward.schema["properties"]["better"]["enum"] == ["A", "B"]
    assert "both" not in text_of(forward)
    assert (
        reader("two_way", (1, 2))(reply("both good").text).status
        is Status.PARSE_FAILURE
    )


# More than two candidates.


@given(st.data())
def test_a_true_ranking_is_the_same_in_both_orders(data):
    number = data.draw(st.integers(3, 6))
    truth = data.draw(
        st.lists(st.integers(1, number), min_size=number, max_size=number)
    )

    def answer(ask):
        places = {
            letter: truth[n - 1]
            for letter, n in zip(LETTERS, numbers(ask), strict=False)
        }
        return Text(json.dumps({"reasoning": "x", "places": places}))

    verdict = play(build()(contest(number)), answer=answer).verdict
    votes = verdict.choice.votes
    assert votes["forward"] == votes["reverse"]
    found = ranks(votes["forward"], number)
    for (a, b), (x, y) in zip(
        itertools.combinations(truth, 2), itertools.combinations(found, 2), strict=True
    ):
        assert ((a > b) - (a < b)) == ((x > y) - (x < y))
    assert (verdict.status, verdict.findings) == (Status.OK, ())


def test_a_ranking_by_position_is_inconsistent_and_turned_round():
    verdict = play(
        build()(contest(3)),
        answer=lambda ask: Text(
            '{"reasoning": "x", "places": {"A": 1, "B": 2, "C": 2}}'
        ),
    ).verdict
    assert dict(verdict.choice.votes) == {"forward": "1>2=3", "reverse": "3>1=2"}
    assert verdict.findings == ("inconsistent",)


# Through the house.


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({}, lambda ask: reply("A")),
        (
            {},
            lambda ask: (
                Text("no idea") if ask.path == ("reverse",) else reply("both bad")
            ),
        ),
        ({"mode": "expected"}, lambda ask: known(0.55, 0.3, 0.01)),
        (
            {"mode": "expected"},
            lambda ask: Probabilities((0.3, 0, 0, 0), (0.3, 0.1, 0.2, 0.2)),
        ),
    ],
)
def test_a_verdict_is_kept_and_its_conversation_had_again(options, answer):
    judge, judged = prepared("pairwise", **options), contest()
    played = play(judge.program(judged), answer=answer)
    written = response_json(
        judged.id, played.verdict, judge.provenance, fingerprint(judged)
    )
    record = read_record(written, target_json(judged))
    assert record.verdict == played.verdict
    assert record.provenance.settings == (("expected",) if options else ("four_way",))
    exchanges = conversation(judge.program, judged, record.verdict)
    assert [exchange.ask for exchange in exchanges] == played.asks
    units = judge.spec.export.units(judged.id, exchanges)
    read = (
        {step.path for step in played.verdict.trace if step.status.usable}
        if not options
        else set()
    )
    assert len(units) == len(read)
    for unit in units:
        [example] = unit.examples
        *_, last = example.messages
        assert (last.role, example.trained, unit.score) == (
            "assistant",
            (len(example.messages) - 1,),
            None,
        )
    assert len({example.id for unit in units for example in unit.examples}) == len(
        units
    )


def test_titles_belong_to_the_steps():
    verdict = play(build()(contest()), answer=knowing(FIRST)).verdict
    assert {step.path for step in verdict.trace} == set(
        pairwise.SPEC.titles(verdict.trace)
    )


# By the probabilities of answers: preferences, and bounds where they are not all known.


def test_a_preference_is_the_difference_and_turned_round():
    played = play(
        build(mode="expected")(contest()), [known(0.6, 0.2), known(0.1, 0.5, 0.05)]
    )
    assert {ask.continuations for ask in played.asks} == {("A", " A", "B", " B")}
    verdict = played.verdict
    assert dict(verdict.choice.preferences) == pytest.approx(
        {"forward": 0.4, "reverse": 0.4}
    )
    assert dict(verdict.choice.votes) == {}
    assert (verdict.status, verdict.findings, verdict.scores) == (Status.OK, (), {})
    of_position = play(
        build(mode="expected")(contest()), [known(0.7, 0.1), known(0.6, 0.2)]
    ).verdict
    assert dict(of_position.choice.preferences) == pytest.approx(
        {"forward": 0.6, "reverse": -0.4}
    )
    assert of_position.findings == ("inconsistent",)


def test_an_answer_that_begins_otherwise_is_counted():
    verdict = play(
        build(mode="expected")(contest()), [known(0.1, 0.05), known(0.3, 0.6)]
    ).verdict
    assert verdict.findings == ("neither letter is likely",)


def test_one_order_without_probabilities_leaves_the_other():
    verdict = play(
        build(mode="expected")(contest()),
        [Failure(Status.API_ERROR, "no"), known(0.2, 0.7)],
    ).verdict
    assert (verdict.status, dict(verdict.choice.preferences)) == (
        Status.API_ERROR,
        pytest.approx({"reverse": 0.5}),
    )
    verdict = play(
        build(mode="expected")(contest()), [Text("A"), known(0.2, 0.7)]
    ).verdict
    assert verdict.status is Status.API_ERROR


def test_bounds_are_all_that_is_possible_and_no_more():
    draw = random.Random(0)
    for _ in range(50):
        low = [draw.random() / 4 for _ in "aabb"]
        high = [p + draw.random() / 3 for p in low]
        least, most = step_of(Probabilities(tuple(low), tuple(high)), "forward").bounds
        inside = [
            (
                draw.uniform(sum(low[:2]), sum(high[:2])),
                draw.uniform(sum(low[2:]), sum(high[2:])),
            )
            for _ in range(300)
        ]
        ends = itertools.product(
            (sum(low[:2]), sum(high[:2])), (sum(low[2:]), sum(high[2:]))
        )
        corners = [(a, min(b, 1 - a)) for a, b in ends] + [
            (1 - sum(low[2:]), sum(low[2:]))
        ]
        possible = [a - b for a, b in inside if a + b <= 1]
        assert all(least - 1e-9 <= difference <= most + 1e-9 for difference in possible)
        reached = [
            a - b
            for a, b in corners
            if sum(low[:2]) <= a <= sum(high[:2]) + 1e-9 and b >= sum(low[2:]) - 1e-9
        ]
        assert (min(reached), max(reached)) == pytest.approx((least, most))


def test_what_is_known_to_an_interval_only_is_said_so():
    unlisted = Probabilities((0.6, 0.0, 0.0, 0.0), (0.6, 0.01, 0.1, 0.1))
    verdict = play(build(mode="expected")(contest()), [unlisted, unlisted]).verdict
    assert dict(verdict.bounds) == {
        "forward": pytest.approx((0.4, 0.61)),
        "reverse": pytest.approx((-0.61, -0.4)),
    }
    assert verdict.choice.preferences["reverse"] == pytest.approx(-0.505)
    assert verdict.trace[1].bounds == pytest.approx((0.4, 0.61))
    assert preference_of((0.0, 0.0), "reverse") == (0.0, 0.0)


# What is not asked about, and packs that do not show what they must.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"texts": {**TEXTS, "instruction": "other"}}, "instruction"),
        ({"texts": {**TEXTS, "extra": "x"}}, "extra"),
        (
            {
                "images": {
                    **CONDITIONS,
                    "source": Image(b"other"),
                    "output": Image(b"2"),
                }
            },
            "source",
        ),
        ({"kind": "mie"}, "kind"),
    ],
)
def test_candidates_of_different_conditions_are_no_contest(change, reason):
    first, second = contest().candidates
    fields = {
        "images": second.images,
        "texts": second.texts,
        "kind": second.kind,
        **change,
    }
    said = not_applicable(
        Contest(SampleId("b", "p", "", "1"), (first, Sample(second.id, **fields)))
    )
    assert (
        said
        == f"all candidates must have the same conditions, but candidates 1 and 2 differ in {reason}"
    )


def test_what_one_question_cannot_hold_is_not_applicable():
    assert "requires exactly 2 candidates, got 3" in not_applicable(
        contest(3), mode="expected"
    )
    assert "at most 26" in not_applicable(contest(27))
    assert "does not support the kind" in not_applicable(contest(kind="new"))
    assert "judges contests, not single samples" in not_applicable(
        contest().candidates[0]
    )


@pytest.mark.parametrize(
    "text",
    [
        "{{ places.source }}{{ candidates[0].place }}",
        "{{ candidates[0].place }}{{ candidates[1].place }}",
        (
            "{{ places.source }}{{ candidates[0].place }}{{ candidates[0].place }}{{ "
            "candidates[1].place }}"
        ),
        "nothing",
    ],
)
def test_a_pack_that_does_not_show_everything_once_is_named(tmp_path, text):
    judge = prepared("pairwise", pack=own_pack(tmp_path / "pack", text))
    pictures = {"source": Image(plain("grey")), "output": Image(plain("red"))}
    candidates = tuple(
        replace(candidate, images=pictures) for candidate in contest().candidates
    )
    [outcome] = judge_in_batches(
        [Job(replace(contest(), candidates=candidates), judge)],
        lambda asks: [],
        Progress(),
    )
    assert outcome.verdict.status is Status.TOOL_ERROR
    assert (
        "prompt pack mine, template q.jinja: must contain each of"
        in outcome.verdict.trace[0].reason
    )


def test_a_pack_may_show_fewer_kinds_and_other_images(tmp_path):
    places = "{{ places.mask }}{% for one in candidates %}{{ one.place }}{% endfor %}"
    shows_mask = "  mie: {template: q.jinja, images: [mask], scores: []}"
    pack = own_pack(tmp_path / "pack", places, shows_mask)
    assert (
        not_applicable(contest(), pack=pack)
        == "prompt pack mine has no question for the kind 'tie'"
    )
    [forward, _] = first_asks(
        prepared("pairwise", pack=pack).program(contest(kind="mie"))
    )
    assert images_of(forward)[0] == CONDITIONS["mask"]
    bare = tuple(
        Sample(
            c.id, {role: i for role, i in c.images.items() if role != "mask"}, c.texts
        )
        for c in contest(kind="mie").candidates
    )
    said = not_applicable(Contest(SampleId("b", "p", "", "1"), bare), pack=pack)
    assert (
        said
        == "prompt pack mine shows the image mask, which the candidates do not have"
    )
