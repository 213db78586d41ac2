"""Responses when a budget is exhausted: an empty completion for editors, an error for chats."""

import json
from typing import Any

import pytest

from caret.contracts.policy import Tier
from caret.contracts.pricing import BudgetScope, HardBudget, SpendingLimits, TierPrices, TokenPrices
from caret.contracts.usage import FinishReason
from inference.pipeline import complete
from tests.fakes.client import FakeClient
from tests.fakes.gateway import KEY, FakeGateway
from tests.fakes.http_gateway import send_request
from tests.fakes.requests import make_arrival
from tests.fakes.tenants import make_credential, make_snapshot

# Each token costs one micro, and the budget is one micro in total.
TIER_PRICES = TierPrices(prompt=1_000_000, cached_prompt=1_000_000, generated=1_000_000)
PRICES = TokenPrices(effective_from_ms=0, tiers=dict.fromkeys(Tier, TIER_PRICES))
BUDGET = HardBudget("b", BudgetScope.TENANT, limit_micros=1)
EXHAUSTED = SpendingLimits((PRICES,), (BUDGET,))


@pytest.fixture
def gateway() -> FakeGateway:
    """Return a gateway whose tenant has a hard budget that no completion fits into."""
    gateway = FakeGateway()
    snapshot = make_snapshot(make_credential(KEY), version=2, spending=EXHAUSTED)
    gateway.snapshot_store.replace(snapshot)
    return gateway


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/completions", {"segments": {"prefix": "a"}}),
        ("/v1/fim/completions", {"prompt": "a"}),
        ("/infill", {"input_prefix": "a"}),
        ("/api/generate", {"prompt": "a", "stream": False}),
    ],
)
async def test_an_editor_plugin_gets_an_empty_completion(
    gateway: FakeGateway, path: str, body: dict[str, Any]
) -> None:
    exchange = await send_request(gateway, path, body)

    text = exchange.body.decode()
    assert exchange.status == 200
    assert any(empty in text for empty in ('"text":""', '"content":""', '"response":""'))
    assert [record.finish_reason for record in gateway.journal.completions] == [
        FinishReason.BUDGET_EXCEEDED
    ]


async def test_a_chat_client_gets_an_error(gateway: FakeGateway) -> None:
    chat = {"messages": [{"role": "user", "content": "a"}]}

    exchange = await send_request(gateway, "/v1/chat/completions", chat)

    assert exchange.status == 402
    error = json.loads(exchange.body)["error"]
    assert error["code"] == "budget_exceeded"
    assert "resume next month" in error["message"]


async def test_a_stream_ends_as_budget_exceeded_without_a_request_to_the_engine(
    gateway: FakeGateway,
) -> None:
    client = FakeClient()

    await complete(gateway.plane, make_arrival(key_text=KEY.text), client)

    (record,) = gateway.journal.completions
    assert (record.finish_reason, record.error_code, record.generated_tokens) == (
        FinishReason.BUDGET_EXCEEDED,
        "",
        0,
    )
    assert (client.texts, client.ends) == ([], ["done"])
    assert gateway.engine.requests == []
