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

from vieval_plugin.backends.metrics.vieval_small_layers import (
    STATE,
    WIDE,
    WORDS,
    Looker,
    Residual,
    Words,
    block,
    by_region,
    compared,
    head,
    judgement,
    pooled,
    spread,
    trunk,
)

# red, orange, yellow, blue, green, purple, pink as the drawings have them
_HUES = ((214, 40, 40), (245, 130, 35), (250, 205, 40), (40, 90, 210), (50, 160, 70), (140, 70, 175), (240, 130, 175))
_OCTAVES, _STEPS = 4, tuple(-9.5 + 0.75 * n for n in range(11))
Given: TypeAlias = Mapping[str, Mapping[str, Tensor]]
"""By kind: `output` and `condition` (n, channels, 96, 96) in [0, 1] and `words` (n, words), or `full` (n, 3, height, width)."""
Told: TypeAlias = dict[str, Tensor]
"""`score` (n,), `wrong` (n, defects), and where there are such facts `asked` and `shown` (n, facts), and `places`
(n, facts, 12, 12): what is where."""


def _scored(numbers: Tensor) -> Told:
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

    def forward(self, given: Given) -> dict[str, Told]:
        [(kind, held)] = given.items()
        features = self.trunk(torch.cat([held["output"], _near_hues(held["output"])], 1))
        seen = torch.cat([pooled(features), spread(features)], 1)
        read, found = self.words(held["words"], features)
        # each word with its neighbours asks for so many things of a hue
        each = F.softplus(self.asked(self.words.reader(held["words"])).float() - 3)
        asked = (each * (held["words"] > 0).unsqueeze(-1)).sum(1) / 4
        places = self.places(features)
        shown = F.softplus(places[:, : self.hues].float() - 3).sum((2, 3)) / 4
        lacking = (asked - shown).sum(1, keepdim=True)
        numbers = self.head(torch.cat([seen, read, found, compared(asked, shown), lacking.abs()], 1))
        return {kind: {**_scored(numbers), "asked": asked, "shown": shown, "places": places}}


def _near_hues(pictures: Tensor) -> Tensor:
    """How near each pixel is to each of the hues that things are drawn in: (n, 7, 96, 96), 1 at the hue itself."""
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

    def forward(self, given: Given) -> dict[str, Told]:
        stacked = torch.cat([_stacked(held["output"], held["condition"]) for held in given.values()])
        features = self.trunk(stacked)
        seen = torch.cat([pooled(features), spread(features)], 1)
        read, found = self.words(torch.cat([held["words"] for held in given.values()]), features)
        asked, shown, places = self.asked(read), self.shown(seen), self.places(features)
        there = F.softplus(places[:, : self.hues].float() - 3).sum((2, 3))
        known = seen, by_region(features), read, found, compared(asked, shown), there
        told = {"asked": asked, "shown": shown, "places": places}
        return _apart(given, {**_scored(self.head(torch.cat(known, 1))), **told})


