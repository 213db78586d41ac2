"""The store of the leases in memory: the same arithmetic as the script, and it may be away."""

import asyncio
from collections.abc import Sequence

from inference.gateway.gcra import Gcra
from inference.gateway.leases import Grant, Leases, Want
from inference.gateway.quotas import Quotas
from tests.fakes.clock import FakeClock


class FakeLeaseStore:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.is_away = False
        self.hangs = False
        self.calls: list[list[Want]] = []
        self.rates: dict[str, Gcra] = {}
        self.spent: dict[str, int] = {}  # of budgets

    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        self.calls.append(list(wants))
        if self.hangs:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if self.is_away:
            raise OSError
        return [self._grant(want) for want in wants]

    @property
    def num_calls(self) -> int:
        return len(self.calls)

    def _grant(self, want: Want) -> Grant:
        rule = want.rule
        if rule.interval_s is None:
            spent = self.spent.get(rule.key, 0)
            units = min(want.units, max(0, rule.capacity - spent))
            self.spent[rule.key] = max(0, spent + units)
            return Grant(units, wait_s=1.0)
        rate, now_s = self.rates.setdefault(rule.key, Gcra()), self.clock.monotonic_s()
        room = rate.room(capacity=rule.capacity, interval_s=rule.interval_s, now_s=now_s)
        units = min(want.units, room)
        rate.spend(units, interval_s=rule.interval_s, now_s=now_s)
        wait_s = rate.wait_s(1, capacity=rule.capacity, interval_s=rule.interval_s, now_s=now_s)
        return Grant(units, wait_s=wait_s)


def make_quotas(clock: FakeClock | None = None, store: FakeLeaseStore | None = None) -> Quotas:
    clock = clock or FakeClock()
    return Quotas(Leases(store or FakeLeaseStore(clock), clock), clock)
