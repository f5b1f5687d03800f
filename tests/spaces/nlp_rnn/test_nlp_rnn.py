"""Recurrent cells: broken recipes, the sampler, the model against the cells written by hand."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spaces.errors import ArchitectureError
from spaces.nlp_rnn import NLP_RNN, RnnSpace
from spaces.nlp_rnn.cell import is_previous, is_state
from spaces.nlp_rnn.variation import count_drawings

LSTM = {
    "i": {"op": "linear", "input": ["x", "h_prev_0"]},
    "i_act": {"op": "activation_sigm", "input": ["i"]},
    "g": {"op": "linear", "input": ["x", "h_prev_0"]},
    "g_act": {"op": "activation_tanh", "input": ["g"]},
    "f": {"op": "linear", "input": ["x", "h_prev_0"]},
    "f_act": {"op": "activation_sigm", "input": ["f"]},
    "o": {"op": "linear", "input": ["x", "h_prev_0"]},
    "o_act": {"op": "activation_sigm", "input": ["o"]},
    "kept": {"op": "elementwise_prod", "input": ["f_act", "h_prev_1"]},
    "added": {"op": "elementwise_prod", "input": ["i_act", "g_act"]},
    "h_new_1": {"op": "elementwise_sum", "input": ["kept", "added"]},
    "c_act": {"op": "activation_tanh", "input": ["h_new_1"]},
    "h_new_0": {"op": "elementwise_prod", "input": ["c_act", "o_act"]},
}
GRU = {
    "r": {"op": "linear", "input": ["x", "h_prev_0"]},
    "r_act": {"op": "activation_sigm", "input": ["r"]},
    "z": {"op": "linear", "input": ["x", "h_prev_0"]},
    "z_act": {"op": "activation_sigm", "input": ["z"]},
    "rh": {"op": "elementwise_prod", "input": ["r_act", "h_prev_0"]},
    "n": {"op": "linear", "input": ["x", "rh"]},
    "n_act": {"op": "activation_tanh", "input": ["n"]},
    "h_new_0": {"op": "blend", "input": ["z_act", "h_prev_0", "n_act"]},
}
PLAIN = {
    "f": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["f"]},
}
SMALL = RnnSpace(name="small", embedding=5, hidden=7, vocabulary=11, batch_shape=(2, 6))


def changed(**nodes: Any) -> dict[str, Any]:
    return PLAIN | nodes


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (changed(f={"op": "linear", "input": ["x", "h_new_0"]}), "^f: it is on a cycle"),
        (changed(f={"op": "linaer", "input": ["x", "h_prev_0"]}), "^f: op .*did you mean 'linear'"),
        (changed(f={"op": "linear", "input": ["x", "nowhere"]}), "^f: input 'nowhere' is neither"),
        (changed(f={"op": "linear", "input": ["x"]}), "^f: linear has 1 inputs, expected 2 or 3"),
        (changed(f={"op": "linear"}), r"^f: got \['op'\], expected an object with the fields op"),
        (changed(f={"op": "linear", "input": "x"}), "^f: input = 'x', expected a list of names"),
        (changed(f={"op": "linear", "input": ["x", "x"]}), "^f: it reads one input twice"),
        (changed(f={"op": "linear", "input": ["x", deep(1000)]}), "^f: input = a list, expected"),
        (changed(f=deep(1000)), "^f: got a list, expected an object"),
        (changed(g={"op": "activation_tanh", "input": ["f"]}), "^g: this node is unused"),
        (changed(f={"op": "elementwise_sum", "input": ["x", "h_prev_0"]}), "^f: only a linear"),
        (
            {
                "f": {"op": "linear", "input": ["x", "h_prev_0"]},
                "h_new_0": {"op": "elementwise_sum", "input": ["f", "h_prev_0"]},
            },
            "^h_new_0: it is fed straight from itself, h_prev_0",
        ),
        (
            changed(h_new_1={"op": "activation_tanh", "input": ["f"]}),
            "^h_prev_1: this source is unused",
        ),
        ({"h_new_1": PLAIN["h_new_0"], "f": PLAIN["f"]}, "^h_new_0: it is missing"),
        ({"a.b": PLAIN["f"]}, "^recipe: 'a.b' is not the name of a node"),
        ({f"node_{n}": PLAIN["f"] for n in range(10_000)}, "^recipe: it has 10,000 nodes"),
        (
            changed(**{f"h_new_{n}": PLAIN["h_new_0"] for n in range(4)}),
            "^h_new_3: a cell has 1 to 3 states",
        ),
        (deep(3), "^recipe: got a list"),
    ],
)
def test_a_broken_recipe_is_one_short_line_that_names_the_node(recipe: Any, message: str) -> None:
    with pytest.raises(ArchitectureError, match=message) as caught:
        NLP_RNN.from_json(recipe)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


def test_a_gate_may_let_a_state_through() -> None:
    assert NLP_RNN.from_json(GRU).n_states == 1
    assert NLP_RNN.from_json(LSTM).n_states == 2


def test_the_order_of_a_recipe_does_not_matter() -> None:
    shuffled = list(LSTM.items())
    random.Random(3).shuffle(shuffled)
    assert NLP_RNN.from_json(dict(shuffled)) == NLP_RNN.from_json(LSTM)


def test_the_released_sizes() -> None:
    # Three LSTM layers of 400 to 600, 600 to 600 and 600 to 400 with one bias per gate.
    layers = sum(4 * (d + d * n + d * d) for n, d in ((400, 600), (600, 600), (600, 400)))
    assert NLP_RNN.parameters(NLP_RNN.from_json(LSTM)) == 10_000 * 401 + layers


@pytest.mark.slow
def test_samples_follow_the_released_sampler() -> None:
    rng = random.Random(0)
    cells = [NLP_RNN.sample(rng) for _ in range(300)]
    assert Counter(cell.n_states for cell in cells).keys() == {1, 2, 3}
    nodes = {node.name: node for cell in cells for node in cell.nodes}
    assert nodes
    for cell in cells:
        assert len(cell.nodes) <= 3 + 7 + 1
        by_name = {node.name: node for node in cell.nodes}
        for node in cell.nodes:
            if is_state(node.name):
                assert not any(map(is_previous, node.input))
            for name in node.input if node.op == "linear" else ():
                is_source = name == "x" or is_previous(name)
                assert is_source or by_name[name].op.startswith("activation")


def test_drawings_of_the_smallest_sampler_are_counted_one_by_one() -> None:
    # One state and one further node: a linear with its activation, or elementwise nodes from one
    # candidate, which is too few. Two orders of inputs, three activations, the state either node.
    assert count_drawings(1, 1) == 2 * 3 * 2
    two_states = 0
    for first in range(2):  # a linear of three sources, or an elementwise node of two states
        if first == 0:
            inputs = sum(len(list(itertools.permutations(range(3), n))) for n in (2, 3))
            two_states += inputs * 3 * len(list(itertools.permutations(range(2), 2)))
        else:
            plain = 2 * 2  # sum or product, in two orders
            again = 2 * 6 + 6  # of three candidates: sum and product, and blends
            linear = (6 + 6) * 3 * len(list(itertools.permutations(range(3), 2)))
            two_states += plain * (again * 2 + linear)
    assert count_drawings(2, 0) == two_states


def weights_of(
    layer: nn.Module, recipe: dict[str, Any], name: str
) -> tuple[Tensor, Tensor, Tensor]:
    linear = layer.cell[layer.places[name]]
    by_input = dict(zip(recipe[name]["input"], linear.weights, strict=True))
    other = next(one for one in by_input if one != "x")
    return by_input["x"], by_input[other], linear.bias


@pytest.mark.slow
def test_the_lstm_recipe_is_torchs_lstm() -> None:
    model = SMALL.build(SMALL.from_json(LSTM), 4).double()
    tokens = SMALL.batch(0)
    x = model.embedding(tokens)
    for layer, (inputs, d) in zip(model.blocks, SMALL.widths(), strict=True):
        known = nn.LSTM(inputs, d, batch_first=True).double()
        parts = [weights_of(layer, LSTM, name) for name in ("i", "f", "g", "o")]
        with torch.no_grad():
            known.weight_ih_l0.copy_(torch.cat([part[0] for part in parts]))
            known.weight_hh_l0.copy_(torch.cat([part[1] for part in parts]))
            known.bias_ih_l0.copy_(torch.cat([part[2] for part in parts]))
            known.bias_hh_l0.zero_()
        expected, _ = known(x)
        x = layer(x)
        torch.testing.assert_close(x, expected)
    torch.testing.assert_close(model(tokens), x)


def test_the_gru_recipe_is_written_out() -> None:
    model = SMALL.build(SMALL.from_json(GRU), 1).double()
    layer, x = model.blocks[0], model.embedding(SMALL.batch(0))
    (rx, rh, rb), (zx, zh, zb), (nx, nh, nb) = (weights_of(layer, GRU, n) for n in ("r", "z", "n"))
    h = torch.zeros(2, 7, dtype=torch.float64)
    states = []
    for t in range(x.shape[1]):
        r = torch.sigmoid(x[:, t] @ rx.T + h @ rh.T + rb)
        z = torch.sigmoid(x[:, t] @ zx.T + h @ zh.T + zb)
        n = torch.tanh(x[:, t] @ nx.T + (r * h) @ nh.T + nb)
        h = z * h + (1 - z) * n
        states.append(h)
    torch.testing.assert_close(layer(x), torch.stack(states, 1))


def test_untrained_weights_have_the_released_ranges() -> None:
    model = NLP_RNN.build(NLP_RNN.from_json(PLAIN), 0)
    for name, parameter in model.named_parameters():
        expected = 0.1 if name.startswith("embedding") else len(parameter) ** -0.5
        largest = float(parameter.detach().abs().max())
        assert largest == 0 if name == "head.bias" else 0.98 * expected < largest <= expected


def test_a_later_step_does_not_change_an_earlier_one() -> None:
    model, tokens = SMALL.build(SMALL.from_json(LSTM), 0), SMALL.batch(0)
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % SMALL.vocabulary
    with torch.no_grad():
        a, b = model(tokens), model(other)
    assert torch.equal(a[:, :-1], b[:, :-1])
    assert not torch.equal(a[:, -1], b[:, -1])


def test_edits_reach_other_sizes_and_keep_the_states() -> None:
    rng = random.Random(2)
    start = NLP_RNN.sample(rng)
    cells = [start]
    for _ in range(200):
        cells.append(NLP_RNN.mutate(cells[-1], 0.3, rng))
    assert {cell.n_states for cell in cells} == {start.n_states}
    assert len({len(cell.nodes) for cell in cells}) >= 4
    assert max(len(cell.nodes) for cell in cells) <= 11
    assert len({node.op for cell in cells for node in cell.nodes}) == 7


def test_cells_that_differ_in_names_and_in_orders_without_meaning_are_one_network() -> None:
    recipe: dict[str, Any] = {
        "a": {"op": "linear", "input": ["x", "h_prev_0"]},
        "b": {"op": "activation_tanh", "input": ["a"]},
        "c": {"op": "activation_sigm", "input": ["a"]},
        "h_new_0": {"op": "elementwise_prod", "input": ["b", "c"]},
    }
    renamed = {
        "zz": {"op": "linear", "input": ["h_prev_0", "x"]},
        "y": {"op": "activation_sigm", "input": ["zz"]},
        "w": {"op": "activation_tanh", "input": ["zz"]},
        "h_new_0": {"op": "elementwise_prod", "input": ["y", "w"]},
    }
    twice = recipe | {
        "d": {"op": "linear", "input": ["x", "h_prev_0"]},  # a matrix of its own
        "c": {"op": "activation_sigm", "input": ["d"]},
    }
    other = recipe | {"c": {"op": "activation_tanh", "input": ["a"]}}
    keys = [NLP_RNN.network_key(NLP_RNN.from_json(of)) for of in (recipe, renamed, twice, other)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
