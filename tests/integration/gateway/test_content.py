"""A real gateway sends captured content only if both tenant and user have consented."""

from dataclasses import dataclass
from typing import Any, cast

import msgspec
import redis
from websockets.exceptions import InvalidStatus

from caret.client.websocket_client import CompletionStream
from caret.contracts.captured_content import (
    CONTENT,
    CapturedCompletion,
    CapturedSuggestionEdit,
    ContentBatch,
    ContentSealer,
    Item,
)
from caret.contracts.policy import ContentCapturePolicy
from caret.contracts.sealed_message import FIELD
from caret.contracts.snapshot import TenantSnapshot
from tests.benchmarks.installation import new_tenant, publish, root_secret_of
from tests.functional.gateway.gateway_stack import Entries, Site, wait_until

ALLOWED = ContentCapturePolicy(consent_text="tenant-1", retention_days=30)


@dataclass(slots=True)
class Tenant:
    """A tenant as the control plane publishes it."""

    site: Site
    snapshot: TenantSnapshot
    key: str

    def publish(self, *, is_allowed_by_tenant: bool, is_allowed_by_user: bool) -> None:
        (credential,) = self.snapshot.credentials
        policy = msgspec.structs.replace(
            self.snapshot.policy, content_capture=ALLOWED if is_allowed_by_tenant else None
        )
        self.snapshot = msgspec.structs.replace(
            self.snapshot,
            version=self.snapshot.version + 1,
            policy=policy,
            credentials=(msgspec.structs.replace(credential, keeps_content=is_allowed_by_user),),
        )
        publish(self.site.home.paths, self.snapshot)

    def sent_items(self) -> list[Item]:
        """Return the content that gateways have sent for this tenant."""
        sealer = ContentSealer(root_secret_of(self.site.home.paths))
        address = self.site.home.paths.redis_url.read_text().strip()
        with redis.Redis.from_url(address) as connection:
            entries = cast(Entries, connection.xrange(CONTENT))
        batches = [sealer.open(fields[FIELD.encode()], ContentBatch) for _, fields in entries]
        own_batches = [
            batch for tenant_id, batch in batches if tenant_id == self.snapshot.tenant_id
        ]
        return [item for batch in own_batches for item in batch.items]


def make_tenant(
    site: Site, *, is_allowed_by_tenant: bool = True, is_allowed_by_user: bool = True
) -> Tenant:
    snapshot, key = new_tenant("initech", root_secret=root_secret_of(site.home.paths))
    tenant = Tenant(site, snapshot, key)
    tenant.publish(is_allowed_by_tenant=is_allowed_by_tenant, is_allowed_by_user=is_allowed_by_user)
    return tenant


async def is_known(site: Site, tenant: Tenant) -> bool:
    try:
        async with site.stream(tenant.key):
            return True
    except InvalidStatus:
        return False


async def complete(site: Site, tenant: Tenant, prefix: str, **outcome: Any) -> None:
    """Request a completion as soon as the gateway knows the tenant."""
    assert await wait_until(lambda: is_known(site, tenant)), "the gateway does not know the tenant"
    async with site.stream(tenant.key) as stream:
        await request_with_outcome(site, stream, prefix, **outcome)


async def request_with_outcome(
    site: Site, stream: CompletionStream, prefix: str, **outcome: Any
) -> None:
    """Request a completion. If `outcome` has fields, report an `accepted` outcome with them."""
    identifier = site.new_id()
    frame = {"type": "complete", "id": identifier, "mode": "fim", "path": "a.txt", "max_tokens": 2}
    await stream.send({**frame, "prefix": prefix})
    while (received := await stream.receive())["type"] == "delta":
        pass
    assert received["type"] == "done", received
    if outcome:
        await stream.send({"type": "outcome", "id": identifier, "event": "accepted", **outcome})


async def wait_for_prefixes(tenant: Tenant, *, last: str) -> list[str]:
    """Wait until the prefix `last` has been sent, and return all prefixes."""

    async def is_sent() -> bool:
        return any(
            isinstance(item, CapturedCompletion) and item.prefix == last
            for item in tenant.sent_items()
        )

    assert await wait_until(is_sent), f"{last!r} was not sent"
    return [item.prefix for item in tenant.sent_items() if isinstance(item, CapturedCompletion)]


async def has_edit(tenant: Tenant) -> bool:
    """Return True if the edit was sent, which may come later than the completion."""
    return any(isinstance(item, CapturedSuggestionEdit) for item in tenant.sent_items())


async def test_content_is_sent_sealed_if_tenant_and_user_consent(quick_site: Site) -> None:
    tenant = make_tenant(quick_site)

    await complete(quick_site, tenant, "planted = ", chars=1, text="edited = 1")

    await wait_for_prefixes(tenant, last="planted = ")
    assert await wait_until(lambda: has_edit(tenant)), "the edit of the suggestion was not sent"
    address = quick_site.home.paths.redis_url.read_text().strip()
    with redis.Redis.from_url(address) as connection:
        entries = cast(Entries, connection.xrange(CONTENT))
    assert b"planted" not in b"".join(value for _, fields in entries for value in fields.values())
    (edit,) = [item for item in tenant.sent_items() if isinstance(item, CapturedSuggestionEdit)]
    assert edit.text == "edited = 1"


async def test_no_content_is_sent_if_either_consent_is_missing(quick_site: Site) -> None:
    without_consent = [
        make_tenant(
            quick_site,
            is_allowed_by_tenant=is_allowed_by_tenant,
            is_allowed_by_user=is_allowed_by_user,
        )
        for is_allowed_by_tenant, is_allowed_by_user in (
            (True, False),
            (False, True),
            (False, False),
        )
    ]
    for tenant in without_consent:
        await complete(quick_site, tenant, "planted = ", chars=1, text="edited = 1")
    consenting = make_tenant(quick_site)

    await complete(quick_site, consenting, "last = ")

    await wait_for_prefixes(consenting, last="last = ")
    assert [tenant.sent_items() for tenant in without_consent] == [[], [], []]


async def test_a_withdrawal_stops_capture_on_an_open_connection(quick_site: Site) -> None:
    tenant = make_tenant(quick_site)
    await complete(quick_site, tenant, "first = ")
    async with quick_site.stream(tenant.key) as stream:
        await request_with_outcome(quick_site, stream, "before = ")
        await wait_for_prefixes(tenant, last="before = ")

        tenant.publish(is_allowed_by_tenant=True, is_allowed_by_user=False)

        # The gateway learns of the withdrawal a moment later, so completions are repeated. Content
        # arrives in the order in which it was sent. So once content of the barrier tenant has
        # arrived, any content of `tenant` that was sent before it has arrived, too.
        async def is_new_content_withheld() -> bool:
            num_before = len(tenant.sent_items())
            barrier_tenant = make_tenant(quick_site)
            await request_with_outcome(quick_site, stream, "between = ")
            await complete(quick_site, barrier_tenant, "barrier = ")
            await wait_for_prefixes(barrier_tenant, last="barrier = ")
            return len(tenant.sent_items()) == num_before

        assert await wait_until(is_new_content_withheld)
        await request_with_outcome(quick_site, stream, "after = ", chars=1, text="edited after")

    # Consent that is given again must not release content from before.
    tenant.publish(is_allowed_by_tenant=True, is_allowed_by_user=True)
    last_barrier_tenant = make_tenant(quick_site)
    await complete(quick_site, last_barrier_tenant, "last = ")
    await wait_for_prefixes(last_barrier_tenant, last="last = ")
    assert not any("after" in str(item) for item in tenant.sent_items())
