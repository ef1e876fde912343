"""text_rendering: the text that a prompt asks for, read in the image by OCR and compared letter by
letter.

What is asked for stands in quotation marks in the prompt, with words around it that ask for it to
be written, or in the text `wanted_text`, a line each. Each text is aligned with a part of what was
read, in any order, so that their edit distances are least. Case, width, spaces and punctuation are
not compared, but for punctuation between digits. No model is asked.

`SC` is the edit similarity over all texts, `words` the share of words that are there letter by
letter, and `no_extra_text` the share of letters read that belong to a text asked for. A Chinese or
Japanese character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vieval_plugin.judges import tools
from vieval_plugin.judges.protocol import (
    WANTED_TEXT,
    Box,
    Judge,
    Program,
    Sample,
    Status,
    ToolResult,
    UseTool,
    Verdict,
    not_applicable,
)
from vieval_plugin.judges.spec import JudgeSpec, Needs, NoOptions
from vieval_plugin.judges.tools import ocr
from vieval_plugin.text.errors import install_advice

NAME = "text_rendering"
#: Letters that may be asked for in all.
MOST_LETTERS = 2000
#: Texts in quotation marks; after a digit a mark is a sign for inches, and within a word an
#: apostrophe.
_QUOTED = re.compile(
    r"""(?<!\d)["\uff02]([^"\uff02]+)["\uff02]|“([^“”]+)”|„([^„“”"]+)[“”"]|«([^«»]+)»|»([^«»]+)«"""
    r"""|「([^」]+)」|『([^』]+)』|《([^》]+)》"""
    r"""|(?<!\w)'((?:[^'\n]|(?<=\w)'(?=\w))+)'(?!\w)|(?<!\w)‘((?:[^‘’\n]|(?<=\w)’(?=\w))+)’(?!\w)"""
)
_WORKS = "films?|movies?|songs?|novels?|albums?|bands?|series|opera|book|café|film|roman|livre|chanson|buch|lied|película"
_PEOPLE = "m[ae]n|wom[ae]n|girls?|boys?|child|children|kid|student|teacher|person|people|mother|father|friend|lady|guy|s?he|they"
_PICTURES = "images?|pictures?|photos?|photographs?|paintings?|drawings?|artworks?|illustrations?|sculptures?|poems?|plays?"
#: Words before a quotation that ask for it to be written, and those that name something by it.
_CUE = (
    rf"(?P<names>\b(?:{_WORKS})(?:\s+(?!poster|cover|sign|ticket)\w+)?\s+(?:en)?titled\b|\b(?:{_PEOPLE})"
    r"\s+(?:(?:who|that)\s+)?(?:is\s+)?(?:read|say)(?:s|ing)\b"
    rf"|\b(?:{_PICTURES})\s+(?:(?:en)?titled|labell?ed)\b"
    r"|\b(?:illustrat\w+|inspired by|interpretation of|depiction of|meaning of|scene from)"
    rf"(?:\s+of)?(?:\s+the)?\s+(?:words?|phrase|saying|text|sentence|quote)\b|\b(?:{_WORKS}|style of|called|named|nicknamed|known "
    r"as|dubbed|character|namens"
    r"|genannt|heißt|stil von|nommée?s?|appelée?s?|style de|llamad[oa]s?|novela|estilo de|по "
    r"имени|под названием"
    r"|фильм\w*|роман\w*|в стиле)\b|名为|名叫|叫做|电影|小说|歌曲|风格|映画|小説)"
    r"|\b(?:says?|saying|reads?|reading|spell(?:s|ed|ing)?|writ(?:es?|ing|ten)|titled|captioned|labell?ed|texts?|words?"
    r"|letters|lettering|phrase|slogan|message|caption|(?:sub)?title|headline|heading|inscription|inscribed|engraved"
    r"|printed|painted|embroidered|display(?:s|ing|ed)|tagline|signage|sentence|number|logo"
    r"|steht|wort|worte|wörter|aufschrift|schriftzug|beschriftet|geschrieben|titel|überschrift|lautet|sagt"
    r"|dit|disant|indique|texte|mots?|titre|écrite?s?|légende|dice|diga|texto|palabras?|letrero|título|escrit[oa]|rótulo"
    r"|scritt[oa]|parol[ae]|testo|titolo|diz|palavras?|napis\w*|tekst|opschrift|woord|texten|ordet|надпис\w+|слов\w+|текст\w*|написан\w*|гласит|заголов\w+)\b"
    r"|写|标题|標題|文字|字样|字樣|标语|標語|题字|印有|印着|刻着|招牌|标签|显示|タイトル|書"
)
_SURFACES = "signs?|posters?|banners?|labels?|billboards?|stickers?|(?:t-?)?shirts?|mugs?|covers?|screens?|cards?|plaques?|boards?|badges?|graffiti|tattoos?|flags?|placards?|schild|plakat|panneau|affiche|cartel|вывеск\\w+|плакат\\w*"
_SURFACE_BEFORE = rf"\b(?:{_SURFACES})\W+(?:(?:with|bearing|showing|has|the|mit|avec|con|с)\W+){{0,2}}$"
_ASKED_AFTER = (
    r"\W*(?:(?:is|are|be|in|on|a|the|its|his|her|large|big|bold|red|white|neon|wooden)\s+){0,5}"
    rf"(?:written|painted|printed|carved|engraved|spelled|spelt|letters|lettering|text|caption|logo|{_SURFACES})\b"
    r"|\W*(?:steht|geschrieben|yazan|yazılı)\b|\W*(?:と書|と描|という(?:文字|言葉|タイトル|看板)|の(?:文字|看板)|的?字样|字樣|的?标语|的?招牌|几个?字|(?:四|三|两|二)个?字)"
)
_NOT = (
    r"(?:\b(?:no|not|cannot|without|never|avoid|instead of|rather than|other than|anything but|used to"
    r"|free of|lacks?|lacking|remov(?:e|es|ing)|eras(?:e|es|ing)|delet(?:e|es|ing)|replac(?:e|es|ing)"
    r"|sem|não|senza|non|zonder|niet|geen|utan|inte|bez|nie|ohne|keine?[nmrs]?|nicht|sans|pas|sin|без|не|нет)\b|n['’]t\b"
)
_NOT += "|没有|不|无|無)"
_DENIED_BEFORE = rf"{_NOT}(?:\W+(?!and\b|who\b|but\b|holding\b)\w+){{0,3}}\W*$|(?:没有|不要|不含|无)\w{{0,6}}$"
_DENIED_AFTER = r"\W*(?:text\s+|word\s+)?(?:should|must|may|does|do|is|can|shall)\s*(?:not\b|n['’]t)|\w{0,6}(?:はない|のない|なし|しない|ていない|てない)|\W*(?:means|refers to)\b"
_JOINED = re.compile(
    r"\W*(?:(?:and|or|then|above|below|under|over|beside|next to|followed "
    r"by|on|in|with|the|a|an|second|smaller|larger|line"
    r"|und|oder|über|unter|et|ou|y|e|и|или|和|与|與|及|以及|と|、)\W*)*"
)
_CONTRAST = re.compile(
    r"\W*(?:but|but rather|sondern|mais|sino|а|而是)\W*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；\n]")
