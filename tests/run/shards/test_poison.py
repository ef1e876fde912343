"""A row that ends every process that judges it is the only one without a verdict."""

from shlex import split

from tests.shard_runs import ended, fatal_judge, files_in, start, verdicts

EVERY = [f"u{number}" for number in range(120)]


def command_of(data, folder):
    flags = "--judge fatal --rows-per-shard 8"
    return split(f"score {data} {flags} --out {folder}/out")


def require_only(out, *fatal):
    found = verdicts(out)
    assert [row["uid"] for row in found] == EVERY
    failed = {row["uid"]: row for row in found if row["status"] != "ok"}
    assert failed.keys() == set(fatal)
    assert {row["status"] for row in failed.values()} == {"tool_error"}
    said = "judging this row killed its process 2 times"
    assert all(said in row["reason"] for row in failed.values())


def test_this_process_recovers_when_it_is_started_again(data, tmp_path):
    environment = fatal_judge(tmp_path / "plugin", "u33")
    command = command_of(data, tmp_path)
    for _ in range(4):  # twice beside others, and twice alone
        ended(start(*command, environment=environment), -11)
        assert list((tmp_path / "out" / "under_way").iterdir())
    assert "18 of 18 done" in ended(start(*command, environment=environment))
    require_only(tmp_path / "out", "u33")
    assert not list((tmp_path / "out" / "under_way").iterdir())


def test_processes_recover_within_a_run(data, tmp_path):
    environment = fatal_judge(tmp_path / "plugin", "u33", "u90")
    command = (*command_of(data, tmp_path), "--processes", "2")
    printed = ended(start(*command, environment=environment))
    assert " that had died; these lines" in printed
    require_only(tmp_path / "out", "u33", "u90")


def test_a_worker_that_always_dies_ends_the_run(data, tmp_path):
    environment = fatal_judge(tmp_path / "plugin", *EVERY)
    code = "import vieval_plugin.run.shards.launchers.slots as p\np.MOST_DEATHS = 1\n"
    command = (*command_of(data, tmp_path), "--processes", "1")
    found = ended(start(*command, environment=environment, code=code), 1)
    assert "a worker died 1 times in a row (last reason: signal SIGSEGV" in found
    assert files_in(tmp_path / "out") == []
