"""The classic proxies written as formulas, as far as the language can express them.

Sources: Table 1 of LPZero and the papers it cites. Two differences hold for all of them: a block's
tensors count equally (the mean over tensors of their values, not the sum), and only the weight
matrices of blocks are seen (no embeddings, biases or norms).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from primitives.formula import Formula
from primitives.parser import parse


class Fidelity(Enum):
    """How well the formula says what the proxy says."""

    EXACT = "exact"  # the proxy's expression on each tensor
    RESCALED = "rescaled"  # a mean over elements where the proxy has a sum
    KIN = "kin"  # a near relative: the language lacks a part
    NONE = "none"  # cannot be expressed


@dataclass(frozen=True, slots=True)
class Classic:
    """text: the formula, None if there is none; note: what differs, and why."""

    name: str
    definition: str
    text: str | None
    fidelity: Fidelity
    note: str

    @property
    def formula(self) -> Formula | None:
        return None if self.text is None else parse(self.text)


_EXACT, _RESCALED, _KIN, _NONE = Fidelity

CLASSICS: tuple[Classic, ...] = (
    Classic("snip", "sum |dL/dW * W|", "sum(l1(mul(G, W)))", _EXACT,
            "A tree: l1 after the product. With two branches, mul(abs(G), abs(W)) is its mean."),
    Classic("synaptic-saliency", "sum dL/dW * W", "sum(mul(G, W))", _RESCALED,
            "The language has no signed sum; the mean differs by the element count."),
    Classic("synflow", "sum dL/dW * W", "sum(mul(G, W))", _RESCALED,
            "The same formula on other statistics: absolute weights and an input of ones."),
    Classic("grad-norm", "||dL/dW||_F", "sum(fro(G))", _EXACT, "One norm per weight matrix."),
    Classic("logsynflow", "sum W * log|dL/dW|", "sum(mul(W, log(abs(G))))", _RESCALED,
            "As Table 1 of LPZero writes it; its original takes log(1 + gradient) of synflow."),
    Classic("fisher", "sum (dL/dA * A)^2", "sum(square(mul(G, W)))", _KIN,
            "The gradient at activations is not a statistic; weights stand in for activations."),
    Classic("attention-confidence", "mean over heads of max(attention)", "sum(square(S))", _KIN,
            "There is no maximum; the mean squared probability also grows with a peaked head."),
    Classic("softmax-confidence", "mean over heads of max(softmax)", "sum(std(S))", _KIN,
            "As attention confidence: the spread of the probabilities stands in for the maximum."),
    Classic("synaptic-diversity", "sum ||dL/dW||_nuc * ||W||_nuc", "sum(mul(fro(G), fro(W)))",
            _KIN, "Frobenius norms bound the nuclear ones; singular values are not a primitive."),
    Classic("jacobian-covariance", "eigenvalues of the correlations of J", "sum(matmul(J, J))",
            _KIN, "J times its transpose is the Gram matrix; eigenvalues are not a primitive."),
    Classic("head-importance", "|Att * dL/dAtt|", None, _NONE,
            "The gradient at the attention output is not a statistic, nor that at A, H or S."),
    Classic("grasp", "-(Hessian dL/dW) * W", None, _NONE,
            "A Hessian product needs a second backward pass; the paper leaves it out as well."),
    Classic("activation-distance", "Hamming distance of activation patterns", None, _NONE,
            "Compares the inputs of a batch pair by pair; no primitive tells inputs apart."),
    Classic("parameters", "number of parameters", None, _NONE,
            "Left out on purpose: what only counts is pruned as constant and kept as a counter."),
    Classic("lpzero-flexibert", "mean (-H)^2 + log softmax(||A||_F), equation 2 as released",
            "mean(add(square(neg(H)), log_softmax(fro(A))))", _EXACT,
            "log softmax of a scalar is 0, so its score is that of mean(square(H))."),
    Classic("lpzero-flexibert-typeset", "sum (1/H)^2 + log softmax(||A||_F), equation 2 as typeset",
            "sum(add(square(inverse(H)), log_softmax(fro(A))))", _EXACT,
            "As above, with the reversal of H printed as a fraction: sum(square(inverse(H)))."),
    Classic("lpzero-gpt2", "the released GPT-2 formula",
            "-mean(add(square(W), square(softmax(G))))", _EXACT,
            "The released code's l1 divides by the element count: l1 of a square is its mean."),
)  # fmt: skip
