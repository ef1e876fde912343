"""The one place where options come in: a YAML file named by VIEVAL_CONFIG, and VIEVAL_DATA for
the data folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

from pydantic import (
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    create_model,
    field_validator,
)
from pydantic_core import PydanticCustomError

from vieval_plugin.config.section import (
    Section,
    anchored,
    commented_lines,
    described,
    forbid_unknown,
    is_options_type,
    redacted_options,
)
from vieval_plugin.judges import registry as judge_registry
from vieval_plugin.judges.arguments import require
from vieval_plugin.judges.spec import JudgeSpec, option
from vieval_plugin.media.files import cache_folder
from vieval_plugin.stats.options import MissingRatings, Policy, StatisticsOptions
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.redaction import SECRET_NAME, register_secrets
from vieval_plugin.text.suggestions import did_you_mean
from vieval_plugin.text.untrusted import address_of, isfile, path_of, real
from vieval_plugin.text.yaml_json import read_yaml

__all__ = [
    "Backbone",
    "Config",
    "Judges",
    "Scorer",
    "Statistics",
    "StoreOptions",
]
FILE_VARIABLE = "VIEVAL_CONFIG"
DATA_VARIABLE = "VIEVAL_DATA"
_UNTRUSTED_ADDRESS = "http://recorded.invalid/v1"
_NO_KEY = (
    "NO_KEY_FOR_RECORDED_SERVER"  # names no variable: of a server that results name
)
_HEADER_NAME = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"  # a token of RFC 9110
_IN_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# JSON Schemas of fields that a file may write in another form than they have here
_ADDRESS = {"type": "string", "pattern": "^https?://."}
_ADDRESSES = {"anyOf": [_ADDRESS, {"type": "array", "items": _ADDRESS}]}
_TEMPERATURE = {"anyOf": [{"type": "number", "minimum": 0}, {"enum": ["none", None]}]}


class Backbone(Section):
    """A model behind an OpenAI-compatible server."""

    model: str = Field(description="model name on the server")
    base_url: Annotated[tuple[str, ...], WithJsonSchema(_ADDRESSES)] = Field(
        description=(
            "address that ends in /v1, or a list of addresses that share the load"
        )
    )
    api_key_env: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",  # a key in its place is refused, and so never shown
        description="environment variable that holds the key (default: OPENAI_API_KEY)",
    )
    api_key_header: str = Field(
        "Authorization",
        pattern=_HEADER_NAME,
        description=(
            "header for the key, such as api-key (Authorization sends it as a bearer token)"
        ),
    )
    headers: Mapping[str, str] = Field(
        default_factory=dict,
        description=(
            "additional headers for all requests; ${NAME} stands for the environment variable NAME"
        ),
    )
    ca_file: Path | None = Field(
        None,
        description=(
            "PEM file with additional certificate authorities (default: "
            "REQUESTS_CA_BUNDLE)"
        ),
    )
    num_concurrent: int = Field(
        32, ge=1, le=4096, description="maximum number of concurrent requests"
    )
    requests_per_minute: float | None = Field(
        None,
        gt=0,
        description="maximum requests per minute, evenly spaced (default: no limit)",
    )
    timeout: float = Field(
        600.0,
        gt=0,
        description=(
            "retry a call after this many seconds without data, or twice as many in total"
        ),
    )
    retries: int = Field(
        5,
        ge=0,
        description=(
            "maximum retries per call while the server answers other calls (a 429 "
            "counts as half)"
        ),
    )
    patience: float = Field(
        120.0,
        gt=0,
        description="stop the run after this many seconds without a reply",
    )
    max_pixels: int | None = Field(
        None,
        ge=1,
        description="shrink larger images to this many pixels before sending",
    )
    sight_check: bool = Field(
        True,
        description=(
            "first ask for the colours of two pictures, to check that the model sees "
            "images"
        ),
    )
    temperature: Annotated[float | None, WithJsonSchema(_TEMPERATURE)] = Field(
        0.0, ge=0, description="sampling temperature, or none to leave it to the server"
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="maximum number of tokens in a reply (default: the judge's limit)",
    )
    extra: Mapping[str, Any] = Field(
        default_factory=dict,
        description="additional request fields, which override others; null removes a field",
    )
    price_input: float | None = Field(
        None, ge=0, description="price per million input tokens"
    )
    price_cached_input: float | None = Field(
        None,
        ge=0,
        description="price per million cached input tokens (default: price_input)",
    )
    price_output: float | None = Field(
        None, ge=0, description="price per million output tokens"
    )

    @field_validator("temperature", mode="before")
    @classmethod
    def _none(cls, value: Any) -> Any:
        return None if value == "none" else value

    @field_validator("base_url", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("base_url")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or not all(re.match("https?://.", url) for url in value):
            raise PydanticCustomError(
                "address",
                "must be an address such as http://127.0.0.1:8000/v1, or a list of addresses",
            )
        return value

    @field_validator("headers")
    @classmethod
    def _sendable(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name, text in value.items():
            if not re.match(_HEADER_NAME, name):
                raise PydanticCustomError(
                    "header", "a header name must be one word, such as x-team"
                )
            if not text.isprintable():
                raise PydanticCustomError(
                    "header",
                    "a header value must be one line of printable characters",
                )
        return value

    def price_of(
        self, input_tokens: float, cached_tokens: float, output_tokens: float
    ) -> float:
        """The price of tokens, of which some in were in the server's cache; 0 without prices."""
        fresh = (input_tokens - cached_tokens) * (self.price_input or 0.0)
        price_cached = self.price_cached_input
        if price_cached is None:
            price_cached = self.price_input or 0.0
        output = output_tokens * (self.price_output or 0.0)
        return (fresh + cached_tokens * price_cached + output) / 1e6

    def key(self, name: str) -> str:
        """The key from the environment, empty where none is needed.

        Raises:
            VievalError: the named variable is not set, or only results that others may have written
                name the server.
        """
        if _UNTRUSTED_ADDRESS in self.base_url:
            raise VievalError(
                f"backbone {name}: the server address stored in these results is not "
                "used, because images and keys could go to strangers; pass --model "
                f"and --base-url, or set backbones.{name} in the options"
            )
        if self.api_key_env == _NO_KEY:
            return ""
        if self.api_key_env is None:
            return os.environ.get("OPENAI_API_KEY", "")
        if self.api_key_env not in os.environ:
            raise VievalError(
                f"backbone {name}: set the environment variable {self.api_key_env} to its key"
            )
        return os.environ[self.api_key_env]

    def sent_headers(self, name: str) -> dict[str, str]:
        """The further headers, with the values of environment variables, which are secrets from
        then on.

        Raises:
            VievalError: such a variable is not set.
        """

        def value(variable: re.Match[str]) -> str:
            if variable[1] not in os.environ:
                raise VievalError(
                    f"backbone {name}: set the environment variable {variable[1]}, which its "
                    "headers use"
                )
            text = os.environ[variable[1]].strip()
            register_secrets(text, ())
            return text

        headers = {
            header: _IN_ENVIRONMENT.sub(value, text)
            for header, text in self.headers.items()
        }
        for header, text in headers.items():
            if SECRET_NAME.search(header):
                register_secrets(text.rpartition(" ")[2], ())
        return headers


