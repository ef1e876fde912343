"""The commands of docs/gate.md and of the first part of docs/ranking.md, run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_rank_folders import by_brightness, images, prompts, rough
from tests.fake_server import FakeServer
from vieval_plugin.cli import main

DOCS = Path(__file__).parents[2] / "docs"


def commands(page):
    """The lines of a page's code blocks that begin with `vieval rank`, and those in its sentences."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        *re.findall(r"^vieval rank .*$", text, re.MULTILINE),
        *re.findall(r"`(vieval rank [^`]*verdicts[^`]*)`", text),
    ]


@pytest.mark.parametrize(("page", "folders"), [("gate.md", ("quantised", "full")), ("ranking.md", ("mine", "theirs"))])
def test_the_commands_of_the_page_do_what_it_says(tmp_path, monkeypatch, capsys, page, folders):
    monkeypatch.chdir(tmp_path)
    prompts(tmp_path)
    first, second = folders
    images(tmp_path, first, rough(0.7, 1))
    images(tmp_path, second, rough(0.4, 2))
    found = commands(page)
    assert len(found) >= 2
    with FakeServer(reply=by_brightness()) as server:
        for command in found:
            if "--human" in command:
                continue
            arguments = shlex.split(command.replace("http://127.0.0.1:8000/v1", server.base_url))[1:]
            if page == "ranking.md" and "--prompts" in arguments:
                arguments += ["--out", "verdicts.jsonl"]
            assert main(arguments) == 0, command
            said = capsys.readouterr().out.splitlines()
            assert said[0].startswith(f"{first} is better than {second}: ")
            if "--margin" in arguments:
                assert said[1].startswith(f"{first} is not worse than {second} by more than 0.02 (difference ")
    if page == "gate.md":
        assert (tmp_path / "rank.html").is_file()


def test_the_exit_codes_of_the_page_are_those_of_the_command():
    from vieval_plugin.cli.rank import EXIT_CODES

    text = (DOCS / "gate.md").read_text(encoding="utf-8")
    assert set(map(int, re.findall(r"^\| (\d) \|", text, re.MULTILINE))) == {*EXIT_CODES.values(), 1, 2}
