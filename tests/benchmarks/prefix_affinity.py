"""Prefix affinity: the share of prompt tokens that several replicas find cached.

The benchmark compares a gateway that routes to two or four replicas with a single replica, and with
requests sent to random replicas. Forty users type line by line, each in their own file. In the
random runs, each replica has its own gateway, and the client chooses a gateway at random. Each run
has its own texts, so it cannot reuse another run's cache. Finally, one of two replicas is killed
while the users continue, and started again.

    python -m tests.benchmarks.prefix_affinity [--rounds 6] [--only rates | loss]

To check only that the benchmark runs: `--only loss`, or `--rounds 2`.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from caret.client.websocket_client import CompletionStream, GatewayRefused, open_stream
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.installation import Running, create_home, own_gateway
from tests.benchmarks.replicas import OwnReplica, own_replicas
from tests.benchmarks.results import Report, say
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of

NUM_USERS: Final = 40
# Percentage points by which the hit rate of several replicas may fall short of a single one's.
MAX_SHORT_POINTS: Final = 3.0
# The restarted replica is expected to get half of the 40 new files. Fewer than a quarter of them
# would happen by chance 3 times in 10,000.
MIN_SHARE: Final = 0.25
# The gateway's stall limit ends an attempt, and the gateway retries once. A request that takes
# longer than both hangs.
MAX_REQUEST_S: Final = 20.0
_SIZES: Final = (2, 4)
_PROMPT_TOKENS: Final = 480  # fifteen of the engine's blocks
_NUM_IN_FLIGHT: Final = 4  # requests in flight; the machine has two cores
_MAX_TOKENS: Final = 2
_LOSS_ROUNDS: Final = (2, 2, 3)  # before the kill, during the outage and after the restart


@dataclass(slots=True)
class Tally:
    prompt_tokens: int = 0
    cached_tokens: int = 0
    longest_s: float = 0.0
    num_failed: int = 0
    by_replica: Counter[str] = field(default_factory=Counter)

    @property
    def hit_percent(self) -> float:
        return 100 * self.cached_tokens / max(1, self.prompt_tokens)

    def add(self, end: dict[str, Any], took_s: float) -> None:
        self.longest_s = max(self.longest_s, took_s)
        meta = end.get("meta")
        if meta is None or meta["cached_tokens"] is None:
            self.num_failed += 1
            return
        self.prompt_tokens += meta["prompt_tokens"]
        self.cached_tokens += meta["cached_tokens"]
        self.by_replica[meta["replica"]] += 1

    def extra_fields(self) -> dict[str, Any]:
        """Return the values that are reported beside the hit rate."""
        return {
            "n": self.by_replica.total(),
            "failed": self.num_failed,
            "longest_s": round(self.longest_s, 2),
            "by_replica": sorted(self.by_replica.values()),
        }


class Typing:
    """The users' files, which grow by a line each round."""

    def __init__(self, code: CodeText, *, name: str, num_rounds: int) -> None:
        self._name = name
        self._num_rounds = num_rounds
        self._files = [
            code.sample(mode="fim", num_tokens=_PROMPT_TOKENS, max_tokens=_MAX_TOKENS).prefix
            for _ in range(NUM_USERS)
        ]
        self._num_requests = 0

    def frame(self, user: int, round_number: int) -> dict[str, Any]:
        """Return the user's request in this round. In the last round, the file is complete."""
        lines = self._files[user].split("\n")
        self._num_requests += 1
        return {
            "id": f"{self._name}-{self._num_requests}",
            "mode": "fim",
            "path": f"{self._name}/user_{user}.py",
            "prefix": "\n".join(lines[: len(lines) - self._num_rounds + round_number + 1]),
            "suffix": SUFFIX,
            "max_tokens": _MAX_TOKENS,
            "trigger": "manual",  # such requests are the last to be shed
        }


async def _send_round(
    typing: Typing, number: int, workers: Sequence[Sequence[CompletionStream]], tally: Tally
) -> None:
    """Send one request for each user, in random order.

    A worker has a connection to each gateway and chooses one at random.
    """
    users = random.sample(range(NUM_USERS), NUM_USERS)

    async def work(streams: Sequence[CompletionStream]) -> None:
        while users:
            frame = typing.frame(users.pop(), number)
            began_s = time.monotonic()
            end = await _read_last_frame(random.choice(streams), frame)
            tally.add(end, time.monotonic() - began_s)

    await asyncio.gather(*(work(streams) for streams in workers))


async def _read_last_frame(stream: CompletionStream, frame: dict[str, Any]) -> dict[str, Any]:
    """Send a request, and return the last frame of the response; {} if it is refused."""
    try:
        answers = [answer async for answer in stream.complete(frame)]
    except GatewayRefused as error:
        say(f"failed: {error.code}")
        return {}
    return answers[-1]


@asynccontextmanager
async def _workers(gateways: Sequence[Running]) -> AsyncIterator[list[list[CompletionStream]]]:
    async with AsyncExitStack() as stack:
        yield [
            [
                await stack.enter_async_context(open_stream(gateway.gateway_url, gateway.acme_key))
                for gateway in gateways
            ]
            for _ in range(_NUM_IN_FLIGHT)
        ]


