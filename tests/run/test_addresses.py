"""Images that a samples file names by their addresses."""

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
    """A host with pages by path: a body, or the address that it redirects to; what was asked of
    it.
    """
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
    """Scores the image at each address: the exit code, statuses, reasons by uid, and what was
    said on stderr.
    """

    def scored(addresses, *arguments):
        rows = [a_sample_row(name, url) for name, url in addresses.items()]
        path = write_lines(tmp_path / "s.jsonl", rows)
        code, written, _, said = score(path, "--judge", "sharpness", *arguments)
        failed = [row for row in written if row["status"] != "ok"]
        told = {row["uid"]: row["trace"][0]["reason"] for row in failed}
        return code, [row["status"] for row in written], told, said

    return scored


def test_images_of_an_allowed_host_are_fetched_once_and_judged(score):
    with site(a=picture(), b=picture()) as (host, asked):
        addresses = (f"http://{host}/{name}" for name in ("a?key=x", "b", "a?key=x"))
        found = dict(zip("123", addresses, strict=True))
        assert score(found, "--allow-urls", host)[:3] == (0, ["ok"] * 3, {})
        assert sorted(asked) == ["a", "b"]
        assert score(found, "--allow-urls", host)[0] == 0
        assert len(asked) == 2
        assert score(found, "--allow-urls", host, "--fresh")[0] == 0
        assert len(asked) == 4


def test_only_what_is_judged_is_fetched(score):
    with site(a=picture(), b=picture()) as (host, asked):
        found = {"1": f"http://{host}/a", "2": f"http://{host}/b"}
        assert score(found, "--allow-urls", host, "--limit", "1")[:2] == (0, ["ok"])
        assert asked == ["a"]


def test_what_cannot_be_had_is_its_samples_failure(score, monkeypatch):
    monkeypatch.setattr(download, "MAX_BODY", 50_000)
    with site(other=picture()) as (elsewhere, strange):
        pages = {
            "text": b"<html>",
            "large": bytes(60_000),
            "away": f"http://{elsewhere}/other",
            "here": "/fine",
            "loop": "/loop",
        }
        with site(fine=picture(), cut=picture()[:200], **pages) as (host, _):
            names = ["fine", "here", "absent", "text", "cut", "large", "away", "loop"]
            address = f"http://user:secret@{host}/{{}}?key=hidden"
            found = {name: address.format(name) for name in names}
            found["not named"] = f"http://{elsewhere}/other"
            code, statuses, told, _ = score(found, "--allow-urls", host)
    assert (code, statuses) == (1, ["ok", "ok", *["tool_error"] * 7])
    address = f"http://{host}/absent?key=[removed]"
    said = f"cannot download the output image from {address}: 404 not found"
    assert told["absent"] == said
    assert "is not an image in a supported format" in told["text"]
    assert "is cut off" in told["cut"] or "cannot be decoded" in told["cut"]
    assert told["large"].endswith("larger than 0 MiB")
    away = f"302 redirect to another host ({elsewhere}), which is not followed"
    assert told["away"].endswith(away)
    assert told["loop"].endswith("more than 5 redirects")
    unnamed = "/other; pass --allow-urls HOST to download images from that host"
    assert told["not named"].endswith(unnamed)
    reasons = "\n".join(told.values())
    assert "hidden" not in reasons
    assert "secret" not in reasons
    assert strange == []


BROKEN = ["http://[::1", "http://127.0.0.1:99999/x"]


@pytest.mark.parametrize(
    "address", ["file:///etc/hostname", "ftp://127.0.0.1/x", *BROKEN]
)
def test_other_schemes_and_broken_addresses_are_never_opened(score, address):
    code, statuses, told, _ = score({"1": address}, "--allow-urls", "127.0.0.1")
    assert (code, statuses) == (1, ["tool_error"])
    assert "is a URL, not a local file" in told["1"]


def test_a_name_that_leads_into_a_private_network_is_refused(score):
    with site(a=picture()) as (host, asked):
        name = f"localhost:{host.partition(':')[2]}"
        code, _, told, _ = score({"1": f"http://{name}/a"}, "--allow-urls", name)
        assert code == 1
        private = (
            "localhost resolves to a private address; if this is intended, use the"
        )
        assert told["1"].endswith(f"{private} IP address")
        assert asked == []


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
