"""Test that a hostile template is its sample's failure in one line."""

import itertools
import json
import subprocess
import sys

import pytest

from tests.prompts.hostile import BOMBS, REFUSED
from tests.refusals import refuses
from vieval_plugin.judges.protocol import Status
from vieval_plugin.prompts import packs
from vieval_plugin.run.scheduler import run_in_batches

MANIFEST = """
judge: viescore
name: mine
questions:
  PQ: {template: PQ.jinja, images: [output], scores: [naturalness, artifacts]}
"""


def write(folder, template="", manifest=MANIFEST, **further):
    folder.mkdir(exist_ok=True)
    (folder / "manifest.yaml").write_text(manifest)
    for name, text in {"PQ": template, **further}.items():
        (folder / f"{name}.jinja").write_text(text)
    return str(folder)


@pytest.fixture
def pack(tmp_path):
    return lambda *texts, **further: packs.load(write(tmp_path, *texts, **further))


FILTERS = ["attr('format')", "center(1000000000)", "indent(1000000000)", "batch(1)"]
FILTERS += ["slice(1000000000)", "format(1)", "groupby('a')", "xmlattr", "urlize"]
FILTERS += ["striptags", "wordwrap(1)", "map('upper')", "round(1000000000)", "sum"]

REFUSED |= {f"the filter {name}": f"{{{{ prompt | {name} }}}}" for name in FILTERS}

ALIASES = "a: &a [x, x]\n" + "".join(
    f"{n}: &{n} [*{m}, *{m}]\n" for m, n in itertools.pairwise("abcdefghijklmnopqrstu")
)
MANIFESTS = {
    "deep": ("judge: " + "[" * 5000, "nested too deeply"),
    "aliases of aliases": (ALIASES, "more than 100000 values"),
    "a list that holds itself": ("a: &a [*a]", "nested too deeply"),
    "long": ("judge: viescore\nname: " + "x" * (1 << 20), "too large for"),
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
    """Messages by hostile pack, each in a process with 30 seconds and 1 GiB."""
    root = tmp_path_factory.mktemp("packs")
    hostile = [(template,) for template in (*BOMBS.values(), *REFUSED.values())]
    hostile += [("", text) for text, _ in MANIFESTS.values()]
    folders = [write(root / f"{n}", *texts) for n, texts in enumerate(hostile)]
    command = [sys.executable, "-c", LIMITED]
    kept = {"capture_output": True, "text": True, "check": True}
    process = subprocess.run(command, input="\n".join(folders), **kept)
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    return dict(zip([*BOMBS, *REFUSED, *MANIFESTS], lines, strict=True))


@pytest.mark.parametrize("name", [*BOMBS, *REFUSED])
def test_a_hostile_template_is_one_line_in_bounded_time_and_memory(messages, name):
    if name == "elifs" and messages[name] == "rendered":
        return  # Python 3.13 compiles so many, in bounded time too
    assert "PQ.jinja" in messages[name]
    assert "\n" not in messages[name]
    assert len(messages[name]) < 700


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_offered_is_refused_with_its_line(pack, name):
    page = r"see https://.*/docs/guides/extending\.md#templates"
    refuses(rf"/PQ\.jinja, line 3: .*; {page}", pack, "\nRate it.\n" + REFUSED[name])


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_is_a_bomb_is_one_line(messages, name):
    assert MANIFESTS[name][1] in messages[name]
    assert "\n" not in messages[name]


def test_the_line_is_that_of_the_template_where_it_went_wrong(pack):
    loaded = pack("Rate it.\n\n{% include 'part.jinja' %}", part="\n\n\n{{ missing }}")
    place = r"^prompt pack mine, template part\.jinja, line 4"
    refuses(rf"{place}: 'missing' is undefined; ", loaded.render, "PQ.jinja", {})


def test_parts_of_a_template_that_includes_itself_twice(pack):
    names = ("a.jinja", "b.jinja", "nothing.jinja")
    twice = "".join(f"{{% include '{name}' %}}" for name in names)
    assert pack(twice, a=twice, b=twice).parts("PQ.jinja") == ("a.jinja", "b.jinja")


def test_it_is_the_samples_failure_and_no_others(pack):
    loaded = pack("{% if prompt == 'bad' %}{{ 1 < prompt }}{% endif %}Rate it.")

    def program(prompt):
        loaded.render("PQ.jinja", {"prompt": prompt})
        return (yield [])

    bad, good = run_in_batches([program("bad"), program("good")], lambda asked: [])
    assert bad.verdict.status is Status.TOOL_ERROR
    assert "TypeError" in bad.verdict.trace[0].reason
    # which is its own slip
    assert "must return a Verdict" in good.verdict.trace[0].reason


USED = """{% extends 'base.jinja' %}{% block body %}{% for n in names if n != 'c' %}{{
loop.index + 1 }} {{ n | upper }}{{ '' if loop.last else ', ' }}{% endfor %} {{ names |
join('/') }} {{ names | length }} {{ names[0] ~ 1 }} {{ {'a': [1, 2]} | tojson }} {{ n |
default(names[-1]) }} {{ self.named() }}{{ super() }}{% set shout | upper %}{% include
'part.jinja' %}{% endset %} {{ shout }}{% endblock %}"""
BASE = """<{% block body %}!{% endblock %}>{% block named %}{{ 'x-y' | replace('-', '+')
}}{% endblock %}"""
PART = """{% with end = names[1:] %}{% for n in end %}{{ n if n is string }}{% else %}none{%
endfor %}{% endwith %}"""


def test_what_packs_use_works_as_in_plain_jinja(pack):
    loaded = pack(USED, base=BASE, part=PART)
    rendered = loaded.render("PQ.jinja", {"names": ("a", "b", "c")})
    assert rendered == '<2 A, 3 B a/b/c 3 a1 {"a": [1, 2]} c x+y! BC>x+y'


def test_a_long_prompt_in_every_place_that_packs_have_for_it_is_no_bomb(pack):
    line = "{{ name }}: {{ prompt }}{% if 'cat' in prompt %}!{% endif %}\n"
    loaded = pack(f"{{% for name in names %}}{line}{{% endfor %}}")
    texts = {"names": [str(n) for n in range(50)], "prompt": "a" * 15_000}
    assert loaded.render("PQ.jinja", texts).count("a") == 750_000


@pytest.mark.parametrize("name", ["manifest.yaml", "PQ.jinja"])
def test_a_file_that_links_out_is_refused(pack, tmp_path, tmp_path_factory, name):
    pack("Rate it.")
    secret = tmp_path_factory.mktemp("secret") / name
    (tmp_path / name).rename(secret)
    (tmp_path / name).symlink_to(secret)
    refuses(rf"{name}: .*must be inside", packs.load, str(tmp_path))


def test_a_circular_link_and_a_folder_as_template_are_one_line(pack, tmp_path):
    pack("Rate it.")
    template = tmp_path / "x.jinja"
    template.symlink_to(template)
    refuses(r"x\.jinja: the template", packs.load, str(tmp_path))
    template.unlink()
    template.mkdir()
    refuses(r"x\.jinja: the template is not a file", packs.load, str(tmp_path))
