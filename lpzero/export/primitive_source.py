"""The bodies of primitives and outer operations as torch functions, from their one declaration.

A body is written over `xp`, numpy or torch; here `xp` becomes torch, and the functions that it uses
from `primitives.guards` are copied too. So an export cannot diverge from the language, and a new
primitive is exported like any other.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import textwrap
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from lpzero.errors import InputError
from primitives import guards

_XP, _GUARDS = "xp", "guards"


class Sources:
    """Definitions collected in the order in which they must appear."""

    def __init__(self) -> None:
        self.constants: dict[str, str] = {}
        self.functions: dict[str, str] = {}

    def add(self, called: str, body: Callable[..., Any]) -> str:
        """Add the body of a primitive or an outer operation; return the name it is called by."""
        if called not in self.functions:
            self._add_function(called, body, f"primitive {body.__name__!r}")
        return called

    def _add_function(self, called: str, function: Callable[..., Any], what: str) -> None:
        node = _definition(function, what)
        node.name = called
        node.decorator_list = []
        node.returns = None
        node.args.args = [ast.arg(a.arg) for a in node.args.args if a.arg != _XP]
        adapted = ast.fix_missing_locations(_Adapter(self, what).visit(node))
        _refuse_foreign(adapted, what, set(self.functions) | set(self.constants))
        self.functions[called] = ast.unparse(adapted)

    def guard(self, name: str, what: str) -> None:
        """Add a constant or function of the guards that a body uses."""
        value = getattr(guards, name, None)
        if isinstance(value, float):
            self.constants[name] = "math.inf" if math.isinf(value) else repr(value)
        elif callable(value):
            if name not in self.functions:
                self._add_function(name, value, f"guard {name!r}")
        else:
            raise InputError(f"{what} cannot be exported: guards has no {name!r}")


class _Adapter(ast.NodeTransformer):
    """xp -> torch, guards.f(x, xp) -> f(x)."""

    def __init__(self, sources: Sources, what: str) -> None:
        self.sources, self.what = sources, what

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == _GUARDS:
            self.sources.guard(node.attr, self.what)
            return ast.Name(node.attr, node.ctx)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [a for a in node.args if not (isinstance(a, ast.Name) and a.id == _XP)]
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == _XP:
            return ast.Name("torch", node.ctx)
        if hasattr(guards, node.id) and node.id.isupper():  # a guard's own epsilon
            self.sources.guard(node.id, self.what)
        return node


@lru_cache(maxsize=256)
def _source(function: Callable[..., Any]) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _definition(function: Callable[..., Any], what: str) -> ast.FunctionDef:
    try:
        tree = ast.parse(_source(function))
    except (OSError, TypeError, SyntaxError):
        tree = ast.Module([], [])
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            return node
    raise InputError(f"{what} cannot be exported as Python: its source is not available")


def _refuse_foreign(node: ast.AST, what: str, allowed: set[str]) -> None:
    """Raise InputError if a body uses more than its operands, torch, guards, math and builtins."""
    named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    local = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    local |= {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    foreign = sorted(named - local - allowed - {"torch", "math"} - set(dir(builtins)))
    if foreign:
        raise InputError(
            f"{what} cannot be exported as Python: its body uses {foreign[0]!r};"
            " use only xp, guards and math"
        )
