"""The YAML files of tasks and the table they are written from agree."""

from lmms_eval.tasks import TaskManager
from lmms_eval.utils import load_yaml_config

from tests import bounds, in_process
from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.benchmarks import tasks
from vieval_plugin.hosts.lmms_eval import task_files, task_index
from vieval_plugin.judges import registry as judge_registry


def written():
    return task_files.files(task_files.plain_tasks())


def test_the_files_are_those_that_the_table_writes():
    paths = [path for form in ("*/*", "*.inc") for path in tasks.FOLDER.glob(form)]
    name = lambda path: path.relative_to(tasks.FOLDER).as_posix()
    on_disk = {name(path): path.read_text() for path in paths if path.suffix != ".pyc"}
    assert on_disk == written(), "run `make tasks`"


def test_files_are_few_and_of_plain_tasks_on_real_ratings():
    names = {entry.name for entry in task_files.plain_tasks()}
    some = "imagenhub imagenhub_viescore imagenhub_viescore_tie mmrb2_pairwise_t2i"
    assert set(some.split()) <= names
    others = ("variant_", "vieval_", "generate_")
    assert not [name for name in names if name.startswith(others)]
    assert len(names) < bounds.TASK_FILES


def test_a_file_and_the_index_give_the_same_configuration(tmp_path):
    entries = [*tasks.tasks(), *tasks.groups()]
    task_files.write(tmp_path, task_files.files(entries))
    for entry in entries:
        path = str(tmp_path / entry.benchmark / f"{entry.name}.yaml")
        written = load_yaml_config(path, mode="full")
        assert written == task_index.configuration(entry.name), entry.name


def test_the_host_indexes_tasks_that_have_no_file():
    manager = in_process.tasks()
    assert manager.task_index["vieval_demo_ssim_tie"]["yaml_path"] == -1
    assert manager._get_config("vieval_demo_ssim_tie")["metadata"]["judge"] == "ssim"


def test_a_copy_below_include_path_takes_the_place_of_ours(tmp_path):
    name = "imagenhub_viescore_tie"
    chosen = [entry for entry in tasks.tasks() if entry.name == name]
    task_files.write(tmp_path, task_files.files(chosen))
    path = tmp_path / "imagenhub" / f"{name}.yaml"
    path.write_text(path.read_text() + "task_alias: mine\n")
    task_index.install()
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    assert manager._get_config(name)["task_alias"] == "mine"


def test_every_task_asks_of_a_judge_what_it_knows_and_members_are_there():
    names = [one.name for one in (*tasks.tasks(), *tasks.groups())]
    assert len(names) == len(set(names))
    for group in tasks.groups():
        assert set(group.members) <= set(names), group.name
    for task in tasks.tasks():
        judge = judge_registry.judge(task.judge)
        is_plain = task.setting == judge.plain
        assert task.part in benchmark_registry.benchmark(task.benchmark).parts
        assert task.setting in judge.settings or is_plain
        # what a wildcard finds
        assert is_plain or task.name.startswith("variant_"), task.name


def test_stale_files_are_removed_from_our_folder_alone(tmp_path):
    stale = tmp_path / "imagenhub" / "imagenhub_oldjudge.yaml"
    stale.parent.mkdir()
    stale.write_text("task: x")
    task_files.write(tmp_path, written())
    assert stale.exists()
    task_files.write_plain(tmp_path)
    assert not stale.exists()
    assert (stale.parent / "imagenhub_viescore_tie.yaml").is_file()


def test_the_command_writes_the_members_of_a_group(tmp_path, vieval):
    mine = tmp_path / "mine"
    printed = vieval("tasks", "variant_imagenhub_cigeval_react", "--write", mine).out
    assert "wrote 8 tasks and groups" in printed
    assert len(list((mine / "imagenhub").glob("*.yaml"))) == 8
