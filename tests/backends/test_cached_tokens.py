"""Cached tokens as each provider's `usage` reports them."""

import pytest

from vieval_plugin.backends.http.responses import cached_tokens_of


@pytest.mark.parametrize(
    ("reported", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 60}}, 60),
        ({"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40}, 60),
        ({"cached_tokens": 60}, 60),
        ({"cached_tokens": 600}, 100),
        ({"cached_tokens": -1}, 0),
        ({"prompt_tokens_details": None, "cached_tokens": "60"}, 0),
        ({}, 0),
    ],
)
def test_cached_tokens_are_read_in_each_providers_field(reported, cached):
    usage = {"prompt_tokens": 100, "completion_tokens": 5, **reported}
    assert cached_tokens_of({"usage": usage}) == cached
