"""Bugs drawn at random: kinds of small changes at places of the code, and the tests to try first.

    sources, seed ->  draw  ->  RandomMutant, as many of each package as its lines deserve
    test file     ->  Tracer ->  the functions that each of its tests enters

A package is a folder of `lpzero`, `primitives` or `spaces`. Its share of the bugs is that of its
lines; within a package the kind is drawn first and then the place, so that rare kinds are tried.
"""

from __future__ import annotations

import ast
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.mutants.bugs import Mutant

PACKAGES = ("lpzero", "primitives", "spaces")
_OTHER = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_AXES = ("axis", "dim")
_MOST_FILES = 8  # of tests that are tried for a bug
Change = tuple[ast.AST, str]  # a node and the text that it becomes


@dataclass(frozen=True, slots=True)
class RandomMutant(Mutant):
    """A mutant with its kind, and the first line of each function around it, innermost first."""

    kind: str = ""
    functions: tuple[int, ...] = ()

    @property
    def package(self) -> str:
        """The folder whose share it is."""
        return _package(self.file)


def draw(root: Path, n: int, seed: int) -> list[RandomMutant]:
    """So many mutants of the sources under the root, the same for the same sources and seed."""
    files: dict[str, list[str]] = {}
    for path in sorted(path for of in PACKAGES for path in (root / of).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        files.setdefault(_package(name), []).append(name)
    texts = {
        name: (root / name).read_text(encoding="utf-8") for of in files.values() for name in of
    }
    lines = {of: sum(texts[name].count("\n") for name in names) for of, names in files.items()}
    rng = random.Random(seed)
    found: list[RandomMutant] = []
    for package, many in _shares(lines, n).items():
        by_kind: dict[str, list[tuple[str, Change, tuple[int, ...]]]] = {}
        for name in files[package]:
            for kind, change, functions in _changes(ast.parse(texts[name])):
                by_kind.setdefault(kind, []).append((name, change, functions))
        wanted = len(found) + many
        while len(found) < wanted:
            kind = rng.choice(sorted(kind for kind, left in by_kind.items() if left))
            name, change, functions = by_kind[kind].pop(rng.randrange(len(by_kind[kind])))
            made = mutant(name, texts[name], kind, change, functions)
            if made is not None and made.key not in {of.key for of in found}:
                found.append(made)
    rng.shuffle(found)  # so that a part of them is a sample too
    return found


def mutant(
    file: str, text: str, kind: str, change: Change, functions: tuple[int, ...]
) -> RandomMutant | None:
    """The file's text with the change; None if it does not compile or is the same code."""
    node, new = change
    start, end = _offset(text, node, ""), _offset(text, node, "end_")
    mutated = text[:start] + new + text[end:]
    try:
        is_same = ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(text))
    except SyntaxError:
        return None
    old, shown = (" ".join(part.split())[:60] for part in (text[start:end], new))
    bug = f"line {text[:start].count(chr(10)) + 1}, {kind}: {old} -> {shown}"
    return None if is_same else RandomMutant(file, text, mutated, bug, (), None, kind, functions)


def _changes(
    node: ast.AST, functions: tuple[int, ...] = ()
) -> Iterator[tuple[str, Change, tuple[int, ...]]]:
    """Every kind of change inside a node, outside annotations, with the functions around it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        # Code objects begin at the first decorator.
        first = min([node.lineno, *(of.lineno for of in node.decorator_list)])
        functions = (first, *functions)
    for kind, change in _of_node(node):
        yield kind, change, functions
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            # Places inside f-strings are not known before Python 3.12.
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _changes(child, functions)


def _of_node(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """The changes that begin at this node, by kind."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _OTHER.get(type(node.ops[0]))
        if other:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield "comparison", (node, f"({left} {other} {right})")
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "off by one", (node, str(node.value + 1))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", (node, f"({ast.unparse(node.operand)})")
    elif isinstance(node, (ast.If, ast.IfExp)) and ast.unparse(node.test) != "TYPE_CHECKING":
        yield "negation", (node.test, f"(not ({ast.unparse(node.test)}))")
    elif isinstance(node, ast.Raise):
        yield "raise", (node, "pass")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "dropped call", (node, "pass")
    elif isinstance(node, ast.arguments):
        for default in (*node.defaults, *(of for of in node.kw_defaults if of is not None)):
            if isinstance(default, ast.Constant) and type(default.value) in (bool, int, float):
                value = default.value
                new = not value if isinstance(value, bool) else value + 1  # type: ignore[operator]
                yield "default", (default, repr(new))
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, Change]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    plain = [of for of in node.args if not isinstance(of, ast.Starred)]
    if len(plain) == len(node.args) and len(plain) > 1:
        yield "swapped argument", _call(node, [plain[1], plain[0], *plain[2:]], node.keywords)
        yield "dropped argument", _call(node, plain[:-1], node.keywords)
    if name == "sorted" and plain:
        yield "sort", (node, f"list({ast.unparse(plain[0])})")
    elif name == "sort" and plain:
        yield "sort", (node, f"({ast.unparse(plain[0])})")
    for place, keyword in enumerate(node.keywords):
        rest = [*node.keywords[:place], *node.keywords[place + 1 :]]
        if keyword.arg in _AXES and isinstance(keyword.value, (ast.Constant, ast.UnaryOp)):
            other = "0" if ast.unparse(keyword.value) != "0" else "-1"
            yield "axis", (keyword.value, other)
        elif keyword.arg is not None and "seed" in keyword.arg:
            yield "seed", (keyword.value, "0")
        elif keyword.arg is not None:
            yield "keyword", _call(node, node.args, rest)
    if name in ("default_rng", "Random", "SeedSequence", "manual_seed") and plain:
        yield "seed", (plain[0], "0")


