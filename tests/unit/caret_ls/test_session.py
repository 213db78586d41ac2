from dataclasses import replace
from pathlib import Path

from caret_ls.completion_context import CompletionContext
from caret_ls.gateway_connection import Address, ConnectionState
from caret_ls.outcome_tracker import ShownSuggestion
from caret_ls.session import Session, TextChange
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus
from caret_ls.suggestion import create_suggestion
from tests.unit.caret_ls.provider_harness import URI, TurnedClock


def session() -> Session:
    return Session(Settings(), TurnedClock(), lambda _status: None)


async def test_a_pause_outlives_settings_that_do_not_concern_it() -> None:
    made = session()
    made.board.set(is_paused=True)
    made.set_up(replace(made.settings, disabled_languages=("markdown",)), None)

    assert made.board.status is ServerStatus.PAUSED


async def test_who_switches_it_off_and_on_again_has_ended_the_pause() -> None:
    made = session()
    made.set_up(replace(made.settings, enabled=False), None)
    assert made.board.is_paused

    made.set_up(replace(made.settings, enabled=True), None)

    assert not made.board.is_paused


async def test_other_settings_make_no_refused_key_a_good_one() -> None:
    made, address = session(), Address("http://127.0.0.1:1", "cpk_live_secret")
    made.set_up(made.settings, address)
    made.on_state(ConnectionState.UNAUTHENTICATED)

    made.set_up(replace(made.settings, complete_in_strings=True), address)

    assert made.board.status is ServerStatus.SIGNED_OUT


async def test_without_a_key_nobody_waits_for_the_link_to_say_so() -> None:
    made = session()
    made.on_state(ConnectionState.CONNECTED)

    made.set_up(made.settings, None)

    assert made.board.status is ServerStatus.SIGNED_OUT


async def test_text_replaced_by_itself_says_nothing_of_a_suggestion() -> None:
    made = session()
    made.open(URI, "python", "a = 1\nb = ")
    made.outcomes.show(URI, ShownSuggestion("1", 10, "2"), now_s=0.0)

    made.change(URI, [TextChange("a = 1\nb = ")])

    assert not made.outcomes.show(URI, ShownSuggestion("1", 10, "2"), now_s=1.0), (
        "the suggestion must still be shown"
    )


async def test_an_editor_that_sends_all_of_the_text_is_followed() -> None:
    made = session()
    made.open(URI, "python", "a = 1\nb = ")
    made.outcomes.show(URI, ShownSuggestion("1", 10, "a + 2"), now_s=0.0)

    made.change(URI, [TextChange("a = 1\nb = a"), TextChange("a = 1\nb = a + 2")])

    file = made.files.get(URI)
    assert file is not None
    assert file.text == "a = 1\nb = a + 2"
    assert made.outcomes.show(URI, ShownSuggestion("1", 10, "a + 2"), now_s=1.0), (
        "the suggestion must count as accepted"
    )


async def test_what_another_gateway_said_of_the_budget_is_forgotten() -> None:
    made = session()
    made.board.set(is_over_budget=True)

    made.on_state(ConnectionState.CONNECTED)

    assert made.board.status is ServerStatus.READY


async def test_a_file_that_is_opened_again_is_read_anew() -> None:
    made = session()
    made.open(URI, "python", "a = 1\n")
    made.outcomes.show(URI, ShownSuggestion("1", 6, "2"), now_s=0.0)

    made.open(URI, "python", "b = 1\n")

    assert made.outcomes.show(URI, ShownSuggestion("1", 6, "2"), now_s=1.0), (
        "the suggestion must no longer be shown"
    )


async def test_a_switch_of_branches_in_the_first_seconds_is_noticed(tmp_path: Path) -> None:
    head = tmp_path / ".git" / "HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/main\n")
    uri = (tmp_path / "a.py").as_uri()
    made = session()
    made.open(uri, "python", "a = 1\nb = ")
    place = CompletionContext(uri=uri, path="a.py", language="python", prefix="b = ", suffix="")
    made.cache.store(create_suggestion(place, "2", id="1"))

    head.write_text("ref: refs/heads/other\n")
    made.keep_up()

    assert len(made.cache) == 0


async def test_without_a_switch_it_knows_what_it_knew(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    uri = (tmp_path / "a.py").as_uri()
    made = session()
    made.open(uri, "python", "a = 1\nb = ")
    place = CompletionContext(uri=uri, path="a.py", language="python", prefix="b = ", suffix="")
    made.cache.store(create_suggestion(place, "2", id="1"))

    made.keep_up()
    made.keep_up()

    assert len(made.cache) == 1
