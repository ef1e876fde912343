"""Judges in lmms-eval's own registry, from a YAML and a `utils.py` as authors write them."""

import asyncio
import base64
import json
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import PIL.Image
import pytest

from tests.docs import pages
from tests.fake_server import FakeServer, Fault, named
from tests.in_process import options_file
from tests.pictures import plain
from tests.refusals import refuses
from tests.stored_results import read_lines, write_lines
from tests.work import run_process
from vieval_plugin import Judge
from vieval_plugin.judges import registry

TASK = """
task: judged_by_vieval
dataset_path: json
dataset_kwargs: {data_files: {test: ROWS}}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.visuals
doc_to_text: prompt
doc_to_target: prompt
process_results: !function utils.process_results
metric_list:
  - {metric: overall, aggregation: !function utils.mean, higher_is_better: true}
"""
UTILS = """
from lmms_eval.llm_judge import Request, ServerConfig, get_server

server = get_server("vieval_viescore", ServerConfig(model_name="fake"))

def visuals(doc):
    return []

def process_results(doc, results):
    response = server.evaluate(Request(messages=[], images=doc["images"], question=doc["prompt"]))
    kept = {"uid": doc["uid"], "parsed": response.parsed_result, "content": response.content, "success": response.success}
    return {"overall": {**kept, "error": response.error_message, "model": response.model_used}}

def mean(values):
    scores = [value["parsed"]["O"] for value in values if value["success"]]
    return sum(scores) / len(scores)
"""


