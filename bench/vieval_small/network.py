"""The networks of `vieval_small`, in plain PyTorch: one a group of kinds for consistency, and one for quality.

They share no weights, so that each is trained by itself. All give (samples, 1 + further numbers), the first being the
score before the sigmoid, and what else they learn beside it (which defect, which colours, what a toy looks like).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDE, WORDS, STATE = 128, 64, 96
"""Numbers that are known of a place of a picture, of a word, and of what a word found."""


def block(inside: int, outside: int, stride: int = 1, size: int = 3) -> nn.Sequential:
    """A convolution, normalised, without what is below 0."""
    convolution = nn.Conv2d(inside, outside, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


class Residual(nn.Module):
    """Two blocks whose result is added to what they are given."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one, self.two = block(channels, channels), block(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        more: Tensor = self.two(self.one(x))
        return x + more


def trunk(channels: int, fine: int = 64) -> nn.Sequential:
    """Pictures (n, channels, 96, 96) to features (n, 128, 12, 12); `fine` is how many there are at 24 x 24 places."""
    begin = block(channels, 32, 2, 5), block(32, fine, 2), Residual(fine)
    return nn.Sequential(*begin, block(fine, WIDE, 2), Residual(WIDE))


def pooled(features: Tensor) -> Tensor:
    """Mean and maximum over all places: (n, 2 * channels)."""
    return torch.cat([features.mean((2, 3)), features.amax((2, 3))], 1)


def spread(features: Tensor) -> Tensor:
    """Standard deviations; `var` takes five times as long for channels that lie last."""
    x = features.float()
    return (x.square().mean((2, 3)) - x.mean((2, 3)).square()).clamp(min=0).add(1e-4).sqrt()


def head(inside: int, outside: int, hidden: int = 128) -> nn.Sequential:
    """Two layers."""
    return nn.Sequential(nn.Linear(inside, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, outside))


def judgement(inside: int, defects: int) -> nn.Sequential:
    """A head from all features to the score and the defects."""
    return nn.Sequential(nn.Linear(inside, 192), nn.ReLU(inplace=True), head(192, 1 + defects, 96))


def compared(expected: Tensor, observed: Tensor) -> Tensor:
    """Both, and how they differ, with and without sign: (n, 4 * facts)."""
    return torch.cat([expected, observed, expected - observed, (expected - observed).abs()], 1)


def by_region(features: Tensor) -> Tensor:
    """The means of nine regions."""
    return F.adaptive_avg_pool2d(features, 3).flatten(1)


