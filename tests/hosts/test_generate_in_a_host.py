"""Generators judged inside lmms-eval: from a prompt to a judged image in one run, or in two."""

import json
import re
from collections import Counter
from shlex import split

import numpy as np
import PIL.Image
import pytest
import scipy

from tests import in_process
from tests.fake_server import FakeServer, named
from tests.hosts.local_rows import parquet
from tests.refusals import refusal
from tests.stored_results import write_lines
from tests.tables import table
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.cli import main
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image
from vieval_plugin.results import rows as own
from vieval_plugin.results.host_samples import records_of

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
        noise = np.random.default_rng(number).integers(
            -4 * number - 1, 4 * number + 2, picture.shape
        )
        path = made / f"{one.id.uid}.png"
        PIL.Image.fromarray((picture + noise).clip(0, 255).astype(np.uint8)).save(path)
    return made


def images(folder, **further):
    given = ",".join(
        f"{k}={v}" for k, v in {"folder": folder, "name": "mine", **further}.items()
    )
    return ("--model", "vieval_images", "--model_args", given)


def run(tmp_path, arguments, task=SSIM, limit=6, more=(), **options):
    out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
    options = {"data": str(tmp_path / "kept"), **options}
    file = in_process.options_file(out.with_suffix(".yaml"), **options)
    in_process.run(
        *in_process.command(arguments, task, limit)[1:],
        "--output_path",
        out,
        *more,
        options=file,
    )
    return out


def records(out):
    [path] = out.rglob("*_samples_*.jsonl")
    return [record for together in records_of(path) for record in together]


def by_vieval_score(found, judge, tmp_path):
    """What `vieval score` gives the images of a run, by uid."""
    rows = [
        {
            "uid": one.id.uid,
            "kind": one.sample.kind,
            "images": {
                **{
                    role: str(image.source)
                    for role, image in one.sample.images.items()
                    if role != "output"
                },
                "output": one.generation.image,
            },
            "texts": dict(one.sample.texts),
        }
        for one in found
    ]
    write_lines(tmp_path / "s.jsonl", rows)
    verdicts = tmp_path / "v.jsonl"
    got = main(
        [*split(f"score {tmp_path}/s.jsonl --judge"), judge, "--out", str(verdicts)]
    )
    assert got == 0
    return {
        record.id.uid: dict(record.verdict.scores)
        for record in own.records_of(verdicts)
    }


def test_images_made_elsewhere_have_the_digits_of_vieval_score(folder, tmp_path):
    out = run(tmp_path, images(folder))
    document, _ = in_process.read(out)
    found = {record.id.uid: record for record in records(out)}
    assert {record.id.image_model for record in found.values()} == {"mine"}
    scored = by_vieval_score(found.values(), "ssim", tmp_path)
    assert {uid: dict(record.verdict.scores) for uid, record in found.items()} == scored
    metrics = document["results"][SSIM]
    mean = np.mean([scores["SC"] for scores in scored.values()])
    assert metrics["SC_mean_value,none"] == pytest.approx(mean, abs=1e-12)
    assert metrics["SC_mean_ci_low,none"] < mean < metrics["SC_mean_ci_high,none"]
    assert metrics["status_no_image_share,none"] == 0


@pytest.mark.parametrize("judge", ["ssim", "viescore"])
def test_judging_later_gives_the_same_digits(folder, tmp_path, capsys, server, judge):
    task, asks = f"generate_vieval_demo_{judge}_tie", judge == "viescore"
    backbones = {"judge": {"model": "fake", "base_url": server.base_url}}
    found = records(run(tmp_path, images(folder), task, backbones=backbones))
    at_once = {r.id.uid: dict(r.verdict.scores) for r in found}
    assert {len(scores) for scores in at_once.values()} == {3 if asks else 1}
    asked = server.stats()["requests"]
    more = ("--predict_only",)
    later = run(tmp_path, images(folder), task, more=more, backbones=backbones)
    assert server.stats()["requests"] == asked
    document, _ = in_process.read(later)
    assert document["results"][task]["made_count,none"] == 6
    command = [
        "score",
        str(later),
        *(named(server) if asks else ()),
        "--out",
        str(tmp_path / "v.jsonl"),
    ]
    got = main(command)
    assert got == 0
    assert {
        r.id.uid: dict(r.verdict.scores) for r in own.records_of(tmp_path / "v.jsonl")
    } == at_once
    assert "mine" in capsys.readouterr().out


