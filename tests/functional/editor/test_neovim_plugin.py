"""The plugin for Neovim: keys, messages, :checkhealth. The gateway is a fake."""

import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from caret_ls.frames import Frame
from tests.fakes.polling import wait_until
from tests.functional.editor.neovim import TIMEOUT_S, Neovim, running_neovim
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

pytestmark = pytest.mark.deep  # drives Neovim

_KEY: Final = "cpk_test_" + "0" * 28
_UNREACHABLE_URL: Final = "http://127.0.0.1:9"  # nothing listens there
_SUGGESTION: Final = "(self, größe):\n    return größe * 2"


@pytest.fixture
async def fake() -> AsyncIterator[Gateway]:
    async with gateway() as gateway_fake:
        yield gateway_fake


@pytest.fixture
async def neovim(fake: Gateway, tmp_path: Path) -> AsyncIterator[Neovim]:
    """Run Neovim with `_SUGGESTION` on its screen, after `def f`."""
    with running_neovim(tmp_path, _create_file(tmp_path), key=_KEY, gateway_url=fake.url) as editor:
        await wait_until(lambda: bool(fake.sockets), timeout_s=TIMEOUT_S)
        editor.press("Godef f")
        await _answer(fake)
        assert await editor.wait_for_suggestion(_SUGGESTION)
        yield editor


def _create_file(folder: Path) -> Path:
    file = folder / "a.py"
    file.write_text("import os\n")
    return file


async def _answer(fake: Gateway) -> None:
    """Answer the first request so that the suggestion continues the typed `def f`.

    The request may have been sent before the last keys. The answer then begins with their text.
    """

    def find_requests() -> list[Frame]:
        return [frame for frame in fake.received if frame["type"] == "complete"]

    await wait_until(lambda: bool(find_requests()), timeout_s=TIMEOUT_S)
    request = find_requests()[0]
    untyped = "import os\ndef f".removeprefix(request["prefix"])
    await fake.respond(request["id"], f"{untyped}{_SUGGESTION}")


async def test_words_are_accepted_one_by_one(fake: Gateway, neovim: Neovim) -> None:
    neovim.press("<M-Right>")
    assert await neovim.wait_for_suggestion(_SUGGESTION.removeprefix("("))
    neovim.press("<M-Right><M-Right><M-Right>")
    assert await neovim.wait_for_suggestion("):\n    return größe * 2")
    assert neovim.line.rstrip("\n") == "def f(self, größe"
    neovim.press("<Tab>")
    await wait_until(lambda: bool(fake.outcomes("accepted")), timeout_s=TIMEOUT_S)

    assert neovim.text == f"import os\ndef f{_SUGGESTION}"


async def test_lines_are_accepted_one_by_one(fake: Gateway, neovim: Neovim) -> None:
    neovim.press("<M-C-Right>")
    assert await neovim.wait_for_suggestion("\n    return größe * 2")
    assert neovim.line.rstrip("\n") == "def f(self, größe):"
    neovim.press("<M-C-Right>")
    assert await neovim.wait_for_suggestion("")

    assert neovim.text == f"import os\ndef f{_SUGGESTION}"


async def test_without_a_suggestion_the_keys_have_their_usual_effect(neovim: Neovim) -> None:
    neovim.press("<C-]>")  # the plugin's key for dismissing
    assert await neovim.wait_for_suggestion("")
    neovim.press("<Tab>x")

    assert neovim.line.rstrip("\n") == "def f   x"  # Tab indents to column 8


async def test_a_late_server_gets_the_text_typed_before_its_start(
    fake: Gateway, tmp_path: Path
) -> None:
    release = tmp_path / "release"  # the server starts when this file exists
    server = (
        f"until [ -e {shlex.quote(str(release))} ]; do sleep 0.1; done;"
        f" exec {shlex.quote(sys.executable)} -m caret_ls"
    )
    fake.suggestion = "(self)"
    with running_neovim(
        tmp_path, _create_file(tmp_path), key=_KEY, gateway_url=fake.url, cmd=("sh", "-c", server)
    ) as neovim:
        neovim.press("Godef f")
        assert not fake.sockets, "the server was not late"
        release.touch()

        assert await neovim.wait_for_suggestion("(self)")


@pytest.mark.parametrize(
    ("key", "refusal", "message"),
    [
        ("", None, "Caret: you are signed out. Sign in with :Caret sign_in."),
        (_KEY, 401, "Caret: the gateway rejected your key."),
    ],
)
async def test_a_message_says_why_the_user_is_signed_out(
    fake: Gateway, tmp_path: Path, key: str, refusal: int | None, message: str
) -> None:
    fake.refusal = refusal
    with running_neovim(tmp_path, _create_file(tmp_path), key=key, gateway_url=fake.url) as neovim:
        assert await neovim.wait_for_message(message)


async def test_a_message_names_the_key_file_that_others_can_read(
    fake: Gateway, tmp_path: Path
) -> None:
    # In `running_neovim`, the variable XDG_CONFIG_HOME names the folder of the same name.
    folder = tmp_path / "XDG_CONFIG_HOME" / "caret"
    folder.mkdir(parents=True)
    key_file = folder / "key"
    key_file.write_text(_KEY)
    key_file.chmod(0o644)
    with running_neovim(tmp_path, _create_file(tmp_path), key="", gateway_url=fake.url) as neovim:
        assert await neovim.wait_for_message(f"chmod 600 {key_file}")
        assert _KEY not in neovim.evaluate("execute('messages')")


async def test_a_message_names_the_gateway_that_cannot_be_reached(tmp_path: Path) -> None:
    url = _UNREACHABLE_URL
    with running_neovim(tmp_path, _create_file(tmp_path), key=_KEY, gateway_url=url) as neovim:
        assert await neovim.wait_for_message(f"Caret: the gateway at {url} cannot be reached.")


async def test_a_message_reports_a_missing_server(tmp_path: Path) -> None:
    with running_neovim(
        tmp_path,
        _create_file(tmp_path),
        key=_KEY,
        gateway_url=_UNREACHABLE_URL,
        cmd=("caret-none",),
    ) as neovim:
        assert await neovim.wait_for_message("`caret-none` of the option `cmd` is not executable")


async def test_a_message_reports_a_crashed_server(fake: Gateway, tmp_path: Path) -> None:
    with running_neovim(
        tmp_path, _create_file(tmp_path), key=_KEY, gateway_url=fake.url, cmd=("sh", "-c", "exit 3")
    ) as neovim:
        assert await neovim.wait_for_message("the language server has stopped")


async def test_checkhealth_names_server_gateway_and_status(fake: Gateway, tmp_path: Path) -> None:
    fake.refusal = 401
    with running_neovim(tmp_path, _create_file(tmp_path), key=_KEY, gateway_url=fake.url) as neovim:
        assert await neovim.wait_for_message("rejected your key")
        neovim.press(":checkhealth caret<CR>")
        report = neovim.text

    assert "OK caret-ls 0.1.0" in report
    assert f"Gateway: {fake.url}" in report
    assert "ERROR Caret: the gateway rejected your key" in report
