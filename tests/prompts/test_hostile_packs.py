"""Packs of unknown origin: a template that would take all time or memory, or raises, is its sample's failure in one line."""

import itertools
import json
import subprocess
import sys

import pytest

from vieval_plugin.judges.protocol import Status
from vieval_plugin.prompts import packs
from vieval_plugin.run.scheduler import run_in_batches
from vieval_plugin.text.errors import VievalError

MANIFEST = """
judge: viescore
name: mine
questions:
  PQ: {template: PQ.jinja, images: [output], scores: [naturalness, artifacts]}
"""
LONG = "a red cat " * 100_000
DEEP = "{% for a in names %}"


def write(folder, template="", manifest=MANIFEST, **further):
    folder.mkdir(exist_ok=True)
    (folder / "manifest.yaml").write_text(manifest)
    for name, text in {"PQ": template, **further}.items():
        (folder / f"{name}.jinja").write_text(text)
    return str(folder)


@pytest.fixture
def pack(tmp_path):
    return lambda *texts, **further: packs.load(write(tmp_path, *texts, **further))


def grown(step, start="{% set x = prompt[:3] %}", times=60, end=""):
    return start + step * times + end


LISTS = "{% set x = [x, x] %}"
BOMBS = {
    # lists and mappings of themselves, and what walks through them
    "nesting, as JSON": grown(LISTS, times=40, end="{{ x | tojson }}"),
    "nesting, compared": grown(LISTS, times=40, end="{% set y = prompt[1:4] %}" + "{% set y = [y, y] %}" * 40 + "{{ x == y }}"),
    "nesting, sought": grown(LISTS, times=40, end="{{ x in [x] }}"),
    "nesting, as a text": grown(LISTS, times=40, end="{{ x | string }}"),
    "nesting, joined": grown(LISTS, times=40, end="{{ x | join }}"),
    "nesting, hashed": grown("{% set x = (x, x) %}", times=40, end="{{ {x: 1} }}"),
    "nesting, sorted": grown("{% set x = {1: x, 2: x} %}", times=40, end="{{ x | dictsort(by='value') }}"),
    "nesting by inclusion": "{% set x = [x | default(1), x | default(1)] %}{% include 'PQ.jinja' %}",
    "wide nesting": grown(f"{{% set x = [{'x, ' * 1000}] %}}", times=3),
    # texts that double
    "doubling by ~": grown("{% set x = x ~ x %}"),
    "doubling by +": grown("{% set x = x + x %}"),
    "doubling by a block": grown("{% set x %}{{ x }}{{ x }}{% endset %}"),
    "doubling by join": grown("{% set x = [x, x] | join('-') %}"),
    "doubling by quotes": grown("{% set x = x | tojson %}"),
    "doubling by replacing": grown("{% set x = x | replace('', 'aaaaaaaaaaaa') %}"),
    "doubling by inclusion": "{% set x = x | default('abc') ~ x | default('abc') %}{% include 'PQ.jinja' %}",
    "doubling lists": grown("{% set x = x + x %}", "{% set x = prompt | list %}"),
    "a long text": "{% set x = prompt ~ prompt %}" + "{{ x }}" * 60,
    # loops, blocks and templates
    "loops over a text": "{% for a in prompt %}{% for b in prompt %}{% for c in prompt %}{% endfor %}{% endfor %}{% endfor %}",
    "loops in loops": DEEP * 18 + LISTS * 20 + "{% endfor %}" * 18,
    "loops deeper than Python": DEEP * 25 + "{% endfor %}" * 25,
    "ifs deeper than Python": "{% if names %}" * 120 + "{% endif %}" * 120,
    "a long text in a loop": "{% set x %}{% for i in prompt %}" + "word " * 20_000 + "{% endfor %}{% endset %}",
    "a comparison in a loop": "{% set x = prompt ~ '' %}{% for i in prompt %}{% if x == prompt %}{% endif %}{% endfor %}",
    "a search in a loop": "{% for i in prompt %}{% if 'cat ' * 8 ~ 'dog' in prompt %}{% endif %}{% endfor %}",
    "a template that includes itself twice": "{% include 'PQ.jinja' %}{% include 'PQ.jinja' %}",
    "a template that extends itself": "{% extends 'PQ.jinja' %}",
    "an inclusion for every letter": "{% for i in prompt %}{% include 'nothing.jinja' ignore missing %}{% endfor %}",
    "a block that calls itself": "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}",
    "blocks that call the next twice": "".join(
        f"{{% block b{n} %}}{{{{ self.b{n + 1}() }}}}{{{{ self.b{n + 1}() }}}}{{% endblock %}}" for n in range(60)
    ) + "{% block b60 %}{% endblock %}",
    # sources
    "brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lists in lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "filters of filters": "{{ prompt" + " | upper" * 5000 + " }}",
    "attributes of attributes": "{{ prompt" + ".a" * 5000 + " }}",
    "sums of sums": "{{ 1" + " + 1" * 5000 + " }}",
    "elifs": "{% if names %}" + "{% elif names %}" * 4000 + "{% endif %}",
    "names and branches": "".join(f"{{% set a{n} = 1 %}}" for n in range(9000)) + "{% if a1 %}{% endif %}" * 4000,
    "many tags": "{{ prompt }}" * 20_000,
    "a megabyte": "word " * 200_000,
    "a number of a hundred thousand digits": "{{ 0x" + "f" * 100_000 + " }}",
    # errors
    "a number and a text": "{{ prompt < 1 }}",
    "a number that is joined": "{{ 1 | join }}",
    "an attribute of Python": "{{ prompt.__class__.__mro__ }}",
    "classes of Python": "{{ ''.__class__.__subclasses__() }}",
    "a method that is not called": "{{ prompt.format }}",
    "a loop's own": "{% for a in names %}{{ loop._iterable }}{% endfor %}",
    "a template that is not there": "{% include '/etc/passwd' %}",
    "a block that is not there": "{{ self.a() }}",
    "a block's name for a text": "{% set self = prompt %}{{ self.center(1000000000) }}",
}  # fmt: skip