_MOST_WORDS = 6
_IDEOGRAPH = re.compile("[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
#: Letters in the alphabet of PP-OCRv6, by their blocks; the rarest Chinese characters of the block
#: are not in it.
_READABLE = re.compile(
    "[\\x21-\\u024f\\u0391-\\u03a9\\u03b1-\\u03c9\\u20a0-\\u20bf\\u2190-\\u22ff\\u3041-\\u308f\\u3091-\\u3093\\u3095-\\u30f0\\u30f2-\\u30fe\\u4e00-\\u9fff々]"
)
_COMPARED_PUNCTUATION = "%&@#"
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w\s](?=\d)")
_LONGEST_QUOTE = 80
#: Demanded texts that a line has.
_MOST_SHOWN = 50
#: Share of errors above which a part of what was read is no rendering of a text: few letters are
#: alike by chance.
_MOST_ERRORS = 0.8
_MOST_ORDERS = _MOST_ENDS = 8


@dataclass(frozen=True)
class Letters:
    """Letters of a text that are compared."""

    #: The text, with its width folded.
    text: str
    #: The letters, with their case folded.
    folded: tuple[str, ...]
    #: Position of each in the text.
    positions: tuple[int, ...]
    #: The word of each: the spaces before it, and the borders of ideographs.
    tokens: tuple[tuple[int, int], ...]

    def splits_word(self, index: int) -> bool:
        """Return whether a letter and the one before it are of the same word."""
        if not 0 < index < len(self.tokens):
            return False
        return self.tokens[index - 1] == self.tokens[index]

    def quote(self, part: Sequence[int]) -> str:
        """The text from the first letter of a part to its last, in quotation marks."""
        end = self.positions[part[-1]] + 1
        return _quoted(self.text[self.positions[part[0]] : end])


