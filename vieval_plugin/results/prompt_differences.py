"""Detect samples with one uid but different prompts, for example from two tables with
the same file names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

from vieval_plugin.judges.protocol import OUTPUTS, Sample, SampleId, outputs
from vieval_plugin.records import Run
from vieval_plugin.results.runs import Results
from vieval_plugin.text.errors import VievalError

_MOST_CHARACTERS = 40
_MOST_WORDS = 200
_DIGITS = 64  # of a SHA-256; other lengths mean an unknown one


def prompt_difference(first: Sample, second: Sample) -> str:
    """Describe how the prompts of two samples differ; empty if they do not.

    Texts are compared, and also the prompts' images if the SHA-256 of both is known.
    """
    difference = text_difference(first.texts, second.texts)
    if difference:
        return difference
    second_digests = _digests(second)
    for role, digest in _digests(first).items():
        if role != "output" and second_digests.get(role, digest) != digest:
            return f"another image {role}"
    return ""


def _digests(sample: Sample) -> dict[str, str]:
    """Known SHA-256 of a sample's images by role."""
    digests = {}
    for role, image in sample.images.items():
        if len(image.sha256) == _DIGITS:
            digests[role] = image.sha256
    return digests


def text_difference(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """Describe the first text that differs between two mappings; empty if none does.

    >>> text_difference({"prompt": "a cat"}, {"prompt": "a dog"})
    "prompt 'a cat' and 'a dog'"
    """
    for name in {**first, **second}:
        texts = (first.get(name, ""), second.get(name, ""))
        if texts[0] != texts[1]:
            return f"{name} {' and '.join(map(_shortened, texts))}"
    return ""


def prompt_forms(sample: Sample) -> frozenset[str]:
    """Texts of a prompt with one word masked at a time: two prompts that differ in one
    word share one of these forms.

    Images of the prompt are part of each form, if their SHA-256 is known.

    >>> samples = [
    ...     Sample(SampleId("own", "tig", "m", text), {}, {"prompt": text}) for text in ("a red cat", "a red dog")
    ... ]
    >>> prompt_forms(samples[0]) & prompt_forms(samples[1])
    frozenset({' | a red _'})
    """
    images = dict(sample.images)
    if images.keys() & set(OUTPUTS):
        for role, _ in outputs(sample):
            del images[role]
    digests = " ".join(images[role].sha256 for role in sorted(images))
    text = " ".join(sample.texts.values()).lower()
    words = text.split()[:_MOST_WORDS]
    forms = set()
    for position in range(len(words)):
        masked = [*words]
        masked[position] = "_"
        forms.add(f"{digests} | {' '.join(masked)}")
    return frozenset(forms)


def similar_prompts_note(samples: Iterable[Sample]) -> str:
    """Note on prompts that differ from another prompt in only one word; empty if there
    are none.

    Args:
        samples: one per prompt, of prompts without a column `group`.
    """
    forms = [prompt_forms(sample) for sample in samples]
    counts = Counter(chain.from_iterable(forms))
    similar = sum(any(counts[form] > 1 for form in prompt) for prompt in forms)
    if not similar:
        return ""
    return (
        f"{similar} of {len(forms)} prompts differ from another prompt "
        "by at most one word. "
        "If they come from templates, add a column `group` with the template, "
        "so that its prompts count as one unit."
    )


def drop_different_prompts(results: Results) -> Results:
    """Drop the uids under which a run has several prompts, and add a note on them.

    Raises:
        VievalError: no records of a run are left.
    """
    runs = list[Run]()
    notes = list(results.notes)
    for run in results.runs:
        differences = _differences(run)
        records = {
            part: [rs for rs in samples if _uid_of(rs[0].id) not in differences]
            for part, samples in run.records.items()
        }
        records = {part: samples for part, samples in records.items() if samples}
        if differences:
            (identity, text), *further = differences.items()
            have = f"{len(differences)} uids have" if further else "1 uid has"
            note = (
                f"{run.label}: {have} different texts for two generators (first: "
                f"{identity.uid!r}, {text})"
            )
            if not records:
                raise VievalError(
                    f"{note}, and no other prompts are left to compare; give each prompt "
                    "its own uid"
                )
            notes.append(f"{note}; these are left out. Give each prompt its own uid")
        runs.append(replace(run, records=records))
    return replace(
        results,
        runs=tuple(runs),
        notes=tuple(notes),
    )


def _differences(run: Run) -> dict[SampleId, str]:
    """Uids of a run with several prompts, each with its first difference in words."""
    first: dict[SampleId, Sample] = {}
    differences: dict[SampleId, str] = {}
    for record in run.all_records:
        if isinstance(record.sample, Sample) and record.sample.texts:
            uid = _uid_of(record.id)
            difference = prompt_difference(
                first.setdefault(uid, record.sample), record.sample
            )
            if difference:
                differences.setdefault(uid, difference)
    return differences


def _uid_of(identity: SampleId) -> SampleId:
    return replace(identity, image_model="", draw=0)


def _shortened(text: str) -> str:
    is_short = len(text) <= _MOST_CHARACTERS
    return repr(text if is_short else f"{text[:_MOST_CHARACTERS]}...")
