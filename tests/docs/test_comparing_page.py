"""The commands of `vieval rank` in docs/guides/comparing.md, run as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from tests.brightness import by_brightness, images, prompts, rough
from tests.fake_server import FakeServer
from vieval_plugin.cli import main
from vieval_plugin.text.errors import ExitCode

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "comparing.md").read_text(
    encoding="utf-8"
)


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def commands(text):
    """The lines of code blocks that begin with `vieval rank`, and those in sentences that read
    verdicts.
    """
    return [
        *re.findall(r"^vieval rank .*$", text.replace("\\\n ", " "), re.MULTILINE),
        *re.findall(r"`(vieval rank [^`]*verdicts[^`]*)`", text),
    ]


@pytest.mark.parametrize(
    ("title", "folders"),
    [
        ("A gate for builds", ("quantised", "full")),
        ("Rank generators", ("mine", "theirs")),
    ],
)
def test_the_commands_of_a_section_do_what_it_says(
    tmp_path, monkeypatch, capsys, title, folders
):
    monkeypatch.chdir(tmp_path)
    prompts(tmp_path)
    first, second = folders
    images(tmp_path, first, rough(0.7, 1))
    images(tmp_path, second, rough(0.4, 2))
    shown = commands(section(title))
    assert len(shown) >= 2
    with FakeServer(reply=by_brightness()) as server:
        for command in shown:
            arguments = shlex.split(
                command.replace("http://127.0.0.1:8000/v1", server.base_url)
            )[1:]
            assert main(arguments) == 0, command
            lines = capsys.readouterr().out.splitlines()
            if "--margin" in arguments:
                assert f" finds that {first} is not worse than {second}" in lines[0]
                assert " Allowed: 0.02 lower." in lines[1]
                controls = ("Positive control", "The judge was not tested")
                lines = [
                    lines[0],
                    *(line for line in lines[2:] if not line.startswith(controls)),
                ]
            else:
                assert f"{first}'s images" in lines[0]
            assert re.match(
                rf"((Mean O|Win rate) of )?{first}:? .* {second}\b", lines[1]
            )
            if "--html" in arguments:
                assert (tmp_path / arguments[arguments.index("--html") + 1]).is_file()


def test_the_page_of_exit_codes_has_those_of_the_code():
    page = Path(__file__).parents[2] / "docs" / "reference" / "results.md"
    table = (
        page.read_text(encoding="utf-8").split("\n## Exit codes\n")[1].split("\n## ")[0]
    )
    assert re.findall(r"^\| (\d) \|", table, re.MULTILINE) == [
        str(int(code)) for code in ExitCode
    ]
