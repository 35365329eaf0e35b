"""Digits: from observed and approved values to those that are mistyped, a digit lost or doubled,
or one step beside.

People read values in the units that a network uses: of costs 10, 30 and 200 in tens. So both are
counted in the largest unit of which all approved values are multiples, and from the lowest one
where the protocol minds no shift, and no scale has a part in it.
"""

from collections.abc import Iterator

import numpy as np

from gsid_service.records import BoolArray, FloatArray, IntArray
from gsid_service.schema import Order, Parameter


def mistyped(observed: FloatArray, approved: FloatArray, parameter: Parameter) -> BoolArray:
    """[values]: whether an observed value is the approved one with a digit lost or doubled."""
    now, before, unit = _counted(observed, approved, parameter)
    found = np.zeros(len(observed), dtype=np.bool_)
    rows = np.flatnonzero((now != before) & (now >= 0) & (now % max(unit, 1) == 0))
    if unit:
        found[rows] = _are_mistyped(now[rows] // unit, before[rows] // unit)
    return found


def stepped(observed: FloatArray, approved: FloatArray, parameter: Parameter) -> BoolArray:
    """[values]: whether an observed value is the next one above or below the approved one."""
    now, before, unit = _counted(observed, approved, parameter)
    return np.asarray((np.abs(now - before) == unit) & (now != before))


def _counted(
    observed: FloatArray, approved: FloatArray, parameter: Parameter
) -> tuple[IntArray, IntArray, int]:
    """Both from the lowest value where that may be, and the unit of the approved ones."""
    shifts = parameter.order is not Order.ADDS_UP and len(approved) > 0
    lowest = int(approved.min()) if shifts else 0
    now, before = (values.astype(np.int64) - lowest for values in (observed, approved))
    return now, before, int(np.gcd.reduce(before))


def _are_mistyped(now: IntArray, before: IntArray) -> list[bool]:
    pairs = zip(now.tolist(), before.tolist(), strict=True)
    return [new in mistakes(old) for new, old in pairs]


def mistakes(value: int) -> Iterator[int]:
    """What a number becomes with one digit lost, or one doubled."""
    digits = str(value)
    for i in range(len(digits)):
        if len(digits) > 1:
            yield int(digits[:i] + digits[i + 1 :])
        yield int(digits[: i + 1] + digits[i:])
