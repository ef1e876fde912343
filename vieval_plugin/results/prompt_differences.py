"""Samples of one uid that are of different prompts, as two tables may call theirs by the same file names."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from vieval_plugin.judges.protocol import Image, Sample, SampleId
from vieval_plugin.records import Run
from vieval_plugin.results.runs import Results
from vieval_plugin.text.errors import VievalError

_MOST_CHARACTERS = 40
_DIGITS = 64  # of a SHA-256; anything else stands for one that is not known


def prompt_difference(first: Sample, second: Sample) -> str:
    """The difference of two samples that are said to be of one prompt, in words; empty where there is none.

    Texts are compared, and the images that a prompt shows, as far as the SHA-256 of both is known.
    """
    for name in dict.fromkeys([*first.texts, *second.texts]):
        text, other_text = first.texts.get(name, ""), second.texts.get(name, "")
        if text != other_text:
            return f"{name} {_shortened(text)} and {_shortened(other_text)}"
    shared = [role for role in first.images if role in second.images and role != "output"]
    different_role = next((role for role in shared if _are_different(first.images[role], second.images[role])), "")
    return f"another image {different_role}" if different_role else ""


def without_different_prompts(results: Results) -> Results:
    """Results without the uids under which a run has several prompts, and with a note on them.

    Raises:
        VievalError: nothing is left of a run.
    """
    runs, notes = list[Run](), list(results.notes)
    for run in results.runs:
        differences = _differences(run)
        if not differences:
            runs.append(run)
            continue
        uid, difference = next((identity.uid, text) for identity, text in differences.items())
        have = "uids have" if len(differences) > 1 else "uid has"
        message = (
            f"{run.label}: {len(differences)} {have} different texts in two generators, first {uid!r} ({difference})"
        )
        records = {
            part: of_one_prompt
            for part, samples in run.records.items()
            if (of_one_prompt := [records for records in samples if _uid_of(records[0].id) not in differences])
        }
        if not records:
            raise VievalError(f"{message}, and nothing else is there to rank; give each prompt a uid of its own")
        runs.append(replace(run, records=records))
        notes.append(f"{message}; what is called so is left out: give each prompt a uid of its own")
    return replace(results, runs=tuple(runs), notes=tuple(notes))


def _differences(run: Run) -> dict[SampleId, str]:
    """The uids of a run under which there are several prompts, with the first difference of each in words."""
    first: dict[SampleId, Sample] = {}
    differences: dict[SampleId, str] = {}
    for record in chain(*chain(*run.records.values())):
        if isinstance(record.sample, Sample) and record.sample.texts:
            uid = _uid_of(record.id)
            if difference := prompt_difference(first.setdefault(uid, record.sample), record.sample):
                differences.setdefault(uid, difference)
    return differences


def _uid_of(identity: SampleId) -> SampleId:
    return replace(identity, image_model="", draw=0)


def _are_different(image: Image, second: Image) -> bool:
    has_digests = len(image.sha256) == len(second.sha256) == _DIGITS
    return has_digests and image.sha256 != second.sha256


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}...")
