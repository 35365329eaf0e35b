"""`gsid bench score`: the model's speed against the same function from stock PyG layers."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from time import process_time

import torch
from torch import Tensor

from gsid_service.assemble.graph import assemble
from gsid_service.bench.figure import Figure
from gsid_service.bench.stock import from_stock
from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Graph
from gsid_service.score.batch import Batch, Vocabulary, collate
from gsid_service.score.gsid import GSID, Shape

AGAINST = "stock GATv2Conv per edge type"
TOLERANCE = 1e-4
SMALL, LARGE = 300, 100_000  # nodes
EDGES = (1_000, 10_000, 100_000, 1_000_000)
AT_LEAST_ROUNDS, ENOUGH_SECONDS = 2, 5.0


def measure() -> Iterator[Figure]:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = GSID(Shape(dropout=0.0)).eval()
    small, large = collate([_network(SMALL)], Vocabulary()), _batch(nodes=LARGE)
    yield _forward(model, small, f"forward, a graph of {SMALL} nodes")
    yield _forward(model, large, f"forward, a graph of {LARGE:,} nodes")
    yield _step(model, small, f"training step, a graph of {SMALL} nodes")
    yield _flatness(model)
    yield _share_of_peak(model, large)


def _network(nodes: int) -> Graph:
    """The first standard network of that very size."""
    return next(graph for graph in map(_graph, count()) if len(graph.features) == nodes)


def _graph(index: int) -> Graph:
    case = SPLITS["standard"].case("bench", index)
    return assemble(case.entities, case.facts, case.intents, case.facts)


def _batch(nodes: int = 0, edges: int = 0) -> Batch:
    """Standard networks side by side until there are so many nodes or edges."""
    graphs: list[Graph] = []
    for index in count():
        graphs.append(_graph(index % 200))
        if sum(len(g.features) for g in graphs) >= nodes and _edges(graphs) >= edges:
            break
    return collate(graphs, Vocabulary())


def _edges(graphs: list[Graph]) -> int:
    return sum(len(graph.edges) for graph in graphs)


def _forward(model: GSID, batch: Batch, name: str) -> Figure:
    stock = from_stock(model, batch)
    with torch.inference_mode():
        gap = float((model(batch) - stock(batch)).abs().max())
        if gap > TOLERANCE:
            raise RuntimeError(f"the stock layers disagree by {gap}")
        ours, theirs = seconds(partial(model, batch), partial(stock, batch))
    return Figure(name, ours * 1e3, "ms", f"{AGAINST} ({theirs * 1e3:.1f} ms)", theirs / ours)


def _step(model: GSID, batch: Batch, name: str) -> Figure:
    stock = from_stock(model, batch)
    ours, theirs = seconds(partial(_train, model, batch), partial(_train, stock, batch))
    return Figure(name, ours * 1e3, "ms", f"{AGAINST} ({theirs * 1e3:.1f} ms)", theirs / ours)


def _train(model: GSID, batch: Batch) -> None:
    model.zero_grad()
    loss: Tensor = model(batch).square().mean()
    loss.backward()


def _flatness(model: GSID) -> Figure:
    """The dearest edge against the cheapest, over three orders of magnitude."""
    costs = []
    with torch.inference_mode():
        for edges in EDGES:
            batch = _batch(edges=edges)
            (took,) = seconds(partial(model, batch))
            costs.append(took / len(batch.edges.seat))
    name = f"cost of an edge, dearest of {EDGES[0]:,} to {EDGES[-1]:,} edges"
    return Figure(
        name,
        max(costs) * 1e6,
        "µs",
        f"the cheapest ({min(costs) * 1e6:.2f} µs)",
        min(costs) / max(costs),
    )


def _share_of_peak(model: GSID, batch: Batch) -> Figure:
    """The multiplications of a forward pass by the time it takes, against one large matmul."""
    width, layers = model.shape.width, model.shape.layers + model.shape.decoder_steps
    edges, last = batch.edges, batch.read_edges
    up = len(edges.seat) + 2 * len(edges.sitting)
    down = 2 * len(edges.seat) + len(edges.sitting)
    down_last = 2 * len(last.seat) + len(last.sitting)
    rows = (layers - 2) * (up + down + 4 * len(batch.categories))
    rows += up + down_last + 4 * len(batch.kept)
    rows += down_last + 4 * len(batch.read)
    needed = 2.0 * rows * width * width
    a, b = torch.randn(4096, width), torch.randn(width, 4 * width)
    with torch.inference_mode():
        alone, whole = seconds(partial(torch.mm, a, b), partial(model, batch))
    peak, rate = 2.0 * a.numel() * b.shape[1] / alone, needed / whole
    return Figure(
        "arithmetic of the large forward",
        rate / 1e9,
        "GFLOP/s",
        f"a matmul of {tuple(a.shape)} by {tuple(b.shape)} ({peak / 1e9:.0f} GFLOP/s)",
        rate / peak,
    )


def seconds(*works: Callable[[], object]) -> list[float]:
    """Of each its best round, in turns. A busy machine costs processor time of one thread little,

    and all of them alike.
    """
    rounds: list[list[float]] = []
    while len(rounds) < AT_LEAST_ROUNDS or sum(map(sum, rounds)) < ENOUGH_SECONDS:
        rounds.append([_timed(work) for work in works])
    return [min(times) for times in zip(*rounds, strict=True)]


def _timed(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return process_time() - begun
