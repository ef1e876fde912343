"""`vieval score` with a judge that measures with a network."""

import pytest

from tests.demo_samples import demo_file
from tests.verdict_files import provenance_of


@pytest.fixture
def score(score, tmp_path):
    """Scores the first samples of the drawn benchmark of a kind."""
    return lambda kind, *arguments: score(demo_file(tmp_path, kind), *arguments)


def test_own_images_are_scored_with_named_weights(score, scorer_weights):
    weights = scorer_weights["clip_score"]
    given = ("tig", "--judge", "clip_score", "--scorer", weights)
    code, verdicts, *_ = score(*given)
    assert code == 0
    assert [verdict["status"] for verdict in verdicts] == ["ok"] * 6
    assert {verdict["model"] for verdict in verdicts} == {"clip"}
    reasons = [verdict["trace"][0]["reason"] for verdict in verdicts]
    assert all(reason.startswith(f"{weights}@sha256:") for reason in reasons)
    code, again, _, said = score(*given)
    assert (code, again) == (0, verdicts)
    assert "from the cache: 6" in said


def test_a_verdict_is_shown_with_weights(score, scorer_weights, tmp_path, vieval):
    assert score("tie", "--judge", "lpips", "--scorer", scorer_weights["lpips"])[0] == 0
    verdicts, page = tmp_path / "verdicts.jsonl", tmp_path / "page.html"
    shown = ["show", str(verdicts), "demo_a/0", "--html", str(page)]
    vieval(*shown)
    assert page.read_text().count("<img") >= 2
    assert "sha256:" in page.read_text()


def test_weights_that_are_not_there_end_with_one_line(score, tmp_path):
    nothing = tmp_path / "nothing"
    code, verdicts, _, said = score("tig", "--judge", "clip_score", "--scorer", nothing)
    assert (code, verdicts) == (1, [])
    assert f"vieval: {nothing}: weights folder not found" in said


DESCRIBED = """\
name: mine
kinds: [tig]
questions:
  SC: {text: "a photo of {{ prompt }}"}
scale: [-1, 1]
network: {form: dual_encoder, base: BASE}
"""


def described(folder, weights):
    (folder / "mine.yaml").write_text(DESCRIBED.replace("BASE", str(weights)))
    return folder / "mine.yaml"


def test_a_described_scorer_scores(score, scorer_weights, tmp_path, vieval):
    path = described(tmp_path, scorer_weights["clip_score"])
    code, verdicts, *_ = score("tig", "--judge", path)
    assert code == 0
    assert [set(verdict["scores"]) for verdict in verdicts] == [{"SC"}] * 6
    for verdict in verdicts:
        [step] = verdict["trace"]
        assert verdict["scores"]["SC"] == pytest.approx((step["scores"][0] + 1) / 2)
        assert step["reason"].startswith("mine on ")
        assert provenance_of(tmp_path / "verdicts.jsonl", verdict)["pack"] == "mine"
    shown = ["show", str(tmp_path / "verdicts.jsonl"), "demo_a/0"]
    vieval(*shown)


def test_undescribed_kinds_are_not_applicable(score, scorer_weights, tmp_path):
    path = described(tmp_path, scorer_weights["clip_score"])
    code, verdicts, *_ = score("tie", "--judge", path)
    assert code == 1
    assert {verdict["status"] for verdict in verdicts} == {"not_applicable"}
