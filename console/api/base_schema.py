"""What all shapes of the API have in common."""

from ninja import Schema
from pydantic import ConfigDict


class RequestSchema(Schema):
    """A request's body or query: an unknown field is an error, not a silent nothing.

    A body's class gives an example: `class RevokeKey(Body, json_schema_extra={"example": ...})`.
    """

    model_config = ConfigDict(extra="forbid")


class ResponseSchema(Schema):
    """Read from the attributes of what a query or operation returns."""

    model_config = ConfigDict(from_attributes=True)
