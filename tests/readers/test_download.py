"""Many files over HTTP, from hosts with the faults that hosts have."""

import asyncio
import os
import socket
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from shlex import split
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

pytest.importorskip("aiohttp", reason='needs aiohttp: pip install ".[http]"')

from aiohttp import web

from tests.imagenhub_site import serving
from tests.proxy_server import proxying
from tests.work import until
from vieval_plugin.readers import download
from vieval_plugin.readers.download import Download, fetch_all
from vieval_plugin.text.errors import VievalError


@pytest.fixture
async def site(monkeypatch):
    async with serving(monkeypatch) as site:
        yield site


def anything(_):
    """A check that passes all."""


class TestFetchAll:
    @pytest.fixture
    def jobs(self, site, tmp_path):
        def make(count):
            for number in range(count):
                site.files[f"/{number}"] = b"%d" % number * 300
            return [
                Download(f"{site.base}/{number}", tmp_path / str(number), anything)
                for number in range(count)
            ]

        return make

    async def test_retry_after_is_honoured(self, site, jobs, monkeypatch):
        waits = []

        async def noting(seconds):
            waits.append(seconds)

        soon = datetime.now(UTC) + timedelta(seconds=download.LONGEST_RETRY_AFTER)
        site.faults = {
            "/0": ["status 429 1"],
            "/1": [f"status 503 {format_datetime(soon, usegmt=True)}"],
        }
        monkeypatch.setattr(asyncio, "sleep", noting)
        for job in jobs(2):
            assert await fetch_all([job]) == []
        in_seconds, as_a_date = waits
        assert in_seconds == 1
        assert (
            download.LONGEST_RETRY_AFTER / 2 < as_a_date <= download.LONGEST_RETRY_AFTER
        )

    async def test_does_not_wait_for_hours(self, site, jobs):
        site.faults = {"/0": ["status 429 3600"]}
        (failed,) = await fetch_all(jobs(1))
        found = failed.reason
        assert found == "429 too many requests, and the server asks to wait 3600 s"

    @pytest.mark.parametrize("fault", ["huge", "endless"])
    async def test_an_overlong_body_is_refused(self, site, jobs, monkeypatch, fault):
        monkeypatch.setattr(download, "MAX_BODY", 2**20)
        site.faults = {"/0": [fault]}
        (failed,) = await fetch_all(jobs(1))
        assert failed.reason == "larger than 1 MiB"
        assert site.hits["/0"] == 1
        assert not failed.path.exists()

    async def test_no_answer_at_all_gives_up_on_the_host(self, tmp_path, site):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            host = f"127.0.0.1:{closed.getsockname()[1]}"
        jobs = [
            Download(f"http://{host}/{number}", tmp_path / str(number), anything)
            for number in range(30)
        ]
        failed = await fetch_all(jobs, retries=1, timeout=1, concurrency=2)
        assert [failure.path for failure in failed] == [job.path for job in jobs]
        assert failed[0].reason.startswith("no connection: ")
        assert failed[-1].reason == f"skipped, because {host} does not respond"

    async def test_an_address_that_is_none(self, tmp_path):
        (failed,) = await fetch_all(
            [Download("museum/x.jpg", tmp_path / "x.jpg", anything)]
        )
        assert failed.reason.startswith("invalid URL")

    async def test_two_jobs_with_one_path(self, tmp_path):
        with pytest.raises(ValueError, match="its own path"):
            await fetch_all(
                [Download(f"http://{host}/", tmp_path / "x", anything) for host in "ab"]
            )

    async def test_a_folder_that_cannot_be_written(self, jobs, tmp_path):
        (tmp_path / "blocked").write_text("a file where a folder should be")
        (job,) = jobs(1)
        with pytest.raises(VievalError, match=r"cannot write .*choose another folder"):
            await fetch_all([replace(job, path=tmp_path / "blocked" / "x")])

    async def test_without_aiohttp(self, jobs, monkeypatch):
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        with pytest.raises(VievalError, match=r'pip install "\.\[http\]"'):
            await fetch_all(jobs(1))

    async def test_resumes_after_an_interruption(self, site, jobs, tmp_path):
        some = jobs(20)
        site.faults = {f"/{number}": ["hang!"] for number in range(5, 20)}
        task = asyncio.create_task(fetch_all(some, concurrency=3))
        await asyncio.to_thread(
            until, lambda: sum(job.path.exists() for job in some) == 5
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(path.name for path in tmp_path.iterdir()) == split("0 1 2 3 4")

        site.faults.clear()
        site.hits.clear()
        assert await fetch_all(some) == []
        assert site.hits == Counter({f"/{number}": 1 for number in range(5, 20)})
        found = {job.path.read_bytes() for job in some}
        assert found == {site.files[f"/{number}"] for number in range(20)}

    async def test_leftovers_of_a_killed_run_go(self, jobs, tmp_path):
        (job,) = jobs(1)
        kill = (
            "import os, pathlib, signal, sys\n"
            "from vieval_plugin.media.files import write_whole\n"
            "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "write_whole(pathlib.Path(sys.argv[1]), b'whole')\n"
        )
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", kill, str(job.path)], check=False
        )
        (tmp_path / "mine.part").write_bytes(b"not ours")
        (leftover,) = (path for path in tmp_path.iterdir() if path.name != "mine.part")
        assert leftover.suffix == ".part"
        assert await fetch_all([job]) == []
        assert sorted(os.listdir(tmp_path)) == ["0", "mine.part"]


