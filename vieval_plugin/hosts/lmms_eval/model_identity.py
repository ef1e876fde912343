"""Names of the host's models, and hashes that tell them apart; what our tasks learn of a run.

The host tells tasks its command line only, and of a run from Python nothing. So a model keeps the
name and arguments that it was made from, and each of our tasks gets the identity of the model that
is to answer it.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from vieval_plugin.hosts import shutdown
from vieval_plugin.hosts.lmms_eval import settings
from vieval_plugin.meta_evaluation.metrics import REMARKS
from vieval_plugin.text.yaml_json import JsonObject

_SECRET = re.compile(r"(key|token|secret|password)$", re.IGNORECASE)
_NAMES = ("name", "model_version", "pretrained", "model", "folder", "file")
_ATTRIBUTES = ("model_version", "pretrained", "model_name", "path")
_SOURCE = "vieval_source"
_ERROR = re.compile("_stderr(_clt|_clustered)?,")


@dataclass(frozen=True)
class ModelIdentity:
    """Identity of a model of the host."""

    #: Name in tables.
    name: str = ""
    #: Hash of what it was made from; empty where nothing but the object is known.
    hash: str = ""


def keep_arguments() -> None:
    """Let each model that the host makes from text keep its name and arguments. Doing it twice
    changes nothing.
    """
    from lmms_eval.api.model import lmms
    from lmms_eval.models.registry_v2 import ModelRegistryV2

    find = ModelRegistryV2.get_model_class
    create = lmms.create_from_arg_string.__func__
    if hasattr(find, "__wrapped__"):
        return

    @wraps(find)
    def get_model_class(self: Any, model_name: str, *args: Any, **kwargs: Any) -> Any:
        model_class = find(self, model_name, *args, **kwargs)
        setattr(model_class, _SOURCE, (model_name, {}))
        return model_class

    @wraps(create)
    def create_from_arg_string(
        cls: Any, arg_string: str, *args: Any, **kwargs: Any
    ) -> Any:
        from lmms_eval.utils import simple_parse_args_string

        model = create(cls, arg_string, *args, **kwargs)
        name, _ = getattr(cls, _SOURCE, (cls.__name__, {}))
        setattr(
            model,
            _SOURCE,
            (name, simple_parse_args_string(arg_string)),
        )
        return model

    ModelRegistryV2.get_model_class = get_model_class
    lmms.create_from_arg_string = classmethod(create_from_arg_string)


def tell_tasks() -> None:
    """Wrap the host's `evaluate`, which knows model, tasks and settings. Doing it twice changes
    nothing.
    """
    from lmms_eval import evaluator
    from lmms_eval.evaluator_utils import get_task_list

    if hasattr(evaluator.evaluate, "from_vieval"):
        return
    _name_results()
    evaluate = evaluator.evaluate

    @wraps(evaluate)
    def evaluate_identified(lm: Any, task_dict: Any, *args: Any, **kwargs: Any) -> Any:
        call = inspect.signature(evaluate).bind(
            lm,
            task_dict,
            *args,
            **kwargs,
        )
        tasks = (output.task for output in get_task_list(task_dict))
        ours = [task for task in tasks if hasattr(task, "vieval_model")]
        settings.check(lm, ours, call.arguments)
        identity = model_identity(lm)
        for task in ours:
            task.vieval_model = identity
        shutdown.forget_failures()
        results = evaluate(lm, task_dict, *args, **kwargs)
        shutdown.gather_failures()
        return results and without_empty_errors(results)

    evaluate_identified.from_vieval = True  # type: ignore[attr-defined]
    evaluator.evaluate = evaluate_identified


def _name_results() -> None:
    """Let results of our models have a name where the host sees none in their arguments: its
    HTTP server takes results from folders of models alone.
    """
    from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
    from lmms_eval.utils import sanitize_model_name, simple_parse_args_string

    log = GeneralConfigTracker.log_experiment_args

    @wraps(log)
    def log_experiment_args(
        self: Any, model_source: Any, model_args: Any, *args: Any, **kwargs: Any
    ) -> None:
        log(self, model_source, model_args, *args, **kwargs)
        if not self.model_name and str(model_source).startswith("vieval_"):
            self.model_name = _label_from_arguments(
                simple_parse_args_string(model_args), str(model_source)
            )
            self.model_name_sanitized = sanitize_model_name(self.model_name)

    GeneralConfigTracker.log_experiment_args = log_experiment_args


def without_empty_errors(results: JsonObject) -> JsonObject:
    """The host's results without standard errors of our tasks, which it never has: our metrics
    have intervals.
    """
    for row in (*results["results"].values(), *results.get("groups", {}).values()):
        if f"{REMARKS},none" in row:
            empty = [key for key in row if _ERROR.search(key) and row[key] == "N/A"]
            for key in empty:
                del row[key]
    return results


def model_identity(model: Any) -> ModelIdentity:
    """Return the name and hash of a model of the host.

    The name is that, or the weights or version, among its arguments, else among its attributes,
    else its registered name or class. An object that a user made has no hash: its weights may be
    any.
    """
    source: tuple[str, JsonObject] | None = vars(model).get(_SOURCE)
    if source is None:
        attributes = [getattr(model, name, None) for name in _ATTRIBUTES]
        weights = getattr(
            getattr(model, "config", None),
            "_name_or_path",
            None,
        )
        return ModelIdentity(_label([*attributes, weights], type(model).__name__))
    registered, arguments = source
    public = {key: value for key, value in arguments.items() if not _SECRET.search(key)}
    text = json.dumps([registered, public], sort_keys=True, default=str)
    return ModelIdentity(
        _label_from_arguments(arguments, registered),
        hashlib.sha256(text.encode()).hexdigest(),
    )


def _label_from_arguments(arguments: JsonObject, registered: str) -> str:
    return _label([arguments.get(name) for name in _NAMES], registered)


def _label(names: Sequence[Any], otherwise: str) -> str:
    """The last part of the first name that is there."""
    texts = (str(name) for name in names if isinstance(name, str | int) and name)
    return next(texts, otherwise).rstrip("/").rsplit("/", 1)[-1]
