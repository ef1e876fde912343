"""Generators judged inside lmms-eval: from a prompt to a judged image in one run, or in two."""

import re
from collections import Counter

import numpy as np
import PIL.Image
import pytest
import scipy

from tests import in_process
from tests.fake_server import FakeServer, named
from tests.pictures import noise
from tests.refusals import refusal, refuses
from tests.stored_results import write_lines
from tests.tables import table
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.images import decode
from vieval_plugin.judges.protocol import Image
from vieval_plugin.results import rows as own
from vieval_plugin.results.host_samples import records_of

SSIM = "generate_vieval_demo_ssim_tie"


def conditions(part="tie"):
    return benchmark("generate_vieval_demo").load(None, part)


@pytest.fixture
def folder(tmp_path):
    """Edits of the first six conditions, each with as much more noise."""
    made = tmp_path / "made"
    made.mkdir()
    for number, one in enumerate(conditions()[:6]):
        path = made / f"{one.id.uid}.png"
        noisy(decode(one.images["source"]), 4 * number + 1, number).save(path)
    return made


def noisy(picture, most, seed):
    """A picture with noise of at most so much."""
    pixels = np.asarray(picture).astype(int)
    noise = np.random.default_rng(seed).integers(-most, most + 1, pixels.shape)
    return PIL.Image.fromarray((pixels + noise).clip(0, 255).astype(np.uint8))


def images(folder, name="mine"):
    return ("--model", "vieval_images", "--model_args", f"folder={folder},name={name}")


def run(tmp_path, arguments, task=SSIM, limit=6, more=(), **options):
    out = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
    options = {"data": str(tmp_path / "kept"), **options}
    file = in_process.options_file(out.with_suffix(".yaml"), **options)
    command = in_process.command(arguments, task, limit)[1:]
    in_process.run(*command, "--output_path", out, *more, options=file)
    return out


def records(out):
    [path] = out.rglob("*_samples_*.jsonl")
    return [record for together in records_of(path) for record in together]


def metrics(out, task=SSIM):
    return in_process.read(out)[0]["results"][task]


def scores_of(found):
    """Scores by uid."""
    return {record.id.uid: dict(record.verdict.scores) for record in found}


def statuses(found):
    return Counter(str(record.verdict.status) for record in found)


def at(server):
    """Options with a judge's server."""
    return {"backbones": {"judge": {"model": "fake", "base_url": server.base_url}}}


@pytest.fixture
def by_vieval_score(tmp_path, vieval):
    """What `vieval score` gives the images of a run, by uid."""

    def scored(found, judge):
        rows = []
        for one in found:
            sources = {r: str(image.source) for r, image in one.sample.images.items()}
            row = {"uid": one.id.uid, "kind": one.sample.kind}
            row["images"] = {**sources, "output": one.generation.image}
            rows.append({**row, "texts": dict(one.sample.texts)})
        samples = write_lines(tmp_path / "s.jsonl", rows)
        out = tmp_path / "v.jsonl"
        vieval("score", samples, "--judge", judge, "--out", out)
        return scores_of(own.records_of(out))

    return scored


def test_images_made_elsewhere_have_the_digits_of_vieval_score(
    folder, tmp_path, by_vieval_score
):
    out = run(tmp_path, images(folder))
    found = records(out)
    assert {record.id.image_model for record in found} == {"mine"}
    scored = by_vieval_score(found, "ssim")
    assert scores_of(found) == scored
    numbers = metrics(out)
    mean = np.mean([scores["SC"] for scores in scored.values()])
    assert numbers["SC_mean_value,none"] == pytest.approx(mean, abs=1e-12)
    assert numbers["SC_mean_ci_low,none"] < mean < numbers["SC_mean_ci_high,none"]
    assert numbers["status_no_image_share,none"] == 0


