"""The words of a page, each in a sentence or two."""

from __future__ import annotations

GLOSSARY = (
    ("judge", "A way to rate generated images: a method and, mostly, the model that answers its questions."),
    (
        "SC, PQ, O",
        "Semantic consistency (is it what was asked for), perceptual quality (does it look right), and overall.",
    ),
    (
        "task type",
        "What the image model was asked: tig text to image, tie edit by text, mie edit in a mask, sdig and sdie with a given subject, mcic several concepts, cig with a control image.",
    ),
    (
        "Spearman's correlation",
        "Whether two sides put things in the same order: 1 for the same, 0 for no relation, -1 for the reverse. The scale that either uses does not matter.",
    ),
    (
        "averaged over image models and task types (Fisher)",
        "The correlation is computed for each image model and task type alone, so that a judge earns nothing by knowing which model is good, and averaged by Fisher's z.",
    ),
    (
        "accuracy",
        "Of pairs that people voted on, the share in which the judge says the same. What it does not answer is wrong.",
    ),
    (
        "95% interval",
        "In square brackets: 95 of 100 such intervals, from resampling groups of samples (bootstrap), contain the true number.",
    ),
    (
        "rank",
        "The best and the worst rank that significant differences leave: from 1 and how many are significantly better, to how many there are less those that are significantly worse.",
    ),
    ("n", "How many samples the number is of: those for which the judge scored every aspect that it rates."),
    (
        "failed",
        "Verdicts without a score: the reply could not be read, the model declined, a call failed. No score is ever made up for them. Missing are samples on which a replayed log has no verdict.",
    ),
    (
        "answers",
        "Answers behind all verdicts, reminders included, whether a call of a model or the store gave them; of an image metric, measurements.",
    ),
    (
        "human ceiling",
        "What people reach among themselves, computed like the judges' numbers. Hardly any judge can be expected above it.",
    ),
    (
        "best constant",
        "The best you can do with the same answer for every image, such as one score for all or always the first. What is not above it is no judge.",
    ),
    (
        "disagreement",
        "How far a judge's place for an image is from people's: 0 where both put it at the same place among all images of its task type, 1 where one puts it first and the other last. For contests: 1 for the opposite, half for a tie against a preference.",
    ),
    (
        "status",
        "How a verdict came out: ok; repaired (read after a reminder); parse_failure; refusal; api_error; tool_error; not_applicable; no_image (the generator made none); in a replay missing (the log has no verdict) and guessed (the log has a score drawn at random where a reply could not be read, which counts as none); not_asked, of a question whose answer could change nothing.",
    ),
)
