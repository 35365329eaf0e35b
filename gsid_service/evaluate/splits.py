"""The data sets: sizes and seeds frozen in code, cases reproducible one by one, cached on disk.

Case `index` of a part of a split depends on nothing but these names and that number. A change to
what is drawn changes the data sets: raise `EDITION` with it, so that no stale cache is read.
"""

import gzip
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from gsid_service.evaluate.documents import from_line, to_line
from gsid_service.simulate import topologies
from gsid_service.simulate.cases import Case, clean_case, operations_case
from gsid_service.simulate.chance import between
from gsid_service.simulate.designs import Size
from gsid_service.simulate.intents import Amounts
from gsid_service.simulate.topologies import Topology

EDITION = 3
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
TRAIN, TEST = "train", "test"


def _planar(fewest: int, most: int) -> Callable[[random.Random], Topology]:
    return lambda rng: topologies.planar(between(rng, fewest, most), rng)


@dataclass(frozen=True, slots=True)
class DataSet:
    """What the networks of a data set look like."""

    topology: Callable[[random.Random], Topology]
    size: Size


_STANDARD = Size((4, 7), (3, 3), Amounts((8, 12), (4, 7), (10, 30)))
_LARGER = Size((10, 15), (7, 9), Amounts((25, 35), (15, 20), (10, 30)))

DATA_SETS = MappingProxyType(
    {
        "standard": DataSet(_planar(16, 23), _STANDARD),
        "larger": DataSet(_planar(24, 31), _LARGER),
        "real": DataSet(topologies.draw, _STANDARD),
    }
)


@dataclass(frozen=True, slots=True)
class Split:
    """A data set in one form: clean designs, or operations cases."""

    name: str
    data_set: DataSet
    make: Callable[[Topology, Size, random.Random], Case]
    count: MappingProxyType[str, int]

    def case(self, part: str, index: int, topology: Topology | None = None) -> Case:
        """One case; `part` is `train`, `test` or a name of one's own, such as a seed."""
        rng = random.Random(f"gsid {EDITION} {self.name} {part} {index}")
        return self.make(topology or self.data_set.topology(rng), self.data_set.size, rng)


def _split(name: str, data_set: str, make: Callable[..., Case], test: int) -> Split:
    return Split(name, DATA_SETS[data_set], make, MappingProxyType({TRAIN: 4096, TEST: test}))


SPLITS = MappingProxyType(
    {name: _split(name, name, clean_case, 100) for name in DATA_SETS}
    | {
        f"operations-{name}": _split(f"operations-{name}", name, operations_case, 300)
        for name in DATA_SETS
    }
)


def cache_folder() -> Path:
    """`GSID_CACHE`, or the user's cache folder."""
    own = os.environ.get("GSID_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(own) if own else home / "gsid"


def load(
    split: Split, part: str, count: int | None = None, folder: Path | None = None
) -> Iterator[Case]:
    """The first `count` cases of a part, by default all; made once, then read from the cache."""
    wanted = split.count[part] if count is None else count
    path = (folder or cache_folder()) / f"{split.name}-{part}-{wanted}.{EDITION}.jsonl.gz"
    cached = _read(path)
    if cached is not None:
        yield from cached
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    try:
        with gzip.open(partial, "wt", encoding="utf-8", compresslevel=1) as lines:
            for index in range(wanted):
                case = split.case(part, index)
                lines.write(to_line(case))
                yield case
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _read(path: Path) -> list[Case] | None:
    """The cases of a cache file, or None where there is none that can be read: it is made anew."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return list(map(from_line, lines))
    except (OSError, EOFError, ValueError):
        return None
