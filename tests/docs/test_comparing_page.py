"""The commands of `vieval rank` in docs/guides/comparing.md, run as they stand there."""

import re

import pytest

from tests.brightness import by_brightness, images, prompts, rough
from tests.docs import pages
from tests.fake_server import FakeServer
from vieval_plugin.text.errors import ExitCode

PAGE = (pages.DOCS / "guides" / "comparing.md").read_text(encoding="utf-8")


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def commands(text):
    """The `vieval rank` lines of code blocks, and those in sentences that read verdicts."""
    blocks = re.findall(r"^vieval rank .*$", text.replace("\\\n ", " "), re.MULTILINE)
    return blocks + re.findall(r"`(vieval rank [^`]*verdicts[^`]*)`", text)


SECTIONS = {"A gate for builds": "quantised full", "Rank generators": "mine theirs"}


@pytest.mark.parametrize("title", SECTIONS)
def test_the_commands_of_a_section_do_what_it_says(
    tmp_path, monkeypatch, vieval, title
):
    monkeypatch.chdir(tmp_path)
    prompts(tmp_path)
    first, second = SECTIONS[title].split()
    images(tmp_path, first, rough(0.7, 1))
    images(tmp_path, second, rough(0.4, 2))
    shown = commands(section(title))
    assert len(shown) >= 2
    with FakeServer(reply=by_brightness()) as server:
        for command in shown:
            command = command.replace("http://127.0.0.1:8000/v1", server.base_url)
            answer, evidence, *others = vieval(
                command.removeprefix("vieval ")
            ).out.splitlines()
            if "--margin" in command:
                assert f" finds that {first} is not worse than {second}" in answer
                assert " Allowed: 0.02 lower." in evidence
                controls = ("Positive control", "The judge was not tested")
                [evidence, *_] = [it for it in others if not it.startswith(controls)]
            else:
                assert f"{first}'s images" in answer
            compared = rf"((Mean O|Win rate) of )?{first}:? .* {second}\b"
            assert re.match(compared, evidence), command
            for page in re.findall(r"--html (\S+)", command):
                assert (tmp_path / page).is_file()


def test_the_page_of_exit_codes_has_those_of_the_code():
    page = (pages.DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    table = page.split("\n## Exit codes\n")[1].split("\n## ")[0]
    codes = re.findall(r"^\| (\d) \|", table, re.MULTILINE)
    assert codes == [str(int(code)) for code in ExitCode]
