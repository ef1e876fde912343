"""VIEval inside VLMEvalKit, run as users run it (make test-vlmevalkit)."""

import json
import signal

import pytest

from tests.fake_server import FakeServer, Fault
from tests.stored_results import read_lines
from tests.vlmevalkit.conftest import TIE, Run
from tests.work import until
from vieval_plugin.hosts.vlmevalkit import hook_files
from vieval_plugin.prompts import packs
from vieval_plugin.results.documents import read_response
from vieval_plugin.text.errors import VievalError

pytestmark = pytest.mark.vlmevalkit


def test_a_model_of_the_host_judges_and_the_host_reports(run, gpt, server, host):
    made = run(*gpt(server), limit=48)
    assert (made.code, len(made.rows)) == (0, 48)
    # two samples share the picture that PQ is asked about
    assert server.stats()["requests"] in (95, 96)
    assert made.table["status_ok"] == made.table["SC_count"] == 48
    assert {verdict["status"] for verdict in made.verdicts} == {"ok"}
    assert max(map(len, made.sheet["prediction"])) < 1000
    if host != "nvidia":
        status = json.loads(made.only("status.json").read_text())["datasets"][TIE]
        assert "split=Overall|SC_fisher" in status["primary_metric"]
        assert "error_message" not in status


def test_failed_calls_are_counted_and_asked_again(run, gpt):
    with FakeServer() as server:
        own_store = {"store": {"use": False}}
        whole = run(*gpt(server), out="whole", options=own_store)
    fails = lambda number, body: Fault("500") if number % 3 == 0 else None
    with FakeServer(faults=fails) as server:
        part = run(*gpt(server))
    failed = int(part.table["status_api_error"])
    assert part.code == 1
    assert failed >= 4
    said = "Failed to obtain answer via API."
    assert sum(text.startswith(said) for text in part.sheet["prediction"]) == failed
    with FakeServer() as server:
        again = run(*gpt(server), "--reuse")
        assert server.stats()["requests"] <= 24
    assert (again.code, len(again.rows)) == (0, 12)
    assert dict(again.table.dropna()) == dict(whole.table.dropna())
    assert sorted(again.responses) == sorted(whole.responses)


def test_a_dead_server_is_an_error_and_nothing_is_scored_in_silence(run, gpt, ours):
    with FakeServer() as server:
        pass
    by_host = run(*gpt(server))
    assert (by_host.code, by_host.table["status_api_error"]) == (1, 12)
    by_us = run(*ours(server, patience=1, retries=1), out="ours")
    assert by_us.code == 1
    assert by_us.line.startswith("vieval: ")
    assert "\n" not in by_us.line
    assert not list(by_us.folder.rglob("*_acc.csv"))


def test_verdicts_by_another_wording_are_not_taken_up(run, gpt, server, tmp_path):
    first = set(run(*gpt(server)).responses)
    pack = tmp_path / "pack"
    packs.copy("viescore/v1", pack)
    for path in pack.glob("*.jinja"):
        path.write_text(f"Take your time.\n{path.read_text()}")
    with FakeServer() as other:
        options = {"judges": {"viescore": {"pack": str(pack)}}}
        again = run(*gpt(other), options=options)
        assert other.stats()["requests"] == 24
    assert (again.code, len(again.responses)) == (0, 12)
    assert not first & set(again.responses)


def test_long_traces_come_back_whole(run, ours, vieval):
    long = "x" * 40_000
    score = json.dumps({"score": 7, "reasoning": long})
    reply = lambda request: long if len(request["messages"]) == 1 else score
    task = "vieval_demo_t2i_eval_tig"
    with FakeServer(reply=reply, schema_support="rejected") as server:
        made = run(*ours(server, task, max_tokens=20_000), limit=2)
    answers = [step["answer"] for verdict in made.verdicts for step in verdict["trace"]]
    assert max(map(len, answers)) >= 40_000
    identity = read_response(made.responses[0])[0]
    assert long in vieval("show", made.only("*_samples_*.jsonl"), identity).out


