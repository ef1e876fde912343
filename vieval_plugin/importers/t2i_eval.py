"""Builds a user's prompt pack from the T2I-Eval authors' wording: the constants of their Python
sources, never executed.

Their fine-tuned models answer in Markdown and were trained with the image in every prompt that
scores; the pack says so.
"""

from __future__ import annotations

import contextlib
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vieval_plugin.importers import python_texts
from vieval_plugin.importers.importing import (
    raw,
    require_checkout,
    unexpected,
    write_pack,
)
from vieval_plugin.text.errors import VievalError

# Which constant words which question; those on looks come with and without a reference image.
_CONSTANTS = {
    "extraction_with_captions": "EXTRACT_TEMPLATE",
    "appearance_explanation": "{}_APPEARANCE_ANSWER_TEMPLATE_STAGE_1",
    "appearance_score": "{}_APPEARANCE_ANSWER_TEMPLATE_STAGE_2",
    "intrinsic_answer": "INTRINSIC_ANSWER_TEMPLATE",
    "intrinsic_explanation": "INTRINSIC_EVAL_TEMPLATE_STAGE_1",
    "intrinsic_score": "INTRINSIC_EVAL_TEMPLATE_STAGE_2",
    "relationship_answer": "RELATIONSHIP_ANSWER_TEMPLATE",
    "relationship_explanation": "RELATIONSHIP_EVAL_TEMPLATE_STAGE_1",
    "relationship_score": "RELATIONSHIP_EVAL_TEMPLATE_STAGE_2",
    "appearance_summary": "APPEARANCE_SUMMARIZE_TEMPLATE_STAGE_1",
    "appearance_summary_score": "APPEARANCE_SUMMARIZE_TEMPLATE_STAGE_2",
    "intrinsic_summary": "INTRINSIC_SUMMARIZE_TEMPLATE_STAGE_1",
    "intrinsic_summary_score": "INTRINSIC_SUMMARIZE_TEMPLATE_STAGE_2",
    "relationship_summary": "RELATIONSHIP_SUMMARIZE_TEMPLATE_STAGE_1",
    "relationship_summary_score": "RELATIONSHIP_SUMMARIZE_TEMPLATE_STAGE_2",
    "overall": "MERGE_SUMMARIZE_TEMPLATE_STAGE_1",
    "overall_score": "MERGE_SUMMARIZE_TEMPLATE_STAGE_2",
}
_REFERENCES = ("REF_BASED", "REF_FREE")
_FIELDS = {
    "text_prompt": "{{ prompt }}",
    "question": "- question: {{ question }}",
    "answer": "- question: {{ question }}\n- answer: {{ answer }}",
    "question_and_exp": "- question: {{ question }}\n- explanation: {{ explanation }}",
    "answer_and_exp": (
        "- question: {{ question }}\n- answer: {{ answer }}\n- explanation: {{ explanation }}"
    ),
    "structure_info": "{{ structure_info }}",
    "eval_result": (
        "{{ results }}{% if summaries is defined %}\n# Overall Evaluation\n{{ "
        "summaries }}{% endif %}"
    ),
}
_FIELDS["eval_result_and_exp"] = (
    f"{_FIELDS['eval_result']}\n# Overall Evaluation\n- explanation: {{{{ explanation }}}}"
)
_PLACEHOLDER = "<ImagePlaceholder>"


def import_wording(source: Path, to: Path, context: str | None = None) -> list[Path]:
    """Write a pack of the authors' wording below `to` and return its folder, for individual mode
    without ablations.

    `source` is a checkout of their repository. Raises VievalError naming the constant that is
    missing or cannot be read; nothing half-written is left.

    Images come first: the authors' texts have places for them, which are left out.
    """
    require_checkout(source, context)
    author_texts: dict[str, str] = {}
    for file in sorted(source.rglob("*.py")):
        with contextlib.suppress(VievalError):  # a file of other things
            author_texts = python_texts.read(file, author_texts)[1]
    needed = set[str]()
    for pattern in _CONSTANTS.values():
        needed.update(pattern.format(reference) for reference in _REFERENCES)
    missing = sorted(needed - set(author_texts))
    if missing:
        raise unexpected(source, f"the Python files have no text {', '.join(missing)}")
    texts = {
        key: _template(author_texts, pattern) for key, pattern in _CONSTANTS.items()
    }
    questions = {
        key: _question(key, author_texts[pattern.format("REF_BASED")])
        for key, pattern in _CONSTANTS.items()
    }
    manifest = {
        "judge": "t2i_eval",
        "name": "t2i_eval/authors",
        "settings": ["full"],
        "replies": "markdown",
        "questions": questions,
    }
    return [write_pack(to / "authors", manifest, texts)]


def _question(key: str, wording: str) -> dict[str, Any]:
    """Manifest entry of a question of the pack; the image is shown where the wording has a place
    for one.
    """
    images = ["output"] if _PLACEHOLDER in wording or key.endswith("_answer") else []
    if images and key.startswith("appearance") and "summary" not in key:
        images.append("reference")
    return {
        "template": f"{key}.jinja",
        "images": images,
        "scores": ["score"] if key.endswith("score") else [],
    }


def _template(author_texts: Mapping[str, str], pattern: str) -> str:
    based, free = (
        _jinja_template(author_texts[pattern.format(reference)], pattern)
        for reference in _REFERENCES
    )
    return (
        free
        if based == free
        else f"{{% if with_reference %}}{based}{{% else %}}{free}{{% endif %}}"
    )


def _jinja_template(text: str, name: str) -> str:
    """A text for str.format as a Jinja template; the places of images go, they are shown before
    the text.
    """
    pieces = []
    for literal, field, _, _ in string.Formatter().parse(
        text.replace(_PLACEHOLDER, "")
    ):
        pieces.append(raw(literal))
        if field is not None:
            if field not in _FIELDS:
                raise unexpected(name, f"has an unknown placeholder {field!r}")
            pieces.append(_FIELDS[field])
    return "".join(pieces).strip()
