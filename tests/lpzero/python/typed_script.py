"""What a type checker knows of a user's script: `make types` reads this file, and nobody runs it.

The mistakes at the end are found, because `warn_unused_ignores` is on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import lpzero
from lpzero.python import discovery
from lpzero.python.formula import FormulaObject
from lpzero.python.rows import Exhausted, RankedRow, Rows, SearchResult

Loaded = lpzero.Discovery | FormulaObject | SearchResult | Rows[RankedRow] | Exhausted

found = lpzero.Discovery("nano-gpt2", generations=2)
assert_type(found.fit(), discovery.Discovery)
assert_type(found.best_.rho["test"], float)
assert_type(found.best_.interval, tuple[float, float] | None)
assert_type(found.best_.formula.latex(), str)
assert_type(found.predict([]), NDArray[np.float64])
assert_type(found.score("nano-gpt2"), float)
assert_type(found.hall_of_fame_[0]["formula"], str)
assert_type(found.history_[0]["fitness"], float)
assert_type(found.result_, dict[str, object])
assert_type(found.generations, int | None)
assert_type(lpzero.rank("nano-gpt2")[0]["rho"], float)
assert_type(lpzero.rank("nano-gpt2", ["snip", found]).column("rho"), list[float])
best = lpzero.search("nano-gpt2", found, "random", max_parameters=1e6, samples=10)
assert_type(best.arch, dict[str, object])
assert_type(best.best_["target"], float | None)
assert_type(best.parameters, int)
assert_type(lpzero.exhaust("nano-gpt2", unaries=1).formula, str)
assert_type(lpzero.train("nano-gpt2", n_archs=2).table, str)
assert_type(lpzero.load("runs/a"), Loaded)
assert_type(lpzero.load_table("nano-gpt2").targets, NDArray[np.float64])
assert_type(lpzero.formula("sum(l1(W))"), FormulaObject)
assert_type(lpzero.__version__, str)
lpzero.rank("nano-gpt2", sedes=3)  # type: ignore[call-arg]
lpzero.Discovery("nano-gpt2", generations="many")  # type: ignore[arg-type]
found.bset_  # type: ignore[attr-defined]  # noqa: B018
