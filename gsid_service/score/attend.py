"""The two directions of IDA, from node vectors to node vectors, with their gradients by hand.

Both go through the edges in blocks, so that what a block computes on its way stays in a core's
cache; it is kept only where a gradient may be asked for.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu_

from gsid_service.score.batch import Edges

SLOPE = 0.2


class Down(Function):
    """[F, n]: each fact weighs the one entity of each of its roles against itself.

    With q = R h_v, o = L h_v and u = L h_u, for fact v and its entity u in a role,
    z = Aᵀ (leaky(u + q) - leaky(o + q)), p = σ(z) per head, out_v = Σ o + p (u - o) over the roles.
    """

    @staticmethod
    def forward(
        ctx: Any,
        facts: Tensor,  # [F, n]
        entities: Tensor,  # [entities, n]
        transform: Tensor,  # [roles, n, 2n]: R ‖ L
        a: Tensor,  # [roles, n, H]: A
        edges: Edges,
        keep: bool,
    ) -> Tensor:
        n = facts.shape[1]
        w, vectors = transform.unbind(), a.unbind()
        seated = entities.index_select(0, edges.sitting)
        neighbour = typed(seated.split(edges.entities), [part[:, n:] for part in w])
        out, kept = torch.zeros_like(facts), []
        for block in edges.blocks:
            both = typed([facts[rows] for rows in block.rows], [w[role] for role in block.roles])
            query, own = both.split(n, dim=1)
            theirs = neighbour.index_select(0, block.seat)
            gain = leaky_relu_(theirs + query, SLOPE).sub_(leaky_relu_(own + query, SLOPE))
            scores = typed(gain.split(block.sizes), [vectors[role] for role in block.roles])
            share = scores.sigmoid_()
            heard = torch.lerp(heads(own, a), heads(theirs, a), share[:, :, None]).flatten(1)
            for rows, part in zip(block.rows, heard.split(block.sizes), strict=True):
                out[rows].add_(part)
            if keep:
                kept += [both, theirs, gain, share]
        ctx.edges = edges
        ctx.save_for_backward(facts, entities, seated, transform, a, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """dz = p (1 - p) <g, u - o> per head and, with s and s' the slopes at u + q and at o + q,

        du = p g + s A dz,  do = (1 - p) g - s' A dz,  dq = (s - s') A dz.
        """
        edges: Edges = ctx.edges
        facts, entities, seated, transform, a, *kept = ctx.saved_tensors
        n = facts.shape[1]
        d_facts, d_transform, d_a = map(torch.zeros_like, (facts, transform, a))
        d_neighbour, per_head = torch.zeros_like(seated), head_sums(a)
        for i, block in enumerate(edges.blocks):
            both, theirs, gain, share = kept[4 * i : 4 * i + 4]
            query, own = both.split(n, dim=1)
            g = torch.cat([grad[rows] for rows in block.rows])
            d_score = ((theirs - own).mul_(g) @ per_head).mul_(share).mul_(1 - share)
            spread = typed(d_score.split(block.sizes), [a[role].T for role in block.roles])
            up, down = sloped(spread, theirs + query), sloped(spread, own + query)
            passed = (heads(g, a) * share[:, :, None]).flatten(1)
            d_both = torch.cat((up - down, g.sub_(passed).sub_(down)), dim=1)
            d_neighbour.index_add_(0, block.seat, passed.add_(up))
            collect(d_a, gain.split(block.sizes), d_score.split(block.sizes), block.roles)
            parts, named = d_both.split(block.sizes), [facts[rows] for rows in block.rows]
            collect(d_transform, named, parts, block.roles)
            for role, rows, part in zip(block.roles, block.rows, parts, strict=True):
                d_facts[rows].addmm_(part, transform[role].T)
        parts, left = d_neighbour.split(edges.entities), slice(n, 2 * n)
        collect(d_transform[:, :, left], seated.split(edges.entities), parts)
        d_seated = typed(parts, transform[:, :, left].mT)
        d_entities = torch.zeros_like(entities).index_add_(0, edges.sitting, d_seated)
        return d_facts, d_entities, d_transform, d_a, None, None


class Up(Function):
    """[entities, n]: each entity weighs, in each role, the facts that name it and itself.

    With m = L h_u, i = L h_v and k = R h_v, for entity v and a fact u that names it in a role,
    e = Aᵀ leaky(m + k), e' = Aᵀ leaky(i + k), α and α' = softmax of all e and e' per head,
    out_v = Σ (α' i + Σ α m) over the roles.
    """

    @staticmethod
    def forward(
        ctx: Any,
        facts: Tensor,  # [F, n]
        entities: Tensor,  # [entities, n]
        transform: Tensor,  # [roles, n, 2n]: L ‖ R
        a: Tensor,  # [roles, n, H]: A
        edges: Edges,
    ) -> Tensor:
        n = facts.shape[1]
        left, vectors = [part[:, :n] for part in transform], a.unbind()
        seated = entities.index_select(0, edges.sitting)
        itself, asking = typed(seated.split(edges.entities), transform).split(n, dim=1)
        own_score = typed(leaky_relu_(itself + asking, SLOPE).split(edges.entities), vectors)
        message = facts.new_empty(len(edges.seat), n)
        score = facts.new_empty(len(edges.seat), a.shape[2])
        for block in edges.blocks:
            named = [facts[rows] for rows in block.rows]
            sent = typed(named, [left[role] for role in block.roles], message[block.at])
            met = leaky_relu_(asking.index_select(0, block.seat).add_(sent), SLOPE)
            parts = met.split(block.sizes)
            typed(parts, [vectors[role] for role in block.roles], score[block.at])
        share, own_share = softmax(score, own_score, edges.seat)
        summed = (heads(itself, a) * own_share[:, :, None]).flatten(1)
        for block in edges.blocks:
            part = heads(message[block.at], a) * share[block.at, :, None]
            summed.index_add_(0, block.seat, part.flatten(1))
        ctx.edges = edges
        ctx.save_for_backward(
            facts, entities, seated, transform, a, message, itself, asking, share, own_share, summed
        )
        return torch.zeros_like(entities).index_add_(0, edges.sitting, summed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """de = α (<g, m> - <g, out>) per head, de' alike and, with s and s' the slopes of leaky,

        dm = α g + s A de,  di = α' g + s' A de',  dk = s' A de' + Σ s A de.
        """
        edges: Edges = ctx.edges
        facts, entities, seated, transform, a, *kept = ctx.saved_tensors
        message, itself, asking, share, own_share, summed = kept
        n = facts.shape[1]
        d_facts, d_transform, d_a = map(torch.zeros_like, (facts, transform, a))
        per_head, backwards = head_sums(a), a.mT
        g_seats = grad.index_select(0, edges.sitting)
        common = (g_seats * summed) @ per_head
        d_score = ((g_seats * itself) @ per_head).sub_(common).mul_(own_share)
        met = itself + asking
        d_asking = sloped(typed(d_score.split(edges.entities), backwards), met)
        met = leaky_relu_(met, SLOPE)
        collect(d_a, met.split(edges.entities), d_score.split(edges.entities))
        d_itself = (heads(g_seats, a) * own_share[:, :, None]).flatten(1).add_(d_asking)
        for block in edges.blocks:
            sent = message[block.at]
            g = g_seats.index_select(0, block.seat)
            d_score = ((g * sent) @ per_head).sub_(common.index_select(0, block.seat))
            d_score.mul_(share[block.at])
            met = asking.index_select(0, block.seat).add_(sent)
            spread = typed(d_score.split(block.sizes), [backwards[role] for role in block.roles])
            d_met = sloped(spread, met)
            met = leaky_relu_(met, SLOPE)
            collect(d_a, met.split(block.sizes), d_score.split(block.sizes), block.roles)
            d_asking.index_add_(0, block.seat, d_met)
            d_sent = heads(g, a).mul_(share[block.at, :, None]).flatten(1).add_(d_met)
            parts, named = d_sent.split(block.sizes), [facts[rows] for rows in block.rows]
            collect(d_transform[:, :, :n], named, parts, block.roles)
            for role, rows, part in zip(block.roles, block.rows, parts, strict=True):
                d_facts[rows].addmm_(part, transform[role, :, :n].T)
        parts = torch.cat((d_itself, d_asking), dim=1).split(edges.entities)
        collect(d_transform, seated.split(edges.entities), parts)
        d_seated = typed(parts, transform.mT)
        d_entities = torch.zeros_like(entities).index_add_(0, edges.sitting, d_seated)
        return d_facts, d_entities, d_transform, d_a, None


def softmax(score: Tensor, own_score: Tensor, seat: Tensor) -> tuple[Tensor, Tensor]:
    """[edges, H] and [seats, H]: over the edges of each seat and the seat's own score."""
    top = own_score.scatter_reduce(0, seat[:, None].expand_as(score), score, "amax")
    weight = (score - top.index_select(0, seat)).exp_()
    own_weight = (own_score - top).exp_()
    total = own_weight.index_add(0, seat, weight)
    return weight.div_(total.index_select(0, seat)), own_weight.div_(total)


def typed(parts: Sequence[Tensor], matrices: Iterable[Tensor], out: Tensor | None = None) -> Tensor:
    """The rows of each part by the matrix of its role, one part after the other."""
    matrices = tuple(matrices)
    sizes = [len(part) for part in parts]
    if out is None:
        out = parts[0].new_empty(sum(sizes), matrices[0].shape[1])
    for part, matrix, to in zip(parts, matrices, out.split(sizes), strict=True):
        torch.mm(part, matrix, out=to)
    return out


def collect(
    grad: Tensor, left: Sequence[Tensor], right: Sequence[Tensor], roles: Sequence[int] = ()
) -> None:
    """Add leftᵀ right of each part to the gradient of its role; without `roles`, one part each."""
    for role, x, y in zip(roles or range(len(left)), left, right, strict=True):
        grad[role].addmm_(x.T, y)


def heads(x: Tensor, a: Tensor) -> Tensor:
    """[R, H, n / H]"""
    return x.unflatten(1, (a.shape[2], -1))


def head_sums(a: Tensor) -> Tensor:
    """[n, H]: x @ this sums x over each head's part."""
    _, width, count = a.shape
    return torch.eye(count, dtype=a.dtype).repeat_interleave(width // count, dim=0)


def sloped(grad: Tensor, x: Tensor) -> Tensor:
    """The gradient of leaky at x."""
    out: Tensor = torch.ops.aten.leaky_relu_backward(grad, x, SLOPE, False)
    return out
