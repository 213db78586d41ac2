from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.integration.operators.gateways import Gateway
    from tests.stack.services import Services


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all of these tests Postgres and Valkey."""


@pytest.fixture(autouse=True)
def _no_earlier_guesses(database: None) -> None:
    """Delete the counts of wrong codes and passwords.

    Tests share one operator of each role, and a wrong code counts for 15 minutes.
    """
    from tenants.base.redis_connection import connect_to_redis

    redis = connect_to_redis()
    for key in redis.scan_iter("caret:throttle:*"):
        redis.delete(key)


@pytest.fixture(scope="module")
def gateway_process(services: Services) -> Iterator[Gateway]:
    # Imported here: plugins are loaded before Django is set up, models after it.
    from tests.integration.operators.gateways import own_gateway

    with own_gateway(services) as gateway:
        yield gateway


@pytest.fixture
def gateway(gateway_process: Gateway, settings: Settings) -> Gateway:
    """A real gateway whose metrics the pages read."""
    settings.GATEWAY_METRICS = [gateway_process.metrics]
    return gateway_process
