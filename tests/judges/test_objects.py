"""Test clauses about objects by hand and by a second reading of GenEval's rules."""

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import a_table
from tests.extras import needs
from tests.pictures import plain
from tests.playing import play, prepared
from tests.refusals import refusal
from tests.tables import table
from vieval_plugin.judges.objects import (
    COLORS,
    RELATIONS,
    DetectedObject,
    check_scene,
    read_scene,
    reason_of_clauses,
    relations,
    scores_of_clauses,
    surest,
    to_result,
)
from vieval_plugin.judges.protocol import Image, Sample, SampleId, Status
from vieval_plugin.readers.samples import read_samples
from vieval_plugin.rewards.in_process import open_reward


def detected(text):
    """An object written as `class@left,top,right,bottom:color`."""
    label, _, rest = text.partition("@")
    sides, _, color = rest.partition(":")
    return DetectedObject(label, tuple(map(float, sides.split(","))), 1.0, color)


@pytest.mark.parametrize(*table("object_cases.jsonl"))
def test_a_case_made_by_hand(scene, found, failing, reason):
    clauses = check_scene(read_scene(json.dumps(scene)), list(map(detected, found)))
    assert [clause.aspect for clause in clauses if not clause.holds] == failing
    assert reason_of_clauses(clauses) == reason
    scores = scores_of_clauses(clauses)
    assert scores["SC"] == scores["O"] == float(not failing)
    assert scores["share"] == pytest.approx(1 - len(failing) / len(clauses))


def test_scores_of_each_kind_of_clause_that_there_is():
    cats = {"class": "cat", "count": 2, "color": "red"}
    scene = read_scene(json.dumps({"include": [cats, {"class": "dog"}]}))
    found = list(map(detected, ("cat@0,0,9,9:red", "dog@0,0,9,9")))
    scores = scores_of_clauses(check_scene(scene, found))
    assert (scores["SC"], scores["O"], scores["share"]) == (0, 0, 0.5)
    assert (scores["presence"], scores["count"], scores["color"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("tag", "exclude", "is_counting"),
    [
        ("counting", True, True),
        (None, True, True),
        (None, False, False),
        ("colors", True, False),
    ],
)
def test_a_prompt_is_of_numbers_by_its_tag_else_its_limits(tag, exclude, is_counting):
    document = {"include": [{"class": "cat"}]}
    document |= {"tag": tag} if tag else {}
    document |= {"exclude": [{"class": "cat", "count": 2}]} if exclude else {}
    assert read_scene(json.dumps(document)).is_counting is is_counting


@pytest.mark.parametrize(*table("wrong_scenes.jsonl"))
def test_a_text_of_another_form(text, words):
    assert words in refusal(read_scene, text)


def right(scene, boxes):
    """Whether an image is right, by (class, score, box, color) and the scene as JSON has it."""
    least = 0.9 if scene["tag"] == "counting" else 0.3
    held = {}
    for label, score, box, color in sorted(boxes, key=lambda one: -one[1]):
        if score > least and len(held.setdefault(label, [])) < 16:
            held[label].append((box, color))
    groups, good = [], True
    for one in scene["include"]:
        group = held.get(one["class"], [])[: one["count"]]
        matched = len(group) == one["count"]
        if matched and "color" in one:
            of_it = [color for _, color in group if color == one["color"]]
            matched = len(of_it) >= one["count"]
        if matched and "position" in one:
            relation, index = one["position"]
            pairs = itertools.product(group, groups[index] or ())
            stand = [stands(box, relation, other) for (box, _), (other, _) in pairs]
            matched = bool(groups[index]) and all(stand)
        groups.append(group if matched else None)
        good = good and matched
    for one in scene["exclude"]:
        good = good and len(held.get(one["class"], [])) < one["count"]
    return good


def stands(a, relation, b):
    x = (a[0] + a[2]) / 2 - (b[0] + b[2]) / 2
    y = (a[1] + a[3]) / 2 - (b[1] + b[3]) / 2
    length = math.hypot(x, y)  # as a root of squares it may be off by a bit
    left_x = max(abs(x) - 0.1 * (a[2] - a[0] + b[2] - b[0]), 0)
    left_y = max(abs(y) - 0.1 * (a[3] - a[1] + b[3] - b[1]), 0)
    if left_x < 0.001 and left_y < 0.001:
        return False
    moved = left_x if relation in ("left of", "right of") else left_y
    way = x if relation in ("left of", "right of") else y
    is_before = relation in ("left of", "above")
    return moved / length > 0.5 and (way < 0) == is_before


LABELS = ("cat", "dog", "cup")
CORNERS = st.integers(0, 60)  # few values, so that boxes touch and centres coincide
SCORES = st.sampled_from((0.1, 0.3, 0.30001, 0.5, 0.9, 0.91, 1.0))
SIDES = st.integers(1, 40)
BOXES = st.tuples(CORNERS, CORNERS, SIDES, SIDES).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)
FOUND = st.tuples(st.sampled_from(LABELS), SCORES, BOXES, st.sampled_from(COLORS[:2]))


