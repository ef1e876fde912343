"""Preparation of a judge by its name: its options, its prompt pack, and the provenance its
verdicts carry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from vieval_plugin.config import Backbone, Config
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.answer_formats import require_known_format
from vieval_plugin.judges.contests import (
    Contest,
    Judged,
    JudgeOfContests,
    candidate_program,
    fault,
)
from vieval_plugin.judges.protocol import Judge, Program, Status
from vieval_plugin.judges.spec import (
    JudgeSpec,
    lacks_output_alone,
    missing_inputs_reason,
)
from vieval_plugin.prompts import packs
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.records import OWN, Provenance, unjudged
from vieval_plugin.text.errors import VievalError

if TYPE_CHECKING:
    from vieval_plugin.run.calibration import Calibration


@dataclass(frozen=True, eq=False)
class PreparedJudge:
    """A judge ready to run, and the provenance of its verdicts without the backbone.

    Two that were prepared apart are never equal, and each is a key of what belongs to it.
    """

    #: Description of the judge.
    spec: JudgeSpec
    judge: Judge | JudgeOfContests
    #: Provenance of its verdicts, without the backbone.
    provenance: Provenance
    setting: str = ""
    #: Calls of a model that a sample takes, in words.
    calls: str = "0"
    #: Questions of a sample, at most, of which each depends on the answers to those before it.
    rounds: int = 1
    #: Image tools may look at what models are shown.
    uses_tools: bool = False
    #: Calibration that adds a score.
    calibration: Calibration | None = None

    def by(self, backbone: str | None) -> Provenance:
        """Provenance of verdicts with a backbone, or None; VievalError for a
        calibration of another judge.
        """
        reader = ""
        if self.spec.reads_text:
            from vieval_plugin.backends.image_tools.text_reader import identity

            reader = identity()
        if backbone is None:
            backbone = self.spec.name
        provenance = replace(self.provenance, backbone=backbone, reader=reader)
        if self.calibration:
            self.calibration.require(provenance)
        return provenance

    @property
    def asks_a_model(self) -> bool:
        """Return whether it asks a backbone instead of only measuring."""
        return self.spec.pack is not None and not self.spec.scored

    def takes_apart(self, judged: Judged) -> bool:
        """Return whether it judges this candidate by candidate: it is a contest, and a good one,
        and the judge is of samples.
        """
        return (
            isinstance(judged, Contest)
            and self.spec.rates == "sample"
            and not fault(judged)
        )

    def program(self, judged: Judged) -> Program:
        """The judge's program; one that ends at once, `not_applicable`, where what is judged
        lacks what it needs.
        """
        if self.takes_apart(judged):
            return (yield from candidate_program(self.program, cast(Contest, judged)))
        if reason := missing_inputs_reason(self.spec, judged):
            # a benchmark's row without an output is one that it names no image of, and no
            # generator's failure
            is_failure = judged.id.benchmark == OWN and lacks_output_alone(
                self.spec, judged
            )
            return unjudged(
                Status.NO_IMAGE if is_failure else Status.NOT_APPLICABLE, reason
            )
        verdict = yield from self.judge(judged)  # type: ignore[arg-type]  # `missing_inputs_reason` has seen that it is what is judged
        if self.calibration is None:
            return verdict
        return replace(
            verdict, scores=self.calibration.added(verdict.scores, judged.kind)
        )


def _require_setting(spec: JudgeSpec, setting: str) -> None:
    if setting and setting not in spec.settings:
        settings = "it has no settings"
        if spec.settings:
            settings = f"known settings: {', '.join(spec.settings)}"
        raise VievalError(f"unknown setting {setting!r} of {spec.name}; {settings}")


def prepare(
    name: str,
    setting: str | None,
    options: Config,
    backbone: Backbone | None = None,
) -> PreparedJudge:
    """Build a judge, by its name or its file, in one of its settings (None or empty for its plain
    one) from the options.

    `backbone` is the model that a command names; it is only written down here. VievalError says
    what is missing.
    """
    spec = options.judges.narrowed(judge_registry.judge(name, options.judge_files))
    name = spec.name
    setting = setting or spec.plain
    _require_setting(spec, setting)
    judge_options = options.judges.options_of(spec)
    pack = spec.file
    if pack is None and spec.pack:
        pack = _pack(spec.pack(judge_options, setting))
        if pack.judge != name:
            raise VievalError(
                f"prompt pack {pack.name} is for {pack.judge}, not for {name}; change the "
                f"option judges.{name}.pack"
            )
    if pack:
        pack = replace(pack, reminders=options.judges.reminders)
    pack_fields = (pack.name, pack.hash) if pack else ("", "")
    if backbone:
        options = options.model_copy(
            update={"backbones": {**options.backbones, "judge": backbone}}
        )
    calibration = None
    if options.calibration:
        from vieval_plugin.run.calibration import read_calibration

        calibration = read_calibration(options.calibration)
    provenance = Provenance(
        name,
        tuple(spec.setting_labels(judge_options, setting)),
        spec.aspects,
        "",
        *pack_fields,
        options.hash,
        options=options.resolved(spec),
        calibration=calibration.described if calibration else (),
    )
    return PreparedJudge(
        spec,
        spec.build(judge_options, pack, setting),
        provenance,
        setting,
        "0" if spec.scored else spec.calls(judge_options, setting),
        spec.rounds(judge_options, setting),
        spec.uses_tools(judge_options, setting),
        calibration,
    )


def setting_of(source: Provenance) -> str:
    """The setting in which a judge gave earlier verdicts.

    Raises:
        VievalError: the judge is not known here; nothing of the files that results name for it is
            shown.
    """
    spec = judge_registry.judge_of_results(source.judge, source.options)
    if spec is None:
        files = ", ".join(map(str, source.options.get("judge_files") or ())) or "none"
        raise VievalError(
            f"unknown judge {source.judge!r} (judge files in the results: {files}); put "
            f"its file into the folder set by {judge_registry.FOLDER_VARIABLE}"
        )
    return next(
        (setting for setting in spec.settings if setting in source.settings), spec.plain
    )


@lru_cache(maxsize=8)
def _pack(name: str) -> Pack:
    pack = packs.load(name)
    require_known_format(pack)
    return pack
