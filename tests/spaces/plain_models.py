"""The models once more in plain NumPy, from their papers: loops over heads, tokens and pixels.

Each function takes the model's parameters by name and the input, and gives the final hidden state.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import scipy.fft
from scipy.special import erf

Array = Any
Parameters = dict[str, Array]


class Named:
    """Parameters under a prefix: p["a.b"] and p.at("a")["b"] are the same."""

    def __init__(self, values: Parameters, prefix: str = "") -> None:
        self.values, self.prefix = values, prefix

    def __getitem__(self, name: str) -> Array:
        return self.values[self.prefix + name]

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.values

    def at(self, name: str) -> Named:
        return Named(self.values, f"{self.prefix}{name}.")


def norm(x: Array, p: Named, eps: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * p["weight"]
    return scaled + p["bias"] if "bias" in p else scaled


def linear(x: Array, p: Named) -> Array:
    made = x @ p["weight"].T
    return made + p["bias"] if "bias" in p else made


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max())
    return powers / powers.sum()


def gelu(x: Array) -> Array:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def attention(q: Array, k: Array, v: Array, heads: int, is_causal: bool = False) -> Array:
    """Of one sequence (T, width), token by token."""
    T, width = q.shape
    w = width // heads
    out = np.zeros_like(v)
    for head, t in itertools.product(range(heads), range(T)):
        part = slice(head * w, (head + 1) * w)
        seen = t + 1 if is_causal else T
        weights = softmax(np.array([q[t, part] @ k[s, part] for s in range(seen)]) / math.sqrt(w))
        out[t, part] = sum(weights[s] * v[s, part] for s in range(seen))
    return out


def gpt2(parameters: Parameters, arch: Any, tokens: Array) -> Array:
    p, d = Named(parameters), arch.d_model
    x = np.stack([word(p, token) for token in tokens]) * math.sqrt(d)
    x = x + p["position.weight"][: len(tokens)]
    for index, heads in enumerate(arch.n_head):
        block = p.at(f"blocks.{index}")
        y = norm(x, block.at("attention_norm"), 1e-5)
        qkv = y @ block["attention.c_attn.weight"] + block["attention.c_attn.bias"]
        mixed = attention(qkv[:, :d], qkv[:, d : 2 * d], qkv[:, 2 * d :], heads, is_causal=True)
        x = x + mixed @ block["attention.c_proj.weight"] + block["attention.c_proj.bias"]
        y = norm(x, block.at("feed_forward_norm"), 1e-5)
        y = y @ block["feed_forward.c_fc.weight"] + block["feed_forward.c_fc.bias"]
        y = y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))) / 2
        x = x + y @ block["feed_forward.c_proj.weight"] + block["feed_forward.c_proj.bias"]
    return norm(x, p.at("norm"), 1e-5)


def openlm(parameters: Parameters, arch: Any, tokens: Array) -> Array:
    p = Named(parameters)
    x = p["embedding.weight"][tokens]
    for index in range(arch.depth):
        block = p.at(f"blocks.{index}")
        y = norm(x, block.at("attention_norm"), 1e-5)
        q, k, v = np.split(linear(y, block.at("attention.input")), 3, axis=1)
        mixed = attention(turned(q, arch.heads), turned(k, arch.heads), v, arch.heads, True)
        x = x + linear(mixed, block.at("attention.output"))
        y = norm(x, block.at("feed_forward_norm"), 1e-5)
        gate, value = np.split(linear(y, block.at("feed_forward.input")), 2, axis=1)
        x = x + linear(gate / (1 + np.exp(-gate)) * value, block.at("feed_forward.output"))
    return norm(x, p.at("norm"), 1e-5)


def turned(x: Array, heads: int) -> Array:
    """Rotary positions: in each head features i and i + w/2 are a complex number, times a phase."""
    T, width = x.shape
    w, out = width // heads, x.copy()
    for t, head, i in itertools.product(range(T), range(heads), range(w // 2)):
        first = head * w + i
        second = first + w // 2
        turn = np.exp(1j * t * 10_000.0 ** (-2 * i / (w // 2 * 2)))
        number = (x[t, first] + 1j * x[t, second]) * turn
        out[t, first], out[t, second] = number.real, number.imag
    return out


def transformer_xl(
    parameters: Parameters, arch: Any, tokens: Array, segment: int, memory: int
) -> Array:
    """Token by token: each sees its segment up to itself, and the memory before the segment."""
    p, d = Named(parameters), arch.d_model
    x = np.stack([word(p, token) for token in tokens]) * math.sqrt(d)
    for index, heads in enumerate(arch.n_head):
        block, w = p.at(f"blocks.{index}"), d // heads
        of = block.at("attention")
        q, k, v = np.split(x @ of["input.weight"].T, 3, axis=1)
        mixed = np.zeros_like(x)
        for t, head in itertools.product(range(len(x)), range(heads)):
            part = slice(head * w, (head + 1) * w)
            seen = range(max(0, t // segment * segment - memory), t + 1)
            scores = [
                (q[t] + of["content_bias"])[part] @ k[s, part]
                + (q[t] + of["distance_bias"])[part]
                @ (of["distance.weight"] @ wave(t - s, d))[part]
                for s in seen
            ]
            weights = softmax(np.array(scores) / math.sqrt(w))
            mixed[t, part] = sum(a * v[s, part] for a, s in zip(weights, seen, strict=True))
        x = norm(x + linear(mixed, of.at("output")), block.at("attention_norm"), 1e-5)
        y = np.maximum(linear(x, block.at("feed_forward.input")), 0)
        y = linear(y, block.at("feed_forward.output"))
        x = norm(x + y, block.at("feed_forward_norm"), 1e-5)
    return x


def wave(distance: int, d: int) -> Array:
    angles = [distance / 10_000 ** (2 * i / d) for i in range(d // 2)]
    return np.concatenate([np.sin(angles), np.cos(angles)])


def word(p: Named, token: int) -> Array:
    """A token's vector from the table of its cluster, projected where there are projections."""
    index = 0
    while token >= len(p[f"embedding.tables.{index}"]):
        token -= len(p[f"embedding.tables.{index}"])
        index += 1
    vector = p[f"embedding.tables.{index}"][token]
    name = f"embedding.projections.{index}"
    return p[name] @ vector if name in p else vector


