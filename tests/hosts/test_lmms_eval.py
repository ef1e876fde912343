"""VIEval inside lmms-eval, run as users run it."""

import json
import re
from shlex import split

import pytest

from tests.refusals import refusal
from vieval_plugin.benchmarks import tasks
from vieval_plugin.text.errors import VievalError

pytest.importorskip("lmms_eval", reason="lmms-eval is not installed")

from lmms_eval.tasks import get_task_dict

from tests import in_process
from tests.in_process import refused, replay
from vieval_plugin.hosts.lmms_eval import answerable, task_index


@pytest.fixture(scope="module")
def manager():
    return in_process.tasks()


def _members(group):
    return [
        f"{group}_{t}" for t in ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")
    ]


VIESCORE = _members("imagenhub_viescore")
VQASCORE = [f"imagenhub_vqascore_{t}" for t in ("tig", "cig", "sdig", "mcic")]
T2I_EVAL = ["imagenhub_t2i_eval_tig"]
CIGEVAL = _members("imagenhub_cigeval")
IMAGENHUB = VIESCORE + VQASCORE + CIGEVAL + T2I_EVAL
REWARDS = ["hpsv2", "hpsv3", "image_reward", "pickscore"]
SHIPPED = [
    *_members("imagenhub_aesthetic"),
    "imagenhub_edit_reward_tie",
    *(f"imagenhub_{judge}_tig" for judge in REWARDS),
]
LPIPS = [f"imagenhub_lpips_{t}" for t in ("mie", "tie", "cig")]
SUBJECTS = [
    f"imagenhub_{judge}_{t}"
    for judge in ("clip_i", "dino")
    for t in ("sdig", "sdie", "mcic")
]
SCORED = ["imagenhub_clip_score_tig", *LPIPS, *SUBJECTS]
ADIEE = ["imagenhub_adiee_mie", "imagenhub_adiee_tie"]


T2I_JUDGES = ("viescore", "vqascore", "t2i_eval")


BY_NETWORKS = ("question_answering", "clip_score", "aesthetic", *REWARDS)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("imagenhub_*", IMAGENHUB + ADIEE + SCORED + SHIPPED),
        ("imagenhub*", IMAGENHUB + ADIEE + SCORED + SHIPPED),
        ("imagenhub", IMAGENHUB),
        ("imagenhub_viescore", VIESCORE),
        ("imagenhub_viescore*", VIESCORE),
        ("imagenhub_cigeval*", CIGEVAL),
        *(
            (group, _members(group))
            for group in (
                "variant_imagenhub_cigeval_no_scene_graph",
                "variant_imagenhub_cigeval_react",
                "vieval_demo_cigeval",
            )
        ),
        (
            "t2i_eval_bench*",
            [f"t2i_eval_bench_{judge}" for judge in (*T2I_JUDGES, *BY_NETWORKS)],
        ),
        ("t2i_eval_bench", [f"t2i_eval_bench_{judge}" for judge in T2I_JUDGES]),
    ],
)
def test_a_pattern_runs_each_plain_task_once(manager, pattern, expected):
    found = manager.match_tasks([pattern])
    leaves = [
        leaf
        for name in found
        for leaf in (list(task_index.members(name, manager.task_index)) or [name])
    ]
    tasks = [leaf for leaf in leaves if manager.task_index[leaf]["type"] != "group"]
    assert sorted(tasks) == sorted(expected)


def test_a_pattern_over_leaves_of_a_group_that_is_not_matched_stays(manager):
    assert manager.match_tasks(["imagenhub_viescore_t*"]) == [
        "imagenhub_viescore_tie",
        "imagenhub_viescore_tig",
    ]


def test_patterns_of_other_tasks_are_left_alone(manager):
    assert "mmmu_val" in manager.match_tasks(["mmmu*"])


def test_the_shared_settings_override_defaults(manager, ratings_folder, monkeypatch):
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    [task] = get_task_dict(["imagenhub_viescore_cig"], manager).values()
    assert task.config.reasoning_tags == "none"
    assert task.config.generation_kwargs["until"] == []
    assert "max_new_tokens" not in task.config.generation_kwargs
    assert "temperature" not in task.config.generation_kwargs


