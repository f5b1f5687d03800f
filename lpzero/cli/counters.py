"""`lpzero counters TABLE`: how well sizes alone rank a table."""

from __future__ import annotations

import click

from lpzero.cli.output import (
    data_option,
    format_option,
    judged_columns,
    print_rows,
    space_option,
)


@click.command()
@click.argument("table")
@space_option
@format_option
@data_option
def counters(table: str, space: str | None, form: str, data: str | None) -> None:
    """Correlate counters (parameters, depth, ...) with the targets of TABLE."""
    from lpzero.judgement.table import ALL, JudgedTable
    from spaces.tables import load

    loaded = load(table, data, space)
    lines = JudgedTable(loaded).counters()
    rows = [{"proxy": line["proxy"], **judged_columns(line["judged"][ALL])} for line in lines]
    ceiling = "" if loaded.ceiling is None else f", noise ceiling {loaded.ceiling:.3f}"
    title = f"{loaded.name}: {loaded.target}, space {loaded.space.name}{ceiling}"
    print_rows(rows, form, title=title)
