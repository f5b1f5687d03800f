"""Branch tables: every mean equals the reference's, stored whole, rebuilt when broken."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lpzero.parallel import Workers
from lpzero.scores import branch_table as files
from lpzero.scores import stacks
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.matrices import Piece
from lpzero.scores.stacks import aligned_tensors, gather
from lpzero.scores.tabulation import Tabulated, tabulate, tabulator
from lpzero.scores.tabulation.basis import Basis
from lpzero.scores.tabulation.plain import sizes_of_sums, tabulate_plainly
from lpzero.sketches.builder import BuildReport, Sketches
from lpzero.sketches.sketch import SCHEMA, Sketch, SketchError, address_of, encode
from lpzero.sketches.store import Store
from primitives import naive
from primitives.enumeration import surviving_branches
from primitives.expressions import branch
from primitives.formula import Formula
from primitives.registry import UNARIES, forget, unary
from primitives.statistics import STATISTICS
from tests.lpzero.random_sketches import blocks_of, sketch
from tests.lpzero.scores.test_values import real

_ROUNDING = 1e-13  # of what is summed; less than a tenth of it is seen
# Their means are not computed from matrices. All others are the reference's to the last bit.
WITHOUT_MATRIX = ("zscore", "minmax", "log_softmax")


@pytest.mark.parametrize("name", [name for name in UNARIES if name != "disconnect"])
def test_a_stack_gives_each_matrix_what_it_gets_alone(name: str) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(5, 7, 3)) * np.logspace(-8, 8, 5)[:, None, None]
    primitive = UNARIES[name]
    assert stacks.takes_stacks(primitive)
    together = stacks.apply(primitive, values, 2.5)
    for one, matrix in zip(together, values, strict=True):
        np.testing.assert_array_equal(one, np.atleast_2d(primitive(matrix, 2.5)))


def test_a_body_that_reduces_in_its_own_way_is_called_matrix_by_matrix() -> None:
    @unary(latex="{x}", gives=UNARIES["zscore"].traits.gives)
    def halve_spread(x, xp):  # type: ignore[no-untyped-def]
        """x around its mean, half as far"""
        return (x + x.mean()) / 2

    try:
        primitive = UNARIES["halve_spread"]
        assert not stacks.takes_stacks(primitive)
        values = np.random.default_rng(0).normal(size=(3, 4, 2))
        expected = [primitive(matrix, 1.0) for matrix in values]
        np.testing.assert_array_equal(stacks.apply(primitive, values, 1.0), expected)
    finally:
        forget("halve_spread")


@pytest.mark.slow
@pytest.mark.parametrize("unaries", [1, 2])
def test_products_are_kept_of_every_surviving_matrix_chain(unaries: int) -> None:
    chains = surviving(unaries, same_statistic=True)
    assert len(chains.pairs) == len(STATISTICS) + 1
    for name in STATISTICS:
        kept = surviving_branches(name, unaries)
        matrices = chains.chains[name][: chains.n_matrices[name]]
        assert {b.chain for b in kept.matrices} == set(matrices)
        assert {b.chain for b in kept.terms} == set(chains.chains[name])


@pytest.mark.slow
def test_means_equal_the_reference() -> None:
    chains = surviving(2)
    drawn = [sketch(seed, n_blocks=1 + seed) for seed in range(3)]
    table = branch_table(drawn, chains)
    rng = random.Random(0)
    for name in STATISTICS:
        for row in rng.sample(range(len(chains.chains[name])), 40):
            expression = branch(name, *chains.chains[name][row])
            expected = [naive.block_values(expression, blocks_of(one)) for one in drawn]
            for arch, values in enumerate(expected):
                found = table.block_means[name][row, arch]
                if chains.chains[name][row][-1:] in [(last,) for last in WITHOUT_MATRIX]:
                    np.testing.assert_allclose(
                        found[: len(values)],
                        values,
                        rtol=1e-13,
                        atol=1e-15,
                        err_msg=str(expression),
                    )
                else:
                    np.testing.assert_array_equal(
                        found[: len(values)], values, err_msg=str(expression)
                    )
                assert not found[len(values) :].any()


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["mul", "matmul"])
def test_products_of_all_pairs_equal_the_reference(operation: str) -> None:
    chains = surviving(1, same_statistic=True)
    drawn = [sketch(seed) for seed in range(2)]
    table = branch_table(drawn, chains)
    for pair in chains.pairs:
        lists = [chains.chains[name][: chains.n_matrices[name]] for name in pair]
        for left in lists[0][::2]:
            for right in lists[1][::3]:
                formula = Formula.of(operation, (pair[0], left), (pair[1], right))
                expected = [naive.score(formula, blocks_of(one)) for one in drawn]
                found = table.product(operation, (pair[0], left), (pair[1], right))
                # What cancels is compared with the size of what cancelled.
                np.testing.assert_allclose(
                    found, expected, rtol=1e-9, atol=1e-14, err_msg=str(formula)
                )


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["mul", "matmul"])
def test_products_of_chains_that_follow_from_others_equal_the_reference(operation: str) -> None:
    chains = surviving(2)
    drawn = [sketch(seed) for seed in range(2)]
    table = branch_table(drawn, chains)
    matrices = chains.chains["W"][: chains.n_matrices["W"]]
    basis = Basis.of(chains.trees["W"], len(matrices))
    following = [chain for chain, own in zip(matrices, basis.own, strict=True) if own < 0]
    assert len(basis.followers) == 21
    assert basis.size == 98  # of 144 chains
    rng = random.Random(0)
    for left, right in [
        *((one, rng.choice(matrices)) for one in following),
        *((rng.choice(matrices), one) for one in following),
        *((one, rng.choice(following)) for one in following),
    ]:
        formula = Formula.of(operation, ("G", left), ("W", right))
        expected = [naive.score(formula, blocks_of(one)) for one in drawn]
        found = table.product(operation, ("G", left), ("W", right))
        absolute = 1e-13 * max(1.0, *(abs(value) for value in expected))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=absolute, err_msg=str(formula))


def test_chains_follow_from_others_only_if_those_are_there() -> None:
    # Softmax probabilities are not negative, so `neg` has no logarithm or root to add.
    chains = surviving(2)
    basis = Basis.of(chains.trees["S"], chains.n_matrices["S"])
    sums = [chains.chains["S"][row] for row, one in basis.followers.items() if one.column < 0]
    assert sums == [("zscore", "abs"), ("sqrt", "log")]


def test_a_chain_that_overflows_poisons_its_row_and_no_other() -> None:
    one = sketch(0)
    # No chain of two takes a float32 out of float64, so these numbers are larger.
    numbers = one.numbers.astype(np.float64)
    rows, kept, _ = one.shapes(0, "A")[0]
    numbers[: rows * kept] *= 1e90
    big = type(one)(one.header, numbers)
    chains = surviving(2)
    table = branch_table([one, big], chains)
    row = chains.rows["A", ("square", "square")]
    assert np.isfinite(table.totals["A"][row, 0])
    assert not np.isfinite(table.totals["A"][row, 1])
    assert np.isfinite(table.totals["W"]).all()
    assert np.isfinite(table.products["G", "W"]).all()


def test_a_chain_that_overflowed_has_no_products_though_its_inverse_is_finite() -> None:
    one, chains = sketch(0), surviving(2)
    big = type(one)(one.header, one.numbers.astype(np.float64))
    big.stored_matrices(0, "W")[0].values[...] *= 1e200
    [found] = branch_table([big], chains).products.values()
    of_rows = {chain: found[..., chains.rows["W", chain], 0] for chain in chains.chains["W"][:144]}
    assert np.isnan(of_rows["square", "inverse"]).all()
    assert np.isfinite(of_rows["abslog",]).any()


def test_pieces_hold_every_tensor_once() -> None:
    drawn = [sketch(seed) for seed in range(4)]
    tensors = [
        aligned
        for row, one in enumerate(drawn)
        for aligned in aligned_tensors(row, one, ("G", "W"))
    ]
    gathered = gather(tensors, 100, lambda tensor: tensor.matrix.true_columns)
    pieces = [Piece.of(together) for together in gathered]
    places = [tuple(place) for piece in pieces for place in piece.places.T]
    expected = [
        (arch, block, tensor)
        for arch, one in enumerate(drawn)
        for block in range(one.n_blocks)
        for tensor in range(len(one.shapes(block, "W")))
    ]
    assert sorted(places) == expected
    for piece in pieces:
        for index, (arch, block, tensor) in enumerate(piece.places.T):
            for name in ("G", "W"):
                matrix = drawn[arch].matrices(block, name)[tensor]
                np.testing.assert_array_equal(piece.matrix(name).values[index], matrix.values)
                assert piece.matrix(name).true_columns == matrix.true_columns
        assert piece.matrix("W").values.size <= max(100, piece.matrix("W").values[0].size)


def assert_like_plain(sketches: list[Sketch], unaries: int) -> None:
    """Every mean and product equals the plain tabulator's, up to the rounding of what is summed."""
    chains = surviving(unaries, same_statistic=unaries == 1)
    for one, fast in zip(sketches, tabulate(sketches, chains), strict=True):
        plain, sizes = tabulate_plainly(one, chains), sizes_of_sums(one, chains)
        assert fast.counts == plain.counts
        for part in ("means", "ends", "products"):
            numbers, expected, size = (getattr(table, part) for table in (fast, plain, sizes))
            assert numbers.keys() == expected.keys()
            for place in expected:
                is_lost = np.isnan(expected[place])
                np.testing.assert_array_equal(np.isnan(numbers[place]), is_lost)
                error = np.abs(numbers[place] - expected[place])
                assert (is_lost | (error <= _ROUNDING * size[place])).all(), (part, place)


