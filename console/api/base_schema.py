"""Base classes of the API's request and response schemas."""

from ninja import Schema
from pydantic import ConfigDict


class RequestSchema(Schema):
    """A request's body or query. Unknown fields are errors instead of being ignored.

    The schema of a body gives an example:
    `class RevokeKey(RequestSchema, json_schema_extra={"example": ...})`.
    """

    model_config = ConfigDict(extra="forbid")


class ResponseSchema(Schema):
    """A response, read from the attributes of the result of a query or an operation."""

    model_config = ConfigDict(from_attributes=True)
