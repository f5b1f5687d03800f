"""The verdict of a result in a terminal: a short sentence, then its facts in rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from lpzero.cli.output import cell, print_rows

Fields = Mapping[str, Any]


def print_verdict(result: Fields) -> None:
    """Write the best count of a result, if it has one, and its verdict to stdout."""
    count = result["count"]
    if count is not None:
        by_table = count.get("formula_by_table", {"": count["formula"]})
        for table, formula in by_table.items():
            click.echo(f"best count{f' on {table}' if table else ''}: {formula}")
        click.echo()
    if result["best"] is None:
        return
    names = [table["name"] for table in result["tables"]]
    for name in names:
        click.echo((f"{name}: " if len(names) > 1 else "") + _headline(result, name))
    print_rows([_against(line, len(names) > 1) for line in result["differences"]], "table")
    click.echo()
    rows = [
        {**({"table": name} if len(names) > 1 else {}), "fact": fact, "value": value}
        for name in names
        for fact, value in _facts(result, name)
    ]
    print_rows(rows, "table")
    click.echo()


def _headline(result: Fields, table: str) -> str:
    from lpzero.judgement.verdict import headline

    first = next(line for line in result["differences"] if line["table"] == table)
    test = result["best"]["judged"][table]["test"]
    return headline(test, first["against"], first["outcome"], first["is_column"])


def _against(line: Fields, with_table: bool) -> dict[str, Any]:
    from lpzero.judgement.verdict import rival_name

    return {
        **({"table": line["table"]} if with_table else {}),
        "against": rival_name(line["against"], line["is_column"]),
        "n": line["n"],
        "difference": line["rho"],
        "difference ci": line["rho_ci"],
        "draws above 0": f"{line['share_above']:.0%}",
        "outcome": line["outcome"],
    }


def _facts(result: Fields, table: str) -> Iterator[tuple[str, str]]:
    from lpzero.judgement.verdict import within_claim

    test = result["best"]["judged"][table]["test"]
    within, n = test["rho_within"], test["n_within"]
    yield (
        "rho within groups of equal depth and width on test",
        "no group is large enough"
        if within is None
        else f"{cell(within)} on {n} rows: {within_claim(within, n)}",
    )
    found = result["stability"]
    if found is not None and found["table"] == table:
        yield (
            f"rank correlation with scores of other weights and batches (n = {found['n']})",
            f"median {found['median']:.4f}, least {found['least']:.4f}",
        )
    for floor in result["floor"]:
        if floor["table"] == table:
            yield (
                f"the search on permuted targets ({floor['permutations']} times)",
                f"fits {cell(floor['fit'])} {cell(floor['fit_ci'])},"
                f" tests at {cell(floor['test'])} {cell(floor['test_ci'])}",
            )
