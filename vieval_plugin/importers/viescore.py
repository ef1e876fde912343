"""Builds a user's prompt pack from the VIEScore authors' wording: their repository's text files, or
their logs.

Their wording stays theirs: it is read from a checkout (or from results) that the user has, into a
folder of the user's.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from vieval_plugin.benchmarks import registry as benchmark_registry
from vieval_plugin.importers.importing import (
    jinja_template,
    question_of,
    raw,
    write_pack,
)
from vieval_plugin.importers.python_texts import Texts
from vieval_plugin.prompts.packs import built_in, load
from vieval_plugin.text.errors import VievalError, system_reason
from vieval_plugin.text.yaml_json import read_json

_PLACEHOLDER = re.compile("<(prompt|instruction|subject)>")
_VARIABLES = {
    "Text Prompt": "prompt",
    "Editing instruction": "instruction",
    "Subject": "subject",
}
_VARIABLE_LINE = re.compile(f"^({'|'.join(_VARIABLES)}): (.*)$", re.MULTILINE)

# The files whose texts, joined by line breaks after the context, make a question.
_RULES = {
    "SC_tig": ("one_image_gen_rule.txt", "t2i_rule_SC.txt"),
    "SC_tie": ("two_image_edit_rule.txt", "tie_rule_SC.txt"),
    "SC_mie": ("two_image_edit_rule.txt", "mie_rule_SC.txt"),
    "SC_cig": ("control_image_gen_rule.txt", "cig_rule_SC.txt"),
    "SC_sdig": ("subject_image_gen_rule.txt", "sdig_rule_SC.txt"),
    "SC_sdie": ("subject_image_edit_rule.txt", "sdie_rule_SC.txt"),
    "SC_mcic": ("multi_subject_image_gen_rule.txt", "msdig_rule_SC.txt"),
    "PQ": ("rule_PQ.txt",),
}


def import_wording(source: Path, to: Path, context: str | None = None) -> list[Path]:
    """Write packs of the authors' wording below `to` and return their folders.

    `source` is a checkout of their repository (folders `0shot` and `1shot` are made, as far as it
    has both) or a folder of their results, whose `prompt_input` texts are read (one folder,
    `logged`). `context` names the context file of a checkout (context.txt). Raises VievalError
    naming the file that is missing; nothing half-written is left.

    The packs send the text first, as the authors' code does to GPT-4v and GPT-4o. To Gemini and
    MiniCPM-V it sends the images first.
    """
    if not source.is_dir():
        raise VievalError(
            f"{source}: no such folder; pass a checkout of the authors' repository or a folder "
            "of their results"
        )
    logged = {
        part: source / folder
        for folder, (_, part) in benchmark_registry.folders().items()
        if (source / folder).is_dir()
    }
    if logged:
        return [
            _write(
                to / "logged",
                "viescore/logged",
                ("0shot", "1shot"),
                _log_questions(source, logged),
            )
        ]
    pack_folders = []
    for setting in ("0shot", "1shot"):
        folders = sorted(
            path for path in source.rglob(f"prompts_{setting}") if path.is_dir()
        )
        if folders:
            pack_folders.append(
                _write(
                    to / setting,
                    f"viescore/authors-{setting}",
                    (setting,),
                    _checkout_questions(folders, context or "context.txt"),
                )
            )
    if not pack_folders:
        raise VievalError(
            f"{source}: no subfolder prompts_0shot or prompts_1shot; pass a checkout of the "
            "authors' repository"
        )
    return pack_folders


def _checkout_questions(folders: list[Path], context: str) -> dict[str, str]:
    """The questions of the first folder that has them all beside a context file; else say what
    the best one lacks.
    """
    incomplete = []
    needed = set(chain(*_RULES.values()))
    for folder in folders:
        contexts = filter(Path.is_file, (folder / context, folder.parent / context))
        opening = next(contexts, None)
        missing = sorted(file for file in needed if not (folder / file).is_file())
        if opening and not missing:
            start = _text(opening)
            return {
                key: jinja_template(
                    "",
                    "\n".join([start, *(_text(folder / file) for file in rule)]),
                    _PLACEHOLDER,
                    {name: f"{{{{ {name} }}}}" for name in _VARIABLES.values()},
                )[0]
                for key, rule in _RULES.items()
            }
        missing += [] if opening else [context]
        incomplete.append((len(missing), folder, missing))
    _, folder, missing = min(incomplete)
    raise VievalError(
        f"{folder}: {', '.join(missing)} missing; restore the files from the authors' repository"
    )


def _log_questions(results: Path, logged: Mapping[str, Path]) -> dict[str, str]:
    """The questions as they stand in results; of several wordings of one question, the one most
    often used.
    """
    prompts: dict[str, list[str]] = defaultdict(list)
    for kind, folder in logged.items():
        for aspect, key in (("SC", f"SC_{kind}"), ("PQ", "PQ")):
            for path in sorted(folder.glob(f"*/{aspect}.json")):
                prompts[key] += _prompts_of(path)
    missing = [key for key in _RULES if not prompts[key]]
    if missing:
        raise VievalError(
            f"{results}: no prompt_input for {', '.join(missing)}; pass the results "
            "of all seven tasks"
        )
    return {
        key: Counter(_add_variables(prompts[key])).most_common(1)[0][0]
        for key in _RULES
    }


def _prompts_of(path: Path) -> list[str]:
    try:
        rows = read_json(_text(path)).values()
        return [row["prompt_input"].strip() for row in rows if "prompt_input" in row]
    except (ValueError, AttributeError, TypeError):
        raise VievalError(
            f"{path}: must be the authors' JSON, an object of rows with prompt_input; restore it"
        ) from None


def _add_variables(prompts: list[str]) -> list[str]:
    """Prompts as templates: a line such as `Subject: backpack` becomes a variable unless it is
    the same in all.
    """
    constant = set.intersection(
        *({m.group() for m in _VARIABLE_LINE.finditer(prompt)} for prompt in prompts)
    )

    def template(prompt: str) -> str:
        pieces = []
        end = 0
        for match in _VARIABLE_LINE.finditer(prompt):
            if match.group() not in constant:
                pieces += [
                    raw(prompt[end : match.start(2)]),
                    f"{{{{ {_VARIABLES[match.group(1)]} }}}}",
                ]
                end = match.end(2)
        return "".join([*pieces, raw(prompt[end:])])

    return [template(prompt) for prompt in prompts]


def _write(folder: Path, name: str, settings: tuple[str, ...], texts: Texts) -> Path:
    ours = load(built_in("viescore")[-1]).questions
    manifest = {
        "judge": "viescore",
        "name": name,
        "settings": list(settings),
        "order": "text_first",
        "questions": {key: question_of(ours[key], key) for key in texts},
    }
    return write_pack(folder, manifest, texts)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VievalError(f"{path}: cannot be read ({system_reason(error)})") from None
