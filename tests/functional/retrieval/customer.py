"""A tenant of an installation: an administrator at the REST API and a developer at the gateway.

`Customer` also reads the tenant's rows directly from the database.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import psycopg

from caret.client.websocket_client import CompletionStream, open_stream
from caret.local.state_file import TenantEntry
from tests.functional.conftest import Installation
from tests.functional.gateway.gateway_stack import Frame, request_completion, wait_until

_TIMEOUT_S = 180.0  # a poll of the worker, an embedding on a busy core, and some margin


@dataclass(frozen=True, slots=True)
class Customer:
    installation: Installation
    slug: str

    async def allow_retrieval(self, *repositories: str) -> None:
        """Allow retrieval in these repositories only, with a new policy version."""
        async with self._signed_in() as session:
            async with session.get("/api/v1/policy") as answer:
                policy = (await answer.json())["policy"]
            body = {"policy": policy | {"retrieval": list(repositories)}, "reason": "a test"}
            token = _cookie(session, "caret-csrf")
            headers = {"X-CSRFToken": token}
            async with session.put("/api/v1/policy", json=body, headers=headers) as answer:
                assert answer.status == 200, await answer.text()

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[CompletionStream]:
        url = self.installation.entry["gateway_url"]
        async with open_stream(url, self._entry["api_key"]) as stream:
            yield stream

    async def num_snippets(self, frame: Frame) -> int:
        """Request a completion and return the recorded number of snippets."""
        async with self.stream() as stream:
            _, done = await request_completion(stream, frame)
        query = "SELECT num_snippets FROM tenants_usage_record WHERE request_id = %s"
        rows: list[Any] = []

        async def is_ingested() -> bool:
            rows[:] = self._rows(query, done["meta"]["request_id"])
            return bool(rows)

        assert await wait_until(is_ingested, timeout_s=_TIMEOUT_S), "the record was not ingested"
        return cast(int, rows[0][0])

    def chunks(self) -> list[bytes]:
        """Return the tenant's rows in the index, as Postgres writes them."""
        rows = self._rows("SELECT row(c)::text FROM tenants_retrieval_chunk c")
        return [text.encode() for (text,) in rows]

    @property
    def _entry(self) -> TenantEntry:
        tenants = self.installation.entry["tenants"]
        return next(tenant for tenant in tenants if tenant["slug"] == self.slug)

    @asynccontextmanager
    async def _signed_in(self) -> AsyncIterator[aiohttp.ClientSession]:
        url = self.installation.entry["console_url"]
        jar = aiohttp.CookieJar(unsafe=True)  # allows cookies for IP addresses
        async with aiohttp.ClientSession(url, cookie_jar=jar) as session:
            await session.get("/sign-in")
            form = {
                "email": self._entry["admin_email"],
                "password": self._entry["admin_password"],
                "csrfmiddlewaretoken": _cookie(session, "caret-csrf"),
            }
            async with session.post("/sign-in", data=form) as answer:
                assert answer.ok, await answer.text()
            yield session

    def _rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        url = self.installation.paths.app_database_url.read_text().strip()
        with psycopg.connect(url) as session:
            tenant_row = session.execute(
                "SELECT id::text FROM tenants_tenant WHERE slug = %s", [self.slug]
            ).fetchone()
            assert tenant_row is not None
            # `true`: only for this transaction.
            session.execute("SELECT set_config('caret.tenant', %s, true)", tenant_row)
            return session.execute(query, arguments).fetchall()


def num_queries_served(installation: Installation) -> int:
    """Return the number of retrieval queries that the worker's log reports, for all tenants."""
    lines = (installation.paths.logs / "worker.log").read_text().splitlines()
    lines_served = [json.loads(line) for line in lines if '"retrieval.served"' in line]
    return sum(line["queries"] for line in lines_served)


def _cookie(session: aiohttp.ClientSession, name: str) -> str:
    return next(cookie.value for cookie in session.cookie_jar if cookie.key == name)
