"""counters: Correlate counters (sizes) with the targets of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lpzero.options import argument, group
from lpzero.verbs import Outcome, Screen, groups

EXAMPLES = (
    "lpzero counters nano-gpt2",
    "lpzero counters my.csv --target accuracy --space my_space.py:SPACE",
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Correlate counters (parameters, depth, ...) with the targets of TABLE."""

    table: Any = argument("TABLE")
    within: str = groups.within()
    file: groups.TableFile = group(groups.TableFile)
    where: groups.Data = group(groups.Data)


def run(request: Request, screen: Screen) -> Outcome:
    """A row per counter."""
    from lpzero.judgement.table import ALL, TableJudge

    table = request.file.load_networks(request.table, request.where.tables_folder)
    lines = TableJudge(table, within=request.within).counters()
    rows = [{"proxy": line["proxy"], **judged_columns(line["judged"][ALL])} for line in lines]
    ceiling = "" if table.ceiling is None else f", noise ceiling {table.ceiling:.3f}"
    title = f"{table.name}: {table.target}, space {table.space.name}{ceiling}"
    return Outcome(rows, {"title": title})


def judged_columns(judged: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a judgement that are shown in rows, the most important first."""
    shown = ("n", "rho", "rho_ci", "tau", "rho_given_params", "top_precision", "rho_within")
    return {key: judged[key] for key in (*shown, "pairs_within", "rho_untied", "tau_ci")}
