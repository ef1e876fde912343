"""Callers that a server heeds: those with its token, and no web page of another's in the user's
browser.

A page cannot set Host or Origin. Host says by which name the server was called, so that a name of
somebody else's that was made to lead here (DNS rebinding) is refused; Origin says which page asks.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import BasicAuth

from vieval_plugin.serve.protocols.protocol import RequestRefused
from vieval_plugin.text.errors import VievalError, docs_url
from vieval_plugin.text.untrusted import ParsedAddress, address_of

TOKEN_VARIABLE = "VIEVAL_SERVE_TOKEN"
_SHORTEST_TOKEN = 16
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SERVER = re.compile(
    r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?",
    re.IGNORECASE,
)  # host[:port], and nothing else
_SCHEME = "http://"


@dataclass(frozen=True)
class Guard:
    """Rules by which callers are told apart."""

    #: Names that the server may be called by.
    names: frozenset[str]
    #: Lets it be called by any number address, where it listens on more than loopback.
    any_address: bool = False
    #: Token that callers have to send, empty for none.
    token: str = field(default="", repr=False)

    def refusal(
        self,
        headers: Mapping[str, str],
        target: str = "/",
    ) -> RequestRefused | None:
        """Reason not to heed a request with these headers for a target; None for one that is
        heeded.
        """
        host = headers.get("Host", "")
        hosts = [host]
        if not target.startswith("/"):
            hosts.append(target.removeprefix(_SCHEME).partition("/")[0])
        for name in hosts:
            if (address := _server_of(name)) is None or not self._is_ours(address.host):
                return RequestRefused(
                    421,
                    f"unknown host {name[:100]!r}; pass --allow-host to allow it",
                )
        if (origin := headers.get("Origin")) is not None:
            page = None
            if origin.startswith(_SCHEME):
                page = _server_of(origin.removeprefix(_SCHEME))
            if page is None or page != _server_of(host):
                return RequestRefused(
                    403,
                    f"requests from {origin[:100]!r} are not allowed",
                )
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return RequestRefused(403, "requests from other sites are not allowed")
        if self.token and not self._is_known(headers.get("Authorization", "")):
            return RequestRefused(
                401,
                (
                    "missing or wrong token; send Authorization: Bearer TOKEN, or use "
                    "http://user:TOKEN@host as the address"
                ),
            )
        return None

    def _is_ours(self, host: str) -> bool:
        return host.lower().rstrip(".") in self.names or (
            self.any_address and is_number_address(host)
        )

    def _is_known(self, header: str) -> bool:
        scheme, _, token = header.partition(" ")
        try:
            if scheme.lower() == "bearer":
                token = token.strip()
            else:
                token = BasicAuth.decode(header, "utf-8").password
        except ValueError:
            return False
        return hmac.compare_digest(token.encode(), self.token.encode())


def _server_of(name: str) -> ParsedAddress | None:
    """The server that is called by `host[:port]`; None for any other text."""
    return address_of(f"{_SCHEME}{name}") if _SERVER.fullmatch(name) else None


def guard_of(
    host: str,
    hosts: tuple[str, ...],
    token: str,
    without_token: bool,
) -> Guard:
    """The rules of a server that listens on an address.

    Args:
        host: where it listens.
        hosts: further names of it.
        token: what callers have to send; on loopback it may be empty.
        without_token: that it may be empty anywhere.

    Raises:
        VievalError: an address that others can reach without a token, or a token that can be
            guessed.
    """
    if token and (
        len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable()
    ):
        raise VievalError(
            f"{TOKEN_VARIABLE} must contain at least {_SHORTEST_TOKEN} characters, all "
            "of them printable ASCII; use a random token"
        )
    loopback = is_loopback(host)
    if not (loopback or token or without_token):
        page = docs_url("tutorials/reward.md#who-may-call")
        raise VievalError(
            f"--host {host} is reachable from other machines; set {TOKEN_VARIABLE} to "
            f"require a token, or pass --no-token; see {page}"
        )
    machine_names = () if loopback else (socket.gethostname(), socket.getfqdn())
    names = frozenset(
        name.lower() for name in (*_LOOPBACK_NAMES, host, *machine_names, *hosts)
    )
    return Guard(names, not loopback, token)


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine alone."""
    return host == "localhost" or (
        is_number_address(host) and ipaddress.ip_address(host).is_loopback
    )


def is_number_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
