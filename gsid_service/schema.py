"""The vocabulary: entity and fact kinds, their roles and parameters, declared once, immutable.

Everything else reads names, codes, ranges and columns from here. Another protocol is one more
`FactKind`, passed to `Schema.extended`.
"""

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

UINT32 = 2**32 - 1


class Order(Enum):
    """What a larger value of a parameter means to the protocol."""

    HIGHER_WINS = "higher wins"
    LOWER_WINS = "lower wins"
    ADDS_UP = "adds up"
    IDENTITY = "identity"


class Group(Enum):
    """Routing facts are configured and collected; intents are what the operator wants to hold."""

    ROUTING = "routing"
    INTENT = "intent"


@dataclass(frozen=True, slots=True)
class EntityKind:
    name: str
    column: int
    is_a: "EntityKind | None" = None  # the kind that those know who do not know better


@dataclass(frozen=True, slots=True)
class Role:
    """The place τ of an entity in a fact, and the kinds of entity that may stand there."""

    name: str
    kinds: tuple[EntityKind, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An integer that a fact carries: its column, protocol range, order, and the paper's range.

    A parameter that is not required has the protocol's default where a collector leaves it out;
    `default=None` then means that it stays unknown. `symbols` are names for 0, 1, 2, ...
    """

    name: str
    column: int
    low: int
    high: int
    order: Order
    paper: tuple[int, int] | None = None
    monitored: bool = False
    required: bool = False
    default: int | None = None
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactKind:
    """A predicate: its code, its roles, what it carries, whether collectors can observe it."""

    name: str
    code: int
    roles: tuple[Role, ...]
    parameters: tuple[Parameter, ...] = ()
    group: Group = Group.ROUTING
    observable: bool = True
    distinct: bool = True  # no entity may stand in two roles
    exclusive: int | None = None  # the role in which an entity may stand only once

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


@dataclass(frozen=True)
class Schema:
    """Entity and fact kinds with look-ups; columns 0 to 3: node kind, index, predicate, holds."""

    entities: tuple[EntityKind, ...]
    facts: tuple[FactKind, ...]

    KIND, INDEX, PREDICATE, HOLDS = range(4)

    def __post_init__(self) -> None:
        columns = [e.column for e in self.entities] + [p.column for p in self.parameters]
        declared: tuple[tuple[str, list[Any]], ...] = (
            ("entity kind", [e.name for e in self.entities]),
            ("predicate", [f.name for f in self.facts]),
            ("predicate code", [f.code for f in self.facts]),
            ("parameter", [p.name for p in self.parameters]),
            ("feature column", [*range(4), *columns]),
        )
        for what, values in declared:
            twice = sorted({str(v) for v in values if values.count(v) > 1})
            if twice:
                raise ValueError(f"schema: {what} declared twice: {', '.join(twice)}")

    @cached_property
    def entity(self) -> MappingProxyType[str, EntityKind]:
        return MappingProxyType({e.name: e for e in self.entities})

    @cached_property
    def fact(self) -> MappingProxyType[str, FactKind]:
        return MappingProxyType({f.name: f for f in self.facts})

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for f in self.facts for p in f.parameters)

    @cached_property
    def monitored(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.monitored)

    @cached_property
    def width(self) -> int:
        """The number of feature columns, D."""
        return 1 + max([e.column for e in self.entities] + [p.column for p in self.parameters])

    def extended(self, *facts: FactKind, entities: tuple[EntityKind, ...] = ()) -> Self:
        """This schema with further fact kinds, as another protocol declares them."""
        return type(self)(self.entities + entities, self.facts + facts)


EXTERNAL_AS = EntityKind("external_as", column=11)
NETWORK = EntityKind("network", column=12)
ROUTER = EntityKind("router", column=14)
ROUTE_REFLECTOR = EntityKind("route_reflector", column=13, is_a=ROUTER)

# A route reflector is a router: it may stand wherever a router may.
ROUTERS = (ROUTER, ROUTE_REFLECTOR)

LOCAL_PREF = Parameter(
    "local_pref", 4, 0, UINT32, Order.HIGHER_WINS, paper=(0, 9), monitored=True, default=100
)
AS_PATH_LENGTH = Parameter(
    # The longest path that fits a BGP extended message of 65,535 octets (RFC 8654).
    "as_path_length",
    5,
    1,
    16_383,
    Order.LOWER_WINS,
    paper=(1, 9),
    monitored=True,
    required=True,
)
ORIGIN = Parameter(
    "origin",
    6,
    0,
    2,
    Order.LOWER_WINS,
    paper=(0, 2),
    default=0,
    symbols=("igp", "egp", "incomplete"),
)
MED = Parameter("med", 7, 0, UINT32, Order.LOWER_WINS, paper=(0, 29), monitored=True, default=0)
IS_EBGP = Parameter("is_ebgp", 8, 0, 1, Order.IDENTITY, paper=(0, 1), default=1)
# The router id of the gateway that speaks the route inside the AS, as a 32-bit number.
SPEAKER = Parameter("speaker", 9, 0, UINT32, Order.IDENTITY)
OSPF_WEIGHT = Parameter(
    "ospf_weight", 10, 1, 65_535, Order.ADDS_UP, paper=(1, 31), monitored=True, required=True
)

BGP_ROUTE = FactKind(
    "bgp_route",
    code=0,
    roles=(Role("external_as", (EXTERNAL_AS,)), Role("network", (NETWORK,))),
    parameters=(LOCAL_PREF, AS_PATH_LENGTH, ORIGIN, MED, IS_EBGP, SPEAKER),
)
CONNECTED = FactKind(
    "connected",
    code=1,
    roles=(Role("router", ROUTERS), Role("router", ROUTERS)),
    parameters=(OSPF_WEIGHT,),
)
EBGP = FactKind(
    "ebgp",
    code=2,
    roles=(Role("router", ROUTERS), Role("external_as", (EXTERNAL_AS,))),
    exclusive=1,
)
FWD = FactKind(
    "fwd",
    code=4,
    roles=(
        Role("source router", ROUTERS),
        Role("network", (NETWORK,)),
        Role("next hop", (*ROUTERS, EXTERNAL_AS)),
    ),
    group=Group.INTENT,
)
IBGP = FactKind(
    "ibgp",
    code=5,
    roles=(Role("router", ROUTERS), Role("route_reflector", (ROUTE_REFLECTOR,))),
)
REACHABLE = FactKind(
    "reachable",
    code=7,
    roles=(
        Role("source router", ROUTERS),
        Role("network", (NETWORK,)),
        Role("exit or via", (*ROUTERS, EXTERNAL_AS)),
    ),
    group=Group.INTENT,
    observable=False,
    distinct=False,
)
TRAFFIC_ISOLATION = FactKind(
    "traffic_isolation",
    code=10,
    roles=(
        Role("R1", ROUTERS),
        Role("R2", ROUTERS),
        Role("N1", (NETWORK,)),
        Role("N2", (NETWORK,)),
    ),
    group=Group.INTENT,
    observable=False,
)

SCHEMA = Schema(
    entities=(EXTERNAL_AS, NETWORK, ROUTE_REFLECTOR, ROUTER),
    facts=(BGP_ROUTE, CONNECTED, EBGP, FWD, IBGP, REACHABLE, TRAFFIC_ISOLATION),
)
