"""The host's own judge calls through our client: API_TYPE=vieval."""

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

from lmms_eval.llm_judge import get_server
from lmms_eval.llm_judge.factory import ProviderFactory
from lmms_eval.llm_judge.protocol import Request, ServerConfig

from tests import in_process
from tests.fake_image_server import picture
from tests.fake_server import FakeServer, Fault
from tests.hosts.local_rows import local_rows, parquet
from vieval_plugin.errors import VievalError
from vieval_plugin.hosts.lmms_eval import provider


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A provider of the host's factory against a server; each call is a run with a client of its own."""
    monkeypatch.setattr(ProviderFactory, "_provider_classes", dict(ProviderFactory._provider_classes))
    ProviderFactory.register_provider("vieval", provider.VievalProvider)
    monkeypatch.setenv("API_TYPE", "vieval")

    def opened(server, **further):
        backbone = {"model": "fake", "base_url": server.base_url, "retries": 1, "patience": 1, **further}
        file = in_process.options_file(tmp_path / "o.yaml", tmp_path / "s.sqlite", backbones={"judge": backbone})
        monkeypatch.setenv("VIEVAL_CONFIG", str(file))
        provider._made.cache_clear()
        return get_server("vieval", ServerConfig(model_name="gpt-4", max_tokens=16))

    yield opened
    provider._made.cache_clear()


def ask(text, images=None):
    return Request(messages=[{"role": "user", "content": text}], images=images)


def test_calls_from_several_threads_go_out_together_and_a_second_run_asks_nothing(judged):
    with FakeServer(reply=lambda body: "1") as server:
        for _ in range(2):
            client = judged(server)
            with ThreadPoolExecutor(8) as pool:
                replies = [one.content for one in pool.map(client.evaluate, [ask(f"is {n} right?") for n in range(40)])]
            assert replies == ["1"] * 40
            asked = server.stats()["requests"]
            provider._client().close()
    assert asked == 40


def test_a_binary_question_of_the_host_is_answered_with_the_backbone_of_the_options(judged):
    with FakeServer(reply=lambda body: "1") as server:
        found = judged(server).evaluate_binary("two and two?", "4", "four")
        provider._client().close()
    assert (found["result"], found["model"], found["success"]) == (1, "fake", True)


def test_images_arrive_as_the_host_hands_them_over(judged, tmp_path):
    data = picture(b"x")
    (tmp_path / "x.png").write_bytes(data)
    with FakeServer(reply=in_process.naming_images) as server:
        client = judged(server)
        several = [str(tmp_path / "x.png"), base64.b64encode(data)]
        reply = client.evaluate(ask("what is it?", several)).content
        provider._client().close()
    assert reply.count(in_process.pixels(in_process.Image(data))) == 2


@pytest.mark.parametrize(
    ("kind", "text"), [("content_filter", "content filter"), ("500", "no answer|answered nothing")]
)
def test_a_failed_call_is_an_exception_that_says_why_and_never_an_answer(judged, kind, text):
    with FakeServer(faults=lambda number, body: Fault(kind)) as server:
        client = judged(server)
        with pytest.raises(VievalError, match=text):
            client.evaluate(ask("is it right?"))
        provider._client().close()


def test_without_a_backbone_it_says_where_to_name_one(monkeypatch):
    provider._made.cache_clear()
    client = provider.VievalProvider(ServerConfig(model_name="gpt-4"))
    assert not client.is_available()
    with pytest.raises(VievalError, match=r"names? none: put judge"):
        client.evaluate(ask("x"))


K12 = [{"question": f"what is {n} and {n}?", "answer": str(2 * n), "image": None} for n in range(6)]
MMVET = [
    {"question_id": f"v1_{n}", "question": f"what is {n}?", "answer": "a cat", "image": None, "capability": "rec"}
    for n in range(6)
]


def test_the_hosts_own_text_tasks_are_judged_through_it_and_a_second_run_asks_nothing(tmp_path, monkeypatch):
    from lmms_eval.models import MODEL_REGISTRY_V2
    from lmms_eval.models.registry_v2 import ModelManifest

    manifest = ModelManifest("fake_generator", simple_class_path="tests.fake_generator.FakeGenerator")
    MODEL_REGISTRY_V2.register_manifest(manifest, overwrite=True)
    parquet(tmp_path / "k12.parquet", K12)
    parquet(tmp_path / "mmvet.parquet", MMVET)
    local_rows(
        monkeypatch,
        {"lmms-lab-encoder/k12": tmp_path / "k12.parquet", "lmms-lab-encoder/MMVet": tmp_path / "mmvet.parquet"},
    )
    monkeypatch.setenv("API_TYPE", "vieval")
    # the plugin does so where it is loaded with API_TYPE set, and this process may have loaded it before
    monkeypatch.setattr(ProviderFactory, "_provider_classes", dict(ProviderFactory._provider_classes))
    ProviderFactory.register_provider("vieval", provider.VievalProvider)
    model = ("--model", "fake_generator", "--model_args", f"form=text,out={tmp_path / 'saved'}")
    asked, said = [], []

    def reply(body):
        text = str(body["messages"])
        said.append(text)
        return "0.5" if "Ground truth" in text else "1"

    with FakeServer(reply=reply) as server:
        backbones = {"judge": {"model": "fake", "base_url": server.base_url}}
        file = in_process.options_file(tmp_path / "o.yaml", tmp_path / "s.sqlite", backbones=backbones)
        for turn in range(2):
            provider._made.cache_clear()
            out = tmp_path / f"out{turn}"
            in_process.run(*in_process.command(model, "k12,mmvet", 6)[1:], "--output_path", out, options=file)
            results = in_process.read(out)[0]["results"]
            assert results["k12"]["llm_as_judge_eval,none"] == 1
            assert results["mmvet"]["gpt_eval_score,none"] == 50
            asked.append(server.stats()["requests"])
            provider._client().close()
    provider._made.cache_clear()
    assert asked == [12, 12]  # a call a row, and none in the second run
    assert sum("I cannot draw that." in text for text in said) == 12
