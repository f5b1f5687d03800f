"""Rules of the house that no other tool checks: import direction, a README that is true."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from lpzero.cli.main import VERBS

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "primitives": {"spaces", "lpzero", "experiments"},
    "spaces": {"primitives", "lpzero", "experiments"},
    "lpzero": {"experiments"},
}


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_go_one_way(package: str) -> None:
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in modules
        if (found := imported_packages(path) & FORBIDDEN[package])
    }
    assert not wrong


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("experiments/*/*.py")), ids=lambda p: f"{p.parent.name}.{p.stem}"
)
def test_an_experiment_finds_what_it_imports(path: Path) -> None:
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def test_the_readme_names_exactly_the_verbs_there_are() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## Commands")[1]
    rows = [line for line in table.split("## ")[0].splitlines() if line.startswith("| `lpzero")]
    assert set(re.findall(r"`lpzero ([a-z]+)", "\n".join(rows))) == set(VERBS)


def test_links_in_the_documentation_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("experiments/*/*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)[#)]", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken
