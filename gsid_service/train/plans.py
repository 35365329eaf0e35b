"""The training runs behind the shipped model and the figures in docs/results.md."""

from types import MappingProxyType

from gsid_service.score.gsid import Shape
from gsid_service.train.diet import MIXED
from gsid_service.train.training import Plan

# The comparison of the paper, at the width that ships: one budget for all.
COMPARED = MappingProxyType(
    {
        "gsid": Shape("ace", "ida", width=64),
        "lkp-gat": Shape("lkp", "gat", width=64),
        "lkp-ida": Shape("lkp", "ida", width=64),
        "ace-gat": Shape("ace", "gat", width=64),
        "ace-gcn": Shape("ace", "gcn", width=64),
    }
)

SHIPPED = Plan(
    shape=Shape(width=64, dropout=0.0),
    diet=MIXED,
    steps=36_000,
    batch=8,
    schedule="cosine",
    rate=1e-3,
)

PLANS = MappingProxyType(
    {"shipped": SHIPPED} | {name: Plan(shape=shape) for name, shape in COMPARED.items()}
)
