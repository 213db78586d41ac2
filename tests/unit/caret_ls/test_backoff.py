"""The delay before the next attempt to connect."""

from caret_ls.backoff import FIRST_S, MAX_S, Backoff


def test_the_delay_doubles_up_to_a_minute() -> None:
    backoff = Backoff(lambda: 1.0)

    waits = [backoff.next_delay_s() for _ in range(10)]

    assert waits[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert waits[-1] == MAX_S


def test_half_of_the_delay_is_random() -> None:
    """With the smallest random number, only the other half remains."""
    assert Backoff(lambda: 0.0).next_delay_s() == FIRST_S / 2


def test_reset_returns_to_the_first_delay() -> None:
    backoff = Backoff(lambda: 1.0)
    backoff.next_delay_s()
    backoff.reset()

    assert backoff.next_delay_s() == FIRST_S
