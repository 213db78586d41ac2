"""Tenants whose requests must not disturb others.

One floods the gateways; the keys of another are revoked while it uses them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.client_log import Note
from tests.chaos.companies import ChaosCompany, new_chaos_company
from tests.chaos.environment import World
from tests.chaos.load import running_clients
from tests.chaos.scenario import Fault, Scenario

_HOLD_S = 15.0
_RATE = 20.0  # of the tenant whose keys are revoked
_ALLOWED_A_SECOND = 2
_FLOOD_FACTOR = 50  # multiple of the requests that the policy allows
_NUM_REQUESTS_BEFORE_REVOCATION = 60  # that have ended before it: after about 3 s
_FIRST_REQUESTS_TIMEOUT_S = 60.0  # in which these requests must end
_POLL_S = 0.1


@dataclass(slots=True)
class TenantFault(Fault):
    """A separate tenant that sends requests from the beginning of the fault to its end."""

    rate: float = 0.0
    _company: ChaosCompany | None = None
    _clients: ExitStack = field(default_factory=ExitStack)

    def prepare(self, world: World) -> None:
        self._company = new_chaos_company(self.name, rate=self.rate)

    def begin(self, world: World) -> None:
        clients_process = self._clients.enter_context(running_clients(world, (self.company.load,)))
        # Runs before the end of `running_clients`, which kills the process.
        self._clients.callback(clients_process.stop)

    def end(self, world: World) -> None:
        self._clients.close()

    def details(self, notes: Sequence[Note]) -> dict[str, Any]:
        own_notes = [note for note in notes if self._is_of_fault_tenant(note)]
        # In the results, the fault's tenant is called "guest" (platform/docs/fault-injection.md).
        return {
            "guest": dict(Counter(note.ending for note in own_notes)) | self._own_details(own_notes)
        }

    @property
    def company(self) -> ChaosCompany:
        assert self._company is not None, "the fault was not prepared"
        return self._company

    def _is_of_fault_tenant(self, note: Note) -> bool:
        return note.tenant == self.company.load.tenant

    def _wait_for_requests(self, world: World, num: int) -> None:
        """Wait until this many requests of the tenant have ended. Raises TimeoutError."""
        deadline_s = time.monotonic() + _FIRST_REQUESTS_TIMEOUT_S
        while sum(map(self._is_of_fault_tenant, world.notebook.read())) < num:
            if time.monotonic() > deadline_s:
                raise TimeoutError("the tenant's first requests did not end")
            time.sleep(_POLL_S)

    def _is_key_rejected_since(self, world: World, since_s: float) -> bool:
        notes = world.notebook.since(since_s)
        return any(self._is_of_fault_tenant(note) and note.is_key_rejected for note in notes)

    def _own_details(self, own_notes: Sequence[Note]) -> dict[str, Any]:
        return {}


@dataclass(slots=True)
class KeyRevocation(TenantFault):
    """The keys of the tenant are revoked while it sends requests."""

    _revoked_s: float = 0.0  # Unix time; 0: not revoked

    def begin(self, world: World) -> None:
        # `super()` without arguments fails in a dataclass with slots.
        TenantFault.begin(self, world)
        self._wait_for_requests(world, _NUM_REQUESTS_BEFORE_REVOCATION)
        self.company.revoke_keys()
        self._revoked_s = time.time()

    def end(self, world: World) -> None:
        """Raise TimeoutError if no request with a revoked key was rejected."""
        TenantFault.end(self, world)
        if self._revoked_s and not self._is_key_rejected_since(world, self._revoked_s):
            raise TimeoutError("no request with a revoked key was rejected")

    def _own_details(self, own_notes: Sequence[Note]) -> dict[str, Any]:
        after_s = [note.at_s - self._revoked_s for note in own_notes if note.is_served]
        # 0 or less: no request that was sent after the revocation was served.
        return {"served_for_s": round(max(after_s, default=0.0), 2)}


@dataclass(slots=True)
class Flood(TenantFault):
    """The tenant sends many times the requests that its policy allows."""

    def prepare(self, world: World) -> None:
        TenantFault.prepare(self, world)
        self.company.limit_requests(per_minute=60 * _ALLOWED_A_SECOND, burst=_ALLOWED_A_SECOND)


def scenarios() -> Iterator[Scenario]:
    yield KeyRevocation("key-revoked", hold_s=_HOLD_S, rate=_RATE)
    yield Flood("flood", hold_s=_HOLD_S, rate=_FLOOD_FACTOR * _ALLOWED_A_SECOND)