@pytest.mark.parametrize("judge", ["ssim", "viescore"])
def test_judging_later_gives_the_same_digits(folder, tmp_path, vieval, server, judge):
    task, asks = f"generate_vieval_demo_{judge}_tie", judge == "viescore"
    at_once = scores_of(records(run(tmp_path, images(folder), task, **at(server))))
    assert {len(scores) for scores in at_once.values()} == {3 if asks else 1}
    asked = server.stats()["requests"]
    later = run(tmp_path, images(folder), task, more=("--predict_only",), **at(server))
    assert server.stats()["requests"] == asked
    assert metrics(later, task)["made_count,none"] == 6
    flags = named(server) if asks else ()
    said = vieval("score", later, *flags, "--out", tmp_path / "v.jsonl").out
    assert scores_of(own.records_of(tmp_path / "v.jsonl")) == at_once
    assert "mine" in said


def test_a_prompt_without_an_image_is_no_zero_and_is_told(folder, tmp_path, capsys):
    first, broken, *_ = sorted(folder.iterdir())
    first.unlink()
    broken.write_bytes(broken.read_bytes()[:500])
    out = run(tmp_path, images(folder))
    assert statuses(records(out)) == {"ok": 4, "no_image": 2}
    numbers = metrics(out)
    assert numbers["status_no_image_share,none"] == pytest.approx(2 / 6)
    assert numbers["scored_count,none"] == 4
    said = capsys.readouterr().err
    assert re.search(r"no_image 2, first: \S+: \S+ has no image for uid", said)
    worst = metrics(run(tmp_path, images(folder), statistics={"failures": "worst"}))
    found, mean = (each["SC_mean_value,none"] for each in (worst, numbers))
    assert found == pytest.approx(mean * 4 / 6)
    (tmp_path / "other").mkdir()
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "other" / "cat.png")
    words = r"other has no image for any prompt \(6 prompts, first uid "
    refuses(words, run, tmp_path, images(tmp_path / "other"))


def test_the_hosts_baseline_is_tested_on_scores(folder, tmp_path, capsys):
    first = run(tmp_path, images(folder))
    before = [record.verdict.scores["SC"] for record in records(first)]
    for number, path in enumerate(sorted(folder.iterdir())):
        noisy(PIL.Image.open(path), 40, number).save(path)
    [baseline] = first.rglob("*_samples_*.jsonl")
    second = run(tmp_path, images(folder), more=("--baseline", baseline))
    after = [record.verdict.scores["SC"] for record in records(second)]
    tested = metrics(second)
    assert tested["paired_baseline_score"] == pytest.approx(100 * np.mean(before))
    expected = scipy.stats.ttest_rel(after, before).pvalue
    assert tested["paired_pvalue"] == pytest.approx(expected)
    assert "P_Value" in capsys.readouterr().out
    next(folder.iterdir()).unlink()
    [broken] = run(tmp_path, images(folder)).rglob("*_samples_*.jsonl")
    untested = run(tmp_path, images(folder), more=("--baseline", broken))
    assert np.isnan(metrics(untested)["paired_pvalue"])


def test_several_images_of_a_prompt_have_a_mean_and_a_best(folder, tmp_path):
    for path in sorted(folder.iterdir()):
        noise(7, (256, 256)).save(path.with_name(f"{path.stem}_1.png"))
    out = run(tmp_path, images(folder), more=("--repeats", 2))
    numbers = metrics(out)
    found = records(out)
    assert Counter(record.id.draw for record in found) == {0: 6, 1: 6}
    assert len({record.id for record in found}) == 12
    by_uid = {}
    for record in found:
        by_uid.setdefault(record.id.uid, []).append(record.verdict.scores["SC"])
    for name, of_both in (("best", max), ("mean", np.mean)):
        expected = np.mean([of_both(both) for both in by_uid.values()])
        assert numbers[f"SC_{name}_value,none"] == pytest.approx(expected)
    again = metrics(run(tmp_path, images(folder), generate={"images": 2}))
    means = [name for name in numbers if "_mean_" in name]
    assert [again[name] for name in means] == [numbers[name] for name in means]


