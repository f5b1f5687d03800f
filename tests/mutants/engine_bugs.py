"""Bugs from sketches to searches: `lpzero` without its outputs."""
# ruff: noqa: E501  # a replacement is easier to compare on one line

from __future__ import annotations

from tests.mutants.bugs import Bugs

_T = "tests/lpzero/"
_PROXIES = [
    _T + "proxies/test_activations.py",
    _T + "proxies/test_saliency.py",
    _T + "proxies/test_kernels.py",
    _T + "proxies/test_flow.py",
    _T + "proxies/test_conformance.py",
]
_LOOPS = [_T + "search/test_loops.py"]

BUGS = (
    Bugs("lpzero/statistics/extraction.py", [_T + "statistics/test_statistics.py"], [
        ("values = sum(part.values for part in parts)", "values = parts[0].values", "gradients of a split batch are those of its first part"),
        ("rows = round(values.numel() / width * n_parts)", "rows = round(values.numel() / width)", "a split batch keeps more columns than a whole one"),
        ("state = {EMBEDDING: seen.inputs[0], HEAD: final}[end]", "state = seen.inputs[0]", "the head reads the embedding's state"),
        ("return Matrix(values.reshape(-1, width).clone(), width)", "return Matrix(values.reshape(-1, width), width)", "a statistic shares memory with the model"),
    ]),
    Bugs("lpzero/statistics/trace.py", [_T + "statistics/test_statistics.py", *_PROXIES], [
        ("weight.ndim >= 2]", "weight.ndim >= 1]", "biases count as weight matrices"),
        ("handle.remove()\n\n\n@contextmanager", "pass\n\n\n@contextmanager", "hooks stay in the model"),
    ]),
    Bugs("lpzero/statistics/layout.py", [_T + "statistics/test_statistics.py", *_PROXIES], [
        ("return \"pooling\" if _begins(name, self.pooling) else \"attention\"", "return \"attention\"", "pooling counts as attention"),
    ]),
    Bugs("lpzero/sketches/sketch.py", [_T + "sketches/test_sketch.py", _T + "sketches/test_store.py"], [
        ("start += rows * kept", "start += rows * true", "matrices are read from the wrong place"),
        ("named |= {\"kind\": type(space).__name__, \"version\": space.version}", "named |= {\"kind\": type(space).__name__}", "a space that builds otherwise has the same address"),
        ("\"options\": _options_identity(options),", "\"options\": {},", "sketches of other seeds have the same address"),
    ]),
    Bugs("lpzero/sketches/store.py", [_T + "sketches/test_lazy_sketches.py"], [
        ("_verified.get(path) == state", "path in _verified", "a sketch that was replaced is not hashed again"),
        ("        _check_address(path, header, address)\n        return header", "        return header", "a sketch under another's name is found when it is read"),
    ]),
    Bugs("lpzero/sketches/builder.py", [_T + "sketches/test_lazy_sketches.py"], [
        ("replace(builder, is_lazy=False)", "builder", "a broken sketch is not rebuilt when it is read"),
    ]),
    Bugs("lpzero/scores/formula_rivals.py", [_T + "scores/test_formula_rivals.py"], [
        ("if all(text in of_row for of_row in stored):", "if any(text in of_row for of_row in stored):", "a row without stored scores is looked up all the same"),
        ("stored[row] | new", "new", "new scores replace those that are known"),
        ("float(of[row])", "float(of[0])", "every sketch has the scores of the first"),
    ]),
    Bugs("lpzero/scores/stacks.py", [_T + "scores/test_values.py", _T + "scores/test_branch_table.py"], [
        ("return Matrix(finite(product), factor.true_columns)", "return Matrix(finite(product), b.true_columns)", "the true width of a·bᵀ"),
        ("np.add.reduce(a.values.mean(axis=1) * others, axis=1) * a.column_scale", "np.add.reduce(a.values.mean(axis=1) * others, axis=1)", "the mean of a product of cut matrices is not rescaled"),
        ("return Matrix(finite(values), max(a.true_columns, b.true_columns))", "return Matrix(finite(values), a.true_columns)", "a scalar before a matrix makes it one column wide"),
    ]),
    Bugs("lpzero/scores/tabulation/tabulator.py", [_T + "scores/test_branch_table.py", _T + "scores/test_terms.py", _T + "scores/test_values.py"], [
        ("total += product / table.counts[pair[0]][block]", "total += product / max(table.counts[pair[0]])", "tensors of a small block count less"),
        ("product[1] = left.column_means @ right.column_means.T * (inner / kept)", "product[1] = left.column_means @ right.column_means.T", "matrix products of cut matrices are not rescaled"),
        ("means[n:] = self.means[n:, np.newaxis]", "means[n:] = 1.0", "what log_softmax subtracts is 1 in matrix products"),
        ("total / len(means)", "total", "an end's tensors are added up"),
        ("(means[index] for index in sorted(means))", "means.values()", "an end's tensors are added in the order in which they were known"),
        ("places = [stack.places[at] for stack in stacks]", "places = [min(at, len(stack.distinct) - 1) for stack in stacks]", "gradients meet the weights of another network"),
        ("place_of.setdefault(tensor.identity(), len(place_of))", "place_of.setdefault(id(tensor), len(place_of))", "equal tensors are computed again"),
    ]),
    Bugs("lpzero/scores/stacks.py", [_T + "scores/test_branch_table.py"], [
        ("return digest, values.shape, self.matrix.true_columns", "return values.shape, self.matrix.true_columns", "tensors of one shape are taken for each other"),
    ]),
    Bugs("lpzero/scores/tabulation/basis.py", [_T + "scores/test_branch_table.py"], [
        ("(-1.0 if is_negated else 1.0, 0.0)", "(1.0, 0.0)", "log_softmax of -x follows from x"),
        ("self.columns[:, follower.column] -= offset[:, np.newaxis]", "pass", "log_softmax of what is centred forgets the mean"),
        ("offset = offset + other * self.offset[:, follower.second]", "pass", "the second part of a sum is centred"),
        ("(\"square\", \"abslog\"): ((2.0,", "(\"square\", \"abslog\"): ((1.0,", "the logarithm of a square is not twice as large"),
        ("(\"zscore\", \"abs\"): ((2.0,", "(\"zscore\", \"abs\"): ((1.0,", "|zscore| is relu(zscore) less zscore"),
    ]),
    Bugs("lpzero/scores/tabulation/kernels.py", [_T + "scores/tabulation/test_kernels.py"], [
        ("if self.is_within_exp:", "if True:", "the exponential is not clipped"),
        ("return (self._mean_of_centred + (self.mean - self.low)) / self.minmax_spread", "return (self.mean - self.low) / self.minmax_spread", "the mean of a nearly constant minmax has the error of the mean"),
        ("return float(self.absolute.min())", "return float(self.absolute.max())", "an inverse of zeros has no floor"),
        ("np.maximum(np.absolute(self.low), np.absolute(self.high))", "np.absolute(self.high)", "noise is measured by the largest element alone"),
    ]),
    Bugs("lpzero/scores/tabulation/chain_values.py", [_T + "scores/test_branch_table.py"], [
        ("offset = sign * (operand.mean - least) / spread", "offset = sign * operand.mean / spread", "products of minmax start at zero"),
        ("sign = -1.0 if continued.is_negated else 1.0", "sign = 1.0", "minmax of -x is that of x"),
        ("least = operand.high if continued.is_negated else operand.low", "least = operand.low", "minmax of -x begins at the least x"),
        ("is_bad = is_bad | ~np.isfinite(self.means[prefix.index])", "is_bad = ~np.isfinite(self.means[prefix.index])", "a chain that overflowed comes back"),
    ]),
    Bugs("lpzero/scores/values.py", [_T + "scores/test_values.py", _T + "scores/test_terms.py"], [
        ("return self.total(expression) / divisors(term.positions, self.table.n_blocks)", "return self.total(expression)", "the mean over blocks is the sum"),
        ("return formula.sign * total", "return 1 * total", "the sign of a product of terms is lost"),
        ("        other._powers = ByteCache(self._powers.limit)\n", "", "powers of other columns are taken for each other"),
        ("len(formula.powers) > 1 and not np.isfinite(total).all()", "False", "a product that overflows has scores"),
        ("return -self.total(expression.operand)", "return self.total(expression.operand)", "the total of -x is that of x"),
    ]),
    Bugs("lpzero/exhaust/shards.py", [_T + "scores/test_branch_table.py", _T + "scores/test_terms.py", _T + "exhaust/test_exhaust.py"], [
        ("return a + b if family.operation == \"add\" else a - b", "return a + b", "a family of differences is one of sums"),
        ("total += inside / counts[:, block]", "total += inside", "tensors of a block are added up"),
    ]),
    Bugs("lpzero/scores/terms.py", [_T + "scores/test_terms.py"], [
        ("return over_blocks(block_means) / divisors(facts, n_blocks)", "return over_blocks(block_means)", "`inner` of a single block is all of it"),
        ("np.arange(len(n_blocks)), first[n_blocks - 1]]", "np.arange(len(n_blocks)), first[-1]]", "the last block of a short network is padding"),
        ("(safe > 0).all(axis=1) | (safe < 0).all(axis=1)", "np.ones(len(safe), dtype=bool)", "terms of both signs have a logarithm"),
    ]),
    Bugs("lpzero/scores/products.py", [_T + "scores/test_products.py", _T + "discover/test_products.py", _T + "exhaust/test_products.py"], [
        ("        below = below + 2 * exponent * self._by_terms\n", "", "the variance of a product without its covariance"),
        ("return -product.value, len(product.factors.powers)", "return -product.value, -len(product.factors.powers)", "the longer of equal products comes first"),
        ("first < second if abs(exponent) == 1 else first != second", "first < second", "half of the products with a root are left out"),
        ("Found(factors, value, sign, tuple(on_tables))", "Found(factors, value, 1, tuple(on_tables))", "products that rank in reverse have no sign"),
        ("rank_many(signs * product_logs(factors, table.logs))", "rank_many(product_logs(factors, table.logs))", "products that rank in reverse are compared without their sign"),
    ]),
    Bugs("lpzero/judgement/ranks.py", [_T + "judgement/test_ranks.py"], [
        ("DIGITS = 6", "DIGITS = 7", "seven digits decide a tie"),
        ("(starts + ends + 1) / 2.0", "starts + 1.0", "ties share their first rank"),
        ("float(f\"{value:.9e}\")", "float(f\"{value:.5e}\")", "targets are rounded to six digits"),
    ]),
    Bugs("lpzero/judgement/correlation.py", [_T + "judgement/test_correlation.py"], [
        ("differ = of_targets != 0", "differ = of_targets != 9", "pairs of equal targets count"),
        ("total += len(rows) * spearman(scores[rows], targets[rows])", "total += spearman(scores[rows], targets[rows])", "groups are not weighted by their size"),
        ("len(rows) < LEAST_IN_GROUP or", "len(rows) <= LEAST_IN_GROUP or", "groups of five are left out"),
        ("_TOP_SHARE = 0.1", "_TOP_SHARE = 0.2", "the best fifth for the best tenth"),
        ("(n * (n * n - 1) / 12)", "(n * (n * n + 1) / 12)", "the spread of n ranks"),
        ("rho[non_finite] = -np.inf", "pass", "a score that is not finite has a correlation"),
    ]),
    Bugs("lpzero/judgement/measures.py", [_T + "judgement/test_measures.py"], [
        ("rest = rho - rho_size * self._rho_target_size", "rest = rho - rho_size", "partial rho without the target's own correlation"),
        ("within += size * of_group", "within += self.n_within / len(ranked.sizes) * of_group", "groups are not weighted by their size"),
    ]),
    Bugs("lpzero/judgement/ranks.py", [_T + "judgement/test_measures.py"], [
        ("middles = flat[firsts] + (lengths - 1) * 0.5", "middles = flat[firsts]", "ties share their first rank"),
        ("self._tags = (number << (_KEY_BITS + self._bits)) |", "self._tags =", "groups are ranked together"),
    ]),
    Bugs("lpzero/judgement/bootstrap.py", [_T + "judgement/test_bootstrap.py", _T + "judgement/test_differences.py", _T + "judgement/test_judgement.py"], [
        ("LEVEL = 0.95", "LEVEL = 0.9", "intervals of 90%"),
        ("key = len(counts), y.tobytes()", "key = len(counts), b\"\"", "targets of one size are taken for each other"),
    ]),
    Bugs("lpzero/judgement/bootstrap.py", [_T + "judgement/test_bootstrap.py"], [
        ("left = (1 - sg * sg) * (1 - gt * gt)", "left = 1 - sg * sg", "a partial rho that is not one"),
    ]),
    Bugs("lpzero/judgement/mean_ranks.py", [_T + "judgement/test_mean_ranks.py"], [
        ("rank(-column)", "rank(column)", "the smallest is ranked first"),
        ("/ math.sqrt(2)", "", "a critical difference without its root"),
    ]),
    Bugs("lpzero/proxies/leaderboard.py", [_T + "proxies/test_leaderboard.py"], [
        ("\"counts_only\": not low > 0", "\"counts_only\": not high > 0", "only what is below the count counts only"),
        ("state = COMPLETE if n == len(table) else PARTIAL", "state = COMPLETE", "a part of the rows is called all"),
        ("            return {measures[0]: _one_line(error)}", "            return {}", "a refusal has no reason"),
    ]),
    Bugs("lpzero/judgement/large_resamples.py", [_T + "judgement/test_bootstrap.py"], [
        ("below + 0.5 * weights + 0.5", "below + 0.5", "ties inside a resample"),
    ]),
    Bugs("lpzero/judgement/table.py", [_T + "judgement/test_table.py", _T + "judgement/test_rivals.py"], [
        ("name = max(rhos, key=lambda name: abs(rhos[name]), default=None)", "name = min(rhos, key=lambda name: abs(rhos[name]), default=None)", "the worst counter is the rival"),
        ("name = max(columns, key=lambda name: self._train_valid_rho(columns[name]), default=None)", "name = min(columns, key=lambda name: self._train_valid_rho(columns[name]), default=None)", "the worst column is the rival"),
        ("\"in_sample\": part != \"test\"", "\"in_sample\": part == \"train\"", "valid figures count as out of sample"),
        ("kept = rows[np.isfinite(others[rows])]", "kept = rows", "a rival's missing scores are compared"),
        ("open_parts = {\"train\": self.split.train, \"valid\": self.split.valid}", "open_parts = {\"train\": self.split.train, \"valid\": self.split.train}", "valid measured on train rows"),
    ]),
    Bugs("lpzero/judgement/rivals.py", [_T + "judgement/test_verdict.py"], [
        ("abs(winner.rho_within) <= chance_within(winner.n_within)", "winner.rho_within <= 0", "chance within groups is not considered"),
        ("if difference.outcome is Outcome.NOT_AHEAD:", "if False:", "a winner that is behind is called ahead"),
    ]),
    Bugs("lpzero/judgement/bootstrap.py", [_T + "judgement/test_differences.py"], [
        ("if self.rho_ci[0] > 0 else", "if self.rho_ci[1] > 0 else", "ahead although the interval holds 0"),
    ]),
    Bugs("lpzero/judgement/rivals.py", [_T + "judgement/test_rivals.py"], [
        ("\"rho\": {part: min(rho[part] for rho in rhos.values()) for part in SPLIT_PARTS}", "\"rho\": {part: max(rho[part] for rho in rhos.values()) for part in SPLIT_PARTS}", "the best count's highest rho over tables"),
        ("key=lambda line: line[\"least\"]", "key=lambda line: -line[\"least\"]", "the most stable table is reported"),
    ]),
    Bugs("lpzero/judgement/counters.py", [_T + "judgement/test_counters.py"], [
        ("return sum(space.block_widths(arch)) / n_heads", "return space.width(arch) / n_heads", "the width of one block over the heads of all"),
        ("frozenset(\"S\" if name in _OF_HEADS else \"\")", "frozenset()", "states of recurrent cells are heads"),
        ("math.sqrt(space.width(arch))", "space.width(arch)", "depth times width"),
        ("float(min(ends[EMBEDDING]", "float(max(ends[EMBEDDING]", "the wider side of the embedding"),
        ("(T + 1) * math.log(d)", "T * math.log(d)", "the separation rank one token short"),
    ]),
    Bugs("lpzero/scores/floor.py", [_T + "scores/test_floor.py"], [
        ("np.random.SeedSequence([seed, number])", "np.random.SeedSequence([seed])", "every permutation is the same"),
    ]),
    Bugs("lpzero/discover/table_fitness.py", [_T + "discover/test_table_fitness.py", _T + "discover/test_discovery.py", _T + "discover/test_products.py"], [
        ("scores[np.newaxis, self.parts.valid]", "scores[np.newaxis, self.parts.train]", "valid measured on train rows"),
        ("np.sort(np.concatenate([self.parts.train, self.parts.valid]))", "self.parts.train", "formulas are chosen on train rows alone"),
        ("if measure == RHO_WITHIN and measures.n_within == 0:", "if False:", "valid rows without groups give 0"),
        ("drawn.permutation(n)[:REPEATED_ROWS]", "drawn.permutation(n)", "every row is built with a second seed"),
        ("picked = random.Random(f\"rows {parts.seed}\").sample(range(n), settings.archs)", "picked = range(settings.archs)", "the first training rows instead of a sample"),
    ]),
    Bugs("lpzero/discover/levels.py", [_T + "discover/test_levels.py"], [
        ("return self.rho <= 2 * self.error", "return False", "noise ends at a formula"),
        ("np.where(usable, correlate_rows(np.log(first), logs), 0.0)", "np.ones(len(table))", "terms that do not repeat count as reliable"),
        ("return self.counters.issuperset(formula.columns)", "return True", "a user's column counts as a counter"),
    ]),
    Bugs("lpzero/judgement/measures.py", [_T + "discover/test_objective.py"], [
        ("np.where(minus > plus, -1, 1)", "np.where(rhos[0] < 0, -1, 1)", "the sign from the first of several tables"),
        ("return np.asarray(rhos.min(axis=0))", "return np.asarray(rhos.max(axis=0))", "the fitness of the best table"),
    ]),
    Bugs("lpzero/discover/objective.py", [_T + "discover/test_objective.py", _T + "discover/test_discovery.py"], [
        ("            self._valid[candidate.id] = min(\n", "            self._valid[candidate.id] = max(\n", "valid is the highest over the tables"),
    ]),
    Bugs("lpzero/discover/hall_of_fame.py", [_T + "discover/test_hall_of_fame.py"], [
        ("return other.complexity <= candidate.complexity and all(", "return other.complexity < candidate.complexity and all(", "the hall's cover with < for ≤"),
        ("return not any(_dominates(entry, candidate) for entry in self.front)", "return False", "a full hall that admits no simpler formula"),
        ("map(operator.ge, other", "map(operator.gt, other", "equal fitness is not covered"),
        ("if candidate.fitness[0] >= self._worst:", "if candidate.fitness[0] > self._worst:", "a full hall admits no equal"),
        ("candidate.key not in keys and", "", "a formula has two entries"),
    ]),
    Bugs("lpzero/discover/objective.py", [_T + "discover/test_products.py", _T + "discover/test_choice.py"], [
        ("stability >= min(threshold, float(stability.max()))", "stability >= threshold", "nothing is chosen if nothing is stable"),
        ("np.lexsort((np.asarray(complexity), -np.round(rho, 10), ~is_stable))", "np.lexsort((-np.asarray(complexity), -np.round(rho, 10), ~is_stable))", "the more complex of equals comes first"),
    ]),
    Bugs("lpzero/discover/evolution.py", [_T + "discover/test_evolution.py", _T + "discover/test_campaign.py"], [
        ("sign = verdict.sign * child.form.sign", "sign = verdict.sign", "a formula whose canonical form is negated has the wrong sign"),
        ("if earlier is None and form.key in self.fresh:", "if False:", "a formula is tried twice in one generation"),
    ]),
    Bugs("lpzero/discover/candidate.py", [_T + "discover/test_evolution.py"], [
        ("-candidate.fitness[0], candidate.complexity, candidate.id", "-candidate.fitness[0], -candidate.complexity, candidate.id", "the more complex of equals comes first"),
    ]),
    Bugs("lpzero/discover/evolution.py", [_T + "discover/test_evolution.py"], [
        ("(*candidate.fitness, -float(candidate.complexity))", "(*candidate.fitness, float(candidate.complexity))", "the front prefers the complex"),
    ]),
    Bugs("lpzero/discover/hall_of_fame.py", [_T + "discover/test_hall_of_fame.py", _T + "discover/test_campaign.py"], [
        ("self.evaluated += sum([member.key is not None for member in members])", "self.evaluated += sum([bool(member.fitness) for member in members])", "rejected scores do not count as evaluated"),
        ("            scored.append(self.best)\n", "            pass\n", "the best so far is that of the generation"),
    ]),
    Bugs("lpzero/runs/journal.py", [_T + "runs/test_replay.py", _T + "discover/test_campaign.py"], [
        ("        if self.position < len(self):  # written by another version of a library\n            self.cut(self.position)\n", "", "stale journal lines are not cut"),
    ]),
    Bugs("lpzero/exhaust/report.py", [_T + "exhaust/test_report.py", _T + "exhaust/test_exhaust.py"], [
        ("valid = judged.rho(scores, \"valid\")", "valid = judged.rho(scores, \"train\")", "ties broken by train"),
        ("-valid, entry.formula.complexity", "valid, entry.formula.complexity", "the worst on valid wins a tie"),
        ("continue  # finite on train only", "break  # finite on train only", "formulas after one that is not finite are lost"),
    ]),
    Bugs("lpzero/proxies/families/activations.py", _PROXIES, [
        ("np.linspace(0, d - 1, min(_CHANNELS, d)).round().astype(int)", "np.arange(min(_CHANNELS, d))", "MeCo's first channels instead of evenly spaced ones"),
        ("terms.append([max(least, 0.0) * d / len(picked)])", "terms.append([max(least, 0.0)])", "MeCo is not rescaled to all channels"),
        ("(around - around.roll(1, 0))", "(around - around.roll(1, 0))[1:]", "an open curve"),
        ("signs = torch.where(a > 0, 1.0, -1.0).flatten(1)", "signs = torch.where(a > 0, 1.0, 0.0).flatten(1)", "activations that are both off do not agree"),
    ]),
    Bugs("lpzero/proxies/families/activations.py", _PROXIES, [
        ("torch.linspace(0, 1, B)", "torch.linspace(1, 0, B)", "reversed noise levels"),
        ("centred = rows - rows.mean(1, keepdim=True)", "centred = rows", "cosines for correlations"),
        ("return 1.0 - float((apart ** (1 / 20)).sum() / (N * N - N))", "return 1.0 - float((apart ** (1 / 20)).sum() / (N * N))", "the diagonal counts in the mean"),
    ]),
    Bugs("lpzero/proxies/families/pruning.py", _PROXIES, [
        ("return scale * float(", "return float(", "the nuclear norm loses its scale"),
        ("(B * (a * g).sum(1, dtype=torch.float64)).square()", "(a * g).sum(1, dtype=torch.float64).square()", "Fisher of the batch's mean loss"),
        ("return _products(network, \"attention\")", "return _products(network, None)", "attention saliency of every matrix"),
        ("-float((product * weight.detach())", "float((product * weight.detach())", "GraSP with the other sign"),
    ]),
    Bugs("lpzero/proxies/flow.py", [_T + "proxies/test_devices.py"], [
        ("torch.ones(1, *network.entry, dtype=torch.float64, device=network.device)", "torch.ones(1, *network.entry, dtype=torch.float64)", "a tensor of a proxy on the processor instead of the network's device"),
    ]),
    Bugs("lpzero/proxies/families/attention.py", [_T + "proxies/test_attention.py"], [
        ("head.amax(1).abs()", "head.abs().amax(1)", "the largest absolute output of a head"),
        (".sum(-1, dtype=torch.float64).abs().sum())", ".sum(dtype=torch.float64).abs())", "head importance sums tokens before |.|"),
    ]),
    Bugs("lpzero/proxies/families/kernels.py", _PROXIES, [
        ("float(values[-1] / values[0])", "float(values[0] / values[-1])", "the condition number inverted"),
        ("traced.value / traced.n_tokens**2", "traced.value / traced.n_tokens", "the tangent kernel's trace over T"),
    ]),
    Bugs("lpzero/search/loops/trazor.py", _LOOPS, [
        ("        velocity[:shared] = parents[arch].velocity[:shared]\n", "", "lost velocities"),
        ("self.gamma1 * _gap(own, x) + self.gamma2 * _gap(leader, x)", "self.gamma2 * _gap(own, x) + self.gamma1 * _gap(leader, x)", "the two pulls are swapped"),
        ("positions.append(x + v)", "positions.append(x)", "blocks are compared without their velocity"),
        ("order = np.argsort(positions, kind=\"stable\")", "order = np.argsort(-positions, kind=\"stable\")", "the best block is redrawn"),
        ("is_better = scores[index] > scores[len(archs) + index]", "is_better = True", "the best of a line is the latest"),
    ]),
    Bugs("lpzero/search/loops/etas.py", _LOOPS, [
        ("parents = environment.best_observed(self.parents)", "parents = environment.best_observed(1)", "only the best is mutated"),
        ("idle = idle + 1 if winner == leader else 0", "idle = idle + 1", "patience counts every iteration"),
        ("best(pool, environment.scores(pool), self.chosen)", "pool[: self.chosen]", "mutants are chosen without the proxy"),
    ]),
    Bugs("lpzero/search/loops/regularised.py", _LOOPS, [
        ("members.popleft()", "members.pop()", "the youngest dies"),
        ("parent = best(drawn, environment.values(drawn), 1)", "parent = drawn[:1]", "a tournament without a winner"),
    ]),
    Bugs("lpzero/search/comparison.py", [_T + "search/test_metrics.py"], [
        ("max(1, round(TOP_SHARE * len(targets))) - 1", "max(1, round(TOP_SHARE * len(targets)))", "the best 1% off by one"),
        ("running = np.maximum.accumulate(targets)[:n]", "running = np.array(targets)[:n]", "the latest instead of the best so far"),
        ("target >= threshold", "target > threshold", "a target at the threshold does not reach it"),
    ]),
    Bugs("lpzero/search/improvement.py", ["tests/experiments/test_fronts.py", _T + "search/test_budget.py"], [
        ("np.lexsort((-quality, cost))", "np.lexsort((quality, cost))", "of equal cost the worse comes first"),
        ("np.argsort(-self.costs", "np.argsort(self.costs", "the start of a front takes the bins from the cheapest"),
        ("[1.0 + BEYOND]", "[1.0]", "the dearest candidate cannot improve the front"),
        ("n_failed + rank_targets", "rank_targets", "failed trainings are no worse than others"),
        ("values = np.append(values, expected[found[-1]])", "values = np.append(values, values.max())", "what is pending counts as the best"),
    ]),
    Bugs("lpzero/search/orders.py", [_T + "search/test_budget.py"], [
        (">= 0.5 - 1e-9", ">= 0.6", "another quantile than the median"),
    ]),
    Bugs("lpzero/search/surrogate.py", [_T + "search/test_surrogate.py", _T + "search/test_search.py"], [
        ("predictions[part] = scale.inverse(fitted.predict([rows[i] for i in part]))", "predictions[part] = fitted.predict([rows[i] for i in part])", "held-out predictions stay on the fitted scale"),
        ("scale.transform(targets[rest])", "targets[rest]", "the folds are fitted on the plain scale"),
        ("rest = np.setdiff1d(order, part)", "rest = np.sort(order)", "the held-out rows are fitted, too"),
    ]),
    Bugs("lpzero/search/environment.py", [_T + "search/test_sampler.py", *_LOOPS], [
        ("if arch in drawn or arch in taken or not self.allows(arch):", "if arch in drawn or not self.allows(arch):", "architectures seen before are drawn again"),
        ("return max(nearest, key=lambda other: self._n_equal_blocks(arch, other))", "return nearest[0]", "equal blocks do not decide between equally near"),
    ]),
    Bugs("lpzero/search/constraints.py", [_T + "search/test_search.py", _T + "search/test_sampler.py"], [
        ("value <= most)", "value < most)", "an upper bound is excluded"),
    ]),
    Bugs("lpzero/search/surrogate.py", [_T + "search/test_surrogate.py", _T + "search/test_search.py"], [
        ("np.asarray(self._centre + self._spread * mean)", "np.asarray(self._centre + mean)", "predictions are not scaled back"),
    ]),
    Bugs("lpzero/scores/gaussian.py", [_T + "scores/test_gaussian.py"], [
        ("float(self._half @ self._half) - logs", "float(self._half @ self._half) + logs", "the likelihood's determinant with the other sign"),
        ("self.kernel.variances(points) - explained", "self.kernel.variances(points)", "deviations that ignore the points"),
        ("targets - prior, lower=True", "targets, lower=True", "a prior mean that is not taken off the targets"),
        ("+ self._slope * beyond", "", "normal scores that end with the given numbers"),
        ("np.maximum(squares, 0) / _n_features(x)", "np.maximum(squares, 0)", "distances that grow with the number of features"),
    ]),
    Bugs("lpzero/supernet/selection.py", [_T + "supernet/test_selection.py"], [
        ("(sizes >= low) & (sizes < high)", "(sizes > low) & (sizes <= high)", "bins closed at the wrong end"),
        ("np.argsort(-scores[inside], kind=\"stable\")", "np.argsort(scores[inside], kind=\"stable\")", "the worst of a bin"),
    ]),
    Bugs("lpzero/supernet/saliency.py", [_T + "supernet/test_saliency.py"], [
        ("self.block_scores(self.sharing.largest())", "self.block_scores(self.sharing.largest()) + 1.0", "layers are not normalised by the supernet's own"),
        ("if layout.part(n) == term.part", "if layout.part(n) != term.part", "terms have the matrices of the other part"),
    ]),
    Bugs("lpzero/supernet/isomers.py", [_T + "supernet/test_isomers.py"], [
        ("[: counts[1]]] = 1", "[: counts[0]]] = 1", "the counts of two choices are swapped"),
    ]),
    Bugs("lpzero/supernet/saliency.py", [_T + "supernet/test_isomers.py", _T + "supernet/test_selection.py"], [
        ("of.table(factor, width, depth) / of.totals[:depth, None]", "of.table(factor, width, depth)", "choices are placed by plain SNIP"),
    ]),
    Bugs("lpzero/parallel/local.py", [_T + "parallel/test_parallel.py", _T + "cli/test_interruption.py"], [
        ("while os.getppid() == driver:", "while True:", "orphans live on"),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "pass", "workers die of the signal that their driver handles"),
    ]),
    Bugs("lpzero/parallel/streams.py", [_T + "parallel/test_parallel.py"], [
        ("if answer.is_final or deaths[index] >= _DEATHS:\n                yield index, answer", "if answer.is_final or deaths[index] >= _DEATHS:\n                pass", "an item that kills its worker is lost without a word"),
    ]),
    Bugs("lpzero/parallel/dask.py", [_T + "parallel/test_dask_questions.py"], [
        ("if not isinstance(error, UNANSWERED):\n                    raise", "if True:\n                    raise", "a question that is lost ends the run"),
        ("if time.monotonic() - lost_since > ASK_SECONDS:", "if time.monotonic() - lost_since >= 0:", "a question that is lost is not asked again"),
        ("except distributed.TimeoutError:  # the scheduler has waited for one\n            return None", "except ZeroDivisionError:\n            return None", "a moment without workers ends the run"),
        ("except UNANSWERED:  # the result was lost on its way here\n            self._check_connection()\n            return Died()", "except UNANSWERED:\n            raise", "a lost result ends the run"),
        ("    except UNANSWERED:\n        return\n", "    except ZeroDivisionError:\n        return\n", "versions that cannot be asked for end the run"),
        (" and not isinstance(version, OSError)", "", "a worker that was just lost is said to lack lpzero"),
        ("    if client is not None:\n        wait_while_connecting(client)\n", "", "a stream does not wait for a client that is connecting again"),
    ]),
    Bugs("lpzero/discover/evolution.py", [_T + "discover/test_known.py"], [
        ("if number >= self._end:", "if False:", "a state knows formulas of later ones"),
        ("is_last = len(self._ids) == self._count", "is_last = True", "two futures of one state share their keys"),
        ("is_last = len(self._ids) == self._count", "is_last = False", "every generation copies all keys"),
    ]),
    Bugs("lpzero/discover/evolution.py", [_T + "discover/test_evolution.py"], [
        ("if state is not self._last:", "if False:", "neighbours are left out that only another campaign has seen"),
        ("if state is not self._last:", "if True:", "every generation makes all neighbours again"),
    ]),
    Bugs("lpzero/scores/row_batches.py", [_T + "scores/test_row_batches.py"], [
        ("range(len(rows))[i : i + n_rows]", "range(len(rows))[i : i + n_rows - 1]", "the last row of a batch is left out"),
        ("    scores[~np.isfinite(scores).all(axis=1)] = np.nan", "    pass", "a formula without a score on some rows has scores on the others"),
        ("if size > MEMORY:", "if False:", "all sketches are in memory, however many"),
        ("return [answers[index] for index in range(len(batches))]", "return list(answers.values())", "batches are joined in the order of completion"),
        ("parts = repaired(sketches, rows, lambda: _answers(task, batches, workers))", "parts = _answers(task, batches, workers)", "a broken sketch ends the run"),
    ]),
    Bugs("lpzero/runs/journal.py", [_T + "runs/test_journal_memory.py", _T + "runs/test_replay.py"], [
        ("self._last = last\n", "pass\n", "a cut journal continues the seal of a line that is gone"),
        ("self._file.truncate(self._end(number))", "self._file.truncate(self._end(number) + 1)", "a byte of the first line that was cut stays"),
    ]),
)  # fmt: skip
