"""The figures and tables of T-Razor, drawn from what was measured of every network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.reproduction import markdown
from experiments.resumable import KEY, Row
from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import kendall_many
from lpzero.judgement.ranks import rank
from lpzero.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spaces.tables import Table

# Kendall's tau as printed: section III for the parts of Figure 2, Table X for none of these rows.
PRINTED = {"diversity": 0.65, "MLP saliency": 0.47, "MSA saliency": 0.24, "both saliencies": 0.41}


@dataclass(frozen=True, eq=False)
class Measured:
    """Tables by family, the supernet's accuracies of the same rows, and the rows of every pass."""

    tables: Mapping[str, Table]
    supernet: Table
    few: Table
    plain: Mapping[str, list[Row]]
    initialised: list[Row]
    varied: list[Row]
    pruned: Mapping[str, list[Row]]


def write_all(measured: Measured, scores: Mapping[str, FloatArray], out: Path) -> str:
    """Write figures and their data to OUT; the tables as Markdown."""
    accuracies = {
        table.name: dict(zip(table.ids, table.targets.tolist(), strict=True))
        for table in (*measured.tables.values(), measured.supernet)
    }
    plain = {
        family: indicators(measured.plain[family], accuracies[table.name])
        for family, table in measured.tables.items()
    }
    sections = {
        f"Figure 2 (a), {family}, n = {len(found['accuracy'])}: Kendall's tau": taus(found)
        for family, found in plain.items()
    }
    name = measured.tables["autoformer"].name
    for title, key, rows in (
        ("Figure 6", "initialisation", measured.initialised),
        ("Figure 7 (a)", "input", [row for row in measured.varied if "input" in row]),
        ("Figure 7 (b)", "loss", [row for row in measured.varied if "loss" in row]),
    ):
        sections[f"{title}, n = {len(measured.few)}: Kendall's tau"] = by_variant(
            rows, key, accuracies[name]
        )
    sampled = sample_sizes(measured, plain["autoformer"])
    sections[f"Figure 5, {measured.supernet.name}: expected accuracy"] = [
        row for row in sampled if row["samples"] in (1, 2, 5, 10, 20, 30, 50, 100)
    ]
    sections[f"Table XI, {name}, n = {len(measured.tables['autoformer'])}"] = chosen(
        measured,
        {**scores, "DSS": plain["autoformer"]["DSS"], "DSS++": plain["autoformer"]["DSS++"]},
    )
    pruning = pruning_rows(measured.pruned)
    sections["Figure 2 (b), (c): change of the logits, means over 5 networks"] = pruning
    for drawn_name, figure in (
        ("figure2", figure_2(plain["autoformer"], pruning)),
        ("figure4", figure_4(plain)),
        ("figure5", figure_5(sampled, measured.supernet.name)),
        ("figure6", bars(list(sections.values())[2], "initialisation")),
        ("figure7", bars([*list(sections.values())[3], *list(sections.values())[4]], "variant")),
    ):
        for form in ("pdf", "png"):
            style.save(figure, out / f"{drawn_name}.{form}")
    text = "".join(
        f"## {title}\n\n{markdown(rows, list(rows[0]))}\n" for title, rows in sections.items()
    )
    files.write_text(out / "tables.md", text)
    files.write_json(out / "tables.json", sections)
    files.write_csv(out / "figure5.csv", sampled)
    return text


def indicators(rows: Sequence[Row], accuracy: Mapping[str, float]) -> dict[str, FloatArray]:
    """The indicators (n,) of the rows, and the accuracies."""
    columns = {
        key: np.array([row[key] for row in rows]) for key in rows[0] if _is_number(rows, key)
    }
    diversity, saliency = columns["msa_diversity"], columns["mlp_saliency"]
    return {
        "diversity": diversity,
        "MLP saliency": saliency,
        "MSA saliency": columns["msa_saliency"],
        "both saliencies": columns["msa_saliency"] + saliency,
        "nuclear norm of weights": columns["msa_weight"],
        "nuclear norm of gradients": columns["msa_gradient"],
        "DSS": diversity + saliency,
        "DSS++": rank(diversity) + rank(saliency),
        **{key: columns[key] for key in ("snip", "activation-distance") if key in columns},
        "accuracy": np.array([accuracy[row[KEY]] for row in rows]),
    }


