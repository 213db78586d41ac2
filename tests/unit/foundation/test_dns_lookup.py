"""Name resolution: a DNS server that does not respond delays only the names that it resolves.

`fake_dns` resolves `*.known.test` to 127.0.0.1. The look-up of `*.silent.test` hangs.
"""

import asyncio
import socket

import pytest

from caret.foundation.egress.dns_lookup import resolve
from tests.fakes.dns import fake_dns


async def test_a_name_is_resolved() -> None:
    with fake_dns():
        ((family, *_, address),) = await resolve("siem.known.test", 6514)

    assert (family, address) == (socket.AF_INET, ("127.0.0.1", 6514))


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example", "nobody.invalid"])
async def test_an_invalid_or_unknown_name_is_not_resolved(host: str) -> None:
    with pytest.raises(socket.gaierror):
        await resolve(host, 6514)


async def test_silent_dns_does_not_block_other_names() -> None:
    with fake_dns():
        # The default executor of an event loop has at most 32 threads on any machine. If `resolve`
        # used it, 40 hanging look-ups would occupy all of them.
        silent = [asyncio.create_task(resolve(f"{i}.silent.test", 1)) for i in range(40)]
        await asyncio.sleep(0.1)

        async with asyncio.timeout(5.0):
            assert await resolve("siem.known.test", 6514)

        for task in silent:
            task.cancel()
        await asyncio.gather(*silent, return_exceptions=True)


async def test_a_resolution_may_be_abandoned() -> None:
    with fake_dns(), pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await resolve("a.silent.test", 1)

    # The thread ends now, and drops its result because no task waits for it any longer. An error
    # in the thread would fail this test.
    await asyncio.sleep(0.1)