REFUSED = {
    "a letter repeated": "{{ 'a' * 10 ** 9 }}",
    "a list repeated": "{{ ([1] * 1000000000) | length }}",
    "a large number": "{{ 9 ** (9 ** 9) }}",
    "a pattern": "{{ '%0999999999d' % 1 }}",
    "a division by zero": "{{ 1 / 0 }}",
    "a long range": "{{ range(1000000000) | list | length }}",
    "words": "{{ lipsum(n=1000000000) }}",
    "a namespace": "{% set n = namespace(x=1) %}{% for i in prompt %}{% set n.x = [n.x, n.x] %}{% endfor %}",
    "a mapping": "{{ dict(a=1) }}",
    "a cycler": "{{ cycler(1, 2).next() }}",
    "a width": "{{ 'a'.ljust(1000000000) }}",
    "a format": "{{ '{:>999999999}'.format(1) }}",
    "a method": "{{ prompt.encode() }}",
    "a loop that calls itself": "{% for a in names recursive %}{{ loop(names) }}{% endfor %}",
    "a macro": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
    "a call block": "{% call m() %}{% endcall %}",
    "an import": "{% import 'PQ.jinja' as a %}",
    "an import of names": "{% from 'PQ.jinja' import a %}",
    "a filter block": "{% filter upper %}a{% endfilter %}",
    "escaping": "{% autoescape true %}{% endautoescape %}",
    "an indent": "{{ [1] | tojson(indent=1000000000) }}",
    "a long separator": "{{ names | join(prompt) }}",
    "letters to trim": "{{ prompt | trim(prompt) }}",
    "arguments by a star": "{{ names | join(*names) }}",
    "a test": "{{ 1 is divisibleby(0) }}",
    "a filter in a branch": "{% if false %}{{ prompt | pprint }}{% endif %}",
}

FILTERS = ("attr('format')", "center(1000000000)", "indent(1000000000)", "batch(1)", "slice(1000000000)", "format(1)")
FILTERS += ("groupby('a')", "xmlattr", "urlize", "striptags", "wordwrap(1)", "map('upper')", "round(1000000000)", "sum")
REFUSED |= {f"the filter {name}": f"{{{{ prompt | {name} }}}}" for name in FILTERS}

ALIASES = "a: &a [x, x]\n" + "".join(
    f"{n}: &{n} [*{m}, *{m}]\n" for m, n in itertools.pairwise("abcdefghijklmnopqrstu")
)
MANIFESTS = {
    "deep": ("judge: " + "[" * 5000, "nested too deeply"),
    "aliases of aliases": (ALIASES, "more than 100000 values"),
    "a list that holds itself": ("a: &a [*a]", "nested too deeply"),
    "long": ("judge: viescore\nname: " + "x" * (1 << 20), "larger than"),
    "a date that is none": ("judge: 2024-99-99", "not a manifest"),
}

