"""Recorded verdicts: the authors' logs, samples files, and what neither holds."""

import json
import math
import shutil
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
ORIGINAL = Sample(MAGIC, {})
VIESCORE = Provenance("viescore", ("0shot",), ("SC",))
FIRST, SECOND, THIRD = (f"sample_{n}_1.jpg" for n in (1, 2, 3))
NUMBER = "score must be a number from 0 to 10"
COUNT = "number of values must be 2, got"
IMPOSSIBLE = [
    ([99, -7], (99, -7), NUMBER),
    *(([5, wrong], (), NUMBER) for wrong in (True, math.nan, 10**400, "x", [5])),
    ([5, 5, 5], (5, 5, 5), f"{COUNT} 3"),
    ([], (), f"{COUNT} 0"),
    *((score, (5,), f"{COUNT} 1") for score in ([5], 5)),
    *((score, (), f"{COUNT} 1") for score in ({"a": {}}, "x")),
]
MALFORMED = {"{": "invalid JSON", "[]": "must contain a JSON object"}
MALFORMED["[" * 5000] = "invalid JSON"
NO_RECORDINGS = {"nowhere": "no such file or folder", ".": "neither authors' logs"}
CALIBRATED = ("O_calibrated", "close", "ab12")
SPOILT = [{"status": "splendid"}, {"scores": {"SC": 7}}, {"scores": {"SC": math.nan}}]
LINES = ["{", '{"filtered_resps": "{}"}', "[" * 9000]


@pytest.fixture
def logs(tmp_path):
    """Authors' logs of one image model: an answer, a guess, and one uid with SC alone."""
    folder = tmp_path / "ImagenHub_Text-Guided_IE" / "MagicBrush"
    folder.mkdir(parents=True)
    guess = "guess_if_cannot_parse | I would say three"
    sc = {FIRST: {"score": [9, 4], "reasoning": "as an AI-generated image it is fine"}}
    sc[SECOND] = {"score": [3], "reasoning": guess}
    sc[THIRD] = {"score": 5, "reasoning": None}
    pq = {FIRST: {"score": [10, 9], "reasoning": "clean"}}
    pq[SECOND] = {"score": [7, 7], "reasoning": "fine"}
    (folder / "SC.json").write_text(json.dumps(sc))
    (folder / "PQ.json").write_text(json.dumps(pq))
    return tmp_path


def verdict(recording, uid):
    return recording.verdict(replace(MAGIC, uid=uid))[0]


def replayed(logs, uid=FIRST):
    """The recorded verdict on an image of the logs."""
    return verdict(replay.load(logs, "viescore"), uid)


def test_a_recorded_answer_is_a_verdict(logs):
    found = replayed(logs)
    assert found.status is Status.OK
    assert found.scores == pytest.approx({"SC": 0.4, "PQ": 0.9, "O": 0.6})
    assert found.trace[0].scores == (9.0, 4.0)


def test_a_guess_is_never_a_score_and_its_number_is_kept_apart(logs):
    found = replayed(logs, SECOND)
    assert found.status is Status.GUESSED
    assert found.scores == {"PQ": 0.7}
    [step, _] = found.trace
    assert "could not parse this reply and guessed a score" in step.reason
    given = ("I would say three", step.reason)
    assert step == Step(("SC",), Status.GUESSED, (), *given, recorded=(3.0,))
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
    found = replayed(logs)
    assert found.status is Status.REPAIRED
    assert found.scores["SC"] == 0.8
    assert (found.trace[0].scores, found.trace[0].recorded) == ((8, 9), (1,))
    assert found.recorded["SC"] == 0.1


@pytest.mark.parametrize(("score", "kept", "reason"), IMPOSSIBLE)
def test_an_impossible_recorded_score_is_a_failure(logs, score, kept, reason):
    sc_log(logs, {FIRST: {"score": score, "reasoning": "fine"}})
    found = replayed(logs)
    assert found.status is found.trace[0].status is Status.PARSE_FAILURE
    assert found.scores == {"PQ": 0.9}
    assert (found.trace[0].scores, found.trace[0].recorded) == ((), kept)
    assert reason in found.trace[0].reason
    assert set(found.recorded) == ({"SC", "PQ", "O"} if kept else set())
    assert all(0 <= score <= 1 for score in found.recorded.values())


