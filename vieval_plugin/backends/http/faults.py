"""Faults of a server: one reading of every sign of one, wherever it stands, as another try or a
refusal of some kind.

A sign is an HTTP status, an `error` in a body or in a choice, or the reason why an answer ended.
Types and codes are read before texts, as texts quote.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any, TypeGuard

from vieval_plugin.judges.protocol import Status
from vieval_plugin.text.redaction import redacted
from vieval_plugin.text.untrusted import address_of, retry_after
from vieval_plugin.text.yaml_json import JsonObject

_LONGEST, _SHORT = 300, 120  # characters of a server's sentence
_MOST_PARSED = 4000  # characters that are searched for keys
# what OpenRouter says of a provider whose own words are in `metadata`
_GENERIC = "provider returned error"


@dataclass(frozen=True)
class ErrorReport:
    """Error as a server describes it."""

    #: HTTP status, or the one that the error carries; 0 without one.
    code: int
    #: Its types and codes in lower case, without separators.
    types: tuple[str, ...]
    #: Its sentence in one line, without HTML and keys.
    message: str
    #: Field of the request that it is about; empty where it names none.
    parameter: str = ""


class Refused(Exception):
    """The server refused this one request for good: retrying cannot help."""

    def __init__(
        self,
        status: Status,
        kind: str,
        reason: str,
        code: int = 0,
        report: ErrorReport | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.kind = kind
        self.reason = reason
        self.code = code
        self.report = report


class Denied(Refused):
    """A refusal that need not be about this request: of a key, a model, an address; `ending`
    says so of them all.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        ending: str,
        is_about_key: bool = False,
    ) -> None:
        kind = "connection"
        if code:
            kind = f"HTTP {code}"
            reason = f"HTTP {code}: {reason}"
        super().__init__(
            Status.API_ERROR,
            kind,
            reason,
            code,
        )
        self.ending = ending
        self.is_about_key = is_about_key


