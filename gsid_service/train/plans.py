"""The training runs behind the shipped model and the figures in docs/results.md."""

from types import MappingProxyType

from gsid_service.score.gsid import Shape
from gsid_service.train.diet import MIXED
from gsid_service.train.training import Plan

# The comparison of the paper: one budget for all, the reference setting at 40 %.
COMPARED = MappingProxyType(
    {
        "gsid": Shape("ace", "ida"),
        "lkp-gat": Shape("lkp", "gat"),
        "lkp-ida": Shape("lkp", "ida"),
        "ace-gat": Shape("ace", "gat"),
        "ace-gcn": Shape("ace", "gcn"),
    }
)

SHIPPED = Plan(
    shape=Shape(width=64, dropout=0.0),
    diet=MIXED,
    steps=12_000,
    batch=8,
    schedule="cosine",
    rate=1e-3,
)

PLANS = MappingProxyType(
    {"shipped": SHIPPED} | {name: Plan(shape=shape) for name, shape in COMPARED.items()}
)