class Reader(nn.Module):
    """Words as vectors of themselves and their neighbours."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WORDS, padding_idx=0)
        self.one = nn.Conv1d(WORDS, WORDS, 3, padding=1)
        self.two = nn.Conv1d(WORDS, WORDS, 3, padding=1)

    def forward(self, words: Tensor) -> Tensor:
        is_not_padding = (words > 0).unsqueeze(1)
        x = self.embedding(words).transpose(1, 2)
        x = x + F.relu(self.one(x)) * is_not_padding
        read: Tensor = (x + F.relu(self.two(x))) * is_not_padding
        return read.transpose(1, 2)


class CrossAttention(nn.Module):
    """Each query looks for its like among the places of a picture, and says what it found and how that differs."""

    def __init__(self, queries: int, size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(n, size) for n in (queries, WIDE, WIDE))
        self.own = nn.Linear(queries, size)
        layers = nn.Linear(4 * size, STATE), nn.ReLU(inplace=True), nn.Linear(STATE, STATE), nn.ReLU(inplace=True)
        self.told = nn.Sequential(*layers)

    def forward(self, queries: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        places = features.flatten(2).transpose(1, 2)
        sought = self.query(queries).unsqueeze(1), self.key(places).unsqueeze(1), self.value(places).unsqueeze(1)
        attended = F.scaled_dot_product_attention(*sought).squeeze(1)
        transformed = self.own(queries)
        return self.told(
            torch.cat([transformed, attended, transformed * attended, (transformed - attended).abs()], -1)
        ), attended


class Words(nn.Module):
    """Features of the words and of what they find: (n, 2 * 64) of the words alone and (n, 2 * 96) beside the picture."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.reader, self.looker = Reader(vocabulary), CrossAttention(WORDS, 64)

    def forward(self, words: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        read, is_not_padding = self.reader(words), words > 0
        return over_words(read, is_not_padding), over_words(self.looker(read, features)[0], is_not_padding)


def over_words(states: Tensor, is_not_padding: Tensor) -> Tensor:
    """Mean and maximum over the words that are there; zeros where there are none."""
    mask = is_not_padding.unsqueeze(-1)
    mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
    return torch.cat([mean, (states * mask).amax(1)], 1)


# red, orange, yellow, blue, green, purple, pink as the drawings have them
_HUES = ((214, 40, 40), (245, 130, 35), (250, 205, 40), (40, 90, 210), (50, 160, 70), (140, 70, 175), (240, 130, 175))
_OCTAVES, _STEPS = 4, tuple(-9.5 + 0.75 * n for n in range(11))
InputsBySampleKind: TypeAlias = Mapping[str, Mapping[str, Tensor]]
"""By kind: `output` and `condition` (n, channels, 96, 96) in [0, 1] and `words` (n, words), or `full` (n, 3, height, width)."""
Outputs: TypeAlias = dict[str, Tensor]
"""`score` (n,), `wrong` (n, defects), and where there are such facts `asked` and `shown` (n, facts), and `places`
(n, facts, 12, 12): what is where."""


def _scored(numbers: Tensor) -> Outputs:
    return {"score": numbers[:, 0], "wrong": numbers[:, 1:]}


class Prompted(nn.Module):
    """SC of `tig`: how many things of each hue the words ask for, and how many there are, summed over the places."""

    def __init__(self, vocabulary: int, defects: int, facts: Sequence[int]) -> None:
        super().__init__()
        self.hues = facts[0]
        self.trunk, self.words = trunk(3 + len(_HUES), 96), Words(vocabulary)
        self.asked = head(WORDS, self.hues)
        self.places = nn.Sequential(block(WIDE, 64, 1, 1), nn.Conv2d(64, sum(facts), 1))
        self.head = judgement(3 * WIDE + 2 * STATE + 2 * WORDS + 4 * self.hues + 1, defects)

    def forward(self, inputs: InputsBySampleKind) -> dict[str, Outputs]:
        [(kind, tensors)] = inputs.items()
        features = self.trunk(torch.cat([tensors["output"], _near_hues(tensors["output"])], 1))
        features_of_picture = torch.cat([pooled(features), spread(features)], 1)
        read, findings = self.words(tensors["words"], features)
        # each word with its neighbours asks for so many things of a hue
        hue_counts_by_word = F.softplus(self.asked(self.words.reader(tensors["words"])).float() - 3)
        asked_hue_amounts = (hue_counts_by_word * (tensors["words"] > 0).unsqueeze(-1)).sum(1) / 4
        places = self.places(features)
        visible_hue_amounts = F.softplus(places[:, : self.hues].float() - 3).sum((2, 3)) / 4
        missing = (asked_hue_amounts - visible_hue_amounts).sum(1, keepdim=True)
        numbers = self.head(
            torch.cat(
                [features_of_picture, read, findings, compared(asked_hue_amounts, visible_hue_amounts), missing.abs()],
                1,
            )
        )
        return {kind: {**_scored(numbers), "asked": asked_hue_amounts, "shown": visible_hue_amounts, "places": places}}


def _near_hues(pictures: Tensor) -> Tensor:
    """Nearness of each pixel to each of the hues that things are drawn in: (n, 7, 96, 96), 1 at the hue itself."""
    hues = torch.tensor(_HUES, device=pictures.device) / 255
    away = (pictures[:, None] - hues[None, :, :, None, None]).square().sum(2)
    return torch.exp(-away / (2 * 0.15**2))


class Edits(nn.Module):
    """SC of `mie` and `tie`: output, source, what differs and the mask, looked at together, beside the words."""

    def __init__(self, vocabulary: int, defects: int, facts: Sequence[int]) -> None:
        super().__init__()
        self.hues = facts[0]
        self.trunk, self.words = trunk(10, 96), Words(vocabulary)
        self.asked = head(2 * WORDS, self.hues)
        self.shown = head(3 * WIDE, self.hues)
        self.places = nn.Sequential(block(WIDE, 64, 1, 1), nn.Conv2d(64, sum(facts), 1))
        self.head = judgement(12 * WIDE + 2 * STATE + 2 * WORDS + 5 * self.hues, defects)

    def forward(self, inputs: InputsBySampleKind) -> dict[str, Outputs]:
        stacked = torch.cat([_stacked(tensors["output"], tensors["condition"]) for tensors in inputs.values()])
        features = self.trunk(stacked)
        features_of_picture = torch.cat([pooled(features), spread(features)], 1)
        read, findings = self.words(torch.cat([tensors["words"] for tensors in inputs.values()]), features)
        asked_hue_amounts, visible_hue_amounts, places = (
            self.asked(read),
            self.shown(features_of_picture),
            self.places(features),
        )
        amounts = F.softplus(places[:, : self.hues].float() - 3).sum((2, 3))
        known = (
            features_of_picture,
            by_region(features),
            read,
            findings,
            compared(asked_hue_amounts, visible_hue_amounts),
            amounts,
        )
        outputs = {"asked": asked_hue_amounts, "shown": visible_hue_amounts, "places": places}
        return _split_by_kind(inputs, {**_scored(self.head(torch.cat(known, 1))), **outputs})


def _split_by_kind(inputs: InputsBySampleKind, outputs: Outputs) -> dict[str, Outputs]:
    """Outputs that were computed of all kinds together, by kind."""
    sizes = [len(tensors["output"]) for tensors in inputs.values()]
    parts = {name: torch.split(tensor, sizes) for name, tensor in outputs.items()}
    return {kind: {name: pieces[n] for name, pieces in parts.items()} for n, kind in enumerate(inputs)}


def _stacked(output: Tensor, condition: Tensor) -> Tensor:
    """Output, source, how they differ, and the mask, or zeros where there is none: (n, 10, 96, 96)."""
    source = condition[:, :3]
    mask = condition[:, 3:4] if condition.shape[1] == 4 else torch.zeros_like(output[:, :1])
    return torch.cat([output, source, (output - source).abs(), mask], 1)


class Subjects(nn.Module):
    """SC of `sdig`, `sdie` and `mcic`: parts of each portrait look for their like in the output.

    Of each toy it learns which animal, belly and garment it has, and its colours.
    """

    def __init__(self, vocabulary: int, defects: int, facts: Sequence[int]) -> None:
        super().__init__()
        self.groups = tuple(facts)
        self.trunk, self.beside, self.words = trunk(3), trunk(10), Words(vocabulary)
        # portraits are large and plain, so that less is needed for them
        self.portraits = nn.Sequential(block(3, 32, 2, 5), block(32, 64, 2), block(64, WIDE, 2), Residual(WIDE))
        self.looker = CrossAttention(WIDE, 96)
        # so that a part can look where it belongs, and not only for its like
        self.parts = nn.Parameter(torch.randn(16, WIDE) / 4)
        self.asked, self.shown = head(16 * WIDE, sum(facts)), head(16 * 96, sum(facts))
        toy, text = 2 * STATE + 4 * sum(facts) + len(facts) - 1, 2 * WORDS + 2 * STATE
        sizes = {"sdig": text + toy, "sdie": text + toy + 12 * WIDE, "mcic": text + 2 * toy}
        self.heads = nn.ModuleDict({kind: judgement(size, defects) for kind, size in sizes.items()})

    def forward(self, inputs: InputsBySampleKind) -> dict[str, Outputs]:
        # in one batch, so that normalisation sees the same when it learns as when it judges
        sizes = [len(tensors["output"]) for tensors in inputs.values()]
        outputs = iter(torch.split(self.trunk(torch.cat([tensors["output"] for tensors in inputs.values()])), sizes))
        portraits = {kind: _portraits(kind, tensors["condition"]) for kind, tensors in inputs.items()}
        toys = [portrait for of_kind in portraits.values() for portrait in of_kind]
        shrunk = F.adaptive_avg_pool2d(torch.cat(toys), 64)
        features = iter(torch.split(self.portraits(shrunk), [len(portrait) for portrait in toys]))
        outputs_by_kind: dict[str, Outputs] = {}
        for kind, tensors in inputs.items():
            output = next(outputs)
            summaries, asked_hue_amounts, visible_hue_amounts = [*self.words(tensors["words"], output)], [], []
            for _ in portraits[kind]:
                parts = F.adaptive_avg_pool2d(next(features)[..., 1:7].contiguous(), 4).flatten(2).transpose(1, 2)
                state, attended = self.looker(parts + self.parts, output)
                asked_hue_amounts.append(self.asked(parts.flatten(1)).float())
                visible_hue_amounts.append(self.shown(attended.flatten(1)).float())
                summaries += [state.mean(1), state.amax(1), self._toys(asked_hue_amounts[-1], visible_hue_amounts[-1])]
            if kind == "sdie":
                difference = self.beside(_stacked(tensors["output"], tensors["condition"][:, :3]))
                summaries += [pooled(difference), spread(difference), by_region(difference)]
            numbers = self.heads[kind](torch.cat(summaries, 1))
            outputs_by_kind[kind] = {
                **_scored(numbers),
                "asked": torch.cat(asked_hue_amounts, 1),
                "shown": torch.cat(visible_hue_amounts, 1),
            }
        return outputs_by_kind

    def _toys(self, asked_hue_amounts: Tensor, visible_hue_amounts: Tensor) -> Tensor:
        """Two toys beside each other: how likely they are to share each feature, and their features and colours."""
        first, second = ([*torch.split(toy, [*self.groups], 1)] for toy in (asked_hue_amounts, visible_hue_amounts))
        features = [(a.softmax(1), b.softmax(1)) for a, b in zip(first[:-1], second[:-1], strict=True)]
        agreement = [(a * b).sum(1, keepdim=True) for a, b in features]
        pairs = [*features, (first[-1], second[-1])]
        return torch.cat([*agreement, *(compared(a, b) for a, b in pairs)], 1)


def _portraits(kind: str, condition: Tensor) -> tuple[Tensor, ...]:
    return torch.split(condition[:, 3:] if kind == "sdie" else condition, 3, 1)


class Control(nn.Module):
    """SC of `cig`: how far the outlines of an output are from those of its control, over shifts of 2 places each way."""

    def __init__(self, vocabulary: int, defects: int, facts: Sequence[int]) -> None:
        super().__init__()
        self.output = nn.Sequential(block(3, 16, 2, 5), nn.Conv2d(16, 16, 3, 1, 1))
        self.control = nn.Sequential(block(1, 16, 2, 5), nn.Conv2d(16, 16, 3, 1, 1))
        self.cells = nn.Sequential(block(25 + 16, 40, 1, 1), block(40, 40, 2), block(40, 48, 2), block(48, 48))
        self.head = head(3 * 48, 1 + defects)

    def forward(self, inputs: InputsBySampleKind) -> dict[str, Outputs]:
        [(kind, tensors)] = inputs.items()
        outlines = F.normalize(self.output(tensors["output"]), dim=1)
        control_outlines = F.normalize(self.control(tensors["condition"]), dim=1)
        side, around = control_outlines.shape[-1], F.pad(control_outlines, (2, 2, 2, 2))
        shifted = [(outlines * around[..., y : y + side, x : x + side]).sum(1) for y in range(5) for x in range(5)]
        cells = self.cells(torch.cat([torch.stack(shifted, 1), control_outlines], 1))
        return {kind: _scored(self.head(torch.cat([pooled(cells), spread(cells)], 1)))}


class Quality(nn.Module):
    """PQ: how good a picture is as a picture; how much detail of each size there is, and features of four scales, each by
    its mean, maximum and deviation."""

    def __init__(self, vocabulary: int, defects: int, facts: Sequence[int]) -> None:
        super().__init__()
        wide = (24, 32, 48, 64, 96)
        self.begin = block(3, wide[0], 2, 5)
        self.scales = nn.ModuleList(block(a, b, 2) for a, b in pairwise(wide))
        self.known = nn.BatchNorm1d(_OCTAVES * 9 * len(_STEPS))
        self.head = judgement(self.known.num_features + 3 * sum(wide[1:]), defects)

    def forward(self, inputs: InputsBySampleKind) -> dict[str, Outputs]:
        [(kind, tensors)] = inputs.items()
        x, summaries = self.begin(tensors["full"]), [self.known(_detail(tensors["full"]))]
        for scale in self.scales:
            x = scale(x)
            summaries += [pooled(x), spread(x)]
        return {kind: _scored(self.head(torch.cat(summaries, 1)))}


def _detail(pictures: Tensor) -> Tensor:
    """Shares of a picture with more than so much detail: of brightness and colour, of several octaves, across,
    upright and diagonal (n, octaves * 9 * steps). Noise shows where a picture is plainest, and blur where it is
    sharpest."""
    red, green, blue = pictures.unbind(1)
    x = torch.stack([(red + green + blue) / 3, red - green, green - blue], 1)
    shares = []
    for _ in range(_OCTAVES):
        x = x[..., : x.shape[2] // 2 * 2, : x.shape[3] // 2 * 2]
        a, b, c, d = (x[..., i::2, j::2] for i in (0, 1) for j in (0, 1))
        waves = torch.cat([a - b + c - d, a + b - c - d, a - b - c + d], 1) / 4
        amount = torch.log2(F.avg_pool2d(waves.abs(), 4) + 1e-3)
        shares += [torch.sigmoid(2 * (amount - step)).mean((2, 3)) for step in _STEPS]
        x = (a + b + c + d) / 4
    return torch.cat(shares, 1)


PARTS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "generation": (Prompted, ("tig",)),
    "edits": (Edits, ("mie", "tie")),
    "subjects": (Subjects, ("sdig", "sdie", "mcic")),
    "control": (Control, ("cig",)),
    "quality": (Quality, ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")),
}
"""The networks by name, and the kinds that each scores."""
