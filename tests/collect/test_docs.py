"""What docs/collectors.md shows works as it is written there."""

import re
import sys
import types
from pathlib import Path

import pytest

from gsid_service.collect.settings import Router, load
from gsid_service.collect.source import open_source
from gsid_service.config import BadSettings
from tests.collect.making import settings, view

PAGE = (Path(__file__).parents[2] / "docs" / "collectors.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_settings_are_settings(tmp_path: Path) -> None:
    first, *sources = blocks("toml")
    uncommented = re.sub(r"^# (\w+ = )", r"\1", first, flags=re.MULTILINE)
    for text in (first, uncommented):
        (tmp_path / "collect.toml").write_text(text)
        assert load(tmp_path / "collect.toml").network == "as65000"
    head = first.partition("[[routers]]")[0]
    for source in sources:
        (tmp_path / "collect.toml").write_text(head + source)
        load(tmp_path / "collect.toml")


def test_the_source_of_40_lines_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("python")
    assert len(code.splitlines()) <= 45
    module = types.ModuleType("csv_table")
    exec(code, module.__dict__)  # noqa: S102 (our own page)
    monkeypatch.setitem(sys.modules, "csv_table", module)
    bare = Router(name="R3", source="csv_table:CsvTable")
    with pytest.raises(BadSettings, match=r"routers.R3: path: must be given"):
        open_source(bare, settings(tmp_path))
    table = tmp_path / "r3.csv"
    table.write_text(
        "peer,asn,prefix,local_pref,path_length,med\n"
        "192.0.2.1,65101,203.0.113.0/24,200,2,10\n192.0.2.5,65102,203.0.113.0/24,,3,\n"
    )
    (tmp_path / "collect.toml").write_text(
        blocks("toml")[0].partition("[[routers]]")[0]
        + blocks("toml")[-1].replace("/var/lib/noc/r3.csv", str(table))
    )
    (router,) = load(tmp_path / "collect.toml").routers
    seen = view(open_source(router, settings(tmp_path)).read())
    assert {str(key): dict(fact.params) for key, fact in seen.facts.items()} == {
        "ebgp(R3, AS65101@R3)": {},
        "ebgp(R3, AS65102@R3)": {},
        "bgp_route(AS65101@R3, 203.0.113.0/24)": {
            "local_pref": 200,
            "as_path_length": 2,
            "origin": 0,
            "med": 10,
        },
        "bgp_route(AS65102@R3, 203.0.113.0/24)": {"as_path_length": 3, "origin": 0},
    }
