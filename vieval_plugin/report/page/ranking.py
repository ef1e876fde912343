"""Page of a ranking: which generator is best, by how much, and on which prompts, with the pictures side by side."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from markupsafe import Markup

from vieval_plugin import __version__
from vieval_plugin.images import is_changed, thumbnail
from vieval_plugin.judges.contests import FIRST, SECOND, candidates_of
from vieval_plugin.judges.protocol import Sample, SampleId
from vieval_plugin.media.files import write_whole
from vieval_plugin.media.thumbnails import Thumbnail, Thumbnails
from vieval_plugin.meta_evaluation.corrected_ranking import CORRECTED
from vieval_plugin.meta_evaluation.findings import Leaderboard
from vieval_plugin.meta_evaluation.win_rates import EVEN, WIN_RATE
from vieval_plugin.records import OWN, YOUR_IMAGES, JudgeName, Record, Run
from vieval_plugin.report.answer import lines_of
from vieval_plugin.report.gate import Gate
from vieval_plugin.report.page.charts import forest
from vieval_plugin.report.page.disagreement import answer
from vieval_plugin.report.page.page import PICTURES_SCRIPT, STYLE, left_out_text
from vieval_plugin.report.page.tiles import Samples
from vieval_plugin.report.ranking import RankReport, answers, cautions, protocol, tables_of
from vieval_plugin.report.words import ASPECTS
from vieval_plugin.stats.estimate import Estimate
from vieval_plugin.stats.options import StatisticsOptions
from vieval_plugin.text.html_page import policy, style_sheet, template

MOST_PROMPTS = 60
"""Prompts that a page shows of a ranking: half where the first generator is furthest ahead, half where it is furthest behind."""
_FOLDER = Path(__file__).parent
_OUTPUT = "output"


@dataclass(frozen=True)
class JudgedPicture:
    """A picture under its generator's name, with what the judge says of it."""

    name: str
    thumbnail: Thumbnail | str
    judgement: str = ""
    score: float = math.nan
    reason: str = ""


@dataclass(frozen=True)
class PromptTile:
    """A prompt with the pictures that all were made from, and those that each generator made; `lead` is the first one's."""

    uid: str
    kind: str
    lead: float
    texts: tuple[tuple[str, str], ...]
    conditions: tuple[JudgedPicture, ...]
    outputs: tuple[JudgedPicture, ...]
    note: str = ""
    card: str = ""

    @property
    def extremes(self) -> tuple[float, ...]:
        """Lowest and highest score of its outputs, none of fewer than two scores."""
        scores = [picture.score for picture in self.outputs if not math.isnan(picture.score)]
        return (min(scores), max(scores)) if len(scores) > 1 else ()

    @property
    def spread(self) -> float:
        """Highest less lowest score."""
        low, high = self.extremes or (0.0, 0.0)
        return high - low


@dataclass(frozen=True)
class RankingSection:
    """A ranking on a page: its chart, and prompts in groups under what is seen in them."""

    title: str
    chart: Markup
    groups: tuple[tuple[str, tuple[PromptTile, ...]], ...]


def write_page(report: RankReport, path: Path, options: StatisticsOptions, gate: Gate | None = None) -> None:
    """Write the page as one file that loads nothing.

    Args:
        report: of `rank_results`.
        path: the file.
        options: those that the report was made with.
        gate: decides, where there is one: the page begins with it, and with the prompts on which its generator fell most.
    """
    thumbnails, pictures = Thumbnails(), Samples()
    runs: dict[tuple[str, JudgeName | None], Run] = {(run.benchmark, run.name): run for run in report.runs}
    place = partial(_section, pictures=pictures, thumbnails=thumbnails, challenger=gate.challenger if gate else "")
    sections = [place(number, r, runs[r.key]) for number, r in enumerate(report.main, start=1)]
    decision = [gate.answer] if gate else []
    title, *sentences = lines_of([*decision, *answers(report)]) or ["There is nothing to rank here."]
    style, script = style_sheet(STYLE), (_FOLDER / PICTURES_SCRIPT).read_text(encoding="utf-8")
    text = template(_FOLDER / "ranking.html.jinja").render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        subject=_subject(report),
        title=title,
        sentences=sentences,
        sections=sections,
        tables=tables_of(report),
        cautions=cautions(report),
        notes=report.notes,
        protocol=protocol(options),
        thumbnails=thumbnails.rendered,
        version=__version__,
        **left_out_text(thumbnails),
    )
    write_whole(path, [text], "--html")