@dataclass(frozen=True)
class Alignment:
    """Alignment of a text with the part of what was read that is nearest to it."""

    #: For each letter of the text the number of the equal one among those read, -1 for none.
    pairs: tuple[int, ...]
    #: Numbers of the letters of the part.
    part: tuple[int, ...]
    #: Letters changed, lost or added.
    errors: int

    @property
    def length(self) -> int:
        """Letters of the text or of the part, whichever has more."""
        return max(len(self.pairs), len(self.part))


def similarity(alignments: Sequence[Alignment]) -> float:
    """The edit similarity over all texts, in [0, 1]."""
    errors = sum(alignment.errors for alignment in alignments)
    return 1 - errors / sum(alignment.length for alignment in alignments)


def wanted_texts(sample: Sample) -> list[str]:
    """The texts that an image should show.

    >>> from vieval_plugin.judges.protocol import SampleId
    >>> prompt = 'a 24" screen that says "Hello" above “GRAND OPENING”'
    >>> wanted_texts(Sample(SampleId("own", "tig", "mine", "1"), {}, {"prompt": prompt}))
    ['Hello', 'GRAND OPENING']
    """
    texts = sample.texts.get(WANTED_TEXT, "").strip().splitlines()
    if not texts:
        quoted = quotations(sample.texts.get("prompt", ""))
        texts = [text for text, is_wanted in quoted if is_wanted]
    return [text for text in texts if letters_of(text).folded]


def quotations(prompt: str) -> list[tuple[str, bool]]:
    """The texts in quotation marks of a prompt, each with whether the words around it ask for it to
    be written.

    >>> quotations('a film called "Jaws" on a screen that says "EXIT", no text such as "SALE"')
    [('Jaws', False), ('EXIT', True), ('SALE', False)]
    """
    prompt = prompt.strip()
    whole_prompt = _QUOTED.fullmatch(prompt)
    if whole_prompt and whole_prompt.lastindex:
        prompt = whole_prompt[whole_prompt.lastindex]
    quoted_texts: list[tuple[str, bool]] = []
    matches = list(_QUOTED.finditer(prompt))
    starts_after = [*(match.start() for match in matches[1:]), len(prompt)]
    end_before = 0
    for match, start_after in zip(matches, starts_after, strict=False):
        text_between = prompt[end_before : match.start()]
        if quoted_texts and _CONTRAST.fullmatch(text_between):
            is_wanted = not quoted_texts[-1][1]
        elif quoted_texts and _JOINED.fullmatch(text_between):
            is_wanted = quoted_texts[-1][1]
        else:
            after = prompt[match.end() : start_after]
            is_wanted = _is_asked(_SENTENCE_END.split(text_between)[-1], after)
        quoted_texts.append((match[match.lastindex or 0].strip(), is_wanted))
        end_before = match.end()
    return quoted_texts


def _is_asked(text_before: str, after: str) -> bool:
    """Return whether the words before a quotation, or those after it, ask for it to be written."""
    # patterns are compiled when they are first used, as all of them take a twentieth of a start
    flags = re.IGNORECASE
    if re.match(_DENIED_AFTER, after, flags):
        return False
    cues = list(re.finditer(_CUE, text_before, flags))
    if not cues:
        surface = re.search(_SURFACE_BEFORE, text_before, flags)
        before_surface = text_before[: surface.start()] if surface else text_before
        is_asked = bool(surface or re.match(_ASKED_AFTER, after, flags))
        return is_asked and not re.search(
            _DENIED_BEFORE,
            before_surface,
            flags,
        )
    cue = max(cues, key=lambda match: match.end())
    text_after_cue = text_before[cue.end() :]
    if cue["names"] or len(text_after_cue.split()) > _MOST_WORDS:
        return False
    is_denied_before = re.search(
        _DENIED_BEFORE,
        text_before[: cue.start()],
        flags,
    )
    return not (is_denied_before or re.search(_NOT, text_after_cue, flags))


def is_readable(letter: str) -> bool:
    """Return whether OCR knows a letter, number or sign: those of Latin, Greek, Chinese and
    Japanese.
    """
    return bool(_READABLE.match(letter))