def _is_number(rows: Sequence[Row], key: str) -> bool:
    return isinstance(rows[0][key], float)


def tau(scores: FloatArray, accuracy: FloatArray) -> float:
    return float(kendall_many(scores[np.newaxis], accuracy).values[0])


def taus(found: Mapping[str, FloatArray]) -> list[Row]:
    """Tau of every indicator beside the printed one."""
    return [
        {"indicator": name, "printed": PRINTED.get(name), "tau": tau(scores, found["accuracy"])}
        for name, scores in found.items()
        if name != "accuracy"
    ]


def by_variant(rows: Sequence[Row], key: str, accuracy: Mapping[str, float]) -> list[Row]:
    """Tau of DSS, DSS++ and their parts for every variant."""
    wanted = ("DSS++", "DSS", "diversity", "MLP saliency", "snip", "activation-distance")
    table = []
    for variant in dict.fromkeys(row[key] for row in rows):
        found = indicators([row for row in rows if row[key] == variant], accuracy)
        values = {name: tau(found[name], found["accuracy"]) for name in wanted if name in found}
        table.append({key: variant, **values})
    return table


def sample_sizes(measured: Measured, found: Mapping[str, FloatArray]) -> list[Row]:
    """The expected accuracy of the best by proxy among n architectures drawn at random.

    The k-th best by proxy (from 0) of N is the best of n draws with probability
    C(N - 1 - k, n - 1) / C(N, n). Ranks of DSS++ are those among all N.
    """
    supernet = measured.supernet
    by_id = dict(zip(supernet.ids, supernet.targets.tolist(), strict=True))
    accuracy = np.array([by_id[name] for name in measured.tables["autoformer"].ids])
    N = len(accuracy)
    rows = []
    for n in range(1, N + 1):
        odds = np.array([comb(N - 1 - k, n - 1) / comb(N, n) for k in range(N)])
        row: Row = {"samples": n}
        for name in ("DSS", "DSS++"):
            row[name] = float(odds @ accuracy[np.argsort(-found[name], kind="stable")])
        row["best possible"] = float(odds @ np.sort(accuracy)[::-1])
        rows.append(row)
    return rows


def chosen(measured: Measured, scores: Mapping[str, FloatArray]) -> list[Row]:
    """What each proxy prefers among the rows: its size, its accuracies and its place."""
    table, supernet = measured.tables["autoformer"], measured.supernet
    by_id = dict(zip(supernet.ids, supernet.targets.tolist(), strict=True))
    found = []
    for name, values in scores.items():
        best = int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
        arch = table.archs[best]
        found.append(
            {
                "proxy": name,
                "parameters (M)": table.space.parameters(arch) / 1e6,
                "multiply-adds (G)": table.space.multiply_adds(arch) / 1e9,  # type: ignore[attr-defined]
                table.name: float(table.targets[best]),
                "place": int((table.targets > table.targets[best]).sum()) + 1,
                supernet.name: by_id[table.ids[best]],
                "place there": int((supernet.targets > by_id[table.ids[best]]).sum()) + 1,
            }
        )
    return found


def pruning_rows(pruned: Mapping[str, Sequence[Row]]) -> list[Row]:
    """By share of zeroed weights the mean change of each family and part."""
    shares = sorted({row["share"] for rows in pruned.values() for row in rows})
    return [
        {
            "share": share,
            **{
                f"{family} {'MSA' if part == 'attention' else 'MLP'}": float(
                    np.mean([r["change"] for r in rows if (r["part"], r["share"]) == (part, share)])
                )
                for family, rows in pruned.items()
                for part in ("attention", "feed-forward")
            },
        }
        for share in shares
    ]


