"""Options as results carry them: less what may be a secret."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from vieval_plugin.text.redaction import SECRET_NAME, redacted

_REMOVED = "[removed]"
_FURTHER = re.compile(r"(^|_)(extra|headers|extra_body|model_args)$", re.IGNORECASE)
"""The options whose fields are a server's or a host's, so that nobody here knows which of them are secrets."""
_SHORTEST_KEY = 16
_HARMLESS = re.compile(
    "adapter|background|backend|chat_template|content|description|dtype|effort|enum|format|grammar|ignore|lora|modalities|"
    "guided_(choice|decoding_backend|grammar|regex)|mode|model|moderation|name|(negative_)?prompt|only|order|"
    "(output|response)_format|pattern|provider|quality|quantizations?|reasoning_effort|regex|required|role|sampler|"
    "scheduler|service_tier|size|sort|stop|stop_sequences|style|template|title|tool_choice|type|verbosity",
    re.IGNORECASE,
)
"""Fields of requests whose values may be long and are never secrets."""


def safe(value: Any, key: str = "", further: bool = False) -> Any:
    """JSON values of options without users and passwords in addresses, and without what is a secret by its name.

    Under `extra`, `headers` and `model_args` a text of 16 or more characters without spaces may be a secret whatever it
    is called, unless its field is known to hold none. Its digest stays, as two runs may differ in nothing else.

    >>> safe({"base_url": ["http://me:pass@host/v1"], "extra": {"x": "0123456789abcdef", "top_k": 5}})
    {'base_url': ['http://host/v1'], 'extra': {'x': '[removed 9f9f5111]', 'top_k': 5}}
    """
    further = further or bool(_FURTHER.search(key))
    if isinstance(value, dict):
        named = further and any(map(_names_secret, value.values()))  # {"name": "api_key", "value": ...}
        return {
            name: _REMOVED
            if SECRET_NAME.search(name) or (named and not _HARMLESS.fullmatch(name))
            else safe(item, name, further)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        named = further and any(map(_names_secret, value[:1]))
        return [_REMOVED if named and number else safe(item, key, further) for number, item in enumerate(value)]
    return _safe_text(value, key, further) if isinstance(value, str) else value


def _names_secret(value: Any) -> bool:
    return isinstance(value, str) and bool(SECRET_NAME.search(value))


def _safe_text(text: str, key: str, further: bool) -> str:
    words = text.split()
    if further and len(words) > 1 and SECRET_NAME.search(words[0].rstrip(":=")):  # Authorization: Bearer ...
        return f"{words[0]} {_REMOVED}"
    if (
        further
        and not _HARMLESS.fullmatch(key)
        and len(words) < 3
        and any(len(item) >= _SHORTEST_KEY for item in words)
    ):
        return f"{_REMOVED[:-1]} {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}]"
    return redacted(text) if further or "//" in text or key == "base_url" else text