def letters_of(text: str) -> Letters:
    """The letters of a text, without spaces, and without punctuation that is not between digits.

    >>> "".join(letters_of("Ｇrand—Opening: 9:30!").folded)
    'grandopening9:30'
    """
    text = unicodedata.normalize("NFKC", text)
    letters = []
    spaces = 0
    borders = 0
    for position, character in enumerate(text):
        is_ideograph = bool(_IDEOGRAPH.match(character))
        spaces += character.isspace()
        borders += is_ideograph
        if _is_compared(character) or _BETWEEN_DIGITS.match(text, position):
            letters += [
                (folded, position, (spaces, borders)) for folded in character.casefold()
            ]
        borders += is_ideograph
    if not letters:
        return Letters(text, (), (), ())
    folded, positions, tokens = zip(*letters, strict=True)
    return Letters(text, folded, positions, tokens)


def _is_compared(character: str) -> bool:
    return (
        unicodedata.category(character)[0] not in "PZC"
        or character in _COMPARED_PUNCTUATION
    )


def lines_of(reading: ToolResult) -> list[str]:
    """The lines of the text that was read, from the top; boxes beside one another are
    one line, from the left.

    >>> boxes = Box(200, 12, 300, 52), Box(10, 10, 150, 50), Box(10, 80, 90, 110)
    >>> lines_of(ToolResult(boxes, "OPENING\\nGRAND\\ntoday"))
    ['GRAND OPENING', 'today']
    """
    lines: list[list[tuple[Box, str]]] = []
    pieces = zip(reading.boxes, reading.text.split("\n"), strict=False)
    for box, text in sorted(pieces, key=lambda piece: piece[0].top + piece[0].bottom):
        last_box = lines[-1][-1][0] if lines else Box(0, 0, 0, 0)
        overlap = min(last_box.bottom, box.bottom) - max(last_box.top, box.top)
        last_height = last_box.bottom - last_box.top
        if 2 * overlap > min(last_height, box.bottom - box.top):
            lines[-1].append((box, text))
        else:
            lines.append([(box, text)])
    for line in lines:
        line.sort(key=lambda piece: piece[0].left)
    return [" ".join(text for _, text in line) for line in lines]


def align(text: Letters, read: Letters, free: Sequence[int]) -> Alignment:
    """The alignment of a text with the part of what was read that has the least edit distance to
    it.

    Args:
        text: the text.
        read: what was read.
        free: numbers of the letters read that are in no part yet.
    """
    letter_codes = [ord(read.folded[index]) for index in free]
    codes = np.array(letter_codes, np.int32)
    steps = np.arange(len(codes) + 1, dtype=np.int32)
    rows = len(text.folded) + 1
    distance = np.zeros((rows, len(steps)), np.int16)
    for row, letter in enumerate(text.folded, start=1):
        previous_row = distance[row - 1]
        changed = previous_row[:-1] + (codes != ord(letter))
        cheapest = np.minimum(changed, previous_row[1:] + 1)
        costs = np.concatenate(([row], cheapest)) - steps
        distance[row] = np.minimum.accumulate(costs) + steps
    last_row = distance[-1]
    ends = np.flatnonzero(last_row == last_row.min())[:_MOST_ENDS]
    free_letters = set(free)

    def preference(alignment: Alignment) -> tuple[int, int]:
        word_rest = _rest_of_words(alignment.part, read, free_letters)
        return len(word_rest), -len(alignment.part)

    # where several parts are as near, one that begins and ends with a word, and the longest of
    # these
    alignments = [_traced(distance, text, read, free, end) for end in ends.tolist()]
    return min(alignments, key=preference)


def _traced(
    distance: NDArray[np.int16],
    text: Letters,
    read: Letters,
    free: Sequence[int],
    end: int,
) -> Alignment:
    """The alignment with the part that ends before the free letter `end`.

    `distance` is that of the beginnings of the text (rows) to the nearest part that ends before
    each free letter.
    """
    pairs = [-1] * len(text.folded)
    row = len(pairs)
    column = end
    while row and column:
        letter = free[column - 1]
        cost = distance[row, column]
        if read.folded[letter] == text.folded[row - 1]:
            row -= 1
            column -= 1
            pairs[row] = letter
        elif cost == distance[row, column - 1] + 1:
            column -= 1  # of several ways the one with the longest part
        else:
            row -= 1
            column -= int(cost == distance[row, column - 1] + 1)
    part = tuple(free[column:end])
    return Alignment(tuple(pairs), part, int(distance[-1, end]))


