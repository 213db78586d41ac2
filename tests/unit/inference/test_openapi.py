"""The committed OpenAPI description of the HTTP protocols matches the code."""

import json
from pathlib import Path

from inference.consumers.application import DIALECTS, OTHER_CONSUMERS
from inference.consumers.http.http_consumer import HealthConsumer
from inference.consumers.openapi import build_openapi, render_openapi

FILE = Path(__file__).parents[3] / "platform" / "docs" / "openapi.json"


def test_the_committed_description_is_current() -> None:
    assert FILE.read_text() == render_openapi(), "run: python -m inference.consumers.openapi"


def test_every_path_is_described_except_health_checks() -> None:
    health_checks = {
        path for path, consumer in OTHER_CONSUMERS.items() if consumer is HealthConsumer
    }

    assert set(build_openapi()["paths"]) == {*DIALECTS, *OTHER_CONSUMERS} - health_checks


def test_every_method_is_described() -> None:
    methods_by_path = {path: set(methods) for path, methods in build_openapi()["paths"].items()}

    for path, described_methods in methods_by_path.items():
        methods = OTHER_CONSUMERS[path].methods if path in OTHER_CONSUMERS else (b"POST",)
        assert described_methods == {method.decode().lower() for method in methods}


def test_every_schema_is_referenced() -> None:
    description = build_openapi()
    text = json.dumps(description)

    for name in description["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text
