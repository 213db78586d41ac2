"""`policy` frames, which tell a client which files it must not send."""

import json

import pytest

from caret.contracts.policy import Mode
from inference.errors import UnauthenticatedRequest
from inference.gateway.protocol.frames import ErrorFrame, PolicyFrame, encode_frame
from inference.gateway.receive import MAX_NAME_CHARS
from tests.fakes.stream_client import Editor, open_editor
from tests.fakes.tenants import make_policy, make_principal

# The excluded globs of each repository; "*" stands for all repositories.
EXCLUSION = {"*": ("**/.env", "legal/**"), "shop": ("**/.env", "prices/*"), "mill": ("secret/**",)}


async def request_policy(editor: Editor, repository: object) -> list[object]:
    """Request the policy of a repository. Return all frames that the editor got so far."""
    frame = {"type": "policy", "repository": repository}
    await editor.connection.on_frame(json.dumps(frame))
    return list(editor.frames)


async def test_the_globs_of_the_repository_and_the_general_ones_are_listed_once() -> None:
    policy = make_policy(content_exclusion=EXCLUSION, features=frozenset({Mode.FIM, Mode.INLINE}))
    async with open_editor() as editor:
        editor.principal = make_principal(policy=policy)
        frames = await request_policy(editor, "shop")

    excluded = ["**/.env", "legal/**", "prices/*"]
    assert frames == [PolicyFrame("shop", excluded, ["inline", "fim"])]


async def test_the_repository_name_ignores_case() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        (frame,) = await request_policy(editor, "Shop")

    assert isinstance(frame, PolicyFrame)
    assert frame.repository == "Shop"
    assert "prices/*" in frame.excluded_globs


async def test_the_globs_of_other_repositories_are_not_listed() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        (frame,) = await request_policy(editor, "")

    assert isinstance(frame, PolicyFrame)
    assert frame.excluded_globs == ["**/.env", "legal/**"]


async def test_only_the_modes_of_the_key_are_listed() -> None:
    async with open_editor() as editor:
        editor.principal = make_principal(modes=frozenset({Mode.CHAT}))
        (frame,) = await request_policy(editor, "shop")

    assert isinstance(frame, PolicyFrame)
    assert frame.modes == ["chat"]


async def test_a_changed_policy_reaches_an_open_connection() -> None:
    async with open_editor() as editor:
        await request_policy(editor, "shop")
        editor.principal = make_principal(policy=make_policy(content_exclusion=EXCLUSION))
        before, after = await request_policy(editor, "shop")

    assert isinstance(before, PolicyFrame)
    assert isinstance(after, PolicyFrame)
    assert before.excluded_globs != after.excluded_globs


async def test_a_revoked_key_gets_an_error() -> None:
    def raise_revoked() -> object:
        raise UnauthenticatedRequest("revoked_api_key", "This key was revoked.")

    async with open_editor() as editor:
        editor.find_principal = raise_revoked
        frames = await request_policy(editor, "shop")

    assert frames == [ErrorFrame(id="", code="revoked_api_key", message="This key was revoked.")]


@pytest.mark.parametrize(
    ("repository", "code"), [("x" * (MAX_NAME_CHARS + 1), "too_large"), (7, "invalid_field")]
)
async def test_an_invalid_repository_is_rejected(repository: object, code: str) -> None:
    async with open_editor() as editor:
        (error,) = await request_policy(editor, repository)

    assert isinstance(error, ErrorFrame)
    assert error.code == code


def test_the_encoded_frame_has_its_type() -> None:
    encoded = json.loads(encode_frame(PolicyFrame("shop", ["a/*"], ["inline"])))

    assert encoded == {
        "type": "policy",
        "repository": "shop",
        "excluded_globs": ["a/*"],
        "modes": ["inline"],
    }