@st.composite
def scenes(draw):
    include = []
    for number in range(draw(st.integers(0, 3))):
        one = {"class": draw(st.sampled_from(LABELS)), "count": draw(st.integers(1, 3))}
        if draw(st.booleans()):
            one["color"] = draw(st.sampled_from(COLORS[:2]))
        if number and draw(st.booleans()):
            relation = draw(st.sampled_from(RELATIONS))
            one["position"] = [relation, draw(st.integers(0, number - 1))]
        include.append(one)
    exclude = [
        {"class": label, "count": draw(st.integers(1, 18))}
        for label in draw(st.lists(st.sampled_from(LABELS), max_size=2))
    ]
    if not include and not exclude:
        include = [{"class": "cat", "count": 1}]
    tag = draw(st.sampled_from(("counting", "colors")))
    return {"tag": tag, "include": include, "exclude": exclude}


def selected(scene, boxes):
    """The boxes that count, as a detector hands them to the judge."""
    least = 0.9 if scene["tag"] == "counting" else 0.3
    chosen = []
    for label in LABELS:
        own = [box for box in boxes if box[0] == label]
        for index in surest([score for _, score, _, _ in own], least):
            _, score, box, color = own[index]
            chosen.append(DetectedObject(label, box, score, color))
    return chosen


@settings(max_examples=400)
@given(scenes(), st.lists(FOUND, max_size=24))
def test_an_image_is_right_by_both_readings(scene, boxes):
    clauses = check_scene(read_scene(json.dumps(scene)), selected(scene, boxes))
    assert scores_of_clauses(clauses)["SC"] == float(right(scene, boxes))


@settings(max_examples=400)
@given(FOUND, FOUND)
def test_a_position_by_both_readings(first, second):
    a, b = first[2], second[2]
    assert relations(a, b) == {one for one in RELATIONS if stands(a, one, b)}
    opposite = {"left of": "right of", "above": "below"}
    opposite |= {other: one for one, other in opposite.items()}
    assert {opposite[one] for one in relations(a, b)} == relations(b, a)


def test_more_than_sixteen_of_a_class_are_cut():
    assert surest([0.5] * 20, 0.3) == list(range(16))
    assert surest([], 0.3) == []


CLOCKS = {"class": "clock", "count": 3, "color": "green"}
SCENE = json.dumps({"include": [CLOCKS, {"class": "dog"}]})


def sample(text):
    texts = {"prompt": "a photo", "objects": text}
    return Sample(SampleId("own", "tig", "m", "1"), {"output": Image(b"x")}, texts)


def test_the_judge_asks_once_and_computes_its_reason():
    boxes = ("clock@0,0,9.5,9:green", "clock@20,0,29,9:brown", "dog@0,0,5,5")
    found = to_result(list(map(detected, boxes)))
    played = play(prepared("objects").program(sample(SCENE)), [found])
    [ask] = played.asks
    assert ask.tool == "objects"
    assert ask.arguments["labels"] == ("clock", "dog")
    assert ask.arguments["colored"] == (("clock", 3),)
    verdict = played.verdict
    assert verdict.rationale == "2 of 3 clocks; the second clock is brown, not green"
    assert (verdict.scores["SC"], verdict.scores["share"]) == (0, 0.5)
    [step] = verdict.trace
    assert json.loads(step.answer)["boxes"][0] == [0, 0, 10, 9]


DOG = {"include": [{"class": "dog"}]}


def test_without_colors_no_model_of_colors_is_asked_for():
    program = prepared("objects").program(sample(json.dumps(DOG)))
    played = play(program, [to_result([])])
    assert played.asks[0].arguments["colored"] == ()
    assert (played.verdict.scores["SC"], played.verdict.rationale) == (0, "no dog")


def test_a_scene_of_another_form_is_not_applicable():
    verdict = play(prepared("objects").program(sample("a dog"))).verdict
    assert (verdict.scores, verdict.status) == ({}, Status.NOT_APPLICABLE)
    assert "must use the format of GenEval" in verdict.reason


@pytest.mark.parametrize(
    ("name", "objects"), [("s.jsonl", DOG), ("s.csv", json.dumps(DOG))]
)
def test_a_column_of_objects_is_read(tmp_path, name, objects):
    (tmp_path / "a.png").write_bytes(plain("red"))
    row = {"image": "a.png", "prompt": "a dog", "objects": objects}
    a_table(tmp_path / name, [row])
    [read] = read_samples(tmp_path / name)
    assert read.sample.kind == "tig"
    assert json.loads(read.sample.texts["objects"]) == DOG


@needs("torch", "transformers")
def test_as_a_reward_it_is_strict_or_a_share():
    assert open_reward("objects").definition == "objects"
    assert open_reward("objects:share").definition == "objects:share"