@pytest.mark.slow
@pytest.mark.parametrize("unaries", [1, 2])
def test_random_sketches_have_the_tables_of_the_plain_tabulator(unaries: int) -> None:
    drawn = [sketch(seed, n_blocks=1 + seed) for seed in range(3)]
    assert_like_plain([*drawn, with_other_gradients(drawn[2])], unaries)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nano-flexibert", "nano-gpt2", "nano-rnn"])
def test_nano_sketches_have_the_tables_of_the_plain_tabulator(name: str) -> None:
    assert_like_plain(list(real(name))[:2], 1)


def with_other_gradients(one: Sketch) -> Sketch:
    """The sketch of a network with the same weights."""
    other = Sketch(one.header, one.numbers.copy())
    for block in range(other.n_blocks):
        for gradient in other.stored_matrices(block, "G"):
            gradient.values[...] *= np.float32(1.5)
    return other


def flat(table: Tabulated) -> np.ndarray:
    parts = (table.means, table.products, table.ends)
    return np.concatenate([array.ravel() for part in parts for array in part.values()])


@pytest.mark.slow
def test_a_table_has_the_same_bits_in_any_company() -> None:
    drawn = [sketch(seed) for seed in (0, 1, 2)]
    drawn += [with_other_gradients(one) for one in drawn]
    # A chain set of its own each time: nothing is known from the tables before.
    alone = []
    for one in drawn:
        surviving.cache_clear()
        alone.append(flat(tabulate([one], surviving(2))[0]))
    for order in ((0, 1, 2, 3, 4, 5), (5, 3, 1), (2, 5, 2), (4, 0, 1, 3)):
        together = tabulate([drawn[i] for i in order], surviving(2))
        for index, table in zip(order, together, strict=True):
            np.testing.assert_array_equal(flat(table), alone[index])


