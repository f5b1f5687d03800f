"""The Gaussian process against the textbook's formulas, written out with plain inverses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm

from lpzero.errors import FitnessError
from lpzero.scores.gaussian import (
    Constant,
    Hyperparameters,
    InverseGamma,
    Kernel,
    NormalScale,
    OfFeatures,
    Plane,
    Process,
    Rough,
    Smooth,
    SparseProcess,
    most_likely,
    normal_targets,
    one_thread,
    some_rows,
)

KERNELS: dict[str, Kernel] = {
    "constant": Constant(0.7),
    "plane": Plane(1.3),
    "smooth": Smooth(0.9, 1.4),
    "a length per feature": Smooth(1.1, (0.5, 1.0, 4.0)),
    "rough": Rough(0.8, (0.5, 1.0, 4.0)),
    "sum": Constant(4.0) + Plane(0.25) + Smooth(0.3, 2.0),
    "of some features": Constant(1.0)
    + OfFeatures(Plane(0.25), -1, None)
    + OfFeatures(Smooth(0.3, 2.0), 0, -1),
}


def naive(kernel: Kernel, a: Any, b: Any) -> float:
    """The covariance at two points (F,), one number at a time."""
    n = len(a)
    if isinstance(kernel, Constant):
        return kernel.variance
    if isinstance(kernel, Plane):
        return kernel.variance * sum(a[i] * b[i] for i in range(n)) / n
    if isinstance(kernel, Smooth):
        lengths = np.broadcast_to(kernel.length, n)
        far = sum(((a[i] - b[i]) / lengths[i]) ** 2 for i in range(n))
        return float(kernel.variance * np.exp(-far / (2 * n)))
    if isinstance(kernel, Rough):
        far = sum(((a[i] - b[i]) / kernel.length[i]) ** 2 for i in range(n))  # type: ignore[index]
        return float(kernel.variance * np.exp(-np.sqrt(far / n)))
    if isinstance(kernel, OfFeatures):
        return naive(kernel.kernel, a[kernel.start : kernel.stop], b[kernel.start : kernel.stop])
    return sum(naive(part, a, b) for part in kernel.parts)  # type: ignore[attr-defined]


def points(seed: int, n: int = 25, n_new: int = 6) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x, new = rng.normal(size=(n, 3)), 2 * rng.normal(size=(n_new, 3))
    return x, x @ [1.0, -2.0, 0.5] + np.sin(x[:, 0]), new


@pytest.mark.parametrize("name", KERNELS)
def test_mean_deviation_and_evidence_are_those_of_the_textbook(name: str) -> None:
    kernel, noise = KERNELS[name], 0.2
    x, y, new = points(0)
    prior, prior_new = 0.3 * x[:, 0], 0.3 * new[:, 0]
    process = Process(kernel, noise, x, y, prior)
    K = np.array([[naive(kernel, a, b) for b in x] for a in x])
    cross = np.array([[naive(kernel, a, b) for b in x] for a in new])
    own = np.array([naive(kernel, a, a) for a in new])
    inverse = np.linalg.inv(K + noise * np.eye(len(x)))
    np.testing.assert_allclose(kernel.between(x, x), K, atol=1e-12)
    np.testing.assert_allclose(kernel.variances(new), own, atol=1e-12)
    np.testing.assert_allclose(
        process.predict(new, prior_new), prior_new + cross @ inverse @ (y - prior), rtol=1e-9
    )
    variances = own - np.einsum("mi,ij,mj->m", cross, inverse, cross)
    np.testing.assert_allclose(process.deviations(new) ** 2, variances, atol=1e-9)
    both = process.distributions(new, prior_new)
    np.testing.assert_allclose(both[0], process.predict(new, prior_new), rtol=1e-9)
    np.testing.assert_allclose(both[1], process.deviations(new), atol=1e-12)
    expected = multivariate_normal(prior, K + noise * np.eye(len(x))).logpdf(y)
    assert process.evidence == pytest.approx(expected, rel=1e-9)


def test_an_unknown_factor_of_all_covariances_is_integrated_out() -> None:
    kernel, noise, factor = KERNELS["sum"], 0.2, InverseGamma(2.0, 3.0)
    x, y, _ = points(0, n=7)
    process = Process(kernel, noise, x, y)
    K = kernel.between(x, x) + noise * np.eye(len(x))
    shape, rate = factor
    student = multivariate_t(np.zeros(len(x)), rate / shape * K, df=2 * shape)
    assert process.evidence_of_scales(factor) == pytest.approx(student.logpdf(y), rel=1e-9)
    freedom, scale = process.student(factor)
    squares = float(y @ np.linalg.inv(K) @ y)
    assert freedom == 2 * shape + len(x)
    assert scale**2 == pytest.approx((rate + squares / 2) / (shape + len(x) / 2))


def test_the_evidence_chooses_the_hyperparameters_that_drew_the_targets() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(150, 2))
    grid = [Hyperparameters(Smooth(1.0, length), noise) for length in (0.1, 0.5, 3.0)
            for noise in (0.01, 0.3)]  # fmt: skip
    true = grid[2]
    K = true.kernel.between(x, x) + true.noise * np.eye(len(x))
    y = rng.multivariate_normal(np.zeros(len(x)), K)
    assert most_likely(grid, x, y, 150) == true
    evidences = [Process(*one, x, y).evidence for one in grid]
    assert max(evidences) == Process(*true, x, y).evidence
    assert most_likely([grid[1], grid[1]], x, y, 150) is grid[1]


def test_deviations_grow_away_from_the_points_up_to_the_prior() -> None:
    x, y, _ = points(2)
    process = Process(Smooth(1.0, 1.0), 1e-4, x, y)
    deviations = process.deviations(np.array([x[0], x[0] + 1.0, x[0] + 50.0]))
    assert deviations[0] < 0.02 < deviations[1] < deviations[2]
    assert deviations[2] == pytest.approx(1.0)
    assert process.predict(np.array([[1e3, 0.0, 0.0]]))[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-12, 0.1])
def test_repeated_points_constant_features_and_few_rows_are_no_failure(noise: float) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(size=(5, 2)), np.ones((5, 1))], axis=1)
    repeated = np.concatenate([x, x, x])
    y = np.tile(x[:, 0], 3)
    for kernel in KERNELS.values():
        process = Process(kernel, noise, repeated, y)
        found = process.predict(repeated)
        assert np.isfinite(found).all()
        assert np.isfinite(process.deviations(repeated)).all()
        np.testing.assert_allclose(found[:5], found[5:10], atol=1e-9)
    few = Process(Smooth(1.0, 1.0), noise, x, x[:, 0])
    assert np.corrcoef(few.predict(x), x[:, 0])[0, 1] > 0.99


def test_points_without_features_have_the_mean() -> None:
    process = Process(Smooth(1.0, 1.0), 0.5, np.zeros((4, 0)), np.full(4, 2.0))
    assert process.predict(np.zeros((2, 0))) == pytest.approx([2 * 4 / 4.5] * 2)


def test_infinite_points_are_refused() -> None:
    with pytest.raises(FitnessError, match="no usable covariances"):
        Process(Plane(1.0), 0.1, np.array([[np.inf], [1.0]]), np.zeros(2))


@pytest.mark.slow
def test_two_thousand_rows_choose_on_a_part_and_predict_from_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lpzero.scores import gaussian

    sizes: list[int] = []
    factor = gaussian._factor

    def watched(covariances: Any, noise: float) -> Any:
        sizes.append(len(covariances))
        return factor(covariances, noise)

    monkeypatch.setattr(gaussian, "_factor", watched)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(2000, 5))
    y = np.tanh(x[:, 0]) + 0.1 * rng.normal(size=2000)
    grid = [Hyperparameters(Smooth(1.0, length), 0.1) for length in (0.3, 1.0, 3.0)]
    chosen = most_likely(grid, x, y, 200)
    process = Process(*chosen, x, y)
    assert sizes == [200, 200, 200, 2000]
    new = rng.normal(size=(50, 5))
    assert np.corrcoef(process.predict(new), np.tanh(new[:, 0]))[0, 1] > 0.97
    assert len(process.deviations(new)) == 50


def test_some_rows_are_distinct_ordered_and_always_the_same() -> None:
    some = some_rows(1000, 200)
    assert len(set(some.tolist())) == 200
    assert (np.diff(some) > 0).all()
    assert (some == some_rows(1000, 200)).all()
    assert some_rows(7, 200).tolist() == list(range(7))


def test_one_thread_gives_the_same_bytes_again() -> None:
    x, y, new = points(5, n=120)
    with one_thread():
        first, again = (Process(KERNELS["sum"], 0.1, x, y).predict(new) for _ in range(2))
    assert first.tobytes() == again.tobytes()


def test_normal_scores_are_the_quantiles_of_ranks_and_go_on_beyond_the_given_numbers() -> None:
    numbers = np.array([3.0, 1.0, 2.0, 2.0, 10.0])
    scale = NormalScale(numbers)
    expected = norm.ppf((np.array([4.0, 1.0, 2.5, 2.5, 5.0]) - 0.5) / 5)
    np.testing.assert_allclose(scale(numbers), expected, atol=1e-12)
    assert scale(np.array([2.5]))[0] == pytest.approx(expected[[0, 2]].mean())
    grid = np.linspace(-50, 50, 401)
    rising = np.diff(scale(grid))
    assert (rising > 0).all(), "larger numbers have larger scores, beyond the range too"
    slope = expected.std() / numbers.std()
    assert scale(np.array([20.0]))[0] == pytest.approx(expected[4] + 10 * slope)
    assert scale(np.array([-1.0]))[0] == pytest.approx(expected[1] - 2 * slope)


def test_numbers_without_a_difference_have_the_score_zero() -> None:
    assert NormalScale(np.full(4, 7.0))(np.array([7.0, 9.0])).tolist() == [0.0, 0.0]


def test_normal_targets_keep_the_order() -> None:
    targets = np.array([5.0, -1.0, 3.0])
    assert normal_targets(targets) == pytest.approx(norm.ppf([2.5 / 3, 0.5 / 3, 1.5 / 3]))


def test_a_sparse_process_around_all_points_is_the_process() -> None:
    rng = np.random.default_rng(8)
    points, new = rng.standard_normal((40, 3)), rng.standard_normal((7, 3))
    targets = np.sin(points[:, 0]) + points[:, 1]
    chosen = Hyperparameters(Plane(0.5) + Rough(1.0, 2.0), 0.1)
    sparse = SparseProcess(chosen, points, targets, np.arange(40))
    expected = Process(*chosen, points, targets).predict(new)
    assert np.allclose(sparse.predict(new), expected, atol=1e-5)
    few = SparseProcess(chosen, points, targets, np.arange(25)).predict(new)
    ignorant = Process(*chosen, points[:25], targets[:25]).predict(new)
    assert np.abs(few - expected).mean() < np.abs(ignorant - expected).mean()
