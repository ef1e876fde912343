"""VIEval inside lmms-eval, run as users run it."""

import itertools
import json
import re

import pytest
from lmms_eval.tasks import get_task_dict

from tests import in_process
from tests.in_process import refused, replay
from tests.refusals import refuses
from vieval_plugin.hosts.lmms_eval import answerable, task_index
from vieval_plugin.text.errors import VievalError


@pytest.fixture(scope="module")
def manager():
    return in_process.tasks()


PARTS = ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")


def _members(group, parts=PARTS):
    return [f"{group}_{part}" for part in parts]


VIESCORE = _members("imagenhub_viescore")
VQASCORE = _members("imagenhub_vqascore", ("tig", "cig", "sdig", "mcic"))
T2I_EVAL = ["imagenhub_t2i_eval_tig"]
CIGEVAL = _members("imagenhub_cigeval")
IMAGENHUB = VIESCORE + VQASCORE + CIGEVAL + T2I_EVAL
REWARDS = ["hpsv2", "hpsv3", "image_reward", "pickscore"]
SHIPPED = [*_members("imagenhub_aesthetic"), "imagenhub_edit_reward_tie"]
SHIPPED += [f"imagenhub_{judge}_tig" for judge in REWARDS]
LPIPS = _members("imagenhub_lpips", ("mie", "tie", "cig"))
SUBJECTS = [
    name
    for judge in ("clip_i", "dino")
    for name in _members(f"imagenhub_{judge}", ("sdig", "sdie", "mcic"))
]
SCORED = ["imagenhub_clip_score_tig", *LPIPS, *SUBJECTS]
ADIEE = ["imagenhub_adiee_mie", "imagenhub_adiee_tie"]
ALL = IMAGENHUB + ADIEE + SCORED + SHIPPED
WITH_MEMBERS = ("variant_imagenhub_cigeval_no_scene_graph", "vieval_demo_cigeval")
WITH_MEMBERS += ("variant_imagenhub_cigeval_react",)
T2I_JUDGES = _members("t2i_eval_bench", ("viescore", "vqascore", "t2i_eval"))
BY_NETWORKS = ("question_answering", "clip_score", "aesthetic", *REWARDS)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("imagenhub_*", ALL),
        ("imagenhub*", ALL),
        ("imagenhub", IMAGENHUB),
        ("imagenhub_viescore", VIESCORE),
        ("imagenhub_viescore*", VIESCORE),
        ("imagenhub_viescore_t*", _members("imagenhub_viescore", ("tie", "tig"))),
        ("imagenhub_cigeval*", CIGEVAL),
        ("mmmu_val_q*", ["mmmu_val_qwen"]),
        *((group, _members(group)) for group in WITH_MEMBERS),
        ("t2i_eval_bench*", T2I_JUDGES + _members("t2i_eval_bench", BY_NETWORKS)),
        ("t2i_eval_bench", T2I_JUDGES),
    ],
)
def test_a_pattern_runs_each_plain_task_once(manager, pattern, expected):
    leaves = [
        leaf
        for name in manager.match_tasks([pattern])
        for leaf in (list(task_index.members(name, manager.task_index)) or [name])
    ]
    tasks = [leaf for leaf in leaves if manager.task_index[leaf]["type"] != "group"]
    assert sorted(tasks) == sorted(expected)


def test_the_shared_settings_override_defaults(manager, ratings_folder, monkeypatch):
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    [task] = get_task_dict(["imagenhub_viescore_cig"], manager).values()
    assert task.config.reasoning_tags == "none"
    generation = task.config.generation_kwargs
    assert generation["until"] == []
    assert not {"max_new_tokens", "temperature"} & set(generation)


CIG = "imagenhub_viescore_cig"


@pytest.fixture
def replayed(results_of, ratings_folder, cig_logs, tmp_path):
    """Replays the logs as a task; the results and samples by task."""
    outs = itertools.count()

    def run(*more, tasks=CIG):
        out = tmp_path / f"out{next(outs)}"
        in_process.run(*replay(cig_logs, out, tasks), *more, data=ratings_folder)
        return results_of(out)

    return run


@pytest.fixture
def not_replayed(ratings_folder, cig_logs, tmp_path):
    """Why a task is not replayed, before anything is written."""

    def run(task):
        line = refused(*replay(cig_logs, tmp_path / "out", task), data=ratings_folder)
        assert not list(tmp_path.glob("out/**/*.json*"))
        return line

    return run


