"""Headlines of benchmarks on which generators are judged: for each judge, the mean score of each generator over prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vieval_plugin.meta_evaluation.common_items import JudgedItem, compared_means
from vieval_plugin.meta_evaluation.comparison import ComparedStatistic
from vieval_plugin.meta_evaluation.generator_means import by_prompt, over_prompts
from vieval_plugin.meta_evaluation.headline import Headline, HeadlineNumber, preferred
from vieval_plugin.meta_evaluation.observations import Observation
from vieval_plugin.stats.options import StatisticsOptions


def generator_headline(
    benchmark: str,
    judge: str,
    aspects: Sequence[str],
    images: Mapping[str, Sequence[Observation]],
    options: StatisticsOptions,
) -> Headline:
    """The headline of a judge: O where it rates that, else SC, else what it rates.

    Args:
        benchmark: its name, which joins the seed.
        judge: its label.
        aspects: what it rates; not none.
        images: of each generator, failures already filled, groups named with their part.
        options: how many draws, the seed.
    """
    aspect = preferred(aspects, dict.fromkeys(aspects, 1))[0]
    name = f"{benchmark}/all"

    def number(model: str, observations: Sequence[Observation]) -> HeadlineNumber:
        mean = over_prompts(observations, aspect, name, options)
        return HeadlineNumber(model, mean.value, mean.low, mean.high, len(by_prompt(observations, aspect)), mean.reason)

    headings: Mapping[str, Callable[[Observation], Sequence[str]]] = {
        "kind": lambda image: (image.kind,),
        "category": lambda image: (image.category,) if image.category else (),
        "tag": lambda image: image.tags,
    }
    broken = {}
    for heading, words in headings.items():
        words_present = dict.fromkeys(word for several in images.values() for image in several for word in words(image))
        if len(words_present) > 1:
            broken[heading] = {
                word: [
                    number(model, [image for image in several if word in words(image)])
                    for model, several in images.items()
                ]
                for word in words_present
            }
    return Headline(
        aspect,
        f"Mean {aspect} over prompts, by {judge}",
        "O is what SC and PQ are together. It is the judge's opinion: nobody rated these images.",
        "prompts",
        (0.0, 1.0),
        tuple(number(model, several) for model, several in images.items()),
        lambda: compared_generators(aspect, images),
        breakdowns=broken,
        entrant="generator",
        judge=judge,
    )


def compared_generators(aspect: str, images: Mapping[str, Sequence[Observation]]) -> ComparedStatistic:
    """Generators compared by the mean of an aspect over prompts.

    Args:
        aspect: what the judge rates.
        images: of each generator, failures already filled, groups named with their part.
    """
    items = {
        model: {prompt: JudgedItem(prompt, score) for prompt, score in by_prompt(observations, aspect).items()}
        for model, observations in images.items()
    }
    return compared_means("all", aspect, f"mean {aspect} over prompts", items, "prompts", "generators")
