"""GSID: encoder, attention layers, a decoder block applied three times, a readout a parameter."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gsid_service.schema import SCHEMA, Schema
from gsid_service.score.ace import ACE, Lookup
from gsid_service.score.batch import BLOCK, Batch
from gsid_service.score.ida import IDA
from gsid_service.score.rivals import GAT, GCN

ENCODERS = {"ace": ACE, "lkp": Lookup}
ATTENTIONS = {"ida": IDA, "gat": GAT, "gcn": GCN}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model is built of; everything that rebuilding it needs, beside the schema."""

    encoder: str = "ace"
    attention: str = "ida"
    width: int = 128
    heads: int = 8
    layers: int = 2
    decoder_steps: int = 3
    dropout: float = 0.2


class Layer(nn.Module):
    """h ← norm(h + attention(h)); h ← norm(h + feed-forward(h))."""

    def __init__(self, shape: Shape, roles: int) -> None:
        super().__init__()
        n = shape.width
        self.attention = ATTENTIONS[shape.attention](roles, n, shape.heads)
        self.mixed, self.fed = nn.LayerNorm(n), nn.LayerNorm(n)
        self.feed = nn.Sequential(
            nn.Linear(n, 2 * n),
            nn.ReLU(inplace=True),
            nn.Dropout(shape.dropout),
            nn.Linear(2 * n, n),
        )
        self.drop = nn.Dropout(shape.dropout)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        return self._finish(h, self.attention(h, batch))

    def kept(self, h: Tensor, batch: Batch) -> Tensor:
        """The same, for no other nodes than entities and the facts that are read out."""
        return self._finish(h, self.attention.kept(h, batch), batch.kept)

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        """The same, for no other nodes than the facts that are read out."""
        return self._finish(h, self.attention.read(h, batch), batch.entities + batch.read)

    def _finish(self, h: Tensor, heard: Tensor, at: Tensor | None = None) -> Tensor:
        """Of all nodes, or of those that are `at` these places, what was heard taken in."""
        if torch.is_grad_enabled() or len(heard) <= BLOCK:
            mine = h if at is None else h[at]
            if len(mine) <= BLOCK:
                return self._block(mine, heard)
            parts = zip(mine.split(BLOCK), heard.split(BLOCK), strict=True)
            return torch.cat([self._block(*part) for part in parts])
        # In place: on a large network each copy is a lot of memory.
        for low, theirs in zip(range(0, len(heard), BLOCK), heard.split(BLOCK), strict=True):
            rows = slice(low, low + BLOCK)
            theirs.copy_(self._block(h[rows] if at is None else h[at[rows]], theirs))
        return heard

    def _block(self, h: Tensor, heard: Tensor) -> Tensor:
        h = self.mixed(h + self.drop(heard))
        out: Tensor = self.fed(h + self.drop(self.feed(h)))
        return out


class GSID(nn.Module):
    """From a batch to a logit for every fact and monitored parameter, [F, P]."""

    def __init__(self, shape: Shape, schema: Schema = SCHEMA) -> None:
        super().__init__()
        self.shape = shape
        roles = max(len(kind.roles) for kind in schema.facts)
        parameters = len(schema.monitored)
        self.encode = ENCODERS[shape.encoder](schema, shape.width)
        self.layers = nn.ModuleList(Layer(shape, roles) for _ in range(shape.layers))
        self.decoder = Layer(shape, roles)
        self.readout = nn.ModuleList(_readout(shape) for _ in range(parameters))

    def forward(self, batch: Batch) -> Tensor:
        h: Tensor = self.encode(batch)
        for layer in self.layers:
            h = layer(h, batch)
        for _ in range(self.shape.decoder_steps - 2):
            h = self.decoder(h, batch).add_(h)
        if self.shape.decoder_steps > 1:  # the last step asks for no more than these
            add = h.index_add if torch.is_grad_enabled() else h.index_add_
            h = add(0, batch.kept, self.decoder.kept(h, batch))
        facts = h[batch.entities + batch.read] + self.decoder.read(h, batch)
        logits = facts.new_zeros(len(batch.value), len(self.readout))
        applies = batch.applies[batch.read]
        for p, readout in enumerate(self.readout):
            at = applies[:, p].nonzero().squeeze(1)
            logits[batch.read[at], p] = readout(facts[at]).squeeze(1)
        return logits


def _readout(shape: Shape) -> nn.Module:
    return nn.Sequential(
        nn.Linear(shape.width, shape.width),
        nn.ReLU(inplace=True),
        nn.Dropout(shape.dropout),
        nn.Linear(shape.width, 1),
    )
