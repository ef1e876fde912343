"""Cards as `vieval card` leaves them, of a judge whose replies a test writes."""

import hashlib
import json
import random
from dataclasses import replace

from tests.playing import play, prepared
from tests.stored_results import read_lines, write_lines
from vieval_plugin.benchmarks.registry import benchmark
from vieval_plugin.card.making import card_of, entry_of
from vieval_plugin.card.placing import place_judge
from vieval_plugin.card.writing import write_card
from vieval_plugin.judges.protocol import Text
from vieval_plugin.results.runs import load_results
from vieval_plugin.run.verdict_lines import run_file, write_verdicts
from vieval_plugin.stats.options import StatisticsOptions

MODEL = "maker/mine-7b"
FILE = "verdicts/mine.jsonl"
OPTIONS = StatisticsOptions(draws=50)


def ratings(data, instructions=20):
    """A data folder with drawn ratings of ImagenHub's cig."""
    folder = data / "imagenhub" / "human_ratings" / "ImagenHub_Control-Guided_IG"
    folder.mkdir(parents=True)
    draw = random.Random(0)
    for rater in (1, 2, 3):
        rows = ["uid\tControlNet\tUniControl"]
        for number in range(instructions):
            drawn = [[draw.choice((0, 0.5, 1)) for _ in range(2)] for _ in range(2)]
            cells = map(json.dumps, drawn)
            rows.append("\t".join([f"sample_{number}.jpg", *cells]))
        (folder / f"Control-Guided_IG_rater{rater}.tsv").write_text("\n".join(rows))
    return data


def samples(data, part="cig"):
    loaded = benchmark("imagenhub").load(data, part)
    return [replace(sample, texts={"prompt": "a red cube"}) for sample in loaded]


def contests(data, count=40):
    """A data folder with drawn votes on GenAI-Bench's edits, and its contests."""
    folder = data / "genai_bench_tiger" / "edit"
    folder.mkdir(parents=True)
    draw = random.Random(0)
    texts = {"instruction": "make it red"}
    rows = []
    for number in range(count):
        candidates = [
            {"image_model": of, "images": {"output": f"{number}{of}.png"}}
            for of in "ab"
        ]
        vote = draw.choice(("first", "second", "both_good", "both_bad"))
        row = {"id": str(number), "texts": texts, "images": {"source": f"{number}.png"}}
        rows.append({**row, "candidates": candidates, "vote": vote})
    write_lines(folder / "contests.jsonl", rows)
    return benchmark("genai_bench_tiger").load(data, "edit")


def card(folder, judged, judge="viescore"):
    """Write the card of a judge that says nothing of one sample in ten."""
    asked = prepared(judge)
    verdicts = [
        play(asked.program(sample), answer=reply_on(number)).verdict
        for number, sample in enumerate(judged)
    ]
    write_verdicts(folder / FILE, judged, verdicts, asked.by(MODEL))
    return rewritten(folder)


def reply_on(number):
    def reply(ask):
        draw = random.Random(f"{number} {ask.path}")
        scores, better = [draw.randint(0, 10)] * 2, draw.choice(("A", "B"))
        if number % 10 == 9:
            return Text("I cannot say.")
        is_scored = "score" in ask.schema["properties"]
        answer = {"score": scores} if is_scored else {"better": better}
        return Text(json.dumps({**answer, "reasoning": "as seen"}))

    return reply


def rewritten(folder):
    """Make the card of the verdicts that are there, as somebody would who has changed them."""
    file = folder / FILE
    [run] = load_results([file]).runs
    judge = place_judge(replace(run, label=MODEL), folder, OPTIONS)
    entry = entry_of(judge, (file, run_file(file)), folder)
    card = card_of("vieval card", [judge], [entry], [], [], [], OPTIONS)
    write_card(card, [judge], folder)
    return folder


def edit(folder, change):
    """Change the lines of verdicts, and the digest on the card with them."""
    file = folder / FILE
    write_lines(file, change(read_lines(file)))
    digest = {FILE: hashlib.sha256(file.read_bytes()).hexdigest()}
    on_card(folder, lambda card: card["entries"][0]["files"].update(digest))


def on_card(folder, change):
    """Change the card alone."""
    document = json.loads((folder / "card.json").read_text())
    change(document)
    (folder / "card.json").write_text(json.dumps(document, indent=1))
