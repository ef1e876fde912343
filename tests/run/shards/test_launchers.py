"""Parts of one data set, each by a command of its own: no row is lost or there twice."""

import pytest

from tests.refusals import refuses
from tests.shard_runs import arguments, verdicts
from vieval_plugin.run.shards.passes import part_of

pytestmark = pytest.mark.usefixtures("no_store")
SMALL = ("--rows-per-shard", "8", "--num-concurrent", "4")
EVERY = [f"u{number}" for number in range(120)]


def test_parts_share_the_row_groups(vieval, data, tmp_path, server):
    command = arguments(data, tmp_path / "out", server, *SMALL)
    for part in ("1/3", "3/3", "2/3"):
        before = {row["uid"] for row in verdicts(tmp_path / "out")}
        vieval(*command, "--part", part)
        assert len(verdicts(tmp_path / "out")) == len(before) + 40
    assert [row["uid"] for row in verdicts(tmp_path / "out")] == EVERY


def test_a_part_is_that_of_a_slurm_array():
    named = {"ID": "5", "COUNT": "4", "MIN": "3"}
    array = {f"SLURM_ARRAY_TASK_{name}": value for name, value in named.items()}
    assert part_of("auto", array) == (2, 4)
    for named in ("0/4", "5/4", "x", "auto"):
        refuses("part", part_of, named, {})
    refuses("part", part_of, "auto", {**array, "SLURM_ARRAY_TASK_ID": "9"})