@dataclass(frozen=True)
class Scorer:
    """A network in this process that measures, as the options have it."""

    model: str = option(
        "",
        (
            "hub name, folder or file of the weights (default: those of the metric's definition)"
        ),
        folder=True,
    )
    revision: str | None = option(
        None, "branch, tag or commit on the Hugging Face Hub (default: the latest)"
    )
    device: str = option(
        "auto", "cpu, cuda, cuda:1, ... (auto: the first GPU, else the CPU)"
    )
    batch_size: int = option(16, "maximum number of questions per batch", ge=1)


forbid_unknown(Scorer)


class JudgesBase(Section):
    reminders: int = Field(
        1,
        ge=0,
        description="number of re-asks after an unreadable reply, each quoting the error",
    )
    aspects: tuple[str, ...] = Field(
        (),
        description=(
            "ask only about these aspects, such as [SC], if a judge asks about each separately "
            "(default: all)"
        ),
    )
    lazy: bool = Field(
        False,
        description=(
            "skip questions that cannot change O, such as PQ if SC is 0; PQ is then not "
            "reported as a score"
        ),
    )

    def narrowed(self, spec: JudgeSpec) -> JudgeSpec:
        """The judge as these options have it ask; VievalError where it has no questions about
        such aspects.
        """
        if spec.narrowed is None:
            if self.aspects:
                raise VievalError(
                    f"aspects: {spec.name} does not ask about each aspect separately; omit "
                    "aspects for this judge"
                )
            return spec
        if not self.aspects and not self.lazy:
            return spec
        return spec.narrowed(self.aspects, self.lazy)

    def options_of(self, spec: JudgeSpec) -> Any:
        """A judge's options, an instance of its own options type; a judge in a file has none."""
        return spec.options() if spec.file else getattr(self, spec.name)


