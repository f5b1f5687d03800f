from __future__ import annotations

import pytest

from primitives import parse
from primitives.pruning import ALL_RULES, OUTER_RULES, Rule, check
from tests.formula_keys import key_up_to_sign

DEPTH = frozenset({"depth"})


@pytest.mark.parametrize("rule", OUTER_RULES.values(), ids=lambda rule: rule.name)
def test_every_rule_rejects_its_example_and_no_longer_when_it_is_off(rule: Rule) -> None:
    found = check(parse(rule.example))
    assert found is not None
    assert (found.rule, found.reason) == (rule.name, rule.reason)
    again = check(parse(rule.example), ALL_RULES - {rule.name, "constant"})
    assert again is None or again.rule != rule.name


@pytest.mark.parametrize("rule", [rule for rule in OUTER_RULES.values() if rule.kept],
                         ids=lambda rule: rule.name)  # fmt: skip
def test_what_a_rule_keeps_ranks_alike_and_is_not_rejected(rule: Rule) -> None:
    assert rule.kept is not None
    assert check(parse(rule.kept)) is None
    if rule.name != "constant-factor":  # a constant is not part of the canonical form
        one, other = parse(rule.example), parse(rule.kept)
        assert key_up_to_sign(one, DEPTH) == key_up_to_sign(other, DEPTH)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("mul(depth, log(sum(W)))", "changes-sign"),
        ("mul(depth, inverse(sum(W)))", "changes-sign"),
        ("mul(depth, sqrt(abs(sum(W))))", None),
        ("mul(depth, square(sum(W)))", None),
        ("mul(depth, inverse(sum(log_softmax(S))))", None),
        ("mul(depth, sqrt(sum(add(square(W), fro(A)))))", None),
        ("mul(sqrt(depth), inverse(snip), sum(W))", None),
        ("mul(depth, square(abs(sum(W))))", "idle-operation"),
        ("mul(depth, inverse(inverse(sum(l1(W)))))", None),
        ("mul(depth, sqrt(square(sum(W))))", "undone-operation"),
        ("mul(depth, abs(abs(sum(W))))", "idle-operation"),
        ("mul(depth, sum(sqrt(square(W))))", "inverse-pair"),
        ("mul(depth, sum(log_softmax(fro(A))))", "degenerate-scalar"),
        ("mul(sum(l1(W)), last(params), inverse(sum(l1(W))))", "cancelling-factors"),
        ("head(ffn)", "not-at-ends"),
        ("mul(embedding(params), head(width), embedding(fro(W)))", None),
        ("mul(embedding(params), head(S))", "not-at-ends"),
        ("add(sum(fro(W)), depth, snip, sum(params), first(width))", "too-many-factors"),
        ("mul(depth, square(sum(params)), mul(a, b))", None),
        ("mul(depth, sqrt(sqrt(sum(params))))", None),
        ("mul(depth, sqrt(depth), snip)", None),
        ("mul(sqrt(depth), sqrt(sqrt(depth)), inverse(snip))", None),
        ("mul(depth, depth, snip)", None),
        ("mul(depth, abs(depth), snip)", "repeated-factor"),
        ("mul(sum(params), sqrt(sum(params)), snip)", "repeated-factor"),
        ("mul(depth, sqrt(sqrt(sqrt(sqrt(snip)))))", "exponent"),
        ("add(signed_log(grasp), log(snip))", None),
        ("signed_log(sum(W))", "monotone-whole"),
        ("log(sum(params))", "monotone-whole"),
        ("abs(sum(W))", None),
        ("sub(depth, depth)", "cancelling-sum"),
        ("sum(mul(fro(W), params))", None),
        ("last(mean(params))", "degenerate-scalar"),
        ("sum(relu(params))", "no-effect"),
    ],
)
def test_rules_follow_from_ranges(text: str, rule: str | None) -> None:
    found = check(parse(text))
    assert (None if found is None else found.rule) == rule


def test_the_number_of_factors_is_a_parameter() -> None:
    text = "mul(a, b, c, d, e)"
    assert check(parse(text), max_factors=5) is None
    found = check(parse("mul(a, b)"), max_factors=1)
    assert found is not None
    assert found.rule == "too-many-factors"
