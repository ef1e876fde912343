"""Images that a samples file names by their addresses."""

import re
from contextlib import contextmanager
from shlex import split

import PIL.Image
import pytest

from tests.builders import a_sample_row
from tests.local_site import answering
from tests.pictures import encoded
from tests.stored_results import write_lines
from vieval_plugin.readers import download
from vieval_plugin.readers.download import is_public


def picture():
    return encoded(PIL.Image.linear_gradient("L").convert("RGB"))


@contextmanager
def site(**pages):
    """A host with pages by path, bodies or addresses to redirect to; what was asked of it."""
    asked = []

    def answer(path, *_):
        name = path.strip("/").partition("?")[0]
        asked.append(name)
        page = pages.get(name)
        if isinstance(page, str):
            return 302, {"Location": page}, b""
        return (404, {}, b"") if page is None else (200, {}, page)

    with answering(answer) as host:
        yield host, asked


@pytest.fixture
def score(score, tmp_path):
    """Scores the image at each address: the exit code, statuses, reasons by uid, stderr."""

    def scored(addresses, *arguments):
        rows = [a_sample_row(name, url) for name, url in addresses.items()]
        path = write_lines(tmp_path / "s.jsonl", rows)
        code, written, _, said = score(path, "--judge", "sharpness", *arguments)
        statuses = {row["uid"]: row["status"] for row in written}
        failed = [row for row in written if row["status"] != "ok"]
        told = {row["uid"]: row["trace"][0]["reason"] for row in failed}
        return code, [*statuses.values()], told, said

    return scored


def test_images_of_an_allowed_host_are_fetched_once_if_they_are_judged(score):
    with site(a=picture(), b=picture()) as (host, asked):
        addresses = (f"http://{host}/{name}" for name in ("a?key=x", "b", "a?key=x"))
        found = dict(zip("123", addresses, strict=True))
        runs = ("--limit 1", 1, 1), ("", 3, 2), ("", 3, 2), ("--fresh", 3, 4)
        for flags, rows, count in runs:
            judged = score(found, "--allow-urls", host, *split(flags))
            assert (judged[:3], len(asked)) == ((0, ["ok"] * rows, {}), count)
        assert asked[:2] == ["a", "b"]


def test_what_cannot_be_had_is_its_samples_failure(score, monkeypatch):
    monkeypatch.setattr(download, "MAX_BODY", 50_000)
    with site(other=picture()) as (elsewhere, strange):
        pages = {"text": b"<html>", "large": bytes(60_000), "here": "/fine"}
        pages |= {"away": f"http://{elsewhere}/other", "loop": "/loop"}
        with site(fine=picture(), cut=picture()[:200], **pages) as (host, _):
            names = ["fine", "here", "absent", "text", "cut", "large", "away", "loop"]
            address = f"http://user:secret@{host}/{{}}?key=hidden"
            found = {name: address.format(name) for name in names}
            found["not named"] = f"http://{elsewhere}/other"
            code, statuses, told, _ = score(found, "--allow-urls", host)
    assert (code, statuses, strange) == (1, ["ok", "ok", *["tool_error"] * 7], [])
    expected = {
        "absent": f"output image from http://{host}/absent?key=[removed]: 404 not found",
        "text": "is not an image in a supported format",
        "large": "larger than 0 MiB",
        "away": f"302 redirect to another host ({elsewhere}), which is not followed",
        "loop": "more than 5 redirects",
        "not named": "/other; pass --allow-urls HOST to download images from that host",
    }
    assert not [name for name, words in expected.items() if words not in told[name]]
    assert re.search("is cut off|cannot be decoded", told["cut"])
    assert not re.search("hidden|secret", "\n".join(told.values()))


BROKEN = split("file:///etc/hostname ftp://127.0.0.1/x http://[::1")


@pytest.mark.parametrize("address", [*BROKEN, "http://127.0.0.1:99999/x"])
def test_other_schemes_and_broken_addresses_are_never_opened(score, address):
    code, statuses, told, _ = score({"1": address}, "--allow-urls", "127.0.0.1")
    assert (code, statuses) == (1, ["tool_error"])
    assert "is a URL, not a local file" in told["1"]


def test_a_name_that_leads_into_a_private_network_is_refused(score):
    with site(a=picture()) as (host, asked):
        name = f"localhost:{host.partition(':')[2]}"
        code, _, told, _ = score({"1": f"http://{name}/a"}, "--allow-urls", name)
        assert (code, asked) == (1, [])
        assert "localhost resolves to a private address; if this is" in told["1"]


NO_HOSTS = split("http://example.com example.com/a me@example.com example.com:x")


@pytest.mark.parametrize("host", ["", *NO_HOSTS])
def test_what_is_no_host_is_one_line(score, host):
    code, statuses, _, said = score({"1": "http://example.com/a"}, "--allow-urls", host)
    assert (code, statuses, said.count("\n")) == (1, [], 1)
    assert f"127.0.0.1:8000, got {host!r}" in said


PRIVATE = "10.0.0.1 127.0.0.1 169.254.169.254 ::1 fe80::1%eth0 ::ffff:10.0.0.1 fc00::1"


@pytest.mark.parametrize("address", split(f"{PRIVATE} 224.0.0.1 x"))
def test_private_addresses_are_known(address):
    assert not is_public(address)
    assert is_public("1.1.1.1")