def _apart(given: Given, told: Told) -> dict[str, Told]:
    """What was computed of all kinds together, by kind."""
    sizes = [len(held["output"]) for held in given.values()]
    parts = {name: torch.split(tensor, sizes) for name, tensor in told.items()}
    return {kind: {name: some[n] for name, some in parts.items()} for n, kind in enumerate(given)}


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
        self.looker = Looker(WIDE, 96)
        # so that a part can look where it belongs, and not only for its like
        self.parts = nn.Parameter(torch.randn(16, WIDE) / 4)
        self.asked, self.shown = head(16 * WIDE, sum(facts)), head(16 * 96, sum(facts))
        toy, text = 2 * STATE + 4 * sum(facts) + len(facts) - 1, 2 * WORDS + 2 * STATE
        sizes = {"sdig": text + toy, "sdie": text + toy + 12 * WIDE, "mcic": text + 2 * toy}
        self.heads = nn.ModuleDict({kind: judgement(size, defects) for kind, size in sizes.items()})

    def forward(self, given: Given) -> dict[str, Told]:
        # in one batch, so that normalisation sees the same when it learns as when it judges
        sizes = [len(held["output"]) for held in given.values()]
        outputs = iter(torch.split(self.trunk(torch.cat([held["output"] for held in given.values()])), sizes))
        portraits = {kind: _portraits(kind, held["condition"]) for kind, held in given.items()}
        together = [one for some in portraits.values() for one in some]
        shrunk = F.adaptive_avg_pool2d(torch.cat(together), 64)
        features = iter(torch.split(self.portraits(shrunk), [len(one) for one in together]))
        told: dict[str, Told] = {}
        for kind, held in given.items():
            output = next(outputs)
            seen, asked, shown = [*self.words(held["words"], output)], [], []
            for _ in portraits[kind]:
                parts = F.adaptive_avg_pool2d(next(features)[..., 1:7].contiguous(), 4).flatten(2).transpose(1, 2)
                state, found = self.looker(parts + self.parts, output)
                asked.append(self.asked(parts.flatten(1)).float())
                shown.append(self.shown(found.flatten(1)).float())
                seen += [state.mean(1), state.amax(1), self._toys(asked[-1], shown[-1])]
            if kind == "sdie":
                changed = self.beside(_stacked(held["output"], held["condition"][:, :3]))
                seen += [pooled(changed), spread(changed), by_region(changed)]
            numbers = self.heads[kind](torch.cat(seen, 1))
            told[kind] = {**_scored(numbers), "asked": torch.cat(asked, 1), "shown": torch.cat(shown, 1)}
        return told

    def _toys(self, asked: Tensor, shown: Tensor) -> Tensor:
        """Two toys beside each other: how likely they are to share each feature, and their features and colours."""
        one, two = ([*torch.split(toy, [*self.groups], 1)] for toy in (asked, shown))
        features = [(a.softmax(1), b.softmax(1)) for a, b in zip(one[:-1], two[:-1], strict=True)]
        same = [(a * b).sum(1, keepdim=True) for a, b in features]
        pairs = [*features, (one[-1], two[-1])]
        return torch.cat([*same, *(compared(a, b) for a, b in pairs)], 1)


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

    def forward(self, given: Given) -> dict[str, Told]:
        [(kind, held)] = given.items()
        one = F.normalize(self.output(held["output"]), dim=1)
        two = F.normalize(self.control(held["condition"]), dim=1)
        side, around = two.shape[-1], F.pad(two, (2, 2, 2, 2))
        moved = [(one * around[..., y : y + side, x : x + side]).sum(1) for y in range(5) for x in range(5)]
        cells = self.cells(torch.cat([torch.stack(moved, 1), two], 1))
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

    def forward(self, given: Given) -> dict[str, Told]:
        [(kind, held)] = given.items()
        x, told = self.begin(held["full"]), [self.known(_detail(held["full"]))]
        for scale in self.scales:
            x = scale(x)
            told += [pooled(x), spread(x)]
        return {kind: _scored(self.head(torch.cat(told, 1)))}


def _detail(pictures: Tensor) -> Tensor:
    """In how much of a picture there is more than so much detail: of brightness and colour, of several octaves, across,
    upright and diagonal (n, octaves * 9 * steps). Noise shows where a picture is plainest, and blur where it is sharpest."""
    red, green, blue = pictures.unbind(1)
    x = torch.stack([(red + green + blue) / 3, red - green, green - blue], 1)
    told = []
    for _ in range(_OCTAVES):
        x = x[..., : x.shape[2] // 2 * 2, : x.shape[3] // 2 * 2]
        a, b, c, d = (x[..., i::2, j::2] for i in (0, 1) for j in (0, 1))
        waves = torch.cat([a - b + c - d, a + b - c - d, a - b - c + d], 1) / 4
        amount = torch.log2(F.avg_pool2d(waves.abs(), 4) + 1e-3)
        told += [torch.sigmoid(2 * (amount - step)).mean((2, 3)) for step in _STEPS]
        x = (a + b + c + d) / 4
    return torch.cat(told, 1)


PARTS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "generation": (Prompted, ("tig",)),
    "edits": (Edits, ("mie", "tie")),
    "subjects": (Subjects, ("sdig", "sdie", "mcic")),
    "control": (Control, ("cig",)),
    "quality": (Quality, ("tig", "mie", "tie", "sdig", "sdie", "mcic", "cig")),
}
"""The networks by name, and the kinds that each scores."""