def _subject(report: RankReport) -> str:
    """The images that were judged, by whom, and whether ratings correct it."""
    names = [
        YOUR_IMAGES.capitalize() if name == OWN else name for name in dict.fromkeys(r.benchmark for r in report.main)
    ]
    judges = list(dict.fromkeys(str(r.judge) for r in report.main))
    names_text = ", ".join(judges) if len(judges) < 4 else f"{len(judges)} judges"
    return f"{', '.join(names)}, judged by {names_text}{', corrected by ratings' if report.corrected_answers else ''}"


def _section(
    number: int, ranking: Leaderboard, run: Run, pictures: Samples, thumbnails: Thumbnails, challenger: str
) -> RankingSection:
    measured = WIN_RATE if ranking.statistic == WIN_RATE else ranking.aspect
    where = "" if not ranking.breakdown else f", {ranking.breakdown} {ranking.value}"
    estimates = {number.system: number.estimate for number in ranking.numbers}
    by_prompt = defaultdict(list)
    for record in (records[0] for records in chain(*run.records.values())):
        if (record.votes is not None) == (ranking.statistic == WIN_RATE):
            by_prompt[record.id.part, record.group or record.id.uid].append(record)
    order = [standing.system.label for standing in ranking.comparison.standings]
    order.sort(key=lambda label: label != challenger)
    leads = {key: _lead(records, ranking, order) for key, records in by_prompt.items()}
    cards = {key: card for card, key in enumerate(leads, start=1)}
    corrected, alone = ranking.statistic == CORRECTED, len(order) == 1 and ranking.statistic != WIN_RATE
    groups = tuple(
        (
            f"By the judge alone, {title[:1].lower()}{title[1:]}" if corrected else title,
            tuple(
                replace(
                    _tile(by_prompt[key], ranking, order, leads[key], pictures, thumbnails),
                    card=f"card{number}-{cards[key]}",
                )
                for key in keys
            ),
        )
        for title, keys in (_by_score(by_prompt, ranking.aspect) if alone else _grouped(leads, order[0])).items()
        if keys
    )
    if ranking.statistic == WIN_RATE and not any(leads.values()):  # said once, and not on each card
        tied = f"{run.name} calls each of the {len(leads)} contests a tie, so no generator wins"
        groups = tuple((tied, tuple(replace(tile, note="") for tile in tiles)) for _, tiles in groups)
    score = f"{measured} ({ASPECTS[measured]})" if measured in ASPECTS else measured
    benchmark = "" if ranking.benchmark == OWN else f"{ranking.benchmark}: "
    title = f"{benchmark}{score}, by {ranking.judge}{where}" + (", corrected by people's labels" if corrected else "")
    worse = [label for label in order[1:] if ranking.comparison.beats(order[0], label)]
    even = {"even": Estimate(EVEN)} if ranking.statistic == WIN_RATE else {}
    return RankingSection(
        title, forest(estimates, even, (0.0, 1.0), f"Intervals: {title}", worse, full_scale=True), groups
    )


def _grouped(leads: Mapping[tuple[str, str], float], first: str) -> dict[str, list[tuple[str, str]]]:
    """Prompts where the first generator is behind, ahead, level, and those without a comparison."""
    ordered = sorted((key for key in leads if not math.isnan(leads[key])), key=lambda key: -leads[key])
    half = MOST_PROMPTS // 2
    wins, losses = [key for key in ordered if leads[key] > 0], [key for key in ordered[::-1] if leads[key] < 0]
    level = [key for key in ordered if leads[key] == 0]
    uncompared = [key for key, lead in leads.items() if math.isnan(lead)]
    lose, win, level_with = ("lose", "win", "are level") if first == YOUR_IMAGES else ("loses", "wins", "is level")
    groups = {
        f"Where {first} {lose}": losses,
        f"Where {first} {win}": wins,
        f"Where {first} {level_with} with another": level,
        "Without a comparison": uncompared,
    }
    return {f"{title}: {_count_text(len(keys), half)}": keys[:half] for title, keys in groups.items()}


