"""`policy` frames, with which a client avoids sending excluded files."""

import json

import pytest

from caret.contracts.policy import Mode
from inference.errors import UnauthenticatedRequest
from inference.gateway.protocol.frames import ErrorFrame, PolicyFrame, encode_frame
from inference.gateway.receive import MAX_NAME_CHARS
from tests.fakes.stream_client import Editor, open_editor
from tests.fakes.tenants import make_policy, make_principal

EXCLUSION = {"*": ("**/.env", "legal/**"), "shop": ("**/.env", "prices/*"), "mill": ("secret/**",)}


async def ask(editor: Editor, repository: object) -> list[object]:
    frame = {"type": "policy", "repository": repository}
    await editor.connection.on_frame(json.dumps(frame))
    return list(editor.frames)


async def test_globs_of_the_repository_and_of_all_are_told_once_each() -> None:
    policy = make_policy(content_exclusion=EXCLUSION, features=frozenset({Mode.FIM, Mode.INLINE}))
    async with open_editor() as editor:
        editor.principal = make_principal(policy=policy)
        answered = await ask(editor, "shop")

    excluded = ["**/.env", "legal/**", "prices/*"]
    assert answered == [PolicyFrame("shop", excluded, ["inline", "fim"])]


async def test_globs_of_a_repository_are_told_however_its_name_is_written() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        (answer,) = await ask(editor, "Shop")

    assert isinstance(answer, PolicyFrame)
    assert answer.repository == "Shop"
    assert "prices/*" in answer.excluded


async def test_of_another_repository_nothing_is_told() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        (answer,) = await ask(editor, "")

    assert isinstance(answer, PolicyFrame)
    assert answer.excluded == ["**/.env", "legal/**"]


async def test_a_key_of_few_modes_is_told_these() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(modes=frozenset({Mode.CHAT}))
        (answer,) = await ask(editor, "shop")

    assert isinstance(answer, PolicyFrame)
    assert answer.modes == ["chat"]


async def test_what_holds_now_is_told_to_an_old_connection() -> None:
    async with open_editor() as editor:
        await ask(editor, "shop")
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        before, after = await ask(editor, "shop")

    assert isinstance(before, PolicyFrame)
    assert isinstance(after, PolicyFrame)
    assert before.excluded != after.excluded


async def test_who_is_nobody_any_more_is_told_nothing() -> None:
    def refuse() -> object:
        raise UnauthenticatedRequest("revoked_api_key", "This key was revoked.")

    async with open_editor() as editor:
        editor.present = refuse
        answered = await ask(editor, "shop")

    assert answered == [ErrorFrame(id="", code="revoked_api_key", message="This key was revoked.")]


@pytest.mark.parametrize(
    ("repository", "code"), [("x" * (MAX_NAME_CHARS + 1), "too_large"), (7, "invalid_field")]
)
async def test_what_names_no_repository_is_refused(repository: object, code: str) -> None:
    async with open_editor() as editor:
        (refusal,) = await ask(editor, repository)

    assert isinstance(refusal, ErrorFrame)
    assert refusal.code == code


def test_on_the_wire_it_has_its_type() -> None:
    told = json.loads(encode_frame(PolicyFrame("shop", ["a/*"], ["inline"])))

    assert told == {
        "type": "policy",
        "repository": "shop",
        "excluded": ["a/*"],
        "modes": ["inline"],
    }
