"""Weights from the hub, a folder or a file, whole and of the right architecture or not at all.

Nothing that comes with weights is run: formats are safetensors and state dicts of tensors, and code
beside them is left alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vieval_plugin.media.files import cache_folder
from vieval_plugin.text.errors import VievalError, install_advice, line_of
from vieval_plugin.text.untrusted import exists, isdir, path_of

#: Tensors by name.
Tensors: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Origin:
    """The origin of weights."""

    #: A name on the hub, or a path.
    model: str
    #: Revision on the hub.
    revision: str | None = None
    #: Device that they go to.
    device: str = "auto"
    #: A path or name of weights that replace those which a description names.
    replacement: str = ""


def library(name: str) -> Any:
    """A package that networks need, imported when the first is loaded; VievalError where it is
    not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise VievalError(
            f"cannot import {name} ({error}); {install_advice('scorers')}"
        ) from None


def device(name: str) -> Any:
    """The device of a name, "auto" being the first GPU, else the CPU; VievalError for
    one that does not exist.
    """
    torch = library("torch")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise VievalError(
            f"cannot use the device {name!r} ({line_of(error)}); use another, such as cpu"
        ) from None


def pretrained(
    architecture: str,
    kind: str,
    origin: Origin,
    processor: str = "",
    tensors: Tensors | None = None,
    **arguments: Any,
) -> tuple[Any, Any]:
    """A network of transformers in single precision on its device, ready to be used, and its image
    processor.

    Args:
        architecture: the class, such as `CLIPModel`.
        kind: what its configuration calls it, such as `clip`.
        origin: a name on the hub or a folder.
        processor: where the image processor is, if not there.
        tensors: the weights, where only the configuration is there.
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
            where,
            trust_remote_code=False,
            **revision_options,
        )
        if config.model_type != kind:
            raise VievalError(
                f"{where} must have the architecture {kind} ({architecture}), got "
                f"{config.model_type}"
            )
        has_bundled_processor = not processor or processor == origin.model
        images = transformers.AutoImageProcessor.from_pretrained(
            where if has_bundled_processor else hub_name_or_folder(processor),
            trust_remote_code=False,
            **(revision_options if has_bundled_processor else {}),
        )
        if tensors is not None:
            network = getattr(transformers, architecture)(config)
            return load_strictly(network, tensors, where).to(on).eval(), images
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
    unknown = [
        name
        for name in loading_info["unexpected_keys"]
        if not name.endswith(".position_ids")  # which older versions saved
    ]
    # transformers fills what is missing with random numbers
    require_whole(where, loading_info["missing_keys"], unknown, ())
    return network.to(on).eval(), images


def pretrained_tokenizer(where: str, revision: str | None = None) -> Any:
    """The tokenizer of a name on the hub or a folder; VievalError where it has none."""
    transformers = library("transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(
            hub_name_or_folder(where),
            revision=revision,
            trust_remote_code=False,
        )
    except VievalError:
        raise
    except Exception as error:  # of files that others wrote
        raise VievalError(
            f"cannot load the tokenizer of {where}: {line_of(error)[:200]}"
        ) from None


def load_strictly(network: Any, tensors: Tensors, what: str) -> Any:
    """The network with these weights, each of its own and no other; VievalError names one that
    is missing, unknown or of another shape.
    """
    wanted = {name: tuple(value.shape) for name, value in network.state_dict().items()}
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    require_whole(
        what,
        wanted.keys() - found.keys(),
        found.keys() - wanted.keys(),
        [name for name in wanted if found.get(name) != wanted[name]],
    )
    network.load_state_dict(tensors)
    return network.float()


def require_whole(
    what: str,
    missing: Collection[str],
    unknown: Collection[str],
    misshapen: Collection[str],
) -> None:
    """VievalError names a weight that is missing, unknown or of another shape."""
    faults = {
        "lacks": missing,
        "contains the unknown weight": unknown,
        "has the wrong shape for": misshapen,
    }
    for fault, names in faults.items():
        if names:
            raise VievalError(
                f"{what} {fault} {min(names)} ({len(names)} in total); use the weights as "
                "published"
            )


def renamed(tensors: Tensors, rules: Sequence[tuple[str, str]]) -> Tensors:
    """Weights under the names of another layout, by regular expressions applied in order;
    `.fused.` of queries, keys and values is split into `.q_proj.`, `.k_proj.` and `.v_proj.` parts.
    """
    names = dict[str, Any]()
    for name, tensor in tensors.items():
        for pattern, replacement in rules:
            name = re.sub(pattern, replacement, name)
        if ".fused." not in name:
            names[name] = tensor
            continue
        for part, third in zip("qkv", tensor.chunk(3), strict=True):
            names[name.replace(".fused.", f".{part}_proj.")] = third
    return names


def weights_file(name: str) -> Path:
    """The file of a path, of an address that was downloaded (`local_path`), or of a name
    OWNER/REPOSITORY/FILE or OWNER/REPOSITORY/FILE@REVISION on the hub; VievalError where it cannot
    be had.
    """
    path = local_path(name)
    if exists(path):
        return path
    if "://" in name:
        raise VievalError(f"weights file not found; download {name} to {path}")
    if name.startswith(("/", ".", "~")) or name.count("/") != 2:
        raise VievalError(f"{path}: weights file not found")
    repository, _, file = name.rpartition("/")
    file, _, revision = file.partition("@")
    try:
        return Path(
            library("huggingface_hub").hf_hub_download(
                repository,
                file,
                revision=revision or None,
            )
        )
    except VievalError:
        raise
    except Exception as error:
        raise VievalError(load_failure_reason(repository, revision, error)) from None


def local_path(name: str) -> Path:
    """The path of weights: of an address that of its file in the user's cache."""
    if "://" in name:
        return cache_folder() / name.rpartition("/")[2]
    return path_of(name)


