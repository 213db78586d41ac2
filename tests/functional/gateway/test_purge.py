"""`manage.py tenant purge-cache SLUG`: the next request finds nothing cached."""

import pytest

from tests.benchmarks.synthetic_code import SUFFIX, CodeText
from tests.functional.gateway.gateway_stack import (
    Frame,
    PatientStream,
    connect_websocket,
    request_completion,
    wait_until,
)
from tests.stack.commands import manage
from tests.stack.running import Stack, Tenant

pytestmark = pytest.mark.engine
# Time until the purge takes effect in every gateway, after the command ends: usually less than 1 s.
WITHIN_S = 10.0


async def test_a_cache_purge_makes_the_tenants_next_request_cold(
    stack: Stack, code: CodeText
) -> None:
    acme, globex = stack.tenant("acme"), stack.tenant("globex")
    prefix = code.sample(mode="fim", num_tokens=200, max_tokens=4).prefix
    # Each tenant's second request finds the prompt of its first request in the cache.
    _, acme_cached, _, globex_cached = [
        await _cached_tokens(stack, tenant, prefix) for tenant in (acme, acme, globex, globex)
    ]

    result = manage("tenant", "purge-cache", "acme", environment=stack.environment)

    async def is_purged() -> bool:
        return await _cached_tokens(stack, acme, prefix) == 0

    assert result.returncode == 0, result.stderr
    assert await wait_until(is_purged, timeout_s=WITHIN_S)
    assert acme_cached > 100  # of the 200 tokens before the cursor
    assert globex_cached > 100
    assert await _cached_tokens(stack, globex, prefix) == globex_cached


async def _cached_tokens(stack: Stack, tenant: Tenant, prefix: str) -> int:
    """Request a completion, and return how many tokens of its prompt were cached."""
    frame: Frame = {"id": "1", "mode": "fim", "prefix": prefix, "suffix": SUFFIX, "max_tokens": 4}
    async with connect_websocket(
        stack.gateway_url, {"Authorization": f"Bearer {tenant.api_key}"}
    ) as socket:
        _, done = await request_completion(PatientStream(socket), frame)
    return int(done["meta"]["cached_tokens"])
