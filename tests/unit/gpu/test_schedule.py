"""The choice of the next measurement on a GPU, in the time that is left."""

from tests.gpu.schedule import StepTime, choose_step, list_pending

FIRST = StepTime("fast.first", "fast", needed_s=60.0)
SECOND = StepTime("quality.first", "quality", needed_s=20.0)
THIRD = StepTime("fast.second", "fast", needed_s=30.0)
STEPS = (FIRST, SECOND, THIRD)
START_S = {"fast": 100.0, "quality": 40.0}


def choose_next_step(left_s: float, running_engine: str | None = None) -> StepTime | None:
    """Return the step of STEPS that runs next."""
    return choose_step(STEPS, left_s=left_s, running_engine=running_engine, start_s=START_S)


# A step needs the time that its engine takes to start (START_S), and its own time (`needed_s`).


def test_the_first_step_runs_if_the_time_suffices() -> None:
    assert choose_next_step(left_s=160.0) is FIRST


def test_a_step_that_would_not_end_in_time_is_skipped() -> None:
    assert choose_next_step(left_s=159.9) is SECOND
    assert choose_next_step(left_s=59.9) is None
    assert choose_next_step(left_s=59.9, running_engine="fast") is THIRD


def test_a_running_engine_needs_no_time_to_start() -> None:
    assert choose_next_step(left_s=60.0, running_engine="fast") is FIRST


def test_steps_of_the_running_engine_come_first() -> None:
    assert choose_next_step(left_s=1_000.0, running_engine="quality") is SECOND


def test_no_step_is_chosen_if_none_is_pending() -> None:
    assert choose_step((), left_s=1.0, running_engine=None, start_s=START_S) is None


def test_a_later_call_continues_with_the_missing_steps() -> None:
    assert list_pending(STEPS, done={FIRST.name}, only=None) == [SECOND, THIRD]


def test_a_single_step_can_be_repeated_although_it_is_done() -> None:
    assert list_pending(STEPS, done={FIRST.name}, only=FIRST.name) == [FIRST]
