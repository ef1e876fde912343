"""Text that others wrote (servers, models, file names, logs), made harmless where it is shown: a
function for each medium.

JSON needs none: it is written with all but ASCII escaped.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import TextIO

from markupsafe import Markup, escape

from vieval_plugin.text.errors import PROJECT
from vieval_plugin.text.wording import unbroken

#: The widest that tables and prose are, and their width where no terminal says how wide it is, as
#: in a pipe.
MOST_COLUMNS = 100

_JOINERS = (
    0x200C,
    0x200D,
)  # letters and emoji are made with them, and they move nothing
_BREAKS = frozenset(map(ord, "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"))


class _Steering(dict[int, str]):
    """For `str.translate`: what steers a terminal or the direction of text, as an escape that
    can be seen.
    """

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        is_control = unicodedata.category(letter) in (
            "Cc",
            "Cf",
            "Cs",
        )
        steers = is_control and code not in _JOINERS
        self[code] = letter
        if steers:
            self[code] = ascii(letter)[1:-1]
        return self[code]


_ONE_LINE = _Steering(dict.fromkeys(_BREAKS, " "))
_LINES = _Steering(
    {
        ord("\n"): "\n",
        ord("\t"): "\t",
        0x2028: "\n",
        0x2029: "\n",
    }
)

# in Markdown: what begins code, ends a cell, closes a link or begins an image, and what becomes a
# link by itself
_MARKS = re.compile(r"[\\`|]|\](?=[(\[:])|(?<=!)\[|(?<!\S)[#~]")
_ADDRESS = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)

_FORMULA = tuple(
    "=+-@\uff1d\uff0b\uff0d\uff20"
)  # the wide forms count in East Asian settings
_FORMULA_SIGNS = re.escape("".join(_FORMULA))
# in settings whose cells end at a semicolon
_NEXT_FORMULA = re.compile(rf';(?=[\s"]*[{_FORMULA_SIGNS}])')
_NUMBER = re.compile(r"[-+]?[0-9.][-+0-9.,eE% ()\[\]]*")


def console(text: str) -> str:
    r"""A single line for a terminal: no escape sequence, no change of direction, no half of a
    character.

    >>> console("red \x1b[31m,\nnew\u202e line")
    'red \\x1b[31m, new\\u202e line'
    """
    if text.isprintable():
        return text
    return text.translate(_ONE_LINE)


def markdown(text: str) -> str:
    r"""Text within a line of Markdown or a cell of its tables: no HTML, heading, code, link or
    image, and no new cell.

    >>> markdown("a|b <b>`c`</b> [d](http://e)")
    'a\\|b &lt;b&gt;\\`c\\`&lt;/b&gt; [d\\](http&#58;//e)'
    """
    line = console(text)
    escaped = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    marked = _MARKS.sub(lambda mark: f"\\{mark[0]}", escaped)
    return _ADDRESS.sub(lambda sign: f"&#{ord(sign[0])};", marked)


def markdown_sentence(text: str) -> str:
    r"""A sentence of ours as Markdown: commands in backticks stay code, and addresses of the
    documentation stay links; all else is text.

    >>> markdown_sentence("<b> run `vieval rank a.jsonl`")
    '&lt;b&gt; run `vieval rank a.jsonl`'
    """
    parts = re.split(rf"(`vieval [^`\n]*`|{re.escape(PROJECT)}/[\w./#-]+)", text)
    ours = [console(part) for part in parts[1::2]]
    texts = [markdown(part) for part in parts[::2]]
    return "".join(
        chain(
            *zip_longest(
                texts,
                ours,
                fillvalue="",
            )
        )
    )


def csv_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, wherever it lets cells end; numbers stay
    numbers.

    >>> csv_cell("=1+1"), csv_cell("a;=1+1"), csv_cell("-0.5 [-1.0, 0.1]")
    ("'=1+1", "a;'=1+1", '-0.5 [-1.0, 0.1]')
    """
    cell = _NEXT_FORMULA.sub(";'", console(text))
    formula = cell.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    if formula:
        return f"'{cell}"
    return cell


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """The text of a CSV file whose cells are harmless; quoted are also those that hold a semicolon.

    >>> print(csv_text([("judge", "SC"), ("a, b", "0.5"), ("c;=1", "")]), end="")
    judge,SC
    "a, b",0.5
    "c;'=1",
    """
    return "".join(map(_csv_line, rows))


def _csv_line(row: Sequence[str]) -> str:
    cells = [_quoted(csv_cell(text)) for text in row]
    return ",".join(cells) + "\n"


def _quoted(cell: str) -> str:
    is_plain = not any(sign in cell for sign in ',;"')
    if is_plain:
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def html(text: str) -> Markup:
    r"""Text on a page, in lines.

    >>> html("<b>\u202ex")
    Markup('&lt;b&gt;\\u202ex')
    """
    if not text.isprintable():
        text = text.translate(_LINES)
    return escape(text)


def say(
    *lines: str,
    file: TextIO | None = None,
    answer: bool = False,
) -> None:
    """Print lines on the console, by default on standard output.

    Args:
        lines: without line ends.
        file: the stream in place of standard output.
        answer: the first line is an answer: on a terminal, where prose is wrapped and notes are
            dim, it is bold (unless the variable NO_COLOR is set).
    """
    stream = sys.stdout
    if file is not None:
        stream = file
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for number, line in enumerate(lines):
        # a terminal that has no such letter
        command = _escape_runner_command(console(line))
        text = command.encode(encoding, "backslashreplace").decode(encoding)
        if stream.isatty():
            text = _for_terminal(text, bold=answer and number == 0)
        print(text, file=stream)
    stream.flush()


def announce(line: str) -> None:
    """Print a line for the user on standard error, above any progress bar.

    What servers and models say in it can neither move the cursor nor be a command of a CI runner.
    """
    from tqdm import tqdm

    tqdm.write(_escape_runner_command(console(f"vieval: {line}")), file=sys.stderr)


def _escape_runner_command(line: str) -> str:
    """A line that GitHub's runner does not take for a command: `::` at its start, or `##[`
    anywhere.
    """
    return re.sub(r"^(\s*)::", r"\1:\\:", line).replace("##[", "##\\[")


def _for_terminal(text: str, bold: bool) -> str:
    if "  " in text.strip():  # a row of a table
        return text
    window = shutil.get_terminal_size((MOST_COLUMNS, 24))
    paragraph = textwrap.fill(
        unbroken(text),
        min(window.columns, MOST_COLUMNS),
        break_long_words=False,
        break_on_hyphens=False,
    )
    wrapped = paragraph.replace("\N{NO-BREAK SPACE}", " ")
    code = 0
    if bold:
        code = 1
    elif text.startswith("note: "):
        code = 2
    if not code or os.environ.get("NO_COLOR"):
        return wrapped
    return f"\x1b[{code}m{wrapped}\x1b[0m"
