"""Recorded verdicts: the authors' logs, samples files, and what neither holds."""

import json
import math
from collections import Counter
from dataclasses import replace

import pytest

from tests.refusals import refusal
from vieval_plugin.judges.protocol import Sample, SampleId, Status, Step, Verdict
from vieval_plugin.records import (
    CalibratedScore,
    Provenance,
    response_json,
    target_json,
)
from vieval_plugin.results import replay
from vieval_plugin.results.documents import read_record

MAGIC = SampleId("imagenhub", "tie", "MagicBrush", "sample_1_1.jpg")
VIESCORE = Provenance("viescore", ("0shot",), ("SC",))
FIRST, SECOND, THIRD = (f"sample_{n}_1.jpg" for n in (1, 2, 3))


@pytest.fixture
def logs(tmp_path):
    """Authors' logs of one image model: an answer, a guess, and one uid with SC alone."""
    folder = tmp_path / "ImagenHub_Text-Guided_IE" / "MagicBrush"
    folder.mkdir(parents=True)
    guess = "guess_if_cannot_parse | I would say three"
    sc = {
        FIRST: {"score": [9, 4], "reasoning": "as an AI-generated image it is fine"},
        SECOND: {"score": [3], "reasoning": guess},
        THIRD: {"score": 5, "reasoning": None},
    }
    pq = {
        FIRST: {"score": [10, 9], "reasoning": "clean"},
        SECOND: {"score": [7, 7], "reasoning": "fine"},
    }
    (folder / "SC.json").write_text(json.dumps(sc))
    (folder / "PQ.json").write_text(json.dumps(pq))
    return tmp_path


def verdict(recording, uid):
    return recording.verdict(SampleId("imagenhub", "tie", "MagicBrush", uid))[0]


def test_a_recorded_answer_is_a_verdict(logs):
    found = verdict(replay.load(logs, "viescore"), "sample_1_1.jpg")
    assert found.status is Status.OK
    assert found.scores == pytest.approx({"SC": 0.4, "PQ": 0.9, "O": 0.6})
    assert found.trace[0].scores == (9.0, 4.0)


def test_a_guess_is_never_a_score_and_its_number_is_kept_apart(logs):
    found = verdict(replay.load(logs, "viescore"), "sample_2_1.jpg")
    assert found.status is Status.GUESSED
    assert found.scores == {"PQ": 0.7}
    reason = "the authors could not parse this reply and guessed a score (no JSON object found)"
    assert found.trace[0] == Step(
        ("SC",), Status.GUESSED, (), "I would say three", reason, recorded=(3.0,)
    )
    assert found.recorded == pytest.approx({"SC": 0.3, "PQ": 0.7, "O": math.sqrt(0.21)})


def sc_log(logs, rows, image_model="MagicBrush"):
    folder = logs / "ImagenHub_Text-Guided_IE" / image_model
    folder.mkdir(exist_ok=True)
    (folder / "SC.json").write_text(rows if isinstance(rows, str) else json.dumps(rows))
    text = json.dumps({uid: {"score": [9, 9]} for uid in (FIRST, SECOND)})
    (folder / "PQ.json").write_text(text)


def test_a_guess_whose_reply_our_reader_reads_counts_as_read_and_not_as_guessed(logs):
    reply = 'guess_if_cannot_parse | {"score": [8, 9], "reasoning": "x"}'
    sc_log(logs, {FIRST: {"score": [1], "reasoning": reply}})
    found = verdict(replay.load(logs, "viescore"), "sample_1_1.jpg")
    assert found.status is Status.REPAIRED
    assert found.scores["SC"] == 0.8
    assert (found.trace[0].scores, found.trace[0].recorded) == ((8, 9), (1,))
    assert found.recorded["SC"] == 0.1


NUMBER = "score must be a number from 0 to 10"
COUNT = "number of values must be 2, got"


