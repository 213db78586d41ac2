"""`make up` with two engines, one of them with speculation (CARET_ENGINES=mixed), and a KV tier.

The KV tier keeps the KV blocks of the prefix cache outside of the engines: LMCache in host memory,
and the KV store, a Valkey server.
"""

import importlib.util
import json
import os
import re
import signal
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import pytest
import redis

from caret.client.websocket_client import CompletionStream, GatewayRefused, open_stream
from caret.local.databases.credentials import KV_STORE, valkey_url
from caret.local.processes.health_checks import is_responding
from inference.pools.speculation.acceptance_rate import MIN_ACCEPTANCE
from tests.benchmarks.installation import UNSHED
from tests.functional.conftest import Installation
from tests.functional.gateway.gateway_stack import Frame, request_completion, wait_until
from tests.functional.routing.conftest import NGRAM
from tests.functional.routing.languages import assignments, files_at, numbers
from tests.stack.commands import UP_TIMEOUT_S, manage
from tests.stack.ports import free_ports
from tests.stack.waiting import wait_until as wait_until_or_fail

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        importlib.util.find_spec("lmcache") is None,
        reason="LMCache is missing; `CARET_KV_TIER_GB=1 platform/scripts/setup` installs it",
    ),
]
# The gateway needs minutes on a busy machine to measure how many drafts are accepted.
_LEARNING_TIMEOUT_S: Final = 900.0
# The time with rejected drafts after which a language leaves the speculating engine, and the time
# after which it may return.
_FALLBACK_S, _RETRY_S = 10, 10
_RESTART_TIMEOUT_S: Final = 600.0
_TURN_S: Final = 1.0  # of completions in one language, before those in the other language
_PORTS: Final = (
    "CARET_QUALITY_ENGINE_PORT",
    "CARET_METRICS_PORT",
    "CARET_KV_TIER_PORT",
    "CARET_KV_TIER_HTTP_PORT",
    "CARET_KV_STORE_PORT",
)
_BLOCK_TOKENS: Final = 32  # --block-size of the CPU profiles
_PREFIX: Final = "".join(
    f"def add_{number}(left, right):\n    return left + {number} * right\n\n\n"
    for number in range(60)
)


@dataclass
class LocalGateway:
    """The gateway of the installation, and one tenant's key."""

    url: str
    api_key: str
    num_ids: int = 0

    def stream(self) -> AbstractAsyncContextManager[CompletionStream]:
        return open_stream(self.url, self.api_key)

    def new_id(self) -> str:
        self.num_ids += 1
        return f"id-{self.num_ids}"

    async def count_cached_tokens(self) -> tuple[int, int]:
        """Request a completion after _PREFIX.

        Return the number of cached tokens of its prompt, and the number of all its tokens.
        """
        frame: Frame = {"mode": "fim", "path": "sums.py", "language": "python", "suffix": "\n"}
        frame |= {"prefix": _PREFIX, "max_tokens": 4, "id": self.new_id()}
        async with self.stream() as stream:
            _, done = await request_completion(stream, frame)
        assert done["finish_reason"] in ("stop", "length", "filtered"), done
        return done["meta"]["cached_tokens"], done["meta"]["prompt_tokens"]


@pytest.fixture(scope="module")
def installation(new_installation: Installation) -> Installation:
    ports = dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True))
    new_installation.environment.update(
        ports
        | UNSHED
        | {
            "CARET_ENGINES": "mixed",
            "CARET_ENGINE_ARGS": f"--speculative-config '{json.dumps(NGRAM)}'",
            "CARET_KV_TIER_GB": "1",
            "CARET_ENGINE_METRICS_INTERVAL_S": "1",
            "CARET_SPECULATION_FALLBACK_S": str(_FALLBACK_S),
            "CARET_SPECULATION_RETRY_S": str(_RETRY_S),
            "CARET_MAX_ENGINE_STALL_S": "60",
        }
    )
    two_engines_timeout_s = 2 * UP_TIMEOUT_S
    started = manage(
        "up", "--detach", environment=new_installation.environment, timeout_s=two_engines_timeout_s
    )
    assert started.returncode == 0, started.stdout + started.stderr
    for step in ("KV store", "LMCache", "Engine", "Speculating engine"):
        assert f"ok  {step}" in started.stdout
    return new_installation


@pytest.fixture(scope="module")
def gateways(installation: Installation) -> tuple[LocalGateway, ...]:
    """Return the gateway with the key of each tenant: acme, globex."""
    entry = installation.entry
    return tuple(
        LocalGateway(entry["gateway_url"], tenant["api_key"]) for tenant in entry["tenants"]
    )


