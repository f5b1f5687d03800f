"""Objects in, objects out: a DataFrame, a formula, a space of your own, an architecture."""

import pickle

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import cross_val_score
from torch import nn

import lpzero

# %% A DataFrame in, a formula out
rng = np.random.default_rng(0)
runs = pd.DataFrame({"width": 16 * rng.integers(1, 9, 80), "rate": rng.uniform(0.1, 1, 80)})
runs["accuracy"] = np.log(runs["width"]) - runs["rate"] + rng.normal(0, 0.1, 80)
small = {"generations": 2, "population": 20, "permutations": 2}
found = lpzero.Discovery(runs, target="accuracy", out="run", **small).fit()
print(found)  # the formula, rho with its interval, the verdict, the best rival

# %% New rows, cross-validation, pickle, load
columns, accuracy = runs[["width", "rate"]], runs["accuracy"]
print(found.predict(columns.head(3)))
print(cross_val_score(lpzero.Discovery(**small), columns, accuracy, cv=3))
again = pickle.loads(pickle.dumps(found))  # noqa: S301
assert again.best_ == lpzero.load("run").best_ == found.best_


# %% A space of your own with a constraint, searched under a bound
def build(config):
    layer = nn.TransformerEncoderLayer(config.width, config.heads, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, config.layers)
    return nn.Sequential(nn.Embedding(64, config.width), encoder)


choices = {"layers": [1, 2, 3], "width": [12, 16, 18], "heads": [2, 4]}
space = lpzero.space(choices, build, where=lambda c: c.width % c.heads == 0, vocabulary=64)
best = lpzero.search(space, "snip", "random", samples=8, max_parameters=12_000)
print(best)

# %% Train what was found, and put the formula into a paper
model = space.build(space.from_json(best.arch), seed=0).train()
optimiser = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = model(space.batch(seed=step)).square().mean()
    loss.backward()
    optimiser.step()
print(best.parameters, loss.item(), found.export("paper.tex", to="latex"))