def _rest_of_words(
    part: Sequence[int], read: Letters, free: Collection[int]
) -> list[int]:
    """The free letters beside a part with no space between: the rest of its first and of its
    last word.
    """
    indices: list[int] = []
    if not part:
        return indices
    for end, step in ((part[0], -1), (part[-1], 1)):
        spaces, _ = read.tokens[end]
        index = end + step
        while index in free and read.tokens[index][0] == spaces:
            indices.append(index)
            index += step
    return indices


def align_all(texts: Sequence[Letters], read: Letters) -> list[Alignment]:
    """The alignment of each text, in order, so that they are as similar as can be and no parts
    overlap.

    The most similar comes first to its part, and of those that are as similar the longest; then
    each that lost its part to another is tried before all others.
    """
    letters = range(len(read.folded))
    unshared = [align(text, read, letters) for text in texts]

    def preference(number: int) -> tuple[float, int]:
        alignment = unshared[number]
        return alignment.errors / alignment.length, -alignment.length

    order = sorted(range(len(texts)), key=preference)
    best = _align_in_order(order, texts, read)
    losers = [
        number for number in order if best[number].errors > unshared[number].errors
    ]
    for number in losers[:_MOST_ORDERS]:
        order = [number, *(later for later in order if later != number)]
        best = max(
            best,
            _align_in_order(order, texts, read),
            key=similarity,
        )
    return best


def _align_in_order(
    order: Sequence[int], texts: Sequence[Letters], read: Letters
) -> list[Alignment]:
    """The alignment of each text, where each has the part that is nearest in what those before it
    in `order` left.

    The rest of a word that a part ends in, where it is in no other part, counts as errors of it.
    """
    free = dict.fromkeys(range(len(read.folded)))
    nearest = dict[int, Alignment]()
    for number in order:
        nearest[number] = align(texts[number], read, list(free))
        for index in nearest[number].part:
            del free[index]
    for number, alignment in nearest.items():
        word_rest = _rest_of_words(alignment.part, read, free)
        whole_words = tuple(sorted((*alignment.part, *word_rest)))
        errors = alignment.errors + len(word_rest)
        nearest[number] = Alignment(alignment.pairs, whole_words, errors)
        if errors > _MOST_ERRORS * nearest[number].length:
            letters = len(alignment.pairs)
            nearest[number] = Alignment((-1,) * letters, (), letters)
    return [nearest[number] for number in range(len(texts))]


def count_words(
    text: Letters,
    alignment: Alignment,
    read: Letters,
    paired: Collection[int],
) -> tuple[int, int]:
    """The number of words of a text that are there letter by letter, and of all, with those that
    stand between them.

    `paired` are the letters read that equal one of some text.
    """
    correct = 0
    incorrect = 0
    for _, group in groupby(range(len(text.folded)), text.tokens.__getitem__):
        pairs = [alignment.pairs[index] for index in group]
        first = pairs[0]
        consecutive = list(range(first, first + len(pairs)))
        is_whole = first >= 0 and pairs == consecutive
        after = pairs[-1] + 1
        is_whole &= not (read.splits_word(first) and first - 1 not in paired)
        is_whole &= not (read.splits_word(after) and after not in paired)
        correct += is_whole
        incorrect += not is_whole
    tokens = {read.tokens[index] for index in alignment.part}
    added = tokens - {read.tokens[index] for index in alignment.pairs if index >= 0}
    return correct, correct + max(incorrect, len(added))


def _correct_share(
    texts: Sequence[Letters],
    alignments: Sequence[Alignment],
    read: Letters,
) -> float:
    """The share of words that are there letter by letter."""
    paired = {index for alignment in alignments for index in alignment.pairs}
    correct = 0
    total = 0
    for text, alignment in zip(texts, alignments, strict=True):
        correct_words, words = count_words(text, alignment, read, paired)
        correct += correct_words
        total += words
    return correct / total


