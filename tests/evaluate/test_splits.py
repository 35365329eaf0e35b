"""The data sets are frozen: the same cases on any machine, from the cache or anew."""

import gzip
import hashlib
from pathlib import Path

import pytest

from gsid_service.evaluate.documents import to_line
from gsid_service.evaluate.splits import SPLITS, cache_folder, load

# The first two test cases of each split. A change here is a change of the data sets: raise EDITION.
FROZEN = {
    "standard": "a2ebaf01b7a07f6d",
    "larger": "b3aa1678c43e3f0d",
    "real": "ffac466db3c89564",
    "operations-standard": "2e6037dcb220d6ce",
    "operations-larger": "9dd2b20b5b301f4d",
    "operations-real": "f28b744607a2b1da",
}


def digest(name: str) -> str:
    lines = [to_line(SPLITS[name].case("test", index)) for index in range(2)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", sorted(SPLITS))
def test_the_cases_are_the_frozen_ones(name: str) -> None:
    assert digest(name) == FROZEN[name]


def test_sizes_are_the_design_s() -> None:
    assert {name: dict(split.count) for name, split in SPLITS.items()} == {
        **{n: {"train": 4096, "test": 100} for n in ("standard", "larger", "real")},
        **{f"operations-{n}": {"train": 4096, "test": 300} for n in ("standard", "larger", "real")},
    }


def test_parts_and_indices_differ() -> None:
    split = SPLITS["standard"]
    cases = [split.case("train", 0), split.case("train", 1), split.case("test", 0)]
    assert len({to_line(case) for case in cases}) == 3


@pytest.mark.parametrize("name", ["standard", "operations-real"])
def test_the_cache_gives_back_what_was_made(name: str, tmp_path: Path) -> None:
    made = list(load(SPLITS[name], "test", 3, tmp_path))
    (file,) = tmp_path.iterdir()
    assert gzip.decompress(file.read_bytes()).startswith(b'{"topology":')
    assert list(load(SPLITS[name], "test", 3, tmp_path)) == made
    assert made == [SPLITS[name].case("test", i) for i in range(3)]


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    made = list(load(SPLITS["standard"], "test", 2, tmp_path))
    (file,) = tmp_path.iterdir()
    for damage in (b"not gzip", file.read_bytes()[:-40], gzip.compress(b"{}\n")):
        file.write_bytes(damage)
        assert list(load(SPLITS["standard"], "test", 2, tmp_path)) == made


def test_what_was_not_finished_leaves_no_cache(tmp_path: Path) -> None:
    cases = load(SPLITS["standard"], "test", 3, tmp_path)
    next(cases)
    cases.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


def test_the_cache_folder_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GSID_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("GSID_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "gsid"
