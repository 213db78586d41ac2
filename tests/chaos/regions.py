"""Gateways in another region than the control plane, and faults of the link between the two.

clients --- gateway-1, gateway-2 --- engine-1, engine-2
                    |
               far-stores (Valkey, relay)  - - - link - - -  stores --- workers

The relay copies tenants' snapshots to the region, and usage records back to the home region.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from redis import Redis
from redis.exceptions import RedisError

from caret.contracts.snapshot import HOME_LAST_SEEN
from caret.local.caret_services import manage_command
from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import ChildSpec, dying_with_parent
from caret.local.processes.service import CommandService
from tests.chaos.client_log import Note
from tests.chaos.companies import new_chaos_company
from tests.chaos.environment import World
from tests.chaos.netem import CUT, Quality, bad_link
from tests.chaos.network_faults import BadLink
from tests.chaos.noisy_neighbour import TenantFault
from tests.chaos.scenario import Scenario
from tests.chaos.stores import redis_url, valkey_on

_REGION: Final = "far"
_HOST: Final = "far-stores"
_LINK: Final = (_HOST, "stores")
# A bad link across an ocean: 150 ms round trip.
_OCEAN: Final = Quality(delay_ms=75.0, loss=0.01)
_OCEAN_S: Final = 30.0
_CUT_S: Final = 60.0
_READY_S: Final = 60.0
_TENANT_RATE: Final = 2.0
_NUM_REQUESTS_BEFORE_CUT: Final = 10  # that have ended before the link is cut
_REFUSED_S: Final = 60.0  # in which the healed region must reject the revoked keys
_POLL_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class FarRegion:
    """A distant region in which tenants are created, so that its gateways serve them."""

    hosts: tuple[str, ...] = (_HOST,)

    @property
    def home_settings(self) -> Mapping[str, str]:
        # In the home region, CARET_REGION is the region of new tenants.
        return {"CARET_ENFORCE_TENANT_REGION": "True", "CARET_REGION": _REGION}

    def start(self, world: World) -> None:
        host, paths = world.hosts[_HOST], world.disks.far_valkey
        environment = world.store_environment_on(_HOST)
        world.start("far-valkey", _HOST, valkey_on(host, paths, environment=environment))
        region_settings = {"REDIS_URL": redis_url(paths, host), "CARET_REGION": _REGION}
        world.own_settings[_HOST] = region_settings | {
            "CARET_HOME_REGION_REDIS_URL": world.settings["REDIS_URL"]
        }
        for gateway in ("gateway-1", "gateway-2"):
            world.own_settings[gateway] = region_settings | {"CARET_BEHIND_RELAY": "True"}
        # The relay is ready only after the home region has sent it a tenant.
        new_chaos_company("first", rate=0.0)
        world.start("relay", _HOST, _relay(world))


@dataclass(slots=True)
class CutLink(TenantFault):
    """The link is cut, and the keys of a tenant are revoked in the home region.

    The distant region cannot know that. After the link is healed, the tenant continues to send
    requests until one of them is rejected.
    """

    _link: ExitStack = field(default_factory=ExitStack)
    _healed_s: float = 0.0  # Unix time
    _are_keys_revoked: bool = False

    def begin(self, world: World) -> None:
        TenantFault.begin(self, world)
        self._wait_for_requests(world, _NUM_REQUESTS_BEFORE_CUT)
        first_host, second_host = (world.hosts[name] for name in _LINK)
        self._link.enter_context(
            bad_link(first_host, second_host, CUT, environment=world.home.environment)
        )
        self.company.revoke_keys()
        self._are_keys_revoked = True

    def end(self, world: World) -> None:
        """Raise TimeoutError if the healed region does not reject the revoked keys."""
        self._link.close()
        self._healed_s = time.time()
        try:
            if self._are_keys_revoked:
                self._wait_for_rejection(world)
        finally:
            TenantFault.end(self, world)

    def _wait_for_rejection(self, world: World) -> None:
        deadline_s = time.monotonic() + _REFUSED_S
        while not self._is_key_rejected_since(world, self._healed_s):
            if time.monotonic() > deadline_s:
                raise TimeoutError("the healed region did not reject the revoked keys")
            time.sleep(_POLL_S)

    def _own_details(self, own_notes: Sequence[Note]) -> dict[str, Any]:
        after_s = [note.at_s - self._healed_s for note in own_notes if note.is_served]
        # 0: no request was served after the link was healed.
        return {"revoked_key_served_after_healing_s": round(max([0.0, *after_s]), 2)}


def scenarios() -> Iterator[Scenario]:
    yield BadLink("ocean-between-regions", hold_s=_OCEAN_S, pair=_LINK, quality=_OCEAN)
    yield CutLink("cut-between-regions", hold_s=_CUT_S, rate=_TENANT_RATE)


def _relay(world: World) -> CommandService:
    spec = ChildSpec(
        name="relay",
        command=dying_with_parent(manage_command("relay")),
        log_file=world.home.paths.logs / "relay.log",
        environment=world.environment_on(_HOST),
        folder=REPOSITORY,
    )
    redis_address = world.disks.far_valkey.redis_url.read_text().strip()
    return CommandService(
        make_spec=lambda: spec,
        ready_check=lambda: _has_heard_home(redis_address),
        name="Relay",
        ready_timeout_s=_READY_S,
    )


def _has_heard_home(redis_address: str) -> bool:
    with suppress(RedisError), Redis.from_url(redis_address) as region_redis:
        return bool(region_redis.exists(HOME_LAST_SEEN))
    return False
