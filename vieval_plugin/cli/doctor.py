"""Show what is ready to use and what is missing.

It checks packages, options, data, the reply cache, and the servers of your backbones.

Examples:
    # check this environment
    vieval doctor
    # check a server
    vieval doctor --base-url http://127.0.0.1:8000/v1
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from vieval_plugin.cli.options import BackboneOptions, ConfigOptions
from vieval_plugin.text.errors import BASE_URL_ENV_VAR, MODEL_ENV_VAR

if TYPE_CHECKING:
    from vieval_plugin.backends.http.openai import OpenAIBackend
    from vieval_plugin.config import Backbone, Config
    from vieval_plugin.judges.spec import JudgeSpec

_CPU_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu"
_SECONDS = 20.0
_SCORER_PACKAGES = ("torch", "torchmetrics", "torchvision", "transformers")


@dataclass(frozen=True)
class Ability:
    """Job that can be done here, or cannot yet."""

    #: Job in words.
    job: str
    #: Missing pieces; empty where it can be done.
    needs: str = ""


class State(StrEnum):
    """Outcome of a check."""

    PROBLEM = "PROBLEM"
    UNSURE = "unsure"
    OK = "ok"


@dataclass(frozen=True)
class Check:
    """Finding on one part."""

    state: State
    #: Finding, and what to do.
    text: str


@dataclass(frozen=True)
class ServerFindings:
    """Findings on a server."""

    checks: tuple[Check, ...]
    #: Its model; empty where it did not answer.
    model: str = ""
    returns_probabilities: bool = False
    #: False for a model that was shown images and does not see them.
    sees: bool = True


class DoctorOptions(ConfigOptions, BackboneOptions):
    """Options of `vieval doctor`."""


def run(options: DoctorOptions) -> int:
    from vieval_plugin import config
    from vieval_plugin.text.escaping import say
    from vieval_plugin.text.redaction import redacted

    config_path = str(options.config or os.environ.get(config.FILE_VARIABLE, ""))
    current = config.read(config_path)
    source = "defaults"
    if config_path:
        origin = "--config" if options.config else config.FILE_VARIABLE
        source = f"{config_path} ({origin})"
    servers = asyncio.run(_servers(_backbones(options, current)))
    checks = list(_local(current, source))
    for server in servers:
        checks += server.checks
    lines: dict[State, list[str]] = {state: [] for state in State}
    for check in checks:
        lines[check.state].append(redacted(f"{check.state:7}  {check.text}"))
    problems = lines[State.PROBLEM]
    found = f"no problems found in {len(checks)} checks"
    if problems:
        found = f"{len(problems)} of {len(checks)} checks found a problem"
    say(found, *problems, "")
    abilities = list(_abilities(current, servers))
    jobs = [f"  {ability.job}" for ability in abilities if not ability.needs]
    say("You can:", *jobs, "")
    needing = [
        f"  to {ability.job}: {ability.needs}" for ability in abilities if ability.needs
    ]
    if needing:
        say("You need:", *needing, "")
    say(*lines[State.UNSURE], *lines[State.OK])
    return 1 if problems else 0


def _backbones(options: DoctorOptions, current: Config) -> Mapping[str, Backbone]:
    """The backbone that flags or the environment name, as a run would, else those of the
    options.
    """
    from vieval_plugin.cli.options import named_backbone
    from vieval_plugin.run.backbones import JUDGE

    from_environment = (
        os.environ.get(BASE_URL_ENV_VAR) if JUDGE not in current.backbones else None
    )
    urls = options.base_url or ([from_environment] if from_environment else [])
    if urls and not (options.model or os.environ.get(MODEL_ENV_VAR)):
        options = replace(options, model=asyncio.run(_listed_model(urls[0])))
    backbone = named_backbone(options, current)
    if backbone is None:
        return current.backbones
    others = {} if options.base_url else current.backbones
    return {**others, JUDGE: backbone}


def _local(options: Config, source: str) -> Iterator[Check]:
    """Python, the options, VLMEvalKit's hook, the data folder and the store."""
    from vieval_plugin.backends.cache.store import Store
    from vieval_plugin.hosts.vlmevalkit import guard, hook_files
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.versions import VERSION

    yield Check(State.OK, f"vieval {VERSION}, Python {sys.version.split()[0]}")
    yield Check(State.OK, f"options: {source}, hash {options.hash}")
    yield Check(State.OK, f"data: {options.data_folder()}")
    if not (importlib.util.find_spec("torch") or shutil.which("nvidia-smi")):
        yield Check(State.OK, f"no GPU: set {_CPU_INDEX} before you install PyTorch")
    state = hook_files.state()
    if state == "old":
        yield Check(
            State.PROBLEM,
            "VLMEvalKit: the hook is from another version of VIEval; run `vieval "
            "vlmevalkit --install-hook` again",
        )
    try:
        if importlib.util.find_spec("vlmeval"):
            yield Check(
                State.OK, f"VLMEvalKit: {guard.installation().name}; hook {state}"
            )
        path = options.store_path()
        if path:
            store = Store(path)
            replies = sum(row[1] for row in store.info())
            yield Check(State.OK, f"cache: {path}, {replies} replies")
            store.close()
    except VievalError as error:
        yield Check(State.PROBLEM, str(error))


