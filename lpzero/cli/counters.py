"""`lpzero counters TABLE`: how well sizes alone rank a table."""

from __future__ import annotations

import click

from lpzero.cli.output import data_option, format_option, print_rows, seed_option


@click.command()
@click.argument("table")
@click.option("--space", help="Build and count in this space instead of the table's own.")
@format_option
@seed_option
@data_option
def counters(table: str, space: str | None, form: str, seed: int, data: str | None) -> None:
    """Correlate sizes (parameters, depth, ...) with the targets of TABLE."""
    from lpzero.judgement import counters as all_counters
    from lpzero.judgement.judgement import judge
    from spaces.tables import load

    loaded = load(table, data, space)
    parameters = all_counters.score("parameters", loaded)
    groups = loaded.groups("depth-width")
    rows = []
    for name in all_counters.names():
        scores = all_counters.score(name, loaded)
        judged = judge(scores, loaded.targets, parameters=parameters, groups=groups, seed=seed)
        fields = judged.to_json()
        shown = ("n", "rho", "rho_ci", "tau", "tau_ci", "rho_given_params", "rho_within")
        rows.append({"proxy": name} | {key: fields[key] for key in (*shown, "top_precision")})
    ceiling = "" if loaded.ceiling is None else f", noise ceiling {loaded.ceiling:.3f}"
    title = f"{loaded.name}: {loaded.target}, space {loaded.space.name}{ceiling}"
    print_rows(rows, form, title=title)
