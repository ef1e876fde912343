"""Words for the codes of task types and aspects."""

from __future__ import annotations

ASPECTS = {"SC": "semantic consistency", "PQ": "perceptual quality", "O": "overall"}
TASK_TYPES = {
    "tig": "text-guided generation",
    "tie": "text-guided editing",
    "mie": "mask-guided editing",
    "sdig": "subject-driven generation",
    "sdie": "subject-driven editing",
    "mcic": "multi-concept composition",
    "cig": "control-guided generation",
}


def task_type(code: str) -> str:
    """A task type in words; a code that is none of the seven stays as it is.

    >>> task_type("tie"), task_type("drawbench")
    ('text-guided editing', 'drawbench')
    """
    return TASK_TYPES.get(code, code)


def heading_words(heading: str) -> str:
    """A breakdown's heading in words: what code and files call a kind is a task type.

    >>> heading_words("kind"), heading_words("category")
    ('task type', 'category')
    """
    return "task type" if heading == "kind" else heading