async def _servers(backbones: Mapping[str, Backbone]) -> list[ServerFindings]:
    return [
        await _server(
            f"backbone {name}: {backbone.model} at {url}", name, backbone, url
        )
        for name, backbone in backbones.items()
        for url in backbone.base_url
    ]


async def _server(
    where: str, name: str, backbone: Backbone, url: str
) -> ServerFindings:
    """Findings from a short chat, a schema, log-probabilities and pictures, as a run asks."""
    from vieval_plugin.backends.http.faults import Refused
    from vieval_plugin.backends.http.server import Usage
    from vieval_plugin.run.backbones import backend_of
    from vieval_plugin.text.errors import VievalError

    short = {
        "base_url": (url,),
        "timeout": _SECONDS,
        "patience": _SECONDS / 4,
        "retries": 0,
    }
    findings = ServerFindings(())
    try:
        async with backend_of(
            name, backbone.model_copy(update=short), Usage()
        ) as backend:
            findings = await _text_findings(where, backend)
            if findings.model:
                findings = await _image_findings(where, backend, findings)
    except (Refused, VievalError) as error:
        problem = Check(State.PROBLEM, f"{where}: {error}")
        findings = replace(findings, checks=(*findings.checks, problem))
    return findings


async def _text_findings(where: str, backend: OpenAIBackend) -> ServerFindings:
    from vieval_plugin.judges.protocol import (
        Chat,
        Failure,
        Likelihood,
        Message,
        Probabilities,
    )

    greeting = (Message("user", ("Say hello.",)),)
    reply = await backend.answer(Chat(greeting, ("hello",)))
    if isinstance(reply, Failure):
        return ServerFindings((Check(State.PROBLEM, f"{where}: {reply.reason}"),))
    schemas = "not enforced, only requested in the prompt"
    if await backend.takes_schemas():
        schemas = "enforced"
    likelihood = await backend.answer(Likelihood(greeting, ("Yes",), ("logprobs",)))
    returns_probabilities = isinstance(likelihood, Probabilities)
    logprobs = "not returned (required by judges that use probabilities)"
    if returns_probabilities:
        logprobs = "returned"
    text = f"{where}: answers; schemas {schemas}; log-probabilities {logprobs}"
    return ServerFindings(
        (Check(State.OK, text),), backend.model, returns_probabilities
    )


