"""A suggestion grows on the screen of VS Code.

The gateway is a fake that the tests control; the rest is real.
"""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from tests.functional.editor.scripted_workbench import (
    MARKS,
    TIMEOUT_S,
    ScriptedGateway,
    open_workbench,
    scripted_gateway,
)
from tests.functional.editor.workbench import Workbench
from tests.stack.waiting import wait_until

pytestmark = MARKS
_FILES: Final = ("grows.py", "dies.py", "against.py")
_LINE: Final = "if os:"
_FIRST: Final = "\n    a = 1"
_REST: Final = ("    b = 2", "    c = 3", "    return a")


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedGateway]:
    with scripted_gateway() as gateway:
        yield gateway


@pytest.fixture(scope="module")
def workbench(
    scripted: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    home = tmp_path_factory.mktemp("code-server")
    with open_workbench(scripted.fake.url, home, dict.fromkeys(_FILES, "import os\n")) as opened:
        yield opened


def _show_first_line(
    workbench: Workbench, scripted: ScriptedGateway, name: str
) -> tuple[Path, str]:
    """Return the file, and the ID of the request whose first line is visible."""
    file = workbench.open_file(name)
    workbench.type_text(_LINE)
    request = scripted.wait_for_request(name)
    # The request may have been sent before the last keys. Then the completion begins with their
    # text.
    untyped = f"import os\n{_LINE}".removeprefix(request["prefix"])
    id = str(request["id"])
    workbench.watch_suggestion()
    scripted.run(scripted.fake.send(type="delta", id=id, text=f"{untyped}{_FIRST}\n"))
    workbench.wait_for_last_line("    a = 1", timeout_s=TIMEOUT_S)
    return file, id


def test_the_suggestion_only_grows_on_the_screen_and_tab_accepts_the_whole(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file, id = _show_first_line(workbench, scripted, "grows.py")

    for line in _REST:
        scripted.run(scripted.fake.send(type="delta", id=id, text=f"{line}\n"))
        workbench.wait_for_last_line(line, timeout_s=TIMEOUT_S)
    scripted.run(scripted.fake.send(type="done", id=id, finish_reason="stop", meta={}))
    suggestions = workbench.seen_suggestions()
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, "    return a")

    growing_suggestions = suggestions[suggestions.index("    a = 1") :]
    assert all(longer.startswith(text) for text, longer in pairwise(growing_suggestions))
    assert file.read_text() == f"import os\n{_LINE}\n" + "\n".join(["    a = 1", *_REST])
    wait_until(lambda: bool(scripted.fake.outcomes("accepted")), timeout_s=TIMEOUT_S)
    assert len([frame for frame in scripted.fake.outcomes("shown") if frame["id"] == id]) == 1


def test_the_visible_part_stays_when_the_engine_dies(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file, id = _show_first_line(workbench, scripted, "dies.py")

    scripted.run(scripted.fake.send(type="error", id=id, code="engine_disconnected", message=""))
    time.sleep(1.0)  # the error arrives before Tab
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, "    a = 1")

    # The text may be empty only before the suggestion appears and after Tab.
    assert "" not in workbench.seen_suggestions()[1:-1]


def test_typing_other_text_than_the_visible_part_cancels_the_rest(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    _, id = _show_first_line(workbench, scripted, "against.py")

    workbench.type_text("x")

    wait_until(lambda: scripted.has_received_cancel(id), timeout_s=TIMEOUT_S)