def test_a_prompt_without_an_image_is_no_zero_and_is_told(folder, tmp_path, capsys):
    first = sorted(folder.iterdir())[0]
    first.unlink()
    broken = sorted(folder.iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:500])
    out = run(tmp_path, images(folder))
    document, _ = in_process.read(out)
    statuses = Counter(str(record.verdict.status) for record in records(out))
    assert statuses == {"ok": 4, "no_image": 2}
    metrics = document["results"][SSIM]
    assert metrics["status_no_image_share,none"] == pytest.approx(2 / 6)
    assert metrics["scored_count,none"] == 4
    said = capsys.readouterr().err
    assert "no_image 2, first" in said
    assert re.search(r"no_image 2, first: \S+: \S+ has no image for uid", said)
    other_prompts = tmp_path / "other"
    other_prompts.mkdir()
    PIL.Image.new("RGB", (8, 8)).save(other_prompts / "cat.png")
    with pytest.raises(SystemExit):
        run(tmp_path, images(other_prompts))
    assert (
        "other has no image for any prompt (6 prompts, first uid "
        in capsys.readouterr().err
    )
    worst = run(tmp_path, images(folder), statistics={"failures": "worst"})
    [scored] = [in_process.read(worst)[0]["results"][SSIM]]
    found = scored["SC_mean_value,none"]
    assert found == (pytest.approx(metrics["SC_mean_value,none"] * 4 / 6))


def test_the_hosts_baseline_is_tested_on_scores(folder, tmp_path, capsys):
    first = run(tmp_path, images(folder))
    before = [record.verdict.scores["SC"] for record in records(first)]
    for number, path in enumerate(sorted(folder.iterdir())):
        noise = np.random.default_rng(number).integers(-40, 41, (256, 256, 3))
        PIL.Image.fromarray(
            (np.asarray(PIL.Image.open(path)) + noise).clip(0, 255).astype(np.uint8)
        ).save(path)
    [baseline] = first.rglob("*_samples_*.jsonl")
    second = run(tmp_path, images(folder), more=("--baseline", baseline))
    after = [record.verdict.scores["SC"] for record in records(second)]
    tested = in_process.read(second)[0]["results"][SSIM]
    assert tested["paired_baseline_score"] == pytest.approx(100 * np.mean(before))
    found = tested["paired_pvalue"]
    assert found == (pytest.approx(scipy.stats.ttest_rel(after, before).pvalue))
    assert "P_Value" in capsys.readouterr().out
    next(folder.iterdir()).unlink()
    [broken] = run(tmp_path, images(folder)).rglob("*_samples_*.jsonl")
    untested = in_process.read(
        run(tmp_path, images(folder), more=("--baseline", broken))
    )[0]["results"][SSIM]
    assert np.isnan(untested["paired_pvalue"])


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
    got = metrics["SC_best_value,none"]
    assert got == (pytest.approx(np.mean([max(both) for both in by_uid.values()])))
    got = metrics["SC_mean_value,none"]
    assert got == (pytest.approx(np.mean([np.mean(both) for both in by_uid.values()])))
    both = run(tmp_path, images(folder), generate={"images": 2})
    again = in_process.read(both)[0]["results"][SSIM]
    seen = {n: v for n, v in again.items() if "_mean_" in n}
    assert seen == {n: v for n, v in metrics.items() if "_mean_" in n}


def test_a_users_prompts_are_a_task(tmp_path, vieval):
    (tmp_path / "made").mkdir()
    rows = []
    for number, category in enumerate(("animals", "animals", "places")):
        dtype = np.uint8
        noise = np.random.default_rng(number).integers(0, 256, (32, 32, 3), dtype=dtype)
        PIL.Image.fromarray(noise).save(tmp_path / "made" / f"p{number}.png")
        row = {
            "uid": f"p{number}",
            "kind": "tig",
            "texts": {"prompt": "x"},
            "tags": ["one"],
            "category": category,
        }
        rows.append(row)
    prompts = tmp_path / "prompts.jsonl"
    write_lines(prompts, rows)
    out = run(
        tmp_path,
        images(tmp_path / "made"),
        "generate_prompts_sharpness",
        3,
        generate={"prompts": str(prompts)},
    )
    vieval(f"report {out} --out {tmp_path}/report")
    report = (tmp_path / "report" / "report.md").read_text()
    assert "By category" in report
    assert "| animals | sharpness | PQ |" in report
    assert "By tag" in report
    assert "| one | sharpness | PQ |" in report