def test_a_users_prompts_are_a_task(tmp_path, vieval):
    (tmp_path / "made").mkdir()
    rows = []
    for number, category in enumerate(("animals", "animals", "places")):
        path = tmp_path / "made" / f"p{number}.png"
        noisy(PIL.Image.new("RGB", (32, 32), "grey"), 120, number).save(path)
        about = {"tags": ["one"], "category": category, "texts": {"prompt": "x"}}
        rows.append({"uid": f"p{number}", "kind": "tig", **about})
    generate = {"prompts": str(write_lines(tmp_path / "prompts.jsonl", rows))}
    given = (images(tmp_path / "made"), "generate_prompts_sharpness", 3)
    out = run(tmp_path, *given, generate=generate)
    vieval(f"report {out} --out {tmp_path}/report")
    report = (tmp_path / "report" / "report.md").read_text()
    for name, value in (("category", "animals"), ("tag", "one")):
        assert f"By {name}" in report
        assert f"| {value} | sharpness | PQ |" in report


@pytest.mark.parametrize(
    *table("a_bad_prompt_is_one_line_before_anything_is_made.jsonl")
)
def test_a_bad_prompt_is_one_line_before_anything_is_made(tmp_path, row, line):
    prompts = write_lines(tmp_path / "prompts.jsonl", [row])
    (tmp_path / "a.png").write_bytes(b"")
    given = (images(tmp_path), "generate_prompts_sharpness")
    assert line in refusal(run, tmp_path, *given, generate={"prompts": str(prompts)})


@pytest.fixture
def host_generator(fake_generator, tmp_path):
    given = f"out={tmp_path / 'saved'}"
    return lambda form: (*fake_generator, "--model_args", f"form={form},{given}")


@pytest.mark.parametrize("form", ["json", "folder", "path"])
def test_a_generator_of_the_host_is_judged(host_generator, tmp_path, form):
    found = records(run(tmp_path, host_generator(form)))
    assert set(statuses(found)) == {"ok"}
    assert {record.id.image_model for record in found} == {"fake_generator"}
    for record in found:
        shown = np.asarray(decode(record.sample.images["source"])).astype(int)
        name = record.generation.image.rsplit("/", 1)[1]
        assert (np.asarray(decode(Image(tmp_path / "saved" / name))) >= shown).all()


TEXT = "the generator returned only text: 'I cannot draw that.'"
WRONG = [("two", "ok", ""), ("text", "no_image", TEXT)]
WRONG += [("absent", "no_image", "the generator returned a path to a missing image")]


@pytest.mark.parametrize(("form", "status", "reason"), WRONG)
def test_a_wrong_answer_is_told(host_generator, tmp_path, capsys, form, status, reason):
    found = records(run(tmp_path, host_generator(form)))
    assert set(statuses(found)) == {status}
    assert all(reason in record.verdict.reason for record in found)
    said = capsys.readouterr().err
    too_many = f"findings: more images than requested {len(found)}" in said
    assert too_many is (form == "two")
    assert reason in said


def test_a_generator_judges_its_own_images(host_generator, tmp_path):
    given = (host_generator("json"), "generate_vieval_demo_viescore_tie")
    found = records(run(tmp_path, *given, store={"use": False}))
    scores = [(one["SC"], one["PQ"]) for one in scores_of(found).values()]
    assert scores == [(0.4, 0.4)] * 6
    assert {record.provenance.backbone for record in found} == {"fake_generator"}
    assert "2 images" in found[0].verdict.rationale


def judged_rows(host_generator, tmp_path, benchmark, rows, column, reply):
    """The run of a benchmark of the host, of which these are the rows of its data set."""
    import datasets

    path = tmp_path / "data" / benchmark / "rows.parquet"
    path.parent.mkdir(parents=True)
    table = datasets.Dataset.from_list(rows)
    table.cast_column(column, datasets.Image()).to_parquet(str(path))
    given = (host_generator("json"), f"generate_{benchmark}_viescore", 8)
    with FakeServer(reply=reply) as server:
        return run(tmp_path, *given, data=str(tmp_path / "data"), **at(server))


