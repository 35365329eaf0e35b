"""What differs between two observations, put into the first, gives the second."""

import pickle
import random
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.diagnose.update import difference, updated
from tests.diagnose.test_known import CHANGES, Change, observation, values


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(CHANGES), max_size=4),
    st.lists(st.sampled_from(CHANGES), max_size=4),
    st.randoms(use_true_random=False),
)
def test_the_difference_put_in_gives_the_other(
    there: Sequence[Change], then: Sequence[Change], rng: random.Random
) -> None:
    before = observation(0)
    for change in there:
        before = change(before, rng)
    after = before
    for change in then:
        after = change(after, rng)
    for one, other in ((before, after), (after, before)):
        assert updated(one, difference(one, other)) == other


def test_little_is_told_of_a_small_change() -> None:
    before = observation(0)
    after = values(before, random.Random("small"))
    assert len(pickle.dumps(difference(before, after))) < len(pickle.dumps(after)) / 4
