"""Neovim 0.11 with the plugin: a suggestion shown on its screen, accepted with Tab, counted."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from caret.contracts.usage import OutcomeRecord
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.functional.gateway.gateway_stack import Site, wait_until

pytestmark = pytest.mark.engine

_LAST_WORD: Final = "self.m"
_TEXT: Final = "import os\n\n\nclass Reader:\n    def __init__(self, path, mode):\n"


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


@pytest.fixture
def neovim(ada: Developer) -> Iterator[Neovim]:
    """Run Neovim with `reader.py` open."""
    file = ada.write_file("reader.py", _TEXT)
    with running_neovim(ada.home, file, key=ada.key, gateway_url=ada.site.url) as editor:
        yield editor


async def test_tab_accepts_a_visible_suggestion(ada: Developer, neovim: Neovim) -> None:
    async def is_ready() -> bool:
        return "connected" in _log_of(ada)

    assert await wait_until(is_ready, timeout_s=TIMEOUT_S), "Neovim did not start"
    neovim.press(f"Go        self.path = path<CR>        {_LAST_WORD}")

    async def is_typed() -> bool:
        return (await asyncio.to_thread(lambda: neovim.line)).strip() == _LAST_WORD

    assert await wait_until(is_typed, timeout_s=TIMEOUT_S)
    suggestion = await neovim.wait_for_any_suggestion()
    neovim.press("<Tab>")
    shown_outcome, accepted = (await ada.wait_for_records(OutcomeRecord, 2))[-2:]

    accepted_text = neovim.text.partition(_LAST_WORD)[2]
    assert accepted_text.startswith(suggestion.rstrip("\n"))  # it may have grown before the Tab
    assert neovim.suggestion != suggestion
    assert (shown_outcome.event, accepted.event) == ("shown", "accepted")
    assert accepted.chars == len(accepted_text)


def _log_of(ada: Developer) -> str:
    try:
        return ada.log
    except OSError:
        return ""
