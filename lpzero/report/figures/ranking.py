"""The rho of every proxy of a ranking with its interval, beside that of parameters alone.

From the rows of `lpzero rank TABLE --format json`, or of anything that has been judged: what
Figure 1 of LPZero shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.report.chart import Axis, Chart, Level, Panel, Points
from lpzero.report.figures import FOUND, FigureKind, Material


@dataclass(frozen=True, slots=True)
class RankedProxy:
    """A proxy's rho with its 95% interval."""

    proxy: str
    rho: float
    interval: tuple[float, float]
    is_counter: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Proxies, best first."""

    proxies: tuple[RankedProxy, ...]

    @property
    def parameters(self) -> float | None:
        """Rho of the number of parameters, if it is among the proxies."""
        return next((entry.rho for entry in self.proxies if entry.proxy == "parameters"), None)


def ranking(rows: Iterable[Mapping[str, Any]]) -> Ranking:
    """The data of the figure from rows with `proxy`, `rho` and `rho_ci`."""
    try:
        proxies = [_proxy(row) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "expected rows with 'proxy', 'rho' and 'rho_ci', as `lpzero rank --format json` gives"
        ) from None
    if not proxies:
        raise InputError("no proxy has a rho to draw")
    return Ranking(tuple(sorted(proxies, key=lambda entry: (-entry.rho, entry.proxy))))


def chart(data: Ranking, caption: str) -> Chart:
    """A row per proxy, the best on top: a dot with its interval."""
    series = []
    for is_counter, name in ((False, "proxies"), (True, "counters")):
        places = [i for i, entry in enumerate(data.proxies) if entry.is_counter is is_counter]
        proxies = [data.proxies[i] for i in places]
        if proxies:
            series.append(
                Points(
                    x=[entry.rho for entry in proxies],
                    y=places,
                    hover=[
                        "{}\nρ {:.3f} [{:.3f}, {:.3f}]".format(
                            entry.proxy, entry.rho, *entry.interval
                        )
                        for entry in proxies
                    ],
                    name=name,
                    colour=int(is_counter),
                    intervals=[entry.interval for entry in proxies],
                )
            )
    title, levels = "Spearman's ρ with the target, 95% interval", []
    if data.parameters is not None:
        title += f"; dashed: parameters, {data.parameters:.3f}"
        levels = [Level(data.parameters, is_vertical=True)]
    names = [entry.proxy for entry in data.proxies]
    values = "; ".join(f"{entry.proxy} {entry.rho:.3f}" for entry in data.proxies[:12])
    return Chart(
        name="proxies",
        caption=caption,
        words=f"Chart of rho: {values}.",
        panels=[Panel(series=series, x=Axis(title=title), y=Axis(names=names), levels=levels)],
    )


def _proxy(row: Mapping[str, Any]) -> RankedProxy:
    low, high = row["rho_ci"]
    is_counter = row["proxy"] in {counters.BEST_COUNT, *counters.names()}
    return RankedProxy(str(row["proxy"]), float(row["rho"]), (float(low), float(high)), is_counter)


def _charts(material: Material) -> Iterator[Chart]:
    if material.ranking is not None:
        caption = "Every proxy of the given ranking on the whole table."
        yield chart(ranking(material.ranking), caption)


FIGURE = FigureKind(30, FOUND, _charts)