def test_a_sheet_that_cannot_be_read_is_asked_again(run, ours, server, capsys):
    made = run(*ours(server))
    before, sheet = made.responses, made.only("*.xlsx")
    sheet.write_bytes(sheet.read_bytes()[:100])
    again = run(*ours(server), "--reuse")
    assert again.code == 0
    assert "(unreadable); its rows are judged again" in capsys.readouterr().err
    assert again.responses == before


def test_answers_of_a_bare_model_are_not_scored(run, ours, server):
    made = run(*ours(server))
    table = made.sheet
    table["prediction"] = "a fine picture"
    sheet = made.only("*.xlsx")
    table.to_excel(sheet, index=False)
    from vieval_plugin.hosts.vlmevalkit.dataset import JudgedImages

    with pytest.raises(SystemExit, match="VIEval was not registered during the run"):
        JudgedImages(TIE).evaluate(str(sheet))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"--data {TIE} --model NoSuchModel", "unknown model 'NoSuchModel'"),
        ("--data imagenhub_viescore_tie --model VievalScorer", "no such file"),
        (f"--data {TIE} --vieval-model m", "base_url"),
        (f"--data {TIE} --vieval-model m --vieval-key sk-1", "do not pass key="),
    ],
)
def test_a_users_mistake_is_one_line(run, arguments, message):
    try:
        line = run(*arguments.split()).line
    except VievalError as error:
        line = f"vieval: {error}"
    assert line.startswith("vieval: ")
    assert message in line


def test_a_killed_run_goes_on_where_it_was(process, gpt, tmp_path):
    (tmp_path / "cache").mkdir()
    out = tmp_path / "out"
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    with FakeServer(latency=0.4) as server:
        command = ["-m", "vieval_plugin", "vlmevalkit", *gpt(server), "--work-dir", out]
        command += ["--api-nproc", 2, "--limit", 12]
        first = process(*command, **environment)
        until(lambda: first.poll() is not None or _lines(out) >= 4)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert 4 <= _lines(out) < 12
        second = process(*command, "--reuse", **environment)
        assert second.returncode == 0, second.communicate(timeout=600)[0]
        assert server.stats()["requests"] <= 26
    made = Run(0, "", out)
    assert len(made.rows) == 12
    assert made.table["status_ok"] == 12


def _lines(out):
    return sum(len(read_lines(path)) for path in out.rglob("*_part0_*.jsonl"))


def test_plain_vlmevalkit_works(process, ours, server, host, tmp_path, monkeypatch):
    site, out = tmp_path / "site", tmp_path / "out"
    monkeypatch.setattr(hook_files.sysconfig, "get_path", lambda _: str(site))
    hook_files.install()
    few = "--first-n" if host == "nvidia" else "--limit"
    given = ["vlmeval", *ours(server), "--work-dir", out, few, 12]
    module = "vlmeval.run" if host == "nvidia" else "vlmeval"
    begin = f"import runpy, site, sys; site.addsitedir({str(site)!r})"
    named = f"sys.argv = {[*map(str, given)]!r}"
    start = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    plain = process("-c", "; ".join([begin, named, start]))
    told = plain.communicate(timeout=600)[0]
    assert plain.returncode == 0, told
    made = Run(0, "", out)
    assert (len(made.rows), made.table["status_ok"]) == (12, 12)


def test_the_pipeline_for_servers_says_the_same_and_ends(run, host):
    if host == "nvidia":
        pytest.skip("nvidia-vlmeval has no --api-mode")
    asked = ("--data", TIE, "--vieval-model", "fake", "--vieval-base-url")
    with FakeServer() as server:
        plain = run(*asked, server.base_url)
        piped = run("--api-mode", *asked, server.base_url, out="piped")
    assert piped.code == 0
    assert piped.responses == plain.responses
    assert dict(piped.table.dropna()) == dict(plain.table.dropna())
    # and where nothing answers
    away = (server.base_url, "--vieval-patience", 1)
    made = run(
        "--api-mode", *asked, *away, out="away", options={"store": {"use": False}}
    )
    assert made.code == 1
    assert made.line.startswith("vieval: ")
