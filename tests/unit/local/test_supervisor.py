"""The delay before an ended program is started again, and when to give up."""

from caret.local.processes.supervisor import MAX_DEATHS, WINDOW_S, RestartPolicy


def test_the_delay_doubles_with_each_exit() -> None:
    restarts = RestartPolicy()

    delays = [restarts.next_delay_s(float(second)) for second in range(4)]

    assert delays == [0.2, 0.4, 0.8, 1.6]


def test_restarts_stop_after_too_many_exits_in_a_short_time() -> None:
    restarts = RestartPolicy()

    delays = [restarts.next_delay_s(float(second)) for second in range(MAX_DEATHS + 1)]

    assert None not in delays[:-1]
    assert delays[-1] is None


def test_old_exits_do_not_count() -> None:
    restarts = RestartPolicy()
    for second in range(MAX_DEATHS):
        restarts.next_delay_s(float(second))

    assert restarts.next_delay_s(MAX_DEATHS + WINDOW_S + 1) == 0.2
