"""Description of a judge by itself, so that nothing else has to know it by name.

A module of this package, or one that another package names under the entry point group
`vieval.judges`, holds ``SPEC = JudgeSpec(...)`` or, for several judges that are alike, ``SPECS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from vieval_plugin.judges.contests import Contest, Judged, JudgeOfContests, fault
from vieval_plugin.judges.conversation import Exchange, TrainingUnit
from vieval_plugin.judges.protocol import (
    OUTPUTS,
    REFERENCE,
    Image,
    Judge,
    Path,
    Sample,
    SampleId,
    Step,
)
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError

#: The key of `JudgeSpec.needs` that stands for all kinds.
EVERY_KIND = "*"


@dataclass(frozen=True)
class Needs:
    """Images and texts without which a judge cannot be asked about a sample; a tuple of names
    means any of them.
    """

    #: Roles.
    images: tuple[str | tuple[str, ...], ...] = ()
    texts: tuple[str | tuple[str, ...], ...] = ()


#: The images and texts of each kind.
INPUTS: Mapping[str, Needs] = {
    "tig": Needs(("output",), ("prompt",)),
    "mie": Needs(("source", "output"), ("instruction",)),
    "tie": Needs(("source", "output"), ("instruction",)),
    "sdig": Needs(("subject", "output"), ("prompt",)),
    "sdie": Needs(("source", "subject", "output"), ("subject",)),
    "mcic": Needs(("concepts", "output"), ("prompt",)),
    "cig": Needs(("control", "output"), ("prompt",)),
}


@dataclass(frozen=True)
class Export:
    """Export of a judge's conversations as training examples."""

    #: Examples from the conversation behind a verdict, those together that belong together.
    units: Callable[[SampleId, Sequence[Exchange]], Sequence[TrainingUnit]]
    #: Aspect on which only verdicts near the mean of the human ratings are kept; empty for all.
    human_aspect: str = ""
    #: Times that each kind of unit is repeated when sub-tasks are evened out; empty where they are
    #: not.
    repetitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Quantity:
    """Quantity that a judge measures, which need not be the quality of an image."""

    #: Comparative of images with a higher score, such as `sharper`.
    more: str
    #: Its superlative.
    most: str
    #: Words that follow "it measures", without a full stop.
    meaning: str


Build: TypeAlias = Callable[[Any, Any, str], Judge | JudgeOfContests]


@dataclass(frozen=True)
class JudgeSpec:
    """Judge: what it rates, what it needs, what can be set, and how it is built."""

    #: Name in commands and options.
    name: str
    #: Name in papers.
    title: str
    #: Aspects that it rates.
    aspects: tuple[str, ...]
    #: Needs of a sample by its kind (`EVERY_KIND` for all); a kind that is not there the judge does
    #: not know.
    needs: Mapping[str, Needs]
    #: Frozen dataclass with a default for every field (see `option`).
    options: type[Any]
    #: Judge from (options, pack, setting), the pack being None without one; VievalError names what
    #: is missing.
    build: Build
    #: Variants that tasks and `--setting` name, the plain one first; empty where there is one only.
    settings: tuple[str, ...] = ()
    #: Name or folder of the prompt pack by (options, setting); None for judges that ask nothing in
    #: words.
    pack: Callable[[Any, str], str] | None = None
    #: What it asks the backbone, or measures with, in a few words.
    method: str = ""
    #: Words by (options, setting) that distinguish verdicts of different settings in tables.
    setting_labels: Callable[[Any, str], tuple[str, ...]] = lambda options, setting: (
        (setting,) if setting else ()
    )
    #: Further scores that annotators may have rated as well.
    dimensions: tuple[str, ...] = ()
    #: Scores beside the aspects whose means are reported.
    grades: Callable[[Any], tuple[str, ...]] = lambda options: ()
    #: What it is given; a judge of samples judges contests candidate by candidate.
    rates: Literal["sample", "contest"] = "sample"
    #: What it measures; None for a judge that says how good an image is.
    quantity: Quantity | None = None
    #: Needs of a sample of any kind that has a reference; None for a judge that compares with none.
    compares: Needs | None = None
    #: True where its scores may be known to an interval only.
    intervals: bool = False
    #: True where it requires log-probabilities by default, which not every server returns.
    reads_probabilities: bool = False
    #: True where a verdict is the end of many steps, worth a page.
    stepwise: bool = False
    #: True for one value, of one aspect, that is compared with every aspect that annotators rated.
    against_all: bool = False
    #: Table of the paper whose name its correlations by image model have.
    table: str = ""
    #: True for one that measures with a network, by the scorer of its own name.
    scored: bool = False
    #: Prompt pack that describes it, of a judge in one file.
    file: Pack | None = None
    #: True for one whose scores are of the text that OCR reads, whose version is its provenance's.
    reads_text: bool = False
    #: Line by samples on what it takes their prompts to demand; empty where that is all that they
    #: say.
    demands: Callable[[Iterable[Sample]], str] = lambda samples: ""
    #: Samples that it has scores for, in words, where it has none for others that are complete.
    some_samples: str = ""
    #: True by (options, setting) where image tools may look at what models are shown, which is
    #: decoded once.
    uses_tools: Callable[[Any, str], bool] = lambda options, setting: False
    #: The same judge by (aspects, lazy), which asks about these aspects only (about all for none),
    #: and with `lazy` not what cannot change O any more; None where its aspects are no separate
    #: questions.
    narrowed: Callable[[Sequence[str], bool], JudgeSpec] | None = None
    #: Calls of a model that a sample or a contest takes, in few words.
    calls: Callable[[Any, str], str] = lambda options, setting: "0"
    #: Most questions of a sample by (options, setting) each of which depends on the answers to
    #: those before it.
    rounds: Callable[[Any, str], int] = lambda options, setting: 1
    #: Words that belong to the paths of a trace.
    titles: Callable[[Sequence[Step]], Mapping[Path, str]] = lambda trace: {}
    #: Training examples.
    export: Export | None = None

    @property
    def is_ours(self) -> bool:
        """Return whether it comes with VIEval, and not with another package."""
        return getattr(self.build, "func", self.build).__module__.startswith(
            "vieval_plugin."
        )

    @property
    def plain(self) -> str:
        """The setting of tasks that name none; empty where there is one only."""
        return self.settings[0] if self.settings else ""

    def kinds(self, among: Sequence[str]) -> list[str]:
        """Select the kinds that the judge knows."""
        if EVERY_KIND in self.needs:
            return list(among)
        return [kind for kind in among if kind in self.needs]


