"""Base classes of the API's request and response schemas."""

from ninja import Schema
from pydantic import ConfigDict


class RequestSchema(Schema):
    """The body or query of a request.

    Unknown fields of a body are rejected. Unknown query parameters are ignored, because
    django-ninja reads only the known ones. The schema of a body must contain an example:
    `class RevokeKey(RequestSchema, json_schema_extra={"example": ...})`.
    """

    model_config = ConfigDict(extra="forbid")


class ResponseSchema(Schema):
    """A response. It can be built from an object, such as the result of a query.

    Each field is then read from the attribute with its name or alias.
    """

    model_config = ConfigDict(from_attributes=True)
