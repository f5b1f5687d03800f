"""Bugs in the formula language: `primitives`."""
# ruff: noqa: E501  # a replacement is easier to compare on one line

from __future__ import annotations

from tests.mutants.bugs import Bugs

_T = "tests/primitives/test_"

BUGS = (
    Bugs("primitives/guards.py", [_T + "unary.py", _T + "properties.py"], [
        ("spread > SPREAD_FLOOR * xp.amax(xp.abs(x))", "spread > SPREAD_FLOOR",
         "an absolute instead of a relative noise floor"),
        ("xp.log(xp.where(x > 0, x, 1.0))", "xp.log(xp.where(x > 0, x, 1e-9))",
         "log of a negative is the guard's epsilon instead of 0"),
        ("1.0 / xp.where(x < 0, -size, size)", "1.0 / xp.where(x <= 0, -size, size)",
         "1/0 is negative"),
        ("centred = x - xp.mean(x)", "centred = x - xp.mean(x, axis=0)",
         "the deviation is within columns"),
    ]),
    Bugs("primitives/operations.py", [_T + "unary.py", _T + "naive.py", _T + "properties.py"], [
        ("return powers / xp.sum(powers, axis=-2, keepdims=True)", "return powers / xp.sum(powers, axis=-1, keepdims=True)",
         "softmax is of rows"),
        ("grows=0.5,", "grows=1.0,", "the Frobenius norm of a sketch is rescaled as a sum"),
        ("return xp.abs(guards.logarithm(xp.abs(x), xp))", "return xp.abs(guards.logarithm(x, xp))",
         "abslog is 0 for negatives"),
        ("return 1.0 / (1.0 + guards.exponential(-x, xp))", "return 1.0 / (1.0 + guards.exponential(x, xp))",
         "a sigmoid that falls"),
    ]),
    Bugs("primitives/operations.py", [_T + "naive.py", _T + "symbolic.py", _T + "registry.py"], [
        ("sympy=lambda x, y, s: x - y", "sympy=lambda x, y, s: y - x",
         "a difference the wrong way round in sympy"),
    ]),
    Bugs("primitives/naive.py", [_T + "naive.py", _T + "tensors.py"], [
        ("matmul(a.values, factor.values) * a.column_scale", "matmul(a.values, factor.values)",
         "a product of cut matrices is not rescaled"),
        ("max(a.true_columns, b.true_columns))", "a.true_columns)",
         "a scalar before a matrix makes it one column wide"),
        ("return sum(means[1:], start=means[0]) / len(means)", "return sum(means[1:], start=means[0])",
         "the mean over a block's tensors is a sum"),
    ]),
    Bugs("primitives/naive.py", [_T + "naive_score.py", _T + "naive.py"], [
        ("formula.sign * value", "value", "the sign of a formula is lost"),
        ("numbers[0] - numbers[1] if operation", "numbers[1] - numbers[0] if operation",
         "a difference of terms the wrong way round"),
        ("except (ValueError, ZeroDivisionError):", "except ValueError:", "one over zero is asked for"),
    ]),
    Bugs("primitives/reductions.py", [_T + "naive_score.py", _T + "products.py", _T + "score_canonical.py"], [
        ("return (slice(n - 1), 1) if n > 1", "return (slice(1, n), 1) if n > 1", "`inner` leaves out the first block"),
        ("else (slice(1), 2)", "else (slice(1), 1)", "`inner` of a single block is all of it"),
        ("return slice(n - 1, n), 1", "return slice(1), 1", "`last` reads the first block"),
        ("low = min(weights) * values.low", "low = values.low", "the range of `inner` forgets the halved block"),
    ]),
    Bugs("primitives/canonical.py", [_T + "canonical.py", _T + "enumeration.py"], [
        ("if facts(a).interval == _ONE:", "if False:", "1·x is not merged with x"),
        ("if facts(b).interval == _ONE:", "if False:", "x·1 is not merged with x"),
        ("may_be_zero = _ZERO in facts(core).interval", "may_be_zero = False", "-1/x is -(1/x) at zero, too"),
        ("right[0] * (-1 if node.operation == \"sub\" else 1)", "right[0]", "a - b has the key of a + b"),
        ("if node.operation == \"mul\" and str(b) < str(a):", "if str(b) < str(a):", "a matrix product commutes"),
        ("sign, a, b = left[0] * right[0], left[1], right[1]", "sign, a, b = left[0], left[1], right[1]",
         "a product forgets the right side's sign"),
    ]),
    Bugs("primitives/facts.py", [_T + "pruning.py", _T + "properties.py", _T + "enumeration.py"], [
        ("cuts_negatives = primitive.traits.blind is Blind.NEGATIVE and operand.interval.low < 0",
         "cuts_negatives = False", "relu makes no zeros"),
        ("ends.append(_at(primitive, _TINY))", "pass", "the range of 1/x near zero ends at 1/0"),
        ("if primitive.is_linear or min(left.interval.low, right.interval.low) < 0:", "if primitive.is_linear:",
         "a product of negatives is taken as non-negative"),
    ]),
    Bugs("primitives/facts.py", [_T + "naive.py", _T + "meeting.py"], [
        ("if None not in (left.group, right.group) and left.group != right.group:", "if False:",
         "statistics of different groups meet as if aligned"),
        ("if Kind.SCALAR in (left.kind, right.kind):", "if left.kind is right.kind is Kind.SCALAR:",
         "a scalar meets a matrix as if it were one"),
    ]),
    Bugs("primitives/rewrites.py", [_T + "pruning.py", _T + "canonical.py", _T + "enumeration.py"], [
        ("about.interval.high <= 0", "about.interval.high < 0", "log of a non-positive is not a conflict"),
        ("is_exact = facts(source).interval.width <= definition.exact_width", "is_exact = True",
         "log(softmax) is rewritten where it underflows"),
        ("return Rewrite(\"inverse-pair\", rest, seen in pair.exact)", "return Rewrite(\"inverse-pair\", source, seen in pair.exact)",
         "sqrt(square(x)) is x"),
        ("Apply(\"neg\", Apply(primitive.name, operand.operand)), False)", "Apply(\"neg\", Apply(primitive.name, operand.operand)), True)",
         "1/(-x) = -(1/x) is called exact"),
    ]),
    Bugs("primitives/pruning.py", [_T + "pruning.py", _T + "enumeration.py"], [
        ("not _is_longer(rewrite.result, expression)", "True", "a formula is pruned in favour of a longer one"),
        ("return dict(about.steady).get(\"mean\") == 0.0 or about.interval == _ZERO", "return dict(about.steady).get(\"mean\") == 0.0",
         "x - x is not known to be zero"),
    ]),
    Bugs("primitives/enumeration.py", [_T + "enumeration.py"], [
        ("return n * (n - 1) // 2 if self.operation == \"sub\" else n * (n + 1) // 2", "return n * (n + 1) // 2",
         "an unordered family counts x - x"),
        ("choose = combinations if self.operation == \"sub\"", "choose = combinations if self.operation == \"add\"",
         "an unordered family leaves out x + x"),
        ("plain = tuple(m for m in flat[0] if m not in a.averages)", "plain = flat[0]",
         "a product of means is in two families"),
    ]),
    Bugs("primitives/canonical.py", [_T + "score_canonical.py", _T + "score_forms.py", _T + "score_pruning.py"], [
        ("met.is_odd != factor.is_odd", "met.is_odd or factor.is_odd", "x·x keeps the sign of x"),
        ("size = Outer(\"abs\", Formula.of_base(base))", "size = base", "the root of |x| is the root of x"),
        ("return -1, _plain(base, exponent)", "return 1, _plain(base, exponent)", "|x| of a negative x is x"),
        ("return Product(-value.sign if is_reversed else value.sign, raised.factors)", "return Product(value.sign, raised.factors)",
         "1/x ranks as x does"),
        ("Sum(tuple(part.with_sign(front * part.sign) for part in ordered))", "Sum(tuple(part.with_sign(1) for part in ordered))",
         "x - y is x + y"),
        ("is_mirrored = not factor.is_odd and interval not in NON_NEGATIVE", "is_mirrored = False",
         "|log x| of x below 1 ranks as x"),
    ]),
    Bugs("primitives/formula.py", [_T + "products.py", _T + "score_canonical.py", _T + "naive_score.py"], [
        ("return exponent.denominator == 1 or is_odd", "return True", "the root of a square is its base"),
        ("and self.depth > MAX_DEPTH", "and self.depth > MAX_DEPTH + 1", "formulas that operations make may be a level too deep"),
        ("ordered = [part for of in (sign, -sign) for part in parts if part.sign == of]", "ordered = parts",
         "a sum begins with what it subtracts"),
        ("exponents.get(power.base, Fraction(0)) + power.exponent", "power.exponent", "x·x is x"),
    ]),
    Bugs("primitives/outer.py", [_T + "naive_score.py", _T + "score_canonical.py", _T + "products.py"], [
        ("return xp.sign(x) * xp.log1p(xp.abs(x))", "return xp.log1p(xp.abs(x))", "signed_log has no sign"),
        ("return 1.0 / x", "return -1.0 / x", "one over x has the other sign"),
    ]),
    Bugs("primitives/facts.py", [_T + "score_canonical.py", _T + "score_pruning.py", _T + "products.py"], [
        ("Interval(left.low - right.high, left.high - right.low)", "Interval(left.low - right.low, left.high - right.high)",
         "the range of a difference"),
        ("is_positive = (left in NON_NEGATIVE) == (right in NON_NEGATIVE)", "is_positive = True",
         "a product with a negative is positive"),
    ]),
    Bugs("primitives/registry.py", [_T + "registry.py"], [
        ("too_high = high + _SLACK * max(1.0, abs(high))", "too_high = high + _SLACK",
         "the slack of a large bound is absolute"),
        ("if primitive.commutes and not swapped:", "if False:", "a false claim to commute is accepted"),
    ]),
    Bugs("primitives/symbolic.py", [_T + "symbolic.py", _T + "score_forms.py"], [
        ("left, right = VOCABULARY.block_mean(left), VOCABULARY.block_mean(right)", "left = VOCABULARY.block_mean(left)",
         "only one side is averaged over the block"),
        ("return left * right", "return left + right", "a product with a scalar is a sum"),
    ]),
    Bugs("primitives/mathml.py", [_T + "mathml.py"], [
        ("for where in (\"_\", \"^\") if where in scripts", "for where in (\"^\", \"_\") if where in scripts",
         "sub- and superscript are swapped"),
        ("_CHARACTERS.get(token, token)", "token", "a minus is a hyphen"),
    ]),
    Bugs("primitives/latex.py", [_T + "latex.py", _T + "score_forms.py"], [
        ("return rf\"{sign}\\left({text}\\right)\" if needs_brackets else f\"{sign}{text}\"", "return f\"{sign}{text}\"",
         "minus a sum has no brackets"),
        ("\"mean\": r\"\\frac{1}{N}\\sum_{i=1}^{N}\"", "\"mean\": r\"\\sum_{i=1}^{N}\"", "the mean over blocks is printed as a sum"),
    ]),
    Bugs("primitives/tensors.py", [_T + "tensors.py", _T + "naive.py"], [
        ("return Matrix(b.values.swapaxes(-2, -1), b.rows)", "return Matrix(b.values.swapaxes(-2, -1), max(b.rows, b.true_columns))",
         "the true width of a·bᵀ"),
        ("return Matrix(rows, b.true_columns)", "return Matrix(rows, max(b.kept, a.true_columns))",
         "the true width of a·b"),
        ("b.values[..., kept_columns(b.rows, a.kept), :]", "b.values[..., : a.kept, :]",
         "a·b of a cut matrix takes the first rows of b"),
        ("np.floor((np.arange(kept) + 0.5) * true / kept)", "np.floor(np.arange(kept) * true / kept)",
         "the kept columns start at the first instead of in the middle of a step"),
        ("min(columns, limit // rows)", "min(columns, limit // rows + 1)", "a cut matrix exceeds the limit"),
    ]),
)  # fmt: skip