def flexibert(parameters: Parameters, arch: Any, tokens: Array) -> Array:
    p = Named(parameters)
    table = p.at("embeddings")
    x = table["word.weight"][tokens] + table["position.weight"][: len(tokens)]
    x = norm(x + table["segment.weight"][0], table.at("norm"), 1e-12)
    if "projection.weight" in table:
        x = linear(x, table.at("projection"))
    for index, layer in enumerate(arch.layers):
        block = p.at(f"blocks.{index}")
        x = flexibert_mixing(block.at("mixing"), layer, x)
        y = x
        for stack in range(layer.stacks):
            y = gelu(linear(y, block.at(f"feed_forward.stacks.{stack}")))
        x = residual(block.at("feed_forward.output"), y, x)
    return x


def residual(p: Named, y: Array, x: Array) -> Array:
    return norm(linear(y, p.at("dense")) + x, p.at("norm"), 1e-12)


def flexibert_mixing(p: Named, layer: Any, x: Array) -> Array:
    if layer.operation in ("dft", "dct"):
        y = linear(x, p.at("input"))
        w = y.shape[1] // layer.heads
        parts = [y[:, head * w : (head + 1) * w] for head in range(layer.heads)]
        if layer.operation == "dft":
            return np.concatenate([np.fft.fft2(part).real for part in parts], axis=1)
        return np.concatenate([scipy.fft.dctn(part, type=2) for part in parts], axis=1)
    inner = p.at("attention")
    q, k, v = (linear(x, inner.at(name)) for name in ("query", "key", "value"))
    if layer.operation == "wma":
        q = linear(q, inner.at("weight"))
    if not layer.operation.startswith("dsc"):
        return residual(p.at("output"), attention(q, k, v, layer.heads), x)
    halves = [attention(q, k, v, layer.heads // 2), spans(p, layer, x, q)]
    return residual(p.at("output"), np.concatenate(halves, axis=1), x)


def spans(p: Named, layer: Any, x: Array, q: Array) -> Array:
    """The half of the heads that convolves: a kernel per token and head, over the neighbours."""
    kernel, n = int(layer.operation[3:]), layer.heads // 2
    T, reach = len(x), kernel // 2
    span = np.zeros_like(x)
    for t, offset in itertools.product(range(T), range(kernel)):
        s = t + offset - reach
        if 0 <= s < T:
            span[t] += x[s] * p["depthwise.weight"][:, 0, offset]
    span = span @ p["pointwise.weight"][:, :, 0].T + p["span_bias"]
    kernels, values = linear(span * q, p.at("kernels")), linear(x, p.at("convolved"))
    w = values.shape[1] // n
    out = np.zeros_like(values)
    for t, head in itertools.product(range(T), range(n)):
        weights = softmax(kernels[t, head * kernel : (head + 1) * kernel])
        part = slice(head * w, (head + 1) * w)
        for offset in range(kernel):
            s = t + offset - reach
            if 0 <= s < T:
                out[t, part] += weights[offset] * values[s, part]
    return out


def patches(image: Array, p: Named, stride: int) -> Array:
    """A convolution without padding: (3, H, W) to (w, g, g)."""
    kernel = p["weight"]
    size = kernel.shape[-1]
    g = (image.shape[-1] - size) // stride + 1
    out = np.empty((len(kernel), g, g))
    for i, j in itertools.product(range(g), repeat=2):
        window = image[:, i * stride : i * stride + size, j * stride : j * stride + size]
        out[:, i, j] = (kernel * window).sum((1, 2, 3)) + p["bias"]
    return out


def feed_forward(x: Array, p: Named, eps: float) -> Array:
    y = gelu(linear(norm(x, p.at("feed_forward_norm"), eps), p.at("feed_forward.input")))
    return x + linear(y, p.at("feed_forward.output"))


def pit(parameters: Parameters, arch: Any, image: Array, stride: int) -> Array:
    p = Named(parameters)
    grid = patches(image, p.at("embedding.projection"), stride) + p["embedding.position"][0]
    x = np.concatenate([p["embedding.class_token"][0], grid.reshape(len(grid), -1).T])
    index = 0
    for stage, (heads, depth) in enumerate(zip(arch.heads, arch.depths, strict=True)):
        for layer in range(depth):
            block = p.at(f"blocks.{index}")
            if stage and layer == 0:
                x = pooled(x, block.at("pool"))
            w = x.shape[1]
            qkv = linear(norm(x, block.at("attention_norm"), 1e-6), block.at("attention.qkv"))
            mixed = attention(qkv[:, :w], qkv[:, w : 2 * w], qkv[:, 2 * w :], heads)
            x = x + linear(mixed, block.at("attention.output"))
            x = feed_forward(x, block, 1e-6)
            index += 1
    return norm(x, p.at("norm"), 1e-6)


def pooled(x: Array, p: Named) -> Array:
    """Each output channel reads one input channel, three by three, every second place."""
    before, g = x.shape[1], math.isqrt(len(x) - 1)
    grid = np.pad(x[1:].T.reshape(before, g, g), ((0, 0), (1, 1), (1, 1)))
    kernel, half = p["convolution.weight"], (g - 1) // 2 + 1
    out = np.empty((len(kernel), half, half))
    for channel, i, j in itertools.product(range(len(kernel)), range(half), range(half)):
        source = channel // (len(kernel) // before)
        window = grid[source, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        out[channel, i, j] = (kernel[channel, 0] * window).sum() + p["convolution.bias"][channel]
    return np.concatenate([linear(x[:1], p.at("class_token")), out.reshape(len(kernel), -1).T])


def autoformer(parameters: Parameters, arch: Any, image: Array, patch: int, clip: int) -> Array:
    p = Named(parameters)
    grid = patches(image, p.at("embedding.projection"), patch)
    x = np.concatenate([p["embedding.class_token"][0], grid.reshape(len(grid), -1).T])
    x = x + p["embedding.position"][0]
    for index, layer in enumerate(arch.layers):
        block = p.at(f"blocks.{index}")
        y = norm(x, block.at("attention_norm"), 1e-5)
        x = x + relative_attention(y, block.at("attention"), layer.heads, clip)
        x = feed_forward(x, block, 1e-5)
    return norm(x, p.at("norm"), 1e-5)


def relative_attention(x: Array, p: Named, heads: int, clip: int) -> Array:
    q, k, v = (linear(x, p.at(name)) for name in ("query", "key", "value"))
    T, w = len(x), q.shape[1] // heads
    out = np.zeros_like(v)
    for head, t in itertools.product(range(heads), range(T)):
        part = slice(head * w, (head + 1) * w)
        near = [between(p.at("key_positions"), t, s, T, clip) for s in range(T)]
        scores = np.array([q[t, part] @ (k[s, part] + near[s]) for s in range(T)])
        weights = softmax(scores / math.sqrt(w))
        for s in range(T):
            vector = between(p.at("value_positions"), t, s, T, clip)
            out[t, part] += weights[s] * (v[s, part] + vector)
    return linear(out, p.at("output"))


def between(p: Named, t: int, s: int, T: int, clip: int) -> Array:
    """The vector of a query at t and a key at s; the class token is at 0."""
    if t == 0 or s == 0:
        return p["vertical"][0] + p["horizontal"][0]
    g = math.isqrt(T - 1)
    down, right = (s - 1) // g - (t - 1) // g, (s - 1) % g - (t - 1) % g
    rows, columns = (1 + clip + max(-clip, min(clip, step)) for step in (down, right))
    return p["vertical"][rows] + p["horizontal"][columns]