# the task of the guide to harnesses, by file
GUIDE = (pages.DOCS / "guides" / "harnesses.md").read_text(encoding="utf-8")
DOCUMENTED = {
    name: re.search(rf"^```\w+ {name}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)[1]
    for name in ("task.yaml", "utils.py")
}


def colour(number):
    return plain((number * 5 % 256, number * 40 % 256, 90), (32, 32))


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The folder of a task of 40 images, of which two are edits and one is not an image."""
    folder = tmp_path_factory.mktemp("task")
    rows = []
    samples = []
    for number in range(40):
        uid, prompt = f"u{number}", f"a thing {number}"
        image = folder / f"{number}.png"
        image.write_bytes(b"no image" if number == 7 else colour(number))
        roles = {"source": str(folder / "0.png")} if number in (13, 15) else {}
        kind, text = ("tie", "instruction") if roles else ("tig", "prompt")
        roles["output"] = str(image)
        row = {"uid": uid, "prompt": prompt, "image": str(image)}
        rows.append({**row, "images": list(roles.values())})
        texts = {text: prompt}
        samples.append({"uid": uid, "kind": kind, "images": roles, "texts": texts})
    write_lines(folder / "rows.jsonl", rows)
    write_lines(folder / "samples.jsonl", samples)
    (folder / "task.yaml").write_text(TASK.replace("ROWS", str(folder / "rows.jsonl")))
    (folder / "utils.py").write_text(UTILS)
    (folder / "documented").mkdir()
    for name, text in DOCUMENTED.items():
        text = text.replace("rows.jsonl", str(folder / "rows.jsonl"))
        (folder / "documented" / name).write_text(text.replace('"NAME"', '"fake"'))
    return folder


def options(folder, name, **backbone):
    """A file of options, with a store of its own."""
    judge = {"model": "other", "retries": 0, "patience": 20, **backbone}
    given = {"backbones": {"judge": judge}}
    return options_file(folder / f"{name}.yaml", folder / f"{name}.sqlite", **given)


def faults(number, body):
    """The image with the prompt 11 is never answered."""
    text = json.dumps(body).replace("\\n", "\n")
    return Fault("content_filter") if "a thing 11\n" in text else None


@pytest.mark.slow
def test_a_task_scores_as_vieval_score(lmms_eval, rows, tmp_path, monkeypatch, vieval):
    verdicts = tmp_path / "verdicts.jsonl"
    with FakeServer(faults=faults, latency=0.02) as server:
        written = options(tmp_path, "task", base_url=server.base_url)
        run = f"--model dummy --include_path {rows} --log_samples"
        run += " --process_docs_parallel 32 --output_path"
        first = f"{run} {tmp_path}/out --tasks judged_by_vieval"
        again = f"{run} {tmp_path}/again --tasks judged_by_vieval,my_task --limit 11"
        calls = []
        for line in (first, again):
            done = lmms_eval(*line.split(), options=written)
            assert done.returncode == 0, done.stderr[-3000:]
            assert "Traceback" not in done.stderr
            calls.append(server.stats()["requests"])
        # the refused one, which is not stored, is beyond the limit
        assert calls[0] == calls[1]
        assert server.stats()["max_in_flight"] > 8
        other = options(tmp_path, "score", base_url=server.base_url)
        monkeypatch.setenv("VIEVAL_CONFIG", str(other))
        samples = rows / "samples.jsonl"
        vieval("score", samples, *named(server), "--out", verdicts, code=1)
    scored = {row["uid"]: row for row in read_lines(verdicts)}
    found = logged(tmp_path / "out")
    expected = {f"u{number}": found[f"u{number}"] for number in range(11)}
    assert logged(tmp_path / "again") == expected
    assert len(found) == len(scored) == 40
    for uid, response in found.items():
        content, verdict = json.loads(response["content"]), scored[uid]
        is_scored = uid not in ("u7", "u11")
        assert response["parsed"] == (verdict["scores"] if is_scored else None)
        assert (response["success"], response["model"]) == (is_scored, "fake")
        assert content["status"] == verdict["status"]
        assert content["rationale"] == verdict.get("rationale", "")
    assert found["u7"]["error"].startswith("no_image: ")
    assert found["u11"]["error"].startswith("refusal: ")
    assert json.loads(found["u11"]["content"])["reason"]
    # the task of the guide: a failure is counted, and is no part of the mean
    [path] = (tmp_path / "again").rglob("*_results.json")
    documented = json.loads(path.read_text())["results"]["my_task"]
    scores = [found[f"u{number}"]["parsed"]["O"] for number in range(11) if number != 7]
    assert documented["overall,none"] == pytest.approx(sum(scores) / 10)
    assert documented["failed,none"] == pytest.approx(1 / 11)


def logged(folder):
    [path] = folder.rglob("*_samples_judged_by_vieval.jsonl")
    return {row["overall"]["uid"]: row["overall"] for row in read_lines(path)}


@pytest.fixture
def server(tmp_path, monkeypatch):
    with FakeServer() as server:
        file = options(tmp_path, "options", base_url=server.base_url)
        monkeypatch.setenv("VIEVAL_CONFIG", str(file))
        from vieval_plugin.hosts.lmms_eval import llm_judge, register

        register()
        yield server
        for judge in llm_judge._judges.values():
            judge.opened.close()
        llm_judge._judges.clear()


def judge(name, model="fake"):
    from lmms_eval.llm_judge import ServerConfig, get_server

    config = ServerConfig(model_name=model) if model else None
    return get_server(f"vieval_{name}", config)


def request(*images, question="a cat", **prompt_kwargs):
    from lmms_eval.llm_judge import Request

    asked = {"question": question, "prompt_kwargs": prompt_kwargs}
    return Request(messages=[], images=list(images), **asked)


def response(name, *images, model="fake", **given):
    """What a judge answers on images."""
    return judge(name, model).evaluate(request(*images, **given))


MODULES = ("lmms_eval.llm_judge", "lmms_eval.models")


@pytest.mark.slow
@pytest.mark.parametrize("first", [*MODULES, "vieval_plugin.hosts.lmms_eval.llm_judge"])
def test_they_are_there_whichever_module_is_imported_first(first):
    code = (
        f"import {first}, lmms_eval.models\nfrom lmms_eval.llm_judge import get_server\n"
        "print(get_server('vieval_sharpness').judge, 'vieval_replay' in "
        "lmms_eval.models.MODEL_REGISTRY_V2.list_model_names())"
    )
    done = run_process([sys.executable, "-c", code], timeout=300)
    assert done.stdout.splitlines()[-1:] == ["sharpness True"], done.stderr[-2000:]


def test_every_judge_is_there_and_the_hosts_own_stay(server, monkeypatch):
    from lmms_eval.llm_judge import ProviderFactory
    from lmms_eval.llm_judge.providers import OpenAIProvider

    known = ProviderFactory._provider_classes
    ours = {name for name in known if name.startswith("vieval_")}
    assert {f"vieval_{name}" for name in registry.judges()} <= ours
    assert known["openai"] is OpenAIProvider
    assert len(known) - len(ours) == 7
    monkeypatch.setenv("API_TYPE", "vieval_sharpness")
    assert ProviderFactory.create_provider().judge == "sharpness"


def test_a_judge_in_a_setting_has_the_name_of_both(server):
    asked = judge("viescore_pq_inputs")
    assert (asked.judge, asked.setting) == ("viescore", "pq_inputs")
    shown, plainly = (
        [response(name, colour(n), colour(1)).parsed_result for n in range(2, 8)]
        for name in ("viescore_pq_inputs", "viescore")
    )
    assert [scores["SC"] for scores in shown] == [scores["SC"] for scores in plainly]
    # which looks at the output alone
    assert len({scores["PQ"] for scores in plainly}) == 1
    assert len({scores["PQ"] for scores in shown}) > 1


CLEAR = r"""name: clear
kinds: [tig]
questions: {PQ: {text: "{\"score\": [n], \"reasoning\": 0}", scores: [clear]}}
"""


def test_judges_in_files_are_there_too(server, tmp_path, monkeypatch):
    from lmms_eval.llm_judge import ProviderFactory

    from vieval_plugin.hosts.lmms_eval import llm_judge

    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "clear.yaml").write_text(CLEAR)
    monkeypatch.setenv("VIEVAL_JUDGES", str(tmp_path / "judges"))
    known = dict(ProviderFactory._provider_classes)
    monkeypatch.setattr(ProviderFactory, "_provider_classes", known)
    registry.judges.cache_clear()
    llm_judge.install(None)
    found = response("clear", colour(1))
    assert (found.success, set(found.parsed_result)) == (True, {"PQ"})


def test_a_mistake_in_the_options_and_questions_on_texts_are_refused(
    server, tmp_path, monkeypatch
):
    words = "vieval_viescore judges images, not texts"
    refuses(words, judge("viescore").evaluate_binary, "Is it 1?", "1", "1")
    (tmp_path / "wrong.yaml").write_text("judges: {viescore: {pq_input: true}}")
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "wrong.yaml"))
    refuses("pq_input", judge, "viescore", "mistaken")


def test_an_image_is_a_path_base64_bytes_or_a_picture(server, tmp_path):
    path = tmp_path / "x.png"
    path.write_bytes(colour(1))
    encoded = base64.b64encode(colour(1))
    address = f"data:image/png;base64,{encoded.decode()}"
    images = (str(path), colour(1), encoded, encoded.decode(), address)
    *same, drawn = (
        response("viescore", image) for image in (*images, PIL.Image.open(path))
    )
    assert all(found.success for found in (*same, drawn))
    assert len({json.dumps(found.parsed_result) for found in same}) == 1
    assert set(drawn.parsed_result) == {"SC", "PQ", "O"}


@pytest.mark.parametrize(
    ("name", "model", "used"),
    [("viescore", "", "other"), ("viescore", "mine", "mine"), ("sharpness", "", "")],
)
def test_the_backbone_is_one_of_the_options_or_behind_its_server(
    server, name, model, used
):
    assert response(name, colour(1), model=model).model_used == (used or name)
    assert judge("viescore").is_available()


def test_roles_and_kinds_are_said_in_prompt_kwargs(server):
    images = {"subject": colour(1), "output": colour(2)}
    told = {"roles": list(images), "kind": "sdig"}
    subject = response("viescore", *images.values(), **told)
    sample = {"kind": "sdig", "images": images, "texts": {"prompt": "a cat"}}
    with Judge("viescore", model="fake", base_url=server.base_url) as plainly:
        [verdict] = plainly([sample])
    assert subject.parsed_result == dict(verdict.scores)


def test_no_prompt_kwargs_are_as_empty_ones():
    asked = request(colour(1))
    asked.prompt_kwargs = None
    from vieval_plugin.hosts.lmms_eval.llm_judge import judged_of

    assert judged_of(asked).kind == "tig"


KINDS = "not_applicable: unknown kind 'picture'; known kinds: tig, mie, tie"
WRONG = [
    ((), {}, "got images: 0, roles: none; set prompt_kwargs"),
    ((1, 2, 3), {}, "got images: 3, roles: none"),
    ((1,), {"roles": ["source"]}, "got images: 1, roles: source"),
    ((1, 2), {"roles": "output"}, "got images: 2, roles: output; set"),
    ((1,), {"roles": 5}, "not_applicable: `roles` must be a list of names, got 5"),
    ((1,), {"roles": [5]}, "not_applicable: `roles` must be a list of names"),
    ((1,), {"kind": "picture"}, KINDS),
    ((1,), {"question": " "}, "not_applicable: the sample has no prompt text"),
    (("/nowhere.png",), {}, "no_image: "),
    ((7.5,), {}, "not_applicable: "),
]


@pytest.mark.parametrize(("images", "given", "reason"), WRONG)
def test_what_cannot_be_judged_is_a_failure(server, images, given, reason):
    pictures = [colour(image) if isinstance(image, int) else image for image in images]
    found = response("viescore", *pictures, **given)
    assert (found.success, found.parsed_result) == (False, None)
    assert reason in found.error_message
    assert json.loads(found.content)["scores"] == {}
    assert server.stats()["requests"] == 0


def test_a_server_that_is_away_is_a_failure_too(tmp_path, monkeypatch, server):
    away = options(tmp_path, "away", base_url="http://127.0.0.1:9/v1", patience=0.2)
    monkeypatch.setenv("VIEVAL_CONFIG", str(away))
    found = response("viescore", colour(1), model="away")
    assert (found.success, found.parsed_result) == (False, None)
    assert found.error_message.startswith("api_error: ")


def test_32_threads_and_the_asynchronous_interface_share_one_judge(server, monkeypatch):
    from vieval_plugin.hosts.lmms_eval import llm_judge

    opened, together = [], threading.Barrier(32)

    class Counted(llm_judge.Opened):
        def __init__(self, *arguments):
            opened.append(self)
            super().__init__(*arguments)

    monkeypatch.setattr(llm_judge, "Opened", Counted)

    def ask(number):
        together.wait()
        return response("viescore", colour(number), model="fresh")

    with ThreadPoolExecutor(32) as pool:
        responses = list(pool.map(ask, range(64)))
    assert all(response.success for response in responses)
    assert len(opened) == 1
    asked = server.stats()["requests"]
    requests = [request(colour(number)) for number in range(64)]
    batch = judge("viescore", "fresh").evaluate_batch(requests)
    found = [r.parsed_result for r in asyncio.run(batch)]
    assert found == [r.parsed_result for r in responses]
    # the same judge, whose store has the answers
    assert server.stats()["requests"] == asked


def test_judges_of_one_model_share_its_pace(tmp_path, monkeypatch, server):
    names = ("viescore", "viescore_pq_inputs", "adiee")
    with FakeServer(latency=0.02) as slow:
        two = options(tmp_path, "slow", base_url=slow.base_url, num_concurrent=2)
        monkeypatch.setenv("VIEVAL_CONFIG", str(two))
        ask = lambda n: response(names[n % 3], colour(n), colour(0), model="slow")
        with ThreadPoolExecutor(12) as pool:
            used = {response.model_used for response in pool.map(ask, range(24))}
        assert used == {"slow"}
        assert slow.stats()["max_in_flight"] == 2


@pytest.mark.parametrize("name", ["pairwise", "viescore"])
def test_two_images_of_a_comparison_are_a_contest(server, name):
    images = [colour(1), colour(2)]
    compared = judge(name).evaluate_comparative("a cat", "", "", images=images)
    assert compared["success"], compared
    first, second = compared["scores"]
    with Judge(name, model="fake", base_url=server.base_url) as plainly:
        [preferred] = plainly.compare([colour(1)], [colour(2)], "a cat")
        if name == "viescore":
            scores = plainly.score(images, "a cat").tolist()
            assert [first, second] == pytest.approx(scores)
    assert first - second == pytest.approx(preferred)
    # which the host hands on by position
    pairs = [images, images[:1]]
    asked = (["a cat"] * 2, [""] * 2, [""] * 2)
    batch = judge(name).evaluate_comparative_batch_async(*asked, images_list=pairs)
    same, failed = asyncio.run(batch)
    assert same == compared
    assert (failed["success"], failed["scores"]) == (False, None)


def test_the_host_counts_the_tokens_of_a_judge(server):
    from lmms_eval.models.model_utils import usage_metrics

    usage_metrics.reset_usage_metrics()
    assert response("viescore", colour(3)).success
    counted = usage_metrics.summarize_usage_metrics()["by_source"]["judge"]
    assert counted["total_tokens"] > 0
