"""Bugs in what users see: exports, reports, results and the command line."""
# ruff: noqa: E501  # a replacement is easier to compare on one line

from __future__ import annotations

from tests.mutants.bugs import Bugs

_T = "tests/lpzero/"
_REPORT = [_T + "report/test_numbers.py", _T + "report/test_report.py"]
_EXPORT = [
    _T + "export/test_numbers.py",
    _T + "export/test_latex.py",
    _T + "cli/test_export.py",
    _T + "export/test_round_trip.py",
]

BUGS = (
    Bugs("lpzero/export/latex_form.py", _EXPORT, [
        ("train, valid, test = (_number(figures.rho.get(part)) for part in SPLIT_PARTS)\n    given", "train, valid, test = (_number(figures.rho.get(part)) for part in (\"train\", \"valid\", \"train\"))\n    given", "LaTeX printing train for test"),
        ("given = figures.rho_given_params.get(\"test\")", "given = figures.rho_given_params.get(\"train\")", "rho given parameters of train"),
        ("figures.rho_ci.get(\"test\")", "figures.rho_ci.get(\"train\")", "the interval of train"),
        ("given = None if line.name == \"parameters\" else line.rho_given_params", "given = line.rho_given_params", "parameters given parameters are printed"),
    ]),
    Bugs("lpzero/export/source.py", _EXPORT, [
        ("rho={\"train\": row[f\"{name} {RHO}\"]}", "rho={\"train\": row[\"fitness\"]}", "rho exported as fitness"),
        ("rho_given_params={\"train\": row[f\"{name} {RHO_GIVEN_PARAMS}\"]}", "rho_given_params={\"train\": row[f\"{name} {RHO}\"]}", "rho exported as rho given parameters"),
        ("rhos = line[\"rho_by_table\"] if len(names) > 1 else {names[0]: line[\"rho\"]}", "rhos = dict.fromkeys(names, line[\"rho\"])", "the lowest rho is exported for every table"),
        ("rho_ci={part: judgement[\"rho_ci\"] for part, judgement in parts.items()}", "rho_ci={part: judgement[\"tau_ci\"] for part, judgement in parts.items()}", "tau's interval exported as rho's"),
    ]),
    Bugs("lpzero/export/csv_form.py", _EXPORT, [
        ("figures.rho_ci.get(part) if figures else None", "figures.rho_ci.get(\"test\") if figures else None", "every part has the interval of test"),
    ]),
    Bugs("lpzero/export/source.py", [_T + "cli/test_export.py", _T + "export/test_round_trip.py"], [
        ("entries[number - 1 : number]", "entries[number : number + 1]", "positions are counted from 0"),
        ("return [replace(entry, options=replace(entry.options, limit=None)) for entry in entries]", "return list(entries)", "--exact has no effect"),
    ]),
    Bugs("lpzero/report/formulas.py", _REPORT, [
        ("lowest = min(parts, key=lambda part: float(part[\"rho\"]), default=None)", "lowest = max(parts, key=lambda part: float(part[\"rho\"]), default=None)", "the best table on the page instead of the lowest"),
        ("number(line.get(\"rho\", {}).get(\"valid\"))", "number(line.get(\"rho\", {}).get(\"train\"))", "train printed as valid"),
        ("for key in (RHO, RHO_GIVEN_PARAMS)]", "for key in (RHO_GIVEN_PARAMS, RHO)]", "two columns are swapped"),
    ]),
    Bugs("lpzero/report/formulas.py", _REPORT, [
        ("winner = run.judged(name)[\"test\"]", "winner = run.judged(name)[\"valid\"]", "the verdict prints valid for test"),
        ("cells.append(with_interval(line.get(\"tau\"), line.get(\"tau_ci\")))", "cells.append(with_interval(line.get(\"tau\"), line.get(\"rho_ci\")))", "tau with rho's interval"),
        ("(\"rho_untied\", \"rho_given_params\", \"rho_within\", \"top_precision\")", "(\"rho_untied\", \"rho_within\", \"rho_given_params\", \"top_precision\")", "two columns are swapped"),
        ("'+' if best['sign'] > 0 else '−'", "'−' if best['sign'] > 0 else '+'", "the printed sign is the opposite"),
        ("_IN_SAMPLE if winner[part].get(\"in_sample\") else \"\"", "\"\"", "in-sample figures are not marked"),
    ]),
    Bugs("lpzero/report/markup.py", _REPORT, [
        ("text = f\"{value:.{digits}f}\" if abs(value) < _LARGE else f\"{value:,.6g}\"", "text = f\"{value:.{digits}f}\" if value < _LARGE else f\"{value:,.6g}\"", "large negative numbers have decimals"),
        ("return Cell(text.replace(\"-\", \"−\"), float(value), True)", "return Cell(text.replace(\"-\", \"\"), float(value), True)", "negative numbers lose their sign"),
    ]),
    Bugs("lpzero/search/comparison.py", [_T + "report/test_numbers.py"], [
        ("\"evaluations\": index + 1,", "\"evaluations\": index,", "curves start at 0 evaluations"),
        ("n = max(run[\"evaluations\"] for run in runs)", "n = min(run[\"evaluations\"] for run in runs)", "curves end with the shortest run"),
    ]),
    Bugs("lpzero/report/figures/front.py", [_T + "report/test_kinds.py"], [
        ("if not steps or point.fitness > steps[-1].fitness:", "if not steps or point.fitness >= 0:", "the front has formulas that a smaller one beats"),
        ("return smallest if is_smaller else None", "return smallest", "the winner is offered as simpler than itself"),
    ]),
    Bugs("lpzero/report/plotly_chart.py", [_T + "report/test_kinds.py"], [
        ("escape(line, quote=False)", "line", "names of files are markup in figures"),
    ]),
    Bugs("lpzero/report/plotly_chart.py", [_T + "report/figures/test_figures.py"], [
        ("\"array\": [high - value for (_, high), value in ends]", "\"array\": [value - low for (low, _), value in ends]", "intervals on the page are symmetric"),
    ]),
    Bugs("lpzero/report/drawn_chart.py", [_T + "report/figures/test_figures.py"], [
        ("(level.at, **look)", "(0.0, **look)", "reference lines in files are at zero"),
    ]),
    Bugs("lpzero/report/figures/scores.py", [_T + "report/figures/test_figures.py"], [
        ("return n + 1 - by_score, n + 1 - by_target", "return by_score, by_target", "the worst has rank 1"),
    ]),
    Bugs("lpzero/report/ranking_page.py", [_T + "report/test_kinds.py"], [
        ("kept = is_test & np.isfinite(scores)", "kept = np.isfinite(scores)", "differences on rows that were seen"),
    ]),
    Bugs("lpzero/exhaust/results.py", [_T + "exhaust/test_exhaust.py"], [
        ("signed = measures.negated() if sign < 0 else measures", "signed = measures", "a formula that ranks in reverse has negative measures"),
        ("used.isdisjoint(query.without)", "True", "--without has no effect"),
        ("other = 1 - PAPER_REDUCTIONS.index(query.reduction)", "other = PAPER_REDUCTIONS.index(query.reduction)", "--reduction shows the other one"),
    ]),
    Bugs("lpzero/discover/report.py", [_T + "discover/test_report.py", _T + "discover/test_discovery.py", _T + "discover/test_products.py"], [
        ("\"rho\": {part: min(of_table[part] for of_table in rhos.values()) for part in parts}", "\"rho\": {part: max(of_table[part] for of_table in rhos.values()) for part in parts}", "the highest rho over the tables"),
        ("key=lambda c: (-objective.valid(c), c.complexity, c.id)", "key=lambda c: (-c.fitness[0], c.complexity, c.id)", "--choose valid chooses on train"),
        ("np.min(agreements, axis=0)", "np.max(agreements, axis=0)", "stable on one table is enough"),
    ]),
    Bugs("lpzero/discover/report.py", [_T + "cli/test_discover.py"], [
        ("\"generations\": outcome.state.generation - 1,", "\"generations\": outcome.state.generation,", "one generation too many is reported"),
    ]),
    Bugs("lpzero/cli/main.py", [_T + "cli/test_main.py"], [
        ("2 if isinstance(error, (ValueError, LookupError)) else 1", "1", "bad input has the exit code of a failure"),
    ]),
    Bugs("lpzero/cli/screens.py", [_T + "cli/test_interruption.py"], [
        ("        for number, old in before.items():\n            signal.signal(number, old)\n", "        pass\n", "handlers of signals stay"),
        ("*(word for word in more if word not in given)", "*more", "--resume is printed twice", ),
    ]),
    Bugs("lpzero/cli/screens.py", [_T + "cli/test_discover.py"], [
        ("if self.is_asked or not self.is_evolving:", "if self.is_asked:", "a signal before the first generation is not obeyed"),
        ("        return self.is_asked\n", "        return False\n", "a signal does not stop the campaign"),
    ]),
    Bugs("lpzero/options.py", [_T + "test_options.py"], [
        ("and (most is None or value <= most):\n", "and (most is None or value < most):\n", "an upper bound is refused"),
    ]),
    Bugs("spaces/memory.py", [_T + "test_options.py"], [
        ("\"MB\": 1 << 20", "\"MB\": 1 << 10", "a megabyte is a kilobyte"),
    ]),
)  # fmt: skip