def _call(node: ast.Call, args: list[ast.expr], keywords: list[ast.keyword]) -> Change:
    return node, ast.unparse(ast.Call(node.func, args, keywords))


def _offset(text: str, node: Any, which: str) -> int:
    """Where a node begins or ends in the text; columns of syntax trees count bytes."""
    lines = text.split("\n")
    row, column = getattr(node, f"{which}lineno") - 1, getattr(node, f"{which}col_offset")
    return sum(len(line) + 1 for line in lines[:row]) + len(lines[row].encode()[:column].decode())


def _package(file: str) -> str:
    parts = file.split("/")
    return "/".join(parts[: 2 if len(parts) > 2 else 1])


def _shares(weights: Mapping[str, int], n: int) -> dict[str, int]:
    """n divided in proportion to the weights, the largest remainders rounded up."""
    exact = {name: n * weight / sum(weights.values()) for name, weight in weights.items()}
    shares = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (shares[name] - exact[name], name))
    for name in by_remainder[: n - sum(shares.values())]:
        shares[name] += 1
    return shares


def test_files(root: Path, file: str) -> list[str]:
    """Files of tests for a module: those that import it, its folder's first, then its folder's."""
    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    folder = f"tests/{file.rsplit('/', 1)[0]}"
    importing, beside = [], []
    for path in sorted((root / "tests").rglob("test_*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        parent, _, last = module.rpartition(".")
        is_near = name.rsplit("/", 1)[0] == folder
        if (
            f"{module} import" in text
            or f"import {module}\n" in text
            or (
                parent
                and any(
                    f"from {parent} import" in line and last in line.replace(",", " ").split()
                    for line in text.splitlines()
                )
            )
        ):
            importing.append((not is_near, name))
        elif is_near:
            beside.append((not Path(name).stem.endswith(last), name))
    return [name for _, name in (*sorted(importing), *sorted(beside))][:_MOST_FILES]


class Tracer:
    """A plug-in of pytest that notes the functions of the sources that each test enters."""

    def __init__(self, root: Path, save: Callable[[dict[str, Any]], None]) -> None:
        self.root, self.save, self.tests = str(root), save, dict[str, Any]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        codes: set[CodeType] = set()

        def enter(frame: Any, event: str, _: Any) -> None:
            if event == "call":
                codes.add(frame.f_code)

        start = time.process_time()
        threading.setprofile(enter)
        sys.setprofile(enter)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
            places = (
                f"{code.co_filename.removeprefix(self.root).lstrip('/')}:{code.co_firstlineno}"
                for code in codes
                if code.co_filename.startswith(self.root)
            )
            seconds = round(time.process_time() - start, 3)
            self.tests[item.nodeid] = [seconds, sorted(set(places))]

    def pytest_sessionfinish(self) -> None:
        self.save(self.tests)


def ordered(mutant: RandomMutant, traced: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The tests that enter the mutant's function, shortest first, and the others of the files."""
    place = f"{mutant.file}:{mutant.functions[0]}" if mutant.functions else None
    by_time = sorted(traced, key=lambda test: (traced[test][0], test))
    entering = [test for test in by_time if place is None or place in traced[test][1]]
    return entering, [test for test in by_time if test not in set(entering)]


def wilson(n_caught: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share, after Wilson (1927)."""
    z, share = 1.959964, n_caught / n
    middle = share + z * z / (2 * n)
    half = z * ((share * (1 - share) + z * z / (4 * n)) / n) ** 0.5
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def shares_caught(done: Sequence[tuple[str, bool]]) -> list[str]:
    """A line for each name: how many of its mutants were caught, with the interval."""
    lines = []
    for name in sorted({name for name, _ in done}):
        fates = [is_caught for of, is_caught in done if of == name]
        low, high = wilson(sum(fates), len(fates))
        share = sum(fates) / len(fates)
        lines.append(
            f"{name:24} {sum(fates):4} of {len(fates):4}  {share:4.0%} [{low:.0%}, {high:.0%}]"
        )
    return lines
