"""`POST /v1/completions` with OpenAI's own client."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tests.benchmarks.synthetic_code import SUFFIX
from tests.functional.gateway.gateway_stack import Frame, Site

pytestmark = pytest.mark.engine
MODEL = "whatever"  # no models are published, so the gateway ignores the name
_MAX_TRIES = 3


@pytest.fixture
async def client(site: Site) -> AsyncIterator[openai.AsyncOpenAI]:
    async with _client(site, site.acme_key) as openai_client:
        yield openai_client


async def test_a_completion_is_returned_whole(
    client: openai.AsyncOpenAI, long_frame: Frame
) -> None:
    completion = await client.completions.create(
        model=MODEL, prompt=long_frame["prefix"], suffix=SUFFIX, max_tokens=24
    )

    (choice,) = completion.choices
    assert choice.text
    assert choice.finish_reason in ("stop", "length")
    assert completion.model == "demo"  # the engine's, not the client's
    assert completion.usage is not None
    assert completion.usage.total_tokens == (
        completion.usage.prompt_tokens + completion.usage.completion_tokens
    )


async def test_a_completion_is_streamed(client: openai.AsyncOpenAI, long_frame: Frame) -> None:
    stream = await client.completions.create(
        model=MODEL, prompt=long_frame["prefix"], suffix=SUFFIX, max_tokens=24, stream=True
    )
    chunks = [chunk async for chunk in stream]

    # A busy engine can send its whole text in one chunk. The end is a chunk of its own.
    assert len(chunks) >= 2
    assert all(chunk.choices[0].text for chunk in chunks[:-1])
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons[:-1] == [None] * (len(chunks) - 1)
    assert reasons[-1] in ("stop", "length")


async def test_streamed_and_whole_completions_have_the_same_text(
    client: openai.AsyncOpenAI, long_frame: Frame
) -> None:
    request: dict[str, Any] = {
        "model": MODEL,
        "prompt": long_frame["prefix"],
        "suffix": SUFFIX,
        "max_tokens": 24,
    }

    complete = await client.completions.create(**request)
    stream = await client.completions.create(**request, stream=True)
    streamed = "".join([chunk.choices[0].text async for chunk in stream])

    assert streamed == complete.choices[0].text


async def test_a_stream_includes_usage_on_request(
    client: openai.AsyncOpenAI, long_frame: Frame
) -> None:
    stream = await client.completions.create(
        model=MODEL,
        prompt=long_frame["prefix"],
        suffix=SUFFIX,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]

    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert 0 < chunks[-1].usage.completion_tokens <= 8
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_a_prompt_without_suffix_is_used_verbatim(
    site: Site, client: openai.AsyncOpenAI
) -> None:
    num_records = await site.num_records()

    completion = await client.completions.create(
        model=MODEL, prompt="<|fim_prefix|>x<|fim_suffix|>", max_tokens=4
    )

    assert completion.usage is not None
    assert completion.usage.prompt_tokens == 3  # two markers, and the x
    (record,) = await site.records_after(num_records)
    assert record.protocol == "openai"


async def test_markers_in_a_prompt_with_suffix_are_plain_text(client: openai.AsyncOpenAI) -> None:
    completion = await client.completions.create(
        model=MODEL, prompt="<|fim_suffix|>", suffix="", max_tokens=1
    )

    assert completion.usage is not None
    # As a marker it would be one token, beside the three markers of the fill-in-the-middle prompt.
    assert completion.usage.prompt_tokens > 4


async def test_stop_strings_end_a_raw_completion(
    client: openai.AsyncOpenAI, long_frame: Frame
) -> None:
    unstopped = await client.completions.create(
        model=MODEL, prompt=long_frame["prefix"], max_tokens=24
    )
    text = unstopped.choices[0].text
    stop = text[len(text) // 2]

    stopped = await client.completions.create(
        model=MODEL, prompt=long_frame["prefix"], max_tokens=24, stop=[stop]
    )

    assert stopped.choices[0].text == text[: text.index(stop)]
    assert stopped.choices[0].finish_reason == "stop"


async def test_a_chat_is_returned_whole_and_streamed(
    site: Site, client: openai.AsyncOpenAI
) -> None:
    num_records = await site.num_records()
    request: dict[str, Any] = {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You complete Python."},
            {"role": "user", "content": "import os\n\n\ndef read(path):\n    with open("},
        ],
        "max_tokens": 24,
    }

    complete = await client.chat.completions.create(**request)
    stream = await client.chat.completions.create(**request, stream=True)
    chunks = [chunk async for chunk in stream]

    (choice,) = complete.choices
    assert choice.message.role == "assistant"
    assert choice.message.content == "".join(
        chunk.choices[0].delta.content or "" for chunk in chunks
    )
    assert [chunk.choices[0].delta.role for chunk in chunks[:2]] == ["assistant", None]
    assert chunks[-1].choices[0].finish_reason == choice.finish_reason
    records = await site.records_after(num_records, count=2)
    assert {(record.mode, record.tier, record.protocol) for record in records} == {
        ("chat", "quality", "chat")
    }


async def test_the_models_are_listed(client: openai.AsyncOpenAI) -> None:
    models = [model async for model in client.models.list()]

    assert models
    assert models[0].owned_by == "caret"
    assert await client.models.retrieve(models[0].id) == models[0]


async def test_closing_the_stream_frees_the_engine(
    site: Site, client: openai.AsyncOpenAI, long_frame: Frame
) -> None:
    # On a busy machine the client may close the stream after the completion's end: try again.
    for _ in range(_MAX_TRIES):
        num_records = await site.num_records()
        stream = await client.completions.create(
            model=MODEL, prompt=long_frame["prefix"], suffix=SUFFIX, max_tokens=512, stream=True
        )
        async for _chunk in stream:
            break
        await stream.close()
        assert await site.becomes_idle()
        (record,) = await site.records_after(num_records)
        if record.finish_reason == "cancelled":
            break

    assert record.finish_reason == "cancelled"
    assert 0 < record.generated_tokens < 512


async def test_an_invalid_key_is_refused_with_the_documented_code(site: Site) -> None:
    async with _client(site, "cpk_live_nonsense") as client:
        with pytest.raises(openai.AuthenticationError) as exc_info:
            await client.completions.create(model=MODEL, prompt="x")

    assert exc_info.value.code == "invalid_api_key"


def _client(site: Site, key: str) -> openai.AsyncOpenAI:
    # The environment's proxies cannot reach this machine's loopback address.
    transport = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(
        base_url=f"{site.url}/v1", api_key=key, max_retries=0, http_client=transport
    )