def figure_2(found: Mapping[str, FloatArray], pruning: Sequence[Row]) -> Figure:
    """Diversity and saliency against accuracy; the pruning of both parts."""
    with style.look():
        figure = style.new(10.0, 3.4)
        axes = figure.subplots(1, 3)
        for index, name in enumerate(("diversity", "MLP saliency")):
            axes[0].plot(
                found[name], found["accuracy"], style.MARKERS[index], color=style.COLOURS[index],
                markersize=4, label=f"{name}, τ = {tau(found[name], found['accuracy']):.2f}",
            )  # fmt: skip
        axes[0].set(xscale="log", xlabel="score", ylabel="accuracy", title="(a) AutoFormer")
        for panel, family, title in ((1, "autoformer", "(b) AutoFormer"), (2, "pit", "(c) PiT")):
            for index, part in enumerate(("MSA", "MLP")):
                axes[panel].plot(
                    [row["share"] for row in pruning],
                    [row[f"{family} {part}"] for row in pruning],
                    color=style.COLOURS[index], marker=style.MARKERS[index], label=part,
                )  # fmt: skip
            axes[panel].set(xlabel="share of weights zeroed", title=title)
            axes[panel].set_ylabel("relative change of the logits")
        for panel_axes in axes:
            panel_axes.legend(fontsize=8)
    return figure


def figure_4(plain: Mapping[str, Mapping[str, FloatArray]]) -> Figure:
    """The place by DSS and by DSS++ against the place by accuracy, a row per family."""
    with style.look():
        figure = style.new(8.0, 6.5)
        axes = figure.subplots(len(plain), 2, squeeze=False)
        for line, (family, found) in enumerate(plain.items()):
            for column, name in enumerate(("DSS", "DSS++")):
                panel = axes[line][column]
                panel.plot(
                    rank(found[name]), rank(found["accuracy"]), "o", markersize=4,
                    color=style.COLOURS[column],
                )  # fmt: skip
                found_tau = tau(found[name], found["accuracy"])
                panel.set(
                    xlabel=f"rank by {name}", ylabel="rank by accuracy",
                    title=f"{family}, {name}, τ = {found_tau:.2f}",
                )  # fmt: skip
    return figure


def figure_5(rows: Sequence[Row], table: str) -> Figure:
    """The expected accuracy against the number of samples."""
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        for index, name in enumerate(("DSS", "DSS++", "best possible")):
            axes.plot(
                [row["samples"] for row in rows], [row[name] for row in rows],
                color=style.COLOURS[index], linestyle=style.DASHES[index], label=name,
            )  # fmt: skip
        axes.set(xlabel="architectures drawn", ylabel="expected accuracy of the best by proxy")
        axes.set_title(table)
        axes.legend()
    return figure


def bars(rows: Sequence[Row], kind: str) -> Figure:
    """Tau of every indicator, grouped by variant."""
    names = [str(next(iter(row.values()))) for row in rows]
    indicators_of = [key for key in rows[0] if isinstance(rows[0][key], float)]
    with style.look():
        figure = style.new(8.5, 3.6)
        axes = figure.subplots()
        places, width = np.arange(len(rows)), 0.8 / len(indicators_of)
        for index, indicator in enumerate(indicators_of):
            values: list[Any] = [row[indicator] for row in rows]
            axes.bar(
                places + (index - (len(indicators_of) - 1) / 2) * width, values, width,
                color=style.COLOURS[index], label=indicator,
            )  # fmt: skip
        axes.set_xticks(places, names, rotation=20, ha="right", fontsize=8)
        axes.axhline(0.0, color=style.GREY, linewidth=0.8)
        axes.set(ylabel="Kendall's τ with accuracy", xlabel=kind)
        axes.legend(fontsize=7, ncols=3)
    return figure