class Again(Exception):
    """This try went wrong in a way that another may not; `wait` is what the server asked for."""

    def __init__(
        self,
        kind: str,
        reason: str,
        wait: float | None = None,
        limited: bool = False,
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.wait = wait
        self.limited = limited

    def after(self, sends: int) -> str:
        """Reason after a number of tries, which it states if there were several."""
        return self.reason if sends == 1 else f"{self.reason}, {sends} times"


@dataclass(frozen=True)
class _Family:
    """Signs of one kind of fault."""

    #: Parts of types and codes.
    types: tuple[str, ...]
    #: Words of a message, as a pattern.
    words: str
    #: HTTP statuses with which the words count; empty for any.
    codes: tuple[int, ...] = ()


_CALLER = (
    0,
    400,
    401,
    402,
    403,
    404,
    409,
    412,
    413,
    422,
)  # statuses that blame the request
_FAMILIES: Mapping[str, _Family] = {
    # OpenRouter's 404, whose text may speak of guardrails
    "route": _Family(
        (),
        (r"no (allowed )?(endpoints|providers)\b.{0,40}\b(matching|available|can "
        r"handle)\b|providers have been ignored"),
        _CALLER,
    ),
    "content filter": _Family(
        ("contentfilter", "contentpolicy", "responsibleai", "moderation", "sensitive", "datainspection", "safety",
         "prohibited", "invalidprompt", "guardrail"),
        r"content.?(filter|policy|management)|responsible.?ai|safety "
        r"(system|setting|reason|filter|polic)|moderation"
        r"|\bflagged\b|inappropriate content|prohibited.content|usage polic|sensitive "
        r"content|guardrail"
        r"|(blocked|declined) .*\b(safety|polic)",
    ),
    "no credit": _Family(
        ("insufficientquota", "insufficientuserquota", "billing", "budget", "payment", "balance", "arrear", "overdue",
         "credit"),
        r"(budget|credits?|balance|funds|quota|spend\w*)\b.{0,60}\b(exceeded|insufficient|too "
        r"low|exhausted|used up)"
        r"|(insufficient|exceeded|crossed|over|not enough|out of|no|used all( "
        r"available)?|requires? more)\W{1,3}"
        r"(\w+\W+)?(credits?|budget|balance|funds)\b|exceeded(token)?budget|spending "
        r"limit|payment required",
        _CALLER,
    ),
    "key": _Family(
        ("apikey", "authentication", "unauthenticated", "unauthorized", "nodbconnection", "invalidtoken"),
        r"(invalid|incorrect|missing|expired|unknown|wrong|revoked|no)\b.{0,20}\bapi.?key|api.?key\b.{0,20}"
        r"\b(invalid|not valid|incorrect|missing|expired|required|not "
        r"found|revoked)|authentication error"
        r"|invalid (authentication|bearer|token)|no connected db",
        _CALLER,
    ),
    "model": _Family(
        ("modelnotfound", "notfounderror", "modeldecommissioned", "deploymentnotfound", "invalidmodel"),
        r"model\b.{0,80}\b(not exist|not found|decommissioned|not a valid model|no longer "
        r"available)"
        r"|(invalid|unknown|no such) model|not a valid model",
        _CALLER,
    ),
    "too many images": _Family(
        (),
        r"too many images|(maximum|total) number of images|multiple images"
        r"|(at most|up to|maximum of|more than|only supports?) (\d+|one|a single) images?\b",
        (*_CALLER, 500),
    ),
    "too long": _Family(
        ("contextlength", "contextsize", "contextwindow", "requesttoolarge", "payloadtoolarge", "stringabovemax",
         "imagetoolarge"),
        r"context.?(length|size|window)|maximum context|too (long|large|many tokens)|input token"
        r"|image\b.{0,40}\bexceeds?|exceeds?\b.{0,60}\b(\d+ ?[kmg]i?b\b|bytes|pixels)",
        _CALLER,
    ),
}  # fmt: skip
# what OpenAI says of log-probabilities of models that think
_FIELD_DENIED = re.compile(
    r"not allowed to (request|use|set) \w*logprobs", re.IGNORECASE
)
_DAILY = re.compile(r"per.?day|daily", re.IGNORECASE)
CONTEXT = re.compile(r"context.?(length|size|window)|maximum context", re.IGNORECASE)
_NO_IMAGES = re.compile(
    r"no endpoints\b.{0,40}\b(image|vision)", re.IGNORECASE
)  # OpenRouter's 404
_UNABLE = re.compile(r"\bnot support|n't support|unsupported|mmproj", re.IGNORECASE)
_REACHED = re.compile(
    r"limit was reached|max_\w*tokens\b.{0,40}\breached", re.IGNORECASE
)
_KEY_VARIABLES = (
    "AZURE_OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "LITELLM_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "DASHSCOPE_API_KEY", "XAI_API_KEY", "GROQ_API_KEY",
    "TOGETHER_API_KEY", "FIREWORKS_API_KEY", "HF_TOKEN",
)  # fmt: skip
#: Remedy for a refused key.
KEY_REMEDY = (
    "set OPENAI_API_KEY, or the variable that api_key_env names, to the key; set api_key_header "
    "if the service uses a header other than Authorization"
)
#: Words of a message about a field that is not supported, or has an unsupported value.
UNSUPPORTED = re.compile(
    r"support|deprecat|\bonly\b|not "
    r"(allow|permit|available|accept|enabl|recogni|compatib)|unrecogni|unknown|unexpected"
    r"|extra (inputs|fields)|invalid|must be|should be|less than|greater than|at "
    r"most|between|exceed|cannot|can't"
    r"|allowed|too (large|high|big|small)|maximum|minimum|removed|expected",
    re.IGNORECASE,
)


def fault_of(
    code: int,
    body: bytes | bytearray,
    headers: Mapping[str, str],
    url: str,
) -> Again | Refused:
    """The fault of a response that is not 200; `url` is the base address that was called."""
    if 300 <= code < 400:
        where = _redirect_target(url, headers.get("Location", ""))
        target = f" to {where}" if where else ""
        reason = f"a redirect{target}, which is not followed"
        return Denied(
            code,
            reason,
            (
                f"{redacted(url)} responds with HTTP {code} ({reason}); set base_url to the "
                "final address"
            ),
        )
    return _fault(
        _report(code, parsed_json(body), body),
        headers,
        url,
    )


def fault_in(answer: JsonObject, url: str) -> Again | Refused | None:
    """The fault that the body of a response with status 200 carries, None where it carries none."""
    choice = first_choice(answer)
    for holder in (answer, {"error": choice.get("error")}):
        if error := holder.get("error"):
            return _fault(
                _report(_code_of(error), holder, b""),
                {},
                url,
            )
    for end in _ends(answer, choice):
        if any(word in end for word in _SAFETY_ENDS):
            return Refused(
                Status.REFUSAL,
                "content filter",
                f"the server's content filter stopped the answer ({end})",
            )
        if any(word in end for word in _BROKEN_ENDS):
            return Again("server error", f"the server ended the answer early ({end})")
    return None


# of Gemini's finish and block reasons, and what others call the same
_SAFETY_ENDS = (
    "content_filter", "content-filter", "safety", "prohibited", "blocklist", "spii", "recitation", "sensitive",
    "guardrail", "refusal", "moderation", "toxic", "policy", "block_reason",
)  # fmt: skip
_BROKEN_ENDS = (
    "error", "abort", "cancel", "insufficient", "malformed", "other", "overload", "timeout", "fail", "unspecified",
    "language",
)  # fmt: skip


def _ends(answer: JsonObject, choice: JsonObject) -> Iterator[str]:
    """The reasons why an answer ended or was never begun, in lower case."""
    for field in ("finish_reason", "native_finish_reason", "stop_reason"):
        if isinstance(reason := choice.get(field), str):
            yield reason.lower().removeprefix("finishreason.")
    for field in ("promptFeedback", "prompt_feedback"):
        feedback = json_object(answer.get(field))
        if reason := feedback.get("blockReason") or feedback.get("block_reason"):
            yield f"block_reason {reason}".lower()


def first_choice(answer: JsonObject) -> JsonObject:
    """The choice of an answer, empty if missing."""
    choices = answer.get("choices")
    return json_object(choices[0] if isinstance(choices, list) and choices else None)


# a kind's answer without a message, its problem and its remedy
_DENIALS = {
    "no credit": (
        "no credit",
        ": this key's account has no credit left",
        "add credit",
    ),
    "key": ("refused", " refuses the key", KEY_REMEDY),
    "route": (
        "",
        " has no provider for this model on your account",
        "change your account settings, or use another model",
    ),
    "model": (
        "not found",
        ": model or address not found",
        "check the model name and the address, which ends in /v1 for most servers "
        "(not for Azure and Gemini)",
    ),
    "daily limit": ("", ": daily limit reached", "run again tomorrow"),
}
_OVERSIZES = {
    "too many images": (
        "too many images in one request (raise the server's limit, such as vLLM's "
        "--limit-mm-per-prompt, or use a judge that sends one image)"
    ),
    "too long": (
        "the request is too long for the server (lower max_pixels of the backbone, or "
        "serve the model with a longer context)"
    ),
}


def _fault(
    report: ErrorReport, headers: Mapping[str, str], url: str
) -> Again | Refused:
    """The fault that an error is: of a kind that its types name, else of one that its words do,
    else by its status.
    """
    code = report.code
    message = report.message
    server = redacted(url)
    status = f"HTTP {code}" if code else "error"
    kind = _kind(report)
    text = f"{status}: {message}" if message else status
    if kind == "content filter":
        return Refused(
            Status.REFUSAL,
            kind,
            f"the server's content filter blocked the request: {message or status}",
            code,
        )
    if kind in _DENIALS:
        summary, problem, remedy = _DENIALS[kind]
        return Denied(
            code,
            message or summary,
            f"{server}{problem} ({text}); {remedy}",
            is_about_key=kind == "key",
        )
    wait = retry_after(headers.get("Retry-After"))
    if kind == "rate limit":
        return Again(
            kind,
            f"too many requests ({text})",
            wait,
            limited=True,
        )
    if kind == "server error":
        return Again(kind, f"{status}: {message[:_SHORT]}" if message else status, wait)
    if kind in _OVERSIZES:
        text = f"{_OVERSIZES[kind]}: {message or status}"
    return Refused(
        Status.API_ERROR,
        kind or status,
        text,
        code,
        report,
    )


def _has_type(report: ErrorReport, words: Iterable[str]) -> bool:
    return any(word in name for name in report.types for word in words)


def _kind(report: ErrorReport) -> str:
    """The kind of an error, empty for a refusal of none."""
    code = report.code
    message = report.message
    is_limit = code == 429 or _has_type(report, ("ratelimit", "throttl"))
    for kind, family in _FAMILIES.items():
        if _has_type(report, family.types):
            return kind
    if is_limit and _DAILY.search(message):
        return "daily limit"
    if code in (400, 422) and names_unsupported(report) and not CONTEXT.search(message):
        return ""
    if code == 403 and _FIELD_DENIED.search(message):
        return ""
    if code in (400, 422) and _REACHED.search(message):
        return "cut"
    for kind, family in _FAMILIES.items():
        if (not family.codes or code in family.codes) and re.search(
            family.words,
            message,
            re.IGNORECASE,
        ):
            return kind
    # LiteLLM's router answers a budget of a provider that is spent with 429
    if is_limit:
        is_spent = re.search(r"(exceeded|crossed)\W{1,3}budget", message, re.IGNORECASE)
        return "no credit" if is_spent else "rate limit"
    if _is_unable(code, message):
        return ""
    if code in (402, 401, 403, 404, 413):
        return {402: "no credit", 404: "model", 413: "too long"}.get(code, "key")
    return "server error" if code >= 500 or code in (0, 408) else ""


def _is_unable(code: int, message: str) -> bool:
    """Return whether a server says that its model cannot take such a request."""
    if code == 404:
        return bool(_NO_IMAGES.search(message))
    return (code >= 500 or code == 0) and bool(_UNABLE.search(message))


_UNSUPPORTED_TYPES = (
    "unsupported",
    "unknownparameter",
    "extraforbidden",
    "invalidparameter",
)


def names_unsupported(report: ErrorReport) -> bool:
    """Return whether an error is about one field of the request, which or whose value is not
    supported.
    """
    types = " ".join(report.types)
    is_typed = any(word in types for word in _UNSUPPORTED_TYPES)
    is_content = report.parameter.startswith(
        ("messages", "model", "input", "prompt", "image")
    )
    if not report.parameter or is_content:
        return False
    return is_typed or bool(UNSUPPORTED.search(report.message))


def key_hint() -> str:
    """A remedy where no key was sent: the variable of another client that may hold it; empty
    where none is set.
    """
    for name in _KEY_VARIABLES:
        if os.environ.get(name):
            return (
                f"; {name} is set, so set api_key_env to {name}, or copy its value to "
                "OPENAI_API_KEY"
            )
    return ""


def json_object(value: Any) -> JsonObject:
    """A JSON object, an empty one for an invalid value."""
    return value if isinstance(value, dict) else {}


def parsed_json(body: str | bytes | bytearray) -> Any:
    """A document of JSON, None if it is invalid."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _report(code: int, document: Any, body: bytes | bytearray) -> ErrorReport:
    """An error as its body describes it: an object with `error`, one in a list, FastAPI's
    `detail`, or a text.
    """
    if isinstance(document, list) and document:
        document = document[0]
    fields = json_object(document)
    error = fields.get("error")
    described = error if isinstance(error, dict) else fields
    inner_message = described.get("message")
    if isinstance(inner_message, str) and isinstance(
        nested := parsed_json(inner_message), dict
    ):
        return _report(code, nested, body)
    if isinstance(inner_message, dict):
        return _report(code, inner_message, body)
    if isinstance(inner_message, list):
        fields = {"detail": inner_message}
    error = fields.get("error")
    error = fields if error in (None, True, False) else error
    if not isinstance(error, dict) or not error:
        if not isinstance(error, str) or not error:
            error = body[:_MOST_PARSED].decode(errors="replace")
        return ErrorReport(code, (), _sentence(error))
    types = [error.get(name) for name in ("type", "code", "status", "reason")]
    inner = json_object(error.get("innererror"))
    metadata = error.get("metadata")
    parameter = error.get("param")
    types.append(inner.get("code"))
    text = next(filter(_is_text, (error.get("message"), error.get("error"))), "")
    if isinstance(detail := error.get("detail"), (str, list)):
        text, parameter = _detail_text(detail)
    if isinstance(metadata, dict):
        reasons = metadata.get("reasons")
        types += ["moderation"] if reasons and "flagged" in str(metadata) else []
        raw = metadata.get("raw")
        if raw and _GENERIC in text.lower():
            if isinstance(raw, str) and isinstance(nested := parsed_json(raw), dict):
                return _report(code, nested, body)
            text = str(raw)
    names = tuple(
        re.sub(r"[^a-z0-9]", "", name.lower()) for name in filter(_is_text, types)
    )
    word = error.get("code")
    ending = ""
    if _is_text(word) and not word.isdecimal() and word not in text:
        ending = f" ({word})"
    sentence = _sentence(f"{text[:_MOST_PARSED]}{ending}")
    is_named = _is_text(parameter) and parameter not in ("None", "null")
    return ErrorReport(code, names, sentence, str(parameter) if is_named else "")


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str)


def _detail_text(detail: str | list[Any]) -> tuple[str, str]:
    """The sentence and the field of FastAPI's list of errors, less the input that it quotes."""
    if isinstance(detail, str):
        return detail, ""
    texts = []
    fields = []
    for entry in detail:
        if isinstance(entry, dict):
            location = [str(part) for part in entry.get("loc") or () if part != "body"]
            texts.append(f"{'.'.join(location)}: {entry.get('msg')}")
            fields += location[:1]
    return "; ".join(texts), next(iter(fields), "")


def _code_of(error: Any) -> int:
    """The HTTP status that an error carries, 0 for none."""
    if not isinstance(error, dict):
        return 0
    for name in ("code", "status", "status_code"):
        text = str(error.get(name))
        if text.isdecimal() and len(text) == 3 and 400 <= int(text) < 600:
            return int(text)
    return 0


def _sentence(text: str) -> str:
    """A text in one line, less keys and HTML; of a page its title."""
    if re.match(r"\s*<(!doctype|html|\?xml|head|body)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        text = unescape(title[1]) if title else ""
    words = re.sub(r"</?[a-zA-Z][^>]{0,200}>", " ", text).split()
    return redacted(" ".join(words))[:_LONGEST]


def _redirect_target(url: str, location: str) -> str:
    """The target of a redirect, less what may be a secret: user, query and fragment."""
    target = address_of(location, f"{url}/") if location else None
    if target is None:
        return ""
    address = f"{target.scheme}://{target.server}{target.path}"
    return redacted(address)[:200] if address.isprintable() else ""
