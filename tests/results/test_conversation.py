"""From a verdict to its conversation: a stored answer is read as it was read."""

import json

from tests.builders import a_contest_file
from tests.playing import play
from tests.refusals import refuses
from vieval_plugin.benchmarks import vieval_demo
from vieval_plugin.config import Config, StoreOptions
from vieval_plugin.judges.protocol import Status, Text
from vieval_plugin.records import Provenance, response_json, target_json
from vieval_plugin.results.documents import read_record
from vieval_plugin.results.lookup import conversation, open_results
from vieval_plugin.run.prepare import prepare


def test_a_reply_that_its_limit_cut_is_read_again_as_it_was():
    """The same words are an answer where nobody says that they were cut."""
    judge = prepare("viescore", "0shot", Config(store=StoreOptions(use=False))).judge
    sample = vieval_demo.load(None, "tig")[0]
    words = {"SC": '{"score": [7], "reasoning": "it is'}
    words["PQ"] = '{"score": [7, 6], "reasoning": "it is"}'
    verdict = play(
        judge(sample), answer=lambda ask: Text(words[ask.path[0]], cut=True)
    ).verdict
    statuses = [step.status for step in verdict.trace]
    assert statuses == [Status.PARSE_FAILURE] * 2 + [Status.REPAIRED]
    assert set(verdict.scores) == {"PQ"}
    response = response_json(sample.id, verdict, Provenance("viescore", (), ()))
    record = read_record(response, target_json(sample))
    assert record.verdict == verdict
    exchanges = conversation(judge, sample, record.verdict)
    assert all(exchange.reply.cut for exchange in exchanges)
    assert json.loads(response)["verdict"]["trace"][0]["cut"]


def test_the_uid_of_a_contest_finds_it(tmp_path):
    lookup = open_results([a_contest_file(tmp_path / "v.jsonl")])
    assert lookup.find("p007").candidates[0].uid == "p007"
    refuses("p999: not found among 30 verdicts", lookup.find, "p999")
