"""The OpenAPI document's description of every operation."""

import json
from typing import Any

import pytest

from console.api.api import api

DOCUMENT: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema()))
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """Return the target if the part is a reference within the document, or else the part."""
    while "$ref" in part:
        target: Any = DOCUMENT
        for name in part["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        part = target
    return part


def parameter_names(operation_name: str) -> set[str]:
    parameters = OPERATIONS[operation_name].get("parameters", [])
    return {parameter["name"] for parameter in map(resolve, parameters)}


def list_references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [reference for value in part.values() for reference in list_references(value)]
    if isinstance(part, list):
        return [reference for value in part for reference in list_references(value)]
    return []


def test_every_reference_exists() -> None:
    for reference in list_references(DOCUMENT):
        assert resolve({"$ref": reference})


def test_operation_ids_are_unique_and_consist_of_group_and_command() -> None:
    identifiers = [operation["operationId"] for operation in OPERATIONS.values()]

    assert len(set(identifiers)) == len(identifiers)
    assert all(len(identifier.split(".")) == 2 for identifier in identifiers)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_summary_is_a_sentence(name: str) -> None:
    summary = OPERATIONS[name]["summary"]

    assert summary[0].isupper()
    assert summary.endswith(".")


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_request_body_has_an_example(name: str) -> None:
    for content in OPERATIONS[name].get("requestBody", {}).get("content", {}).values():
        schema = resolve(content["schema"])
        shapes = [resolve(shape) for shape in schema.get("anyOf", [schema])]
        assert any("example" in shape or "examples" in shape for shape in shapes)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_error_response_has_an_example(name: str) -> None:
    """An operation that needs a credential also declares the error 429."""
    errors = {
        status: resolve(response)
        for status, response in OPERATIONS[name]["responses"].items()
        if int(status) >= 400
    }

    assert "429" in errors or "security" not in OPERATIONS[name]
    for status, error in errors.items():
        example = error["content"]["application/problem+json"]["example"]
        assert example["status"] == int(status)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name.startswith("POST")])
def test_post_operations_accept_an_idempotency_key_unless_they_are_idempotent(name: str) -> None:
    accepts_key = "Idempotency-Key" in parameter_names(name)

    assert accepts_key == ("x-no-idempotency-key" not in OPERATIONS[name])


def test_idempotent_post_operations_are_listed() -> None:
    """Running these operations twice must have the same effect as once."""
    names = {name for name in OPERATIONS if "x-no-idempotency-key" in OPERATIONS[name]}

    assert names == {
        "POST /api/v1/audit/sinks/{sink_id}/test",
        "POST /api/v1/data-subjects/me/bundle",
        "POST /api/v1/data-subjects/{user_id}/bundle",
        "POST /api/v1/domains/{domain_id}/verify",
        "POST /api/v1/leak-reports",
        "POST /api/v1/leak-reports/github",
        "POST /api/v1/platform/tenants",
        "POST /api/v1/platform/tenants/{slug}/owner-invitation",
        "POST /api/v1/platform/tenants/{slug}/owners",
        "POST /api/v1/policy/overrides/{kind}/{subject_id}/preview",
        "POST /api/v1/policy/preview",
    }


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_an_idempotency_key_may_respond_with_conflict(name: str) -> None:
    accepts_key = "Idempotency-Key" in parameter_names(name)

    assert not accepts_key or "409" in OPERATIONS[name]["responses"]
