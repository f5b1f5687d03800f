"""The BERT space of T-Razor (section IV-B): blocks, intermediate sizes and heads of BERT base.

FlexiBERT grew out of BERT, so this is its encoder with dot-product attention in every block and
768-wide embeddings that need no projection. No pooler, because proxies read the hidden states:
twelve blocks of 3072 have 108,891,648 parameters, 109,482,240 with the pooler of the release.
"""

from spaces.flexibert import FlexiBertSpace

BERT = FlexiBertSpace(
    name="bert",
    hidden=(768,),
    n_layers=(6, 8, 10, 12),
    operations=("sdp",),
    heads=(4, 8, 12, 16),
    ffn=(512, 768, 1024, 3072),
    stacks=(1,),
    embedding=768,
    batch_shape=(4, 64),
)

SPACES = (BERT,)

__all__ = ["BERT", "SPACES"]