def test_mangled_text_arrives_whole(results_of, ratings_folder, cig_logs, tmp_path):
    nameless = (
        *split(
            f"--model vieval_replay --model_args logs={cig_logs} "
            "--tasks imagenhub_viescore_cig"
        ),
    )
    in_process.run(
        *nameless,
        *split(f"--output_path {tmp_path}/out --log_samples"),
        data=ratings_folder,
    )
    _, samples = results_of(tmp_path / "out")
    responses = [
        json.loads(row["filtered_resps"]) for row in samples["imagenhub_viescore_cig"]
    ]
    rationales = {response["verdict"]["rationale"] for response in responses}
    assert {response["provenance"]["backbone"] for response in responses} == {
        "viescore"
    }  # as nothing else is named
    thought = "thought\n</think>\n\nsaid after a blank line\n\nand another"
    angle = "if a < b then <c> holds"
    assert rationales == {f"SC: {thought}\nPQ: {thought}", f"SC: {angle}\nPQ: {angle}"}


def test_the_hosts_cache_is_never_stale(results_of, ratings_folder, cig_logs, tmp_path):
    cached = ("--use_cache", tmp_path / "cache")
    in_process.run(
        *replay(cig_logs, tmp_path / "first", "imagenhub_viescore_cig"),
        *cached,
        data=ratings_folder,
    )
    path = cig_logs / "ImagenHub_Control-Guided_IG" / "UniControl" / "SC.json"
    text = json.dumps({"sample_2.jpg": {"score": [3, 3], "reasoning": "changed"}})
    path.write_text(text)
    in_process.run(
        *replay(cig_logs, tmp_path / "second", "imagenhub_viescore_cig"),
        *cached,
        data=ratings_folder,
    )
    _, samples = results_of(tmp_path / "second")
    verdicts = [
        json.loads(row["filtered_resps"])["verdict"]
        for row in samples["imagenhub_viescore_cig"]
    ]
    assert sorted(v["status"] for v in verdicts) == ["missing", "ok", "ok", "ok"]
    assert [v["scores"]["SC"] for v in verdicts if "changed" in v["rationale"]] == [0.3]


def test_undefined_values_are_null(results_of, ratings_folder, cig_logs, tmp_path):
    for path in cig_logs.rglob("*.json"):
        rows = {
            uid: {"score": [5, 5], "reasoning": "fine"}
            for uid in json.loads(path.read_text())
        }
        path.write_text(json.dumps(rows))
    in_process.run(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_cig"),
        data=ratings_folder,
    )
    results, _ = results_of(tmp_path / "out")
    found = results["results"]["imagenhub_viescore_cig"]
    assert found["SC_fisher,none"] is None
    assert found["SC_count,none"] == 4
    assert "undefined: SC ControlNet: needs 10 samples, got 2" in found["remarks,none"]
    assert "seed 0" in found["remarks,none"]


