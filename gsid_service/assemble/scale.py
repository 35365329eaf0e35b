"""The per-network scale: from raw values to where the model was trained.

Each parameter's own low and high in the network (its baseline where there is one) are laid upon
the paper's range, so that local_pref 100 and 200 look like 0 and 9. Values that add up along a path
are only multiplied: a shift would change which path is shortest. Low and high are quantiles, so
that the outlier that is to be found does not set its own scale.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gsid_service.assemble import digits
from gsid_service.records import BoolArray, FloatArray, Graph
from gsid_service.schema import SCHEMA, Order, Parameter, Schema

QUANTILES = (0.05, 0.95)
REACH = 2.0  # values are cut off this many ranges beyond the paper's
NOMINAL = (0, 9)  # for a parameter that has no paper range

Numbers = npt.NDArray[np.float32]


class Scaled(NamedTuple):
    """The numerical parameters of each fact, on the paper's ranges; [F, P] each."""

    value: Numbers
    applies: BoolArray
    reference: Numbers
    has_reference: BoolArray
    equal: BoolArray
    exchanged: BoolArray  # changed, and another fact changed the other way: two values swapped
    mistyped: BoolArray  # changed by a digit that was lost or doubled
    changed: Numbers  # the share of the network's values of each parameter that changed
    changes: Numbers  # and their number, as a logarithm; both the same for every fact
    alike: Numbers  # changed: how many others changed to the very same value, as a logarithm
    alone: Numbers  # how many changed to a value to which no other changed; the same for every fact
    slips: Numbers  # how many changed as a slip does: swapped, mistyped, or by one step; likewise
    others: Numbers  # how many of those that changed alone did not change as a slip does; likewise
    shared: Numbers  # how many other facts have the very same value, as a logarithm


def scale(graph: Graph, schema: Schema = SCHEMA) -> Scaled:
    parameters = schema.monitored
    columns = [p.column for p in parameters]
    observed = graph.features[len(graph.entities) :, columns]
    applies = observed != -1
    reference = np.full_like(observed, -1)
    if graph.reference is not None:
        reference = graph.reference[len(graph.entities) :, columns]
    has_reference = (reference != -1) & applies
    value, scaled_reference = np.zeros_like(observed), np.zeros_like(observed)
    mistyped, stepped = np.zeros_like(applies), np.zeros_like(applies)
    for i, parameter in enumerate(parameters):
        known = has_reference[:, i]
        own = reference[known, i]
        mistyped[known, i] = digits.mistyped(observed[known, i], own, parameter)
        stepped[known, i] = digits.stepped(observed[known, i], own, parameter)
        basis = own if len(own) else observed[applies[:, i], i]
        if len(basis):
            value[:, i] = _lay(observed[:, i], basis, parameter)
            scaled_reference[:, i] = _lay(reference[:, i], basis, parameter)
    equal = has_reference & (observed == reference)
    differs = has_reference & ~equal
    count = differs.sum(axis=0)
    share = count / np.maximum(has_reference.sum(axis=0), 1)
    alike, is_alone = _alike(observed, differs)
    exchanged = _exchanged(observed, reference, differs)
    is_slip = exchanged | mistyped | stepped
    return Scaled(
        value=np.where(applies, value, 0).astype(np.float32),
        applies=applies,
        reference=np.where(has_reference, scaled_reference, 0).astype(np.float32),
        has_reference=has_reference,
        equal=equal,
        exchanged=exchanged,
        mistyped=mistyped,
        changed=np.broadcast_to(share, applies.shape).astype(np.float32),
        changes=_number(differs),
        alike=alike,
        alone=_number(is_alone),
        slips=_number(is_slip),
        others=_number(is_alone & ~is_slip),
        shared=np.where(applies, _shared(observed), 0).astype(np.float32),
    )


def _shared(observed: FloatArray) -> FloatArray:
    """[F, P]: the logarithm of how often a value stands in its column."""
    found = np.zeros_like(observed)
    for column in range(observed.shape[1]):
        _, place, count = np.unique(observed[:, column], return_inverse=True, return_counts=True)
        found[:, column] = np.log(count)[place.reshape(-1)]
    return found


def _number(marked: BoolArray) -> Numbers:
    """[F, P]: the logarithm of how many are marked, for every fact the same."""
    return np.broadcast_to(np.log1p(marked.sum(axis=0)), marked.shape).astype(np.float32)


def _alike(observed: FloatArray, differs: BoolArray) -> tuple[Numbers, BoolArray]:
    """[F, P]: the logarithm of how many others changed to the same value; who changed alone."""
    found, alone = np.zeros(observed.shape, dtype=np.float32), np.zeros_like(differs)
    for column in range(observed.shape[1]):
        rows = np.flatnonzero(differs[:, column])
        _, place, count = np.unique(observed[rows, column], return_inverse=True, return_counts=True)
        found[rows, column] = np.log(count)[place.reshape(-1)]
        alone[rows, column] = (count == 1)[place.reshape(-1)]
    return found, alone


def _exchanged(observed: FloatArray, reference: FloatArray, differs: BoolArray) -> BoolArray:
    """Whether some fact changed from this one's new value to its old one."""
    found = np.zeros_like(differs)
    for column in range(observed.shape[1]):
        rows = np.flatnonzero(differs[:, column])
        pairs = list(zip(reference[rows, column], observed[rows, column], strict=True))
        known = set(pairs)
        found[rows, column] = [(new, old) in known for old, new in pairs]
    return found


def _ends(basis: FloatArray) -> tuple[float, float]:
    """Low and high quantile; one outlier moves neither by more than half the span of the rest."""
    ordered = np.sort(basis)
    at_low, at_high = (q * (len(ordered) - 1) for q in QUANTILES)
    low, high = np.interp((at_low, at_high), np.arange(len(ordered)), ordered)
    inner_low, inner_high = ordered[math.ceil(at_low)], ordered[math.floor(at_high)]
    slack = (inner_high - inner_low) / 2
    if slack <= 0:
        return float(ordered[0]), float(ordered[-1])
    return float(max(low, inner_low - slack)), float(min(high, inner_high + slack))


def _lay(values: FloatArray, basis: FloatArray, parameter: Parameter) -> FloatArray:
    """Lay the basis' low and high upon the paper's range, and the values with them."""
    low, high = _ends(basis)
    bottom, top = parameter.paper or NOMINAL
    if parameter.order is Order.ADDS_UP:
        laid = values * (top / high)
    else:
        laid = bottom + (values - low) * ((top - bottom) / (high - low) if high > low else 0)
    reach = REACH * (top - bottom)
    return np.asarray(np.clip(laid, bottom - reach, top + reach))
