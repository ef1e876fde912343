"""Remove keys and passwords, also those in addresses, from texts before they are shown
or stored.
"""

from __future__ import annotations

import base64
import itertools
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from html import unescape
from typing import Any
from urllib.parse import unquote

from vieval_plugin.text.errors import PROJECT

SECRET_NAME = re.compile(
    r"(^|[_-])(api_?key|key|secret|passw(or)?d|authorization|credentials?|token)$",
    re.IGNORECASE,
)
_is_secret = lru_cache(maxsize=4096)(SECRET_NAME.search)
_SHORTEST = 8  # anything shorter, such as EMPTY or none, is no secret, and may be part of any word
_ESCAPE = re.compile(r"""\\{1,4}(?:(?:u00|x)([\da-f]{2})|(["'/]))""", re.IGNORECASE)
_PAIR = re.compile(r"([^=&#]*=)?[^&#]+")
_API_VERSION = re.compile(r"api-version=[\w.-]{1,30}")  # Azure's, which is public
# a word; in a query also a value in quotes or brackets
_RUN = re.compile(
    r"""[^\s"<>?#]*[?#](?:[^\s"<>]|(?<==)(?:"\w[^"\s]*"|<\w[^<>\s]*>))*|[^\s"<>]+"""
)
# up to where a query, a fragment or, behind //, parameters such as ;key=value begin
_QUERY = re.compile(r"(?:[^/?#]|/(?!/))*//[^?#]*?;(?=[^;/?#=]+=)|[^?#]*[?#]")
# a user whose password holds blanks, quotes or brackets; digits before a slash are a port, unless a
# server follows the @ of one of the next two words; bounded, as many beginnings would each be read
# to the end of the text
_USER = re.compile(
    r"""//[^\s/:"<>]{0,300}:(?:(?!\d{1,5}/)(?:(?:[^\s@"<>]|["<>](?=\w)){0,300}[^\S\n](?:(?!//)[^"<>\n])*"""
    r"""|(?:[^\s"<>]|["<>](?=\w)){0,300})@"""
    r"""|\d{1,5}/[^\s"<>]{0,300}(?:[^\S\n][^\s"<>/]{1,300}){1,2}@(?=[^\s@/:"<>]+(?:/|:\d)))"""
)
_server_secrets: set[str] = set()


def register_secrets(key: str, urls: Iterable[str]) -> None:
    """Hide a server's key and the secrets in its addresses: users, passwords (also as they are
    sent) and queries.
    """
    secrets = {key}
    for url in urls:
        login = user_of(url)
        for user in (login, unquote(login)):
            password = user.partition(":")[2]
            credentials = base64.b64encode(user.encode()).decode()
            secrets |= {user, password, credentials}
        server_and_path = url.rpartition("@")[2]
        _, *pairs = re.split("[?#&]", server_and_path)
        secret_pairs = itertools.filterfalse(_API_VERSION.fullmatch, pairs)
        secrets.update(pair.rpartition("=")[2] for pair in secret_pairs)
    _server_secrets.update(item for item in secrets if len(item) >= _SHORTEST)


def user_of(url: str) -> str:
    """User and password of an address: all before its last @, as a password may hold any sign."""
    head = url.rpartition("@")[0]
    return head.partition("//")[2] or head


def redacted(text: str) -> str:
    """A text less the secrets of this process, and less user, password, fragment and values of the
    query of each address.

    The fragment of an address of our own documentation stays.

    >>> redacted("http://me:pass@host/v1?key=1 refused, and so did me:a/b?c@host")
    'http://host/v1?key=[removed] refused, and so did host'
    """
    without_secrets = remove_secrets(text)
    without_users = _USER.sub("//", without_secrets)
    return _RUN.sub(_redacted_word, without_users)


def remove_secrets(value: Any) -> Any:
    """A text, or JSON values, less the secrets of this process, escaped or not: models may quote
    addresses of their own.
    """
    return _less(value, _secrets())


def _less(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, dict):
        return {name: _less(item, secrets) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_less(item, secrets) for item in value]
    if not isinstance(value, str) or len(value) < _SHORTEST:
        return value
    unescaped = _ESCAPE.sub(_unescaped_sign, value)
    plain = unescape(unquote(unescaped))
    if any(plain.count(item) > value.count(item) for item in secrets):
        value = plain
    for item in secrets:
        value = value.replace(item, "[key]")
    return value


def _unescaped_sign(escape: re.Match[str]) -> str:
    return escape[2] or chr(int(escape[1], 16))


def _secrets() -> list[str]:
    # names first: looking up every value took a tenth of the time of a call to a server
    env_values = [os.environ[name] for name in os.environ if _is_secret(name)]
    env_secrets = {value for value in env_values if len(value) >= _SHORTEST}
    # the longest first, as one may be part of another
    return sorted(env_secrets | _server_secrets, key=len, reverse=True)


def _redacted_word(run: re.Match[str]) -> str:
    """A word as `_bare` has it, its signs decoded where an address would hide behind them."""
    plain = "".join(sign for sign in unquote(run[0]) if sign.isprintable())
    if "//" in plain:
        bare = _bare(plain)
        if bare != plain:
            return bare
    return _bare(run[0])


def _remove_value(pair: re.Match[str]) -> str:
    is_public = _API_VERSION.fullmatch(pair[0])
    if is_public:
        return pair[0]
    return f"{pair[1] or ''}[removed]"


def _bare(run: str) -> str:
    """An address without user, password, fragment and values of its query; other words, such as
    me@host, as they are.
    """
    scheme, slashes, tail = run.partition("//")
    if slashes:
        run = f"{scheme}//{tail.rpartition('@')[2]}"
    elif ":" in user_of(run).partition("/")[0]:
        run = run.rpartition("@")[2]
    is_ours = slashes and re.search(f"{PROJECT}/[^?#;]*#", run)
    mark = _QUERY.match(run)
    if mark is None or is_ours:
        return run
    start = mark.end()
    if not slashes and "=" not in run[start:]:
        return run
    end = len(run.rstrip(".,;:)}'"))
    query = run[start:end]
    return run[:start] + _PAIR.sub(_remove_value, query) + run[end:]
