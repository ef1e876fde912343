"""Cached tokens as each provider's `usage` reports them."""

import pytest

from tests.tables import table
from vieval_plugin.backends.http.responses import cached_tokens_of


@pytest.mark.parametrize(*table("cached_tokens.jsonl"))
def test_cached_tokens_are_read_in_each_providers_field(reported, cached):
    usage = {"prompt_tokens": 100, "completion_tokens": 5, **reported}
    assert cached_tokens_of({"usage": usage}) == cached
