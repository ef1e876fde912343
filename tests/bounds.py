"""Bounds on what a reader has to read and a user to choose from, each with the reason for its value.

A bound is lowered when there is room, and is not raised to what was reached: what is added takes
something off. Bounds of one case, such as how long one message may be, stand in their tests.
"""

# Pages and README. Pages are all of Markdown that `docs/` has, whoever they are for; notebooks, whose
# words count as those of pages, have a bound of their own.

#: Four parts of a site, five pages each. Reached.
PAGES = 20
#: To judge images, and to measure a judge. Reached.
NOTEBOOKS = 2
#: Three hours and a half at 190 words a minute. A word holds a letter or a digit, between spaces;
#: code and tables count, and marks of Markdown such as `|` do not.
PAGE_WORDS = 40_000
#: A line is a sentence, a row of a table or a line of code. It was 4,650 when sentences had up to
#: 98 words; the shorter ones take a hundred lines more, and fewer minutes.
PAGE_LINES = 4_800
#: Words of a sentence: what one breath holds. A longer one is two.
SENTENCE_WORDS = 35
#: Three screens: what it is, the first minute, and a way to each page.
README_LINES = 150

# Commands and options.

#: A screen of `vieval --help`.
COMMANDS = 25
#: Different names over all commands: some seven for a command, as many share them.
OPTIONS = 165
#: Keys of an options file, as a gateway needs its headers, the header of the key, an authority
#: and a pace, and a model of unknown sight an override. Reached.
OPTION_KEYS = 65

# Code.

#: Thirty rooms of some sixteen modules. Reached.
MODULES = 501
#: As many names as `vieval_plugin/` shows in a listing of one screen. Reached.
ROOMS = 30
#: Rooms that import another, those from and to `judges` aside: six or seven for a room, as most
#: need errors, files, records and readers. Reached.
ARROWS = 195
#: Templates, styles and scripts of all pages: what one person can read for holes in an hour.
TEMPLATE_LINES = 1_700
#: Modules of ours that `vieval score` loads before it asks anything, as loading is most of a
#: short command's time.
MODULES_OF_A_SCORE = 180
#: Modules of ours of which `vieval report` runs a function.
MODULES_OF_A_REPORT = 160
#: lmms-eval's files of tasks, as its index reads each at every start.
TASK_FILES = 130
#: A judge that can be read at a glance, which is what one in a file is for.
LINES_OF_A_SMALL_JUDGE = 20
#: What a page may have to be opened from a mail or a repository without waiting.
LEADERBOARD_BYTES = 300_000

# Names and docstrings, as shares of all: exceptions to a rule of style, so few that they are
# chosen one by one.

#: Names that fit any value (`vague_names.txt`).
EMPTY_NAMES = 0.015
#: Docstrings that open with a clause.
CLAUSES = 0.03
#: Characters of a line of a docstring; the formatter and reflowed texts stay below it, and an
#: address cannot be broken.
DOCSTRING_LINE = 120
