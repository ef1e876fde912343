"""Templates that are bombs, and what packs are refused for."""

DEEP = "{% for a in names %}"


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
    "nesting by inclusion": ("{% set x = [x | default(1), x | default(1)] %}{% include 'PQ.jinja' "
                            "%}"),
    "wide nesting": grown(f"{{% set x = [{'x, ' * 1000}] %}}", times=3),
    # texts that double
    "doubling by ~": grown("{% set x = x ~ x %}"),
    "doubling by +": grown("{% set x = x + x %}"),
    "doubling by a block": grown("{% set x %}{{ x }}{{ x }}{% endset %}"),
    "doubling by join": grown("{% set x = [x, x] | join('-') %}"),
    "doubling by quotes": grown("{% set x = x | tojson %}"),
    "doubling by replacing": grown("{% set x = x | replace('', 'aaaaaaaaaaaa') %}"),
    "doubling by inclusion": ("{% set x = x | default('abc') ~ x | default('abc') %}{% include "
                             "'PQ.jinja' %}"),
    "doubling lists": grown("{% set x = x + x %}", "{% set x = prompt | list %}"),
    "a long text": "{% set x = prompt ~ prompt %}" + "{{ x }}" * 60,
    # loops, blocks and templates
    "loops over a text": ("{% for a in prompt %}{% for b in prompt %}{% for c in prompt %}{% "
                         "endfor %}{% endfor %}{% endfor %}"),
    "loops in loops": DEEP * 18 + LISTS * 20 + "{% endfor %}" * 18,
    "loops deeper than Python": DEEP * 25 + "{% endfor %}" * 25,
    "ifs deeper than Python": "{% if names %}" * 120 + "{% endif %}" * 120,
    "a long text in a loop": "{% set x %}{% for i in prompt %}" + "word " * 20_000 + "{% endfor %}{% endset %}",
    "a comparison in a loop": ("{% set x = prompt ~ '' %}{% for i in prompt %}{% if x == prompt "
                              "%}{% endif %}{% endfor %}"),
    "a search in a loop": ("{% for i in prompt %}{% if 'cat ' * 8 ~ 'dog' in prompt %}{% endif "
                          "%}{% endfor %}"),
    "a template that includes itself twice": "{% include 'PQ.jinja' %}{% include 'PQ.jinja' %}",
    "a template that extends itself": "{% extends 'PQ.jinja' %}",
    "an inclusion for every letter": ("{% for i in prompt %}{% include 'nothing.jinja' ignore "
                                     "missing %}{% endfor %}"),
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
    "a namespace": (
        "{% set n = namespace(x=1) %}{% for i in prompt %}{% set n.x = [n.x, n.x] %}{% endfor %}"
    ),
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
