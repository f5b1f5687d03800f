"""What was searched, what was rejected and why, and how to reproduce the run."""

from __future__ import annotations

import json
import shlex
from typing import Any

from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, number, pairs, table
from lpzero.runs.formula_run import UPSTREAM, FormulaRun
from lpzero.runs.run import Run
from primitives.pruning import RULES

# Reasons of rejections by other than a pruning rule.
_OTHER_REASONS = {
    "constant-score": "every architecture has the same score",
    "non-finite": "the score of an architecture is not finite",
    "duplicate": "the same as another formula up to sign",
}


def searched(run: FormulaRun) -> Markup:
    """Tables, counts, the size of the space, settings."""
    counts: dict[str, Child] = {name: f"{n:,}" for name, n in run.counts.items()}
    counts["rejected"] = f"{sum(run.rejected.values()):,}"
    result = run.result or {}
    if "generations" in result:
        counts["generations"] = f"{result['generations']:,}"
    if result.get("stopped"):
        counts["stopped by"] = str(result["stopped"])
    return element(
        "div",
        _tables(run),
        element(
            "div",
            pairs("Formulas", {**counts, **_space(run)}),
            pairs("Settings", {key: _plain(value) for key, value in run.settings.items()}),
            class_="beside",
        ),
        element(
            "p",
            "Formulas whose scores are constant or not finite were evaluated and then rejected,"
            " so they count as both.",
            class_="note",
        ),
    )


def _tables(run: FormulaRun) -> Markup:
    header = ["table", "space", "target (larger is better)", "train", "valid", "test"]
    header += ["rows of the fitness", "noise ceiling", "licence"]
    rows = []
    for entry in run.tables:
        summary = run.summary(entry["name"])
        n = summary.get("n", {})
        cells: list[Child | Cell] = [entry["name"], entry["space"], entry["target"]]
        cells += [number(n.get(part)) for part in SPLIT_PARTS]
        cells += [number(summary.get("n_fitness", n.get("train"))), number(summary.get("ceiling"))]
        rows.append([*cells, summary.get("licence", NOTHING)])
    return table("Tables", [header], rows)


def _space(run: FormulaRun) -> dict[str, Child]:
    """The size of the space of formulas, if it can be counted."""
    size = run.space_size()
    if size is None:
        return {"the whole space": "not counted: it is not the paper's space"}
    return {
        "the whole space": f"{size.before:,} for each of sum and mean over blocks",
        "left after pruning": f"{size.kept:,} for each",
        "distinct up to sign": f"{size.distinct:,} for each",
    }


def rejections(run: FormulaRun) -> Markup:
    """A row per rule that rejected something, with its reason."""
    if not run.rejected:
        return element("p", "Nothing was rejected.")
    total = sum(run.rejected.values())
    rows: list[list[Child | Cell]] = []
    for name, count in sorted(run.rejected.items(), key=lambda item: (-item[1], item[0])):
        rule = RULES.get(name)
        reason = rule.reason if rule else _OTHER_REASONS.get(name, NOTHING)
        example = element("code", rule.example) if rule else NOTHING
        rows.append([name, number(count), number(100 * count / total, 1), reason, example])
    header = ["rule", "formulas", "%", "reason", "example"]
    return table("Rejected formulas by rule", [header], rows, sortable=True)


def versions(run: Run) -> dict[str, Child]:
    """The versions that the run was started with."""
    return {f"version of {name}": str(version) for name, version in run.config.versions.items()}


def provenance(run: FormulaRun) -> Markup:
    """Versions, seeds and digests that the numbers may depend on."""
    values = versions(run)
    if "seed" in run.settings:
        values["seed of the search"] = str(run.settings["seed"])
    values["configuration"] = element("code", run.config.hash)
    values["seed of the split"] = str(run.request["split_seed"])
    sketch = run.request["sketch"]
    values["statistics"] = ", ".join(f"{key} {value}" for key, value in sketch.items())
    for entry in run.tables:
        values[f"digest of {entry['name']}"] = element("code", str(entry["digest"]))
        ceiling = run.summary(entry["name"]).get("ceiling")
        values[f"noise ceiling of {entry['name']}"] = (
            "unknown: no architecture was trained twice"
            if ceiling is None
            else f"{ceiling:.3f} (rho between independent trainings)"
        )
    return pairs("What the numbers depend on", values)


def reproduce(run: Run) -> Markup:
    """The command lines that reproduce the run and this report, ready to be copied."""
    lines = commands(run)
    block = element("pre", element("code", "\n".join(lines)), tabindex=0)
    if run.command is not None:
        return block
    reason = "The command is not known: the run was started by Python code or an earlier version."
    return element("div", element("p", reason, class_="note"), block)


def commands(run: Run) -> list[str]:
    """The command lines that reproduce the run and this report."""
    where = shlex.quote(str(run.folder))
    lines = [] if run.command is None else [shlex.join(run.command)]
    lines.append(f"lpzero report {where}")
    if isinstance(run, FormulaRun) and run.best is not None:
        formula = shlex.quote(run.best["formula"])
        lines.append(f"lpzero export {where} --to python")
        lines += [
            f"lpzero rank {shlex.quote(table['name'])} --proxy {formula}"
            + (f" --space {table['space']}" if table["space"] == UPSTREAM else "")
            for table in run.tables
        ]
    return lines


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return NOTHING if value is None else value if isinstance(value, str) else json.dumps(value)