def test_recorded_numbers_survive_the_hosts_files(logs):
    found = replayed(logs, SECOND)
    response, target = response_json(MAGIC, found, VIESCORE), target_json(ORIGINAL)
    assert read_record(response, target).verdict == found
    # what was written before there were such fields still loads
    old = json.loads(response)
    for document in (old["verdict"], *old["verdict"]["trace"]):
        del document["recorded"]
    assert read_record(json.dumps(old), target).verdict.recorded == {}


def test_what_is_not_recorded_is_missing(logs):
    sc_log(logs, {THIRD: {"score": [5, 6], "reasoning": None}})
    recording = replay.load(logs, "viescore")
    half = verdict(recording, THIRD)
    assert (half.status, half.scores) == (Status.MISSING, {"SC": 0.5})
    step = Step(("sample",), Status.MISSING, reason="not recorded")
    expected = Verdict({}, Status.MISSING, trace=(step,))
    assert verdict(recording, "sample_9_9.jpg") == expected


@pytest.mark.parametrize("row", [3, None, [], {"score": None}, {}])
def test_a_malformed_row_is_its_samples_failure_and_no_other_s(logs, row):
    sc_log(logs, {FIRST: {"score": [9, 4]}, SECOND: row})
    assert replayed(logs).scores["SC"] == 0.4
    failed = replayed(logs, SECOND)
    assert failed.status is Status.PARSE_FAILURE
    assert failed.trace[0].reason == "the log row has no score"


@pytest.mark.parametrize("called", ["magicbrush", "MAGICBRUSH"])
def test_image_models_go_by_the_museums_names_whatever_the_case(logs, called):
    path = logs / "ImagenHub_Text-Guided_IE" / called
    (logs / "ImagenHub_Text-Guided_IE" / "MagicBrush").rename(path)
    assert replayed(logs).scores["SC"] == 0.4


def test_a_name_as_it_stands_goes_before_one_in_another_case(logs):
    sc_log(logs, {FIRST: {"score": [1, 1]}}, "magicbrush")
    assert replayed(logs).scores["SC"] == 0.4
    sc_log(logs, {FIRST: {"score": [2, 2]}}, "MAGICBRUSH")
    shutil.rmtree(logs / "ImagenHub_Text-Guided_IE" / "MagicBrush")
    # which of the two is meant?
    assert replayed(logs).status is Status.MISSING


def test_another_part_is_missing_and_another_benchmark_an_error_that_says_which(logs):
    recording = replay.load(logs, "viescore")
    [found, _] = recording.verdict(SampleId("imagenhub", "cig", "ControlNet", "u"))
    assert found.status is Status.MISSING
    other = SampleId("agiqa3k", "all", "ControlNet", "u")
    said = "no recorded verdicts for agiqa3k/all (it contains imagenhub/tie)"
    assert said in refusal(recording.verdict, other)


@pytest.mark.parametrize(("content", "message"), MALFORMED.items())
def test_a_malformed_log_is_named(logs, content, message):
    sc_log(logs, content)
    assert f"SC.json: {message}" in refusal(replay.load, logs, "viescore")


@pytest.mark.parametrize(("name", "said"), NO_RECORDINGS.items())
def test_a_folder_that_is_no_recording_is_an_error(tmp_path, name, said):
    assert said in refusal(replay.load, tmp_path / name, "viescore")