def test_equal_tensors_of_several_sketches_are_computed_once() -> None:
    drawn = [sketch(1), with_other_gradients(sketch(1))]
    counted = {}
    for kind, stacked in {
        "multiplied": tabulator._multiplied(drawn, surviving(1)),
        "alone": tabulator._alone(drawn, surviving(1), lambda tensor: False),
    }.items():
        n_distinct = n_tensors = 0
        for tensors in stacked:
            for alike in zip(*tensors, strict=True):
                stack = tabulator._Distinct.of(alike)
                n_distinct += len(stack.distinct)
                n_tensors += len(stack.tensors)
                for tensor, place in zip(stack.tensors, stack.places, strict=True):
                    equal = stack.distinct[place]
                    np.testing.assert_array_equal(tensor.matrix.values, equal.matrix.values)
        counted[kind] = n_distinct, n_tensors
    n_pairs = sum(len(drawn[0].shapes(block, "W")) for block in range(2))
    assert counted["multiplied"] == (3 * n_pairs, 4 * n_pairs)  # two gradients of each weight
    assert counted["alone"][0] * 2 == counted["alone"][1]


def test_a_file_gives_back_what_was_written_and_refuses_other_bytes() -> None:
    chains = surviving(1)
    [made] = tabulate([sketch(1)], chains)
    data = files.encode(made, chains, "one")
    read = files.decode(data, chains, "one")
    assert read.counts == made.counts
    for name in STATISTICS:
        np.testing.assert_array_equal(read.means[name], made.means[name])
    np.testing.assert_array_equal(read.products["G", "W"], made.products["G", "W"])
    for broken in (data[:-1], data[:100] + b"x" + data[101:], b"", data[8:]):
        with pytest.raises(files.BranchFileError):
            files.decode(broken, chains, "one")
    with pytest.raises(files.BranchFileError, match="other chains"):
        files.decode(data, surviving(2), "one")
    with pytest.raises(files.BranchFileError, match="another sketch"):
        files.decode(data, chains, "other")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Sketches:
    """Three sketches in a store."""
    store = Store(tmp_path_factory.mktemp("store"))
    addresses = []
    for seed in range(3):
        identity = {"schema": SCHEMA, "space": "drawn", "arch": seed, "options": {}}
        drawn = sketch(seed)
        addresses.append(str(address_of(identity)))
        named = Sketch({**drawn.header, **identity}, drawn.numbers)
        store.write("drawn", addresses[-1], encode(named))
    return Sketches(store, "drawn", addresses, BuildReport(3))