def _by_score(by_prompt: Mapping[tuple[str, str], Sequence[Record]], aspect: str) -> dict[str, list[tuple[str, str]]]:
    """Prompts of one generator alone: those with its lowest scores, then those with its highest."""
    scores = {
        key: min(record.verdict.scores.get(aspect, -math.inf) for record in records)
        for key, records in by_prompt.items()
    }
    ordered = sorted(scores, key=lambda key: scores[key])
    most = min(MOST_PROMPTS, len(ordered))
    half = most // 2
    return {"The lowest scores": ordered[: most - half], "The highest scores": ordered[::-1][:half]}


def _count_text(number: int, limit: int) -> str:
    return f"{number} prompts" if number <= limit else f"{number} prompts, of which {limit} are shown"


def _lead(records: Sequence[Record], ranking: Leaderboard, order: Sequence[str]) -> float:
    """The lead of the first generator over the best other one on a prompt; NaN where that is not known."""
    values = defaultdict(list)
    for record in records:
        if ranking.statistic == WIN_RATE:
            for candidate, points in zip(record.candidates, _points(record), strict=False):
                values[candidate.image_model].append(points)
        elif ranking.aspect in record.verdict.scores:
            values[record.id.image_model or YOUR_IMAGES].append(record.verdict.scores[ranking.aspect])
    means = {model: math.fsum(scores) / len(scores) for model, scores in values.items()}
    rivals = [mean for model, mean in means.items() if model != order[0]]
    return means[order[0]] - max(rivals) if order[0] in means and rivals else math.nan


def _points(record: Record) -> tuple[float, ...]:
    """Points of both candidates of a contest, a tie being half a win; none without an answer."""
    vote = answer(record) if record.verdict.status.usable else ""
    won = {FIRST: 1.0, SECOND: 0.0}.get(vote, EVEN)
    return (won, 1 - won) if vote and len(record.candidates) == 2 else ()


def _vote(record: Record) -> str:
    """Answer to a contest in words."""
    names = [candidate.image_model for candidate in record.candidates]
    points = _points(record)
    if not points:
        return f"{' against '.join(names)}: {record.verdict.status}"
    if points[0] == points[1]:
        return f"{' and '.join(names)}: a tie"
    return f"{names[points.index(1.0)]} is preferred to {names[points.index(0.0)]}"


def _tile(
    records: Sequence[Record],
    ranking: Leaderboard,
    order: Sequence[str],
    lead: float,
    pictures: Samples,
    thumbnails: Thumbnails,
) -> PromptTile:
    judged = [(record, pictures.find(record)) for record in records]
    by_id = {
        sample.id: record for record, item in judged if not isinstance(item, str) for sample in candidates_of(item)
    }
    samples = {s.id: s for _, item in judged if not isinstance(item, str) for s in candidates_of(item)}
    ranks = {model: rank for rank, model in enumerate(order)}
    ordered = sorted(by_id, key=lambda i: (ranks.get(i.image_model or YOUR_IMAGES, len(order)), i.draw))
    outputs = [samples[identity] for identity in ordered]
    reasons = dict.fromkeys(item for _, item in judged if isinstance(item, str))
    conditions = {role: image for role, image in outputs[0].images.items() if role != _OUTPUT} if outputs else {}
    first = records[0]
    return PromptTile(
        first.group or first.id.uid,
        first.kind or first.id.part,
        lead,
        tuple(outputs[0].texts.items()) if outputs else (),
        tuple(JudgedPicture(role, thumbnail(image, thumbnails)) for role, image in conditions.items()),
        tuple(
            JudgedPicture(
                _name(sample.id),
                _picture(sample, thumbnails),
                _scores_text(by_id[sample.id], ranking),
                by_id[sample.id].verdict.scores.get(ranking.aspect, math.nan),
                by_id[sample.id].verdict.rationale or "",
            )
            for sample in outputs
        ),
        "; ".join([*(_vote(record) for record in records if record.candidates), *reasons]),
    )


def _name(identity: SampleId) -> str:
    model = identity.image_model or YOUR_IMAGES
    return f"{model} #{identity.draw}" if identity.draw else model


def _picture(sample: Sample, thumbnails: Thumbnails) -> Thumbnail | str:
    image = sample.images.get(_OUTPUT)
    if image is None:
        return "no image"
    return "changed since it was judged" if is_changed(image) else thumbnail(image, thumbnails)


def _scores_text(record: Record, ranking: Leaderboard) -> str:
    scores = record.verdict.scores
    if record.candidates:
        return ""
    if ranking.aspect not in scores:
        return str(record.verdict.status)
    return ", ".join(f"{aspect} {value:.2f}" for aspect, value in scores.items())