def test_a_benchmark_of_the_host_is_judged_by_ours(host_generator, tmp_path):
    kinds = ("color_alter", "subject-add")
    rows = [
        {
            "key": f"k{n // 2}",
            "task_type": kinds[n % 2],
            "instruction": f"make it {n}",
            "instruction_language": ("en", "cn")[n % 2],
            "Intersection_exist": n < 4,
            "input_image": PIL.Image.new("RGB", (64, 48), (20 * n, 0, 0)),
        }
        for n in range(8)
    ]
    prose = lambda body: "What a lovely edit, I like it."
    given = ("gedit_bench", rows, "input_image", prose)
    out = judged_rows(host_generator, tmp_path, *given)
    found = [
        (r.id.uid, r.category, r.sample.texts["instruction"]) for r in records(out)
    ]
    uids = [f"k{n}{more}" for n in range(4) for more in ("", "-2")]
    expected = {(uid, kinds[n % 2], f"make it {n}") for n, uid in enumerate(uids)}
    assert (set(found), len(found)) == (expected, 8)
    numbers = metrics(out, "generate_gedit_bench_viescore")
    assert numbers["status_parse_failure_share,none"] == 1
    assert numbers["SC_mean_value,none"] is None


def test_edits_of_imgedit_keep_their_type_as_category(host_generator, tmp_path):
    kinds, picture = ["add", "remove", "style"], PIL.Image.new("RGB", (64, 48))
    rows = [
        {"key": f"k{n}", "edit_type": kind, "prompt": f"do it {n}", "image": picture}
        for n, kind in enumerate(kinds)
    ]
    out = judged_rows(host_generator, tmp_path, "imgedit", rows, "image", None)
    counted = sorted((r.category, str(r.verdict.status)) for r in records(out))
    assert counted == [(kind, "ok") for kind in kinds]


def test_what_a_task_cannot_use_is_one_line(
    folder, host_generator, tmp_path, no_downloads
):
    refuses("requires a generator", run, tmp_path, ("--model", "vieval_scorer"), SSIM)
    given = (images(folder), "vieval_demo_ssim_tie")
    refuses("requires a judge", run, tmp_path, *given)
    given = (host_generator("json"), "generate_gedit_bench_viescore")
    absent = "cannot load lmms-eval's data set stepfun-ai/GEdit-Bench"
    refuses(absent, run, tmp_path, *given)


DRAWN = "generate_vieval_demo_sharpness_tig"


def image_api(server):
    given = f"model=painter,base_url={server.base_url},retries=0,num_concurrent=1"
    return ("--model", "vieval_image_api", "--model_args", given)


def test_an_image_api_is_a_generator_and_its_failed_call_is_no_missing_image(
    tmp_path, by_vieval_score
):
    from tests.fake_image_server import FakeImageServer

    refused = (400, {"error": {"message": "no"}})
    broken = lambda path, body: refused if len(server.requests) == 2 else None
    with FakeImageServer(broken) as server:
        found = records(run(tmp_path, image_api(server), DRAWN, 4))
        assert statuses(found) == {"ok": 3, "api_error": 1}
        asked = len(server.requests)
        again = records(run(tmp_path, image_api(server), DRAWN, 4))
        assert len(server.requests) == asked + 1  # what is there is not asked for again
    assert set(statuses(again)) == {"ok"}
    assert {record.id.image_model for record in found} == {"painter"}
    assert scores_of(again) == by_vieval_score(again, "sharpness")


@pytest.mark.parametrize("editing", [False, True])
def test_a_diffusers_pipeline_is_a_generator(tmp_path, by_vieval_score, editing):
    pytest.importorskip("diffusers", reason="diffusers is not installed")
    from tests.tiny_pipeline import build_pipeline

    weights = build_pipeline(tmp_path / "tiny", editing)
    size = "strength=0.9" if editing else "height=32,width=32"
    call = f"model={weights},num_inference_steps=2,{size}"
    given = f"--model vieval_diffusers --model_args {call} --batch_size 2 --device cpu"
    task, judge = (SSIM, "ssim") if editing else (DRAWN, "sharpness")
    out = run(tmp_path, given.split(), task, 2)
    found = records(out)
    assert set(statuses(found)) == {"ok"}
    assert metrics(out, task)["generation_seconds_value,none"] > 0
    assert scores_of(found) == by_vieval_score(found, judge)
