"""Discover a formula on an included table, and read what it says."""

import lpzero

# %% A table: recurrent cells with the loss that each reached when it was trained
table = lpzero.load_table("nano-rnn")
print(table)

# %% How well do sizes rank it? Spearman's rho with its interval
print(lpzero.rank("nano-rnn", ["parameters", "depth", "flops"]))

# %% A discovery: every network is run once, then formulas are searched
small = {"generations": 2, "population": 20, "permutations": 2}
found = lpzero.Discovery("nano-rnn", unaries=1, out="run", **small).fit()
print(found)  # the verdict, the formula, rho on rows that the search has not seen

# %% The formula, the rho of each level on rows left out, and the best formulas beside it
print(found.best_.formula)
print([(line["level"], round(line["rho"], 2)) for line in found.result_["levels"]["lines"]])
print(found.hall_of_fame_)

# %% A page with every figure, and an architecture that the formula prefers
page = found.report()
best = lpzero.search("nano-rnn", found, "random", samples=20)
print(page, best)
