"""What a measurement says."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured value; `ratio` says how many times better than `against` it is."""

    name: str
    value: float
    unit: str
    against: str
    ratio: float
