"""Templates that are bombs, and what packs are refused for."""

import json
from pathlib import Path


def _rows(name):
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


#: Each is written as its pieces and how often each is repeated.
BOMBS = {
    row["id"]: "".join(text * times for text, times in row["pieces"])
    for row in _rows("bombs.jsonl")
}
CALLS = "{{% block b{0} %}}{{{{ self.b{1}() }}}}{{{{ self.b{1}() }}}}{{% endblock %}}"
BLOCKS = "".join(CALLS.format(number, number + 1) for number in range(60))
BOMBS["blocks that call the next twice"] = f"{BLOCKS}{{% block b60 %}}{{% endblock %}}"
NAMES = "".join(f"{{% set a{number} = 1 %}}" for number in range(9000))
BOMBS["names and branches"] = NAMES + "{% if a1 %}{% endif %}" * 4000
REFUSED = {row["id"]: row["template"] for row in _rows("refused_templates.jsonl")}