@pytest.mark.parametrize(
    ("score", "kept", "reason"),
    [
        ([99, -7], (99, -7), NUMBER),
        ([5], (5,), f"{COUNT} 1"),
        (5, (5,), f"{COUNT} 1"),
        ([5, 5, 5], (5, 5, 5), f"{COUNT} 3"),
        *(([5, wrong], (), NUMBER) for wrong in (True, math.nan, 10**400, "x", [5])),
        ([], (), f"{COUNT} 0"),
        ({"a": {}}, (), f"{COUNT} 1"),
        ("x", (), f"{COUNT} 1"),
    ],
)
def test_an_impossible_recorded_score_is_a_failure(logs, score, kept, reason):
    sc_log(logs, {"sample_1_1.jpg": {"score": score, "reasoning": "fine"}})
    found = verdict(replay.load(logs, "viescore"), "sample_1_1.jpg")
    assert found.status is found.trace[0].status is Status.PARSE_FAILURE
    assert found.scores == {"PQ": 0.9}
    assert (found.trace[0].scores, found.trace[0].recorded) == ((), kept)
    assert reason in found.trace[0].reason
    assert set(found.recorded) == ({"SC", "PQ", "O"} if kept else set())
    assert all(0 <= score <= 1 for score in found.recorded.values())


def test_recorded_numbers_survive_the_hosts_files(logs):
    found = verdict(replay.load(logs, "viescore"), "sample_2_1.jpg")
    response = response_json(MAGIC, found, VIESCORE)
    assert read_record(response, target_json(Sample(MAGIC, {}))).verdict == found
    # what was written before there were such fields still loads
    old = json.loads(response)
    del old["verdict"]["recorded"]
    for step in old["verdict"]["trace"]:
        del step["recorded"]
    got = read_record(json.dumps(old), target_json(Sample(MAGIC, {}))).verdict.recorded
    assert got == {}


def test_what_is_not_recorded_is_missing(logs):
    sc_log(logs, {"sample_3_1.jpg": {"score": [5, 6], "reasoning": None}})
    recording = replay.load(logs, "viescore")
    assert verdict(recording, "sample_3_1.jpg").status is Status.MISSING
    assert verdict(recording, "sample_3_1.jpg").scores == {"SC": 0.5}
    step = Step(("sample",), Status.MISSING, reason="not recorded")
    expected = Verdict({}, Status.MISSING, trace=(step,))
    assert verdict(recording, "sample_9_9.jpg") == expected


@pytest.mark.parametrize("row", [3, None, [], {"score": None}, {}])
def test_a_malformed_row_is_its_samples_failure_and_no_other_s(logs, row):
    sc_log(logs, {"sample_1_1.jpg": {"score": [9, 4]}, "sample_2_1.jpg": row})
    recording = replay.load(logs, "viescore")
    assert verdict(recording, "sample_1_1.jpg").scores["SC"] == 0.4
    assert verdict(recording, "sample_2_1.jpg").status is Status.PARSE_FAILURE
    found = verdict(recording, "sample_2_1.jpg").trace[0].reason
    assert found == "the log row has no score"


@pytest.mark.parametrize("called", ["magicbrush", "MAGICBRUSH"])
def test_image_models_go_by_the_museums_names_whatever_the_case(logs, called):
    path = logs / "ImagenHub_Text-Guided_IE" / called
    (logs / "ImagenHub_Text-Guided_IE" / "MagicBrush").rename(path)
    assert verdict(replay.load(logs, "viescore"), "sample_1_1.jpg").scores["SC"] == 0.4


def test_a_name_as_it_stands_goes_before_one_in_another_case(logs):
    sc_log(logs, {"sample_1_1.jpg": {"score": [1, 1]}}, "magicbrush")
    assert verdict(replay.load(logs, "viescore"), "sample_1_1.jpg").scores["SC"] == 0.4
    sc_log(logs, {"sample_1_1.jpg": {"score": [2, 2]}}, "MAGICBRUSH")
    (logs / "ImagenHub_Text-Guided_IE" / "MagicBrush" / "SC.json").unlink()
    (logs / "ImagenHub_Text-Guided_IE" / "MagicBrush" / "PQ.json").unlink()
    # which of the two is meant?
    found = verdict(replay.load(logs, "viescore"), "sample_1_1.jpg").status
    assert found is Status.MISSING


