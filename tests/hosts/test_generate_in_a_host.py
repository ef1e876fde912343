"""Generators judged inside lmms-eval: from a prompt to a judged image in one run, or in two."""

import json
from collections import Counter

import numpy as np
import PIL.Image
import pytest

from tests import in_process
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.registry import benchmark
from vieval_plugin.results import own
from vieval_plugin.results.lmms_eval import records_of

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

SHARPNESS, SSIM = "generate_vieval_demo_sharpness_tie", "generate_vieval_demo_ssim_tie"


def conditions(part="tie"):
    return benchmark("generate_vieval_demo").load(None, part)


@pytest.fixture
def folder(tmp_path):
    """Edits of the first six conditions, each with as much more noise."""
    made = tmp_path / "made"
    made.mkdir()
    for number, one in enumerate(conditions()[:6]):
        picture = np.asarray(decode(one.images["source"])).astype(int)
        noise = np.random.default_rng(number).integers(-4 * number - 1, 4 * number + 2, picture.shape)
        PIL.Image.fromarray((picture + noise).clip(0, 255).astype(np.uint8)).save(made / f"{one.id.uid}.png")
    return made


def images(folder, **further):
    given = ",".join(f"{k}={v}" for k, v in {"folder": folder, "name": "mine", **further}.items())
    return ("--model", "vieval_images", "--model_args", given)


def run(tmp_path, arguments, task=SSIM, limit=6, more=(), **options):
    out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
    options = {"generate": {"folder": str(tmp_path / "kept"), **options.pop("generate", {})}, **options}
    file = in_process.options_file(out.with_suffix(".yaml"), **options)
    in_process.run(*in_process.command(arguments, task, limit)[1:], "--output_path", out, *more, options=file)
    return out


def records(out):
    [path] = out.rglob("*_samples_*.jsonl")
    return [record for together in records_of(path) for record in together]


def test_images_made_elsewhere_are_judged_and_equal_vieval_score_digit_for_digit(folder, tmp_path):
    out = run(tmp_path, images(folder))
    document, _ = in_process.read(out)
    found = {record.id.uid: record for record in records(out)}
    assert {record.id.image_model for record in found.values()} == {"mine"}
    rows = [
        {
            "uid": uid,
            "kind": "tie",
            "images": {"source": str(one.sample.images["source"].source), "output": str(folder / f"{uid}.png")},
            "texts": dict(one.sample.texts),
        }
        for uid, one in found.items()
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    verdicts = tmp_path / "v.jsonl"
    assert main(["score", str(tmp_path / "s.jsonl"), "--judge", "ssim", "--out", str(verdicts)]) == 0
    scored = {record.id.uid: dict(record.verdict.scores) for record in own.records_of(verdicts)}
    assert {uid: dict(record.verdict.scores) for uid, record in found.items()} == scored
    metrics = document["results"][SSIM]
    mean = np.mean([scores["SC"] for scores in scored.values()])
    assert metrics["SC_mean_value,none"] == pytest.approx(mean, abs=1e-12)
    assert metrics["SC_mean_ci_low,none"] < mean < metrics["SC_mean_ci_high,none"]
    assert metrics["status_no_image_share,none"] == 0


def test_generated_now_and_judged_later_has_the_same_digits(folder, tmp_path, capsys):
    at_once = {r.id.uid: dict(r.verdict.scores) for r in records(run(tmp_path, images(folder)))}
    later = run(tmp_path, images(folder), more=("--predict_only",))
    document, _ = in_process.read(later)
    assert document["results"][SSIM]["made_count,none"] == 6
    assert main(["score", str(later), "--out", str(tmp_path / "v.jsonl")]) == 0
    assert {r.id.uid: dict(r.verdict.scores) for r in own.records_of(tmp_path / "v.jsonl")} == at_once
    assert "mine" in capsys.readouterr().out


def test_a_prompt_without_an_image_is_no_zero_and_is_told(folder, tmp_path, capsys):
    first = sorted(folder.iterdir())[0]
    first.unlink()
    broken = sorted(folder.iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:500])
    out = run(tmp_path, images(folder))
    document, _ = in_process.read(out)
    statuses = Counter(str(record.verdict.status) for record in records(out))
    assert statuses == {"ok": 4, "no_image": 1, "tool_error": 1}
    metrics = document["results"][SSIM]
    assert metrics["status_no_image_share,none"] == pytest.approx(1 / 6)
    assert metrics["scored_count,none"] == 4
    said = capsys.readouterr().err
    assert "no_image 1, the first" in said
    assert "has no image of uid" in said
    assert "tool_error 1, the first" in said
    worst = run(tmp_path, images(folder), statistics={"failures": "worst"})
    [scored] = [in_process.read(worst)[0]["results"][SSIM]]
    assert scored["SC_mean_value,none"] == pytest.approx(metrics["SC_mean_value,none"] * 4 / 6)


def test_several_images_of_a_prompt_have_a_mean_and_a_best(folder, tmp_path):
    for path in sorted(folder.iterdir()):
        noise = np.random.default_rng(7).integers(0, 256, (256, 256, 3), dtype=np.uint8)
        PIL.Image.fromarray(noise).save(path.with_name(f"{path.stem}_1.png"))
    out = run(tmp_path, images(folder), more=("--repeats", 2))
    metrics = in_process.read(out)[0]["results"][SSIM]
    found = records(out)
    assert Counter(record.id.draw for record in found) == {0: 6, 1: 6}
    assert len({record.id for record in found}) == 12
    by_uid = {}
    for record in found:
        by_uid.setdefault(record.id.uid, []).append(record.verdict.scores["SC"])
    assert metrics["SC_best_value,none"] == pytest.approx(np.mean([max(both) for both in by_uid.values()]))
    assert metrics["SC_mean_value,none"] == pytest.approx(np.mean([np.mean(both) for both in by_uid.values()]))
    both = run(tmp_path, images(folder), generate={"images": 2})
    again = in_process.read(both)[0]["results"][SSIM]
    assert {n: v for n, v in again.items() if "_mean_" in n} == {n: v for n, v in metrics.items() if "_mean_" in n}


def test_a_users_prompts_are_a_task(tmp_path):
    (tmp_path / "made").mkdir()
    rows = []
    for number, category in enumerate(("animals", "animals", "places")):
        noise = np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=np.uint8)
        PIL.Image.fromarray(noise).save(tmp_path / "made" / f"p{number}.png")
        rows.append(
            {"uid": f"p{number}", "kind": "tig", "texts": {"prompt": "x"}, "tags": ["one"], "category": category}
        )
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = run(tmp_path, images(tmp_path / "made"), "generate_prompts_sharpness", 3, generate={"prompts": str(prompts)})
    assert main(["report", str(out), "--out", str(tmp_path / "report")]) == 0
    report = (tmp_path / "report" / "report.md").read_text()
    assert "By category" in report
    assert "| animals | mine |" in report
    assert "By tag" in report
    assert "| one | mine |" in report


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"texts": {"prompt": "x"}}, "line 1: it has no kind"),
        ({"kind": "tig", "images": {"output": "a.png"}}, "line 1: it names an output"),
        ({"kind": "tie", "images": {"source": "nowhere.png"}}, "line 1: the image source is not there"),
        ({"kind": "tig", "prompt": "x"}, "line 1: unknown key 'prompt'"),
    ],
)
def test_a_bad_prompt_is_one_line_before_anything_is_made(tmp_path, row, line):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps(row) + "\n")
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(SystemExit) as end:
        run(tmp_path, images(tmp_path), "generate_prompts_sharpness", generate={"prompts": str(prompts)})
    assert line in str(end.value.code)
