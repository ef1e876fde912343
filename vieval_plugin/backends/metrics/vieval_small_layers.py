"""What the networks of `vieval_small` are built of: features of pictures, readings of words, and what words find in pictures."""

from __future__ import annotations

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
    """From all that was seen to the score and which defect there is."""
    return nn.Sequential(nn.Linear(inside, 192), nn.ReLU(inplace=True), head(192, 1 + defects, 96))


def compared(asked: Tensor, shown: Tensor) -> Tensor:
    """Both, and how they differ, with and without sign: (n, 4 * facts)."""
    return torch.cat([asked, shown, asked - shown, (asked - shown).abs()], 1)


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
        there = (words > 0).unsqueeze(1)
        x = self.embedding(words).transpose(1, 2)
        x = x + F.relu(self.one(x)) * there
        read: Tensor = (x + F.relu(self.two(x))) * there
        return read.transpose(1, 2)


class Looker(nn.Module):
    """Each query looks for its like among the places of a picture, and says what it found and how that differs."""

    def __init__(self, queries: int, found: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(n, found) for n in (queries, WIDE, WIDE))
        self.own = nn.Linear(queries, found)
        told = nn.Linear(4 * found, STATE), nn.ReLU(inplace=True), nn.Linear(STATE, STATE), nn.ReLU(inplace=True)
        self.told = nn.Sequential(*told)

    def forward(self, queries: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        places = features.flatten(2).transpose(1, 2)
        sought = self.query(queries).unsqueeze(1), self.key(places).unsqueeze(1), self.value(places).unsqueeze(1)
        found = F.scaled_dot_product_attention(*sought).squeeze(1)
        own = self.own(queries)
        return self.told(torch.cat([own, found, own * found, (own - found).abs()], -1)), found


class Words(nn.Module):
    """What the words ask for, and what of it is there: (n, 2 * 64) of the words alone and (n, 2 * 96) beside the picture."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.reader, self.looker = Reader(vocabulary), Looker(WORDS, 64)

    def forward(self, words: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        read, there = self.reader(words), words > 0
        return over_words(read, there), over_words(self.looker(read, features)[0], there)


def over_words(states: Tensor, there: Tensor) -> Tensor:
    """Mean and maximum over the words that are there; zeros where there are none."""
    mask = there.unsqueeze(-1)
    mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
    return torch.cat([mean, (states * mask).amax(1)], 1)
