"""The next edit on the screen of VS Code.

The gateway is a fake that the tests control; the rest is real.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from caret.local.paths import REPOSITORY
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
_PICTURES: Final = REPOSITORY / ".caret" / "pictures" / "extension"
_TEXT: Final = "def total(items):\n    return sum(items)\n\n\nprint(total([1, 2]))\nprint('end')\n"
_RENAMED: Final = _TEXT.replace("total(items)", "total_of(items)")
_CALL: Final = "print(total_of([1, 2]))\n"
_LOOP: Final = "for items in [[1, 2], [3]]:\n    print(total_of(items))\nprint('the end')\n"
_BLOCK: Final = "    if not items:\n        return 0\n    return sum(items)\n"


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedGateway]:
    with scripted_gateway() as scripted:
        scripted.fake.modes = ["inline", "edit"]
        scripted.fake.suggestion = ""
        yield scripted


@pytest.fixture(scope="module")
def workbench(
    scripted: ScriptedGateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    home = tmp_path_factory.mktemp("code-server")
    files = dict.fromkeys(("accepted.py", "dismissed.py", "typed.py"), _TEXT)
    with open_workbench(scripted.fake.url, home, files) as opened:
        yield opened


def _rename(
    workbench: Workbench,
    scripted: ScriptedGateway,
    name: str,
    *,
    end_line: int = 5,
    text: str = _CALL,
) -> Path:
    """Rename the function of the file, and wait for the edit of its call.

    The edit replaces the lines from the fifth one, which has the number 4, to before `end_line`.
    """
    scripted.fake.edit = {"start_line": 4, "end_line": end_line, "text": text}
    file = workbench.open_file(name)
    workbench.press_keys("Control+Home")
    for _ in range(len("def total")):
        workbench.press_keys("ArrowRight")
    workbench.type_text("_of")
    workbench.wait_for_hint("Tab: go to the edit in line 5")
    return file


def test_tab_goes_to_the_edit_applies_it_and_brings_the_next(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file = _rename(workbench, scripted, "accepted.py")
    workbench.take_screenshot(_PICTURES / "next-edit-away.png")

    workbench.press_keys("Tab")
    workbench.wait_for_hint("Tab: apply the edit")
    workbench.take_screenshot(_PICTURES / "next-edit-at-cursor.png")
    scripted.fake.edit = {"start_line": 1, "end_line": 2, "text": _BLOCK}
    workbench.press_keys("Tab")
    workbench.wait_for_hint("Tab: go to the edit in line 2")
    workbench.take_screenshot(_PICTURES / "next-edit-block.png")
    scripted.fake.edit = None
    workbench.press_keys("Tab")
    workbench.wait_for_hint("Tab: apply the edit")
    workbench.press_keys("Tab")
    workbench.save_and_expect(file, _BLOCK)

    changed = _RENAMED.replace("print(total([1, 2]))\n", _CALL)
    assert file.read_text() == changed.replace("    return sum(items)\n", _BLOCK)
    wait_until(lambda: len(scripted.fake.outcomes("accepted")) == 2, timeout_s=TIMEOUT_S)
    assert len(scripted.fake.outcomes("shown")) == 2


def test_escape_dismisses_the_edit_and_tab_indents_again(
    workbench: Workbench, scripted: ScriptedGateway
) -> None:
    file = _rename(workbench, scripted, "dismissed.py", end_line=6, text=_LOOP)
    workbench.take_screenshot(_PICTURES / "next-edit-lines.png")

    workbench.press_keys("Escape")
    workbench.wait_for_no_hint()
    workbench.press_keys("Home")
    workbench.press_keys("Tab")

    workbench.save_and_expect(file, "    def total_of(items):")


def test_typing_hides_the_edit(workbench: Workbench, scripted: ScriptedGateway) -> None:
    file = _rename(workbench, scripted, "typed.py")

    scripted.fake.edit = None
    workbench.type_text("x")
    workbench.wait_for_no_hint()

    workbench.save_and_expect(file, "def total_ofx(items):")
