"""Thresholds of decisions: from where on a difference, a fall or a lack counts.

Each stands here alone, with its unit and its source or reason.
"""

from __future__ import annotations

import math

# Levels of tests, as probabilities of a false alarm.

#: Adjusted p, two-sided, up to which two systems differ: the field's convention.
SIGNIFICANCE_LEVEL = 0.05
#: Level of each one-sided test of a gate, of scores and of failures: half of the two-sided one, as
#: guidelines for non-inferiority trials advise.
ONE_SIDED_LEVEL = 0.025
#: Adjusted p up to which a judge's new answers differ from its own repeats.
DRIFT_LEVEL = 0.05
#: Two-sided levels of four equal looks at growing labels, together .05.
LOOK_LEVELS = (0.00005, 0.0042, 0.0194, 0.0430)
#: Probability with which a stated size suffices, or a stated difference is found.
POWER = 0.8
#: Standard errors to the end of a 95% interval, and from there to where `POWER` is reached.
INTERVAL_REACH = 1.96
POWER_REACH = 0.84
#: Level of the intervals of numbers, as the share that holds the truth.
NUMBER_LEVEL = 0.95

# Least numbers of items.

#: Samples of which a permutation test can find a difference at all: two swaps of 2^n are as extreme
#: as what was seen.
LEAST_FOR_A_TEST = math.ceil(1 + math.log2(1 / SIGNIFICANCE_LEVEL))
#: Samples of an image model that a correlation needs. Fewer are nearly always biased or at the end
#: of the scale.
LEAST_FOR_A_CORRELATION = 10
#: Prompts of a generator that people should have rated: of fewer, intervals are too short, as
#: docs/explanation/numbers.md shows.
LEAST_RATED = 50
#: Common samples from which on equal scores of two judges are remarkable.
LEAST_COMMON = 10
#: Ratings of one annotator from which on one value for all says nothing about the images.
LEAST_OF_ANNOTATOR = 10
#: Labels of a task type for a calibration of its own, and of all for one at all; their prompts.
LEAST_LABELS = 30
LEAST_PROMPTS = 6
#: Units from which on a plan has four looks: with fewer, a quarter is too little for a test.
LEAST_FOR_LOOKS = 200
#: Prompts of a positive control.
CONTROL_ITEMS = 20
#: Groups of prompts with which equal generators can pass a margin of .05.
FEWEST_GROUPS = 60
#: Nights that give the mean and the spread of a series.
FIRST_NIGHTS = 28

# Shares of items, in [0, 1].

#: Samples of which a system needs a score to be ranked.
LEAST_COVERAGE = 0.5
#: Contests of which a judge should have answered; of fewer, a note says so.
LEAST_VOTED = 0.95
#: Equal answers from which on a judge's number says little, and the least answers for this.
SAME_ANSWERS = 0.95
LEAST_ANSWERS = 20
#: Undefined resamples from which on there is no interval: an end would lie among them.
MOST_UNDEFINED = 0.025
#: Failed verdicts above which a row of costs is marked.
NOTABLE_FAILURES = 0.05
#: Prompts of a generator up to which what could be judged again counts as failures, and decides.
MOST_UNJUDGED = 0.01
#: Unreadable replies of the reference's verdicts from which on the judge decides nothing.
MOST_UNREAD = 0.2
#: Prompts of both generators with filled-in scores from which on the judge decides nothing.
MOST_FILLED = 0.05
#: Task types on which a judge beats a constant answer, below which it is a poor judge.
FEW_TASK_TYPES = 1 / 3

# Differences of scores or statistics, on their scale of [0, 1].

#: Fall of a prompt's score that is counted as large.
LARGE_FALL = 0.3
#: Movement of mean scores from which on an effect of an audit counts.
LEAST_EFFECT = 0.05
#: Difference within which two judges judge about as well.
EQUAL_JUDGES = 0.05
#: Lead over a constant answer that a card counts though few task types show it: samples of one
#: type are few.
CLEAR_LEAD = 0.15
#: Difference from which on the ends of a breakdown are named.
NOTABLE_DIFFERENCE = 0.05
#: Margin that advice on numbers of prompts is for.
ADVISED_MARGIN = 0.05
#: Standard deviation of people's differences of two generators on a prompt: the median of
#: ImagenHub's 57 pairs (O).
TYPICAL_SPREAD = 0.3

# A series of nights, in standard deviations of its first nights.

#: Fall of a night that does not count yet, and sum of the rest that raises an alarm.
CUSUM_ALLOWANCE = 0.5
CUSUM_LIMIT = 8.0
#: Correlation of successive nights from which on the series is corrected for it.
NOTABLE_CORRELATION = 0.25
