"""Commands generated from the operations of an OpenAPI document. Pure.

An operation's ID is `group.command`. Its parameters and the fields of its body become arguments:
path parameters are positional, all others are options.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Json = dict[str, Any]
# The client sets this header itself, so that it may repeat a POST request.
IDEMPOTENCY_KEY: Final = "Idempotency-Key"


class ParameterLocation(StrEnum):
    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    BODY = "body"


class ParameterType(StrEnum):
    TEXT = "text"
    INTEGER = "whole number"
    NUMBER = "number"
    BOOLEAN = "true or false"
    LIST = "list"  # of strings
    JSON = "JSON"  # objects and all other values


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    location: ParameterLocation
    value_type: ParameterType
    is_required: bool
    choices: tuple[str, ...]  # empty: any value
    help: str  # "": no description


@dataclass(frozen=True, slots=True)
class Operation:
    group: str
    command: str
    method: str  # upper case
    path: str  # with placeholders such as {id}
    summary: str
    fields: tuple[Parameter, ...]
    has_body: bool
    is_paged: bool  # returns a list page by page; accepts a cursor

    @property
    def is_repeatable(self) -> bool:
        """True if repeating the request has no further effect."""
        return self.method != "POST" or any(field.name == IDEMPOTENCY_KEY for field in self.fields)


class UnsupportedApiDocument(Exception):
    """The document is not the OpenAPI document of a Caret console."""


def read_operations(document: Json) -> list[Operation]:
    """Return the operations whose ID is `group.command`, sorted by group and command.

    Raises UnsupportedApiDocument.
    """
    try:
        operations = [
            _build_operation(document, path, method, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if "." in operation["operationId"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise UnsupportedApiDocument("The server is not a Caret console.") from error
    return sorted(operations, key=lambda operation: (operation.group, operation.command))


def _build_operation(document: Json, path: str, method: str, operation: Json) -> Operation:
    group, command = operation["operationId"].split(".", 1)
    body = _find_body(document, operation)
    fields = (*_iterate_parameters(document, operation), *_iterate_body_fields(document, body))
    return Operation(
        group=group.replace("_", "-"),
        command=command.replace("_", "-"),
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        fields=fields,
        has_body=body is not None,
        is_paged=any(
            field.name == "cursor" and field.location is ParameterLocation.QUERY for field in fields
        ),
    )


def _iterate_parameters(document: Json, operation: Json) -> Iterator[Parameter]:
    for parameter in operation.get("parameters", []):
        if parameter["in"] in set(ParameterLocation):  # skips cookies
            location = ParameterLocation(parameter["in"])
            is_required = bool(parameter.get("required"))
            yield _build_parameter(
                document, parameter["name"], location, parameter["schema"], is_required
            )


def _find_body(document: Json, operation: Json) -> Json | None:
    """Return the schema of the body; None if the operation has no JSON body."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    return None if content is None else _select_not_null(document, content["schema"])


def _iterate_body_fields(document: Json, body: Json | None) -> Iterator[Parameter]:
    if body is None:
        return
    required_names = set(body.get("required", []))
    for name, schema in body.get("properties", {}).items():
        yield _build_parameter(
            document, name, ParameterLocation.BODY, schema, name in required_names
        )


def _build_parameter(
    document: Json, name: str, location: ParameterLocation, schema: Json, is_required: bool
) -> Parameter:
    shape = _select_not_null(document, schema)
    choices = tuple(str(choice) for choice in shape.get("enum", ()))
    return Parameter(
        name=name,
        location=location,
        value_type=_find_type(document, shape),
        is_required=is_required,
        choices=choices,
        help=str(schema.get("description") or shape.get("description") or ""),
    )


def _find_type(document: Json, shape: Json) -> ParameterType:
    match shape.get("type"):
        case "string":
            return ParameterType.TEXT
        case "integer":
            return ParameterType.INTEGER
        case "number":
            return ParameterType.NUMBER
        case "boolean":
            return ParameterType.BOOLEAN
        case "array" if _select_not_null(document, shape.get("items", {})).get("type") == "string":
            return ParameterType.LIST
    return ParameterType.JSON


def _select_not_null(document: Json, schema: Json) -> Json:
    """Return the schema without null, and with its own reference resolved.

    A nullable field has a list of alternatives (`anyOf`): its schema and null. The schema of a
    field with a default may be in a list of one (`allOf`). Of a list, return the first schema that
    is not null.
    """
    schema = _resolve_reference(document, schema)
    shapes: list[Json] = schema.get("anyOf") or schema.get("allOf") or []
    for shape in shapes:
        resolved = _resolve_reference(document, shape)
        if resolved.get("type") != "null":
            return resolved
    return schema


def _resolve_reference(document: Json, schema: Json) -> Json:
    """Return the schema that `$ref` points to, or else the schema itself."""
    while "$ref" in schema:
        node: Mapping[str, Any] = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            node = node[name]
        schema = dict(node)
    return schema