LIMITED = """
import json, os, resource, sys
from vieval_plugin.text.errors import VievalError
from vieval_plugin.prompts import packs
for folder in sys.stdin.read().splitlines():
    if os.fork():
        _, status = os.wait()
        if status:
            print(json.dumps(f"status {status}: a signal or an exception"), flush=True)
        continue
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    try:
        packs.load(folder).render("PQ.jinja", {"prompt": "a red cat " * 100_000, "names": ["a", "b"]})
        message = "rendered"
    except VievalError as error:
        message = str(error)
    print(json.dumps(message), flush=True)
    sys.exit()
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """By hostile pack the message of its VievalError; each in a process that gets 30 seconds of a processor and 1 GiB."""
    root, hostile = tmp_path_factory.mktemp("packs"), [*BOMBS.values(), *REFUSED.values()]
    folders = [write(root / f"{n}", template) for n, template in enumerate(hostile)]
    folders += [write(root / f"{n}", "", text) for n, (text, _) in enumerate(MANIFESTS.values(), len(hostile))]
    process = subprocess.run(
        [sys.executable, "-c", LIMITED], input="\n".join(folders), capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return dict(zip([*BOMBS, *REFUSED, *MANIFESTS], lines, strict=True))


@pytest.mark.parametrize("name", [*BOMBS, *REFUSED])
def test_a_hostile_template_is_one_line_with_its_file_in_bounded_time_and_memory(messages, name):
    if name == "elifs" and messages[name] == "rendered":
        return  # Python 3.13 compiles so many, in bounded time too
    assert "PQ.jinja" in messages[name]
    assert "\n" not in messages[name]
    assert len(messages[name]) < 700


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_offered_is_refused_with_its_line_when_the_pack_is_loaded(pack, name):
    with pytest.raises(
        VievalError, match=r"/PQ\.jinja, line 3: .*; see https://.*/docs/guides/extending\.md#templates"
    ):
        pack("\nRate it.\n" + REFUSED[name])


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_a_bomb_is_one_line(messages, name):
    assert MANIFESTS[name][1] in messages[name]
    assert "\n" not in messages[name]


def test_the_line_is_that_of_the_template_where_it_went_wrong(pack):
    loaded = pack("Rate it.\n\n{% include 'part.jinja' %}", part="\n\n\n{{ missing }}")
    with pytest.raises(VievalError, match=r"^prompt pack mine, template part\.jinja, line 4: 'missing' is undefined; "):
        loaded.render("PQ.jinja", {})


def test_parts_of_a_template_that_includes_itself_twice(pack):
    twice = "{% include 'a.jinja' %}{% include 'b.jinja' %}{% include 'nothing.jinja' %}"
    assert pack(twice, a=twice, b=twice).parts("PQ.jinja") == ("a.jinja", "b.jinja")


def test_it_is_the_samples_failure_and_no_others(pack):
    loaded = pack("{% if prompt == 'bad' %}{{ 1 < prompt }}{% endif %}Rate it.")

    def program(prompt):
        loaded.render("PQ.jinja", {"prompt": prompt})
        return (yield [])

    bad, good = run_in_batches([program("bad"), program("good")], lambda asked: [])
    assert bad.verdict.status is Status.TOOL_ERROR
    assert "TypeError" in bad.verdict.trace[0].reason
    assert "returned no verdict" in good.verdict.trace[0].reason  # which is its own slip


def test_what_packs_use_works_as_in_plain_jinja(pack):
    loaded = pack(
        "{% extends 'base.jinja' %}{% block body %}{% for n in names if n != 'c' %}{{ loop.index + 1 }} {{ n | upper }}"
        "{{ '' if loop.last else ', ' }}{% endfor %} {{ names | join('/') }} {{ names | length }} {{ names[0] ~ 1 }}"
        " {{ {'a': [1, 2]} | tojson }} {{ n | default(names[-1]) }} {{ self.named() }}{{ super() }}"
        "{% set shout | upper %}{% include 'part.jinja' %}{% endset %} {{ shout }}{% endblock %}",
        base="<{% block body %}!{% endblock %}>{% block named %}{{ 'x-y' | replace('-', '+') }}{% endblock %}",
        part="{% with end = names[1:] %}{% for n in end %}{{ n if n is string }}{% else %}none{% endfor %}{% endwith %}",
    )
    rendered = loaded.render("PQ.jinja", {"names": ("a", "b", "c")})
    assert rendered == '<2 A, 3 B a/b/c 3 a1 {"a": [1, 2]} c x+y! BC>x+y'


def test_a_long_prompt_in_every_place_that_packs_have_for_it_is_no_bomb(pack):
    loaded = pack("{% for name in names %}{{ name }}: {{ prompt }}{% if 'cat' in prompt %}!{% endif %}\n{% endfor %}")
    assert (
        loaded.render("PQ.jinja", {"names": [str(n) for n in range(50)], "prompt": "a" * 15_000}).count("a") == 750_000
    )


@pytest.mark.parametrize("name", ["manifest.yaml", "PQ.jinja"])
def test_a_file_that_links_out_is_refused(pack, tmp_path, tmp_path_factory, name):
    pack("Rate it.")
    secret = tmp_path_factory.mktemp("secret") / name
    (tmp_path / name).rename(secret)
    (tmp_path / name).symlink_to(secret)
    with pytest.raises(VievalError, match=rf"{name}: .*outside its folder"):
        packs.load(str(tmp_path))


def test_a_link_in_a_circle_and_a_folder_in_place_of_a_template_are_one_line(pack, tmp_path):
    pack("Rate it.")
    (tmp_path / "x.jinja").symlink_to(tmp_path / "x.jinja")
    with pytest.raises(VievalError, match=r"x\.jinja: the template"):
        packs.load(str(tmp_path))
    (tmp_path / "x.jinja").unlink()
    (tmp_path / "x.jinja").mkdir()
    with pytest.raises(VievalError, match=r"x\.jinja: the template is not a file"):
        packs.load(str(tmp_path))
