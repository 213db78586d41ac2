"""Caret's gateway in front of two real engines, alone and with vLLM's router between them.

The benchmark answers three questions. Does the router send prompts to the engine that has cached
their prefix? Does it forward cache salts, so that a tenant cannot reuse prefixes of another? How
long does the engine continue after a cancel?

    python -m tests.benchmarks.vllm_router [--policies consistent_hash cache_aware]
"""

import argparse
import asyncio
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from caret.client.websocket_client import CompletionStream, open_stream
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.competitors import NotMeasured, running_router
from tests.benchmarks.engine_metrics import num_running
from tests.benchmarks.installation import Running, create_home, own_gateway
from tests.benchmarks.replicas import OwnReplica, own_replicas
from tests.benchmarks.results import Report, percentile, say, spread
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of

NUM_FILES: Final = 10
NUM_REQUESTS_PER_FILE: Final = 6  # each has one character of _TYPED more than the previous one
_TYPED: Final = "value_"
NUM_CANCELS: Final = 15
_MAX_CANCEL_ATTEMPTS: Final = 10 * NUM_CANCELS
_PROMPT_TOKENS: Final = 600
_POLL_S: Final = 0.002
_MAX_RUN_AFTER_CANCEL_S: Final = 10.0
_DIRECT: Final = "without a router"


@contextmanager
def _gateway(replicas: Sequence[OwnReplica], policy: str) -> Iterator[Running]:
    """Run Caret's gateway in front of the replicas.

    Unless the policy is _DIRECT, vLLM's router stands between the gateway and the replicas.

    Raises NotMeasured if the router cannot be installed, ServiceFailed if it does not start.
    """
    cores = frozenset(os.sched_getaffinity(0))
    with create_home() as home:
        if policy == _DIRECT:
            first, *other_replicas = replicas
            with own_gateway(
                home,
                engine_url=first.url,
                replica=first.entry,
                others=[replica.entry for replica in other_replicas],
            ) as gateway:
                yield gateway
            return
        urls = [replica.url for replica in replicas]
        with (
            running_router(home, urls, policy=policy, cores=cores) as router,
            own_gateway(home, engine_url=router.url, replica=router.url) as gateway,
        ):
            yield gateway


async def _request_meta(stream: CompletionStream, **fields: Any) -> dict[str, Any]:
    frame = {"id": random.randbytes(6).hex(), "mode": "fim", "suffix": SUFFIX, **fields}
    answers = [answer async for answer in stream.complete(frame)]
    meta: dict[str, Any] = answers[-1]["meta"]
    return meta


async def _measure_affinity(
    running: Running, text: CodeText, report: Report, router_policy: str
) -> None:
    shares, num_cached_for_stranger, total_ms = [], 0, []
    async with (
        open_stream(running.gateway_url, running.acme_key) as stream,
        open_stream(running.gateway_url, running.globex_key) as stranger,
    ):
        for number in range(NUM_FILES):
            sample = text.sample(mode="fim", num_tokens=_PROMPT_TOKENS, max_tokens=8)
            fields = {"path": f"{router_policy}/{number}.py", "max_tokens": 8}
            for turn in range(NUM_REQUESTS_PER_FILE):
                meta = await _request_meta(stream, prefix=sample.prefix + _TYPED[:turn], **fields)
                if turn:  # the first request of a file finds nothing cached
                    shares.append((meta["cached_tokens"] or 0) / meta["prompt_tokens"])
                    total_ms.append(float(meta["total_ms"]))
            stranger_answer = await _request_meta(stranger, prefix=sample.prefix, **fields)
            num_cached_for_stranger += stranger_answer["cached_tokens"] or 0
    report.figure(
        "cached share of prompts, without the first of each file",
        100 * sum(shares) / len(shares),
        "%",
        router_policy=router_policy,
    )
    report.figure(
        "whole completion",
        percentile(total_ms, 50),
        "ms",
        router_policy=router_policy,
        **spread(total_ms),
    )
    report.judged(
        "cached tokens that another tenant found",
        num_cached_for_stranger,
        "tokens",
        passed=num_cached_for_stranger == 0,
        target="0",
        router_policy=router_policy,
    )


async def _measure_cancels(
    running: Running,
    replicas: Sequence[OwnReplica],
    text: CodeText,
    report: Report,
    router_policy: str,
) -> None:
    """Cancel NUM_CANCELS completions. Raises NotMeasured if the engines do not become idle, or if
    too many completions end without text, so that they cannot be cancelled."""
    took_ms: list[float] = []
    async with open_stream(running.gateway_url, running.acme_key) as stream:
        for _ in range(_MAX_CANCEL_ATTEMPTS):
            if len(took_ms) == NUM_CANCELS:
                break
            sample = text.sample(mode="block", num_tokens=128, max_tokens=256)
            identifier = random.randbytes(6).hex()
            frame = {"mode": "block", "prefix": sample.prefix, "suffix": "\n", "max_tokens": 256}
            await stream.send({"type": "complete", "id": identifier, **frame})
            if (await stream.receive())["type"] != "delta":
                continue  # the completion ended without text
            began_s = time.perf_counter()
            await stream.send({"type": "cancel", "id": identifier})
            while (await stream.receive())["type"] == "delta":
                pass
            await _await_idle(replicas, until_s=began_s + _MAX_RUN_AFTER_CANCEL_S)
            took_ms.append((time.perf_counter() - began_s) * 1000)
    if len(took_ms) < NUM_CANCELS:
        raise NotMeasured(f"only {len(took_ms)} of {_MAX_CANCEL_ATTEMPTS} completions had text")
    report.figure(
        "from the cancellation until the engines are idle",
        percentile(took_ms, 50),
        "ms",
        router_policy=router_policy,
        **spread(took_ms),
    )


async def _await_idle(replicas: Sequence[OwnReplica], *, until_s: float) -> None:
    """Wait until no replica runs a request. Raises NotMeasured if one still does at `until_s`."""
    while sum(await asyncio.gather(*(num_running(replica.url) for replica in replicas))):
        if time.perf_counter() >= until_s:
            raise NotMeasured(f"an engine was busy {_MAX_RUN_AFTER_CANCEL_S:g} s after a cancel")
        await asyncio.sleep(_POLL_S)


async def _measure(
    running: Running, replicas: Sequence[OwnReplica], report: Report, router_policy: str
) -> None:
    catalog = read_pool_config(running.pools_file)
    # Each policy has its own texts: the previous ones are still in the engines' caches.
    seed = int.from_bytes(router_policy.encode(), "big")
    text = CodeText(catalog.find_shared(tier_of("fim")), seed=seed)
    await _measure_affinity(running, text, report, router_policy)
    await _measure_cancels(running, replicas, text, report, router_policy)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", nargs="*", default=["consistent_hash", "cache_aware"])
    options = parser.parse_args(arguments)
    report = Report("behind_router")
    with own_replicas(2) as replicas:
        for router_policy in (_DIRECT, *options.policies):
            say(router_policy)
            try:
                with _gateway(replicas, router_policy) as running:
                    asyncio.run(_measure(running, replicas, report, router_policy))
            except NotMeasured as error:
                say(f"{router_policy} could not be measured: {error}")
    return report.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
