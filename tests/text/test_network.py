"""Proxies by the environment's variables."""

import pytest

from tests.refusals import refuses
from tests.tables import table
from vieval_plugin.text.network import proxy_for

API = "https://api.example.com/v1"


@pytest.mark.parametrize(*table("proxies.jsonl"))
def test_the_proxy_of_an_address(url, environment, proxy):
    found = proxy_for(url, environment)
    assert (found and found.url) == proxy


def test_the_user_of_a_proxy_is_a_header_and_stands_in_no_text():
    found = proxy_for(API, {"HTTPS_PROXY": "http://me:p%40ss-word@proxy:3128"})
    assert dict(found.headers) == {"Proxy-Authorization": "Basic bWU6cEBzcy13b3Jk"}
    assert "word" not in f"{found.url}{found}{found.remedy}"


def test_another_kind_of_proxy_is_refused_with_the_way_around_it():
    other = r"ALL_PROXY must .* got socks5://host:1080; .*NO_PROXY=api.example.com"
    refuses(other, proxy_for, API, {"ALL_PROXY": "socks5://me:pass-word@host:1080"})
