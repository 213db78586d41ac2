"""The description of the HTTP protocols is the code's own."""

import json
from pathlib import Path

from inference.consumers.application import DIALECTS, LOOKUPS
from inference.consumers.health import HealthConsumer
from inference.consumers.openapi import describe, written

FILE = Path(__file__).parents[3] / "platform" / "docs" / "openapi.json"


def test_the_kept_description_is_current() -> None:
    assert FILE.read_text() == written(), "run: python -m inference.consumers.openapi"


def test_every_address_is_described() -> None:
    probes = {path for path, consumer in LOOKUPS.items() if consumer is HealthConsumer}

    assert set(describe()["paths"]) == {*DIALECTS, *LOOKUPS} - probes


def test_every_method_is_described() -> None:
    described = {path: set(methods) for path, methods in describe()["paths"].items()}

    for path in described:
        methods = LOOKUPS[path].methods if path in LOOKUPS else (b"POST",)
        assert described[path] == {method.decode().lower() for method in methods}


def test_every_reference_leads_somewhere() -> None:
    description = describe()
    text = json.dumps(description)

    for name in description["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text