def test_a_users_mistake_is_one_line(ratings_folder, cig_logs, tmp_path, capsys):
    line = refused(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_ci"),
        data=ratings_folder,
    )
    assert (
        "unknown task 'imagenhub_viescore_ci'; did you mean imagenhub_viescore_cig?"
        in line
    )
    _only_tie(cig_logs)
    line = refused(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_tie"),
        data=ratings_folder,
    )
    assert "Text-Guided_IE_rater1.tsv: no such file" in line
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/*.json*"))


def left_out(names, model):
    """What is run of these, by a model that could answer all of the host's."""
    return answerable.answerable(
        names, lambda _: answerable.make_check(model, loaded=True)
    )


def _only_tie(logs):
    (logs / "ImagenHub_Control-Guided_IG").rename(logs / "ImagenHub_Text-Guided_IE")


def test_a_judge_that_asks_a_model_is_refused_where_nothing_answers():
    line = refused(
        "--model", "vieval_scorer", "--tasks", "vieval_demo_viescore_tig", "--limit", 1
    )
    reason = "viescore asks a model; use --model vieval_openai"
    assert f"vieval: vieval_demo_viescore_tig: {reason}" in line


ANY_SERVER = (
    *split(
        "--model vieval_openai --model_args model=any,base_url=http://127.0.0.1:9/v1"
    ),
)


@pytest.mark.parametrize(
    "named", ["imagenhub_clip_score_tig", "imagenhub_lpips_tie", "imagenhub_lpips"]
)
def test_a_judge_that_measures_with_a_network_is_refused_where_it_is_named(named):
    line = refused(*ANY_SERVER, "--tasks", named)
    assert "is a network; use --model vieval_scorer, or replay recorded values" in line


def test_of_a_wildcard_what_only_scorers_can_answer_is_left_out_in_one_line(capsys):
    manager = in_process.tasks()
    names = manager.match_tasks(["imagenhub_*"])
    kept = left_out(names, "vieval_openai")
    scored = {
        "imagenhub_clip_i",
        "imagenhub_clip_score_tig",
        "imagenhub_dino",
        "imagenhub_lpips",
        "imagenhub_aesthetic",
        "imagenhub_edit_reward",
        *(f"imagenhub_{judge}" for judge in REWARDS),
    }
    assert set(names) - set(kept) == scored
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        f"vieval: left out: {', '.join(sorted(scored))} "
        "(their judges are networks, which require --model vieval_scorer)"
    )
    assert set(left_out(names, "vieval_scorer")) == scored


def test_what_only_measures_is_left_the_judges_that_measure(capsys):
    manager = in_process.tasks()
    names = manager.match_tasks(["vieval_demo_*tie"])
    kept = left_out(names, "vieval_scorer")
    assert sorted(kept) == [
        "vieval_demo_aesthetic_tie",
        *(
            f"vieval_demo_contests_{judge}_tie"
            for judge in ("aesthetic", "edit_reward", "sharpness", "ssim")
        ),
        *(
            f"vieval_demo_{judge}_tie"
            for judge in ("edit_reward", "lpips", "psnr", "sharpness", "ssim")
        ),
    ]
    said = capsys.readouterr().err
    assert "their judges ask a model, so they require another --model" in said
    with pytest.raises(VievalError, match="none of these tasks can run: "):
        left_out(["imagenhub"], "vieval_scorer")


@pytest.mark.parametrize(
    "tasks", ["imagenhub_*", "imagenhub"]
)  # a group that is only run together is a wildcard too
def test_replays(results_of, ratings_folder, cig_logs, tmp_path, capsys, tasks):
    in_process.run(*replay(cig_logs, tmp_path / "out", tasks), data=ratings_folder)
    assert set(results_of(tmp_path / "out")[1]) == {"imagenhub_viescore_cig"}
    [line] = [
        line for line in capsys.readouterr().err.splitlines() if "left out" in line
    ]
    assert "imagenhub_viescore_tie, " in line
    assert "imagenhub_cigeval" in line
    assert f"({cig_logs} has no verdicts for them)" in line


def test_a_replay_refuses_an_absent_task(ratings_folder, cig_logs, tmp_path):
    line = refused(
        *replay(cig_logs, tmp_path / "out", "imagenhub_vqascore_cig"),
        data=ratings_folder,
    )
    assert (
        "no recorded verdicts for imagenhub/cig (it contains no readable verdicts by vqascore)"
        in line
    )
    for path in cig_logs.rglob("*.json"):
        path.write_text(json.dumps({"another.jpg": {"score": [5, 5]}}))
    line = refused(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_cig"),
        data=ratings_folder,
    )
    assert "viescore has no recorded verdicts on the 4 samples of imagenhub/cig" in line
    assert not list(tmp_path.glob("out/**/*.json*"))


def test_a_part_may_be_missing(results_of, ratings_folder, cig_logs, tmp_path, capsys):
    _only_tie(cig_logs)
    in_process.run(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_cig"),
        data=ratings_folder,
    )
    found = results_of(tmp_path / "out")[0]["results"]["imagenhub_viescore_cig"]
    assert (found["status_missing_share,none"], found["SC_count,none"]) == (1, 0)
    said = capsys.readouterr().err
    assert "so counted as missing: 4 of 4 samples of imagenhub/cig (viescore)" in said


