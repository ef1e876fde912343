"""Votes of an arena on pairs of ImagenHub's own edits: outputs that people have both rated and
compared.

Source: the edits of GenAI-Bench (Jiang et al., 2024) on which visitors preferred one, with the
names of the editors, as Wu et al. (EditReward, 2025) publish them. An instruction there is one of
ImagenHub's, so that a vote is about two outputs of which ratings and recorded verdicts are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from vieval_plugin.benchmarks.imagenhub.samples import load as load_rated
from vieval_plugin.benchmarks.imagenhub.tasks import task_info
from vieval_plugin.benchmarks.loading.folders import DataFolder
from vieval_plugin.judges.contests import FIRST, SECOND, Contest, Votes
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.meta_evaluation.votes import ByVotes
from vieval_plugin.readers.rows import read_object, read_objects
from vieval_plugin.text.errors import VievalError

NAME = "imagenhub_arena"
PART = "tie"
VOTES = "valid_dataset_1.json"
ADVICE = (
    f"put {VOTES} from github.com/TIGER-AI-Lab/EditReward into the benchmark folder, "
    f"then run `vieval prepare imagenhub --part {PART}` (add `--no-images` to replay "
    "published verdicts only)"
)
SOURCE = (
    "Jiang et al., GenAI Arena (2024), arXiv 2406.04485, with the names of the editing models from Wu et al., "
    "EditReward (2025), arXiv "
    "2509.26346 (github.com/TIGER-AI-Lab/EditReward); ratings and images of ImagenHub"
)
LICENCE = (
    "votes: MIT (the EditReward repository), CC BY 4.0 (Hugging Face card of "
    "GenAI-Bench); ratings: MIT"
)

_INSTRUCTION_LABEL = "Editing instruction:"


def read(folder: Path, part: str) -> list[Contest]:
    """The votes on pairs of which ImagenHub has both outputs; the candidates are its own samples,
    rated.

    A contest's uid is the number of its row. The file has the winner first in all rows; here it is
    first and second by turns, so that a judge which always names the first has one half.
    """
    path = folder / VOTES
    rows = read_objects(path, ADVICE)
    rated = load_rated(folder.parent, part)
    samples = {(sample.id.image_model, sample.id.uid): sample for sample in rated}
    uids = _uids(folder, part, rated)
    contests: list[Contest] = []
    for number, row in enumerate(rows):
        uid = uids.get(_plain(row.text("prompt")), "")
        editors = row.text("model1"), row.text("model2")
        if editors[0] == editors[1]:
            raise row.error(f"model1 and model2 must differ, got {editors[0]} twice")
        if all((editor, uid) in samples for editor in editors):
            winner, loser = (samples[editor, uid] for editor in editors)
            turned = len(contests) % 2 == 1
            sample_id = SampleId(
                NAME,
                part,
                "",
                str(number),
            )
            candidates = (loser, winner) if turned else (winner, loser)
            votes = Votes("two_way", SECOND if turned else FIRST)
            contests.append(
                Contest(
                    sample_id,
                    candidates,
                    votes,
                    uid,
                )
            )
    if not contests:
        raise VievalError(
            f"{path}: no row has an instruction and two editors of ImagenHub; {ADVICE}"
        )
    return contests


def _uids(folder: Path, part: str, samples: Iterable[Sample]) -> Mapping[str, str]:
    """ImagenHub's uid of each instruction; of several with one instruction the first in sorted
    order.
    """
    prepared = {
        sample.id.uid: sample.texts["instruction"]
        for sample in samples
        if "instruction" in sample.texts
    }
    instructions = prepared or dict(_logged(folder, part))
    if not instructions:
        raise VievalError(
            f"{folder}: no ImagenHub instructions found in ImagenHub's data folder or "
            f"in the logs here; {ADVICE}"
        )
    uid_by_instruction: dict[str, str] = {}
    for uid in sorted(instructions):
        uid_by_instruction.setdefault(_plain(instructions[uid]), uid)
    return uid_by_instruction


def _logged(folder: Path, part: str) -> Iterator[tuple[str, str]]:
    """Uid and instruction from the questions in logs of VIEScore's authors."""
    task_folder = task_info(part).folder
    for path in sorted(folder.glob(f"*/{task_folder}/*/SC.json")):
        for uid, row in read_object(path, "restore the log from its source").items():
            prompt_text = row.get("prompt_input") if isinstance(row, dict) else None
            if isinstance(prompt_text, str):
                for line in prompt_text.splitlines():
                    if line.startswith(_INSTRUCTION_LABEL):
                        yield uid, line.removeprefix(_INSTRUCTION_LABEL)


def _plain(instruction: str) -> str:
    """An instruction as it is compared: arena and ImagenHub differ in case and full stops."""
    return instruction.strip().lower().removesuffix(".").strip()


_FOLDER = DataFolder(NAME, {PART: 199}, read, ADVICE)

BENCHMARK = _FOLDER.benchmark(
    ByVotes("two_way", rated=True),
    title="ImagenHub-Arena",
    source=SOURCE,
    licence=LICENCE,
    note=(
        "Arena votes on pairs of ImagenHub edits. Human ratings of the same edits are shown next "
        "to the judges."
    ),
)
