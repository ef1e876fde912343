"""The networks of `vieval_small` in NumPy, for the score alone; `bench/vieval_small/network.py` is what is trained.

Pictures and features are (n, height, width, channels). A `Layer` has the arrays of trained weights by their names below
it, in PyTorch's order of axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import expit, softmax

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"
Layer: TypeAlias = Mapping[str, Floats]
#: `output` and `condition` (n, 96, 96, channels) in [0, 1] and `words` (n, words), or `full` (n, 256, 256, 3).
View: TypeAlias = Mapping[str, Any]

_EPSILON = 1e-5  # of normalisation, as in training
# red, orange, yellow, blue, green, purple, pink as the drawings have them
_HUES = ((214, 40, 40), (245, 130, 35), (250, 205, 40), (40, 90, 210), (50, 160, 70), (140, 70, 175), (240, 130, 175))
_OCTAVES, _STEPS = 4, tuple(-9.5 + 0.75 * n for n in range(11))


def _sublayer(layer: Layer, name: str) -> Layer:
    """The arrays whose names begin with `name` and a dot, by what follows."""
    return {key.removeprefix(f"{name}."): array for key, array in layer.items() if key.startswith(f"{name}.")}


def _convolution(x: Floats, kernel: Floats, bias: Floats, stride: int = 1) -> Floats:
    """Features (n, height, width, out) by a kernel (out, in, height, width) of odd sides, with zeros around `x`."""
    height, width = kernel.shape[2:]
    matrix = kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel))
    padded = np.pad(x, ((0, 0), (height // 2, height // 2), (width // 2, width // 2), (0, 0)))
    windows = sliding_window_view(padded, (height, width), (1, 2))[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
    features = np.empty((*windows.shape[:3], len(kernel)), np.float32)
    for picture, row in zip(features, windows, strict=True):  # one by one, as a batch of windows would fill the memory
        np.matmul(row.reshape(-1, len(matrix)), matrix, out=picture.reshape(-1, len(kernel)))
    features += bias
    return features


def _normalised(layer: Layer) -> tuple[Floats, Floats]:
    """The scale and the shift that normalisation comes to once it is trained."""
    scale = layer["weight"] / np.sqrt(layer["running_var"] + _EPSILON)
    return scale, layer["bias"] - layer["running_mean"] * scale


def _relu(x: Floats) -> Floats:
    return np.maximum(x, 0, out=x)


def _block(layer: Layer, x: Floats, stride: int = 1) -> Floats:
    """A convolution, normalised, without what is below 0."""
    scale, shift = _normalised(_sublayer(layer, "1"))
    return _relu(_convolution(x, layer["0.weight"] * scale[:, None, None, None], shift, stride))


def _residual(layer: Layer, x: Floats) -> Floats:
    return x + _block(_sublayer(layer, "two"), _block(_sublayer(layer, "one"), x))


def _trunk(layer: Layer, x: Floats) -> Floats:
    """Pictures (n, 96, 96, channels) to features (n, 12, 12, 128)."""
    x = _block(_sublayer(layer, "1"), _block(_sublayer(layer, "0"), x, 2), 2)
    x = _block(_sublayer(layer, "3"), _residual(_sublayer(layer, "2"), x), 2)
    return _residual(_sublayer(layer, "4"), x)


def _linear(layer: Layer, x: Floats) -> Floats:
    return x @ layer["weight"].T + layer["bias"]


def _head(layer: Layer, x: Floats) -> Floats:
    return _linear(_sublayer(layer, "2"), _relu(_linear(_sublayer(layer, "0"), x)))


def _judgement(layer: Layer, summaries: Sequence[Floats]) -> Floats:
    """The score of each sample, in [0, 1], by all that is known of it."""
    numbers = _head(_sublayer(layer, "2"), _relu(_linear(_sublayer(layer, "0"), np.concatenate(summaries, 1))))
    return expit(numbers[:, 0])


def _amounts(x: Floats) -> Floats:
    return np.logaddexp(np.float32(0), x - 3)


def _statistics(features: Floats) -> Floats:
    """Mean, maximum and standard deviation over all places: (n, 3 * channels)."""
    mean = features.mean((1, 2))
    variance = np.square(features).mean((1, 2)) - np.square(mean)
    return np.concatenate([mean, features.max((1, 2)), np.sqrt(np.maximum(variance, 0) + np.float32(1e-4))], 1)


def _averaged(x: Floats, size: int) -> Floats:
    """Means of `size` times `size` regions that cover all of `x`, overlapping where its sides are no multiples."""

    def regions(side: int) -> Floats:
        first, last = np.arange(size) * side // size, -(-np.arange(1, size + 1) * side // size)
        inside = (np.arange(side) >= first[:, None]) & (np.arange(side) < last[:, None])
        means: Floats = (inside / inside.sum(1, keepdims=True)).astype(np.float32)
        return means

    n, height, width, channels = x.shape
    rows = (regions(height) @ x.reshape(n, height, -1)).reshape(n, size, width, channels)
    return regions(width) @ rows


def _by_region(features: Floats) -> Floats:
    """The means of nine regions, channel after channel."""
    return np.moveaxis(_averaged(features, 3), -1, 1).reshape(len(features), -1)


def _compared(expected: Floats, observed: Floats) -> Floats:
    """Both, and how they differ, with and without sign: (n, 4 * facts)."""
    return np.concatenate([expected, observed, expected - observed, np.abs(expected - observed)], 1)


def _read(layer: Layer, token_ids: Any) -> Floats:
    """Words as vectors of themselves and their neighbours: (n, words, 64)."""
    mask: Floats = (token_ids > 0)[..., None].astype(np.float32)
    x = layer["embedding.weight"][token_ids]
    for name in ("one", "two"):
        kernel, bias = layer[f"{name}.weight"][:, :, None], layer[f"{name}.bias"]
        x = x + _relu(_convolution(x[:, None], kernel, bias)[:, 0]) * mask
    vectors: Floats = x * mask
    return vectors


def _attend(layer: Layer, queries: Floats, features: Floats) -> tuple[Floats, Floats]:
    """Facts on each query and what it attends to among the pixels of a picture, and what it attends to."""
    pixels = features.reshape(len(features), -1, features.shape[-1])
    query, key, value = (
        _linear(_sublayer(layer, name), x) for name, x in (("query", queries), ("key", pixels), ("value", pixels))
    )
    attended = softmax(query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1])), -1) @ value
    state = _linear(_sublayer(layer, "own"), queries)
    compared = np.concatenate([state, attended, state * attended, np.abs(state - attended)], -1)
    return _relu(_head(_sublayer(layer, "told"), compared)), attended


def _summarise_words(layer: Layer, token_ids: Any, features: Floats) -> list[Floats]:
    """Mean and maximum over the words: of the words alone, and of what they find in a picture."""
    vectors, mask = _read(_sublayer(layer, "reader"), token_ids), (token_ids > 0)[..., None]
    number = np.maximum(mask.sum(1), 1).astype(np.float32)
    summaries: list[Floats] = []
    for states in (vectors, _attend(_sublayer(layer, "looker"), vectors, features)[0]):
        summaries += [(states * mask).sum(1) / number, (states * mask).max(1)]
    return summaries


def _hue_amounts(layer: Layer, features: Floats) -> Floats:
    """Amount of each hue, summed over the pixels: (n, hues)."""
    x = _block(_sublayer(layer, "0"), features)
    of_hues = layer["1.weight"][: len(_HUES)], layer["1.bias"][: len(_HUES)]
    amounts: Floats = _amounts(_convolution(x, *of_hues)).sum((1, 2))
    return amounts


def _stacked(output: Floats, condition: Floats) -> Floats:
    """Output, source, how they differ, and the mask, or zeros where there is none: (n, 96, 96, 10)."""
    source, mask = condition[..., :3], condition[..., 3:4]
    masks = mask if mask.shape[-1] else np.zeros_like(output[..., :1])
    return np.concatenate([output, source, np.abs(output - source), masks], -1)


def _generation(layer: Layer, facts: Sequence[int], kind: str, view: View) -> Floats:
    """SC of `tig`."""
    output, token_ids = view["output"], view["words"]
    away = np.square(output[..., None, :] - np.array(_HUES, np.float32) / 255).sum(-1)
    features = _trunk(_sublayer(layer, "trunk"), np.concatenate([output, np.exp(-away / np.float32(2 * 0.15**2))], -1))
    by_word = _amounts(_head(_sublayer(layer, "asked"), _read(_sublayer(layer, "words.reader"), token_ids)))
    expected = (by_word * (token_ids > 0)[..., None]).sum(1) / 4
    observed = _hue_amounts(_sublayer(layer, "places"), features) / 4
    missing = np.abs((expected - observed).sum(1, keepdims=True))
    of_words = _summarise_words(_sublayer(layer, "words"), token_ids, features)
    summaries = [_statistics(features), *of_words, _compared(expected, observed), missing]
    return _judgement(_sublayer(layer, "head"), summaries)


def _edits(layer: Layer, facts: Sequence[int], kind: str, view: View) -> Floats:
    """SC of `mie` and `tie`."""
    features = _trunk(_sublayer(layer, "trunk"), _stacked(view["output"], view["condition"]))
    of_picture, of_words = _statistics(features), _summarise_words(_sublayer(layer, "words"), view["words"], features)
    expected = _head(_sublayer(layer, "asked"), np.concatenate(of_words[:2], 1))
    observed = _head(_sublayer(layer, "shown"), of_picture)
    amounts = _hue_amounts(_sublayer(layer, "places"), features)
    summaries = [of_picture, _by_region(features), *of_words, _compared(expected, observed), amounts]
    return _judgement(_sublayer(layer, "head"), summaries)


def _subjects(layer: Layer, facts: Sequence[int], kind: str, view: View) -> Floats:
    """SC of `sdig`, `sdie` and `mcic`."""
    output, condition = view["output"], view["condition"]
    portraits = condition[..., 3:] if kind == "sdie" else condition
    features = _trunk(_sublayer(layer, "trunk"), output)
    summaries = _summarise_words(_sublayer(layer, "words"), view["words"], features)
    for first in range(0, portraits.shape[-1], 3):
        x = _averaged(portraits[..., first : first + 3], 64)
        for name in ("0", "1", "2"):
            x = _block(_sublayer(layer, f"portraits.{name}"), x, 2)
        x = _residual(_sublayer(layer, "portraits.3"), x)
        parts = _averaged(x[:, :, 1:7], 4).reshape(len(x), 16, -1)
        state, attended = _attend(_sublayer(layer, "looker"), parts + layer["parts"], features)
        expected = _head(_sublayer(layer, "asked"), parts.reshape(len(x), -1))
        observed = _head(_sublayer(layer, "shown"), attended.reshape(len(x), -1))
        summaries += [state.mean(1), state.max(1), _toys(expected, observed, facts)]
    if kind == "sdie":
        difference = _trunk(_sublayer(layer, "beside"), _stacked(output, condition[..., :3]))
        summaries += [_statistics(difference), _by_region(difference)]
    return _judgement(_sublayer(layer, f"heads.{kind}"), summaries)


def _toys(expected: Floats, observed: Floats, groups: Sequence[int]) -> Floats:
    """Two toys beside each other: how likely they are to share each feature, and their features and colours."""
    first, second = (np.split(toy, np.cumsum(groups)[:-1], 1) for toy in (expected, observed))
    pairs = [(softmax(a, 1), softmax(b, 1)) for a, b in zip(first[:-1], second[:-1], strict=True)]
    agreement = [(a * b).sum(1, keepdims=True) for a, b in pairs]
    return np.concatenate([*agreement, *(_compared(a, b) for a, b in [*pairs, (first[-1], second[-1])])], 1)


def _control(layer: Layer, facts: Sequence[int], kind: str, view: View) -> Floats:
    """SC of `cig`: how far the outlines of an output are from those of its control, over shifts of 2 places each way."""

    def outlines(name: str, pictures: Floats) -> Floats:
        x = _block(_sublayer(layer, f"{name}.0"), pictures, 2)
        x = _convolution(x, layer[f"{name}.1.weight"], layer[f"{name}.1.bias"])
        lengths: Floats = np.sqrt(np.square(x).sum(-1, keepdims=True))
        return x / np.maximum(lengths, np.float32(1e-12))

    output, control = outlines("output", view["output"]), outlines("control", view["condition"])
    side, around = control.shape[1], np.pad(control, ((0, 0), (2, 2), (2, 2), (0, 0)))
    shifted = [(output * around[:, y : y + side, x : x + side]).sum(-1) for y in range(5) for x in range(5)]
    cells = np.concatenate([np.stack(shifted, -1), control], -1)
    for name, stride in (("0", 1), ("1", 2), ("2", 2), ("3", 1)):
        cells = _block(_sublayer(layer, f"cells.{name}"), cells, stride)
    return expit(_head(_sublayer(layer, "head"), _statistics(cells))[:, 0])


def _quality(layer: Layer, facts: Sequence[int], kind: str, view: View) -> Floats:
    """PQ: how much detail of each size there is, and features of four scales."""
    scale, shift = _normalised(_sublayer(layer, "known"))
    x = _block(_sublayer(layer, "begin"), view["full"], 2)
    summaries: list[Floats] = [_detail(view["full"]) * scale + shift]
    for name in ("0", "1", "2", "3"):
        x = _block(_sublayer(layer, f"scales.{name}"), x, 2)
        summaries.append(_statistics(x))
    return _judgement(_sublayer(layer, "head"), summaries)


def _detail(pictures: Floats) -> Floats:
    """Shares of a picture with more than so much detail: of brightness and colour, of several octaves, across,
    upright and diagonal (n, octaves * 9 * steps)."""
    red, green, blue = np.moveaxis(pictures, -1, 0)
    x = np.stack([(red + green + blue) / 3, red - green, green - blue], 1)
    shares = []
    for _ in range(_OCTAVES):
        n, _, height, width = x.shape
        a, b, c, d = (np.ascontiguousarray(x[..., i::2, j::2]) for i in (0, 1) for j in (0, 1))
        waves = np.abs(np.concatenate([a - b + c - d, a + b - c - d, a - b - c + d], 1))
        of_squares = waves.reshape(n, 9, height // 8, 4, width // 8, 4).mean((3, 5)) / 4
        amount = np.log2(of_squares + np.float32(1e-3))
        shares += [expit(2 * (amount - np.float32(step))).mean((2, 3)) for step in _STEPS]
        x = (a + b + c + d) / 4
    return np.concatenate(shares, 1)


#: The networks by name, and the kinds of which each gives the scores (n,) in [0, 1]; quality asks for no kind.
PARTS: dict[str, tuple[Callable[[Layer, Sequence[int], str, View], Floats], tuple[str, ...]]] = {
    "generation": (_generation, ("tig",)),
    "edits": (_edits, ("mie", "tie")),
    "subjects": (_subjects, ("sdig", "sdie", "mcic")),
    "control": (_control, ("cig",)),
    "quality": (_quality, ("",)),
}