@pytest.mark.parametrize(
    *table("a_bad_prompt_is_one_line_before_anything_is_made.jsonl")
)
def test_a_bad_prompt_is_one_line_before_anything_is_made(tmp_path, row, line):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps(row) + "\n")
    (tmp_path / "a.png").write_bytes(b"")
    assert line in refusal(
        run,
        tmp_path,
        images(tmp_path),
        "generate_prompts_sharpness",
        generate={"prompts": str(prompts)},
    )


@pytest.fixture
def host_generator(fake_generator, tmp_path):
    return lambda form: (
        *fake_generator,
        "--model_args",
        f"form={form},out={tmp_path / 'saved'}",
    )


@pytest.mark.parametrize("form", ["json", "folder", "path"])
def test_a_generator_of_the_host_is_judged(host_generator, tmp_path, form):
    found = records(run(tmp_path, host_generator(form)))
    assert {str(record.verdict.status) for record in found} == {"ok"}
    assert {record.id.image_model for record in found} == {"fake_generator"}
    for record in found:
        shown = np.asarray(decode(record.sample.images["source"])).astype(int)
        assert (
            np.asarray(
                decode(
                    Image(
                        tmp_path / "saved" / record.generation.image.rsplit("/", 1)[1]
                    )
                )
            )
            >= shown
        ).all()


@pytest.mark.parametrize(
    ("form", "status", "reason"),
    [
        ("two", "ok", ""),
        ("text", "no_image", "the generator returned only text: 'I cannot draw that.'"),
        ("absent", "no_image", "the generator returned a path to a missing image"),
    ],
)
def test_a_wrong_answer_is_told(host_generator, tmp_path, capsys, form, status, reason):
    found = records(run(tmp_path, host_generator(form)))
    assert {str(record.verdict.status) for record in found} == {status}
    assert all(reason in record.verdict.reason for record in found)
    said = capsys.readouterr().err
    got = f"findings: more images than requested {len(found)}" in said
    assert got is (form == "two")
    assert reason in said


def test_a_generator_judges_its_own_images(host_generator, tmp_path):
    out = run(
        tmp_path,
        host_generator("json"),
        "generate_vieval_demo_viescore_tie",
        store={"use": False},
    )
    found = records(out)
    assert {
        (record.verdict.scores["SC"], record.verdict.scores["PQ"]) for record in found
    } == {(0.4, 0.4)}
    assert {record.provenance.backbone for record in found} == {"fake_generator"}
    assert "2 images" in found[0].verdict.rationale


def judged_rows(host_generator, tmp_path, benchmark, rows, column, reply):
    """The records of a benchmark of the host, of which these are the rows of its data set."""
    parquet(tmp_path / "data" / benchmark / "rows.parquet", rows, column)
    with FakeServer(reply=reply) as server:
        backbones = {"judge": {"model": "fake", "base_url": server.base_url}}
        file = in_process.options_file(tmp_path / "o.yaml", backbones=backbones)
        command = in_process.command(
            host_generator("json"), f"generate_{benchmark}_viescore", 8
        )[1:]
        path = tmp_path / "out"
        data = tmp_path / "data"
        in_process.run(*command, "--output_path", path, data=data, options=file)
    return records(tmp_path / "out")


def test_a_benchmark_of_the_host_is_judged_by_ours(host_generator, tmp_path):
    rows = [
        {
            "key": f"k{n // 2}",
            "task_type": ("color_alter", "subject-add")[n % 2],
            "instruction": f"make it {n}",
            "instruction_language": ("en", "cn")[n % 2],
            "Intersection_exist": n < 4,
            "input_image": PIL.Image.new("RGB", (64, 48), (20 * n, 0, 0)),
        }
        for n in range(8)
    ]
    prose = lambda body: "What a lovely edit, I like it."
    found = judged_rows(
        host_generator, tmp_path, "gedit_bench", rows, "input_image", prose
    )
    assert len({record.id for record in found}) == 8
    seen = {record.id.uid for record in found}
    assert seen == {f"k{n}{more}" for n in range(4) for more in ("", "-2")}
    assert Counter(record.category for record in found) == {
        "color_alter": 4,
        "subject-add": 4,
    }
    seen = {record.sample.texts["instruction"] for record in found}
    assert seen == {f"make it {n}" for n in range(8)}
    metrics = in_process.read(tmp_path / "out")[0]["results"][
        "generate_gedit_bench_viescore"
    ]
    assert metrics["status_parse_failure_share,none"] == 1
    assert metrics["SC_mean_value,none"] is None


