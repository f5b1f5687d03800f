"""Bugs in the spaces: architectures, models, tables and training."""
# ruff: noqa: E501  # a replacement is easier to compare on one line

from __future__ import annotations

from tests.mutants.bugs import Bugs

_T = "tests/spaces/"
_SPACES, _MODELS = _T + "test_spaces.py", _T + "test_models.py"

BUGS = (
    Bugs("spaces/base.py", [_T + "test_variation.py", _SPACES], [
        ("return self.with_block(arch, index, self.blocks(drawn)[index])", "return drawn", "redrawing a block redraws everything"),
    ]),
    Bugs("spaces/choices.py", [_T + "test_variation.py", _T + "pit/test_pit.py", _SPACES, _T + "test_draws.py"], [
        ("value is None or share() < probability else value", "value is None or share() < probability / 2 else value",
         "fields change half as often as asked"),
        ("return first if rng.random() < 0.5 else second", "return first", "a child takes every field from one parent"),
        ("isinstance(value, bool) or is_float or value not in allowed", "is_float or value not in allowed", "True counts as 1"),
        ("*[kind(*[choose(None, of) for _, of in choices]) for _ in range(n - len(layers))],", "*([layers[-1]] * (n - len(layers)) if layers else [kind(*[choose(None, of) for _, of in choices]) for _ in range(n)]),", "added layers repeat the last one"),
        ("for layer in layers[:n]],", "for layer in layers[-n:]],", "the first layers go when an architecture shrinks"),
        ("n = choose(None if value is None else len(value), self.counts)", "n = choose(None, self.counts) if value is None else len(value)", "a mutation that never changes the number of layers"),
        ("return pair[base] if self.of_base else flip(*pair, rng)", "return pair[base] if self.of_base else pair[0]", "single values always come from the first parent"),
        ("if stage and not self._fits(given[stage - 1 : stage + 1]):", "if False:", "heads that do not fit the stage before are accepted"),
        ("varied = (*before, choose(varied[stage], values), *after)", "varied = (*before, varied[stage] or choose(None, values), *after)", "a mutation that never changes depths"),
    ]),
    Bugs("spaces/memory.py", [_T + "test_memory.py"], [
        ("        n_bytes *= side\n", "        n_bytes += side\n", "a batch needs the sum of its sides"),
        ("free() // SHARE if given is None", "free() if given is None", "all of the free memory is allowed"),
    ]),
    Bugs("spaces/outlines.py", [_T + "test_memory.py"], [
        ("        n_parts += 1\n", "", "modules are not counted"),
        ("n_bytes += part.nbytes if isinstance(part, Tensor) else 0", "n_bytes = part.nbytes if isinstance(part, Tensor) else 0", "only the last parameter counts"),
        ("and _storage(leaf) not in given", "and _storage(leaf) in given", "only views count"),
    ]),
    Bugs("spaces/flexibert/space.py", [_T + "test_variation.py", _SPACES], [
        ("Choice(\"stacks\", self.stacks),", "Choice(\"stacks\", self.stacks[:1], self.stacks),", "FFN stacks never vary"),
        ("Choice(\"heads\", self.heads),", "Choice(\"heads\", self.heads[:1], self.heads),", "heads never vary"),
        ("Choice(\"hidden\", self.hidden), Layers", "Choice(\"hidden\", self.hidden, of_base=True), Layers", "the width always comes with the layers"),
        ("(2 if layer.operation == \"dft\" else 1) * transform", "transform", "a Fourier transform costs as much as a cosine transform"),
        ("return 4 if layer.operation == \"wma\" or kernel_size(layer) else 3", "return 3", "the projection that wma adds is not counted"),
        ("layers = tuple(replace(layer, ffn=UPSTREAM_FFN) for layer in arch.layers)", "layers = arch.layers", "the published dimensions leave the FFN as it is"),
    ]),
    Bugs("spaces/flexibert/model.py", [_MODELS], [
        ("z: Tensor = self.norm(self.dense(y) + x)", "z: Tensor = self.norm(self.dense(y))", "a missing residual"),
        ("/ math.sqrt(q.shape[-1])  # (B, n, T, T)", "/ math.sqrt(self.query.in_features)  # (B, n, T, T)", "the attention is scaled by the model's width"),
        ("return rows_cos @ x @ cols_cos - rows_sin @ x @ cols_sin", "return rows_cos @ x @ cols_cos + rows_sin @ x @ cols_sin", "the sign of the Fourier transform's sines"),
        ("+ self.segment.weight[0]", "+ self.segment.weight[1]", "the other segment's vector"),
        ("self.kernels(span * q)", "self.kernels(span)", "kernels that do not depend on the query"),
    ]),
    Bugs("spaces/gpt2/space.py", [_T + "test_variation.py", _SPACES], [
        ("kept = {x for parent in parents if parent.d_model == child.d_model for x in parent.d_inner}", "kept = {x for parent in parents for x in parent.d_inner}", "layers of a narrower parent stay narrow"),
        ("x if x in kept else max(x, least) for x in", "max(x, least) for x in", "widened untouched layers"),
        ("Choice(\"div_val\", self.div_val),", "Choice(\"div_val\", self.div_val[:1], self.div_val),", "div_val never varies"),
        ("Choice(\"d_embed\", self.d_embed, ", "Choice(\"d_embed\", self.d_embed[:1], ", "the embedding never varies"),
        ("return block.d_inner in self.inner_choices(arch.d_model)", "return True", "a block is exchanged that is too narrow for its model"),
        ("4 * T * d * d + 2 * T * T * d + 2 * T * d * inner", "4 * T * d * d + T * T * d + 2 * T * d * inner", "one of two attention products is not counted"),
    ]),
    Bugs("spaces/gpt2/model.py", [_MODELS, _T + "test_initialisation.py"], [
        ("x = x + self.attention(self.attention_norm(x))", "x = self.attention(self.attention_norm(x))", "a missing residual"),
        ("/ math.sqrt(d // self.heads)", "/ math.sqrt(d)", "the attention is scaled by the model's width"),
        (".triu(1)", ".triu(0)", "a token does not attend to itself"),
        ("return x * math.sqrt(self.d)", "return x", "embeddings are not scaled"),
        ("approximate=\"tanh\"", "approximate=\"none\"", "the exact GELU"),
        ("losses = losses.index_copy(0, rows, -(cluster + inside))", "losses = losses.index_copy(0, rows, -inside)", "the share of a rare word's cluster is left out"),
        ("residual_std = INIT_STD / math.sqrt(2 * len(arch.d_inner))", "residual_std = INIT_STD / math.sqrt(len(arch.d_inner))", "the spread of residual projections"),
    ]),
    Bugs("spaces/openlm/space.py", [_MODELS, _SPACES], [
        ("return arch.heads * (arch.width // arch.heads)", "return arch.width", "heads are as wide as the model where they do not divide it"),
        ("256  # inner widths", "128  # inner widths", "inner widths are rounded up to another step"),
        ("2 * T * T * attention_width(arch)", "T * T * attention_width(arch)", "one of two attention products is not counted"),
    ]),
    Bugs("spaces/openlm/model.py", [_MODELS, _T + "test_initialisation.py", _SPACES], [
        ("rotated(q) @ rotated(k)", "rotated(q) @ k", "keys without positions"),
        ("b * cos + a * sin", "b * cos - a * sin", "the sign of a rotation"),
        ("functional.silu(gate) * value", "functional.silu(value) * gate", "gate and value are exchanged"),
        ("bias=False)\n\n\n_OUTPUT", "bias=True)\n\n\n_OUTPUT", "norms with a bias"),
        ("2 * (int(of_block[1]) + 1)", "2 * int(of_block[1]) + 1", "the spread of residual projections"),
    ]),
    Bugs("spaces/tables/openlm.py", [_T + "tables/test_tables.py"], [
        ("best = min(runs.values()", "best = max(runs.values()", "the worst run of an architecture"),
        ("-(?P=batch)-", r"-\d+-", "two batches that differ are accepted"),
    ]),
    Bugs("spaces/transformer_xl/space.py", [_MODELS, _SPACES], [
        ("3 * queries * (queries + memory) * d", "3 * queries * queries * d", "attention to the memory is not counted"),
        ("return self._word_parameters(arch)  # positions are sines", "return super()._embedding_parameters(arch)", "a table of positions is counted that there is not"),
    ]),
    Bugs("spaces/transformer_xl/model.py", [_MODELS], [
        ("start].detach()", "start]", "the memory is differentiated"),
        ("q + self.distance_bias", "q + self.content_bias", "one bias for content and distance"),
        ("distances.clamp(min=0)", "distances.abs()[:, -1:]", "one distance for all keys of a query"),
        ("places[K - t :].unsqueeze(1) - places", "places[:t].unsqueeze(1) - places", "distances do not count the memory"),
        ("x = self.attention_norm(x + self.attention(x))", "x = x + self.attention_norm(self.attention(x))", "the norm before the addition"),
        ("functional.relu(", "functional.gelu(", "another activation"),
    ]),
    Bugs("spaces/tables/lts.py", [_T + "tables/test_tables.py"], [
        ("return values[:n]", "return values", "lists of layers are not cut"),
        ("in space.released_settings().items():", "in list(space.released_settings().items())[:1]:", "lengths are not checked"),
    ]),
    Bugs("spaces/pit/model.py", [_MODELS, _T + "pit/test_pit.py"], [
        ("self.head(hidden[:, 0])", "self.head(hidden.mean(1))", "PiT's logits from the mean"),
        ("y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))", "y: Tensor = self.feed_forward(self.feed_forward_norm(x))", "a missing residual"),
        ("x[:, 1:].transpose(1, 2).unflatten(2, (g, g))", "x[:, 1:].transpose(1, 2).unflatten(2, (g, g)).transpose(2, 3)", "the pooled grid is transposed"),
        ("(self.projection(images) + self.position)", "self.projection(images)", "patches without positions"),
    ]),
    Bugs("spaces/pit/space.py", [_T + "pit/test_pit.py", _T + "test_variation.py", _SPACES], [
        (", is_multiple=True)", ")", "the heads of stages are drawn apart"),
    ]),
    Bugs("spaces/autoformer/model.py", [_MODELS], [
        ("scores = q @ k.transpose(-1, -2) + self.key_positions.scores(q)", "scores = q @ k.transpose(-1, -2)", "keys without relative positions"),
        ("(at[None, :] - at[:, None])", "(at[:, None] - at[None, :])", "relative positions the wrong way round"),
        ("torch.cat([first, patches], dim=1) + self.position", "torch.cat([first, patches], dim=1)", "tokens without positions"),
        ("self.head(hidden[:, 1:].mean(1))", "self.head(hidden.mean(1))", "the class token counts in the mean over patches"),
    ]),
    Bugs("spaces/initialisation.py", [_SPACES, _T + "test_initialisation.py"], [
        ("parameter.fill_(1.0 if id(parameter) in norm_weights else 0.0)", "parameter.fill_(0.0)", "norms start at zero"),
        ("return next((value for end, value in other_stds.items() if name.endswith(end)), std)", "return std", "every matrix has the same spread"),
    ]),
    Bugs("spaces/minibatch.py", [_SPACES, _T + "test_minibatch.py"], [
        ("weights = 1.0 / (np.arange(vocabulary) + 2.7)", "weights = np.ones(vocabulary)", "words are drawn uniformly"),
        ("file.seek(start)", "file.seek(0)", "every window is the first one"),
    ]),
    Bugs("spaces/tables/splits.py", [_T + "tables/test_splits.py"], [
        ("units.setdefault(key, []).append(row)", "units.setdefault(row, []).append(row)", "equal architectures may be in train and test"),
        ("return table.hide(self._test)", "return table.hide(self.valid)", "the validation targets are hidden instead of the test targets"),
        ("_draw(table, seed, strata[rows[0]]), ", "\"\", ", "depths are not divided evenly"),
        ("f\"{table.digest} {seed} {what}\"", "f\"{table.digest} {what}\"", "the seed of a split has no effect"),
    ]),
    Bugs("spaces/tables/table.py", [_T + "tables/test_tables.py", _T + "tables/test_splits.py"], [
        ("digest.update(targets.astype(\"<f8\").tobytes())", "pass", "a digest that does not see the targets"),
        ("for part in kind.split(\"-\")]", "for part in kind.split(\"-\")[:1]]", "groups of equal depth only"),
        ("hidden = {name: blank(column, rows) for name, column in self.extra.items()}", "hidden = dict(self.extra)", "extra columns of hidden rows stay readable"),
    ]),
    Bugs("spaces/training/tasks.py", [_T + "training/test_tasks.py", _T + "training/test_trainer.py"], [
        ("return float((hits + passes) / 2)", "return float(hits)", "balanced accuracy counts the replaced bytes only"),
        ("return corrupted, corrupted != tokens", "return corrupted, chosen", "a byte replaced by itself counts as replaced"),
        ("self.train_text = text[:n_train]", "self.train_text = text", "training sees the held-out text"),
        ("return -float(torch.stack(parts).double().mean())", "return float(torch.stack(parts).double().mean())", "a larger loss is a better target"),
        ("return restored + detected", "return restored", "detection is not trained"),
    ]),
    Bugs("spaces/training/table_rows.py", [_T + "training/test_table_rows.py", "tests/lpzero/training/test_table_build.py"], [
        ("np.mean([run[\"target\"] for run in kept[: plan.n_seeds]])", "np.mean([run[\"target\"] for run in kept])", "a target averages the repeated trainings, too"),
        ("rho(range(k), range(k, 2 * k))", "rho(range(k), range(k))", "the noise ceiling compares trainings with themselves"),
    ]),
    Bugs("spaces/user_modules.py", [_T + "test_user_modules.py"], [
        ("    module = _given(module_name)\n    if module is None:\n        _load", "    module = load(module_name)\n    if module is None:\n        _load", "an address in a file runs its code"),
        ("if _stem(name) == _stem(module):", "if True:", "lpzero.yaml runs the code of every space that it names"),
        ("return sys.modules[(by_path or by_name)[-1].name]", "return sys.modules[by_name[-1].name]", "the last file of a name is taken for all of that name"),
    ]),
)  # fmt: skip
