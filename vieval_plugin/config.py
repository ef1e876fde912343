"""The one place where options come in: a YAML file named by VIEVAL_CONFIG, and VIEVAL_DATA for the data folder."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import platformdirs
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from vieval_plugin.errors import VievalError
from vieval_plugin.judges.cigeval_questions import Improvement
from vieval_plugin.meta_evaluation import MissingRatings, Options, Policy

FILE_VARIABLE = "VIEVAL_CONFIG"
DATA_VARIABLE = "VIEVAL_DATA"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OneShot(_Part):
    """A worked example for the one-shot setting."""

    images: tuple[Path, ...] = Field(description="image files, in the order of the question's own images")
    scores: tuple[float, ...] = Field(description="the sub-scores it deserves, 0 to 10")
    reasoning: str = Field("", description="a short reason for them")


class Backbone(_Part):
    """A model behind an OpenAI-compatible server."""

    model: str = Field(description="the name the server knows it by")
    base_url: tuple[str, ...] = Field(description="address that ends in /v1, or a list of them to spread the load")
    api_key_env: str | None = Field(
        None, description="environment variable that holds the key (default OPENAI_API_KEY)"
    )
    num_concurrent: int = Field(32, ge=1, description="requests in flight at once")
    timeout: float = Field(600.0, gt=0, description="seconds without a byte after which a call is tried again")
    retries: int = Field(5, ge=0, description="how often a call is tried again while the server answers others")
    patience: float = Field(120.0, gt=0, description="seconds without any answer after which the run stops")
    max_pixels: int | None = Field(None, ge=1, description="larger images are made smaller before they are sent")
    temperature: float = Field(0.0, ge=0, description="sampling temperature")
    max_tokens: int | None = Field(None, ge=1, description="limit of an answer's tokens, in place of the judge's own")
    extra: Mapping[str, Any] = Field(default_factory=dict, description="further request fields, sent as they are")

    @field_validator("base_url", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    def key(self, name: str) -> str:
        """The key from the environment, empty where none is needed; VievalError if the named variable is not set."""
        if self.api_key_env is None:
            return os.environ.get("OPENAI_API_KEY", "")
        if self.api_key_env not in os.environ:
            raise VievalError(f"backbone {name}: set the environment variable {self.api_key_env} to its key")
        return os.environ[self.api_key_env]


class VIEScoreOptions(_Part):
    pack: str = Field("viescore/v1", description="prompt pack: a built-in name or a folder (`vieval prompts list`)")
    pack_1shot: str = Field("viescore/v1", description="prompt pack of the one-shot tasks")
    examples: Mapping[str, OneShot] = Field(
        default_factory=dict,
        description="one-shot examples by question: PQ, SC_tig, SC_tie, ... (images, scores, reasoning)",
    )


class VQAScoreOptions(_Part):
    pack: str = Field("vqascore/v1", description="prompt pack; it also names the answer (vqascore/lower_v1: yes)")
    definition: Literal["first_token", "sequence_mean"] = Field(
        "first_token", description="P of the first answer token, or the authors' first release (transformers only)"
    )


class T2IEvalOptions(_Part):
    pack: str = Field("t2i_eval/v1", description="prompt pack of both modes")
    mode: Literal["individual", "framework"] = Field(
        "individual", description="a call for every question and stage (small models), or three calls (strong ones)"
    )
    extraction: Literal["own", "given"] = Field("own", description="given: the benchmark's own entities and questions")
    reference: bool = Field(False, description="show a reference image, where there is one, with questions on looks")
    explanation_quality: bool = Field(
        False, description="grade explanations against the annotators', by the backbone that backbones.quality names"
    )
    backbones: Mapping[
        Literal["extraction", "answer", "explanation", "score", "summary", "overall", "quality"], str
    ] = Field(default_factory=dict, description="a step's own backbone, by its name under backbones ({quality: gpt})")


class CIGEvalOptions(_Part):
    pack: str = Field("cigeval/v1", description="prompt pack of both forms")
    removed: tuple[str, ...] = Field(
        ("ocr",), description="tools that are not offered: difference, grounding, ocr, scene_graph"
    )
    improvements: tuple[Improvement, ...] = Field(
        (),
        description="departures from the released code: difference_on_tie, all_differences, mask, named_entity, "
        "plan_each_subject",
    )
    turns: int = Field(3, ge=0, description="tool calls for a sub-question in the react form")
    detector: str = Field(
        "IDEA-Research/grounding-dino-base", description="the grounding tool's model, a name or a folder"
    )
    subset: Path | None = Field(
        None, description="samples of variant_imagenhub_cigeval_subset: one uid a line, or the published JSON split"
    )


class Judges(_Part):
    reminders: int = Field(1, ge=0, description="how often a reply that cannot be read is asked again, with the error")
    viescore: VIEScoreOptions = Field(default_factory=VIEScoreOptions, description="VIEScore")
    vqascore: VQAScoreOptions = Field(default_factory=VQAScoreOptions, description="VQAScore")
    t2i_eval: T2IEvalOptions = Field(default_factory=T2IEvalOptions, description="T2I-Eval")
    cigeval: CIGEvalOptions = Field(default_factory=CIGEvalOptions, description="CIGEval")


class Statistics(_Part):
    failures: Policy = Field("drop", description="what a failed verdict does to a correlation: drop, random or worst")
    missing_ratings: MissingRatings = Field(
        "drop", description="a score an annotator did not give (T2I-Eval-Bench): drop, or impute_mean of the others"
    )
    draws: int = Field(1000, ge=0, description="bootstrap draws of a 95% interval")
    seed: int = Field(0, ge=0, description="seed of everything random")

    def options(self) -> Options:
        return Options(self.failures, self.draws, self.seed, self.missing_ratings)


class StoreOptions(_Part):
    use: bool = Field(True, description="keep replies on disk and never ask again what was answered")
    path: Path | None = Field(None, description="the SQLite file (default: replies.sqlite in the user's cache folder)")


class Config(_Part):
    """All options, with their defaults."""

    data: Path | None = Field(None, description="folder of prepared benchmarks; VIEVAL_DATA, where set, goes before it")
    uids: Path | None = Field(
        None, description="file with one uid a line, or a JSON split: only these samples are judged"
    )
    judges: Judges = Field(default_factory=Judges, description="judges and their switches")
    backbones: Mapping[str, Backbone] = Field(
        default_factory=dict,
        description="named models behind servers: judge is the one that answers unless a judge names another "
        "(judge: {model: ..., base_url: http://127.0.0.1:8000/v1, num_concurrent: 32})",
    )
    store: StoreOptions = Field(default_factory=StoreOptions, description="replies kept on disk")
    statistics: Statistics = Field(default_factory=Statistics, description="failure policy and intervals")

    @property
    def hash(self) -> str:
        """Hash of the options that can change a result: of files their content, not where they lie."""
        transport = {"base_url", "api_key_env", "num_concurrent", "timeout", "retries", "patience"}
        options = self.model_dump(exclude={"data": True, "store": True, "backbones": {"__all__": transport}})
        return hashlib.sha256(json.dumps(options, sort_keys=True, default=_content).encode()).hexdigest()[:16]

    def data_folder(self) -> Path:
        """The folder of prepared benchmarks: VIEVAL_DATA, else the file's `data`, else one in the user's cache."""
        if named := os.environ.get(DATA_VARIABLE):
            return Path(named).expanduser()
        return self.data.expanduser() if self.data else Path(platformdirs.user_cache_dir("vieval"))

    def store_path(self) -> Path | None:
        """The file of replies, or None where none are kept."""
        if not self.store.use:
            return None
        return self.store.path or Path(platformdirs.user_cache_dir("vieval")) / "replies.sqlite"


def current() -> Config:
    """The options of this process: those of the file that VIEVAL_CONFIG names, or the defaults."""
    return read(os.environ.get(FILE_VARIABLE, ""))


@lru_cache(maxsize=8)
def read(path: str) -> Config:
    """Options from a YAML file; the defaults for an empty path.

    Relative paths in the file start at the file's folder. VievalError names what is wrong, and for an unknown key the nearest known one.
    """
    if not path:
        return Config()
    file = Path(path).expanduser()
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        config = Config.model_validate(document)
    except OSError as error:
        raise VievalError(
            f"{file}: the options file cannot be read ({error.strerror}); {FILE_VARIABLE} names it"
        ) from None
    except yaml.YAMLError as error:
        raise VievalError(f"{file}: not YAML ({' '.join(str(error).split())})") from None
    except ValidationError as error:
        raise VievalError(f"{file}: {_explain(error)}") from None
    return _anchored(config, file.parent)


def commented() -> str:
    """An options file with every option at its default and a comment saying what it is for."""
    return "\n".join([f"# Options of VIEval; name this file in {FILE_VARIABLE}.", *_lines(Config, Config(), 0), ""])


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else str(path)


def _lines(model: type[BaseModel], values: BaseModel, depth: int) -> list[str]:
    indent, lines = "  " * depth, []
    for name, info in model.model_fields.items():
        value = getattr(values, name)
        lines.append(f"{indent}# {info.description}")
        if isinstance(value, BaseModel):
            lines += [f"{indent}{name}:", *_lines(type(value), value, depth + 1)]
        else:
            lines.append(f"{indent}{name}: {json.dumps(value, default=str)}")
    return lines


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    if first["type"] != "extra_forbidden":
        return f"option {'.'.join(place) or 'file'}: {first['msg']}; `vieval config` prints all options"
    known = _fields_at(place[:-1])
    near = difflib.get_close_matches(place[-1], known, n=1, cutoff=0.0)
    hint = f"; did you mean {'.'.join([*place[:-1], near[0]])}?" if near else ""
    return f"unknown option {'.'.join(place)}{hint}"


def _fields_at(place: list[str]) -> list[str]:
    model: Any = Config
    for part in place:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return [*OneShot.model_fields, *Backbone.model_fields]
        model = annotation
    return list(model.model_fields)


def _anchored(config: Config, folder: Path) -> Config:
    """The same options with relative paths of data, uids, subset and examples starting at the file's folder."""

    def anchor(path: Path | None) -> Path | None:
        return folder / path.expanduser() if path else None

    examples = {
        key: one.model_copy(update={"images": tuple(folder / p.expanduser() for p in one.images)})
        for key, one in config.judges.viescore.examples.items()
    }
    viescore = config.judges.viescore.model_copy(update={"examples": examples})
    cigeval = config.judges.cigeval.model_copy(update={"subset": anchor(config.judges.cigeval.subset)})
    judges = config.judges.model_copy(update={"viescore": viescore, "cigeval": cigeval})
    store = config.store.model_copy(update={"path": anchor(config.store.path)})
    return config.model_copy(
        update={"data": anchor(config.data), "uids": anchor(config.uids), "judges": judges, "store": store}
    )