async def _image_findings(
    where: str, backend: OpenAIBackend, findings: ServerFindings
) -> ServerFindings:
    """Add whether a model sees an image, and accepts two images in one question."""
    from vieval_plugin.backends.http.sight import Sight

    checked = await backend.check_sight()
    if checked.sight == Sight.BLIND:
        reason = f"does not see images ({checked.evidence}); serve a vision model"
        problem = Check(State.PROBLEM, f"{where}: {reason}")
        return replace(findings, checks=(*findings.checks, problem), sees=False)
    sight = Check(State.OK, f"{where}: sees images")
    if checked.sight == Sight.UNKNOWN:
        reason = (
            "could not verify that it sees images, because the reply does not mention a "
            f"colour ({checked.evidence})"
        )
        sight = Check(State.UNSURE, f"{where}: {reason}")
    checks = [*findings.checks, sight]
    two_image_refusal = await backend.refusal_of_two_images()
    if two_image_refusal:
        refusal = (
            f"{where}: refuses two images in one question ({two_image_refusal}); "
            "configure the server to accept two images, because judges of edits "
            "show the source and the output"
        )
        checks.append(Check(State.PROBLEM, refusal))
    return replace(findings, checks=tuple(checks))


async def _listed_model(url: str) -> str:
    """The one model that a server lists; VievalError where it lists none or several, or does not
    answer.
    """
    from vieval_plugin.backends.http.faults import KEY_REMEDY, Refused, key_hint
    from vieval_plugin.backends.http.server import (
        NO_FILE,
        Server,
        Usage,
        endpoint,
        server_options,
    )
    from vieval_plugin.config import Backbone
    from vieval_plugin.text.errors import VievalError
    from vieval_plugin.text.redaction import redacted
    from vieval_plugin.text.yaml_json import read_json

    backbone = Backbone(model="", base_url=(url,), timeout=_SECONDS, retries=0)
    try:
        async with Server(server_options("judge", backbone), Usage(), 0) as server:
            document = read_json(
                (await server.fetch(endpoint(url, "models"), 1 << 20)).decode()
            )
        names = [str(row["id"]) for row in document["data"]]
    except (Refused, ValueError, KeyError, TypeError) as error:
        reason = str(error).removeprefix(f"{NO_FILE}: ")
        reason = " ".join(redacted(reason).split())[:200]
        advice = (
            "start the server, correct the address (it must end in /v1), or pass "
            "--model"
        )
        if isinstance(error, Refused) and error.code in (401, 403):
            hint = "" if backbone.key("judge") else key_hint()
            advice = f"pass --model, or {KEY_REMEDY}{hint}"
        raise VievalError(
            f"{redacted(url)} does not list its models ({reason}); {advice}"
        ) from None
    if len(names) != 1:
        listed = ", ".join(names[:20])
        raise VievalError(
            f"{redacted(url)} lists {len(names)} models ({listed}); pass one as --model"
        )
    return names[0]


def _benchmarks_by_state(root: Path) -> tuple[list[str], list[str]]:
    """The benchmarks whose data are complete, and those whose are not."""
    from vieval_plugin.benchmarks.registry import benchmarks

    prepared = list[str]()
    unprepared = list[str]()
    for name, benchmark in benchmarks().items():
        if not benchmark.generates and benchmark.root == "data":
            lacks_data = any(benchmark.missing(root, part) for part in benchmark.parts)
            (unprepared if lacks_data else prepared).append(name)
    return prepared, unprepared


def _abilities(options: Config, servers: Sequence[ServerFindings]) -> Iterator[Ability]:
    """Jobs of judges, harnesses, rewards and benchmarks, by what the servers can do."""
    from vieval_plugin.judges import registry as judge_registry
    from vieval_plugin.text.errors import docs_url, install_advice
    from vieval_plugin.text.wording import plural

    judges: dict[Ability, list[str]] = {}
    for name, spec in judge_registry.judges().items():
        ability = _scoring(spec, servers)
        if not ability.needs:
            ability = replace(ability, needs=_preparation_error(name, options))
        judges.setdefault(ability, []).append(name)
    for ability, names in sorted(judges.items(), key=lambda item: item[0].job):
        yield Ability(ability.job.format(", ".join(names)), ability.needs)
    prepared, unprepared = _benchmarks_by_state(options.data_folder())
    harnesses = {
        "lmms_eval": ("lmms-eval tasks", install_advice("lmms-eval")),
        "vlmeval": (
            "VLMEvalKit datasets",
            f"VLMEvalKit; see {docs_url('guides/harnesses.md#vlmevalkit')}",
        ),
    }
    for module, (job, advice) in harnesses.items():
        needs = "" if importlib.util.find_spec(module) else advice
        yield Ability(
            f"run {job} on {', '.join(prepared)} (`vieval tasks` lists them)", needs
        )
    if unprepared:
        benchmarks = plural(len(unprepared), "more benchmark")
        such_as = ", ".join(unprepared[:3])
        yield Ability(
            f"run tasks on {benchmarks}, such as {such_as}",
            "their data; run `vieval prepare NAME` to download it",
        )
    needs = _missing_packages(["aiohttp"], "http")
    yield Ability("serve judges as rewards (`vieval serve`)", needs)


