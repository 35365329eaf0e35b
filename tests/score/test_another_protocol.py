"""Another protocol by declaration alone: NTP is declared, trained small, and its error found."""

import random

import numpy as np
import torch

from gsid_service import schema
from gsid_service.assemble.graph import assemble
from gsid_service.records import Entity, Fact, Graph
from gsid_service.schema import SCHEMA, FactKind, Order, Parameter, Role
from gsid_service.score.batch import Vocabulary, collate
from gsid_service.score.calibration import Calibration
from gsid_service.score.gsid import GSID, Shape
from gsid_service.score.scorer import Scorer
from gsid_service.simulate.faults import another_value
from gsid_service.train.training import loss

STRATUM = Parameter("stratum", 15, 1, 16, Order.LOWER_WINS, paper=(1, 16), monitored=True)
POLL = Parameter("poll_interval", 16, 4, 17, Order.LOWER_WINS, paper=(4, 17), monitored=True)
ROUTER = Role("router", schema.ROUTERS)
NTP = FactKind("ntp", 11, (ROUTER, ROUTER), (STRATUM, POLL))
EXTENDED = SCHEMA.extended(NTP)
CLIENTS = 16


def network(rng: random.Random) -> tuple[Graph, tuple[int, str]]:
    """Clients of one server share its values; one is wrong, and one of the baseline's is stale."""
    servers = rng.randint(2, 4)
    names = [Entity(f"R{i}", "router") for i in range(servers + CLIENTS)]
    design = [(rng.randint(1, 16), rng.randint(4, 17)) for _ in range(servers)]
    of = [rng.randrange(servers) for _ in range(CLIENTS)]
    observed = [{"stratum": design[s][0], "poll_interval": design[s][1]} for s in of]
    approved = [dict(params) for params in observed]
    bad, stale = rng.sample(range(CLIENTS), 2)
    parameter = rng.choice((STRATUM, POLL))
    observed[bad][parameter.name] = another_value(parameter, observed[bad][parameter.name], rng)
    approved[stale]["stratum"] = another_value(STRATUM, approved[stale]["stratum"], rng)
    facts, baseline = (
        [Fact("ntp", (f"R{servers + i}", f"R{of[i]}"), p) for i, p in enumerate(values)]
        for values in (observed, approved)
    )
    graph = assemble(names, facts, baseline=baseline, schema=EXTENDED)
    return graph, (bad, parameter.name)


def test_an_injected_error_is_found() -> None:
    rng = random.Random(0)
    torch.manual_seed(0)
    model = GSID(Shape(width=32, heads=4, layers=1, decoder_steps=1, dropout=0.0), EXTENDED)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    names = [p.name for p in EXTENDED.monitored]
    for _ in range(400):
        shown = [network(rng) for _ in range(8)]
        batch = collate([graph for graph, _ in shown], Vocabulary(EXTENDED), EXTENDED)
        wrong = np.zeros((8, CLIENTS, len(names)), dtype=np.float32)
        for i, (_, (bad, parameter)) in enumerate(shown):
            wrong[i, bad, names.index(parameter)] = 1
        truth = torch.from_numpy(wrong.reshape(-1, len(names))[batch.order])
        optimiser.zero_grad()
        loss(model(batch), truth, batch.applies).sum().backward()
        optimiser.step()
    scorer = Scorer("ntp", model.eval(), Calibration.none(EXTENDED), EXTENDED)
    found = 0
    for _ in range(50):
        graph, (bad, parameter) = network(rng)
        _, fact, named = scorer(graph).ranked()[0]
        found += (fact, named) == (graph.facts[bad], parameter)
    assert found >= 40
