"""Which small job is trained in a drill, and how is any rank's micro-batch made again?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the model and a micro-batch are: by default as small as shows every check."""

    width: int = 32
    blocks: int = 2
    heads: int = 2
    vocabulary: int = 64
    length: int = 16
    batch: int = 2
    dropout: float = 0.0

    @property
    def middle(self) -> str:
        """Name the layer that drills hit: the down projection of the block in the middle."""
        return f"blocks.{self.blocks // 2}.down"

    @property
    def attention(self) -> str:
        """Name an attention layer, the output projection of the first block."""
        return "blocks.0.out"


class Block(nn.Module):
    """Causal attention, then an MLP; both read a normalised input and add to the stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads, self.dropout = shape.heads, shape.dropout
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Take and give the stream: [batch, length, width]."""
        batch, length, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        seen = nnf.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        hidden = nnf.gelu(self.up(self.norm_mlp(x)))
        return x + nnf.dropout(self.down(hidden), self.dropout, self.training)


class Decoder(nn.Module):
    """A decoder-only transformer with learned positions; the head is not tied."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Parameter(0.02 * torch.randn(shape.length, shape.width))
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.blocks))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give logits [batch, length, vocabulary] for tokens [batch, length]."""
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


class Batch(NamedTuple):
    """Tokens [batch, length + 1], and the seed of this step's random numbers on this rank."""

    tokens: Tensor
    seed: int


@dataclass(frozen=True, slots=True)
class Job:
    """One training job that is the same wherever and whenever it is made again."""

    shape: Shape = Shape()
    seed: int = 0
    rate: float = 1e-3

    def model(self) -> Decoder:
        """Make the model with this job's first weights, the same on every rank."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return Decoder(self.shape)

    def optimizer(self, model: nn.Module) -> torch.optim.AdamW:
        """Make the optimizer."""
        return torch.optim.AdamW(model.parameters(), lr=self.rate)

    def batch(self, step: int, rank: int) -> Batch:
        """Give what a rank trains on at a step.

        The second half of the tokens repeats the first, so there is something to learn; they are
        drawn by Zipf's law, as words are.
        """
        seed = (self.seed * 1_000_003 + step) * 1_000_003 + rank
        chance = torch.Generator().manual_seed(seed)
        weights = 1 / torch.arange(1, self.shape.vocabulary + 1, dtype=torch.float64)
        half = (self.shape.length + 2) // 2
        drawn = torch.multinomial(weights, self.shape.batch * half, True, generator=chance)
        first = drawn.view(self.shape.batch, half)
        return Batch(torch.cat([first, first], dim=1)[:, : self.shape.length + 1], seed)

    def loss(self, module: nn.Module, batch: Batch) -> Tensor:
        """Give the mean loss of each next token; the forward runs under autocast to bfloat16."""
        if self.shape.dropout:
            # Dropout must depend on step and rank alone, or nobody could compute it again.
            torch.manual_seed(batch.seed)
        with torch.autocast(batch.tokens.device.type, dtype=torch.bfloat16):
            logits = module(batch.tokens[:, :-1])
        return nnf.cross_entropy(logits.float().flatten(0, 1), batch.tokens[:, 1:].flatten())
