"""The options of all judges, each of the judge's own type, and of the networks that answer some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from vieval_plugin.config.section import Section, forbid_unknown
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.spec import JudgeSpec, option


@dataclass(frozen=True)
class Scorer:
    """A network in this process that measures, as the options have it."""

    model: str = option(
        "", "a name on the hub, or a folder or file of weights (default: those of the metric's definition)", folder=True
    )
    revision: str | None = option(None, "branch, tag or commit on the hub (default: the latest)")
    device: str = option("auto", "cpu, cuda, cuda:1, ... (auto: the first GPU, else the CPU)")
    batch_size: int = option(16, "asks that go through it at once", ge=1)


forbid_unknown(Scorer)


class JudgesBase(Section):
    reminders: int = Field(
        1,
        ge=0,
        description="how often a reply that cannot be read is asked again, with the error",
    )

    def options_of(self, spec: JudgeSpec) -> Any:
        """A judge's options, an instance of its own options type; a judge in a file has none."""
        return spec.options() if spec.file else getattr(self, spec.name)


def _judges_model() -> type[JudgesBase]:
    """A field a judge, of the judge's own options type, in which an unknown key is an error."""
    fields: dict[str, Any] = {}
    for name, spec in judge_registry.judges().items():
        if spec.file:
            continue
        forbid_unknown(spec.options)
        fields[name] = (spec.options, Field(default_factory=spec.options, description=spec.title))
    return create_model("Judges", __base__=JudgesBase, **fields)


if TYPE_CHECKING:
    Judges = JudgesBase
else:
    Judges = _judges_model()
