"""VIEScore: semantic consistency and perceptual quality by rubric, 0 to 10, the worst sub-score
counts.

Source: Ku et al., VIEScore (ACL 2024). `SC = min(sub-scores)/10`, `PQ = min(sub-scores)/10`, `O =
sqrt(SC * PQ)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from vieval_plugin.judges import rubric
from vieval_plugin.judges.conversation import turn_units
from vieval_plugin.judges.protocol import Judge
from vieval_plugin.judges.rubric import OneShotExample, Rubric
from vieval_plugin.judges.spec import INPUTS, Export, JudgeSpec, option, require_wording
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.prompts.scale import Scale
from vieval_plugin.text.errors import VievalError

PLAIN = "0shot"
ONE_SHOT = "1shot"
PQ_INPUTS = "pq_inputs"
TEXT_FIRST = "text_first"
RUBRIC = Rubric(
    Scale("linear", 0.0, 10.0),
    {"SC": "min", "PQ": "min"},
    "geometric_mean",
)


@dataclass(frozen=True)
class VIEScoreOptions:
    """Options of the judge."""

    pack: str = option(
        "viescore/v1",
        "prompt pack: a name from `vieval prompts list`, or a folder",
        folder=True,
    )
    examples: Mapping[str, OneShotExample] = option(
        {},
        "one-shot examples by question: PQ, SC_tig, SC_tie, ... (images, scores, reasoning)",
    )


def build(
    options: VIEScoreOptions,
    wording: Pack,
    setting: str = PLAIN,
    score_rubric: Rubric = RUBRIC,
) -> Judge:
    """VIEScore with a prompt pack, in the setting `0shot`, `1shot`, `pq_inputs` or `text_first`,
    as `rubric.judge` asks.

    `text_first` asks in the words of `0shot`, and shows the images behind them.

    Raises:
        VievalError: `1shot`, and a question of the pack has no example in the options; or the pack
            does not word what is asked for.
    """
    if setting == TEXT_FIRST:
        wording = wording.text_first()
        setting = PLAIN
    require_wording(SPEC, wording, setting)
    if setting == PQ_INPUTS:
        wording.require_questions([PQ_INPUTS], f"the setting {PQ_INPUTS}")
    wording = _add_inputs(wording, setting == PQ_INPUTS)
    examples = dict(options.examples) if setting == ONE_SHOT else {}
    questions = [
        key
        for key in wording.questions
        if key.partition("_")[0] in score_rubric.combine
    ]
    missing = ", ".join(key for key in questions if key not in examples)
    if setting == ONE_SHOT and missing:
        raise VievalError(
            f"the setting {ONE_SHOT} requires an example image with scores for each "
            f"question (missing: {missing}); set judges.{SPEC.name}.examples in the "
            "options file (`vieval config` prints one)"
        )
    return rubric.judge(score_rubric, wording, examples)


def _add_inputs(wording: Pack, has_inputs: bool) -> Pack:
    """The pack with its question about PQ for each kind: with the images that the question about
    SC has, where shown.
    """
    questions = dict(wording.questions)
    question = questions.pop(PQ_INPUTS, None)
    if has_inputs and question:
        for kind in INPUTS:
            if f"SC_{kind}" in questions:
                images = questions[f"SC_{kind}"].images
                questions[f"PQ_{kind}"] = replace(question, images=images)
    return replace(wording, questions=questions)


SPEC = rubric.rubric_spec(
    JudgeSpec(
        name="viescore",
        title="VIEScore",
        aspects=RUBRIC.aspects,
        method="sub-scores from 0 to 10 by a rubric",
        needs=INPUTS,
        options=VIEScoreOptions,
        build=build,
        settings=(PLAIN, ONE_SHOT, PQ_INPUTS, TEXT_FIRST),
        pack=lambda options, setting: options.pack,
        export=Export(turn_units),
    ),
    RUBRIC,
    lambda score_rubric: partial(build, score_rubric=score_rubric),
)
