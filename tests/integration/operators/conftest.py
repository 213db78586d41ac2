from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.integration.operators.gateways import Gateway
    from tests.stack.services import Services


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres and Valkey."""


@pytest.fixture(autouse=True)
def _no_earlier_guesses(database: None) -> None:
    """Delete the counts of wrong codes and passwords.

    Tests share one operator of each role, and a wrong code counts for 15 minutes.
    """
    from tenants.base.redis_connection import connect_to_redis

    redis = connect_to_redis()
    for redis_key in redis.scan_iter("caret:throttle:*"):
        redis.delete(redis_key)


@pytest.fixture(scope="module")
def gateway_process(services: Services) -> Iterator[Gateway]:
    # Imported here: pytest may load this file before Django is set up.
    from tests.integration.operators.gateways import own_gateway

    with own_gateway(services) as gateway:
        yield gateway


@pytest.fixture
def gateway(
    gateway_process: Gateway, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Gateway:
    """A real gateway whose metrics the pages read. They wait for them longer than in production."""
    from tenants.fleet.pools.scraping import gateway_scraper

    patient = replace(gateway_scraper.BOUNDS, total_s=60.0)
    monkeypatch.setattr(gateway_scraper, "BOUNDS", patient)
    settings.GATEWAY_METRICS = [gateway_process.metrics]
    return gateway_process
