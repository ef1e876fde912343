"""What lmms-eval keeps of each sample and run: the prompt, the images, the model's name."""

import json
from dataclasses import replace
from pathlib import Path

from tests import in_process
from tests.builders import a_sample
from tests.fake_server import FakeServer
from tests.in_process import TIE, demo, served
from vieval_plugin.hosts.task_data import document_of, image_files, text_of
from vieval_plugin.judges.contests import Contest
from vieval_plugin.judges.protocol import Image, SampleId, TableCell

GOOD = '{"score": [3, 4], "reasoning": "fine"}'
SSIM = "vieval_demo_ssim_tie"


def test_a_logged_sample_shows_its_prompt_and_its_images(evaluate, tmp_path):
    run = evaluate("--model", "vieval_scorer", tasks=SSIM, limit=3)
    assert len(run.rows) == 3
    for row in run.rows:
        identity = json.loads(row["target"])["id"]
        model, uid = identity["image_model"], identity["uid"]
        instruction = demo()[model + uid].texts["instruction"]
        shown = [f"instruction: {instruction}", f"generator: {model}", f"uid: {uid}"]
        assert row["input"].splitlines() == [*shown, "task type: tie"]
        # the demo's images are drawn in memory, and an id is not a path
        assert "input_media" not in row
    # results without a model are named too
    on_cpu = ("--model", "vieval_scorer", "--model_args", "device=cpu")
    for named in (run, evaluate(*on_cpu, tasks=SSIM, limit=1)):
        assert named.document["model_name"] == "vieval_scorer"
    folders = {path.parent.name for path in tmp_path.rglob("*_results.json")}
    assert folders == {"vieval_scorer"}


def test_images_that_are_files_are_logged_by_path(evaluate, prepared_data):
    data = prepared_data("tie")
    with FakeServer(reply=lambda _: GOOD) as server:
        model = served("vieval_openai", server)
        run = evaluate(*model, tasks="imagenhub_viescore_tie", limit=2, data=data)
    for row in run.rows:
        output, source = map(Path, row["input_media"])
        assert output.is_absolute()
        assert output.is_file()
        assert source.is_file()
        assert source.parent.name == "input"
        assert output.name == source.name == json.loads(row["target"])["id"]["uid"]


def test_a_run_from_python_has_the_same_in_its_documents(monkeypatch, tmp_path):
    from lmms_eval.evaluator import simple_evaluate

    file = in_process.options_file(tmp_path / "options.yaml")
    monkeypatch.setenv("VIEVAL_CONFIG", str(file))
    given = {"tasks": [SSIM], "limit": 1, "task_manager": in_process.tasks()}
    [row] = simple_evaluate("vieval_scorer", "", **given)["samples"][SSIM]
    document = json.loads(row["doc"]["sample"])
    assert (document["task type"], document["uid"]) == ("tie", "demo_00.png")
    assert document["instruction"]


def test_generated_images_keep_their_prompt_as_input(evaluate, tmp_path):
    sample = next(iter(demo().values()))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "demo_00.png").write_bytes(sample.images["output"].source)
    model = f"--model vieval_images --model_args folder={tmp_path}/mine,name=mine"
    run = evaluate(*model.split(), tasks="generate_vieval_demo_ssim_tie", limit=1)
    [row] = run.rows
    [source] = map(Path, row["input_media"])
    assert row["input"] == sample.texts["instruction"]
    assert source.is_file()
    assert run.document["model_name"] == "mine"


def candidate(name, **images):
    shown = {role: Image(source) for role, source in images.items()}
    about = {"kind": "tie", "benchmark": "mine", "texts": {"instruction": "redder"}}
    return a_sample("7.png", name, images=shown, **about)


def test_both_candidates_of_a_contest_are_shown(tmp_path):
    source, *outputs = (tmp_path / name for name in ("s.png", "1.png", "2.png"))
    named = zip(("one", "two"), outputs, strict=True)
    candidates = [candidate(name, output=path, source=source) for name, path in named]
    contest = Contest(SampleId("mine", "tie", "", "7.png"), tuple(candidates))
    names = ("output 1", "output 2", "source")
    shown = zip(names, map(str, (*outputs, source)), strict=True)
    assert list(image_files(contest).items()) == list(shown)
    assert "generator: one / two" in text_of(contest)
    assert json.loads(document_of(contest))["generator"] == "one / two"


def test_images_of_a_table_are_not_repeated_in_logs(tmp_path):
    cell = TableCell(tmp_path / "t.parquet", 3, "image")
    sample = candidate("one", source=tmp_path / "s.png")
    images = {**sample.images, "output": Image(b"png", origin=cell)}
    shown = image_files(replace(sample, images=images))
    assert shown == {"source": str(tmp_path / "s.png")}


def test_a_task_of_the_users_with_our_name_is_told(tmp_path, capsys):
    from lmms_eval.tasks import TaskManager

    in_process.tasks()
    (tmp_path / "mine.yaml").write_text(f"task: {TIE}\ndataset_path: json\n")
    TaskManager("WARNING", include_path=str(tmp_path), include_defaults=False)
    said = capsys.readouterr().err
    assert f"these tasks replace VIEval's tasks of the same name: {TIE}" in said
