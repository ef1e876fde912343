"""Test an image API as a generator: requests, kept images and bad answers."""

import json

import PIL.Image
import pytest

from tests.fake_image_server import FakeImageServer, picture
from tests.refusals import refuses
from tests.tables import table
from vieval_plugin.backends.http.server import ServerOptions, Usage
from vieval_plugin.generation.image_api import ImageApi, make
from vieval_plugin.generation.requests import ImageRequest
from vieval_plugin.judges.protocol import Image, Sample, SampleId

PNG = Image(picture(b"given"))


def wanted(uid="1", prompt="a red cube", images=1, turn=0, **roles):
    sample = Sample(SampleId("b", "tig", "", uid), roles, {"prompt": prompt})
    return ImageRequest(sample, prompt, images, turn)


def answers(server, folder, *asked, **extra):
    options = ServerOptions((server.base_url,), "key", retries=1, patience=2.0)
    api, usage = ImageApi("painter", options, folder, extra), Usage()
    return [json.loads(one) for one in make(api, asked, usage, bar=False)], usage


@pytest.mark.parametrize("urls", [False, True])
def test_images_are_kept_in_files_of_their_own_and_not_asked_for_again(tmp_path, urls):
    asked = wanted(), wanted("2", "a blue ball", images=2)
    with FakeImageServer(urls=urls) as server:
        first, usage = answers(server, tmp_path, *asked, size="32x32")
        again, second = answers(server, tmp_path, *asked, size="32x32")
        turned, _ = answers(server, tmp_path, wanted(turn=1), size="32x32")
    paths = [path for one in first for path in one["images"]]
    assert [len(one["images"]) for one in first] == [1, 2]
    assert len({*paths, *turned[0]["images"]}) == 4
    assert [one["images"] for one in again] == [one["images"] for one in first]
    assert (usage.calls, second.calls, second.cached) == (2, 0, 2)
    body = json.loads(server.requests[0][2])
    assert body.keys() == {"model", "prompt", "n", "size"}
    assert (body["model"], body["size"]) == ("painter", "32x32")
    assert all(PIL.Image.open(path).size == (32, 32) for path in paths)


def test_an_edit_is_a_form_with_the_images_and_a_mask(tmp_path):
    masked = wanted(prompt="add a hat", source=PNG, mask=PNG)
    subject = wanted(prompt="add a hat", source=PNG, subject=PNG)
    with FakeImageServer() as server:
        [one], _ = answers(server, tmp_path, masked)
        [two], _ = answers(server, tmp_path, subject)
    assert len(one["images"]) == len(two["images"]) == 1
    (path, kind, body), (_, _, both) = server.requests
    assert path == "/v1/images/edits"
    assert kind.startswith("multipart/form-data")
    assert b'name="image"; filename="source.png"' in body
    assert b'name="mask"; filename="mask.png"' in body
    assert PNG.source in body
    assert both.count(b'name="image[]"') == 2


@pytest.mark.parametrize(*table("failed_image_calls.jsonl"))
def test_a_failed_call_is_its_images_failure(tmp_path, answer, status, text):
    failing = lambda path, body: answer if b"bad" in body else None
    with FakeImageServer(failing) as server:
        asked = wanted(prompt="bad"), wanted("2")
        [bad, good], usage = answers(server, tmp_path, *asked)
    assert (bad["images"], bad["status"]) == ([], status)
    assert text in bad["text"]
    assert (len(good["images"]), "status" in good) == (1, False)
    assert (usage.failures.total(), len(kept(tmp_path))) == (1, 1)


def kept(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("answer", [(500, b"busy"), (429, b"later"), (200, b"")])
def test_a_file_that_fails_once_is_fetched_again(tmp_path, answer):
    file = lambda path: answer if len(server.fetched) == 1 else None
    with FakeImageServer(urls=True, file=file) as server:
        [one], usage = answers(server, tmp_path, wanted(images=2))
    assert (len(one["images"]), one["text"]) == (2, "")
    assert (len(server.fetched), len(server.requests)) == (3, 1)
    assert (usage.retries.total(), usage.failures.total()) == (1, 0)
    assert len({*kept(tmp_path).values()} & {*server.files.values()}) == 2


UNREAD = [
    ((500, b""), "cannot download a file: HTTP 500, 2 times", 2),
    ((404, b"gone"), "cannot download a file: HTTP 404: gone", 1),
    ((200, b"no picture"), "the server sent an unreadable image", 1),
]


@pytest.mark.parametrize("bad", [0, 1])
@pytest.mark.parametrize(("answer", "reason", "tries"), UNREAD)
def test_of_two_images_the_good_one_is_kept(tmp_path, bad, answer, reason, tries):
    well = []
    is_bad = lambda path: not well and path == [*server.files][bad]
    file = lambda path: answer if is_bad(path) else None
    with FakeImageServer(urls=True, file=file) as server:
        [one], usage = answers(server, tmp_path, wanted(images=2))
        assert (len(one["images"]), one["status"]) == (1, "api_error")
        assert reason in one["text"]
        assert (len(server.fetched), usage.failures.total()) == (tries + 1, 1)
        good = kept(tmp_path)
        assert [*good.values()] == [[*server.files.values()][1 - bad]]
        well.append(True)
        [both], _ = answers(server, tmp_path, wanted(images=2))
    assert (len(both["images"]), "status" in both) == (2, False)
    assert kept(tmp_path).items() > good.items()


def test_an_item_that_names_no_image_costs_no_other(tmp_path):
    def answer(path, body):
        return 200, {"data": [{"b64_json": None}, server.images(body)["data"][1]]}

    with FakeImageServer(answer) as server:
        [one], _ = answers(server, tmp_path, wanted(images=2))
    assert (len(one["images"]), one["status"]) == (1, "api_error")
    assert len(server.requests) == 1
    assert "neither b64_json nor url" in one["text"]


ADDRESSES = ["http://[::1", "no address", "file:///etc/passwd", "{host}:x/a.png"]


@pytest.mark.parametrize("address", [*ADDRESSES, "{host}/\0"])
def test_an_address_that_is_none_is_that_images_failure(tmp_path, address):
    def answer(path, body):
        return 200, {"data": [{"url": address.replace("{host}", server.host)}]}

    with FakeImageServer(answer) as server:
        [one], _ = answers(server, tmp_path, wanted())
    assert (one["images"], one["status"]) == ([], "api_error")


def test_a_wrong_key_ends_the_run_in_one_line(tmp_path):
    denied = lambda path, body: (401, {"error": {"message": "no"}})
    with FakeImageServer(denied) as server:
        refuses("refuses the key", answers, server, tmp_path, wanted(), wanted("2"))
