"""Signatures and help of the Python functions, from the requests of the verbs; and the stub file.

A verb declares its options once, as the fields of its `Request` (`lpzero.verbs`). A Python function
marked with `@of_verb("rank")` takes them as `**options`; `sign` gives it, when it is first used, a
signature with a keyword for every option and a docstring that lists their help, so `help()`,
`inspect.signature` and the completion of a notebook see them. What reads source text instead of
running it (mypy, editors) gets `lpzero/__init__.pyi`, which `stub` prints from the same signatures:

    python -m lpzero.python.signatures > lpzero/__init__.pyi

A test compares the file with what `stub` prints, so it cannot go stale. `Unpack[TypedDict]` would
be a second declaration of every option, without defaults and help; `ParamSpec` and
`dataclass_transform` cannot flatten the groups of a request.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any, TypeVar

from lpzero.options import Option, options
from lpzero.verbs import module

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = "Options:"  # the heading of their help in a docstring
_FLAG = re.compile(r"--[a-z][a-z-]*[a-z]")


def of_verb(verb: str, *hidden: str) -> Callable[[F], F]:
    """Mark a function that takes the options of the verb, but for those that are `hidden`."""

    def mark(function: F) -> F:
        own = tuple(inspect.signature(function).parameters)
        vars(function).update(verb=verb, hidden=(*own, *hidden))
        return function

    return mark


def options_of(function: Callable[..., Any]) -> list[Option]:
    """The options of the verb that the function takes as `**options`."""
    about = vars(function)
    entries = options(module(about["verb"]).Request)
    hidden = about["hidden"]
    return [entry for entry in entries if not entry.is_argument and entry.name not in hidden]


def sign(function: F, described: Any = None) -> F:
    """The function with the signature and the docstring that its verb's options give it.

    `described` is what the docstring belongs to, if not to the function: its class.
    """
    if "__signature__" in vars(function) or "verb" not in vars(function):
        return function
    entries = options_of(function)
    plain = inspect.signature(function)
    own = [p for p in plain.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    more = [
        Parameter(
            entry.name, Parameter.KEYWORD_ONLY, default=entry.default, annotation=type_of(entry)
        )
        for entry in entries
    ]
    target = function if described is None else described
    words = {entry.flag: entry.name for entry in entries}
    target.__doc__ = "\n".join([inspect.getdoc(target) or "", "", _OPTIONS, *_help(entries, words)])
    vars(function)["__signature__"] = plain.replace(parameters=[*own, *more])
    return function


def type_of(entry: Option) -> str:
    """The type of an option's values in Python."""
    return f"{entry.kind.python} | None" if entry.default is None else entry.kind.python


def _help(entries: list[Option], words: dict[str, str]) -> Iterator[str]:
    for entry in entries:
        text = _FLAG.sub(lambda flag: words.get(flag[0], flag[0]), " ".join(entry.help.split()))
        yield f"    {entry.name}: {type_of(entry)} = {entry.default!r}"
        yield from textwrap.wrap(text, 96, initial_indent=" " * 8, subsequent_indent=" " * 8)


_HEAD = '''\
"""LPZero engine: discovers formulas that rank untrained transformers."""

# Printed by `python -m lpzero.python.signatures` from the requests of the verbs: do not edit.

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from lpzero import hf as hf
from lpzero import optuna as optuna
from lpzero.discover.campaign import Progress
from lpzero.own import space as space
from lpzero.proxies.model_scores import Scores
from lpzero.python.discovery import Discovery as _Discovery
from lpzero.python.formula import FormulaObject
from lpzero.python.formula import formula as formula
from lpzero.python.inputs import AnyTable, Data, ProxyLike, SpaceLike
from lpzero.python.rows import Exhausted, RankedRow, Rows, SearchResult, TrainedTable
from lpzero.statistics.layout import Layout as Layout
from lpzero.statistics.objective import Loss

__version__: str
'''


def stub() -> str:
    """The text of `lpzero/__init__.pyi`."""
    from lpzero.python import get
    from lpzero.python.functions import FUNCTIONS

    made = get("Discovery")
    parts = [_HEAD, "class Discovery(_Discovery):", _docstring(made, "    ")]
    parts += [
        "",
        *(f"    {entry.name}: {type_of(entry)}" for entry in options_of(made.__init__)),
    ]
    parts += _definition("__init__", inspect.signature(made.__init__), "    ")
    for name in FUNCTIONS:
        function = get(name)
        parts += ["", *_definition(name, inspect.signature(function), "", function)]
    return "\n".join(parts) + "\n"


def _definition(
    name: str, signature: inspect.Signature, indent: str, described: Any = None
) -> Iterator[str]:
    yield f"{indent}def {name}("
    is_keyword = False
    for parameter in signature.parameters.values():
        if parameter.kind is Parameter.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            yield f"{indent}    *,"
        kind = "" if parameter.annotation is Parameter.empty else f": {parameter.annotation}"
        has_default = parameter.default is not Parameter.empty
        value = parameter.default
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        default = f" = {shown}" if has_default else ""
        yield f"{indent}    {parameter.name}{kind}{default},"
    yield f"{indent}) -> {signature.return_annotation}:" + ("" if described else " ...")
    if described is not None:
        yield _docstring(described, indent + "    ")


def _docstring(described: Any, indent: str) -> str:
    """The docstring without the options, whose help takes a screen each; `help()` has it."""
    text = inspect.cleandoc(described.__doc__).partition(f"\n\n{_OPTIONS}\n")[0]
    end = "\n" if "\n" in text else ""
    return textwrap.indent(f'"""{text}{end}"""', indent, lambda line: bool(line.strip()))


if __name__ == "__main__":
    import sys

    sys.stdout.write(stub())
