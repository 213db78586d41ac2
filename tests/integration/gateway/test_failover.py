"""A real gateway with two engines that close connections in mid-stream.

One engine continues the completion that the other lost. If both lose it, the completion ends as if
it had reached its token limit.
"""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from tokenizers import Tokenizer

from tests.benchmarks.installation import create_home
from tests.fakes.continuation_engine import ContinuationEngine, running_continuation_engine
from tests.fakes.gateway import WEIGHTS
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    request_completion,
    start_site,
    wait_until,
)
from tests.integration.gateway.requests import find_serving_replicas
from tests.integration.gateway.sample_requests import SAMPLE_REQUESTS, SampleRequest

TEXT = "total = 0\nfor item in items:\n    total += item.price * item.count\nprint(total)\n"
DISCONNECT_AFTER = 5  # tokens
FRAME: Frame = {"mode": "fim", "prefix": "items = read()\n", "suffix": "\n", "max_tokens": 16}


@pytest.fixture(scope="module")
def engines() -> Iterator[tuple[ContinuationEngine, ContinuationEngine]]:
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    token_ids = tokenizer.encode(TEXT, add_special_tokens=False).ids
    # Cut the text into the characters that each token adds.
    ends = [len(tokenizer.decode(token_ids[:n])) for n in range(len(token_ids) + 1)]
    texts = [TEXT[start:end] for start, end in pairwise(ends)]
    first, second = (ContinuationEngine(token_ids, texts, host=f"127.0.0.{n}") for n in (1, 2))
    with running_continuation_engine(first), running_continuation_engine(second):
        yield first, second


@pytest.fixture(scope="module")
def site(engines: tuple[ContinuationEngine, ContinuationEngine]) -> Iterator[Site]:
    with create_home() as home:
        replicas = [{"url": engine.url} for engine in engines]
        with start_site(home, engines[0].url, replicas=replicas) as site:
            yield site


@pytest.fixture(autouse=True)
def _intact_engines(engines: tuple[ContinuationEngine, ContinuationEngine]) -> None:
    for engine in engines:
        engine.disconnect_after = None
        engine.requests.clear()


async def test_another_engine_continues_a_lost_completion(
    site: Site, engines: tuple[ContinuationEngine, ContinuationEngine]
) -> None:
    whole_text, uninterrupted_done = await _request_completion(site)
    (first,) = [engine for engine in engines if engine.requests]
    (second,) = [engine for engine in engines if engine is not first]
    # Requests for the same file prefer the same replica, so the next one begins at `first`, too.
    first.disconnect_after = DISCONNECT_AFTER

    text, done = await _request_completion(site)

    assert (text, done["finish_reason"], done["meta"]["filter_reason"]) == (
        whole_text,
        "length",
        "",
    )
    assert done["meta"]["replica"] == second.url.removeprefix("http://")
    _, lost_request = first.requests
    (continuation,) = second.requests
    assert continuation["prompt"] == [*lost_request["prompt"], *first.token_ids[:DISCONNECT_AFTER]]
    assert continuation["cache_salt"] == lost_request["cache_salt"]
    record = await site.record_of(done["meta"]["request_id"])
    assert (record.prompt_tokens, record.generated_tokens) == (
        uninterrupted_done["meta"]["prompt_tokens"],
        FRAME["max_tokens"],
    )
    # The fake engine reports its whole prompt as cached. In the prompt of `second`, the tokens that
    # `first` generated do not count.
    assert record.cached_tokens == record.prompt_tokens


async def test_a_completion_that_both_engines_lose_ends_with_its_text_so_far(
    site: Site, engines: tuple[ContinuationEngine, ContinuationEngine]
) -> None:
    # Each of the two engines generates DISCONNECT_AFTER tokens.
    expected_text, _ = await _request_completion(site, max_tokens=2 * DISCONNECT_AFTER)
    for engine in engines:
        engine.disconnect_after = DISCONNECT_AFTER

    text, done = await _request_completion(site)

    assert text == expected_text
    assert (done["finish_reason"], done["meta"]["filter_reason"]) == (
        "length",
        "engine_disconnected",
    )
    record = await site.record_of(done["meta"]["request_id"])
    assert (record.generated_tokens, record.error_code) == (2 * DISCONNECT_AFTER, "")


@pytest.mark.parametrize("name", SAMPLE_REQUESTS)
async def test_no_client_sees_an_error_if_engines_disconnect(
    site: Site, engines: tuple[ContinuationEngine, ContinuationEngine], name: str
) -> None:
    sample: SampleRequest = SAMPLE_REQUESTS[name]
    for engine in engines:
        engine.disconnect_after = DISCONNECT_AFTER

    async with (
        site.http() as session,
        session.post(sample.path, json=sample.body_with(16)) as response,
    ):
        text = await response.text()

    assert response.status == 200, text
    assert "error" not in text
    # Words of TEXT. A stream's pieces are tokens, and `total` is two of them: `t` and `otal`.
    assert "items" in text or "otal" in text


async def test_the_continuation_keeps_the_tenants_cache_namespace(
    site: Site, engines: tuple[ContinuationEngine, ContinuationEngine]
) -> None:
    # The test before may have opened the circuits of the engines. If the cooldown of only one was
    # over, the gateway would use only this engine. Successful completions close the circuits.
    async def are_circuits_closed() -> bool:
        return len(await find_serving_replicas(site)) == len(engines)

    assert await wait_until(are_circuits_closed)
    for engine in engines:
        engine.requests.clear()
        engine.disconnect_after = DISCONNECT_AFTER

    await _request_completion(site, key=site.acme_key)
    acme_salts = {body["cache_salt"] for engine in engines for body in engine.requests}
    await _request_completion(site, key=site.globex_key)
    globex_salts = {
        body["cache_salt"] for engine in engines for body in engine.requests
    } - acme_salts

    assert [len(engine.requests) for engine in engines] == [2, 2]  # both tenants at both
    assert (len(acme_salts), len(globex_salts)) == (1, 1)


async def _request_completion(
    site: Site, *, key: str | None = None, **fields: int
) -> tuple[str, Frame]:
    async with site.stream(key) as stream:
        return await request_completion(
            stream, {**FRAME, **fields, "path": "a.py", "id": site.new_id()}
        )
