"""A session of the language server, without a connection."""

from dataclasses import replace
from pathlib import Path

from caret_ls.completion_context import CompletionContext
from caret_ls.gateway_connection import Address, ConnectionState
from caret_ls.outcome_tracker import ShownSuggestion
from caret_ls.session import Session, TextChange
from caret_ls.settings import Settings
from caret_ls.status_board import ServerStatus, SignedOutReason
from caret_ls.suggestion import create_suggestion
from tests.unit.caret_ls.provider_harness import URI, ManualClock


def create_session() -> Session:
    return Session(Settings(), ManualClock(), lambda _status: None)


async def test_a_pause_survives_unrelated_settings() -> None:
    session = create_session()
    session.board.set(is_paused=True)

    session.set_up(replace(session.settings, disabled_languages=("markdown",)), None)

    assert session.board.status is ServerStatus.PAUSED


async def test_disabling_and_enabling_ends_the_pause() -> None:
    session = create_session()
    session.set_up(replace(session.settings, enabled=False), None)
    assert session.board.is_paused

    session.set_up(replace(session.settings, enabled=True), None)

    assert not session.board.is_paused


async def test_unrelated_settings_do_not_retry_a_rejected_key() -> None:
    session, address = create_session(), Address("http://127.0.0.1:1", "cpk_live_secret")
    session.set_up(session.settings, address)
    session.on_state(ConnectionState.UNAUTHENTICATED)

    session.set_up(replace(session.settings, complete_in_comments=True), address)

    assert session.board.status is ServerStatus.SIGNED_OUT


async def test_without_a_key_the_status_is_signed_out_at_once() -> None:
    session = create_session()
    session.on_state(ConnectionState.CONNECTED)

    session.set_up(session.settings, None)

    assert session.board.status is ServerStatus.SIGNED_OUT


async def test_before_the_first_search_for_a_key_the_status_is_offline_and_not_signed_out() -> None:
    session = create_session()

    session.on_state(ConnectionState.UNAUTHENTICATED)

    assert session.board.status is ServerStatus.OFFLINE


async def test_a_missing_key_and_a_refused_key_have_different_reasons() -> None:
    session = create_session()
    session.set_up(session.settings, None, no_key_reason=SignedOutReason.KEY_FILE_NOT_PRIVATE)
    session.on_state(ConnectionState.UNAUTHENTICATED)
    without_key = session.board.signed_out_reason

    session.set_up(session.settings, Address("http://127.0.0.1:1", "cpk_live_secret"))
    session.on_state(ConnectionState.UNAUTHENTICATED)

    assert without_key is SignedOutReason.KEY_FILE_NOT_PRIVATE
    assert session.board.signed_out_reason is SignedOutReason.KEY_REFUSED


async def test_replacing_text_with_identical_text_keeps_the_suggestion() -> None:
    session = create_session()
    session.open(URI, "python", "a = 1\nb = ")
    session.outcomes.show(URI, ShownSuggestion("1", 10, "2"), now_s=0.0)

    session.change(URI, [TextChange("a = 1\nb = ")])

    is_newly_shown = session.outcomes.show(URI, ShownSuggestion("1", 10, "2"), now_s=1.0)
    assert not is_newly_shown, "the suggestion must still be shown"


async def test_a_replaced_text_can_accept_the_suggestion() -> None:
    session = create_session()
    session.open(URI, "python", "a = 1\nb = ")
    session.outcomes.show(URI, ShownSuggestion("1", 10, "a + 2"), now_s=0.0)

    session.change(URI, [TextChange("a = 1\nb = a"), TextChange("a = 1\nb = a + 2")])

    file = session.files.get(URI)
    assert file is not None
    assert file.text == "a = 1\nb = a + 2"
    is_newly_shown = session.outcomes.show(URI, ShownSuggestion("1", 10, "a + 2"), now_s=1.0)
    assert is_newly_shown, "the earlier suggestion must count as accepted"


async def test_a_new_connection_clears_the_budget_status() -> None:
    session = create_session()
    session.board.set(is_over_budget=True)

    session.on_state(ConnectionState.CONNECTED)

    assert session.board.status is ServerStatus.READY


async def test_reopening_a_file_replaces_its_text_and_hides_its_suggestion() -> None:
    session = create_session()
    session.open(URI, "python", "a = 1\n")
    session.outcomes.show(URI, ShownSuggestion("1", 6, "2"), now_s=0.0)

    session.open(URI, "python", "b = 1\n")

    file = session.files.get(URI)
    assert file is not None
    assert file.text == "b = 1\n"
    is_newly_shown = session.outcomes.show(URI, ShownSuggestion("1", 6, "2"), now_s=1.0)
    assert is_newly_shown, "the earlier suggestion must no longer be shown"


async def test_a_switch_of_branches_clears_the_cache(tmp_path: Path) -> None:
    head = tmp_path / ".git" / "HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/main\n")
    uri = (tmp_path / "a.py").as_uri()
    session = create_session()
    session.open(uri, "python", "a = 1\nb = ")
    context = CompletionContext(uri=uri, path="a.py", language="python", prefix="b = ", suffix="")
    session.cache.store(create_suggestion(context, "2", id="1"))

    head.write_text("ref: refs/heads/other\n")
    session.run_upkeep()

    assert len(session.cache) == 0


async def test_the_cache_is_kept_without_a_switch_of_branches(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    uri = (tmp_path / "a.py").as_uri()
    session = create_session()
    session.open(uri, "python", "a = 1\nb = ")
    context = CompletionContext(uri=uri, path="a.py", language="python", prefix="b = ", suffix="")
    session.cache.store(create_suggestion(context, "2", id="1"))

    session.run_upkeep()
    session.run_upkeep()

    assert len(session.cache) == 1


async def test_secret_files_and_files_of_other_repositories_are_no_context(tmp_path: Path) -> None:
    session, uris = create_session(), {}
    for name in ("shop/b.py", "shop/.env", "other/c.py", "shop/a.py"):
        path = tmp_path / name
        (path.parent / ".git").mkdir(parents=True, exist_ok=True)
        uris[name] = path.as_uri()
        session.open(uris[name], "python", "x = 1\n")
        session.change(uris[name], [TextChange("x = 12\n")])
    current_file = session.files.get(uris["shop/a.py"])
    assert current_file is not None

    context = session._build_context(current_file)

    assert [file.path for file in context.files] == ["b.py"]
