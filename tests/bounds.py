"""Bounds on what a reader has to read and a user to choose from, each with the reason for its value.

A bound is lowered when there is room, and not raised to what was reached. Bounds of one case stand in
their tests.
"""

# Pages and README. Pages are all Markdown of `docs/`; words of notebooks count as those of pages.

#: Four parts of a site, five pages each. Reached.
PAGES = 20
#: To judge images, and to measure a judge. Reached.
NOTEBOOKS = 2
#: Three hours and a half at 190 words a minute, with a letter or a digit each.
PAGE_WORDS = 40_000
#: A line is a sentence, a row of a table or a line of code.
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
#: Keys of an options file. Reached.
OPTION_KEYS = 65

# Code.

#: Thirty rooms of some sixteen modules. Reached.
MODULES = 501
#: As many names as `vieval_plugin/` shows in a listing of one screen. Reached.
ROOMS = 30
#: Imports of a room by another, `judges` aside: six or seven for a room. Reached.
ARROWS = 195
#: Templates, styles and scripts of all pages: what one person can read for holes in an hour.
TEMPLATE_LINES = 1_700
#: Modules that `vieval score` loads first, as loading is most of a short command's time.
MODULES_OF_A_SCORE = 180
#: Modules of ours of which `vieval report` runs a function.
MODULES_OF_A_REPORT = 160
#: lmms-eval's files of tasks, as its index reads each at every start.
TASK_FILES = 130
#: A judge that can be read at a glance, which is what one in a file is for.
LINES_OF_A_SMALL_JUDGE = 20
#: What a page may have to be opened from a mail or a repository without waiting.
LEADERBOARD_BYTES = 300_000

# Names and docstrings, as shares of all: exceptions to a rule of style.

#: Names that fit any value (`vague_names.txt`).
EMPTY_NAMES = 0.015
#: Docstrings that open with a clause.
CLAUSES = 0.03
#: Characters of a line of a docstring; an address cannot be broken.
DOCSTRING_LINE = 120