def test_another_part_is_missing_and_another_benchmark_an_error_that_says_which(logs):
    recording = replay.load(logs, "viescore")
    found = recording.verdict(SampleId("imagenhub", "cig", "ControlNet", "u"))[0].status
    assert found is Status.MISSING
    other = SampleId("agiqa3k", "all", "ControlNet", "u")
    said = "no recorded verdicts for agiqa3k/all (it contains imagenhub/tie)"
    assert said in refusal(recording.verdict, other)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "invalid JSON"),
        ("[]", "must contain a JSON object"),
        ("[" * 5000, "invalid JSON"),
    ],
)
def test_a_malformed_log_is_named(logs, content, message):
    (logs / "ImagenHub_Text-Guided_IE" / "MagicBrush" / "SC.json").write_text(content)
    assert f"SC.json: {message}" in refusal(replay.load, logs, "viescore")


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "no such file or folder"), (".", "neither authors' logs")],
)
def test_a_folder_that_is_no_recording_is_an_error(tmp_path, name, said):
    assert said in refusal(replay.load, tmp_path / name, "viescore")


def test_a_verdict_survives_json_with_anything_in_its_text():
    text = 'before </think> after\n\n\n{"a": "<b>"} \u2028 </s> ||V^=^V||'
    step = Step(("SC",), Status.REPAIRED, (3.0,), text, text)
    given = Verdict({"SC": 0.1 + 0.2}, Status.REPAIRED, text, (step,))
    aspects = ("SC", "PQ", "O")
    pack = ("b", "viescore/v1", "h", "c")
    provenance = Provenance("viescore", ("0shot",), aspects, *pack)
    ratings = {"SC": (0.0, 0.5, 1.0)}
    response = response_json(MAGIC, given, provenance)
    assert "<" not in response
    assert "\n" not in response
    record = read_record(response, target_json(Sample(MAGIC, {}, ratings=ratings)))
    assert record.id == MAGIC
    assert record.verdict == given
    assert record.provenance == provenance
    assert record.ratings == ratings


CALIBRATED = ("O_calibrated", "close", "ab12")


@pytest.mark.parametrize(
    ("calibration", "written"),
    [((), "[]"), (CalibratedScore(*CALIBRATED), json.dumps(CALIBRATED))],
)
def test_a_calibration_is_written_as_a_list_and_read_by_name(calibration, written):
    provenance = Provenance("viescore", (), ("O",), calibration=calibration)
    response = response_json(MAGIC, Verdict({}, Status.OK), provenance)
    assert f'"calibration": {written}}}' in response
    read = read_record(response, target_json(Sample(MAGIC, {}))).provenance
    assert read == provenance
    assert type(read.calibration) is type(calibration)


def test_response_and_target_are_of_one_sample_and_a_known_schema():
    other = SampleId("imagenhub", "tie", "MagicBrush", "other")
    response = response_json(MAGIC, Verdict({}, Status.OK), VIESCORE)
    line = refusal(read_record, response, target_json(Sample(other, {})))
    assert "must have the same sample id" in line
    response = response.replace('"vieval": 2', '"vieval": 99')
    line = refusal(read_record, response, target_json(Sample(MAGIC, {})))
    assert "unsupported schema version 99" in line


def test_the_public_blip2_log_has_its_guesses_counted(shared_data):
    path = shared_data / "viescore_logs" / "results_blip2_0shot"
    recording = replay.load(path, "viescore")
    recorded = recording.verdicts.values()
    verdicts = [found for several in recorded for found, _ in several]
    steps = [step for found in verdicts for step in found.trace]
    counts = Counter(step.status for step in steps)
    assert counts == {Status.OK: 4268, Status.GUESSED: 5334}
    assert sum(bool(step.recorded) for step in steps) == 5334
    guessed = [found for found in verdicts if found.status is Status.GUESSED]
    assert len(guessed) == 4546
    assert sum(bool(found.recorded) for found in verdicts) == 4546
    assert all(len(found.scores) < 3 for found in guessed)


@pytest.mark.parametrize("name", ["results_gpt4v_0shot", "results_gpt4v_1shot"])
def test_nothing_in_the_gpt4v_logs_fails_the_checks(shared_data, name):
    recording = replay.load(shared_data / "viescore_logs" / name, "viescore")
    verdicts = [found for [(found, _)] in recording.verdicts.values()]
    steps = [step for found in verdicts for step in found.trace]
    assert {step.status for step in steps} == {Status.OK, Status.MISSING}
    assert not any(step.recorded for step in steps)


