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
sigmoid_backward = torch.ops.aten.sigmoid_backward


class Down(Function):
    """[F, n]: each fact weighs the one entity of each of its roles against itself.

    With q = R h_v, o = L h_v and u = L h_u, for fact v and its entity u in a role,
    z = A (leaky(u + q) - leaky(o + q)), p = σ(z) per head, out_v = Σ o + p (u - o) over the roles.
    """

    @staticmethod
    def forward(
        ctx: Any,
        facts: Tensor,  # [F, n]
        seated: Tensor,  # [seats, n]
        transform: Tensor,  # [roles, n, 2n]: R ‖ L
        a: Tensor,  # [roles, H, n]: A
        edges: Edges,
        keep: bool,
    ) -> Tensor:
        n = facts.shape[1]
        w, vectors = transform.unbind(), a.mT.unbind()
        neighbour = typed(seated.split(edges.entities), [part[:, n:] for part in w])
        out, kept = torch.zeros_like(facts), []
        for block in edges.blocks:
            both = typed([facts[rows] for rows in block.rows], [w[role] for role in block.roles])
            query, own = both.split(n, dim=1)
            apart = neighbour.index_select(0, block.seat)
            theirs = leaky_relu_(apart + query, SLOPE)
            mine = leaky_relu_(query.add_(own), SLOPE)
            gain, apart = theirs - mine, apart.sub_(own)
            parts = gain.split(block.sizes)
            share = typed(parts, [vectors[role] for role in block.roles]).sigmoid_()
            heard = weighed(apart, share).add_(own)
            for rows, part in zip(block.rows, heard.split(block.sizes), strict=True):
                out[rows].add_(part)
            if keep:
                kept += [apart, theirs, mine, gain, share]
        ctx.edges = edges
        ctx.save_for_backward(facts, seated, transform, a, *kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """dz = p (1 - p) <g, u - o> per head and, with s and s' the slopes at u + q and at o + q,

        du = p g + s Aᵀ dz,  do = (1 - p) g - s' Aᵀ dz,  dq = (s - s') Aᵀ dz.
        """
        edges: Edges = ctx.edges
        facts, seated, transform, a, *kept = ctx.saved_tensors
        n = facts.shape[1]
        d_facts, d_transform, d_a = map(torch.zeros_like, (facts, transform, a))
        d_neighbour, per_head = torch.zeros_like(seated), head_sums(a)
        for i, block in enumerate(edges.blocks):
            apart, theirs, mine, gain, share = kept[5 * i : 5 * i + 5]
            g = torch.cat([grad[rows] for rows in block.rows])
            d_score = sigmoid_backward((apart * g) @ per_head, share)
            scores = d_score.split(block.sizes)
            spread = typed(scores, [a[role] for role in block.roles])
            up, down = sloped(spread, theirs), sloped(spread, mine)
            passed = weighed(g, share)
            d_both = facts.new_empty(len(g), 2 * n)
            d_query, d_own = d_both.split(n, dim=1)
            torch.sub(up, down, out=d_query)
            torch.sub(g, passed, out=d_own).sub_(down)
            d_neighbour.index_add_(0, block.seat, passed.add_(up))
            collect(d_a, scores, gain.split(block.sizes), block.roles)
            parts, named = d_both.split(block.sizes), [facts[rows] for rows in block.rows]
            collect(d_transform, named, parts, block.roles)
            for role, rows, part in zip(block.roles, block.rows, parts, strict=True):
                d_facts[rows].addmm_(part, transform[role].T)
        parts, left = d_neighbour.split(edges.entities), slice(n, 2 * n)
        collect(d_transform[:, :, left], seated.split(edges.entities), parts)
        d_seated = typed(parts, transform[:, :, left].mT)
        return d_facts, d_seated, d_transform, d_a, None, None


class Up(Function):
    """[seats, n]: each entity weighs, in each role, the facts that name it and itself.

    With m = L h_u, i = L h_v and k = R h_v, for entity v and a fact u that names it in a role,
    e = A leaky(m + k), e' = A leaky(i + k), α and α' = softmax of all e and e' per head,
    out_v = α' i + Σ α m.
    """

    @staticmethod
    def forward(
        ctx: Any,
        facts: Tensor,  # [F, n]
        seated: Tensor,  # [seats, n]
        transform: Tensor,  # [roles, n, 2n]: L ‖ R
        a: Tensor,  # [roles, H, n]: A
        edges: Edges,
        keep: bool,
    ) -> Tensor:
        n, count = facts.shape[1], len(edges.seat)
        left, vectors = [part[:, :n] for part in transform], a.mT.unbind()
        itself, asking = typed(seated.split(edges.entities), transform).split(n, dim=1)
        own_met = leaky_relu_(itself + asking, SLOPE)
        message = facts.new_empty(count, n)
        score = facts.new_empty(count, a.shape[1])
        own_score = typed(own_met.split(edges.entities), vectors)
        kept = []
        for block in edges.blocks:
            named = [facts[rows] for rows in block.rows]
            sent = typed(named, [left[role] for role in block.roles], message[block.at])
            met = leaky_relu_(asking.index_select(0, block.seat).add_(sent), SLOPE)
            parts = met.split(block.sizes)
            typed(parts, [vectors[role] for role in block.roles], score[block.at])
            if keep:
                kept.append(met)
        share, own_share = softmax(score, own_score, edges.seat)
        out = weighed(itself, own_share)
        for block in edges.blocks:
            out.index_add_(0, block.seat, weighed(message[block.at], share[block.at]))
        ctx.edges = edges
        ctx.save_for_backward(
            facts, seated, transform, a, message, itself, own_met, share, own_share, out, *kept
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """de = α (<g, m> - <g, out>) per head, de' alike and, with s and s' the slopes of leaky,

        dm = α g + s Aᵀ de,  di = α' g + s' Aᵀ de',  dk = s' Aᵀ de' + Σ s Aᵀ de.
        """
        edges: Edges = ctx.edges
        facts, seated, transform, a, *kept = ctx.saved_tensors
        message, itself, own_met, share, own_share, out, *kept = kept
        n = facts.shape[1]
        d_facts, d_transform, d_a = map(torch.zeros_like, (facts, transform, a))
        per_head = head_sums(a)
        common = (grad * out) @ per_head
        d_score = ((grad * itself) @ per_head).sub_(common).mul_(own_share)
        d_asking = sloped(typed(d_score.split(edges.entities), a), own_met)
        collect(d_a, d_score.split(edges.entities), own_met.split(edges.entities))
        d_itself = weighed(grad, own_share).add_(d_asking)
        for met, block in zip(kept, edges.blocks, strict=True):
            g = grad.index_select(0, block.seat)
            d_score = ((g * message[block.at]) @ per_head).sub_(common.index_select(0, block.seat))
            scores = d_score.mul_(share[block.at]).split(block.sizes)
            d_met = sloped(typed(scores, [a[role] for role in block.roles]), met)
            collect(d_a, scores, met.split(block.sizes), block.roles)
            d_asking.index_add_(0, block.seat, d_met)
            parts = weighed(g, share[block.at]).add_(d_met).split(block.sizes)
            collect(d_transform[:, :, :n], [facts[rows] for rows in block.rows], parts, block.roles)
            for role, rows, part in zip(block.roles, block.rows, parts, strict=True):
                d_facts[rows].addmm_(part, transform[role, :, :n].T)
        parts = torch.cat((d_itself, d_asking), dim=1).split(edges.entities)
        collect(d_transform, seated.split(edges.entities), parts)
        d_seated = typed(parts, transform.mT)
        return d_facts, d_seated, d_transform, d_a, None, None


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


def weighed(x: Tensor, share: Tensor) -> Tensor:
    """[R, n]: the part of each head by that head's share, [R, n] by [R, H]."""
    return (x.unflatten(1, (share.shape[1], -1)) * share[:, :, None]).flatten(1)


def head_sums(a: Tensor) -> Tensor:
    """[n, H]: x @ this sums x over each head's part."""
    _, count, width = a.shape
    return torch.eye(count, dtype=a.dtype).repeat_interleave(width // count, dim=1).T


def sloped(grad: Tensor, y: Tensor) -> Tensor:
    """The gradient of leaky where it gave y."""
    out: Tensor = torch.ops.aten.leaky_relu_backward(grad, y, SLOPE, True)
    return out