def compare(texts: Sequence[str], lines: Sequence[str]) -> tuple[dict[str, float], str]:
    """Scores in [0, 1] by aspect, and the reason in words.

    >>> scores, reason = compare(["GRAND OPENING"], ["GRND OPENING", "50% off"])
    >>> reason
    'reads "GRND OPENING" instead of "GRAND OPENING"; also reads "50% off"'
    >>> {aspect: round(score, 2) for aspect, score in scores.items()}
    {'SC': 0.92, 'words': 0.5, 'no_extra_text': 0.65}
    """
    wanted_letters = [letters_of(text) for text in texts]
    read = letters_of("\n".join(lines))
    alignments = align_all(wanted_letters, read)
    parts = (alignment.part for alignment in alignments)
    letters_read = len(read.folded)
    extra = sorted(set(range(letters_read)).difference(*parts))
    scores = {
        "SC": similarity(alignments),
        "words": _correct_share(wanted_letters, alignments, read),
    }
    scores["no_extra_text"] = 1 - len(extra) / max(letters_read, 1)
    quotes = [text.quote(range(len(text.folded))) for text in wanted_letters]
    reasons = []
    for quoted, alignment in zip(quotes, alignments, strict=True):
        if not alignment.errors:
            continue
        if alignment.part:
            reasons.append(f"reads {read.quote(alignment.part)} instead of {quoted}")
        else:
            reasons.append(f"{quoted} is missing")
    for run in _consecutive(extra)[:3]:
        reasons.append(f"also reads {read.quote(run)}")
    return scores, "; ".join(reasons) or f"reads {', '.join(quotes)}"


def _consecutive(numbers: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers where one is left out."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _inapplicable_reason(sample: Sample, texts: Sequence[str]) -> str:
    """The reason why the texts of a sample cannot be compared; empty where they can."""
    letters = [letter for text in texts for letter in letters_of(text).folded]
    unreadable = sorted({letter for letter in letters if not is_readable(letter)})
    if not texts:
        quoted = quotations(sample.texts.get("prompt", ""))
        found = ", ".join(_quoted(text) for text, _ in quoted[:3]) or "none"
        return (
            'the prompt must ask for text in quotation marks, such as a sign that says "OPEN", got '
            f"{found}; or pass --columns texts.{WANTED_TEXT}=COLUMN"
        )
    if unreadable:
        got = " ".join(unreadable[:5])
        return (
            f"OCR supports only Latin, Greek, Chinese and Japanese letters, got {got}"
        )
    if len(letters) > MOST_LETTERS:
        return f"the prompt must ask for at most {MOST_LETTERS:,} letters"
    return ""


def judge(sample: Sample) -> Program:
    """The program of the judge."""
    texts = wanted_texts(sample)
    reason = _inapplicable_reason(sample, texts)
    if reason:
        return not_applicable(reason)
    ask = UseTool(
        ocr.NAME,
        {"image": sample.images["output"]},
        ("text",),
    )
    [reading], steps = yield from tools.use_tools([ask])
    failure = tools.failed(steps)
    if failure:
        return Verdict({}, failure.status, trace=steps)
    scores, reason = compare(texts, lines_of(reading))
    return Verdict(scores, Status.OK, reason, steps)


def demanded_line(samples: Iterable[Sample]) -> str:
    """The line on the texts that samples demand, each once in their order; empty where none
    does.
    """
    texts: dict[str, None] = {}
    for sample in samples:
        texts |= dict.fromkeys(map(_quoted, wanted_texts(sample)))
    if not texts:
        return ""
    shown = list(texts)[:_MOST_SHOWN]
    if len(texts) > _MOST_SHOWN:
        shown.append(f"{len(texts) - _MOST_SHOWN:,} more")
    return f"requested texts: {', '.join(shown)}"


def _quoted(text: str) -> str:
    return f'"{shorten(text, _LONGEST_QUOTE, placeholder="...")}"'


def build(options: NoOptions, pack: Any, setting: str) -> Judge:
    """The judge; `ToolMissing` where the packages that read text are not installed."""
    tools.require([ocr.TOOL], install_advice("text"))
    return judge


_PROMPT = Needs(("output",), ((WANTED_TEXT, "prompt"),))
_COLUMN = Needs(("output",), (WANTED_TEXT,))
SPEC = JudgeSpec(
    name=NAME,
    title="Text rendering",
    aspects=("SC", "words", "no_extra_text"),
    method="the text that the prompt asks for, read by OCR and compared letter by letter",
    needs={
        **dict.fromkeys(("tig", "sdig", "mcic", "cig"), _PROMPT),
        **dict.fromkeys(("tie", "mie", "sdie"), _COLUMN),
    },
    options=NoOptions,
    build=build,
    reads_text=True,
    demands=demanded_line,
    some_samples="prompts that ask for text in quotation marks",
)
