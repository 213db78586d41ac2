"""The language server's sign-in by the OAuth device flow, with scripted answers of a console."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from caret_ls.device_sign_in import (
    DeviceCodes,
    Json,
    SignInFailed,
    SignInProblem,
    make_post,
    request_codes,
    wait_for_key,
)

DEVICE_CODE = "d" * 30
CODES: Json = {
    "device_code": DEVICE_CODE,
    "user_code": "BCDF-GHJK",
    "verification_uri": "https://caret.example/device",
    "verification_uri_complete": "https://caret.example/device?code=BCDF-GHJK",
    "expires_in": 600,
    "interval": 5,
}
PENDING: Json = {"error": "authorization_pending"}
TOKEN: Json = {"access_token": "cpk_live_1", "token_type": "Bearer"}


class Console:
    """A console that gives scripted answers, and records the requests and the waits."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[str, Mapping[str, str]]] = []
        self.waits_s: list[float] = []

    async def post(self, path: str, fields: Mapping[str, str]) -> Json:
        self.sent.append((path, fields))
        answer: Any = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]  # as scripted

    async def sleep(self, duration_s: float) -> None:
        self.waits_s.append(duration_s)


async def request_codes_from(console: Console) -> DeviceCodes:
    return await request_codes(console.post, editor="Neovim 0.11")


async def poll_for_key(console: Console) -> str:
    """Poll the console for the API key, with codes from another console."""
    codes = await request_codes_from(Console(CODES))
    return await wait_for_key(console.post, codes, console.sleep)


async def test_the_editor_names_itself_and_its_machine() -> None:
    console = Console(CODES)

    codes = await request_codes(console.post, editor="Neo\nvim " + "x" * 99)

    ((path, fields),) = console.sent
    assert path == "/oauth/device_authorization"
    assert fields["editor"].startswith("Neovim x")
    # The names are cut to 55 characters.
    assert all(1 <= len(fields[name]) <= 55 for name in ("editor", "machine"))
    assert codes.user_code == "BCDF-GHJK"
    assert DEVICE_CODE not in repr(codes)


async def test_polling_continues_until_the_key_arrives() -> None:
    console = Console(PENDING, PENDING, TOKEN)

    assert await poll_for_key(console) == "cpk_live_1"
    assert console.waits_s == [5, 5, 5]


async def test_the_polling_interval_grows_if_the_console_asks_for_it_or_fails_to_answer() -> None:
    console = Console({"error": "slow_down"}, OSError(), ValueError(), PENDING, TOKEN)

    await poll_for_key(console)

    # `slow_down` adds five seconds; an error doubles the interval.
    assert console.waits_s == [5, 10, 20, 40, 40]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"error": "access_denied"}, SignInProblem.DENIED),
        ({"error": "expired_token"}, SignInProblem.EXPIRED),
        ({"error": "invalid_grant"}, SignInProblem.EXPIRED),
        ({}, SignInProblem.EXPIRED),
        ({"access_token": 7}, SignInProblem.EXPIRED),
    ],
)
async def test_any_other_answer_ends_the_sign_in(answer: Json, problem: SignInProblem) -> None:
    with pytest.raises(SignInFailed) as exc_info:
        await poll_for_key(Console(PENDING, answer))

    assert exc_info.value.problem is problem


async def test_the_sign_in_ends_when_the_code_expires() -> None:
    console = Console(*[PENDING] * 200)

    with pytest.raises(SignInFailed) as exc_info:
        await poll_for_key(console)

    assert exc_info.value.problem is SignInProblem.EXPIRED
    assert sum(console.waits_s) == CODES["expires_in"]


@pytest.mark.parametrize(
    "answer",
    [
        OSError(),
        ValueError(),
        {},
        {"error": "temporarily_unavailable"},
        CODES | {"expires_in": "soon"},
        CODES | {"verification_uri": "file:///etc/passwd"},
        CODES | {"verification_uri_complete": "vscode://evil"},
    ],
)
async def test_a_console_that_gives_no_usable_codes_is_unreachable(answer: Any) -> None:
    with pytest.raises(SignInFailed) as exc_info:
        await request_codes_from(Console(answer))

    assert exc_info.value.problem is SignInProblem.UNREACHABLE


async def test_a_console_that_does_not_respond_with_http_is_unreachable() -> None:
    async def send_ssh_banner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(send_ssh_banner, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(SignInFailed) as exc_info:
            await request_codes(make_post(f"http://127.0.0.1:{port}"), editor="Neovim")

    assert exc_info.value.problem is SignInProblem.UNREACHABLE