def verdicts_in(samples):
    return [json.loads(row["filtered_resps"])["verdict"] for row in samples[CIG]]


def test_mangled_text_arrives_whole(results_of, ratings_folder, cig_logs, tmp_path):
    nameless = f"--model vieval_replay --model_args logs={cig_logs} --tasks {CIG}"
    given = f"{nameless} --output_path {tmp_path}/out --log_samples"
    in_process.run(*given.split(), data=ratings_folder)
    _, samples = results_of(tmp_path / "out")
    responses = [json.loads(row["filtered_resps"]) for row in samples[CIG]]
    # as nothing else is named
    assert {each["provenance"]["backbone"] for each in responses} == {"viescore"}
    rationales = {response["verdict"]["rationale"] for response in responses}
    thought = "thought\n</think>\n\nsaid after a blank line\n\nand another"
    angle = "if a < b then <c> holds"
    assert rationales == {f"SC: {text}\nPQ: {text}" for text in (thought, angle)}


def test_the_hosts_cache_is_never_stale(replayed, cig_logs, tmp_path):
    cached = ("--use_cache", tmp_path / "cache")
    replayed(*cached)
    path = cig_logs / "ImagenHub_Control-Guided_IG" / "UniControl" / "SC.json"
    text = json.dumps({"sample_2.jpg": {"score": [3, 3], "reasoning": "changed"}})
    path.write_text(text)
    verdicts = verdicts_in(replayed(*cached)[1])
    assert sorted(v["status"] for v in verdicts) == ["missing", "ok", "ok", "ok"]
    assert [v["scores"]["SC"] for v in verdicts if "changed" in v["rationale"]] == [0.3]


def test_undefined_values_are_null(replayed, cig_logs):
    row = {"score": [5, 5], "reasoning": "fine"}
    for path in cig_logs.rglob("*.json"):
        path.write_text(json.dumps(dict.fromkeys(json.loads(path.read_text()), row)))
    found = replayed()[0]["results"][CIG]
    assert (found["SC_fisher,none"], found["SC_count,none"]) == (None, 4)
    remarks = found["remarks,none"]
    assert "undefined: SC ControlNet: needs 10 samples, got 2" in remarks
    assert "seed 0" in remarks


def left_out(names, model):
    """What is run of these, by a model that could answer all of the host's."""
    check = answerable.make_check(model, loaded=True)
    return answerable.answerable(names, lambda _: check)


def _only_tie(logs):
    (logs / "ImagenHub_Control-Guided_IG").rename(logs / "ImagenHub_Text-Guided_IE")


def test_of_a_wildcard_what_only_scorers_can_answer_is_left_out_in_one_line(capsys):
    names = in_process.tasks().match_tasks(["imagenhub_*"])
    kept = left_out(names, "vieval_openai")
    networks = ("clip_i", "clip_score_tig", "dino", "lpips", "aesthetic", "edit_reward")
    scored = {f"imagenhub_{judge}" for judge in (*networks, *REWARDS)}
    assert set(names) - set(kept) == scored
    reason = "(their judges are networks, which require --model vieval_scorer)"
    skipped = f"vieval: skipped tasks: {', '.join(sorted(scored))} {reason}"
    assert capsys.readouterr().err.splitlines() == [skipped]
    assert set(left_out(names, "vieval_scorer")) == scored


def test_what_only_measures_is_left_the_judges_that_measure(capsys):
    names = in_process.tasks().match_tasks(["vieval_demo_*tie"])
    kept = left_out(names, "vieval_scorer")
    contests = ("aesthetic", "edit_reward", "sharpness", "ssim")
    expected = {f"vieval_demo_contests_{judge}_tie" for judge in contests}
    single = (*contests, "lpips", "psnr")
    assert set(kept) == expected | {f"vieval_demo_{judge}_tie" for judge in single}
    said = capsys.readouterr().err
    assert "their judges ask a model, so they require another --model" in said
    with pytest.raises(VievalError, match="cannot run these tasks: "):
        left_out(["imagenhub"], "vieval_scorer")


# a group that is only run together is a wildcard too
# a group that is only run together is a wildcard too
@pytest.mark.parametrize("tasks", ["imagenhub_*", "imagenhub"])
def test_replays(replayed, cig_logs, capsys, tasks):
    assert set(replayed(tasks=tasks)[1]) == {CIG}
    [line] = re.findall("vieval: skipped tasks: .*", capsys.readouterr().err)
    for words in ("imagenhub_viescore_tie, ", "imagenhub_cigeval"):
        assert words in line
    assert f"({cig_logs} has no verdicts for them)" in line


