"""Rules of the repository that no other tool checks.

Imports point one way, between the top-level packages and between the sub-packages of lpzero; one
module writes files; experiments can be imported; kinds of runs name functions that exist; the
README and the links in the documentation are true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple

import pytest

from lpzero import verbs
from lpzero.runs.run import Kind

ROOT = Path(__file__).parent.parent
TOOLS = {"faults", "fuzz", "mutants"}  # of the tests, beside them
SCRIPTS = sorted(
    path
    for folder in ("experiments/*", *(f"tests/{tool}" for tool in sorted(TOOLS)))
    for path in ROOT.glob(f"{folder}/*.py")
)
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("experiments/README.md"),
    *ROOT.glob("*/*/README.md"),
]
FORBIDDEN = {
    "primitives": {"spaces", "lpzero", "experiments", "tests"},
    "spaces": {"primitives", "lpzero", "experiments", "tests"},
    "lpzero": {"experiments", "tests"},
}

# What each sub-package (or module) of lpzero may import of the others, from the bottom up.
_BASE = {"errors", "version", "arrays", "files", "options"}
_BASE |= {"callable_package"}
_MEASURED = _BASE | {"parallel", "plugins", "judgement", "statistics", "sketches", "scores"}
_RUN = _MEASURED | {"runs"}
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": {"version"},
    "callable_package": set(),
    "errors": set(),
    "version": set(),
    "arrays": {"errors"},
    "files": {"errors", "version", "arrays"},
    "options": {"errors"},
    "parallel": _BASE,
    "plugins": _BASE | {"parallel"},
    "judgement": _BASE | {"parallel"},
    "statistics": _BASE | {"parallel"},
    "sketches": _BASE | {"parallel", "statistics"},
    "own": _BASE | {"parallel", "statistics"},
    "scores": _BASE | {"parallel", "judgement", "statistics", "sketches"},
    "runs": _MEASURED,
    "downloads": _BASE,
    "training": _RUN,
    "discover": _RUN,
    "trackers": _RUN | {"discover"},
    "exhaust": _RUN,
    "supernet": _RUN,
    "export": _RUN | {"discover", "exhaust"},
    "proxies": _RUN | {"supernet", "export"},
    "hf": _BASE | {"statistics", "own"},
    "search": _RUN | {"supernet", "proxies", "discover"},
    "report": _RUN | {"discover", "exhaust", "supernet", "export", "proxies", "search", "training"},
}
MAY_IMPORT["dashboard"] = MAY_IMPORT["report"] | {"report"}
MAY_IMPORT["verbs"] = MAY_IMPORT["dashboard"] | {"dashboard", "downloads", "hf", "trackers"}
MAY_IMPORT["python"] = MAY_IMPORT["verbs"] | {"verbs"}
MAY_IMPORT["optuna"] = MAY_IMPORT["python"] | {"python"}
MAY_IMPORT["cli"] = set(MAY_IMPORT) - {"__init__"}
MAY_IMPORT["__main__"] = {"cli"}

# Imports that break the table today, as (file, sub-package): remove an entry with its import.
KNOWN_IMPORTS: set[tuple[str, str]] = set()

WRITER = "lpzero/files.py"
# Files that still write on their own today: remove an entry when it writes through WRITER.
KNOWN_WRITERS: set[str] = set()

# Calls that run code of the user's, by file. Each is given what the user names, never the content
# of a file; docs/security.md says what that is.
RUNS_CODE = {
    "lpzero/cli/main.py": {"plugins.load"},
    "lpzero/options.py": {"load_address"},
    "lpzero/parallel/tasks.py": {"pickle.loads", "user_modules.accept", "user_modules.restore"},
    "lpzero/plugins.py": {"user_modules.load"},
    "lpzero/python/inputs.py": {"spaces.load"},
    "lpzero/search/evaluators.py": {"spaces.load"},
    "spaces/__init__.py": {"load_address"},
    "spaces/tables/project_file.py": {"spaces.load"},
    "spaces/user_modules.py": {"exec"},
}
_RUNNING = {"exec", "eval", *(call for calls in RUNS_CODE.values() for call in calls)}
# What a loader must be told to read numbers alone.
_SAFE = {"torch.load": ("weights_only", True), "np.load": ("allow_pickle", False)}


OPENER = "spaces/untrusted.py"
# Files that open what is no stranger's: reason by file.
OWN_READERS = {
    "lpzero/dashboard/server.py": "package data",
    "lpzero/downloads.py": "an archive that was just fetched, and whose digest is checked",
    "lpzero/exhaust/shards.py": "NumPy gets the bytes that the opener read",
    "lpzero/export/python_form.py": "the package's own source",
    "lpzero/files.py": "the writer",
    "lpzero/parallel/local.py": "memory that this process shares with its workers",
    "lpzero/parallel/tasks.py": "the package's own source",
    "lpzero/proxies/families/formulas.py": "package data",
    "lpzero/report/page.py": "package data",
    "lpzero/report/plotly_chart.py": "package data of plotly",
    "lpzero/supernet/weights.py": "torch gets the bytes that the opener read",
    "lpzero/cli/main.py": "/dev/null",
    "lpzero/verbs/__init__.py": "the package's own source",
    "spaces/memory.py": "files of the kernel",
    "spaces/own/space.py": "the user's own code, which runs in this process",
    "spaces/tables/rnn.py": "an archive that the opener checked",
    "spaces/tables/vit.py": "an archive that the opener checked",
}
_READING_METHODS = {"read_text", "read_bytes"}
_READING_FUNCTIONS = {
    ("os", "open"), ("os", "fdopen"), ("np", "load"), ("np", "memmap"), ("np", "fromfile"),
    ("torch", "load"), ("tarfile", "open"), ("zipfile", "ZipFile"), ("pandas", "read_parquet"),
    ("pandas", "read_csv"),
}  # fmt: skip


class Import(NamedTuple):
    """A module's name where it is imported, at any depth of the code."""

    line: int
    module: str


