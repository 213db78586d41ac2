"""Prompts of one repository begin with its pinned files, so the engine may reuse cached tokens.

Users of one tenant share these tokens only if the policy allows it. Tenants never share them.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec
import pytest

from caret.contracts.policy import Isolation
from tests.benchmarks.installation import new_credential, new_tenant, publish, root_secret_of
from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, wait_until

pytestmark = pytest.mark.engine
_NUM_PINNED: Final = 4
_PINNED_TOKENS: Final = 200  # each
_MIN_CACHED_SHARE: Final = 0.4  # of the tokens in a colleague's first prompt

MakeFrame = Callable[[str], Frame]


@pytest.fixture
def make_frame(site: Site, code: CodeText) -> MakeFrame:
    """Return a function that makes a user's request. All requests are in one new repository."""
    repository = site.new_id()
    pinned = [
        {"path": f"pinned/{n}.py", "text": _sample(code, _PINNED_TOKENS), "is_pinned": True}
        for n in range(_NUM_PINNED)
    ]

    def make(user: str) -> Frame:
        return {
            "id": site.new_id(),
            "mode": "fim",
            "path": f"{user}/main.py",
            "prefix": _sample(code, 250),
            "suffix": SUFFIX,
            "files": [{"path": f"{user}/open.py", "text": _sample(code, 100)}, *pinned],
            "repository": {"name": repository},
            "max_tokens": 1,
        }

    return make


def _sample(code: CodeText, num_tokens: int) -> str:
    return code.sample(mode="fim", num_tokens=num_tokens, max_tokens=1).prefix


async def _publish_tenant(site: Site, isolation: Isolation) -> tuple[str, str]:
    """Publish a tenant with two users and return their keys."""
    secret = root_secret_of(site.home.paths)
    colleague, colleagues_key = new_credential(secret)
    snapshot, key = new_tenant("initech", root_secret=secret)
    policy = msgspec.structs.replace(snapshot.policy, isolation=isolation)
    credentials = (*snapshot.credentials, colleague)
    publish(
        site.home.paths, msgspec.structs.replace(snapshot, policy=policy, credentials=credentials)
    )

    async def is_known() -> bool:
        async with site.http(key) as session, session.get("/v1/models") as response:
            return response.status == HTTPStatus.OK

    assert await wait_until(is_known)
    return key, colleagues_key


async def _request(site: Site, key: str, frame: Frame) -> Frame:
    """Request a completion and return its metadata."""
    async with site.stream(key) as stream:
        _, done = await request_completion(stream, frame)
    meta: Frame = done["meta"]
    return meta


async def test_a_colleagues_first_prompt_is_cached_in_large_part(
    site: Site, make_frame: MakeFrame
) -> None:
    keys = await _publish_tenant(site, Isolation.SHARED)

    first, second = [
        await _request(site, key, make_frame(user))
        for user, key in zip(("ada", "alice"), keys, strict=True)
    ]

    assert first["cached_tokens"] == 0
    assert second["cached_tokens"] >= _MIN_CACHED_SHARE * second["prompt_tokens"]


async def test_in_strict_isolation_colleagues_share_nothing(
    site: Site, make_frame: MakeFrame
) -> None:
    adas_key, alices_key = await _publish_tenant(site, Isolation.STRICT)

    for key, user in ((adas_key, "ada"), (alices_key, "alice")):
        meta = await _request(site, key, make_frame(user))

        assert meta["cached_tokens"] == 0
    assert (await _request(site, adas_key, make_frame("ada")))["cached_tokens"] > 0, (
        "nothing is ever cached"
    )


async def test_another_tenant_shares_nothing(site: Site, make_frame: MakeFrame) -> None:
    for key in (site.acme_key, site.globex_key):
        meta = await _request(site, key, make_frame("ada"))

        assert meta["cached_tokens"] == 0
    assert (await _request(site, site.acme_key, make_frame("ada")))["cached_tokens"] > 0, (
        "nothing is ever cached"
    )