def test_a_replay_refuses_an_absent_task(not_replayed, cig_logs, capsys):
    line = not_replayed("imagenhub_vqascore_cig")
    none = "no recorded verdicts for imagenhub/cig"
    assert f"{none} (it contains no readable verdicts by vqascore)" in line
    for path in cig_logs.rglob("*.json"):
        path.write_text(json.dumps({"another.jpg": {"score": [5, 5]}}))
    line = not_replayed(CIG)
    assert "viescore has no recorded verdicts on the 4 samples of imagenhub/cig" in line
    _only_tie(cig_logs)
    line = not_replayed("imagenhub_viescore_tie")
    assert "Text-Guided_IE_rater1.tsv: no such file" in line
    assert "Traceback" not in capsys.readouterr().err


def test_a_part_may_be_missing(replayed, cig_logs, capsys):
    _only_tie(cig_logs)
    found = replayed()[0]["results"][CIG]
    assert (found["status_missing_share,none"], found["SC_count,none"]) == (1, 0)
    said = capsys.readouterr().err
    assert "so counted as missing: 4 of 4 samples of imagenhub/cig (viescore)" in said


def test_absent_logs_are_told_first(replayed, cig_logs, capsys):
    text = json.dumps({"sample_2.jpg": {"score": [5, 5]}})
    for aspect in ("SC", "PQ"):
        folder = cig_logs / "ImagenHub_Control-Guided_IG" / "UniControl"
        (folder / f"{aspect}.json").write_text(text)
    replayed()
    said = capsys.readouterr().err
    missing = "so counted as missing: 1 of 4 samples of imagenhub/cig (viescore)"
    line = f"vieval: not in {cig_logs}, {missing}"
    assert re.search(f"{re.escape(line)}(.|\n)*Replaying", said)
    assert "vieval: verdicts: ok 3, missing 1" in said


def test_a_judge_task_gives_the_hosts_baseline_nothing_to_test(tmp_path):
    """It tests means of samples, which say nothing of a correlation; `vieval compare` does."""
    task = "vieval_demo_sharpness_tie"
    judged = f"--model vieval_scorer --limit 6 --log_samples --tasks {task}"
    judged = [*judged.split(), "--output_path"]
    in_process.run(*judged, tmp_path / "first")
    [baseline] = (tmp_path / "first").rglob("*_samples_*.jsonl")
    in_process.run(*judged, tmp_path / "second", "--baseline", baseline)
    document, samples = in_process.read(tmp_path / "second")
    names = [*document["results"][task], *(key for row in samples[task] for key in row)]
    assert not [name for name in names if re.search("^paired_|(^|_)score$", name)]


@pytest.mark.slow
@pytest.mark.parametrize("listing", ["tasks", "models"])
def test_the_hosts_own_lists_have_none_of_ours(listing, lmms_eval):
    """They load no entry point, so the guide uses `vieval tasks`."""
    assert "vieval" not in lmms_eval(listing).stdout


def test_a_subset_holds_its_samples(manager, ratings_folder, monkeypatch, tmp_path):
    wanted = {"UniControl": {"sample": ["sample_2.jpg", "elsewhere.jpg"]}}
    document = {"ImagenHub_Control-Guided_IG": wanted}
    (tmp_path / "split.json").write_text(json.dumps(document))
    (tmp_path / "options.yaml").write_text("uids: split.json")
    monkeypatch.setenv("VIEVAL_DATA", str(ratings_folder))
    monkeypatch.setenv("VIEVAL_CONFIG", str(tmp_path / "options.yaml"))
    [task] = get_task_dict(["imagenhub_cigeval_cig"], manager).values()
    found = [str(sample.id) for sample in task.samples]
    assert found == ["imagenhub/cig/UniControl/sample_2.jpg"]


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
    line = f"unknown task {given!r}; did you mean {told}?"
    refuses(re.escape(line), task_index._require_task, given, manager.all_tasks)


@pytest.mark.parametrize(
    "given", ["mmmu_va", "nothing_like_it", "mmu*", "*", "setup.cfg"]
)
def test_misspelt_names_of_others_are_left_to_the_host(manager, given):
    task_index._require_task(given, manager.all_tasks)
