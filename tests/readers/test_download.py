"""Many files over HTTP, from hosts with the faults that hosts have."""

import asyncio
import os
import socket
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

from tests.imagenhub_site import listening, serving
from tests.proxy_server import proxying
from tests.work import run_process, until
from vieval_plugin.readers import download
from vieval_plugin.readers.download import Download, fetch_all
from vieval_plugin.text.errors import VievalError


@pytest.fixture
async def site(monkeypatch):
    async with serving(monkeypatch) as site:
        yield site


def job(url, path):
    """A download that passes any check."""
    return Download(url, path, lambda body: None)


#: A process that is killed while it writes a file.
KILL = """
import os, pathlib, signal, sys
from vieval_plugin.media.files import write_whole
os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_whole(pathlib.Path(sys.argv[1]), b'whole')
"""


class TestFetchAll:
    @pytest.fixture
    def jobs(self, site, tmp_path):
        def make(count):
            names = [str(number) for number in range(count)]
            for name in names:
                site.files[f"/{name}"] = name.encode() * 300
            return [job(f"{site.base}/{name}", tmp_path / name) for name in names]

        return make

    async def test_retry_after_is_honoured(self, site, jobs, monkeypatch):
        waits = []

        async def noting(seconds):
            waits.append(seconds)

        longest = download.LONGEST_RETRY_AFTER
        soon = datetime.now(UTC) + timedelta(seconds=longest)
        date = format_datetime(soon, usegmt=True)
        site.faults = {"/0": ["status 429 1"], "/1": [f"status 503 {date}"]}
        monkeypatch.setattr(asyncio, "sleep", noting)
        for one in jobs(2):
            assert await fetch_all([one]) == []
        in_seconds, as_a_date = waits
        assert in_seconds == 1
        assert longest / 2 < as_a_date <= longest

    async def test_does_not_wait_for_hours(self, site, jobs):
        site.faults = {"/0": ["status 429 3600"]}
        (failed,) = await fetch_all(jobs(1))
        assert failed.reason == "429 too many requests; try again in 3600 s"

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
        jobs = [job(f"http://{host}/{n}", tmp_path / str(n)) for n in range(30)]
        failed = await fetch_all(jobs, retries=1, timeout=1, concurrency=2)
        assert [failure.path for failure in failed] == [one.path for one in jobs]
        assert failed[0].reason.startswith("no connection: ")
        assert failed[-1].reason == f"skipped, because {host} does not respond"

    async def test_an_address_that_is_none(self, tmp_path):
        (failed,) = await fetch_all([job("museum/x.jpg", tmp_path / "x.jpg")])
        assert failed.reason.startswith("invalid URL")

    async def test_two_jobs_with_one_path(self, tmp_path):
        both = [job(f"http://{host}/", tmp_path / "x") for host in "ab"]
        with pytest.raises(ValueError, match="its own path"):
            await fetch_all(both)

    async def test_a_folder_that_cannot_be_written(self, jobs, tmp_path):
        (tmp_path / "blocked").write_text("a file where a folder should be")
        (one,) = jobs(1)
        with pytest.raises(VievalError, match=r"cannot write .*choose another folder"):
            await fetch_all([replace(one, path=tmp_path / "blocked" / "x")])

    async def test_without_aiohttp(self, jobs, monkeypatch):
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        with pytest.raises(VievalError, match=r'pip install "\.\[http\]"'):
            await fetch_all(jobs(1))

    async def test_resumes_after_an_interruption(self, site, jobs, tmp_path):
        some = jobs(20)
        site.faults = {f"/{number}": ["hang!"] for number in range(5, 20)}
        task = asyncio.create_task(fetch_all(some, concurrency=3))
        count = lambda: sum(one.path.exists() for one in some)
        await asyncio.to_thread(until, lambda: count() == 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(path.name for path in tmp_path.iterdir()) == split("0 1 2 3 4")

        site.faults.clear()
        site.hits.clear()
        assert await fetch_all(some) == []
        assert site.hits == Counter({f"/{number}": 1 for number in range(5, 20)})
        found = {one.path.read_bytes() for one in some}
        assert found == {site.files[f"/{number}"] for number in range(20)}

    async def test_leftovers_of_a_killed_run_go(self, jobs, tmp_path):
        (one,) = jobs(1)
        command = [sys.executable, "-c", KILL, str(one.path)]
        await asyncio.to_thread(run_process, command)
        (tmp_path / "mine.part").write_bytes(b"not ours")
        (leftover,) = (path for path in tmp_path.iterdir() if path.name != "mine.part")
        assert leftover.suffix == ".part"
        assert await fetch_all([one]) == []
        assert sorted(os.listdir(tmp_path)) == ["0", "mine.part"]


class TestRedirects:
    """They are followed within the hosts that were named, five at most."""

    @pytest.fixture
    async def hosts(self):
        """Two hosts that redirect as a query says, and the paths asked of the second."""
        heard, addresses = [], []

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

        async with listening(answer, answer) as found:
            addresses += found
            yield *found, heard

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    async def test_one_to_another_host_is_not_followed(self, hosts, tmp_path, status):
        one, other, heard = hosts
        url = f"{one}/a?status={status}&to={other}/stolen%3Fsecret=x"
        (failed,) = await fetch_all([job(url, tmp_path / "a")])
        said = f"{status} redirect to another host ({urlsplit(other).netloc})"
        assert failed.reason.startswith(said)
        assert heard == []
        assert not failed.path.exists()

    async def test_one_within_the_hosts_that_were_named_is(self, hosts, tmp_path):
        one, other, heard = hosts
        urls = {"a": f"{one}/a?to=/b", "c": f"{one}/c?to={other}/d"}
        jobs = [job(url, tmp_path / name) for name, url in urls.items()]
        assert await fetch_all(jobs, hosts=[f"{other}/of/another/kind"]) == []
        assert [each.path.read_bytes() for each in jobs] == [b"whole"] * 2
        assert heard == ["/d"]

    async def test_no_more_than_five_are(self, hosts, tmp_path):
        jobs = [job(f"{hosts[0]}/?left={n}", tmp_path / str(n)) for n in (5, 6)]
        (failed,) = await fetch_all(jobs)
        assert (failed.path.name, failed.reason) == ("6", "more than 5 redirects")

    @pytest.mark.parametrize("to", ["ftp://127.0.0.1/x", "file:///x", "http://[::1"])
    async def test_one_to_nowhere_is_a_failure(self, hosts, tmp_path, to):
        (failed,) = await fetch_all([job(f"{hosts[0]}/a?to={to}", tmp_path / "a")])
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
    async with listening(trickle) as (address,):
        jobs = [job(f"{address}/x", tmp_path / "x")]
        fetching = fetch_all(jobs, retries=1, timeout=0.5)
        (failed,) = await asyncio.wait_for(fetching, 120)
    assert failed.reason == "timed out: incomplete after 0.5 s"


class TestProxies:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        for name in split("http_proxy https_proxy all_proxy no_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)

    async def test_files_come_through_the_proxy(self, site, tmp_path, monkeypatch):
        site.files["/0"] = b"image"
        async with proxying(urlsplit(site.base).port) as (proxy, heads):
            monkeypatch.setenv("HTTP_PROXY", proxy)
            urls = ["http://images.example/0", f"{site.base}/0"]
            jobs = [job(url, tmp_path / str(n)) for n, url in enumerate(urls)]
            assert await fetch_all(jobs, public=True) == []
        assert [head.split()[1] for head in heads] == ["http://images.example/0"]

    async def test_private_names_have_no_proxy(self, site, tmp_path, monkeypatch):
        async with proxying(urlsplit(site.base).port) as (proxy, heads):
            monkeypatch.setenv("HTTP_PROXY", proxy)
            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", leading_home)
            inside = job("http://inside.example/0", tmp_path / "0")
            [failed] = await fetch_all([inside], public=True)
        assert "private address" in failed.reason
        assert not heads


async def leading_home(host, port, **options):
    """The addresses of any name: one of a private network."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 0))]