def test_edits_of_imgedit_keep_their_type_as_category(host_generator, tmp_path):
    kinds, picture = ["add", "remove", "style"], PIL.Image.new("RGB", (64, 48))
    rows = [
        {
            "key": f"k{n}",
            "edit_type": kinds[n],
            "prompt": f"do it {n}",
            "image": picture,
        }
        for n in range(3)
    ]
    found = judged_rows(host_generator, tmp_path, "imgedit", rows, "image", None)
    counted = sorted((r.category, str(r.verdict.status)) for r in found)
    assert counted == [(kind, "ok") for kind in kinds]


def test_a_missing_benchmark_is_one_line(host_generator, tmp_path, no_downloads):
    assert "cannot load lmms-eval's data set stepfun-ai/GEdit-Bench" in refusal(
        run, tmp_path, host_generator("json"), "generate_gedit_bench_viescore"
    )


def test_a_model_of_the_wrong_kind_is_refused(folder, tmp_path):
    for arguments, task in (
        (("--model", "vieval_scorer"), SSIM),
        (images(folder), "vieval_demo_ssim_tie"),
    ):
        line = refusal(run, tmp_path, arguments, task)
        assert "requires a generator" in line or "requires a judge" in line


def test_an_image_api_is_a_generator_and_its_failed_call_is_no_missing_image(tmp_path):
    from tests.fake_image_server import FakeImageServer

    def broken(path, body):
        return (
            (400, {"error": {"message": "no"}}) if len(server.requests) == 2 else None
        )

    with FakeImageServer(broken) as server:
        arguments = (
            f"model=painter,base_url={server.base_url},retries=0,num_concurrent=1"
        )
        api = ("--model", "vieval_image_api", "--model_args", arguments)
        found = records(run(tmp_path, api, "generate_vieval_demo_sharpness_tig", 4))
        assert Counter(str(record.verdict.status) for record in found) == {
            "ok": 3,
            "api_error": 1,
        }
        asked = len(server.requests)
        again = records(run(tmp_path, api, "generate_vieval_demo_sharpness_tig", 4))
        assert len(server.requests) == asked + 1  # what is there is not asked for again
    assert {str(record.verdict.status) for record in again} == {"ok"}
    assert {record.id.image_model for record in found} == {"painter"}
    scored = by_vieval_score(again, "sharpness", tmp_path)
    assert {record.id.uid: dict(record.verdict.scores) for record in again} == scored


def test_of_two_images_of_an_answer_the_good_one_is_judged(tmp_path):
    from tests.fake_image_server import FakeImageServer

    def lost(path):
        return (404, b"") if path == next(iter(server.files)) else None

    with FakeImageServer(urls=True, file=lost) as server:
        arguments = (
            f"model=painter,base_url={server.base_url},retries=0,num_concurrent=1"
        )
        api = ("--model", "vieval_image_api", "--model_args", arguments)
        found = records(
            run(
                tmp_path,
                api,
                "generate_vieval_demo_sharpness_tig",
                2,
                generate={"images": 2},
            )
        )
    assert Counter(str(record.verdict.status) for record in found) == {
        "ok": 3,
        "api_error": 1,
    }
    [reason] = [record.verdict.reason for record in found if record.verdict.reason]
    assert reason.startswith("cannot download a file: HTTP 404")


@pytest.mark.parametrize("editing", [False, True])
def test_a_diffusers_pipeline_is_a_generator(tmp_path, editing):
    pytest.importorskip("diffusers", reason="diffusers is not installed")
    from tests.tiny_pipeline import build_pipeline

    weights = build_pipeline(tmp_path / "tiny", editing)
    call = "num_inference_steps=2" + (
        ",strength=0.9" if editing else ",height=32,width=32"
    )
    given = (
        *split(
            f"--model vieval_diffusers --model_args model={weights},{call} --batch_size 2"
        ),
    )
    task = SSIM if editing else "generate_vieval_demo_sharpness_tig"
    out = run(tmp_path, (*given, "--device", "cpu"), task, 2)
    found = records(out)
    assert {str(record.verdict.status) for record in found} == {"ok"}
    assert in_process.read(out)[0]["results"][task]["generation_seconds_value,none"] > 0
    scored = by_vieval_score(found, "ssim" if editing else "sharpness", tmp_path)
    assert {record.id.uid: dict(record.verdict.scores) for record in found} == scored
