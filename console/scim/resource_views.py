"""SCIM users and groups: the same six operations for both."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from scim2_models import (
    Context,
    InvalidFilterException,
    InvalidValueException,
    ListResponse,
    NotImplementedException,
    PatchOp,
    Resource,
    ResponseParameters,
    SearchRequest,
)

from console.scim.base_view import (
    View,
    body_of,
    is_not_modified,
    json_response,
    precondition_of,
    resource_response,
    scim_endpoint,
)
from tenants.identity.scim import groups, queries, users
from tenants.identity.scim.resources import Group as ScimGroupResource
from tenants.identity.scim.resources import User as ScimUserResource
from tenants.identity.scim.search import SearchResult
from tenants.security.authorization.actor import Actor

MAX_FILTER_CHARS: Final = 1_000
MAX_OPERATIONS: Final = 100  # in one PATCH
MAX_VALUES: Final = 1_100  # in one PATCH, where operations also count as values
_Kind = TypeVar("_Kind", bound=Resource[Any])


@dataclass(frozen=True, slots=True)
class ScimResourceType(Generic[_Kind]):
    """A SCIM resource type, with the operations of tenants.identity.scim that serve it."""

    model: type[_Kind]
    id_name: str  # parameter name in operations and queries
    find: Callable[..., _Kind]
    list_all: Callable[..., SearchResult[_Kind]]
    create: Callable[..., _Kind]
    replace: Callable[..., _Kind]
    patch: Callable[..., _Kind]
    delete: Callable[..., None]

    def resource_kwargs(self, resource_id: str) -> dict[str, str]:
        return {self.id_name: resource_id}


USERS: Final = ScimResourceType(
    model=ScimUserResource,
    id_name="user_id",
    find=queries.find_user,
    list_all=queries.list_users,
    create=users.create_user,
    replace=users.replace_user,
    patch=users.patch_user,
    delete=users.delete_user,
)
GROUPS: Final = ScimResourceType(
    model=ScimGroupResource,
    id_name="group_id",
    find=queries.find_group,
    list_all=queries.list_groups,
    create=groups.create_group,
    replace=groups.replace_group,
    patch=groups.patch_group,
    delete=groups.delete_group,
)


def list_view(kind: ScimResourceType[Any]) -> View:
    def get(request: HttpRequest, actor: Actor) -> HttpResponse:
        _check_filter(request)
        search = SearchRequest[kind.model].model_validate(  # type: ignore[name-defined]  # a class in a variable
            request.GET.dict(), scim_ctx=Context.SEARCH_REQUEST
        )
        return _list_response(kind, search, kind.list_all(actor=actor, search=search))

    def post(request: HttpRequest, actor: Actor) -> HttpResponse:
        resource = kind.model.model_validate(
            body_of(request), scim_ctx=Context.RESOURCE_CREATION_REQUEST
        )
        new_resource = kind.create(actor=actor, resource=resource, now=timezone.now())
        return resource_response(new_resource, _read_parameters(kind, request), status=201)

    return scim_endpoint(get=get, post=post)


def resource_view(kind: ScimResourceType[Any]) -> View:
    def get(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        parameters = _read_parameters(kind, request)
        resource = kind.find(
            actor=actor, parameters=parameters, **kind.resource_kwargs(resource_id)
        )
        if is_not_modified(request, resource):
            return HttpResponse(status=304, headers={"ETag": resource.meta.version})
        return resource_response(resource, parameters)

    def put(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        resource = kind.model.model_validate(
            body_of(request), scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST
        )
        new_resource = kind.replace(
            actor=actor,
            resource=resource,
            check=precondition_of(request),
            now=timezone.now(),
            **kind.resource_kwargs(resource_id),
        )
        return resource_response(new_resource, _read_parameters(kind, request))

    def patch(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        operations = PatchOp[kind.model].model_validate(  # type: ignore[name-defined]
            _require_few_operations(body_of(request)), scim_ctx=Context.RESOURCE_PATCH_REQUEST
        )
        new_resource = kind.patch(
            actor=actor,
            patch=operations,
            check=precondition_of(request),
            now=timezone.now(),
            **kind.resource_kwargs(resource_id),
        )
        return resource_response(new_resource, _read_parameters(kind, request))

    def delete(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        kind.delete(
            actor=actor,
            check=precondition_of(request),
            now=timezone.now(),
            **kind.resource_kwargs(resource_id),
        )
        return HttpResponse(status=204)

    return scim_endpoint(get=get, put=put, patch=patch, delete=delete)


def _check_filter(request: HttpRequest) -> None:
    """Raise InvalidFilterException for a filter that is too long."""
    if len(request.GET.get("filter", "")) > MAX_FILTER_CHARS:
        raise InvalidFilterException(detail=f"At most {MAX_FILTER_CHARS} characters.")


def _require_few_operations(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a PATCH, after a check of its number of operations and values.

    Each added value is compared with all existing values. Raises InvalidValueException.
    """
    operations = next((value for name, value in body.items() if name.lower() == "operations"), None)
    if isinstance(operations, list) and len(operations) > MAX_OPERATIONS:
        raise InvalidValueException(detail=f"At most {MAX_OPERATIONS} operations.")
    if _count_values(operations) > MAX_VALUES:
        raise InvalidValueException(detail=f"At most {MAX_VALUES} values.")
    return body


def _count_values(part: object) -> int:
    """Return the number of values in all nested lists."""
    if isinstance(part, list):
        return len(part) + sum(map(_count_values, part))
    return sum(map(_count_values, part.values())) if isinstance(part, dict) else 0


def not_implemented(request: HttpRequest, actor: Actor, **kwargs: str) -> HttpResponse:
    raise NotImplementedException


def _list_response(
    kind: ScimResourceType[Any], search: "SearchRequest[Any]", result: SearchResult[Any]
) -> HttpResponse:
    response = ListResponse[kind.model](  # type: ignore[name-defined]
        total_results=result.total,
        start_index=result.start,
        items_per_page=len(result.resources),
        resources=result.resources,
    )
    return json_response(
        response.model_dump(
            scim_ctx=Context.SEARCH_RESPONSE,
            response_parameters=search,
        )
    )


def _read_parameters(
    kind: ScimResourceType[Any], request: HttpRequest
) -> "ResponseParameters[Any]":
    parameters = {
        name: text
        for name, text in request.GET.items()
        if name in ("attributes", "excludedAttributes")
    }
    return ResponseParameters[kind.model].model_validate(parameters)  # type: ignore[name-defined]