class TestRedirects:
    """They are followed within the hosts that were named, five at most."""

    @pytest.fixture
    async def hosts(self):
        """Two hosts that send a request on as its query says, and the paths that the second was
        asked for.
        """
        heard = []
        addresses = []

        async def answer(request):
            if request.host == urlsplit(addresses[1]).netloc:
                heard.append(request.path)
            if to := request.query.get("to"):
                status = int(request.query.get("status", "302"))
                return web.Response(status=status, headers={"Location": to})
            if left := int(request.query.get("left", "0")):
                headers = {"Location": f"?left={left - 1}"}
                return web.Response(status=307, headers=headers)
            return web.Response(body=b"whole")

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        for _ in range(2):
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        addresses += [f"http://127.0.0.1:{port}" for _, port in runner.addresses]
        yield addresses[0], addresses[1], heard
        await runner.cleanup()

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    async def test_one_to_another_host_is_not_followed(self, hosts, tmp_path, status):
        one, other, heard = hosts
        url = f"{one}/a?status={status}&to={other}/stolen%3Fsecret=x"
        (failed,) = await fetch_all([Download(url, tmp_path / "a", anything)])
        assert failed.reason == (
            f"{status} redirect to another host ({urlsplit(other).netloc}), which is not followed"
        )
        assert heard == []
        assert not failed.path.exists()

    async def test_one_within_the_hosts_that_were_named_is(self, hosts, tmp_path):
        one, other, heard = hosts
        jobs = [
            Download(f"{one}/a?to=/b", tmp_path / "a", anything),
            Download(f"{one}/c?to={other}/d", tmp_path / "c", anything),
        ]
        assert await fetch_all(jobs, hosts=[f"{other}/of/another/kind"]) == []
        assert [job.path.read_bytes() for job in jobs] == [b"whole"] * 2
        assert heard == ["/d"]

    async def test_no_more_than_five_are(self, hosts, tmp_path):
        jobs = [
            Download(f"{hosts[0]}/?left={left}", tmp_path / str(left), anything)
            for left in (5, 6)
        ]
        (failed,) = await fetch_all(jobs)
        assert (failed.path.name, failed.reason) == ("6", "more than 5 redirects")

    @pytest.mark.parametrize(
        "to", ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://[::1"]
    )
    async def test_one_to_nowhere_is_a_failure(self, hosts, tmp_path, to):
        (failed,) = await fetch_all(
            [Download(f"{hosts[0]}/a?to={to}", tmp_path / "a", anything)]
        )
        assert failed.reason.startswith("302 redirect to")

    async def test_a_secure_address_is_not_left_for_an_open_one(self):
        run = SimpleNamespace(hosts=frozenset({"a.org"}))
        found = download._redirected(run, "http://a.org/x", 301, "https://a.org/x")
        assert found == "https://a.org/x"
        with pytest.raises(download._Failure, match="an invalid URL"):
            download._redirected(run, "https://a.org/x", 301, "http://a.org/x")


async def test_a_body_that_trickles_is_given_up(tmp_path, monkeypatch):
    async def trickle(request):
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.02)

    monkeypatch.setattr(download, "DEADLINE", 1, raising=False)
    app = web.Application()
    app.router.add_get("/x", trickle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    path = tmp_path / "x"
    job = Download(f"http://127.0.0.1:{runner.addresses[0][1]}/x", path, anything)
    (failed,) = await asyncio.wait_for(fetch_all([job], retries=1, timeout=0.5), 120)
    await runner.cleanup()
    assert failed.reason == "timed out: incomplete after 0.5 s"


class TestProxies:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)

    async def test_files_come_through_the_proxy(self, site, tmp_path, monkeypatch):
        site.files["/0"] = b"image"
        async with proxying(urlsplit(site.base).port) as (proxy, heads):
            monkeypatch.setenv("HTTP_PROXY", proxy)
            urls = ["http://images.example/0", f"{site.base}/0"]
            jobs = [
                Download(url, tmp_path / str(number), anything)
                for number, url in enumerate(urls)
            ]
            assert await fetch_all(jobs, public=True) == []
        assert [head.split()[1] for head in heads] == ["http://images.example/0"]

    async def test_private_names_have_no_proxy(self, site, tmp_path, monkeypatch):
        async with proxying(urlsplit(site.base).port) as (proxy, heads):
            monkeypatch.setenv("HTTP_PROXY", proxy)
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", leading_home)
            [failed] = await fetch_all(
                [Download("http://inside.example/0", tmp_path / "0", anything)],
                public=True,
            )
        assert "private address" in failed.reason
        assert not heads


async def leading_home(host, port, **options):
    """The addresses of any name: one of a private network."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 0))]
