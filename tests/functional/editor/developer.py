"""A developer with their own tenant, in an editor with the language server."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from caret.contracts.snapshot import TenantSnapshot
from caret.contracts.usage import CompletionRecord, OutcomeRecord, UsageRecord
from tests.benchmarks.installation import new_tenant, publish, root_secret_of
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.stack.language_server import LanguageServer, environment_of, language_server

Record = TypeVar("Record", CompletionRecord, OutcomeRecord)


@dataclass(slots=True)
class Developer:
    site: Site
    snapshot: TenantSnapshot
    key: str
    home: Path

    @property
    def tenant_id(self) -> str:
        return self.snapshot.tenant_id

    @property
    def log(self) -> str:
        """Return the log of the language server."""
        # `environment_of` sets the variable XDG_STATE_HOME to the folder of the same name.
        return (self.home / "XDG_STATE_HOME" / "caret" / "caret-ls.log").read_text()

    def records(self, kind: type[Record]) -> list[Record]:
        """Return the tenant's records of this kind, in the order of delivery."""
        all_records: list[UsageRecord] = self.site.records()
        return [
            record
            for record in all_records
            if isinstance(record, kind) and record.tenant_id == self.tenant_id
        ]

    async def wait_for_records(self, kind: type[Record], count: int) -> list[Record]:
        """Wait until there are `count` records of this kind, and return all of them."""

        async def are_there() -> bool:
            return len(self.records(kind)) >= count

        assert await wait_until(are_there), f"{len(self.records(kind))} of {count} were delivered"
        return self.records(kind)

    async def num_records(self, kind: type[Record]) -> int:
        """Wait until all records are delivered, and return the number of those of this kind."""
        await self.site.num_records()  # waits for the delivery
        return len(self.records(kind))

    @asynccontextmanager
    async def editor(self, **environment: str) -> AsyncIterator[LanguageServer]:
        """Start the language server, with or without a running gateway."""
        variables = {"CARET_API_KEY": self.key, "CARET_GATEWAY_URL": self.site.url} | environment
        async with language_server(
            environment_of(self.home, **variables), folder=self.home
        ) as server:
            yield server

    def publish_changes(self, **changes: Any) -> None:
        """Publish the tenant's snapshot with these fields, as the control plane does."""
        self.snapshot = msgspec.structs.replace(
            self.snapshot, version=self.snapshot.version + 1, **changes
        )
        publish(self.site.home.paths, self.snapshot)

    def write_file(self, path: str, text: str) -> Path:
        """Write a file of the project `shop`, and return its full path."""
        file = self.home / "shop" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


def make_developer(site: Site, home: Path, **policy: Any) -> Developer:
    """Make a developer.

    `policy` contains the fields that differ from a policy that allows everything.
    """
    snapshot, key = new_tenant(
        f"t-{uuid.uuid4().hex[:8]}", root_secret=root_secret_of(site.home.paths)
    )
    changed_policy = msgspec.structs.replace(snapshot.policy, **policy)
    snapshot = msgspec.structs.replace(snapshot, policy=changed_policy)
    publish(site.home.paths, snapshot)
    return Developer(site, snapshot, key, home)
