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
    CapturedEdit,
    ContentBatch,
    ContentSealer,
    Item,
)
from caret.contracts.policy import ContentCapturePolicy
from caret.contracts.sealed_message import FIELD
from caret.contracts.snapshot import TenantSnapshot
from tests.benchmarks.installation import new_tenant, publish, root_secret_of
from tests.functional.gateway.gateway_stack import Entries, Site, until

ALLOWED = ContentCapturePolicy(wording="tenant-1", retention_days=30)


@dataclass(slots=True)
class Tenant:
    """A tenant as the control plane publishes it."""

    site: Site
    snapshot: TenantSnapshot
    key: str

    def publish(self, *, allows: bool, agrees: bool) -> None:
        (credential,) = self.snapshot.credentials
        policy = msgspec.structs.replace(
            self.snapshot.policy, telemetry=ALLOWED if allows else None
        )
        self.snapshot = msgspec.structs.replace(
            self.snapshot,
            version=self.snapshot.version + 1,
            policy=policy,
            credentials=(msgspec.structs.replace(credential, keeps_content=agrees),),
        )
        publish(self.site.home.paths, self.snapshot)

    def sent(self) -> list[Item]:
        """Return everything that was sent for this tenant."""
        sealer = ContentSealer(root_secret_of(self.site.home.paths))
        address = self.site.home.paths.redis_url.read_text().strip()
        with redis.Redis.from_url(address) as connection:
            entries = cast(Entries, connection.xrange(CONTENT))
        opened = [sealer.open(fields[FIELD.encode()], ContentBatch) for _, fields in entries]
        mine = [batch for tenant_id, batch in opened if tenant_id == self.snapshot.tenant_id]
        return [item for batch in mine for item in batch.items]


def make_tenant(site: Site, *, allows: bool = True, agrees: bool = True) -> Tenant:
    snapshot, key = new_tenant("willing", root_secret=root_secret_of(site.home.paths))
    tenant = Tenant(site, snapshot, key)
    tenant.publish(allows=allows, agrees=agrees)
    return tenant


async def is_known(site: Site, tenant: Tenant) -> bool:
    try:
        async with site.stream(tenant.key):
            return True
    except InvalidStatus:
        return False


async def complete(site: Site, tenant: Tenant, prefix: str, **outcome: Any) -> None:
    assert await until(lambda: is_known(site, tenant)), "the gateway does not know the tenant"
    async with site.stream(tenant.key) as stream:
        await ask(site, stream, prefix, **outcome)


async def ask(site: Site, stream: CompletionStream, prefix: str, **outcome: Any) -> None:
    identifier = site.new_id()
    frame = {"type": "complete", "id": identifier, "mode": "fim", "path": "a.txt", "max_tokens": 2}
    await stream.send({**frame, "prefix": prefix})
    while (answer := await stream.receive())["type"] == "delta":
        pass
    assert answer["type"] == "done", answer
    if outcome:
        await stream.send({"type": "outcome", "id": identifier, "event": "accepted", **outcome})


async def prefixes_once(tenant: Tenant, *, last: str) -> list[str]:
    """Return the prefixes sent, after the one of `last`."""

    async def is_there() -> bool:
        return any(
            isinstance(item, CapturedCompletion) and item.prefix == last for item in tenant.sent()
        )

    assert await until(is_there, patience_s=10.0), f"{last!r} was not sent"
    return [item.prefix for item in tenant.sent() if isinstance(item, CapturedCompletion)]


async def test_with_both_keys_turned_content_is_sent_sealed(quick_site: Site) -> None:
    tenant = make_tenant(quick_site)

    await complete(quick_site, tenant, "planted = ", chars=1, text="edited = 1")

    await prefixes_once(tenant, last="planted = ")
    address = quick_site.home.paths.redis_url.read_text().strip()
    with redis.Redis.from_url(address) as connection:
        assert b"planted" not in (connection.dump(CONTENT) or b"")
    (edit,) = [item for item in tenant.sent() if isinstance(item, CapturedEdit)]
    assert edit.text == "edited = 1"


async def test_with_one_key_or_none_nothing_is_sent(quick_site: Site) -> None:
    refusing = [
        make_tenant(quick_site, allows=allows, agrees=agrees)
        for allows, agrees in ((True, False), (False, True), (False, False))
    ]
    for tenant in refusing:
        await complete(quick_site, tenant, "planted = ", chars=1, text="edited = 1")
    willing = make_tenant(quick_site)

    await complete(quick_site, willing, "last = ")

    await prefixes_once(willing, last="last = ")
    assert [tenant.sent() for tenant in refusing] == [[], [], []]


async def test_a_withdrawal_ends_it_on_a_connection_that_is_open(quick_site: Site) -> None:
    tenant = make_tenant(quick_site)
    await complete(quick_site, tenant, "first = ")
    async with quick_site.stream(tenant.key) as stream:
        await ask(quick_site, stream, "before = ")
        await prefixes_once(tenant, last="before = ")

        tenant.publish(allows=True, agrees=False)

        async def is_withdrawn() -> bool:
            before = len(tenant.sent())
            other = make_tenant(quick_site)
            await ask(quick_site, stream, "between = ")
            await complete(quick_site, other, "barrier = ")
            await prefixes_once(other, last="barrier = ")
            return len(tenant.sent()) == before

        assert await until(is_withdrawn, patience_s=20.0)
        await ask(quick_site, stream, "after = ", chars=1, text="edited after")

    tenant.publish(allows=True, agrees=True)
    other = make_tenant(quick_site)
    await complete(quick_site, other, "last = ")
    await prefixes_once(other, last="last = ")
    assert not any("after" in str(item) for item in tenant.sent())
