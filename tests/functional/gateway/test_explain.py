"""`manage.py explain_request` explains a real completion, given only its request ID."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from caret.client.websocket_client import open_stream
from tests.functional.gateway.gateway_stack import request_completion, wait_until
from tests.stack.commands import manage
from tests.stack.running import Stack

pytestmark = pytest.mark.engine


async def test_a_completion_is_explained_by_its_id(stack: Stack) -> None:
    async with open_stream(stack.gateway_url, stack.tenant("acme").api_key) as stream:
        prefix = f"# {uuid.uuid4()}\ndef first(items):\n    return items["
        frame = {"id": "1", "mode": "fim", "prefix": prefix, "suffix": "\n", "max_tokens": 8}
        _, done = await request_completion(stream, frame)
    meta = done["meta"]
    explanation: dict[str, Any] = {}

    async def is_explained() -> bool:
        arguments = ("explain_request", meta["request_id"], "--json")
        process = await asyncio.to_thread(manage, *arguments, environment=stack.environment)
        explanation.update(json.loads(process.stdout) if process.returncode == 0 else {})
        return bool(explanation)

    assert await wait_until(is_explained, timeout_s=180.0), "the record was not ingested"
    assert explanation["tenant"] == "acme"
    assert explanation["request"]["prompt_tokens"] == meta["prompt_tokens"]
    stages = explanation["explanation"]["stages"]
    assert [stage["name"] for stage in stages[:5]] == [
        *("authenticate", "admit", "assemble", "route", "generate")
    ]
    assert sum(stage["duration_ms"] for stage in stages) == pytest.approx(meta["total_ms"], abs=0.1)
    assert explanation["explanation"]["findings"]
