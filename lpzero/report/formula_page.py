"""The page of a campaign or an exhaustive run: five questions, each a section."""

from __future__ import annotations

from lpzero.report import hall_of_fame, provenance, verdict
from lpzero.report.figure_list import figures
from lpzero.report.figures.drawn import FOUND, HOLDS, OTHERS, SEARCHED, Drawn, Material
from lpzero.report.markup import Markup, element
from lpzero.report.page import commands
from lpzero.report.sections import Content, Section
from lpzero.runs.formula_run import FormulaRun


def content(material: Material) -> Content:
    """What the page says; equal runs give equal content."""
    run = material.run
    names = ", ".join(str(table["name"]) for table in run.tables)
    drawn = {name: list(figures(material, name)) for name in (FOUND, HOLDS, OTHERS, SEARCHED)}
    return Content(
        f"{names}: {run.kind}",
        run.remarks,
        [
            Section(
                FOUND,
                "Did it find something?",
                [verdict.summary(run), *drawn[FOUND], verdict.section(run)],
                "Result",
            ),
            Section(HOLDS, "Does it hold?", [*_holds(run, drawn[HOLDS])], "Holds?"),
            Section(
                OTHERS, "What else?", [*drawn[OTHERS], hall_of_fame.section(run)], "Hall of fame"
            ),
            Section(
                SEARCHED,
                "How was it searched?",
                [*drawn[SEARCHED], provenance.rejections(run), provenance.searched(run)],
                "Search",
            ),
            Section(
                "reproduce",
                "Reproduce",
                [commands(provenance.commands(run)), provenance.provenance(run)],
            ),
        ],
    )


def _holds(run: FormulaRun, drawn: list[Drawn]) -> list[Markup | Drawn]:
    if run.result is None:
        return [element("p", "Nothing was tested yet: the test rows are read at the end.")]
    if run.scores is None:
        missing = (
            "Score against target is not drawn: the directory has no scores.json. Run the same"
            " command again (a campaign with --resume) to write it."
        )
        return [element("p", missing), *drawn]
    return [*drawn]