def _judges_model() -> type[JudgesBase]:
    """One field per judge, of the judge's own options type, in which an unknown key is
    an error.
    """
    fields: dict[str, Any] = {}
    for name, spec in judge_registry.judges().items():
        if spec.file:
            continue
        forbid_unknown(spec.options)
        fields[name] = (
            spec.options,
            Field(default_factory=spec.options, description=spec.title),
        )
    return create_model("Judges", __base__=JudgesBase, **fields)


if TYPE_CHECKING:
    Judges = JudgesBase
else:
    Judges = _judges_model()


class Statistics(Section):
    """Options of the statistics of a report."""

    failures: Policy = Field(
        "drop",
        description=(
            "treatment of failed verdicts in correlations: drop, random, worst, or "
            "as_recorded (the numbers in a log)"
        ),
    )
    missing_ratings: MissingRatings = Field(
        "drop",
        description=(
            "treatment of missing annotator scores (T2I-Eval-Bench): drop, or "
            "impute_mean of the others"
        ),
    )
    draws: int = Field(
        1000, ge=0, le=100_000, description="bootstrap draws per 95% interval"
    )
    seed: int = Field(0, ge=0, description="random seed")

    def options(self) -> StatisticsOptions:
        return StatisticsOptions(
            self.failures, self.draws, self.seed, self.missing_ratings
        )


class StoreOptions(Section):
    """Options of the reply cache."""

    use: bool = Field(
        True, description="keep replies on disk, so that no question is asked twice"
    )
    path: Path | None = Field(
        None,
        description="SQLite file (default: replies.sqlite in the user's cache folder)",
    )
    max_age: float | None = Field(
        None,
        ge=0,
        description=(
            "replace replies older than this many seconds, for a model that changes; "
            "0 replaces all earlier replies (default: never)"
        ),
    )


class GenerateOptions(Section):
    prompts: Path | None = Field(
        None,
        description="file with one prompt per line, for the tasks generate_prompts_*",
    )
    images: int = Field(
        1,
        ge=1,
        description=(
            "number of images to request per prompt, in one reply of the generator"
        ),
    )
    trusted: tuple[Path, ...] = Field(
        (),
        description="additional folders from which output files of a host's generator are "
        "accepted",
    )


#: Fields of a backbone that change no result: of its connection, pacing and prices.
_TRANSPORT = {
    *("base_url", "api_key_env", "api_key_header", "headers", "ca_file"),
    *("num_concurrent", "requests_per_minute", "timeout", "retries", "patience"),
    *("price_input", "price_cached_input", "price_output", "sight_check"),
}
#: Options that change no result.
_WITHOUT_EFFECT: Any = {
    **dict.fromkeys(("data", "judge_files", "store", "scorers", "generate"), True),
    "backbones": {"__all__": _TRANSPORT},
}


