"""`vieval score --batch`: the verdicts of calls, whatever the service does."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from shlex import split

import PIL.Image
import pytest
from aiohttp import web

from tests import tiny_model
from tests.batch_server import BatchServer
from tests.extras import needs
from tests.fake_server import (
    FakeServer,
    Rejected,
    Settings,
    completion,
    named,
    read_request,
)
from tests.pictures import encoded
from tests.stored_results import read_lines, write_lines
from tests.work import run_process
from vieval_plugin.backends.http import batches
from vieval_plugin.cli import main


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(batches, "_POLL", 0.001)


def samples(folder, count):
    """Samples that differ in prompt and image."""
    rows = []
    for number in range(count):
        name = f"{number}.png"
        (folder / name).write_bytes(encoded(picture_of(number)))
        row = {"uid": f"u{number}", "output": name, "prompt": prompt_of(number)}
        rows.append({**row, "kind": "tig"})
    write_lines(folder / "s.jsonl", rows)


def picture_of(number):
    return PIL.Image.new("RGB", (16, 16), (number % 256, number // 256, 7))


def prompt_of(number):
    return f"a thing {number:04d}"


STATES = set(split("validating in_progress finalizing completed expired failed"))
STATES |= {"cancelling", "cancelled"}


def command(folder, server, *more, out="v.jsonl"):
    paths = ["score", folder / "s.jsonl", "--out", folder / out]
    return [*map(str, [*paths, *named(server), *more])]


def hash_reply(request):
    """The answer of a server without settings."""
    _, prompt = read_request(json.dumps(request).encode())
    return completion(Settings(), request, prompt)["choices"][0]["message"]["content"]


def verdicts(path):
    """Each line of a file of verdicts, less what it cost."""
    costs = ("tokens", "calls", "seconds", "run")
    rows = read_lines(path)
    return [{n: v for n, v in row.items() if n not in costs} for row in rows]


@pytest.fixture
def refused(vieval):
    """The last line of a command that ends with 1."""
    return lambda *arguments: vieval(*arguments, code=1).err.splitlines()[-1]


@pytest.fixture
def live(store, tmp_path, capsys):
    """The verdicts that calls give, after which nothing is stored."""

    def judged(*more, **settings):
        with FakeServer(**settings) as server:
            assert main(command(tmp_path, server, *more, out="live.jsonl")) == 0
        store.unlink()
        capsys.readouterr()
        return verdicts(tmp_path / "live.jsonl")

    return judged


@pytest.fixture
def batched(tmp_path, vieval):
    """Runs the command with --batch at a service; what it says."""

    def run(service, *more, code=0, **out):
        arguments = command(tmp_path, service, "--batch", *more, **out)
        return vieval(*arguments, code=code).err

    return run


@pytest.fixture
def same(live, batched, tmp_path):
    """Judges samples by calls and by batches, which must agree; the service and what was said."""

    def judged(count, service, *more):
        samples(tmp_path, count)
        expected = live(*more)
        with service:
            said = batched(service, *more)
            assert set(service.paid.values()) == {1}
        assert verdicts(tmp_path / "v.jsonl") == expected
        return service, said

    return judged


def test_batches_give_the_verdicts_of_calls(same, tmp_path):
    prices = split("--price-input 1 --price-output 4")
    service, told = same(30, BatchServer(), *prices)
    assert len(service.paid) == 60
    # whether schemas are enforced, and whether this form is taken
    assert service.stats()["requests"] == 2
    waves = "at most 2 waves (1 question in a row, 1 re-ask for each), each sent up to 3 times"
    assert f"viescore with batches: {waves} if batches expire or fail" in told
    assert "calls: 60, from the cache: 0, tokens" in told
    price = re.search(r"price: ([\d.]+)", told)[1]
    saved = re.search(r"by batches: ([\d.]+)", told)[1]
    assert float(price) == pytest.approx(float(saved))
    assert not (tmp_path / "v.jsonl.batches").exists()


@pytest.mark.parametrize("lists", [True, False])
def test_faults_change_no_verdict(
    live, batched, tmp_path, monkeypatch, no_backoff, lists
):
    monkeypatch.setattr(batches, "MOST_REQUESTS", 40)
    samples(tmp_path, 60)
    expected = live()
    chance = random.Random(0)

    def fails(method, path, moment):
        return 500 if moment == "before" and chance.random() < 0.2 else None

    begun = {}  # batches that there was room for

    def nth(number):
        return begun.setdefault(number, len(begun) + 1)

    faults = {
        "expires": lambda number: nth(number) == 1,
        "cancels": lambda number: nth(number) == 2,
        "room": 60,  # of 120
        "error": failing(500, "thing 000", 1),
        "on_call": fails,
    }
    with BatchServer(most_requests=40, lists=lists, **faults) as service:
        found = batched(service, code=1).splitlines()[-1]
        assert "was cancelled; run the same command" in found
        told = batched(service)
        assert set(service.paid.values()) == {1}
        assert len(service.paid) == 120
        assert max(content.count(b"\n") for content in service.contents.values()) <= 40
        assert service.states.keys() == STATES
    assert verdicts(tmp_path / "v.jsonl") == expected
    assert ("may charge twice" in told) is not lists


class Failing(Counter):
    """Fails the first POSTs of each path at a moment; all calls are counted."""

    def __init__(self, moment, path="", times=1, code=500):
        super().__init__()
        self.failed = Counter()
        self.asked = moment, path, times, code

    def __call__(self, method, path, moment):
        at, part, times, code = self.asked
        self[method, path] += moment == at
        if method != "POST" or moment != at or part not in path:
            return None
        self.failed[path] += 1
        return code if self.failed[path] <= times else None


@pytest.fixture
def no_backoff(monkeypatch):
    monkeypatch.setattr("vieval_plugin.backends.http.pacing.BACKOFF", 0.001)


def test_a_lost_answer_is_looked_up(live, tmp_path, no_backoff, batched):
    samples(tmp_path, 5)
    expected = live()
    # or they come with a name that nothing can be asked for by
    strange = [{"posted": {"id": name}} for name in ("", "?", "\ud800", 7)]
    for number, calls in enumerate([{"on_call": Failing("after")}, *strange]):
        with BatchServer(**calls) as service:
            batched(service, "--fresh", out=f"{number}.jsonl")
            assert len(service.batches) == 1
            assert len(service.files) == 2  # the requests and their answers
        assert verdicts(tmp_path / f"{number}.jsonl") == expected


class Endless(BatchServer):
    """A service whose list has more than is there for ever, and names that are none."""

    async def _list(self, http):
        entries = [{"id": ""}, {"id": ["x"]}, {"id": "the last"}]
        return web.json_response({"data": entries, "has_more": True})


def test_a_list_without_an_end_ends(tmp_path, no_backoff, store, batched):
    samples(tmp_path, 2)
    calls = Failing("after")
    with Endless(on_call=calls) as service:
        batched(service)
        assert len(service.batches) == 2
    assert calls["GET", "/v1/files"] == calls["GET", "/v1/batches"] == 2


def test_a_failing_service_is_named_in_waiting(tmp_path, no_backoff, store, batched):
    samples(tmp_path, 5)
    with BatchServer(on_call=Failing("before", "/v1/batches", 4)) as service:
        said = batched(service)
    assert said.count("HTTP 500: a fault before; still trying") == 1


def failing(code, prompt, times=9):
    """An error for the first so many times at a prompt."""
    fails = lambda request, count: count <= times and prompt in json.dumps(request)
    return lambda request, count: code if fails(request, count) else None


def test_a_failing_request_is_sent_three_times(tmp_path, store, batched):
    samples(tmp_path, 3)
    for_good = failing(500, "thing 0000")
    too_large = failing(413, "thing 0001")
    error = lambda *asked: for_good(*asked) or too_large(*asked)
    with BatchServer(error=error) as service:
        batched(service, code=1)
        assert sorted(service.sent.values()) == [1] * 5 + [3]
    rows = read_lines(tmp_path / "v.jsonl")
    assert [row["status"] for row in rows] == ["api_error", "api_error", "ok"]
    assert rows[0]["trace"][0]["reason"] == "HTTP 500: a fault of this line, 3 times"


@pytest.mark.parametrize(("room", "count"), [(30, 400), (90, 200), (7, 20)])
def test_a_full_queue_is_waited_for(same, monkeypatch, room, count):
    monkeypatch.setattr(batches, "MOST_REQUESTS", 40)
    service, said = same(count, BatchServer(room=room))
    assert len(service.paid) == 2 * count
    every = service.batches.values()
    sizes = [service._size(batch) for batch in every if batch["status"] == "completed"]
    # none is cut more often than it must be: how full the queue is when one is sent is chance
    assert 4 * sum(sizes) > len(sizes) * min(room, 40)
    assert said.count("vieval: wave ") == 1


@pytest.mark.parametrize(
    "refused",
    [("GET", "/v1/batches/batch-0"), ("POST", "/v1/batches"), ("POST", "/v1/files")],
)
def test_a_refusal_ends_a_run_that_resumes(live, batched, tmp_path, refused):
    samples(tmp_path, 5)
    expected = live()
    refusals = Counter()
    failed = {"errors": {"data": [{"message": "a fault before"}]}, "status": "failed"}

    def refuse(method, path, moment):
        if (method, path, moment) != (*refused, "before") or refusals[path]:
            return None
        refusals[path] += 1
        if method == "POST":
            return 400
        service.batches["batch-0"] |= failed
        return None

    said = r"the service refuses (the batch batch-0|a batch|a file) .*a fault before"
    with BatchServer(on_call=refuse) as service:
        line = batched(service, code=1).splitlines()[-1]
        assert re.search(said, line)
        assert "fix the cause, then run the same command to resume" in line
        batched(service)
        assert set(service.paid.values()) == {1}
    assert verdicts(tmp_path / "v.jsonl") == expected


def test_what_a_service_refuses_of_a_form_is_found_out_first(live, tmp_path, batched):
    samples(tmp_path, 5)
    expected = live()
    limit = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    length = "Invalid schema for response_format: 'minLength' is not permitted."

    def reply(request):
        schema = json.dumps(request.get("response_format"))
        if "max_tokens" in request:
            raise Rejected(limit)
        if "minLength" in schema or "maxLength" in schema:
            raise Rejected(length)
        return hash_reply(request)

    with BatchServer(reply=reply) as service:
        # the second time whether schemas are enforced is known, and no call teaches the
        # limit's name
        for _ in range(2):
            batched(service, "--fresh")
            assert verdicts(tmp_path / "v.jsonl") == expected
        assert set(service.paid.values()) == set(service.sent.values()) == {2}
        assert len(service.batches) == 2


def test_only_failed_requests_are_sent_again(tmp_path, store, batched):
    samples(tmp_path, 3)
    with BatchServer(error=failing(500, "thing 0000", 3)) as service:
        batched(service, code=1)
        store.unlink()
        said = batched(service)
        assert "no response to 1 request after 3 rounds; resending" in said
        assert set(service.paid.values()) == {1}
    assert not (tmp_path / "v.jsonl.batches").exists()


class SpoilingServer(BatchServer):
    """A service whose ended batches `spoil` changes, given the batch and its output file."""

    def __init__(self, spoil):
        super().__init__()
        self.spoil = spoil

    def _answer_batch(self, batch):
        super()._answer_batch(batch)
        self.spoil(self, batch, batch["output_file_id"])


def fill(service, output, changed):
    service.contents[output] = changed(service.contents[output])


def with_errors_first(content):
    fault = {"response": None, "error": {"message": "a fault"}}
    rows = [json.loads(line) | fault for line in content.splitlines()]
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode() + content


SPOILS = {
    "empty errors": lambda it, batch, _: batch.update(error_file_id=it._kept(b"")),
    "mark": lambda it, _, output: fill(it, output, lambda text: b"\xef\xbb\xbf" + text),
    "copies": lambda it, _, output: fill(it, output, lambda text: text * 2),
    "errors first": lambda it, _, output: fill(it, output, with_errors_first),
    "capitals": lambda it, batch, _: batch.update(status="COMPLETED"),
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_answers_are_read_from_whatever_files_a_service_leaves(same, spoil):
    service, _ = same(3, SpoilingServer(spoil))
    assert set(service.sent.values()) == {1}


def spoil_ids(service, batch, output):
    fill(service, output, lambda text: text.replace(b'_id": "', b'_id": "x'))
    batch["request_counts"] = {"completed": 6}


def spoil_output(service, batch, output):
    fill(service, output, lambda text: b"")
    batch["request_counts"] = {"completed": 6}


def spoil_status(service, batch, output):
    batch["status"] = "PAUSED"


LOST = "batch-0 completed 6 requests, but its output does not contain their ids"
PAUSED = "batch-0 has the unknown status 'PAUSED'"
LOSSES = ((spoil_ids, LOST), (spoil_output, LOST), (spoil_status, PAUSED))


@pytest.mark.parametrize(("spoil", "message"), LOSSES)
def test_paid_answers_are_found(live, batched, tmp_path, monkeypatch, spoil, message):
    monkeypatch.setattr(batches, "_SILENT_POLLS", 4)
    samples(tmp_path, 3)
    expected = live()
    right = {}

    def keep_and_spoil(service, batch, output):
        right.update(batch=dict(batch), content=service.contents[output])
        spoil(service, batch, output)

    with SpoilingServer(keep_and_spoil) as service:
        for _ in range(2):
            assert message in batched(service, code=1).splitlines()[-1]
        [requests] = (tmp_path / "v.jsonl.batches").rglob("*.jsonl")
        requests.rename(tmp_path / "moved.jsonl")
        service.batches["batch-0"] = right["batch"]
        service.contents[right["batch"]["output_file_id"]] = right["content"]
        batched(service)
        assert set(service.sent.values()) == {1}
    assert verdicts(tmp_path / "v.jsonl") == expected


def test_requests_that_were_never_sent_are_written_again(tmp_path, store, batched):
    samples(tmp_path, 3)
    with BatchServer(on_call=Failing("before", "/v1/files", code=400)) as service:
        assert "the service refuses a file" in batched(service, code=1)
        [requests] = (tmp_path / "v.jsonl.batches").rglob("*.jsonl")
        requests.unlink()
        batched(service)
        assert set(service.paid.values()) == {1}


FRAMEWORK = {"t2i_eval": {"mode": "framework"}}
WAVES = (
    *(("viescore", {}, 1), ("viescore --lazy", {}, 2), ("t2i_eval", {}, 8)),
    ("t2i_eval", FRAMEWORK, 3),
    *((f"question_answering --setting {it}", {}, 2) for it in ("dsg", "tifa", "vq2a")),
    ("vqascore", {}, 1),
)


@pytest.mark.parametrize(("judge", "settings", "waves"), WAVES)
def test_no_more_waves_than_a_judge_says(tmp_path, batched, judge, settings, waves):
    samples(tmp_path, 6)
    options = {"judges": {**settings, "reminders": 0}, "store": {"use": False}}
    (tmp_path / "o.yaml").write_text(json.dumps(options))
    with BatchServer() as service:
        told = batched(service, *split(f"--config {tmp_path}/o.yaml --judge {judge}"))
    most = int(re.search(r"at most (\d+) wave", told)[1])
    assert told.count("vieval: wave ") == waves
    # one more of these two where the service has token ids
    assert most == waves + judge.endswith(("vq2a", "vqascore"))


TOOLS = "cigeval uses image tools between its questions, so each question would be a separate batch"


@pytest.mark.parametrize(
    ("judge", "line"),
    [
        pytest.param("cigeval", TOOLS, marks=needs("torch", "transformers")),
        ("vqascore", "fake returns no log-probabilities, which this judge requires"),
    ],
)
def test_a_judge_against_batches(tmp_path, store, batched, monkeypatch, judge, line):
    samples(tmp_path, 2)
    first_token = "vieval_plugin.backends.http.openai.first_token"
    monkeypatch.setattr(first_token, lambda answer: {})
    with BatchServer() as service:
        assert line in batched(service, "--judge", judge, code=1)
        assert not service.files


def test_a_service_without_files_is_named(tmp_path, store, batched):
    """One without batches, and LiteLLM without `files_settings`, which answers 500 and 404."""
    samples(tmp_path, 2)
    uploads = Counter()

    def fails(method, path, moment):
        uploads[method] += 1
        return 500 if method == "POST" else 404

    gateway = BatchServer(on_call=fails)
    for server, cause in ((gateway, " (HTTP 500: a fault before)"), (FakeServer(), "")):
        with server as service:
            line = batched(service, out=f"{len(cause)}.jsonl", code=1).splitlines()[-1]
        assert f"does not accept files{cause}" in line
        assert "omit --batch" in line
    assert uploads["POST"] <= 4


def test_a_processed_upload_is_waited_for(same):
    service, said = same(5, BatchServer(processing=4))
    assert len(service.batches) == 1
    assert len(service.files) == 2
    assert said.count("for the service to process file-0") == 1


def test_log_probabilities_come_by_batches_where_the_service_lists_them(same):
    same(20, BatchServer(), "--judge", "vqascore")


def test_anyone_answers_files_of_batches(live, tmp_path, refused, vieval):
    samples(tmp_path, 20)
    expected = live()
    arguments = split(f"score {tmp_path}/s.jsonl --out {tmp_path}/v.jsonl --model fake")
    arguments += ["--batch-files", str(tmp_path / "batches")]
    form = r"vllm run-batch -i (\S+) -o (\S+) --model fake"
    requests, answers = map(Path, re.search(form, refused(*arguments)).groups())
    with BatchServer() as service:  # answers as vLLM's own does, in the same form
        file = service._kept(requests.read_bytes())
        batch = {"input_file_id": file, "number": 1, "status": "finalizing"}
        service._answer_batch(batch)
        for bad in (b"", b'{"custom_id": [1]}\n', b'{"custom_id": "another"}\n'):
            answers.write_bytes(bad)
            line = refused(*arguments)
            assert "answers.jsonl has no responses to the requests in" in line
        answers.write_bytes(service.contents[batch["output_file_id"]])
    vieval(*arguments)
    assert verdicts(tmp_path / "v.jsonl") == expected


@pytest.mark.vllm
def test_vllm_answers_files_wave_by_wave(store, vieval, tmp_path):
    python = os.environ.get("VIEVAL_VLLM_PYTHON")
    if not python:
        pytest.skip("set VIEVAL_VLLM_PYTHON to the Python of an environment with vLLM")
    samples(tmp_path, 6)
    model = tiny_model.build(tmp_path / "tiny")
    scored = f"score {tmp_path}/s.jsonl --out {tmp_path}/v.jsonl --model tiny"
    scored += f" --max-tokens 160 --batch-files {tmp_path}/batches"
    flags = split(
        "--served-model-name tiny --dtype float32 --max-model-len 8192 --max-num-seqs 4 "
        "--enforce-eager --block-size 32 --structured-outputs-config"
    )
    flags.append('{"backend": "xgrammar", "disable_any_whitespace": true}')
    own = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    own |= {"VLLM_CPU_KVCACHE_SPACE": "1", "TORCH_COMPILE_DISABLE": "1"}
    about = {"env": {**os.environ, **own}, "cwd": tmp_path, "check": True}
    form = r"vllm run-batch -i (\S+) -o (\S+) --model tiny"
    answered = 0
    while files := re.search(form, vieval(scored, code=None).err):
        requests, answers = files.groups()
        module = [python, "-m", "vllm.entrypoints.openai.run_batch"]
        asked = [*module, "-i", requests, "-o", answers, "--model", str(model), *flags]
        run_process(asked, **about)
        answered += 1
        assert answered <= 2  # the second wave are re-asks
    rows = read_lines(tmp_path / "v.jsonl")
    assert len(rows) == 6
    assert {row["status"] for row in rows} <= {"ok", "repaired", "parse_failure"}
    assert any(row["scores"] for row in rows)


# where the command is killed, in the order in which it comes there: at the service's end of a
# request, the number of such requests counted over all attempts, or before or after a step of its
# own
DEATHS = (
    "Batches._end_file after 2",
    *(("POST", "/v1/files", moment, 1) for moment in ("before", "after")),
    *(("POST", "/v1/batches", moment, 1) for moment in ("before", "after")),
    *(("GET", "/v1/batches/batch-0", "before", 3), ("GET", "/content", "after", 1)),
    *("Batches._keep before 1", "Batches._keep after 1", "VerdictLog.append after 900"),
)
KILLED = """
import os, signal, sys
from vieval_plugin.backends.http import batches
from vieval_plugin.cli import main
from vieval_plugin.run.verdict_log import VerdictLog

