"""A suggestion grows on the screen of Neovim. The gateway is a fake; the rest is real."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from caret_ls.frames import Frame
from tests.fakes.polling import wait_until
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = pytest.mark.deep  # drives Neovim

_TEXT = "import os\n"
_LINE = "def f():"
_FIRST = "\n    a = 1"
_KEY = "cpk_test_" + "0" * 28


@pytest.fixture
async def fake() -> AsyncIterator[Gateway]:
    async with gateway() as gateway_fake:
        yield gateway_fake


@pytest.fixture
async def neovim(fake: Gateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    """Run Neovim with the first line of a suggestion on its screen."""
    file = tmp_path / "a.py"
    file.write_text(_TEXT)
    with running_neovim(tmp_path, file, key=_KEY, gateway_url=fake.url) as editor:
        await wait_until(lambda: bool(fake.sockets), timeout_s=TIMEOUT_S)
        editor.press(f"Go{_LINE}")  # Go: begin a new last line
        await wait_until(lambda: bool(_requests(fake)), timeout_s=TIMEOUT_S)
        await fake.send(type="delta", id=_request_id(fake), text=f"{_untyped(fake)}{_FIRST}\n")
        assert await editor.wait_for_suggestion(_FIRST)
        yield editor


def _requests(fake: Gateway) -> list[Frame]:
    return [frame for frame in fake.received if frame["type"] == "complete"]


def _request_id(fake: Gateway) -> str:
    return str(_requests(fake)[-1]["id"])


def _untyped(fake: Gateway) -> str:
    """Return the part of the typed line that was not typed yet when the request was sent."""
    return (_TEXT + _LINE).removeprefix(str(_requests(fake)[-1]["prefix"]))


async def test_the_rest_follows_and_tab_accepts_the_whole(fake: Gateway, neovim: Neovim) -> None:
    await fake.send(type="delta", id=_request_id(fake), text="    return a\n")
    assert await neovim.wait_for_suggestion(f"{_FIRST}\n    return a")
    await fake.send(type="done", id=_request_id(fake), finish_reason="stop", meta={})
    neovim.press("<Tab>")
    await wait_until(lambda: bool(fake.outcomes("accepted")), timeout_s=TIMEOUT_S)

    assert neovim.text == f"{_TEXT}{_LINE}{_FIRST}\n    return a"
    assert len(fake.outcomes("shown")) == 1


async def test_the_shown_part_stays_when_the_engine_dies(fake: Gateway, neovim: Neovim) -> None:
    await fake.send(type="error", id=_request_id(fake), code="engine_disconnected", message="")
    await asyncio.sleep(1.0)  # the error arrives before Tab
    neovim.press("<Tab>")
    await wait_until(lambda: bool(fake.outcomes("accepted")), timeout_s=TIMEOUT_S)

    assert neovim.line.rstrip("\n") == "    a = 1"


async def test_typing_other_text_than_the_shown_part_cancels_the_rest(
    fake: Gateway, neovim: Neovim
) -> None:
    first_id = _request_id(fake)
    neovim.press("x")
    await wait_until(
        lambda: {"type": "cancel", "id": first_id} in fake.received,
        timeout_s=TIMEOUT_S,
    )

    assert neovim.suggestion.rstrip("\n") == ""
