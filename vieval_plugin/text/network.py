"""Proxies and certificate authorities, as the environment names them for every program."""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlunsplit

from vieval_plugin.text.errors import VievalError, system_reason
from vieval_plugin.text.redaction import redacted, register_secrets
from vieval_plugin.text.untrusted import PORTS, address_of

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Proxy:
    """Proxy that stands between this machine and an address."""

    #: Its address, without user and password.
    url: str
    #: Environment variable that names it.
    variable: str
    #: Host that is reached through it.
    host: str
    #: Headers for it, with its user and password.
    headers: Mapping[str, str]
    #: True where it makes a tunnel (https); else it reads requests itself.
    tunnels: bool

    @property
    def remedy(self) -> str:
        """The setting that avoids it."""
        return f"set NO_PROXY={self.host} to connect without {self.variable}"

    def request_arguments(self, headers: Mapping[str, str]) -> dict[str, Any]:
        """The arguments of a request of aiohttp with some headers; those for the proxy stay out
        of a tunnel.
        """
        if not self.tunnels:
            return {"proxy": self.url, "headers": {**headers, **self.headers}}
        return {
            "proxy": self.url,
            "proxy_headers": self.headers,
            "headers": headers,
        }

    def __str__(self) -> str:
        return f"the proxy {self.url}"


def proxy_for(url: str, environment: Mapping[str, str] = os.environ) -> Proxy | None:
    """The proxy to an address, by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`; None for
    a direct way.

    Names in small letters go before those in capitals. Loopback addresses never have a proxy.

    Args:
        url: an address of http or https.
        environment: the variables.

    Raises:
        VievalError: the variable holds something other than the address of an HTTP proxy.

    >>> proxy_for("https://api.example.com/v1", {"HTTPS_PROXY": "http://me:pw@proxy:3128"}).url
    'http://proxy:3128'
    >>> proxy_for("https://10.1.2.3/v1", {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.0/8"})
    """
    address = address_of(url)
    if address is None or address.scheme not in PORTS:
        return None
    scheme_variable = _first_set(f"{address.scheme}_proxy", environment)
    variable = scheme_variable or _first_set("all_proxy", environment)
    value = ""
    if variable:
        value = environment[variable].strip()
    if not value or _is_direct(address.host, address.port, environment):
        return None
    proxy = _parsed(value)
    if proxy is None:
        raise VievalError(
            f"{variable} must be the address of an HTTP proxy, "
            f"such as http://proxy:3128, got {redacted(value)}; "
            f"change it, or set NO_PROXY={address.host}"
        )
    bare, headers = proxy
    return Proxy(
        bare,
        variable,
        address.host,
        headers,
        tunnels=address.scheme == "https",
    )


def _first_set(name: str, environment: Mapping[str, str]) -> str:
    for variable in (name, name.upper()):
        if variable in environment:
            return variable
    return ""


def _parsed(value: str) -> tuple[str, dict[str, str]] | None:
    """A proxy's address without user and password, and the header that has them; None for
    another kind of proxy.
    """
    url = value
    if "://" not in value:
        url = f"http://{value}"
    address = address_of(url)
    if address is None or address.scheme not in PORTS:
        return None
    register_secrets("", (url,))
    bare = urlunsplit((address.scheme, address.server, "", "", ""))
    _, _, server_and_path = url.partition("://")
    server = server_and_path.partition("/")[0]
    login, at_sign, _ = server.rpartition("@")
    if not at_sign:
        return bare, {}
    name, _, password = login.partition(":")
    user = f"{unquote(name)}:{unquote(password)}"
    credentials = base64.b64encode(user.encode()).decode()
    return bare, {"Proxy-Authorization": f"Basic {credentials}"}


def _is_direct(
    host: str,
    port: int | None,
    environment: Mapping[str, str],
) -> bool:
    """Return whether no proxy is used to a host: one of this machine, or one that `NO_PROXY`
    lists.
    """
    ip = _ip_address(host)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if ip is not None and (ip.is_loopback or ip.is_unspecified):
        return True
    variable = _first_set("no_proxy", environment)
    if not variable:
        return False
    entries = environment[variable].replace(",", " ").split()
    return any(_lists(entry.lower(), host, port, ip) for entry in entries)


def _lists(
    entry: str,
    host: str,
    port: int | None,
    ip: IPAddress | None,
) -> bool:
    """Return whether an entry of `NO_PROXY` is a host: its name or number, a suffix, a range, or
    all.
    """
    if entry == "*":
        return True
    network = _network(entry)
    if ip is not None and network is not None:
        return ip in network
    address = address_of(f"//{entry}")
    if address is None or address.port not in (None, port):
        return False
    name = address.host.removeprefix("*").removeprefix(".")
    return host == name or host.endswith(f".{name}")


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _ip_address(host: str) -> IPAddress | None:
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip


def tls_context(ca_file: Path | None = None) -> ssl.SSLContext | None:
    """Certificate authorities that servers are checked by; None for those of the system alone.

    OpenSSL itself reads `SSL_CERT_FILE`.

    Args:
        ca_file: a PEM file of further authorities, None for that of `REQUESTS_CA_BUNDLE`.

    Raises:
        VievalError: the file or folder cannot be read as such.
    """
    bundle = os.environ.get("REQUESTS_CA_BUNDLE", "")
    path = ca_file
    if path is None and bundle:
        path = Path(bundle)
    if path is None:
        return None
    context = ssl.create_default_context()
    try:
        if path.is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except (OSError, ssl.SSLError) as error:
        name = "ca_file"
        if not ca_file:
            name = "REQUESTS_CA_BUNDLE"
        raise VievalError(
            f"{name} must be a PEM file of certificates, got {path} ({system_reason(error)})"
        ) from None
    return context
