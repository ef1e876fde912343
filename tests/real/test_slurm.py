"""A Slurm array over a folder of shards, one of whose tasks is killed and queued again."""

import os
import shlex
import shutil
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fake_server import FakeServer
from tests.real.parts import logged
from tests.shard_runs import arguments, files_in, verdicts, write_parquet
from tests.work import free_ports, run_process, until

NO_SLURM = "Slurm is not installed: make test-real"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not shutil.which("slurmctld"), reason=NO_SLURM),
    pytest.mark.skipif(os.getuid() != 0, reason="Slurm's daemons need root here"),
]
SETTINGS = """\
ClusterName=test
SlurmctldHost={host}
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_res
SelectTypeParameters=CR_Core
JobRequeue=1
NodeName={host} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def printed(*command):
    return run_process(list(map(str, command)), check=True).stdout


def state(task):
    """The state of a task, once a tenth of a second."""
    time.sleep(0.1)
    words = printed("scontrol", "show", "job", task).split()
    return next(word[9:] for word in words if word.startswith("JobState="))


def queue(job):
    """The tasks of a job that wait or run, once a tenth of a second."""
    time.sleep(0.1)
    return printed("squeue", "--noheader", "--job", job).split()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """One node of two cores that takes jobs."""
    options = tmp_path / "options.yaml"  # every row is asked for
    options.write_text("store: {use: false}\n")
    monkeypatch.setenv("VIEVAL_CONFIG", str(options))
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    settings = tmp_path / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    about = {"host": host, "folder": tmp_path, "ports": free_ports(2)}
    settings.write_text(SETTINGS.format(**about))
    monkeypatch.setenv("SLURM_CONF", str(settings))
    munge_socket = Path("/run/munge/munge.socket.2")
    with ExitStack() as stack:
        if not munge_socket.exists():
            munge_socket.parent.mkdir(exist_ok=True)
            shutil.chown(munge_socket.parent, "munge")
            munge = logged(
                tmp_path / "munged.log", "munged", "--foreground", user="munge"
            )
            stack.callback(stack.enter_context(munge).terminate)
            until(munge_socket.exists)
        for daemon in ("slurmctld", "slurmd"):
            started = logged(tmp_path / f"{daemon}.log", daemon, "-D")
            stack.callback(stack.enter_context(started).terminate)
        until(lambda: "idle" in printed("sinfo", "--noheader", "--format", "%T"))
        yield tmp_path


def test_an_array_whose_task_is_killed_and_queued_again_judges_each_row_once(cluster):
    data = write_parquet(cluster / "data", files=4, rows_each=40, group=10)
    out = cluster / "out"
    with FakeServer(latency=0.2) as server:
        command = arguments(data, out, server, "--part", "auto", "--rows-per-shard", 5)
        script = cluster / "judge.sh"
        words = [sys.executable, "-m", "vieval_plugin", *map(str, command)]
        script.write_text(
            "#!/bin/bash\n#SBATCH --array=1-2\n#SBATCH --requeue\n"
            f"cd {Path(__file__).parents[2]}\n"
            f"exec {shlex.join(words)} --num-concurrent 2\n"
        )
        job = printed("sbatch", "--parsable", f"--output={cluster}/%a.log", script)
        job = job.strip()
        until(lambda: len(files_in(out)) > 2)
        killed = f"{job}_1"
        printed("scancel", "--signal=KILL", "--full", killed)
        until(lambda: state(killed) in ("FAILED", "CANCELLED"))
        printed("scontrol", "requeue", killed)
        until(lambda: state(killed) == "PENDING")
        printed("scontrol", "update", f"JobId={killed}", "StartTime=now")
        until(lambda: not queue(job))
    logs = {log.name: log.read_text()[-2000:] for log in cluster.glob("?.log")}
    judged = [row["uid"] for row in verdicts(out)]
    assert sorted(judged) == sorted(f"u{number}" for number in range(160)), logs