async def test_a_language_uses_the_plain_engine_until_its_drafts_are_accepted(
    installation: Installation, gateways: tuple[LocalGateway, ...]
) -> None:
    """One test covers both: a language leaves the speculating engine, and returns to it."""
    plain, speculating = (
        f"127.0.0.1:{installation.environment[name]}"
        for name in ("CARET_ENGINE_PORT", "CARET_QUALITY_ENGINE_PORT")
    )
    # One file each: two engines on a busy machine are slow.
    python = await files_at(speculating, gateways[0], "python", assignments, num_files=1)
    csv = await files_at(speculating, gateways[0], "csv", numbers, num_files=1)

    async def csv_uses(replica: str) -> bool:
        """Return True if this replica alone serves the language csv."""
        try:
            await python.request_for(_TURN_S)
            return await csv.request_for(_TURN_S) == {replica}
        except GatewayRefused:  # on a busy machine, a completion may reach its deadline
            return False

    async def csv_has_left() -> bool:
        return await csv_uses(plain) and await _is_using_fallback(installation, "csv")

    async def csv_has_returned() -> bool:
        return await csv_uses(speculating)

    async def csv_stays() -> bool:
        with suppress(GatewayRefused):
            await csv.request_for(_FALLBACK_S)
        # If the acceptance is still low, the language leaves again during this time.
        is_leaving = partial(_is_using_fallback, installation, "csv")
        tolerance_s = 2.0
        return not await wait_until(is_leaving, timeout_s=_FALLBACK_S + _RETRY_S + tolerance_s)

    has_left = await wait_until(csv_has_left, timeout_s=_LEARNING_TIMEOUT_S)
    before = await _read_acceptance(installation)
    has_python_left = await _is_using_fallback(installation, "python")
    # From now on, drafts in csv are accepted, too. Each new completion raises the acceptance rate.
    csv.write = assignments
    has_returned = await wait_until(csv_has_returned, timeout_s=_LEARNING_TIMEOUT_S)
    has_stayed = await wait_until(csv_stays, timeout_s=_LEARNING_TIMEOUT_S)
    after = await _read_acceptance(installation)

    assert has_left
    assert before["python"] >= MIN_ACCEPTANCE > before["csv"]
    assert not has_python_left
    assert has_returned, "the language was not tried again"
    assert has_stayed, "the language left again although its drafts were accepted"
    assert after["csv"] > before["csv"]


async def test_cached_prompts_survive_a_restart_of_the_engines_and_serve_no_other_tenant(
    installation: Installation, gateways: tuple[LocalGateway, ...]
) -> None:
    acme, globex = gateways
    cached_at_first, _ = await acme.count_cached_tokens()

    _restart(installation, "lmcache.cli.main")  # only the KV store keeps the blocks
    _restart(installation, "vllm.entrypoints.openai.api_server")
    cached_for_globex, _ = await globex.count_cached_tokens()
    cached_after_restart, num_tokens = await acme.count_cached_tokens()

    assert cached_at_first == 0
    assert cached_for_globex == 0
    # The last, incomplete block is not cached. One more block is tolerance.
    assert cached_after_restart >= num_tokens - 2 * _BLOCK_TOKENS


def test_cached_prompts_never_reach_the_disk(installation: Installation) -> None:
    with redis.Redis.from_url(valkey_url(installation.paths, KV_STORE)) as store:
        settings = store.config_get("*")
        num_entries = store.dbsize()

    assert num_entries > 0, "the tests above have cached no prompt"
    assert (settings["save"], settings["appendonly"]) == ("", "no")
    assert settings["maxmemory"] == str(2**30)  # CARET_KV_TIER_GB=1
    assert settings["maxmemory-policy"] == "allkeys-lru"
    assert list((installation.paths.home / KV_STORE).iterdir()) == []


async def _read_acceptance(installation: Installation) -> dict[str, float]:
    """Return the acceptance rate by language."""
    page = await _read_metrics(installation)
    pattern = r'caret_speculation_acceptance\{language="(\w+)",pool="demo-fast"\} (\S+)'
    return {language: float(value) for language, value in re.findall(pattern, page)}


async def _is_using_fallback(installation: Installation, language: str) -> bool:
    labels = f'{{language="{language}",pool="demo-fast"}}'
    return f"caret_speculation_fallback{labels} 1.0" in await _read_metrics(installation)


async def _read_metrics(installation: Installation) -> str:
    url = f"http://127.0.0.1:{installation.environment['CARET_METRICS_PORT']}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()


def _restart(installation: Installation, program: str) -> None:
    """Kill the processes that run this program, and wait until the supervisor has replaced them."""
    killed = _find_pids(installation, program)
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    environment = installation.environment
    if program.startswith("lmcache"):
        urls = [f"http://127.0.0.1:{environment['CARET_KV_TIER_HTTP_PORT']}/healthcheck"]
    else:
        urls = [f"{pool['url']}/health" for pool in installation.entry["pools"]]

    def has_restarted() -> bool:
        pids = _find_pids(installation, program)
        return len(pids) == len(killed) and not pids & killed and all(map(is_responding, urls))

    wait_until_or_fail(has_restarted, timeout_s=_RESTART_TIMEOUT_S)


def _find_pids(installation: Installation, program: str) -> set[int]:
    return {pid for pid in installation.pids if program in _read_command(pid)}


def _read_command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:  # it ended meanwhile
        return []
