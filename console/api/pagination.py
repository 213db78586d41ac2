"""The schemas of paginated lists: `limit` and `cursor` in, `next_cursor` out."""

from typing import Annotated, Final, TypeVar

from pydantic import AliasChoices, Field

from console.api.base_schema import RequestSchema, ResponseSchema
from tenants.base.pagination import MAX_PAGE

_MAX_CURSOR_CHARS: Final = 64  # a valid cursor has 32
_Item = TypeVar("_Item")
# A response's `items` are read from the `rows` of a query's page.
Items = Annotated[list[_Item], Field(validation_alias=AliasChoices("items", "rows"))]


class PageQuery(RequestSchema):
    """The query parameters of a list. Omit `cursor` for the first page."""

    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=_MAX_CURSOR_CHARS)] | None = None


class PageResponse(ResponseSchema):
    """Base class of the responses with a page of a list. Subclasses define `items`."""

    next_cursor: str | None  # null: this is the last page
