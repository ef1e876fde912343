"""moto's S3 server: a run over its bucket is killed, then waits while the server is stopped."""

import signal
import time
from contextlib import contextmanager

import pytest

from tests.fake_s3 import KEYS
from tests.fake_server import FakeServer
from tests.real.parts import answers, installed, logged, program, report
from tests.serve.serving import Running
from tests.shard_runs import arguments, ended, kill_all, start, write_parquet
from tests.work import free_ports, until

pytest.importorskip("pyarrow.fs")
from pyarrow import fs, parquet

pytestmark = [pytest.mark.real, installed("s3")]
ROWS = 160


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The process of a server, and its port."""
    options = tmp_path / "options.yaml"  # every row is asked for
    options.write_text("store: {use: false}\n")
    for name, value in {**KEYS, "VIEVAL_CONFIG": str(options)}.items():
        monkeypatch.setenv(name, value)
    [port] = free_ports(1)
    command = [program("s3", "moto_server"), "--host", "127.0.0.1", "--port", port]
    with logged(tmp_path / "s3.log", *command) as process:
        try:
            until(lambda: answers(Running(port, None), "/moto-api/data.json"))
            yield process, port
        finally:
            process.kill()


@contextmanager
def standing_still(process):
    """A process that is stopped meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_a_killed_run_over_a_bucket_goes_on_and_judges_each_row_once(server, tmp_path):
    process, port = server
    place = {"endpoint_override": f"127.0.0.1:{port}", "scheme": "http"}
    place |= {"region": "us-east-1", "allow_bucket_creation": True}
    bucket = fs.S3FileSystem(**place)
    bucket.create_dir("bucket")
    data = write_parquet(tmp_path / "data", files=4, rows_each=40, group=10)
    fs.copy_files(str(data), "bucket/da ta", destination_filesystem=bucket)
    options = f"?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    own = f"s3://bucket/verdicts{options}"
    out = fs.FileSelector("bucket/verdicts/verdicts", allow_not_found=True)

    def files():
        return [info.path for info in bucket.get_file_info(out)]

    begun = time.monotonic()
    with FakeServer(latency=0.1) as model:
        small = ("--rows-per-shard", 5, "--num-concurrent", 4)
        data_url = f"s3://bucket/da%20ta{options}"
        command = arguments(data_url, own, model, *small)
        first = start(*command)
        until(lambda: len(files()) > 4)
        kill_all(first)
        before = len(files())
        second = start(*command)
        until(lambda: len(files()) > before + 4)
        with standing_still(process):
            time.sleep(5)
        ended(second)
        asked = model.stats()["requests"]
        assert f"0 of {ROWS} rows left to judge" in ended(start(*command))
        assert model.stats()["requests"] == asked
    read = lambda file: parquet.read_table(file, filesystem=bucket)["uid"].to_pylist()
    judged = [uid for file in files() for uid in read(file)]
    report("s3", begun, before, judged, ROWS)
    assert sorted(judged) == sorted(f"u{number}" for number in range(ROWS))
    assert before < len(files())
    assert asked <= 2 * (ROWS + 3 * 5) + 4
    verified = ended(start("shards", own, "--verify"))
    assert "complete: each row has exactly one verdict" in verified
