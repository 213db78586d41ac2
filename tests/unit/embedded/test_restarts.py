from caret.local.processes.supervisor import MAX_DEATHS, WINDOW_S, RestartPolicy


def test_the_pause_doubles_with_each_death() -> None:
    restarts = RestartPolicy()

    delays = [restarts.next_delay_s(float(second)) for second in range(4)]

    assert delays == [0.2, 0.4, 0.8, 1.6]


def test_it_gives_up_after_too_many_deaths_in_a_short_time() -> None:
    restarts = RestartPolicy()

    delays = [restarts.next_delay_s(float(second)) for second in range(MAX_DEATHS + 1)]

    assert None not in delays[:-1]
    assert delays[-1] is None


def test_old_deaths_are_forgiven() -> None:
    restarts = RestartPolicy()
    for second in range(MAX_DEATHS):
        restarts.next_delay_s(float(second))

    assert restarts.next_delay_s(MAX_DEATHS + WINDOW_S + 1) == 0.2
