"""Templates that are bombs, and what packs are refused for."""

import json
from pathlib import Path

DEEP = "{% for a in names %}"


def grown(step, start="{% set x = prompt[:3] %}", times=60, end=""):
    return start + step * times + end


def templates(name):
    """The templates of a file, by name."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    rows = map(json.loads, text.splitlines())
    return {row["id"]: row["template"] for row in rows}


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
    "wide nesting": grown(f"{{% set x = [{'x, ' * 1000}] %}}", times=3),
    # texts that double
    "doubling by ~": grown("{% set x = x ~ x %}"),
    "doubling by +": grown("{% set x = x + x %}"),
    "doubling by a block": grown("{% set x %}{{ x }}{{ x }}{% endset %}"),
    "doubling by join": grown("{% set x = [x, x] | join('-') %}"),
    "doubling by quotes": grown("{% set x = x | tojson %}"),
    "doubling by replacing": grown("{% set x = x | replace('', 'aaaaaaaaaaaa') %}"),
    "doubling lists": grown("{% set x = x + x %}", "{% set x = prompt | list %}"),
    "a long text": "{% set x = prompt ~ prompt %}" + "{{ x }}" * 60,
    # loops, blocks and templates
    "loops in loops": DEEP * 18 + LISTS * 20 + "{% endfor %}" * 18,
    "loops deeper than Python": DEEP * 25 + "{% endfor %}" * 25,
    "ifs deeper than Python": "{% if names %}" * 120 + "{% endif %}" * 120,
    "a long text in a loop": "{% set x %}{% for i in prompt %}" + "word " * 20_000 + "{% endfor %}{% endset %}",
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
    **templates("bombs.jsonl"),
}  # fmt: skip


REFUSED = templates("refused_templates.jsonl")
