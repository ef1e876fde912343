import pytest

from vieval_plugin.cli import main

AT_LEAST_0 = "must be a whole number of at least 0, got '-1'"
AT_LEAST_1 = "must be a whole number of at least 1, got '0'"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "serve --reward r=viescore --port 65536",
            "number from 0 to 65535, got '65536'",
        ),
        ("rank a --seed -1", AT_LEAST_0),
        ("export vieval-pairs a --out b --seed -1", AT_LEAST_0),
        ("prepare imagenhub --count 0", AT_LEAST_1),
        ("vlmevalkit --list --limit 0", AT_LEAST_1),
    ],
)
def test_a_number_out_of_range_is_refused_with_its_range(command, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(command.split())
    assert message in capsys.readouterr().err