batches.MOST_REQUESTS, batches._POLL, batches._LONGEST_POLL = 800, 0.01, 0.05

def killed(owner, name, moment, times):
    function, calls = getattr(owner, name), 0

    def counted(*arguments):
        nonlocal calls
        calls += 1
        if calls == times and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*arguments)
        if calls == times and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, counted)

where, *arguments = sys.argv[1:]
if where:
    step, moment, times = where.split()
    owner, name = step.split(".")
    killed({"Batches": batches.Batches, "VerdictLog": VerdictLog}[owner], name, moment, int(times))
sys.exit(main(arguments))
"""


def read_in_two_waves(request):
    """An answer that can be read only once half of the questions are asked again."""
    said = json.dumps(request)
    spoilt = "a thing 0" in said and "mumbled" not in said
    return "mumbled" if spoilt else hash_reply(request)


@pytest.mark.slow
def test_2000_samples_survive_any_kill(store, tmp_path):
    samples(tmp_path, 2000)
    settings = {"reply": read_in_two_waves}
    with FakeServer(**settings) as server:
        assert main(command(tmp_path, server, out="live.jsonl")) == 0
        calls = server.stats()["requests"] - 1  # less the probe
    store.unlink()
    under_way, times = [], Counter()

    def kill(method, path, moment):
        death, process = under_way[-1]
        if isinstance(death, str):
            return None
        if (method, moment) != (death[0], death[2]) or death[1] not in path:
            return None
        times[death] += 1
        if times[death] != death[3]:
            return None
        process.send_signal(signal.SIGKILL)
        process.wait()
        return 503  # a request that nobody waits for any more is not carried out

    with BatchServer(on_call=kill, **settings) as service:
        arguments = command(tmp_path, service, "--batch")
        for death in (*DEATHS, ""):
            step = death if isinstance(death, str) else ""
            line = [sys.executable, "-c", KILLED, step, *arguments]
            process = subprocess.Popen(line)
            under_way.append((death, process))
            assert process.wait() == (-signal.SIGKILL if death else 0)
        assert set(service.paid.values()) == {1}
        assert service.paid.total() == calls
        assert service.stats()["requests"] <= 11  # probes
    assert verdicts(tmp_path / "v.jsonl") == verdicts(tmp_path / "live.jsonl")
