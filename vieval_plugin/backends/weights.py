"""Weights from the hub, a folder or a file, whole and of the right architecture or not at all.

Nothing that comes with weights is run: formats are safetensors and state dicts of tensors, and code
beside them is left alone.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vieval_plugin.text.errors import VievalError, install_advice, line_of
from vieval_plugin.text.untrusted import exists, isdir, path_of


@dataclass(frozen=True)
class Origin:
    """The origin of weights."""

    #: A name on the hub, or a path.
    model: str
    #: Revision on the hub.
    revision: str | None = None
    #: Device that they go to.
    device: str = "auto"


def library(name: str) -> Any:
    """A package that networks need, imported when the first is loaded; VievalError where it is
    not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise VievalError(
            f"{name} cannot be imported ({error}); {install_advice('scorers')}"
        ) from None


def device(name: str) -> Any:
    """The device of a name, "auto" being the first GPU, else the CPU; VievalError for one that
    is not there.
    """
    torch = library("torch")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise VievalError(
            f"device {name!r} cannot be used ({line_of(error)}); give another, such as cpu"
        ) from None


def pretrained(
    architecture: str, kind: str, origin: Origin, processor: str = "", **arguments: Any
) -> tuple[Any, Any]:
    """A network of transformers in single precision on its device, ready to be used, and its image
    processor.

    Args:
        architecture: the class, such as `CLIPModel`.
        kind: what its configuration calls it, such as `clip`.
        origin: a name on the hub or a folder.
        processor: where the image processor is, if not there.
        arguments: further ones of the class.

    Raises:
        VievalError: the weights are not there, lack some of the network, are of another
            architecture, or hold more than tensors.
    """
    where = hub_name_or_folder(origin.model)
    on = device(origin.device)
    transformers = library("transformers")
    revision_options = {"revision": origin.revision} if origin.revision else {}
    try:
        config = transformers.AutoConfig.from_pretrained(
            where, trust_remote_code=False, **revision_options
        )
        if config.model_type != kind:
            needed = f"{kind} is needed ({architecture})"
            raise VievalError(
                f"{where} is of the architecture {config.model_type}, and {needed}"
            )
        has_bundled_processor = not processor or processor == origin.model
        images = transformers.AutoImageProcessor.from_pretrained(
            where if has_bundled_processor else hub_name_or_folder(processor),
            trust_remote_code=False,
            **(revision_options if has_bundled_processor else {}),
        )
        network, loading_info = getattr(transformers, architecture).from_pretrained(
            where,
            config=config,
            dtype="float32",
            output_loading_info=True,
            **revision_options,
            **arguments,
        )
    except VievalError:
        raise
    except Exception as error:  # of files that others wrote
        raise VievalError(load_failure_reason(where, origin.revision, error)) from None
    if loading_info["missing_keys"]:  # which transformers fills with random numbers
        raise VievalError(
            f"{where} lacks weights of {architecture}, such as {min(loading_info['missing_keys'])}"
        )
    return network.to(on).eval(), images


def state_dict(path: Path, prefix: str = "") -> dict[str, Any]:
    """The tensors of a file whose names begin with `prefix`: safetensors, or what `torch.save`
    wrote of a state dict.

    Raises:
        VievalError: there is no such file, it cannot be read, or it holds more than tensors.
    """
    torch = library("torch")
    try:
        if path.suffix == ".safetensors":
            with library("safetensors").safe_open(path, framework="pt") as tensor_file:
                names = [
                    name for name in list(tensor_file.keys()) if name.startswith(prefix)
                ]
                tensors = {name: tensor_file.get_tensor(name) for name in names}
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise VievalError(f"{path}: no such file of weights") from None
    except VievalError:
        raise
    except Exception as error:
        raise VievalError(f"{path} {_unreadable(error)}") from None
    if not isinstance(tensors, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in tensors.values()
    ):
        raise VievalError(
            f"{path} is no state dict: tensors by name are needed, and nothing else"
        )
    return {
        name: tensor for name, tensor in tensors.items() if str(name).startswith(prefix)
    }


def identity(network: Any, *preparing: str) -> str:
    """SHA-256 of all weights of a network, and of what says how its inputs are prepared, in
    hexadecimal.

    It is the same for the same weights, wherever they lie and in whatever format.
    """
    digest = hashlib.sha256("\0".join(preparing).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(
            tensor.cpu().contiguous().reshape(-1).view(library("torch").uint8).numpy()
        )
    return digest.hexdigest()


def weights_name(origin: Origin, network: Any, digest: str) -> str:
    """The name of weights in results: their name with the commit that was loaded, or with the
    beginning of their digest.
    """
    commit = getattr(
        getattr(network, "config", None), "_commit_hash", None
    )  # a folder has none
    return f"{origin.model}@{commit or f'sha256:{digest[:16]}'}"


def hub_name_or_folder(model: str) -> str:
    """A name on the hub, or the path of a folder that is there; VievalError for a file and for
    what is neither.
    """
    path = path_of(model)
    if isdir(path):
        return str(path)
    if exists(path):
        raise VievalError(
            f"{path} is a file; give the folder that it lies in, with config.json beside it"
        )
    # a name on the hub has one slash at most, and begins with neither of these
    if model.startswith(("/", ".", "~")) or model.count("/") > 1:
        raise VievalError(f"{path}: no such folder of weights")
    return model


def load_failure_reason(where: str, revision: str | None, error: Exception) -> str:
    """The reason why weights cannot be loaded, in one line that says what to do."""
    if not isdir(where) and isinstance(error, OSError):
        version = f" in revision {revision}" if revision else ""
        remedy = (
            "give a folder that holds them (name=FOLDER in --model_args, --scorer FOLDER, "
            "or scorers.NAME.model)"
        )
        message = f"the weights {where}{version} are neither on this machine nor to be had from the hub"
        return f"{message}; check the name, or {remedy}"
    return f"{where} {_unreadable(error)}"


def _unreadable(error: Exception) -> str:
    is_pickle = (
        "weights_only" in str(error)
        or "Weights only" in str(error)
        or type(error).__name__ == "UnpicklingError"
    )
    if is_pickle or isinstance(error, (LookupError, EOFError)):
        return (
            "holds more than tensors, or is no file of weights; save it as safetensors"
        )
    return f"cannot be loaded: {line_of(error)}"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a device's memory, or this machine's, ran out."""
    # of a GPU a type of its own, of this machine's memory words
    return type(error).__name__ in (
        "OutOfMemoryError",
        "MemoryError",
    ) or "not enough memory" in str(error)