def test_absent_logs_are_told_first(ratings_folder, cig_logs, tmp_path, capsys):
    for aspect in ("SC", "PQ"):
        path = (
            cig_logs / "ImagenHub_Control-Guided_IG" / "UniControl" / f"{aspect}.json"
        )
        path.write_text(json.dumps({"sample_2.jpg": {"score": [5, 5]}}))
    in_process.run(
        *replay(cig_logs, tmp_path / "out", "imagenhub_viescore_cig"),
        data=ratings_folder,
    )
    said = capsys.readouterr().err
    line = f"vieval: not in {cig_logs}, so counted as missing: 1 of 4 samples of imagenhub/cig (viescore)"
    assert line in said
    assert said.index(line) < said.index("Replaying")
    assert "vieval: verdicts: ok 3, missing 1" in said


def test_a_judge_task_gives_the_hosts_baseline_nothing_to_test(tmp_path):
    """It tests means of samples, which say nothing of a correlation; `vieval compare` does."""
    task = "vieval_demo_sharpness_tie"
    judged = ("--model", "vieval_scorer", "--limit", 6, "--log_samples")
    in_process.run(*judged, "--tasks", task, "--output_path", tmp_path / "first")
    [baseline] = (tmp_path / "first").rglob("*_samples_*.jsonl")
    in_process.run(
        *judged,
        "--tasks",
        task,
        *split(f"--output_path {tmp_path}/second --baseline {baseline}"),
    )
    document, samples = in_process.read(tmp_path / "second")
    assert not [key for key in document["results"][task] if key.startswith("paired_")]
    assert not [
        key
        for row in samples[task]
        for key in row
        if key == "score" or key.endswith("_score")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("listing", ["tasks", "models"])
def test_the_hosts_own_lists_have_none_of_ours(listing, lmms_eval):
    """They load no entry point, so the guide names `vieval tasks`; where this fails, the guide
    can say less.
    """
    assert "vieval" not in lmms_eval(listing).stdout


def test_a_subset_holds_its_samples(manager, ratings_folder, monkeypatch, tmp_path):
    document = {
        "ImagenHub_Control-Guided_IG": {
            "UniControl": {"sample": ["sample_2.jpg", "elsewhere.jpg"]}
        }
    }
    text = json.dumps(document)
    (tmp_path / "split.json").write_text(text)
    (tmp_path / "options.yaml").write_text("uids: split.json")
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "options.yaml"))
    tasks = get_task_dict(["imagenhub_cigeval_cig"], manager)
    of_task = {
        name: [str(sample.id) for sample in task.samples]
        for name, task in tasks.items()
    }
    found = {"imagenhub_cigeval_cig": ["imagenhub/cig/UniControl/sample_2.jpg"]}
    assert of_task == found


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("imagenhb_viescore", "imagenhub_viescore"),
        ("pickpic_vqascore", "pickapic_vqascore"),
        ("variant_imagenhub_viescore_1sho", "variant_imagenhub_viescore_1shot"),
        ("generate_imgedt_viescore", "generate_imgedit_viescore"),
    ],
)
def test_a_misspelt_name_gets_the_nearest_of_ours(manager, given, told):
    assert re.search(
        re.escape(f"unknown task {given!r}; did you mean {told}?"),
        refusal(task_index._require_task, given, manager.all_tasks),
    )


@pytest.mark.parametrize(
    "benchmark", sorted({task.benchmark for task in tasks.tasks()})
)
def test_a_letter_left_out_of_any_task_of_ours_is_seen(manager, benchmark):
    name = next(task.name for task in tasks.tasks() if task.benchmark == benchmark)
    with pytest.raises(VievalError, match="did you mean"):
        task_index._require_task(name[:3] + name[4:], manager.all_tasks)


@pytest.mark.parametrize(
    "given", ["mmmu_va", "nothing_like_it", "mmu*", "*", "setup.cfg"]
)
def test_misspelt_names_of_others_are_left_to_the_host(manager, given):
    task_index._require_task(given, manager.all_tasks)
