"""Networks on torch's device meta: no operation mixes devices, and none reads a number on the way.

There tensors have no numbers, and operations refuse tensors of another device, so that a tensor
that code makes on the processor instead of the network's device is found without an accelerator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import spaces
from lpzero.proxies import Network
from lpzero.statistics.extraction import extract
from spaces.flexibert import FlexiBertArch, Layer
from tests.lpzero.export.network_tensors import exported, module_of
from tests.lpzero.proxies import test_conformance
from tests.lpzero.proxies.test_conformance import MEASURES, NETWORKS, TINY

pytestmark = pytest.mark.slow

# Every proxy runs on meta. These copy tensors to the processor before their score is known; of
# those that share a pass the first one does.
COPIED = {
    "activation-distance": "compares patterns of signs, packed into bits by NumPy",
    "activation-distance-normalised": "the same",
    "linear-regions": "counts patterns of signs, packed into bits by NumPy",
    "swap": "the same",
    "ntk-condition": "adds up the kernel (B, B) in float64",
    "ntk-trace": "the same, for all that read the gradients of single inputs",
}


class Numbers(TorchDispatchMode):
    """Gives ones where a score is read, as a number or as a copy on the processor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_copies = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = func.overloadpacket.__name__, kwargs or {}
        if name == "_local_scalar_dense" and args[0].is_meta:
            return 1.0 if args[0].is_floating_point() else 1
        if name == "_to_copy" and args[0].is_meta and named.get("device") == torch.device("cpu"):
            self.n_copies += 1
            return torch.ones(args[0].shape, dtype=named.get("dtype") or args[0].dtype)
        return func(*args, **named)


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_extraction_stays_on_its_device_and_reads_nothing(make: Any) -> None:
    network = make()
    if make is test_conformance.segmented:
        # Its clusters of words pick their tokens by value, as GPT-2's do where it has several.
        with pytest.raises(NotImplementedError, match="nonzero"):
            extract(network.model.to("meta"), network.tokens)
        return
    found = extract(network.model.to("meta"), network.tokens)
    values = [m.values for at in found.blocks for of in at.values() for m in of]
    assert values
    assert all(value.is_meta for value in values)


def test_every_proxy_stays_on_its_device() -> None:
    arch = FlexiBertArch(16, (Layer("sdp", 2, 24, 1),))
    network = Network(TINY.build(arch, 0).to("meta"), TINY.batch(0))
    copied = set()
    for name, measure in MEASURES.items():
        with Numbers() as numbers:
            measure.function(network)
        if numbers.n_copies:
            copied.add(name)
    assert copied == set(COPIED)
    assert network.device == torch.device("meta")


def test_the_page_lists_the_proxies_that_copy() -> None:
    page = (Path(__file__).parents[3] / "docs" / "your-own-model.md").read_text()
    rows = [line.strip() for line in page.splitlines() if line.strip().startswith("| `")]
    assert rows == [f"| `{name}` | {reason} |" for name, reason in COPIED.items()]


def test_a_training_step_stays_on_its_device() -> None:
    network = test_conformance.decoder()
    model = network.model.to("meta")
    optimiser = torch.optim.AdamW(model.parameters())
    tokens = network.tokens.to("meta")
    model.token_losses(model(tokens), tokens).mean().backward()  # type: ignore[operator]
    optimiser.step()
    assert all(p.grad is not None and p.grad.is_meta for p in model.parameters())


def test_a_supernet_stays_on_its_device() -> None:
    space = spaces.get("nano-autoformer")
    supernet = space.supernet(0).to("meta")
    found = extract(supernet.largest, space.batch(0), with_ends=False, names="WG")
    assert all(m.values.is_meta for at in found.blocks for of in at.values() for m in of)


def test_an_exported_module_stays_on_its_device() -> None:
    network = test_conformance.decoder()
    module = module_of(exported("mean(add(abs(W), abs(G)))"))
    with Numbers():
        assert isinstance(
            module.score_model(network.model.to("meta"), network.tokens.to("meta")), float
        )