def test_a_verdict_survives_json_with_anything_in_its_text():
    text = 'before </think> after\n\n\n{"a": "<b>"} \u2028 </s> ||V^=^V||'
    step = Step(("SC",), Status.REPAIRED, (3.0,), text, text)
    given = Verdict({"SC": 0.1 + 0.2}, Status.REPAIRED, text, (step,))
    pack = ("b", "viescore/v1", "h", "c")
    provenance = Provenance("viescore", ("0shot",), ("SC", "PQ", "O"), *pack)
    ratings = {"SC": (0.0, 0.5, 1.0)}
    response = response_json(MAGIC, given, provenance)
    assert not {"<", "\n"} & set(response)
    record = read_record(response, target_json(replace(ORIGINAL, ratings=ratings)))
    assert (record.id, record.verdict) == (MAGIC, given)
    assert (record.provenance, record.ratings) == (provenance, ratings)


@pytest.mark.parametrize(
    ("calibration", "written"),
    [((), "[]"), (CalibratedScore(*CALIBRATED), json.dumps(CALIBRATED))],
)
def test_a_calibration_is_written_as_a_list_and_read_by_name(calibration, written):
    provenance = Provenance("viescore", (), ("O",), calibration=calibration)
    response = response_json(MAGIC, Verdict({}, Status.OK), provenance)
    assert f'"calibration": {written}}}' in response
    read = read_record(response, target_json(ORIGINAL)).provenance
    assert read == provenance
    assert type(read.calibration) is type(calibration)


def test_response_and_target_are_of_one_sample_and_a_known_schema():
    other = SampleId("imagenhub", "tie", "MagicBrush", "other")
    response = response_json(MAGIC, Verdict({}, Status.OK), VIESCORE)
    line = refusal(read_record, response, target_json(Sample(other, {})))
    assert "must have the same sample id" in line
    response = response.replace('"vieval": 2', '"vieval": 99')
    line = refusal(read_record, response, target_json(ORIGINAL))
    assert "unsupported schema version 99" in line


def published(shared_data, name):
    """The verdicts and steps of a public log."""
    recording = replay.load(shared_data / "viescore_logs" / name, "viescore")
    recorded = recording.verdicts.values()
    verdicts = [found for several in recorded for found, _ in several]
    return verdicts, [step for found in verdicts for step in found.trace]


def test_the_public_blip2_log_has_its_guesses_counted(shared_data):
    verdicts, steps = published(shared_data, "results_blip2_0shot")
    counts = Counter(step.status for step in steps)
    assert counts == {Status.OK: 4268, Status.GUESSED: 5334}
    assert sum(bool(step.recorded) for step in steps) == 5334
    guessed = [found for found in verdicts if found.status is Status.GUESSED]
    assert len(guessed) == sum(bool(found.recorded) for found in verdicts) == 4546
    assert all(len(found.scores) < 3 for found in guessed)


@pytest.mark.parametrize("name", ["results_gpt4v_0shot", "results_gpt4v_1shot"])
def test_nothing_in_the_gpt4v_logs_fails_the_checks(shared_data, name):
    _, steps = published(shared_data, name)
    assert {step.status for step in steps} == {Status.OK, Status.MISSING}
    assert not any(step.recorded for step in steps)


def test_values_of_metrics_are_verdicts_of_their_judges(tmp_path):
    def values(part, model, *rows):
        folder = tmp_path / f"ImagenHub_Text-Guided_{part}"
        named = {f"{n}.jpg": row for n, row in enumerate(rows)}
        folder.mkdir()
        (folder / f"{model}.json").write_text(json.dumps(named))

    def verdicts(recording, part, model, count):
        ids = [SampleId("imagenhub", part, model, f"{n}.jpg") for n in range(count)]
        return [recording.verdict(known)[0] for known in ids]

    clip_rows = [{"CLIP_Score": value} for value in (0.25, "high", math.nan)]
    values("IG", "SD", *clip_rows, 3)
    values("IE", "SDEdit", {"LPIPS": 0.25}, {"LPIPS": 1.5})
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
    known = replace(MAGIC, uid=uid)
    document = json.loads(response_json(known, given, VIESCORE))
    document["verdict"] |= verdict
    return json.dumps({"filtered_resps": json.dumps(document)})


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
