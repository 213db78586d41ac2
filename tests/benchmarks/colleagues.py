"""Shared prefix cache: how much of a user's first prompt is cached from a colleague's prompts?

Several users of one repository edit different files, with other files open beside them. Their
sessions are replayed through a gateway with a real engine (see `edit_sessions`), one user after the
other. All of them send the files that the repository's `.caret.toml` pins. The benchmark reports
the cached share of two groups of prompts: the first prompt of each user after the first user
(`first`), and each user's later prompts (`typing`).

There are three controls: the same sessions without pinned files, their first prompts in strict
isolation (each user has a cache namespace), and a first prompt of another tenant. In strict
isolation, first-token times must not reveal what a colleague has sent. So the benchmark compares
the first-token times of two kinds of prompts: a colleague has sent the pinned files before, or they
are new. A two-sample Kolmogorov-Smirnov test must find no difference. Between users who share the
cache, the same test must find a difference.

    python -m tests.benchmarks.colleagues [--users 4] [--keystrokes 40] [--timed 60]
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

import aiohttp
import msgspec
from scipy.stats import ks_2samp

from caret.client.websocket_client import open_stream
from caret.contracts.policy import Isolation
from caret.local.paths import REPOSITORY
from caret_ls.clock import SystemLoopClock
from caret_ls.frames import Frame
from caret_ls.git_repository import Repository
from caret_ls.pinned_files import PinnedFiles
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.edit_sessions import Session, iterate_texts, make_sessions
from tests.benchmarks.installation import (
    Home,
    Running,
    create_home,
    new_credential,
    new_tenant,
    own_engine,
    own_gateway,
    publish,
    root_secret_of,
)
from tests.benchmarks.results import Report, median, rounded, say
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of

MIN_SHARED_PERCENT: Final = 40.0
MIN_TYPING_PERCENT: Final = 93.0  # as in prefix_reuse
MIN_P: Final = 0.05  # with a higher p-value, the times reveal nothing
_CONTROL_P: Final = 0.001  # with a lower p-value, the control has found a difference
_POLL_S: Final = 0.05
_MAX_POLLS: Final = 200
_REPOSITORY_NAME: Final = "caret/caret"


@dataclass(frozen=True, slots=True)
class CachedShare:
    prompt_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class UserShares:
    first: CachedShare
    typing: list[CachedShare]


class Replay:
    """Replays sessions of several users, each with a key of their own."""

    def __init__(self, running: Running, pinned: Sequence[Frame], num_keystrokes: int) -> None:
        self._running = running
        self._pinned = pinned
        self._num_keystrokes = num_keystrokes
        self._num_requests = 0

    async def run(
        self, sessions: Sequence[Session], keys: Sequence[str], *, is_pinned: bool
    ) -> list[UserShares]:
        return [
            await self._replay(session, key, self._pinned if is_pinned else [])
            for session, key in zip(sessions, keys, strict=True)
        ]

    async def _replay(self, session: Session, key: str, pinned: Sequence[Frame]) -> UserShares:
        shares: list[CachedShare] = []
        async with open_stream(self._running.gateway_url, key) as stream:
            for frame in islice(_frames(session, pinned), self._num_keystrokes):
                self._num_requests += 1
                async for answer in stream.complete({**frame, "id": str(self._num_requests)}):
                    meta = answer.get("meta")  # only the last frame has it
                # If the gateway's filter ended the completion, the engine reported no count.
                if meta is not None and meta["cached_tokens"] is not None:
                    shares.append(CachedShare(meta["prompt_tokens"], meta["cached_tokens"]))
        return UserShares(shares[0], shares[1:])


def _frames(session: Session, pinned: Sequence[Frame]) -> Iterator[Frame]:
    for change, prefix, suffix in iterate_texts(session):
        if change.kind == "typing":
            yield {
                "mode": "inline",
                "path": session.path,
                "prefix": prefix,
                "suffix": suffix,
                "files": [*pinned, *({"path": f.path, "text": f.text} for f in session.files)],
                "repository": {"name": session.repository},
                "max_tokens": 1,
            }


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    report = Report("colleagues")
    with (
        create_home() as home,
        own_engine(home) as url,
        own_gateway(home, engine_url=url, replica=url) as running,
    ):
        asyncio.run(_measure(home, running, options, report))
    return report.exit_status


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--keystrokes", type=int, default=40, help="keystrokes of each user")
    parser.add_argument("--timed", type=int, default=60, help="number of prompts of each kind")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


async def _measure(
    home: Home, running: Running, options: argparse.Namespace, report: Report
) -> None:
    sessions = list(_sessions(options.users, seed=options.seed))
    pinned = [
        file.to_fields()
        for file in PinnedFiles(SystemLoopClock()).list(Repository(REPOSITORY, _REPOSITORY_NAME))
    ]
    replay = Replay(running, pinned, options.keystrokes)
    publish_users = partial(_publish_users, home, running, options.users)
    say("Shared cache, with pinned files")
    shared = await replay.run(
        sessions,
        await publish_users(Isolation.SHARED),
        is_pinned=True,
    )
    say("Shared cache, without pinned files")
    unpinned = await replay.run(
        sessions,
        await publish_users(Isolation.SHARED),
        is_pinned=False,
    )
    only_first = Replay(running, pinned, 1)
    strict = await only_first.run(
        sessions,
        await publish_users(Isolation.STRICT),
        is_pinned=True,
    )
    (foreign_shares,) = await only_first.run(sessions[-1:], [running.globex_key], is_pinned=True)
    _report_shares(report, shared, unpinned)
    for name, shares in (("strict", strict[1:]), ("other_tenant", [foreign_shares])):
        num_cached = sum(user.first.cached_tokens for user in shares)
        report.target(f"{name}.cached", num_cached, "tokens", at_most=0, n=len(shares))
    code = CodeText(
        read_pool_config(running.pools_file).find_shared(tier_of("fim")), seed=options.seed
    )
    for isolation in (Isolation.STRICT, Isolation.SHARED):
        say(f"First-token times, {isolation} cache")
        keys = await _publish_users(home, running, 2, isolation)
        sent_ms, new_ms = await _measure_times(running, code, keys, options.timed)
        p = float(ks_2samp(sent_ms, new_ms).pvalue)
        is_strict = isolation is Isolation.STRICT
        report.judged(
            f"{isolation}.ks_p",
            p,
            "p",
            passed=(p > MIN_P) if is_strict else (p < _CONTROL_P),
            target=f"over {MIN_P:g}" if is_strict else f"under {_CONTROL_P:g}",
            p50_sent_ms=rounded(median(sent_ms)),
            p50_new_ms=rounded(median(new_ms)),
            n=len(new_ms),
        )


def _sessions(num_users: int, *, seed: int) -> Iterator[Session]:
    """Yield sessions in different files of this repository."""
    paths: set[str] = set()
    # More sessions than users, because some are of other repositories or of the same file.
    for session in make_sessions(20 * num_users, seed=seed):
        if session.repository == _REPOSITORY_NAME and session.path not in paths:
            paths.add(session.path)
            yield session
        if len(paths) == num_users:
            return


async def _publish_users(
    home: Home, running: Running, num_users: int, isolation: Isolation
) -> list[str]:
    """Publish a new tenant with this many users; return their keys once the gateway knows them."""
    secret = root_secret_of(home.paths)
    snapshot, _ = new_tenant("users", root_secret=secret)
    credentials, keys = zip(*(new_credential(secret) for _ in range(num_users)), strict=True)
    policy = msgspec.structs.replace(snapshot.policy, isolation=isolation)
    publish(home.paths, msgspec.structs.replace(snapshot, policy=policy, credentials=credentials))
    headers = {"Authorization": f"Bearer {keys[0]}"}
    async with aiohttp.ClientSession(running.gateway_url, headers=headers) as session:
        for _ in range(_MAX_POLLS):
            if await _is_known(session):
                return list(keys)
            await asyncio.sleep(_POLL_S)
    raise TimeoutError("the gateway does not know the new tenant")


async def _is_known(session: aiohttp.ClientSession) -> bool:
    async with session.get("/v1/models") as response:
        return response.status == HTTPStatus.OK


async def _measure_times(
    running: Running, code: CodeText, keys: Sequence[str], count: int
) -> tuple[list[float], list[float]]:
    """Return two lists of the second user's first-token times.

    The first list is of prompts whose pinned files the first user has sent before, the second list
    of prompts whose pinned files are new.
    """
    times: dict[bool, list[float]] = {True: [], False: []}  # by `is_sent`
    async with (
        open_stream(running.gateway_url, keys[0]) as first,
        open_stream(running.gateway_url, keys[1]) as second,
    ):
        for number in range(count):
            sent_files, new_files = _make_pinned_files(code), _make_pinned_files(code)
            await _measure_first_token_ms(first, sent_files, f"{number}-first.py")
            for is_sent in random.sample((True, False), 2):
                pinned = sent_files if is_sent else new_files
                path = f"{number}-{is_sent}.py"
                times[is_sent].append(await _measure_first_token_ms(second, pinned, path))
    return times[True], times[False]


def _make_pinned_files(code: CodeText) -> list[Frame]:
    texts = (code.sample(mode="fim", num_tokens=250, max_tokens=1).prefix for _ in range(3))
    return [{"path": f"{n}.py", "text": text, "is_pinned": True} for n, text in enumerate(texts)]


async def _measure_first_token_ms(stream: Any, pinned: Sequence[Frame], path: str) -> float:
    frame = {"id": path, "mode": "fim", "path": path, "prefix": "value = ", "suffix": SUFFIX}
    meta: dict[str, Any] = {}
    async for answer in stream.complete({**frame, "files": pinned, "max_tokens": 1}):
        meta = answer.get("meta", meta)
    # If the model wrote no text, the time of the engine's first token counts.
    first_ms = meta["first_token_ms"] or (meta["time_to_engine_ms"] + meta["engine_ms"])
    return float(first_ms)


def _report_shares(
    report: Report, shared: Sequence[UserShares], unpinned: Sequence[UserShares]
) -> None:
    for name, users in (("pinned", shared), ("unpinned", unpinned)):
        firsts = [_percent([user.first]) for user in users[1:]]
        typing = _percent([share for user in users for share in user.typing])
        tokens = rounded(median([user.first.prompt_tokens for user in users]))
        if name == "pinned":
            report.judged(
                "second_user.first.cached",
                firsts[0],
                "%",
                passed=firsts[0] >= MIN_SHARED_PERCENT,
                target=f"at least {MIN_SHARED_PERCENT:g}",
                later_users=[rounded(share) for share in firsts[1:]],
                prompt_tokens=tokens,
            )
            report.judged(
                "typing.cached",
                typing,
                "%",
                passed=typing >= MIN_TYPING_PERCENT,
                target=f"at least {MIN_TYPING_PERCENT:g}",
                first_user=rounded(_percent(users[0].typing)),
            )
        else:
            report.figure("unpinned.first.cached", firsts[0], "%", later_users=firsts[1:])
            report.figure(
                "unpinned.typing.cached", typing, "%", first_user=_percent(users[0].typing)
            )


def _percent(shares: Sequence[CachedShare]) -> float:
    prompt_tokens = sum(share.prompt_tokens for share in shares)
    return 100 * sum(share.cached_tokens for share in shares) / prompt_tokens


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