def modules_of(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"{package} has no modules"
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(tree: ast.AST, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import in the code, those inside functions and under `if TYPE_CHECKING` included.

    `package` is the package of the module, to which relative imports refer. `from lpzero import x`
    counts as an import of lpzero.x, and so does `import_module("lpzero.x")`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            yield from (Import(node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            yield from (
                Import(node.lineno, argument.value)
                for argument in node.args[:1]
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            )


def writes_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and call of whatever writes, replaces or moves a file.

    A lock is held and not written, so os.open is not counted.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_write(node):
            yield node.lineno, ast.unparse(node)


_WRITING_METHODS = {"write_text", "write_bytes", "touch", "tofile"}
_WRITING_FUNCTIONS = {
    ("os", "replace"),
    ("os", "rename"),
    ("os", "link"),
    ("os", "symlink"),
    ("shutil", "copy"),
    ("shutil", "copy2"),
    ("shutil", "copyfile"),
    ("shutil", "move"),
    ("tempfile", "mkstemp"),
    ("tempfile", "NamedTemporaryFile"),
    ("torch", "save"),
}


def _name(function: ast.expr) -> str:
    """The last part of a dotted name."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_write(call: ast.Call) -> bool:
    name = _name(call.func)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    of = owner.id if isinstance(owner, ast.Name) else ""
    if of == "files":  # lpzero.files, which is where files are written
        return False
    if (of, name) in _WRITING_FUNCTIONS or (owner is not None and name in _WRITING_METHODS):
        return True
    if name in ("replace", "rename") and owner is not None:
        # str.replace and dataclasses.replace take more than one argument, Path's take one.
        return len(call.args) == 1 and not call.keywords
    if name == "fdopen" or (name == "open" and owner is None):
        return _is_writing_mode(call, position=1)
    if name == "open" and of not in ("os", "tarfile", "webbrowser", "zipfile"):
        return _is_writing_mode(call, position=0)
    return False


def _is_writing_mode(call: ast.Call, position: int) -> bool:
    modes = call.args[position : position + 1]
    modes += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    words = [
        node.value
        for mode in modes
        for node in ast.walk(mode)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    # A mode that cannot be read here counts as one that writes.
    return bool(modes) and (not words or any(set(word) & set("wax+") for word in words))


def reads_of(tree: ast.AST) -> Iterator[str]:
    """The calls that open a file on their own, whatever for."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of = owner.id if isinstance(owner, ast.Name) else ""
        is_method = owner is not None and of not in ("webbrowser", "gzip")
        if (
            (name == "open" and (owner is None or is_method))
            or (is_method and name in _READING_METHODS)
            or (of, name) in _READING_FUNCTIONS
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.slow
@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_between_packages_go_one_way(package: str) -> None:
    wrong = [
        f"{relative(path)}:{found.line} imports {found.module}"
        for path in modules_of(package)
        for found in imports_of(tree_of(path), path.relative_to(ROOT).parent.parts)
        if found.module.split(".")[0] in FORBIDDEN[package]
    ]
    assert not wrong


def test_the_table_of_imports_has_no_cycle_and_names_every_sub_package() -> None:
    assert len(list(TopologicalSorter(MAY_IMPORT).static_order())) == len(MAY_IMPORT)
    there = {path.relative_to(ROOT / "lpzero").parts[0] for path in modules_of("lpzero")}
    assert {name.removesuffix(".py") for name in there} <= set(MAY_IMPORT)


def internal_imports() -> Iterator[tuple[Path, str, str, int]]:
    """File, its sub-package, the other sub-package of lpzero it imports, and the line."""
    for path in modules_of("lpzero"):
        inside = path.relative_to(ROOT / "lpzero")
        mine = inside.parts[0].removesuffix(".py")
        for found in imports_of(tree_of(path), path.relative_to(ROOT).parent.parts):
            top, *rest = found.module.split(".")
            if top == "lpzero" and rest and rest[0] != mine:
                yield path, mine, rest[0], found.line


@pytest.mark.slow
def test_imports_inside_lpzero_go_one_way() -> None:
    found = list(internal_imports())
    assert len(found) > 100
    offending = [
        (relative(path), other, line)
        for path, mine, other, line in found
        if other not in MAY_IMPORT[mine]
    ]
    new = [
        f"{file}:{line} imports lpzero.{other}"
        for file, other, line in offending
        if (file, other) not in KNOWN_IMPORTS
    ]
    assert not new
    solved = KNOWN_IMPORTS - {(file, other) for file, other, _ in offending}
    assert not solved, "no longer there: remove them from KNOWN_IMPORTS"


@pytest.mark.slow
def test_one_module_writes_files() -> None:
    found = {
        relative(path): [f"{relative(path)}:{line}: {call}" for line, call in calls]
        for package in ("lpzero", "spaces", "primitives")
        for path in modules_of(package)
        if (calls := list(writes_of(tree_of(path))))
    }
    new = [call for file in found.keys() - KNOWN_WRITERS - {WRITER} for call in found[file]]
    assert not sorted(new)
    assert not KNOWN_WRITERS - found.keys(), "no longer there: remove them from KNOWN_WRITERS"


@pytest.mark.slow
def test_code_of_the_user_is_run_only_where_the_user_names_it() -> None:
    found: dict[str, set[str]] = {}
    for path in (*modules_of("lpzero"), *modules_of("spaces"), *modules_of("primitives")):
        for node in ast.walk(tree_of(path)):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in _RUNNING:
                found.setdefault(relative(path), set()).add(name)
            if isinstance(node, ast.Call) and name in _SAFE:
                option, value = _SAFE[name]
                given = {key.arg: ast.unparse(key.value) for key in node.keywords}
                assert given.get(option) == str(value), f"{relative(path)}:{node.lineno}: {name}"
    assert found == RUNS_CODE


@pytest.mark.slow
def test_one_module_opens_what_may_be_a_strangers() -> None:
    found = {
        relative(path): calls
        for package in ("lpzero", "spaces", "primitives")
        for path in modules_of(package)
        if (calls := list(reads_of(tree_of(path))))
    }
    new = {file: found[file] for file in found.keys() - OWN_READERS.keys() - {OPENER}}
    assert not new
    assert not OWN_READERS.keys() - found.keys(), "no longer there: remove them from OWN_READERS"


@pytest.mark.slow
def test_one_function_replaces_the_home_folder() -> None:
    packages = ("lpzero", "spaces", "primitives", "experiments")
    found = [
        relative(path)
        for package in packages
        for path in modules_of(package)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and _name(node.func) in ("expanduser", "home")
    ]
    assert found == [OPENER]


@pytest.mark.parametrize(
    ("code", "is_read"),
    [
        ("open(path)", True),
        ("path.open('rb')", True),
        ("path.read_text()", True),
        ("(folder / name).read_bytes()", True),
        ("os.open(path, flags)", True),
        ("np.load(path)", True),
        ("torch.load(path)", True),
        ("read_json(path)", False),
        ("open_regular(path)", False),
        ("webbrowser.open(address)", False),
        ("file.read()", False),
    ],
)
def test_reading_calls_are_told_from_others(code: str, is_read: bool) -> None:
    assert bool(list(reads_of(ast.parse(code)))) == is_read


@pytest.mark.parametrize(
    ("code", "imported"),
    [
        ("import lpzero.search", ["lpzero.search"]),
        ("from lpzero import search, cli", ["lpzero.search", "lpzero.cli"]),
        ("from lpzero.search.x import y", ["lpzero.search.x.y"]),
        ("def f():\n    from lpzero.report import page", ["lpzero.report.page"]),
        ("from . import x", ["lpzero.runs.x"]),
        ("from ..search import x", ["lpzero.search.x"]),
        ("importlib.import_module('lpzero.report')", ["lpzero.report"]),
    ],
)
def test_imports_are_found_wherever_they_stand(code: str, imported: Iterable[str]) -> None:
    found = imports_of(ast.parse(code), ("lpzero", "runs"))
    assert [one.module for one in found] == imported


@pytest.mark.parametrize(
    ("code", "is_write"),
    [
        ("open(path, 'w')", True),
        ("open(path, mode='ab')", True),
        ("path.open('xb')", True),
        ("path.open('ab' if resumed else 'wb')", True),
        ("open(path, mode)", True),
        ("path.write_text(text)", True),
        ("path.write_bytes(data)", True),
        ("os.replace(a, b)", True),
        ("temporary.replace(path)", True),
        ("tempfile.mkstemp()", True),
        ("os.fdopen(handle, 'w')", True),
        ("open(path)", False),
        ("open(path, 'rb')", False),
        ("path.open()", False),
        ("tarfile.open(path, 'r:gz')", False),
        ("text.replace('a', 'b')", False),
        ("replace(settings, seed=1)", False),
        ("sys.stdout.write(text)", False),
    ],
)
def test_writing_calls_are_told_from_others(code: str, is_write: bool) -> None:
    assert bool(list(writes_of(ast.parse(code)))) == is_write


@pytest.mark.parametrize("kind", verbs.kinds().values(), ids=lambda kind: str(kind.name))
def test_the_functions_of_a_kind_of_run_are_there(kind: Kind) -> None:
    for address in (kind.read, kind.page, kind.follow, kind.line):
        assert callable(resolve_name(address))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: f"{p.parent.name}.{p.stem}")
def test_an_experiment_finds_what_it_imports(path: Path) -> None:
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def test_the_tests_mirror_the_packages() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in ROOT.glob("tests/*/**/*.py")}
    assert folders
    known = {folder for folder in folders if (ROOT / folder).is_dir()}
    assert {folder.parts[0] for folder in folders - known} == TOOLS


def test_the_page_of_commands_names_exactly_the_verbs_there_are() -> None:
    table = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = [line for line in table.splitlines() if line.startswith("| `lpzero")]
    assert set(re.findall(r"`lpzero ([a-z]+)", "\n".join(rows))) == set(verbs.commands())


def test_the_readme_is_a_screen_and_a_half() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_links_in_the_documentation_lead_somewhere() -> None:
    links = [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)[#)]", page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 20
    broken = [f"{p.relative_to(ROOT)}: {to}" for p, to in links if not (p.parent / to).exists()]
    assert not broken


def test_paths_named_in_the_documentation_exist() -> None:
    path = re.compile(r"`((?:docs|experiments|lpzero|primitives|spaces|tests)/[\w./-]+)`")
    named = [
        (page, found)
        for page in PAGES
        if page.name != "CHANGELOG.md"  # which speaks of earlier trees too
        for found in path.findall(page.read_text(encoding="utf-8"))
        if "NAME" not in found  # a place to fill in
    ]
    assert len(named) > 10
    assert not [f"{p.relative_to(ROOT)}: {to}" for p, to in named if not (ROOT / to).exists()]
