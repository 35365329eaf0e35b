"""`gsid bench large` measures what it says, on a network that is not large."""

import pytest

from gsid_service.assemble.merge import merge
from gsid_service.bench import large


def test_a_round_alone_is_measured_with_the_memory_of_both_processes() -> None:
    figures = {figure.unit: figure for figure in large.measure(300, only_round=True)}
    assert figures["processor s"].name.endswith("facts, one round, computing")
    assert figures["MB"].value > 100


def test_collectors_tell_all_of_the_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "COLLECTOR_FACTS", 100)
    design = large._design(300)
    merged = merge(large._views(design))
    assert {fact.key: fact for fact in merged.facts} == {fact.key: fact for fact in design.facts}
    assert {stated.collector for stated in merged.source.values()} == {"rr0", "rr1", "rr2"}
    assert not merged.conflicts
