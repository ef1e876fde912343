"""The help of every command: what it says, and that its examples are commands there are."""

import argparse
import contextlib
import io
import re
import shlex

import pytest

from vieval_plugin import cli


def children(parser):
    """The parsers of a parser's commands or actions, by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def walked(parser, names=()):
    """Every parser with the words that lead to it."""
    yield names, parser
    for name, child in children(parser).items():
        yield from walked(child, (*names, name))


PARSERS = dict(walked(cli.build_parser()))


def examples(parser):
    """The commands among the lines of an epilog."""
    opening, *lines = parser.epilog.splitlines()
    assert opening == "examples:"
    for purpose, command in zip(lines[::2], lines[1::2], strict=True):
        assert re.match(r"  # \S", purpose)
        yield command.strip()


def options(parser):
    others = (argparse._SubParsersAction, argparse._HelpAction, argparse._VersionAction)
    return [action for action in parser._actions if not isinstance(action, others)]


def parsed(arguments):
    """The namespace of a command line; a failure with argparse's own words where it has none."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            namespace, unknown = PARSERS[()].parse_known_args(arguments)
    except SystemExit:
        pytest.fail(f"{arguments}: {told.getvalue().splitlines()[-1]}")
    return namespace, unknown


@pytest.mark.parametrize("names", PARSERS, ids=" ".join)
def test_each_help_has_examples_that_its_parser_takes(names):
    parser = PARSERS[names]
    commands = list(examples(parser))
    assert len(commands) >= (2 if len(names) < 2 else 1)
    for command in commands:
        first, *words = shlex.split(re.sub(r"\s>\s\S+$", "", command))
        assert first == "vieval"
        assert tuple(words[: len(names)]) == names, command
        namespace, unknown = parsed(words)
        assert callable(namespace.run)
        assert not unknown or words[0] == "vlmevalkit", command


@pytest.mark.parametrize("names", [names for names in PARSERS if names], ids=" ".join)
def test_each_help_opens_with_an_imperative_and_ends_its_sentences(names):
    description = PARSERS[names].description
    assert re.match(r"[A-Z][a-z]+,? \S", description)
    assert description.endswith(".") or re.search(r"https://\S+$", description)
    assert not re.search(r"\?|\bpeople\b", description)


@pytest.mark.parametrize("names", PARSERS, ids=" ".join)
def test_each_option_has_one_plain_sentence_with_its_default(names):
    clause = re.compile(r"(of|what|whose|how many|which|so many)\b")
    undefined = (None, False, "", [], argparse.SUPPRESS)
    for action in options(PARSERS[names]):
        assert action.help, f"{names}: {action.dest} has no help"
        assert not action.help.endswith("."), action.help
        assert not clause.match(action.help), action.help
        if action.default not in undefined and not action.required:
            assert "default: " in action.help, f"{names}: {action.dest}"
