"""The model that a judge asks, as the options have it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from vieval_plugin.config.section import Section
from vieval_plugin.errors import VievalError


class Backbone(Section):
    """A model behind an OpenAI-compatible server."""

    model: str = Field(description="the name the server knows it by")
    base_url: tuple[str, ...] = Field(description="address that ends in /v1, or a list of them to spread the load")
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",  # a key in its place is refused, and so never shown
        description="environment variable that holds the key (default OPENAI_API_KEY)",
    )
    num_concurrent: int = Field(32, ge=1, description="requests in flight at once")
    timeout: float = Field(
        600.0,
        gt=0,
        description="seconds without a byte, or half those of a try in all, after which a call is tried again",
    )
    retries: int = Field(
        5, ge=0, description="how often a call is tried again while the server answers others (429 counts half)"
    )
    patience: float = Field(120.0, gt=0, description="seconds without any answer after which the run stops")
    max_pixels: int | None = Field(None, ge=1, description="larger images are made smaller before they are sent")
    temperature: float = Field(0.0, ge=0, description="sampling temperature")
    max_tokens: int | None = Field(None, ge=1, description="limit of an answer's tokens, in place of the judge's own")
    extra: Mapping[str, Any] = Field(default_factory=dict, description="further request fields, sent as they are")
    price_input: float | None = Field(None, ge=0, description="what a million tokens of questions cost, for plans")
    price_output: float | None = Field(None, ge=0, description="what a million tokens of answers cost, for plans")

    @field_validator("base_url", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("base_url")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not all(re.match("https?://.", url) for url in value):
            raise PydanticCustomError("address", "pass an address such as http://127.0.0.1:8000/v1, or a list of such")
        return value

    def key(self, name: str) -> str:
        """The key from the environment, empty where none is needed; VievalError if the named variable is not set."""
        if self.api_key_env is None:
            return os.environ.get("OPENAI_API_KEY", "")
        if self.api_key_env not in os.environ:
            raise VievalError(f"backbone {name}: set the environment variable {self.api_key_env} to its key")
        return os.environ[self.api_key_env]
