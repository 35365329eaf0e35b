"""The same function from stock parts: one `GATv2Conv` of torch-geometric per edge type.

What `gsid bench score` is timed against, and what the tests compare IDA with.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

from gsid_service.score.batch import Batch
from gsid_service.score.gsid import GSID, Layer
from gsid_service.score.ida import IDA


class StockIDA(nn.Module):
    """Σ over the types of a stock layer with self-loops, for the nodes that have such an edge."""

    def __init__(self, layer: IDA) -> None:
        super().__init__()
        roles, width, _ = layer.transform.shape
        heads = len(layer.head)
        self.down = nn.ModuleList(GATv2Conv(width, width // heads, heads) for _ in range(roles))
        self.up = nn.ModuleList(GATv2Conv(width, width // heads, heads) for _ in range(roles))
        for role in range(roles):
            r_down, l_down, l_up, r_up = layer.transform.detach()[role].split(width, dim=1)
            _copy(self.down[role], l_down, r_down, layer.down.detach()[role])
            _copy(self.up[role], l_up, r_up, layer.up.detach()[role])
        self.types: list[tuple[int, str, Tensor, Tensor]] = []

    def prepare(self, batch: Batch) -> None:
        """The edges of each type, and which nodes have one; not part of what is timed."""
        self.types = []
        nodes, edges = len(batch.categories), batch.edges
        sitting = edges.sitting[edges.seat].split(edges.facts)
        for role, entities in enumerate(sitting):
            facts = batch.entities + torch.arange(len(entities))
            for direction, ends in (("down", (entities, facts)), ("up", (facts, entities))):
                has_edge = torch.zeros(nodes, 1)
                has_edge[ends[1]] = 1
                self.types.append((role, direction, torch.stack(ends), has_edge))

    def forward(self, h: Tensor, batch: Batch) -> Tensor:  # noqa: ARG002
        out = torch.zeros_like(h)
        for role, direction, ends, has_edge in self.types:
            out = out + has_edge * getattr(self, direction)[role](h, ends)
        return out

    def kept(self, h: Tensor, batch: Batch) -> Tensor:
        out: Tensor = self(h, batch)
        return out[batch.kept]

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        out: Tensor = self(h, batch)
        return out[batch.entities + batch.read]


def _copy(conv: GATv2Conv, left: Tensor, right: Tensor, a: Tensor) -> None:
    conv.lin_l.weight.data, conv.lin_r.weight.data = left.T.contiguous(), right.T.contiguous()
    conv.att.data = a.view_as(conv.att).clone()
    for bias in (conv.lin_l.bias, conv.lin_r.bias, conv.bias):
        nn.init.zeros_(bias)


def from_stock(model: GSID, batch: Batch) -> GSID:
    """A copy of the model whose attention is made of stock layers with the same weights."""
    copy = deepcopy(model)
    for layer in (*copy.layers, copy.decoder):
        assert isinstance(layer, Layer)  # noqa: S101
        stock = StockIDA(layer.attention)
        stock.prepare(batch)
        layer.attention = stock  # type: ignore[assignment]
    return copy
