"""VIEScore: semantic consistency and perceptual quality by rubric, 0 to 10, the worst sub-score counts.

Source: Ku et al., VIEScore (ACL 2024). `SC = min(sub-scores)/10`, `PQ = min(sub-scores)/10`, `O = sqrt(SC * PQ)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vieval_plugin.errors import VievalError
from vieval_plugin.judges import rubric
from vieval_plugin.judges.protocol import Judge
from vieval_plugin.judges.rubric import OneShotExample, Rubric
from vieval_plugin.judges.spec import INPUTS, JudgeSpec, option, require_wording
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.scale import Scale

PLAIN, ONE_SHOT = "0shot", "1shot"
RUBRIC = Rubric(Scale("linear", 0.0, 10.0), {"SC": "min", "PQ": "min"}, "geometric_mean")


@dataclass(frozen=True)
class VIEScoreOptions:
    """Options of the judge."""

    pack: str = option("viescore/v1", "prompt pack: a built-in name or a folder (`vieval prompts list`)", folder=True)
    pack_1shot: str = option("viescore/v1", "prompt pack of the one-shot tasks", folder=True)
    examples: Mapping[str, OneShotExample] = option(
        {}, "one-shot examples by question: PQ, SC_tig, SC_tie, ... (images, scores, reasoning)"
    )


def build(options: VIEScoreOptions, wording: Pack, setting: str = PLAIN) -> Judge:
    """VIEScore with a prompt pack, in the setting `0shot` or `1shot`, as `rubric.judge` asks.

    Raises:
        VievalError: `1shot`, and a question of the pack has no example in the options.
    """
    require_wording(SPEC, wording, setting)
    examples = dict(options.examples) if setting == ONE_SHOT else {}
    if setting == ONE_SHOT and (missing := [key for key in wording.questions if key not in examples]):
        raise VievalError(
            f"the setting {ONE_SHOT} needs an example image and its scores from you for each question ({', '.join(missing)} "
            f"missing); set judges.{SPEC.name}.examples in the file that VIEVAL_CONFIG names (`vieval config` writes one)"
        )
    return rubric.judge(RUBRIC, wording, examples)


SPEC = JudgeSpec(
    name="viescore",
    title="VIEScore",
    aspects=("SC", "PQ", "O"),
    method="sub-scores from 0 to 10 by a rubric",
    needs=INPUTS,
    options=VIEScoreOptions,
    build=build,
    settings=(PLAIN, ONE_SHOT),
    pack=lambda options, setting: options.pack_1shot if setting == ONE_SHOT else options.pack,
    calls=lambda options, setting: "2",
)
