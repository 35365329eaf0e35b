"""Classes on disk, a line for each prefix: so that they outlive the process, and can be looked up.

zgrep -F 203.0.113.0/24 classes.tsv.gz
"""

import gzip
import os
import zlib
from pathlib import Path

import numpy as np

from gsid_service.collect.classes import NONE, Destination, Grouping
from gsid_service.collect.tables import Tables
from gsid_service.config import BadSettings


def save(file: Path, tables: Tables, grouping: Grouping) -> None:
    """Write the class and the prefix of every line; the file is there whole, or as it was."""
    fresh = file.with_suffix(".new")
    with gzip.open(fresh, "wt", compresslevel=1) as lines:
        for number, label in enumerate(grouping.labels.tolist()):
            if label != NONE:
                lines.write(f"{grouping.destinations[label].id}\t{tables.prefix(number)}\n")
    os.replace(fresh, file)


def load(file: Path, tables: Tables) -> Grouping | None:
    """The grouping as it was saved, or none; its prefixes get numbers in the tables."""
    if not file.exists():
        return None
    members: dict[str, list[int]] = {}
    try:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                name, _, prefix = line.rstrip("\n").partition("\t")
                members.setdefault(name, []).append(tables.prefixes[prefix])
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadSettings(f"{file}: cannot be read: {error}") from None
    labels = np.full(len(tables.prefixes.values), NONE, dtype=np.int64)
    for label, numbers in enumerate(members.values()):
        labels[numbers] = label
    found = (Destination(name, len(numbers), numbers[0]) for name, numbers in members.items())
    return Grouping(tuple(found), labels)