@dataclass(frozen=True)
class NoOptions:
    """The options of judges that have none."""


def option(
    default: Any,
    description: str,
    *,
    folder: bool = False,
    **limits: Any,
) -> Any:
    """A field of a judge's options.

    Args:
        default: its default, copied where it is a mapping.
        description: what `vieval config` prints above it.
        folder: a text that may name a folder, which then starts at the folder of the options file.
        limits: bounds that are checked when options are read: `ge`, `le`, `gt`, `lt`, `min_length`,
            `max_length`.
    """
    metadata = {"description": description, "folder": folder, **limits}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def require_wording(spec: JudgeSpec, wording: Pack, setting: str) -> None:
    """VievalError if a prompt pack does not word a setting; a pack that names none words all."""
    if wording.settings and setting not in wording.settings:
        settings = ", ".join(wording.settings)
        raise VievalError(
            f"prompt pack {wording.name} is for {spec.name} {settings}, not for {setting}"
        )


def missing_inputs_reason(spec: JudgeSpec, judged: Judged) -> str:
    """Reason that a judge cannot be asked about a sample or a contest, in words; empty if it can.

    >>> from vieval_plugin.judges.viescore import SPEC
    >>> missing_inputs_reason(SPEC, Sample(SampleId("own", "tie", "mine", "1"), {}))
    'the sample has no source image'
    """
    if isinstance(judged, Contest):
        reason = fault(judged)
        if reason:
            return reason
        for number, candidate in enumerate(judged.candidates, start=1):
            reason = _missing_sample_inputs_reason(spec, candidate)
            if reason:
                return f"candidate {number}: {reason}"
        return ""
    if spec.rates == "contest":
        return (
            f"{spec.name} judges contests, not single samples; use "
            f"`vieval rank A B --judge {spec.name}` on two folders"
        )
    return _missing_sample_inputs_reason(spec, judged)


def lacks_output_alone(spec: JudgeSpec, judged: Judged) -> bool:
    """True for a sample without an output that has everything else that a judge needs."""
    if isinstance(judged, Contest) or set(OUTPUTS) & set(judged.images):
        return False
    images = {**judged.images, **dict.fromkeys(OUTPUTS, Image(b""))}
    return not missing_inputs_reason(spec, replace(judged, images=images))


def _missing_sample_inputs_reason(spec: JudgeSpec, sample: Sample) -> str:
    """Reason that a judge cannot be asked about a sample, or about a contest that it is a candidate
    of; empty if it can.
    """
    needs = spec.needs.get(sample.kind, spec.needs.get(EVERY_KIND))
    if spec.compares and REFERENCE in sample.images:
        needs = spec.compares
    held_texts = {name for name, text in sample.texts.items() if text.strip()}
    if needs is None and sample.kind:
        known_kinds = ", ".join(spec.needs)
        return (
            f"{spec.name} does not support the kind {sample.kind!r} (it supports "
            f"{known_kinds})"
        )
    if needs is None and held_texts:
        return (
            "the sample has no kind; pass one (such as --kind tie), or add an "
            "instruction column"
        )
    if needs is None:
        # what would tell the kind is what is lacking
        role = "instruction" if "source" in sample.images else "prompt"
        return f"the sample has no {role} text"
    needed_images = ("image", needs.images, set(sample.images))
    for what, needed, present in (
        needed_images,
        (
            "text",
            needs.texts,
            held_texts,
        ),
    ):
        for names in needed:
            any_of = (names,) if isinstance(names, str) else names
            if present.isdisjoint(any_of):
                return f"the sample has no {' or '.join(any_of)} {what}"
    return ""
