"""The levels of `--choose nested`: the cross-validated rho of each, and which was taken."""

from __future__ import annotations

from collections.abc import Iterator

from lpzero.report.chart import Axis, Chart, Level, Line, Panel, Points
from lpzero.report.figures import HOLDS, FigureKind, Material

_WORDS = {
    "counter": "the best counter",
    "size": "the best size or counter",
    "count": "up to four sizes",
    "stable": "up to four stable terms",
    "reliable": "up to four reliable terms",
}
_SHOWN = (("taken", 0, True), ("other levels", 6, False))


def _charts(material: Material) -> Iterator[Chart]:
    result = material.run.result or {}
    levels, learning = result.get("levels"), result.get("learning")
    if levels:
        lines, chosen = levels["lines"], str(levels["chosen"])
        names = [_WORDS.get(str(line["level"]), str(line["level"])) for line in lines]
        taken = [line["level"] == chosen for line in lines]
        rhos = [float(line["rho"]) for line in lines]
        errors = [float(line["error"]) for line in lines]
        yield Chart(
            name="levels",
            caption="How much of the networks to read: the rho of the whole search of each level on"
            " rows that it was not fitted to (five folds of train and valid), with one standard"
            " error. The simplest level within a paired standard error of the best was taken.",
            words="Chart of cross-validated rho: "
            + "; ".join(f"{name} {rho:.3f}" for name, rho in zip(names, rhos, strict=True))
            + ".",
            panels=[
                Panel(
                    series=[
                        Points(
                            x=[rhos[i] for i in places],
                            y=places,
                            hover=[
                                f"{names[i]}\nρ {rhos[i]:.3f} ± {errors[i]:.3f}" for i in places
                            ],
                            name=name,
                            colour=colour,
                            is_large=is_taken,
                            intervals=[(rhos[i] - errors[i], rhos[i] + errors[i]) for i in places],
                        )
                        for name, colour, is_taken in (
                            ("taken", 0, True),
                            ("other levels", 6, False),
                        )
                        if (places := [i for i, of in enumerate(taken) if of is is_taken])
                    ],
                    x=Axis(title="cross-validated ρ ± standard error"),
                    y=Axis(names=names),
                    levels=[Level(rhos[taken.index(True)], is_vertical=True)],
                )
            ],
        )
    if learning:
        points = learning["points"]
        yield Chart(
            name="learning-curve",
            caption="How many trained architectures are enough: the rule of choosing with fewer"
            f" rows, tested on the same test rows. {learning['sentence']}",
            words="Learning curve: "
            + "; ".join(f"{point['n']} rows {point['rho']:.3f}" for point in points)
            + ".",
            panels=[
                Panel(
                    series=[
                        Line(
                            x=[int(point["n"]) for point in points],
                            y=[float(point["rho"]) for point in points],
                            hover="winner of the rule",
                            name="winner of the rule",
                        )
                    ],
                    x=Axis(title="training and validation rows", is_logarithmic=True),
                    y=Axis(title="ρ on the test rows"),
                )
            ],
        )


FIGURE = FigureKind(25, HOLDS, _charts)
