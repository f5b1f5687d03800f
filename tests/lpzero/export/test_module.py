"""The exported Python module: torch alone, the engine's scores on real models, nothing run."""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lpzero.errors import InputError
from primitives.errors import Rejected
from primitives.parser import parse
from primitives.properties import Interval, Monotone
from primitives.registry import forget, unary
from tests.lpzero.export.network_tensors import exported, module_of, sketched, tensors, written

BEST = "-mean(add(square(W), square(softmax(G))))"
WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
sys.path.insert(0, sys.argv[1])
import best
assert not {"lpzero", "primitives", "spaces"} & {name.split(".")[0] for name in sys.modules}
sys.exit(best.main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "best.py").write_text(written(exported(BEST), "python"))
    return tmp_path


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-W", "ignore", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_module_needs_neither_numpy_nor_us(folder: Path) -> None:
    done = run("-c", WITHOUT_NUMPY, str(folder), folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "self-test: 3 of 3 scores match the engine's\n"


@pytest.mark.slow
def test_the_self_test_finds_what_was_changed(folder: Path) -> None:
    file = folder / "best.py"
    assert "    return x * x" in file.read_text()
    file.write_text(file.read_text().replace("    return x * x", "    return x * x * x"))
    done = run("best.py", folder=folder)
    assert done.returncode == 1
    assert "0 of 3" in done.stdout
    assert "expected" in done.stderr


def test_importing_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    module_of(exported(BEST))
    assert capsys.readouterr() == ("", "")


def test_only_the_operations_of_the_formula_are_there() -> None:
    text = written(exported(BEST), "python")
    assert "op_softmax" in text
    assert "op_square" in text
    assert not any(word in text for word in ("op_log", "EXP_LIMIT", "matrix_product", "reduced"))


@pytest.mark.parametrize("text", [BEST, "sum(matmul(log_softmax(W), std(G)))"])
def test_every_name_in_the_module_is_defined_in_it(text: str) -> None:
    nodes = list(ast.walk(ast.parse(written(exported(text), "python"))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    known |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.alias))}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    assert {node.id for node in names} <= known


ON_MODELS = (
    BEST,
    "sum(add(square(inverse(H)), log_softmax(fro(A))))",
    "sum(mul(l1(S), std(J)))",
    "sum(matmul(W, G))",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss", "text"),
    [
        *((name, "auto", text) for name in ("nano-gpt2", "nano-flexibert") for text in ON_MODELS),
        *(
            (name, loss, "sum(mul(l1(G), std(J)))")
            for name, loss in (
                ("nano-gpt2", "cotangent"),
                ("nano-flexibert", "ones"),
                ("pit", "auto"),
                ("pit", "labels"),
            )
        ),
    ],
)
def test_models_score_as_in_the_engine(name: str, loss: str, text: str) -> None:
    space, arch, options, values = sketched(name, loss)
    expected = values.score(parse(text))
    assert not isinstance(expected, Rejected)
    model = space.build(arch, options.seed)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    model.train()
    module = module_of(exported(text, limit=500, loss=loss, batch_seed=2))
    found = module.score_model(model, space.batch(options.batch_seed))
    assert found == pytest.approx(expected[0], rel=1e-5)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


class Plain(nn.Module):
    """A transformer that knows nothing of us."""

    def __init__(self) -> None:
        super().__init__()
        layer: Any = nn.TransformerEncoderLayer
        self.embedding = nn.Embedding(20, 8)
        self.layers = nn.ModuleList(layer(8, 2, 16, batch_first=True) for _ in range(3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for one in self.layers:
            x = one(x)
        return x


def test_a_plain_model_needs_a_loss_and_names() -> None:
    torch.manual_seed(0)
    model, tokens = Plain(), torch.arange(12).view(2, 6)
    module = module_of(exported("sum(mul(fro(A), l1(mul(W, G))))"))
    loss = lambda output, _: (output * output).sum()  # noqa: E731
    with pytest.raises(ValueError, match="block 0 has no A"):
        module.score_model(model, tokens, loss)
    found = module.score_model(model, tokens, loss, taps={"A": ["linear1"]})
    assert found > 0
    assert (
        module.score_model(model, tokens, loss, list(model.layers)[:1], {"A": ["linear1"]}) < found
    )
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    assert module.score_model(model, tokens, loss, taps={"A": ["linear1"]}) == pytest.approx(found)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    with pytest.raises(ValueError, match="no list of blocks"):
        module.statistics(nn.Linear(2, 2), tokens)
    with pytest.raises(ValueError, match="of 2 blocks only 1 were run"):
        module.statistics(model, tokens, loss, [model.layers[0], nn.Linear(2, 2)])
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_new_primitive_is_exported_like_any_other() -> None:
    @unary(latex=r"\tanh\left({x}\right)", range=Interval(-1, 1), monotone=Monotone.INCREASING)
    def tanh(x: Any, xp: Any) -> Any:
        """tanh x"""
        return xp.tanh(x)

    try:
        module = module_of(exported("sum(tanh(W))"))
        mean = [sum(w.double().tanh().mean() for w in b["W"]) / len(b["W"]) for b in tensors()]
        assert module.score(tensors(), limit=None) == pytest.approx(float(sum(mean)))
    finally:
        forget("tanh")


OUTSIDE = 2.0


def test_a_body_that_leans_on_its_surroundings_is_refused() -> None:
    @unary(latex="h({x})", monotone=Monotone.INCREASING)
    def half(x: Any, xp: Any) -> Any:
        return x / OUTSIDE

    try:
        with pytest.raises(InputError, match="uses 'OUTSIDE'"):
            written(exported("sum(half(W))"), "python")
    finally:
        forget("half")


def test_blocks_are_asked_for() -> None:
    with pytest.raises(ValueError, match="at least one"):
        module_of(exported("mean(W)")).score([])