class Config(Section):
    """Options of VIEval, with their defaults."""

    data: Path | None = Field(
        None,
        description=(
            "folder of prepared benchmarks, with generated images in `generated`; VIEVAL_DATA "
            "takes precedence"
        ),
    )
    uids: Path | None = Field(
        None,
        description=(
            "judge only the samples in this file (one uid per line, or a JSON split)"
        ),
    )
    judges: Judges = Field(default_factory=Judges, description="options of each judge")
    judge_files: tuple[Path, ...] = Field(
        (),
        description=(
            "files that describe your own judges, in addition to those in the folder set by "
            "VIEVAL_JUDGES"
        ),
    )
    backbones: Mapping[str, Backbone] = Field(
        default_factory=dict,
        description=(
            "models on servers, by name; judges use the model named judge by default "
            "(judge: {model: ..., base_url: http://127.0.0.1:8000/v1, num_concurrent: "
            "32})"
        ),
    )
    scorers: Mapping[str, Scorer] = Field(
        default_factory=dict,
        description="scorer networks, by the name of the judge that uses them "
        "(NAME: {model: FOLDER, FILE or a name on the Hugging Face Hub, revision: ..., device: cuda:0, "
        "batch_size: 16})",
    )
    calibration: Path | None = Field(
        None,
        description="file written by `vieval calibrate`, which adds a calibrated score",
    )
    store: StoreOptions = Field(
        default_factory=StoreOptions, description="replies kept on disk"
    )
    generate: GenerateOptions = Field(
        default_factory=GenerateOptions,
        description="options for generators judged inside a host",
    )
    statistics: Statistics = Field(
        default_factory=Statistics, description="failure policy and intervals"
    )

    @property
    def hash(self) -> str:
        """Hash of the options that can change a result: of files their content, not where they
        lie; weights by their name.
        """
        options = self.model_dump(exclude=_WITHOUT_EFFECT)
        # judges that other packages bring change nothing as long as nothing is set for them
        options["judges"] = self.judges.model_dump(exclude_defaults=True)
        if self.scorers:
            options["scorers"] = {
                name: [scorer.model, scorer.revision]
                for name, scorer in self.scorers.items()
            }
        document = json.dumps(options, sort_keys=True, default=_content)
        return hashlib.sha256(document.encode()).hexdigest()[:16]

    def resolved(self, spec: JudgeSpec) -> dict[str, Any]:
        """The options in force for a judge, as an options file has it and as JSON values, less
        keys.
        """
        judges = self.judges.model_dump(
            include={"reminders", "aspects", "lazy"}, exclude_defaults=True
        )
        judges |= {"reminders": self.judges.reminders}
        judges |= {} if spec.file else {spec.name: self.judges.options_of(spec)}
        options: dict[str, Any] = {}
        if spec.file and not judge_registry.is_shipped(spec):
            options["judge_files"] = [str(real(spec.file.path))]
        options["judges"] = {
            name: _adapter(part.__class__).dump_python(part, mode="json")
            for name, part in judges.items()
        }
        options["backbones"] = {
            name: backbone.model_dump(mode="json")
            for name, backbone in self.backbones.items()
        }
        if spec.scored:
            options["scorers"] = {
                name: asdict(scorer) for name, scorer in self.scorers.items()
            }
        options["statistics"] = self.statistics.model_dump(mode="json")
        options["uids"] = str(self.uids) if self.uids else None
        return dict(redacted_options(options))

    def scored_by(self, fields: Mapping[str, Any]) -> Config:
        """The same options, with what a command says of a scorer on top, for every judge that one
        answers.

        Args:
            fields: fields of a `Scorer`; its `model` may be the name of one of these options'
                scorers.

        Raises:
            VievalError: an unknown field, or a value that it cannot have.
        """
        if "model" in fields:
            base = self.scorers.get(fields["model"])
            # a revision belongs to the weights that it was given with
            if base is None:
                fields = {"revision": None, **fields}
            else:
                fields = {
                    **asdict(base),
                    **fields,
                    "model": base.model,
                }
        scorers: dict[str, Any] = dict(self.scorers)
        for name, spec in judge_registry.judges().items():
            if spec.scored:
                scorers[name] = {**asdict(self.scorers.get(name, Scorer())), **fields}
        try:
            validated = _adapter(Mapping[str, Scorer]).validate_python(scorers)
        except ValidationError as error:
            first = error.errors()[0]
            raise VievalError(
                f"scorer: argument {first['loc'][-1]}: {first['msg']}; known arguments: "
                "name, revision, device, batch_size"
            ) from None
        return self.model_copy(update={"scorers": validated})

    def data_folder(self) -> Path:
        """The folder of prepared benchmarks: VIEVAL_DATA, else the file's `data`, else one in
        the user's cache.
        """
        folder = os.environ.get(DATA_VARIABLE)
        if folder:
            return path_of(folder)
        return path_of(self.data) if self.data else cache_folder()

    def generated_folder(self) -> Path:
        """The folder in which generators keep what they make, beside prepared benchmarks."""
        return self.data_folder() / "generated"

    def asking_anew(self) -> Config:
        """The same options, under which what the store holds is asked anew and replaced."""
        return self.model_copy(
            update={"store": self.store.model_copy(update={"max_age": 0.0})}
        )

    def store_path(self) -> Path | None:
        """The file of replies, or None where none are kept."""
        if not self.store.use:
            return None
        return self.store.path or cache_folder() / "replies.sqlite"


