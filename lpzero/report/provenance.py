"""What was searched, what was thrown out and why, and how to have it all again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from lpzero.discover.settings import PRESETS
from lpzero.report.formula_run import CAMPAIGN, FormulaRun, result_of
from lpzero.report.markup import Child, Markup, element
from lpzero.report.tables import NOTHING, Cell, number, pairs, table
from primitives.pruning import DEFAULT_RULES, RULES
from primitives.sizes import measure
from primitives.statistics import STATISTICS, gradient_statistics

# Reasons of those that no pruning rule names.
_OTHER_REASONS = {
    "constant-score": "every architecture has the same score",
    "non-finite": "the score of an architecture is not finite",
    "duplicate": "the same as another formula up to sign",
}
# Settings that are options of `lpzero discover`, where the names differ.
_OPTIONS = {"objectives": "--objective", "start": "--start"}
_UPSTREAM = "flexibert-upstream"


def searched(run: FormulaRun) -> Markup:
    """Tables, counts, the size of the space, settings."""
    counts: dict[str, Child] = {name: f"{n:,}" for name, n in run.counts.items()}
    counts["rejected"] = f"{sum(run.rejected.values()):,}"
    if run.result is not None and run.kind == CAMPAIGN:
        counts["generations"] = f"{run.result['generations']:,}"
        if run.result.get("stopped"):
            counts["stopped by"] = str(run.result["stopped"])
    return element(
        "div",
        _tables(run),
        element(
            "div",
            pairs("Formulas", {**counts, **_space(run)}),
            pairs("Settings", {key: _plain(value) for key, value in _settings(run).items()}),
            class_="beside",
        ),
        element(
            "p",
            "Formulas whose scores came out constant or not finite were evaluated and rejected,"
            " and count as both.",
            class_="note",
        ),
    )


def _tables(run: FormulaRun) -> Markup:
    header = ["table", "space", "target (larger is better)", "train", "valid", "test",
              "rows of the fitness", "noise ceiling", "licence"]  # fmt: skip
    rows = []
    for entry in run.tables:
        found = result_of(run, str(entry["name"]))
        n = found.get("n", {})
        cells: list[Child | Cell] = [entry["name"], entry["space"], entry["target"]]
        cells += [number(n.get(part)) for part in ("train", "valid", "test")]
        cells += [number(found.get("n_fitness", n.get("train"))), number(found.get("ceiling"))]
        rows.append([*cells, found.get("licence", NOTHING)])
    return table("Tables", [header], rows)


def _settings(run: FormulaRun) -> Mapping[str, Any]:
    if run.kind == CAMPAIGN:
        found: Mapping[str, Any] = run.config["settings"]
        return found
    return {key: run.config.get(key) for key in ("unaries", "same_statistic", "split_seed")}


def _space(run: FormulaRun) -> dict[str, Child]:
    """The size of the space of formulas, where it can be counted."""
    asked = _settings(run)
    is_papers = run.kind != CAMPAIGN or (
        asked["depth"] == 1 and set(asked["statistics"]) == set(STATISTICS)
    )
    if not is_papers or asked["unaries"] not in (1, 2):
        return {"the whole space": "not counted: larger than, or other than, the paper's"}
    rules = frozenset(asked["rules"]) if run.kind == CAMPAIGN else DEFAULT_RULES
    size = measure(asked["unaries"], bool(asked["same_statistic"]), rules)
    return {
        "the whole space": f"{size.before:,} for each of sum and mean over blocks",
        "left by the rules": f"{size.kept:,} for each",
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


def provenance(run: FormulaRun) -> Markup:
    """Versions, seeds and digests: what the numbers may depend on."""
    config = run.config
    versions = config.get("versions") or {"lpzero": config.get("version")}
    values: dict[str, Child] = {f"version of {name}": str(v) for name, v in versions.items()}
    if run.kind == CAMPAIGN:
        values["seed of the search"] = str(config["settings"]["seed"])
        values["configuration"] = element("code", str(config["hash"]))
    values["seed of the split"] = str(config.get("split_seed"))
    sketch = config.get("sketch") or {}
    values["statistics"] = ", ".join(f"{key} {value}" for key, value in sketch.items())
    for entry in run.tables:
        values[f"digest of {entry['name']}"] = element("code", str(entry["digest"]))
        ceiling = result_of(run, str(entry["name"])).get("ceiling")
        values[f"noise ceiling of {entry['name']}"] = (
            "not known: no architecture was trained twice"
            if ceiling is None
            else f"{ceiling:.3f} (rho between independent trainings)"
        )
    return pairs("What the numbers depend on", values)


def commands(run: FormulaRun) -> list[str]:
    """The command lines that make the run and this report again."""
    where = shlex.quote(str(run.folder))
    first = _discover(run) if run.kind == CAMPAIGN else _exhaust(run)
    lines = [f"{first} --out {where}", f"lpzero report {where}"]
    if run.result is not None and run.result.get("best"):
        formula = shlex.quote(run.result["best"]["formula"])
        lines.append(f"lpzero export {where} --to python")
        lines += [
            f"lpzero rank {shlex.quote(str(table['name']))} --proxy {formula}"
            + (f" --space {_UPSTREAM}" if table["space"] == _UPSTREAM else "")
            for table in run.tables
        ]
    return lines


def _exhaust(run: FormulaRun) -> str:
    words = ["lpzero", "exhaust", str(run.config["table"]), "--unaries", str(run.config["unaries"])]
    if run.config.get("same_statistic"):
        words.append("--same-statistic")
    if run.config.get("split_seed"):
        words += ["--split-seed", str(run.config["split_seed"])]
    if run.config["space"] == _UPSTREAM:
        words.append("--upstream-dims")
    return shlex.join(words)


def _discover(run: FormulaRun) -> str:
    settings = run.config["settings"]
    preset = "paper" if settings["method"] == "paper" else "default"
    words = ["lpzero", "discover", *(str(table["name"]) for table in run.tables)]
    words += ["--preset", preset]
    usual = PRESETS[preset].to_json()
    for key, value in settings.items():
        if value != usual.get(key):
            words += _option(key, value)
    if run.config.get("split_seed"):
        words += ["--split-seed", str(run.config["split_seed"])]
    if any(table["space"] == _UPSTREAM for table in run.tables):
        words.append("--upstream-dims")
    return shlex.join(words)


def _option(key: str, value: Any) -> list[str]:
    if key == "method":
        return ["--random"] if value == "random" else []
    if key == "same_statistic":
        return ["--same-statistic"]
    if key == "rules":
        return ["--rules", "on" if value else "off"]
    if key == "statistics":
        is_forward = set(value) == set(STATISTICS) - gradient_statistics()
        return ["--forward-only"] if is_forward else ["--statistics", "".join(value)]
    if key == "start":
        return [word for formula in value for word in ("--start", formula)]
    if key in ("pool", "neighbours", "immigrants"):
        return []  # set from Python only; the settings above show them
    shown = ",".join(value) if isinstance(value, list) else str(value)
    return [_OPTIONS.get(key, f"--{key}"), shown]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return NOTHING if value is None else value if isinstance(value, str) else json.dumps(value)
