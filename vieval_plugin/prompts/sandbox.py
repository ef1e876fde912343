"""Templates of prompt packs, whoever wrote them: the part of Jinja that prompts need, bounded in
what it can do.

Only the nodes, filters and tests listed here are compiled: no macros, no calls but of a template's
own blocks, no multiplication. What every expression yields is charged to an allowance with all that
hangs below it, and so are each turn of a loop, each block called and each template included, by the
length of their source. So nothing works on what was not paid for, and nothing that is offered makes
more of it than a small multiple.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from traceback import walk_tb
from typing import Any

from jinja2 import (
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    nodes,
    pass_context,
)
from jinja2.runtime import BlockReference
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

#: Characters of the longest text that a template may make.
LONGEST = 1 << 20
_ALLOWANCE = 16 << 20  # characters
_LONGEST_SOURCE = 1 << 18  # characters of a pack's templates
# characters that a node and a value cost beside their text; compiling takes the square of the nodes
_NODE = 16
_INCLUSION = 32 * _NODE
_LONGEST_ARGUMENT = (
    32  # of a filter: it may stand in the result as often as the text has characters
)

_CHARGED = frozenset(
    (
        "Add",
        "Call",
        "Concat",
        "Dict",
        "Filter",
        "Getattr",
        "Getitem",
        "List",
        "Name",
        "Tuple",
    )
)
_OFFERED = _CHARGED.union(
    (
        "Assign",
        "AssignBlock",
        "Block",
        "Extends",
        "For",
        "If",
        "Include",
        "Output",
        "Scope",
        "Template",
        "With",
    ),
    (
        "And",
        "Compare",
        "CondExpr",
        "Const",
        "Keyword",
        "Neg",
        "Not",
        "Operand",
        "Or",
        "Pair",
        "Slice",
        "Sub",
        "Test",
    ),
    ("TemplateData",),
)
_FILTERS = (
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "replace",
    "string",
    "tojson",
    "trim",
    "upper",
)
_TESTS = (
    "defined",
    "even",
    "mapping",
    "none",
    "number",
    "odd",
    "sequence",
    "string",
    "undefined",
)
_YIELDED, _TURNS = (
    "what is yielded",
    "turns of a loop",
)  # filters that no template can name
_TOO_LONG = (
    f"the templates have more than {_LONGEST_SOURCE} characters in total, or too many "
    "tags"
)
_ONLY_BLOCKS = "only self.BLOCK() and super() can be called in prompts"

_allowance_left: ContextVar[list[int]] = ContextVar("characters left")


class PromptTemplateError(Exception):
    """Any failure of a template, in one line with its name and, where known, its line."""


class PackEnvironment(SandboxedEnvironment):
    """The environment of a pack's templates, by name. PromptTemplateError for what cannot be
    compiled or is not offered.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__(
            loader=FunctionLoader(
                lambda name: (texts[name], name, None) if name in texts else None
            ),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # it would compute while it compiles, where nothing is charged
            cache_size=-1,
            auto_reload=False,
        )
        self.texts = texts
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in _FILTERS} | {
            _YIELDED: _yielded,
            _TURNS: _turns,
        }
        self.tests = {name: self.tests[name] for name in _TESTS}
        self._restriction = _Restriction()
        self._longest = max(texts, key=lambda name: len(texts[name]))
        if sum(map(len, texts.values())) > _LONGEST_SOURCE:
            raise PromptTemplateError(f"{self._longest}: {_TOO_LONG}")
        for name in texts:
            try:
                self.get_template(name)
            except Exception as error:
                raise _failure(name, error) from error

    def text(self, template: str, variables: Mapping[str, Any]) -> str:
        """Return the text of a template; PromptTemplateError if missing."""
        token = _allowance_left.set([_ALLOWANCE])
        try:
            return str(_yielded(None, self.get_template(template).render(variables)))
        # templates compare texts with numbers, include themselves and the like
        except Exception as error:
            raise _failure(template, error) from error
        finally:
            _allowance_left.reset(token)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not callable(value) and super().is_safe_attribute(
            obj,
            attr,
            value,
        )

    def wrap_str_format(
        self, value: Any
    ) -> None:  # which comes before the question whether an attribute is safe
        return None

    def call(self, context: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(obj, BlockReference):
            raise TemplateError(_ONLY_BLOCKS)
        self.join_path(self._longest)
        return context.call(obj, *args, **kwargs)

    def join_path(
        self, template: str, parent: str = ""
    ) -> str:  # called for what is included or extended
        _charge(_INCLUSION + len(self.texts.get(template, "")))
        return template

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(
            self._restriction.visit(source),
            *args,
            **kwargs,
        )


class _Restriction(NodeTransformer):
    """Refuses what is not offered in the templates of a pack, and puts filters that charge
    around the rest.
    """

    source = 0  # characters of all templates so far, with those of nodes

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        length_before_node = self.source
        self.source += _NODE
        if isinstance(node, nodes.TemplateData):
            self.source += len(node.data)
        reason = _TOO_LONG if self.source > _LONGEST_SOURCE else _refusal(node)
        if reason:
            raise TemplateSyntaxError(reason, node.lineno)
        self.generic_visit(node)
        if isinstance(node, nodes.For):
            length = nodes.Const(self.source - length_before_node)
            node.iter = _filtered(node.iter, _TURNS, length)
        is_charged = (
            type(node).__name__ in _CHARGED and getattr(node, "ctx", "load") == "load"
        )
        return _filtered(node, _YIELDED) if is_charged else node


def _filtered(node: nodes.Node, name: str, *arguments: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(
        node,
        name,
        list(arguments),
        [],
        None,
        None,
        lineno=node.lineno,
    )


def _refusal(node: nodes.Node) -> str:
    """Return the reason why a node is refused, or nothing."""
    kind = type(node).__name__
    if kind not in _OFFERED:
        return f"{kind} is not available in prompts"
    if isinstance(node, nodes.Call):
        owner = node.node.node if isinstance(node.node, nodes.Getattr) else node.node
        if isinstance(owner, nodes.Name) and owner.name in ("self", "super"):
            return ""
        return _ONLY_BLOCKS
    if isinstance(node, (nodes.Filter, nodes.Test)):
        offered = _FILTERS if kind == "Filter" else _TESTS
        if node.name not in offered:
            return f"unknown {kind.lower()} {node.name!r}; known in prompts: {', '.join(offered)}"
        arguments = node.iter_child_nodes(exclude=("node",))
        is_default = node.name in ("d", "default")
        if not is_default and not all(map(_is_short, arguments)):
            return (
                f"{node.name}: arguments must be literal strings of at most "
                f"{_LONGEST_ARGUMENT} characters"
            )
    return ""


def _is_short(argument: nodes.Node) -> bool:
    text = argument.value if isinstance(argument, nodes.Keyword) else argument
    return (
        isinstance(text, nodes.Const)
        and isinstance(text.value, str)
        and len(text.value) <= _LONGEST_ARGUMENT
    )


@pass_context  # nothing with a context is computed while a template is compiled
def _turns(_context: Any, iterable: Iterable[Any], characters: int) -> list[Any]:
    turns = list(iterable)
    _charge(characters * len(turns))
    return turns


@pass_context
def _yielded(_context: Any, value: Any) -> Any:
    """Charge a value with all that hangs below it."""
    size = len(value) if isinstance(value, str) else 0
    if size > LONGEST:
        raise TemplateError(f"a text must have at most {LONGEST} characters")
    _charge(_NODE + size)
    if isinstance(value, (list, tuple)):
        for item in value:
            _yielded(_context, item)
    elif isinstance(value, Mapping):
        _yielded(_context, list(value.items()))
    return value


def _charge(characters: int) -> None:
    allowance = _allowance_left.get()
    allowance[0] -= characters
    if allowance[0] < 0:
        raise TemplateError(
            f"loops endlessly, or produces more than {_ALLOWANCE} characters"
        )


def _failure(template: str, error: Exception) -> PromptTemplateError:
    """Return the one line for an error: the innermost template and line of its traceback, and
    the reason.
    """
    location = template
    for frame, line in walk_tb(error.__traceback__):
        if "__jinja_exception__" in frame.f_globals:  # a frame of a template's own line
            location = f"{frame.f_code.co_filename}, line {line}"
    if isinstance(error, TemplateSyntaxError):
        location = f"{template}, line {error.lineno}"
    # the last is Python's, of what Jinja compiles to
    if isinstance(error, (RecursionError, MemoryError, SyntaxError)):
        reason = "nested too deeply"
    elif isinstance(error, TemplateError) and not isinstance(error, LookupError):
        reason = str(error)
    else:
        reason = f"{type(error).__name__}: {error}"
    return PromptTemplateError(" ".join(f"{location}: {reason[:300]}".split()))