#: Options as functions take them: None for those of the file that VIEVAL_CONFIG names.
Options: TypeAlias = Config | Mapping[str, Any] | None


def resolved(options: Options) -> Config:
    """Options as they are, from a mapping as an options file has it, or of the file that
    VIEVAL_CONFIG names.

    Raises:
        VievalError: they are none of these, or hold what options do not have.
    """
    if options is None:
        return current()
    if isinstance(options, Mapping):
        return from_mapping(options, "options")
    require(
        options,
        Config,
        "options",
        'a mapping such as {"store": {"use": False}}, or set '
        f"{FILE_VARIABLE} to a file",
    )
    return options


def current() -> Config:
    """The options of this process: those of the file that VIEVAL_CONFIG names, or the defaults."""
    return read(os.environ.get(FILE_VARIABLE, ""))


def commented() -> str:
    """An options file with every option at its default, and a comment that says what it is for."""
    first = f"# Options of VIEval. Set {FILE_VARIABLE} to the path of this file."
    return "\n".join([first, *commented_lines(Config()), ""])


def from_document(document: Mapping[str, Any]) -> Config:
    """Options that travelled with results, which strangers may have written.

    They name no calibration, and no server but one of this machine, to which no key is sent.

    Raises:
        VievalError: this version cannot read them.
    """
    options = from_mapping(document, "the options stored in the results")

    def trusted(backbone: Backbone) -> Backbone:
        addresses = map(address_of, backbone.base_url)
        is_here = all(address and address.host in _LOOPBACK for address in addresses)
        base_url = backbone.base_url if is_here else (_UNTRUSTED_ADDRESS,)
        return backbone.model_copy(
            update={
                "base_url": base_url,
                "api_key_env": _NO_KEY,
                # they could carry any variable of the environment
                "headers": {},
                "ca_file": None,
            }
        )

    return options.model_copy(
        update={
            "backbones": {
                name: trusted(backbone) for name, backbone in options.backbones.items()
            },
            "calibration": None,
        }
    )


def from_mapping(document: Mapping[str, Any], name: str) -> Config:
    """Options from a mapping as the options file has it; VievalError, beginning with `name`,
    names what is wrong.
    """
    try:
        return Config.model_validate(dict(document))
    except ValidationError as error:
        raise VievalError(f"{name}: {_explain(error)}") from None


def read(path: str) -> Config:
    """Options from a YAML file as it is now; the defaults for an empty path.

    Relative paths in the file start at the file's folder. VievalError names what is wrong, and for
    an unknown key the nearest known one.
    """
    if not path:
        return Config()
    file = path_of(path)
    try:
        absolute: Config = anchored(
            _validated(file.read_text(encoding="utf-8")), file.parent
        )
    except OSError as error:
        raise VievalError(
            f"cannot read the options file {file}: {error.strerror}; set {FILE_VARIABLE} to a "
            "readable file"
        ) from None
    except ValidationError as error:  # which is a ValueError too
        raise VievalError(f"{file}: {_explain(error)}") from None
    except ValueError as error:
        raise VievalError(f"{file}: not YAML ({error})") from None
    return absolute


@lru_cache(maxsize=8)
def _validated(text: str) -> Config:
    """The options of a file's text, as hosts ask for them at each sample."""
    return Config.model_validate(read_yaml(text) or {})


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Made once a type: that takes a millisecond, and a replay needs it for every sample."""
    return TypeAdapter(kind)


def _content(path: Path) -> str:
    if not isfile(path):
        return str(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    option = ".".join(path)
    if first["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return (
            f"option {option or 'file'}: {first['msg']}; `vieval config` prints all "
            "options"
        )
    section = path[:-1]
    options = [".".join([*section, name]) for name in _fields_at(section)]
    return f"unknown option {option}{did_you_mean(option, options)}"


def _fields_at(path: list[str]) -> list[str]:
    """The options that there are at a place, through the parts of the model and the values of
    mappings.
    """
    model: Any = Config
    for part in path:
        if isinstance(model, type):
            model = get_type_hints(model).get(part)
        else:
            model = next(reversed(get_args(model)), None)
        model = Judges if part == "judges" and model is not None else model
    return list(described(model)) if is_options_type(model) else []
