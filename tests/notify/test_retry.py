"""Backoff: ever longer, never longer than asked for, with jitter, and an end."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.notify.retry import DeliveryError, Patience, next_try
from tests.store.making import NOW

SOON = Patience(timedelta(seconds=1), timedelta(seconds=60), timedelta(hours=1))
TRY_AGAIN = DeliveryError("no", retry=True)
luck = st.floats(0, 1)


@settings(deadline=None)
@given(st.integers(1, 1000), luck)
def test_a_wait_doubles_up_to_a_limit_and_is_between_half_and_all_of_that(
    attempts: int, luck: float
) -> None:
    due = next_try(TRY_AGAIN, attempts, NOW, NOW, SOON, luck)
    assert due is not None
    whole = min(2.0 ** (attempts - 1), 60)
    assert whole / 2 <= (due - NOW).total_seconds() <= whole


@settings(deadline=None)
@given(st.integers(1, 50), luck, st.floats(0, 10_000), st.floats(0, 10_000) | st.none())
def test_nothing_is_tried_after_the_span(
    attempts: int, luck: float, waited: float, after: float | None
) -> None:
    now = NOW + timedelta(seconds=waited)
    due = next_try(DeliveryError("", True, after), attempts, NOW, now, SOON, luck)
    assert (due is None) == (now >= NOW + SOON.span)
    assert due is None or now <= due <= NOW + SOON.span


def test_what_the_receiver_asks_for_counts() -> None:
    asked = DeliveryError("slow down", retry=True, after=17)
    assert next_try(asked, 5, NOW, NOW, SOON, 0.5) == NOW + timedelta(seconds=17)


def test_what_is_refused_for_good_is_given_up_at_once() -> None:
    assert next_try(DeliveryError("no", retry=False), 1, NOW, NOW, SOON, 0.5) is None
