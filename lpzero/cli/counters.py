"""`lpzero counters TABLE`: how well sizes alone rank a table."""

from __future__ import annotations

from typing import Any

import click

from lpzero.cli import output


@click.command()
@click.argument("table")
@output.file_options
@output.format_option
@output.data_option
def counters(**given: Any) -> None:
    """Correlate counters (parameters, depth, ...) with the targets of TABLE."""
    from lpzero.judgement.table import ALL, TableJudge

    loaded = output.load_table(given)
    lines = TableJudge(loaded).counters()
    rows = [
        {"proxy": line["proxy"], **output.judged_columns(line["judged"][ALL])} for line in lines
    ]
    ceiling = "" if loaded.ceiling is None else f", noise ceiling {loaded.ceiling:.3f}"
    title = f"{loaded.name}: {loaded.target}, space {loaded.space.name}{ceiling}"
    output.print_rows(rows, given["form"], title=title)
