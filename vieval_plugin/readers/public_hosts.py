"""Names of hosts that lead to public addresses only: what a file of others names must not reach into a private
network.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


class NoPublicAddress(Exception):
    """A host's name leads to no public address."""


def public_connector() -> aiohttp.TCPConnector:
    """Connections to the public addresses of a name; an address that is given instead of a name is taken as it is."""
    import aiohttp

    class Public(aiohttp.ThreadedResolver):
        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[Any]:
            addresses = await super().resolve(host, port, family)
            public = [address for address in addresses if is_public(address["host"])]
            if not public:
                raise NoPublicAddress(f"{host} leads to a private address; name the address itself if that is meant")
            return public

    return aiohttp.TCPConnector(resolver=Public())


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public network.

    >>> is_public("192.168.0.1"), is_public("fe80::1%eth0"), is_public("8.8.8.8")
    (False, False, True)
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_global and not parsed.is_multicast
