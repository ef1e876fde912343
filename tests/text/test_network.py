"""Proxies by the environment's variables."""

import pytest

from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.network import proxy_for

PROXY = "http://proxy:3128"
API = "https://api.example.com/v1"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        (API, {}, None),
        (API, {"HTTPS_PROXY": PROXY}, PROXY),
        (API, {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        (API, {"HTTPS_PROXY": "https://proxy:3129/"}, "https://proxy:3129"),
        (API, {"HTTP_PROXY": PROXY}, None),
        ("http://api.example.com/v1", {"HTTP_PROXY": PROXY}, PROXY),
        (API, {"ALL_PROXY": PROXY}, PROXY),
        (API, {"ALL_PROXY": "http://other:1", "HTTPS_PROXY": PROXY}, PROXY),
        (API, {"HTTPS_PROXY": "http://other:1", "https_proxy": PROXY}, PROXY),
        (API, {"HTTPS_PROXY": PROXY, "https_proxy": ""}, None),
        # loopback addresses
        ("http://127.0.0.1:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://127.9.9.9:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://localhost:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://judge.localhost:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://[::1]:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://[::ffff:127.0.0.1]:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://0.0.0.0:8000/v1", {"HTTP_PROXY": PROXY}, None),
        ("http://127.0.0.1.example.com/v1", {"HTTP_PROXY": PROXY}, PROXY),
        # names and suffixes
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example.com"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "other.com, example.com"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.com"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example.com"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "EXAMPLE.com"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.com"}, PROXY),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example.com:443"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example.com:8443"}, PROXY),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "other.com", "no_proxy": "example.com"}, None),
        # ranges
        ("http://10.1.2.3/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, None),
        ("http://10.1.2.3/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, None),
        ("http://11.1.2.3/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, PROXY),
        ("http://[fd00::5]/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "fd00::/8"}, None),
        ("http://[fd00::5]/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "[fd00::5]"}, None),
        (API, {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8, :::, [::1"}, PROXY),
    ],
)  # fmt: skip
def test_the_proxy_of_an_address(url, environment, proxy):
    found = proxy_for(url, environment)
    assert (found and found.url) == proxy


def test_the_user_of_a_proxy_is_a_header_and_stands_in_no_text():
    found = proxy_for(API, {"HTTPS_PROXY": "http://me:p%40ss-word@proxy:3128"})
    assert dict(found.headers) == {"Proxy-Authorization": "Basic bWU6cEBzcy13b3Jk"}
    assert "word" not in f"{found.url}{found}{found.remedy}"


def test_another_kind_of_proxy_is_refused_with_the_way_around_it():
    with pytest.raises(
        VievalError,
        match=r"ALL_PROXY must .* got socks5://host:1080; .*NO_PROXY=api.example.com",
    ):
        proxy_for(API, {"ALL_PROXY": "socks5://me:pass-word@host:1080"})