def files_of(sketches: Sketches) -> list[Path]:
    return sorted(sketches.store.folder.rglob("*.branches"))


def test_tables_are_made_once_and_the_same_by_one_and_two_jobs(stored: Sketches) -> None:
    chains = surviving(1)
    first = branch_table(stored, chains, workers=Workers(2))
    paths = files_of(stored)
    contents = [path.read_bytes() for path in paths]
    assert len(paths) == 3
    times = [path.stat().st_mtime_ns for path in paths]
    again = branch_table(stored, chains)
    assert [path.stat().st_mtime_ns for path in paths] == times
    for path in paths:
        path.unlink()
    alone = branch_table(stored, chains, workers=Workers(1))
    assert [path.read_bytes() for path in paths] == contents
    for name in STATISTICS:
        np.testing.assert_array_equal(first.means[name], again.means[name])
        np.testing.assert_array_equal(first.means[name], alone.means[name])


@pytest.mark.parametrize("damage", ["cut", "swapped", "old"])
def test_a_wrong_file_is_made_again(
    stored: Sketches, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    chains = surviving(1)
    first = branch_table(stored, chains)
    path, other = files_of(stored)[:2]
    whole = path.read_bytes()
    old = b"LPZBRT01" + whole[8:]  # written before files stated their sketch: no fault, no note
    path.write_bytes({"cut": whole[:-9], "swapped": other.read_bytes(), "old": old}[damage])
    again = branch_table(stored, chains)
    assert path.read_bytes() == whole
    assert ("rebuilding it" in caplog.text) == (damage != "old")
    np.testing.assert_array_equal(first.products["G", "W"], again.products["G", "W"])


def test_rows_pick_architectures_in_their_order(stored: Sketches) -> None:
    chains = surviving(1)
    both = branch_table(stored, chains)
    picked = branch_table(stored, chains, rows=[2, 0])
    np.testing.assert_array_equal(picked.totals["W"], both.totals["W"][:, [2, 0]])


def test_an_architecture_without_a_sketch_is_named(stored: Sketches) -> None:
    partial = Sketches(stored.store, stored.space, stored.addresses, stored.report)
    partial.failed = {1: "out of memory"}
    with pytest.raises(SketchError, match="architecture 1 has no sketch: out of memory"):
        branch_table(partial, surviving(1))
