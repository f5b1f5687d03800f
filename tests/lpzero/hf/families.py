"""Tiny configurations of the families that are tested: two layers, 16 wide."""

from __future__ import annotations

from typing import Any

_HALF: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
_TEXT = _HALF | {"vocab_size": 40, "max_position_embeddings": 32}
_GROUPED = _TEXT | {"num_attention_heads": 4, "num_key_value_heads": 2}
_IMAGES = _HALF | {"image_size": 16, "patch_size": 4}

FAMILIES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_embd": 16,
        "n_head": 2,
        "vocab_size": 40,
        "n_positions": 32,
    },
    "gpt-neox": {"model_type": "gpt_neox", **_TEXT},
    "llama": {"model_type": "llama", **_GROUPED},
    "mistral": {"model_type": "mistral", **_GROUPED},
    "qwen2": {"model_type": "qwen2", **_GROUPED},
    "qwen3": {"model_type": "qwen3", "head_dim": 8, **_GROUPED},
    "opt": {
        "model_type": "opt",
        "num_hidden_layers": 2,
        "hidden_size": 16,
        "word_embed_proj_dim": 16,
        "num_attention_heads": 2,
        "ffn_dim": 32,
        "vocab_size": 40,
        "max_position_embeddings": 32,
    },
    "bert": {"model_type": "bert", **_TEXT},
    "bert-masked": {"model_type": "bert", "architectures": ["BertForMaskedLM"], **_TEXT},
    "roberta": {"model_type": "roberta", **_TEXT},
    "distilbert": {
        "model_type": "distilbert",
        "n_layers": 2,
        "dim": 16,
        "n_heads": 2,
        "hidden_dim": 32,
        "vocab_size": 40,
        "max_position_embeddings": 32,
    },
    "electra": {"model_type": "electra", "embedding_size": 8, **_TEXT},
    "t5": {
        "model_type": "t5",
        "num_layers": 2,
        "d_model": 16,
        "num_heads": 2,
        "d_kv": 8,
        "d_ff": 32,
        "vocab_size": 40,
    },
    "vit": {"model_type": "vit", **_IMAGES},
    "deit": {"model_type": "deit", "architectures": ["DeiTForImageClassification"], **_IMAGES},
}
CAUSAL = ("gpt2", "gpt-neox", "llama", "mistral", "qwen2", "qwen3", "opt")
