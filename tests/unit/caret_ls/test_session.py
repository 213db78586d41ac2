from dataclasses import replace

from caret_ls.session import Session
from caret_ls.settings import Settings
from caret_ls.status import Status
from tests.unit.caret_ls.desks import TurnedClock


def session() -> Session:
    return Session(Settings(), TurnedClock(), lambda _status: None)


async def test_a_pause_outlives_settings_that_do_not_concern_it() -> None:
    made = session()
    made.board.set(is_paused=True)
    made.set_up(replace(made.settings, languages_off=("markdown",)), None)

    assert made.board.status is Status.PAUSED


async def test_who_switches_it_off_and_on_again_has_ended_the_pause() -> None:
    made = session()
    made.set_up(replace(made.settings, enabled=False), None)
    assert made.board.is_paused

    made.set_up(replace(made.settings, enabled=True), None)

    assert not made.board.is_paused
