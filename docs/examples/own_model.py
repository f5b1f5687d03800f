"""Score a model of your own with proxies and with formulas."""

import torch
from torch import nn

import lpzero


# %% A decoder of your own
class Decoder(nn.Module):
    def __init__(self, width=16, layers=2):
        super().__init__()
        self.words, self.head = nn.Embedding(50, width), nn.Linear(width, 50)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.blocks(self.words(tokens), mask=mask, is_causal=True))


torch.manual_seed(0)
tokens = torch.randint(50, (4, 12))
scores = lpzero.score(Decoder(), tokens, ["parameters", "snip", "grad-norm"])
print(scores)

# %% A formula of the language
print(lpzero.score(Decoder(), tokens, ["sum(mul(abs(G), abs(W)))"]))

# %% Which of several models is the best by a proxy? Larger is better
models = {f"{width} wide": Decoder(width) for width in (8, 16, 32)}
print(lpzero.score(models, tokens, ["snip"]))
