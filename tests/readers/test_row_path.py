"""How far it is from a row of a CSV file to its sample."""

import sys
from pathlib import Path

from vieval_plugin import readers
from vieval_plugin.readers.samples import read_samples

MARK = "a text that no code has"
FOLDER = str(Path(readers.__file__).parent)


def holds_row(value):
    """Return whether a value is a row: a mapping or a list that has the text, or has one that
    has it.
    """
    if not isinstance(value, (list, dict, tuple)):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return any(
        part == MARK or (isinstance(part, dict) and holds_row(part)) for part in parts
    )


def test_a_row_of_a_csv_file_passes_at_most_five_functions(tmp_path):
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "t.csv").write_text(f"image,caption,tags\na.png,{MARK},x;y\n")
    source = read_samples(tmp_path / "t.csv")
    passed = set()

    def look(frame, event, argument):
        name = frame.f_code.co_name
        is_reader = frame.f_code.co_filename.startswith(FOLDER) and name[0] != "<"
        if event == "return" and is_reader:
            passed.update(
                {name} if any(map(holds_row, frame.f_locals.values())) else ()
            )

    sys.setprofile(look)
    try:
        [row] = source
    finally:
        sys.setprofile(None)
    assert row.sample.texts == {"prompt": MARK}
    assert 2 <= len(passed) <= 5, passed