async def _type_rounds(
    code: CodeText, name: str, gateways: Sequence[Running], num_rounds: int
) -> Tally:
    """Run all rounds of one run."""
    say(f"{name}: {num_rounds} rounds of {NUM_USERS} users")
    typing, tally = Typing(code, name=name, num_rounds=num_rounds), Tally()
    async with _workers(gateways) as workers:
        for number in range(num_rounds):
            await _send_round(typing, number, workers, tally)
    return tally


async def _compare(
    report: Report, code: CodeText, gateways: dict[int, list[Running]], num_rounds: int
) -> None:
    singles = gateways[1]
    single = await _type_rounds(code, "one", singles[:1], num_rounds)
    report.figure("hit_rate.one", single.hit_percent, "%", **single.extra_fields())
    for size in _SIZES:
        routed = await _type_rounds(code, f"routed-{size}", gateways[size], num_rounds)
        at_random = await _type_rounds(code, f"random-{size}", singles[:size], num_rounds)
        report.figure(f"hit_rate.routed.{size}", routed.hit_percent, "%", **routed.extra_fields())
        report.figure(
            f"hit_rate.random.{size}", at_random.hit_percent, "%", **at_random.extra_fields()
        )
        short = single.hit_percent - routed.hit_percent
        report.target(f"short_of_one.routed.{size}", short, "points", at_most=MAX_SHORT_POINTS)
        short = single.hit_percent - at_random.hit_percent
        report.figure(f"short_of_one.random.{size}", short, "points")


async def _lose_one(report: Report, code: CodeText, gateway: Running, victim: OwnReplica) -> None:
    """Report the rounds before the kill of a replica, during its outage and after its restart.

    Files opened after the restart show that the restarted replica gets its share again. Older files
    stay with the replica that now holds their prefixes.
    """
    num_before, num_during, num_after = _LOSS_ROUNDS
    typing = Typing(code, name="loss", num_rounds=sum(_LOSS_ROUNDS))
    opening, opened_tally = Typing(code, name="opened", num_rounds=1), Tally()
    tallies: list[Tally] = []
    async with _workers([gateway]) as workers:
        for number in range(sum(_LOSS_ROUNDS)):
            if number == num_before:
                say(f"{victim.name} is being killed")
                victim.service.child.kill()
            if number == num_before + num_during:
                say(f"{victim.name} is being restarted")
                await asyncio.to_thread(victim.restart)
            tallies.append(Tally())
            await _send_round(typing, number, workers, tallies[-1])
        await _send_round(opening, 0, workers, opened_tally)
    names = ["before"] * num_before + ["without"] * num_during + ["after"] * num_after
    for number, (name, tally) in enumerate(zip(names, tallies, strict=True)):
        report.figure(
            f"loss.hit_rate.{number}.{name}", tally.hit_percent, "%", **tally.extra_fields()
        )
    before, after = tallies[num_before - 1], tallies[-1]
    report.target(
        "loss.short_after_return",
        before.hit_percent - after.hit_percent,
        "points",
        at_most=MAX_SHORT_POINTS,
    )
    share = opened_tally.by_replica[victim.name] / NUM_USERS
    report.judged(
        "loss.share_after_return",
        share,
        "of new files",
        passed=share >= MIN_SHARE,
        target=f"at least {MIN_SHARE:g}",
        **opened_tally.extra_fields(),
    )
    tallies.append(opened_tally)
    report.target("loss.failed", sum(tally.num_failed for tally in tallies), "requests", at_most=0)
    longest_s = max(tally.longest_s for tally in tallies)
    report.target("loss.longest", longest_s, "s", at_most=MAX_REQUEST_S)


@contextmanager
def _gateways(
    replicas: Sequence[OwnReplica], sizes: Sequence[int]
) -> Iterator[dict[int, list[Running]]]:
    """Start the gateways and yield them by their number of replicas.

    Each replica has a gateway of its own, and there is one gateway for each of the sizes.
    """
    with ExitStack() as stack:

        def start(gateway_replicas: Sequence[OwnReplica]) -> Running:
            home = stack.enter_context(create_home())
            first, *other_replicas = gateway_replicas
            return stack.enter_context(
                own_gateway(
                    home,
                    engine_url=first.url,
                    replica=first.entry,
                    others=[replica.entry for replica in other_replicas],
                )
            )

        yield {
            1: [start([replica]) for replica in replicas],
            **{size: [start(replicas[:size])] for size in sizes},
        }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=6, help="number of lines that each user types"
    )
    parser.add_argument("--only", choices=("rates", "loss"), help="default: both")
    options = parser.parse_args(arguments)
    report = Report("routing")
    sizes = _SIZES if options.only != "loss" else _SIZES[:1]
    with own_replicas(max(sizes)) as replicas, _gateways(replicas, sizes) as gateways:
        pool = read_pool_config(gateways[1][0].pools_file).find_shared(tier_of("fim"))
        code = CodeText(pool, seed=random.getrandbits(64))
        if options.only != "loss":
            asyncio.run(_compare(report, code, gateways, options.rounds))
        if options.only != "rates":
            asyncio.run(_lose_one(report, code, gateways[2][0], replicas[1]))
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