def test_values_of_metrics_are_verdicts_of_their_judges(tmp_path):
    def values(part, model, name, *values):
        folder = tmp_path / f"ImagenHub_Text-Guided_{part}"
        folder.mkdir()
        rows = [value if value == 3 else {name: value} for value in values]
        named = {f"{n}.jpg": row for n, row in enumerate(rows)}
        (folder / f"{model}.json").write_text(json.dumps(named))

    def verdicts(recording, part, model, count):
        ids = [SampleId("imagenhub", part, model, f"{n}.jpg") for n in range(count)]
        return [recording.verdict(known)[0] for known in ids]

    values("IG", "SD", "CLIP_Score", 0.25, "high", 3, math.nan)
    values("IE", "SDEdit", "LPIPS", 0.25, 1.5)
    clip, lpips = replay.load(tmp_path, "clip_score"), replay.load(tmp_path, "lpips")
    assert (clip.covered, lpips.covered) == ({"imagenhub/tig"}, {"imagenhub/tie"})
    [found, *bad] = verdicts(clip, "tig", "SD", 4)
    assert (found.scores, found.trace[0].scores) == ({"SC": 0.25}, (0.25,))
    assert [v.status for v in bad] == [Status.PARSE_FAILURE] * 3
    near, far = verdicts(lpips, "tie", "SDEdit", 2)
    # a distance: the less, the better, and by as much, so that an image model's mean score is that
    # of its distances
    assert (near.scores["SC"], far.scores["SC"]) == (0.75, -0.5)


def line(uid, **verdict):
    given = Verdict({"SC": 0.5}, Status.OK, trace=(Step(("SC",), Status.OK, (5.0,)),))
    known = SampleId("imagenhub", "tie", "MagicBrush", uid)
    document = json.loads(response_json(known, given, VIESCORE))
    document["verdict"] |= verdict
    return json.dumps({"filtered_resps": json.dumps(document)})


SPOILT = [{"status": "splendid"}, {"scores": {"SC": 7}}, {"scores": {"SC": math.nan}}]
LINES = ["{", '{"filtered_resps": "{}"}', "[" * 9000]


@pytest.mark.parametrize("bad", [*LINES, *(line("bad", **cells) for cells in SPOILT)])
def test_the_sample_of_a_bad_line_of_a_samples_file_is_not_recorded(tmp_path, bad):
    path = tmp_path / "x_samples_t.jsonl"
    path.write_text("\n".join([line("good"), bad]) + "\n")
    recording = replay.load(tmp_path, "viescore")
    assert verdict(recording, "good").scores == {"SC": 0.5}
    assert verdict(recording, "bad").status is Status.MISSING
    [text] = recording.unread_lines
    assert "line 2 is not a recorded verdict" in text


def test_a_samples_file_of_which_no_line_can_be_read_is_an_error(tmp_path):
    (tmp_path / "x_samples_t.jsonl").write_text("{\n[]\n")
    line = refusal(replay.load, tmp_path, "viescore")
    assert "line 1 is not a recorded verdict" in line


def test_what_a_recording_does_not_cover_is_told_by_part(logs):
    recording = replay.load(logs, "viescore")
    numbers = (1, 2, 8, 9)
    asked = [replace(MAGIC, uid=f"sample_{number}_1.jpg") for number in numbers]
    assert recording.uncovered(asked) == ["2 of 4 samples of imagenhub/tie (viescore)"]
    assert recording.uncovered(asked[:2]) == []
    half = replace(MAGIC, uid=THIRD)
    found = recording.uncovered([*asked[:2], half])
    assert found == ["0 of 3 samples of imagenhub/tie (viescore, 1 more in part)"]
    said = refusal(recording.uncovered, asked[2:])
    assert "viescore has no recorded verdicts on the 2 samples of imagenhub/tie" in said


def test_a_reply_with_a_foreign_line_end_does_not_break_a_samples_file(tmp_path):
    text = "next\x85line \u2028 and \u2029 end \ud800"
    step = Step(("SC",), Status.OK, (5.0,), text, text)
    given = Verdict({"SC": 0.5}, Status.OK, text, (step,))
    response = response_json(MAGIC, given, VIESCORE)
    document = {"filtered_resps": response, "input": "a\x85b\u2028c"}
    row = json.dumps(document, ensure_ascii=False) + "\n"
    (tmp_path / "x_samples_t.jsonl").write_text(2 * row, encoding="utf-8")
    assert replay.load(tmp_path, "viescore").verdict(MAGIC)[0] == given