def _scoring(spec: JudgeSpec, servers: Sequence[ServerFindings]) -> Ability:
    """The job of a judge, with braces for its name, and what it needs."""
    from vieval_plugin.judges.tools.ocr import TOOL as OCR

    if spec.pack and not spec.scored:
        return _scoring_by_model(spec, servers)
    if spec.reads_text:
        needs = _missing_packages(OCR.needs, "text")
        return Ability("score the text in images with {}", needs)
    if spec.scored:
        needs = _missing_packages(_SCORER_PACKAGES, "scorers")
        return Ability(
            "score images with {} (weights are downloaded on first use)", needs
        )
    return Ability("score images with {}", _missing_package(spec.name))


def _preparation_error(name: str, options: Config) -> str:
    """The error with which each run of a judge would end; empty without one."""
    from vieval_plugin.run.prepare import prepare
    from vieval_plugin.text.errors import VievalError

    try:
        prepare(name, None, options)
    except VievalError as error:
        return str(error).removeprefix(f"{name}: ")
    return ""


def _scoring_by_model(spec: JudgeSpec, servers: Sequence[ServerFindings]) -> Ability:
    """The job of a judge that asks a model, by the first server that offers what it needs."""
    from vieval_plugin.judges import tools
    from vieval_plugin.text.errors import docs_url

    job = "score images with {}"
    if spec.uses_tools(spec.options(), spec.plain):
        packages = {name: None for tool in tools.planned() for name in tool.needs}
        needs = _missing_packages(packages, "tools")
        if needs:
            return Ability(job, needs)
    answering = [server for server in servers if server.model]
    seeing = [server for server in answering if server.sees]
    fitting = [
        server
        for server in seeing
        if server.returns_probabilities or not spec.reads_probabilities
    ]
    if fitting:
        # the job is a format, and a model's name may have braces
        model = fitting[0].model.replace("{", "{{").replace("}", "}}")
        return Ability(f"{job} by {model}")
    address = docs_url("guides/scoring.md#choose-a-backbone")
    needs = f"a model on a server (--model NAME --base-url URL); see {address}"
    if servers:
        needs = "a server that answers"
    if answering:
        needs = "a model that sees images"
    if seeing:
        needs = "a server that returns log-probabilities"
    return Ability(job, needs)


def _missing_packages(names: Iterable[str], extra: str) -> str:
    """The missing packages, with the advice to install an extra; empty if none is missing."""
    from vieval_plugin.text.errors import install_advice

    missing = [name for name in names if not importlib.util.find_spec(name)]
    return f"{', '.join(missing)}; {install_advice(extra)}" if missing else ""


def _missing_package(metric: str) -> str:
    """The package that a pixel metric lacks, with advice, which the metric itself says of noise."""
    import numpy as np

    from vieval_plugin.backends.metrics.pixel_metrics import METRICS
    from vieval_plugin.text.errors import VievalError, install_advice

    noise = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), np.uint8)
    try:
        if metric in METRICS:
            METRICS[metric]({"image": noise[0], "reference": noise[1]})
    except VievalError:
        return f"scikit-image; {install_advice('metrics')}"
    return ""