def is_on_this_machine(name: str) -> bool:
    """Return whether weights are there: a path, or what was downloaded of an address or of a name
    on the hub, which `@` and a revision may follow.
    """
    if exists(local_path(name)):
        return True
    name, _, revision = name.partition("@")
    owner, repository, file = [*name.split("/", 2), "", ""][:3]
    is_on_hub = "/" in name and "://" not in name
    if not is_on_hub or importlib.util.find_spec("huggingface_hub") is None:
        return False
    find = library("huggingface_hub").try_to_load_from_cache
    found = find(
        f"{owner}/{repository}",
        file or "config.json",
        revision=revision or None,
    )
    return isinstance(found, str)


def require_digest(path: Path, digest: str) -> None:
    """Raise VievalError for a file whose SHA-256 differs; an empty `digest` allows any."""
    if not digest:
        return
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != digest:
        raise VievalError(
            f"{path}: SHA-256 mismatch: expected {digest}, got {found}; download it again"
        )


def state_dict(path: Path, prefix: str = "") -> Tensors:
    """The tensors of a file whose names begin with `prefix`: safetensors, or what `torch.save`
    wrote of a state dict.

    Raises:
        VievalError: there is no such file, it cannot be read, or it holds more than tensors.
    """
    torch = library("torch")
    try:
        if path.suffix == ".safetensors":
            with library("safetensors").safe_open(path, framework="pt") as tensor_file:
                tensors = {
                    name: tensor_file.get_tensor(name)
                    for name in list(tensor_file.keys())
                    if name.startswith(prefix)
                }
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
            # a file of a training has more than the weights
            if isinstance(tensors, Mapping):
                tensors = tensors.get("state_dict", tensors)
    except FileNotFoundError:
        raise VievalError(f"{path}: weights file not found") from None
    except VievalError:
        raise
    except Exception as error:
        raise VievalError(f"{path} {_unreadable(error)}") from None
    values = tensors.values() if isinstance(tensors, Mapping) else [None]
    if not all(isinstance(value, torch.Tensor) for value in values):
        raise VievalError(
            f"{path} must be a state dict that maps names to tensors only"
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
        flat = tensor.cpu().contiguous().reshape(-1)
        digest.update(flat.view(library("torch").uint8).numpy())
    return digest.hexdigest()


def weights_name(origin: Origin, network: Any, digest: str) -> str:
    """The name of weights in results: their name with the commit that was loaded, or with the
    beginning of their digest.
    """
    config = getattr(network, "config", None)
    commit = getattr(config, "_commit_hash", None)  # a folder has none
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
            f"{path} is a file; pass its folder, which must also contain config.json"
        )
    # a name on the hub has one slash at most, and begins with neither of these
    if model.startswith(("/", ".", "~")) or model.count("/") > 1:
        raise VievalError(f"{path}: weights folder not found")
    return model


def load_failure_reason(where: str, revision: str | None, error: Exception) -> str:
    """The reason why weights cannot be loaded, in one line that says what to do."""
    if not isdir(where) and isinstance(error, OSError):
        version = f" in revision {revision}" if revision else ""
        return (
            f"the weights {where}{version} are not on this machine and cannot be "
            "downloaded from the Hugging Face Hub; check the name, or pass the weights "
            "folder (name=FOLDER in --model_args, --scorer FOLDER, or scorers.NAME.model)"
        )
    return f"{where} {_unreadable(error)}"


def _unreadable(error: Exception) -> str:
    is_refused = re.search("weights_only|Weights only", str(error))
    is_pickle = is_refused or type(error).__name__ == "UnpicklingError"
    if is_pickle or isinstance(error, (LookupError, EOFError)):
        return "contains more than tensors, or is not a weights file; save it as safetensors"
    return f"cannot be loaded: {line_of(error)}"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a device's memory, or this machine's, ran out."""
    # of a GPU a type of its own, of this machine's memory words
    name = type(error).__name__
    is_named = name in ("OutOfMemoryError", "MemoryError")
    return is_named or "not enough memory" in str(error)
