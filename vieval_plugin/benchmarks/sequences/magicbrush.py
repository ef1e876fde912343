"""MagicBrush's layout: `edit_sessions.json` beside `images/<session>/`, one folder a split.

Zhang et al., MagicBrush: a manually annotated dataset for instruction-guided image editing (NeurIPS 2023). Each session
maps to its turns, each with `input`, `output`, `instruction` and a mask that is not used here. The authors ask that the
test split never train a model; what is in a folder called `test` does not.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from vieval_plugin.benchmarks.sequences import EditingSequence, Layout, SequenceFolder
from vieval_plugin.text.untrusted import real
from vieval_plugin.text.yaml_json import read_json

FILE = "edit_sessions.json"


def _read(folder: Path) -> SequenceFolder:
    sessions: dict[str, Any] = read_json((folder / FILE).read_bytes())
    split = real(folder).name
    sequences = tuple(_sequence(folder / "images", split, session, turns) for session, turns in sessions.items())
    return SequenceFolder(f"MagicBrush, split {split}", "CC BY 4.0", split != "test", sequences)


def _sequence(images: Path, split: str, session: str, turns: list[dict[str, Any]]) -> EditingSequence:
    for earlier, later in pairwise(turns):
        if earlier["output"] != later["input"]:
            raise ValueError(f"session {session}: a turn begins at {later['input']} and not where the one before ended")
    names = [turns[0]["input"], *(turn["output"] for turn in turns)] if turns else []
    # the folder of a session is called by what its files' names begin with
    paths = tuple(images / session / Path(name).name for name in names)
    return EditingSequence(f"magicbrush/{split}/{session}", paths, tuple(turn.get("instruction", "") for turn in turns))


LAYOUT = Layout(FILE, _read)
