"""IDA is the same function as stock GATv2 layers, one per edge type, with the same weights."""

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from gsid_service.assemble.graph import assemble
from gsid_service.bench.stock import StockIDA
from gsid_service.evaluate.splits import SPLITS
from gsid_service.score.batch import Batch, Vocabulary, collate
from gsid_service.score.ida import IDA
from gsid_service.score.rivals import GAT, GCN

WIDTH, HEADS, ROLES = 32, 4, 4


@pytest.fixture(scope="module")
def batch() -> Batch:
    cases = [SPLITS["standard"].case("ida", i) for i in range(3)]
    return collate([assemble(c.entities, c.facts, c.intents) for c in cases], Vocabulary())


def stock(layer: IDA, h: Tensor, batch: Batch) -> Tensor:
    same = StockIDA(layer)
    same.prepare(batch)
    out: Tensor = same(h, batch)
    return out


def test_it_equals_stock_layers(batch: Batch) -> None:
    torch.manual_seed(0)
    layer = IDA(ROLES, WIDTH, HEADS)
    h = torch.randn(len(batch.categories), WIDTH)
    with torch.no_grad():
        assert torch.allclose(layer(h, batch), stock(layer, h, batch), atol=1e-4)


def test_the_static_attention_equals_stock_layers(batch: Batch) -> None:
    torch.manual_seed(0)
    layer = GAT(ROLES, WIDTH, HEADS)
    h = torch.randn(len(batch.categories), WIDTH)
    same = StockIDA(layer)
    same.prepare(batch)
    out = torch.zeros_like(h)
    for role, direction, ends, has_edge in same.types:
        out += has_edge * static(layer, role, direction)(h, ends)
    with torch.no_grad():
        assert torch.allclose(layer(h, batch), out, atol=1e-4)


def static(layer: GAT, role: int, direction: str) -> torch.nn.Module:
    _, l_down, l_up, _ = layer.transform[role].split(WIDTH, dim=1)
    shape = (1, HEADS, WIDTH // HEADS)
    conv = GATConv(WIDTH, WIDTH // HEADS, HEADS, bias=False)
    conv.lin.weight.data = (l_down if direction == "down" else l_up).T
    conv.att_src.data = getattr(layer, direction)[role].view(shape)
    conv.att_dst.data = getattr(layer, f"{direction}_own")[role].view(shape)
    module: torch.nn.Module = conv
    return module


def test_gradients_equal_stock_layers(batch: Batch) -> None:
    torch.manual_seed(0)
    layer = IDA(ROLES, WIDTH, HEADS)
    h = torch.randn(len(batch.categories), WIDTH, requires_grad=True)
    (ours,) = torch.autograd.grad(layer(h, batch).square().sum(), h)
    (theirs,) = torch.autograd.grad(stock(layer, h, batch).square().sum(), h)
    assert torch.allclose(ours, theirs, atol=1e-3, rtol=1e-3)


def test_gradients_of_the_weights_equal_stock_layers(batch: Batch) -> None:
    torch.manual_seed(0)
    layer = IDA(ROLES, WIDTH, HEADS)
    h = torch.randn(len(batch.categories), WIDTH)
    same = StockIDA(layer)
    same.prepare(batch)
    weights = (layer.transform, layer.down, layer.up)
    transform, down, up = torch.autograd.grad(layer(h, batch).square().mean(), weights)
    names, parameters = zip(*same.named_parameters(), strict=True)
    loss: Tensor = same(h, batch).square().mean()
    theirs = dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))
    for role in range(ROLES):
        halves = ("down", "lin_r"), ("down", "lin_l"), ("up", "lin_l"), ("up", "lin_r")
        side_by_side = [theirs[f"{way}.{role}.{half}.weight"].T for way, half in halves]
        close(transform[role], torch.cat(side_by_side, dim=1))
        close(down[role], theirs[f"down.{role}.att"].flatten())
        close(up[role], theirs[f"up.{role}.att"].flatten())


def close(ours: Tensor, theirs: Tensor) -> None:
    assert torch.allclose(ours, theirs, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("attention", [IDA, GAT, GCN])
def test_what_is_read_out_is_the_same(attention: type[IDA], batch: Batch) -> None:
    torch.manual_seed(0)
    layer = attention(ROLES, WIDTH, HEADS)
    h = torch.randn(len(batch.categories), WIDTH)
    with torch.no_grad():
        whole = layer(h, batch)
        read = whole[batch.entities + batch.read]
        assert torch.allclose(layer.read(h, batch), read, atol=1e-5)
        assert torch.allclose(layer.kept(h, batch), whole[batch.kept], atol=1e-5)
