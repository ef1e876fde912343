"""An audit flags what a scripted judge is fooled by, and nothing else."""

import asyncio
import json
from itertools import product

import pytest

from tests.audit import scripted
from tests.fake_server import FakeServer
from tests.refusals import refusal
from vieval_plugin import config
from vieval_plugin.audit.audit import audit
from vieval_plugin.audit.changes import changes
from vieval_plugin.audit.material import random_judgeable_samples
from vieval_plugin.config import Backbone
from vieval_plugin.labelling.sources import read_to_label
from vieval_plugin.run.prepare import prepare
from vieval_plugin.run.progress import Progress

EDITS, PAIRS = "vieval_demo/tie", "vieval_demo_contests/tie"
SOURCES = ("source blank", "source of another")
OVERLAY, RISES = "praise overlay", "FLAGGED: rises"


def effects(judge, samples, limit, base_url="http://127.0.0.1:9"):
    """The effects on the scores of a judge, of some of these samples."""
    backbone = Backbone(model="fake", base_url=(base_url,))
    options = config.current()
    prepared = prepare(judge, None, options, backbone)
    judged = [sample.judged for sample in read_to_label([str(samples)], None)]
    drawn = random_judgeable_samples(judged, prepared, limit, 0)
    return asyncio.run(audit(drawn, prepared, options, backbone, 0, Progress()))


@pytest.fixture
def audited(store):
    """The effects on a scripted judge, and how many requests came."""

    def run(scores, judge="viescore", samples=EDITS, limit=24):
        with FakeServer(reply=scripted.scripted(scores)) as server:
            found = effects(judge, samples, limit, server.base_url)
            return found, server.stats()["requests"]

    return run


def flagged(found):
    rows = [row for row in found if row.finding.startswith("FLAGGED")]
    return {(row.change, row.aspect, row.finding) for row in rows}


def test_an_unbiased_judge_is_flagged_for_nothing(audited):
    found, _ = audited(scripted.honest)
    assert flagged(found) == set()
    lowered = {(row.change, row.aspect) for row in found if row.difference.value < -0.3}
    assert lowered == {*product(SOURCES, ("SC", "O"))}
    assert {row.n for row in found} == {24}
    assert audited(scripted.honest) == (found, 0)


def test_a_change_that_applies_to_no_sample_has_no_effect(audited):
    # this server says no SC
    found, _ = audited(scripted.honest, samples="vieval_demo/tig", limit=4)
    of_outputs = [change.name for change in changes() if change.modifies == "output"]
    assert {(row.change, row.aspect) for row in found} == {*product(of_outputs, ["PQ"])}


@pytest.mark.parametrize(
    ("judge", "flags"),
    [
        (scripted.fooled_by_overlay, [[OVERLAY], ("SC", "PQ", "O"), [RISES]]),
        (
            scripted.blind_to_the_source,
            [SOURCES, ("SC", "O"), ["FLAGGED: does not fall"]],
        ),
    ],
)
def test_a_judge_of_edits_is_flagged_for_what_sways_it_alone(audited, judge, flags):
    found, _ = audited(judge)
    assert flagged(found) == {*product(*flags)}


@pytest.mark.parametrize(
    ("judge", "changes"),
    [
        (scripted.fair, []),
        (scripted.biased_to_the_first, ["order swapped"]),
        (scripted.praised_in_pairs, [OVERLAY]),
    ],
)
def test_a_judge_of_pairs_is_flagged_for_what_sways_it(audited, judge, changes):
    found, _ = audited(judge, judge="pairwise", samples=PAIRS)
    assert flagged(found) == {*product(changes, ["preference"], [RISES])}


def test_samples_that_a_judge_does_not_know_are_refused():
    line = refusal(effects, "ssim", "vieval_demo/tig", 4)
    assert "ssim cannot judge any of these" in line


def test_images_that_cannot_be_decoded_are_in_no_effect(samples_file, tmp_path):
    first = json.loads(samples_file.read_text().splitlines()[0])
    (tmp_path / first["images"]["output"]).write_text("no image")
    assert {row.n for row in effects("sharpness", samples_file, 100)} == {5}


def test_failures_on_changed_images_are_counted(audited):
    def reads_no_overlay(pictures):
        is_praised = scripted.praises_itself(pictures[-1])
        return {} if is_praised else scripted.honest(pictures)

    found, _ = audited(reads_no_overlay, limit=4)
    failed = {row.change: (row.n, row.failed) for row in found}
    assert failed.pop("praise overlay") == (0, 4)
    assert set(failed.values()) == {(4, 0)}


def test_samples_of_one_uid_are_contests_for_pairs(audited, samples_file):
    found, _ = audited(scripted.fair, judge="pairwise", samples=samples_file)
    assert {row.n for row in found} == {6}
