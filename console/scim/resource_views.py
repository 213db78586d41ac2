"""The SCIM endpoints of users and of groups. Both offer the same six operations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

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
# Elements of all lists in one PATCH: the operations, and the members that they add or remove.
MAX_VALUES: Final = MAX_OPERATIONS + groups.MAX_CHANGED_MEMBERS
_Model = TypeVar("_Model", bound=Resource[Any])


@dataclass(frozen=True, slots=True)
class ScimResourceType(Generic[_Model]):
    """A SCIM resource type, with the operations of tenants.identity.scim that serve it."""

    model: type[_Model]
    id_name: str  # name of the ID's parameter in the functions below
    find: Callable[..., _Model]
    list_all: Callable[..., SearchResult[_Model]]
    create: Callable[..., _Model]
    replace: Callable[..., _Model]
    patch: Callable[..., _Model]
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


def collection_view(resource_type: ScimResourceType[Any]) -> View:
    """Return the endpoint of all resources of a type: search and creation."""

    def get(request: HttpRequest, actor: Actor) -> HttpResponse:
        _check_filter(request)
        search = SearchRequest[resource_type.model].model_validate(  # type: ignore[name-defined]  # a class in a variable
            request.GET.dict(), scim_ctx=Context.SEARCH_REQUEST
        )
        result = resource_type.list_all(actor=actor, search=search)
        return _list_response(resource_type, search, result)

    def post(request: HttpRequest, actor: Actor) -> HttpResponse:
        resource = resource_type.model.model_validate(
            body_of(request), scim_ctx=Context.RESOURCE_CREATION_REQUEST
        )
        new_resource = resource_type.create(actor=actor, resource=resource, now=timezone.now())
        return resource_response(new_resource, _read_parameters(resource_type, request), status=201)

    return scim_endpoint(get=get, post=post)


def resource_view(resource_type: ScimResourceType[Any]) -> View:
    """Return the endpoint of one resource: read, replacement, patch and deletion."""

    def get(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        parameters = _read_parameters(resource_type, request)
        resource = resource_type.find(
            actor=actor, parameters=parameters, **resource_type.resource_kwargs(resource_id)
        )
        if is_not_modified(request, resource):
            return HttpResponse(status=304, headers={"ETag": resource.meta.version})
        return resource_response(resource, parameters)

    def put(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        resource = resource_type.model.model_validate(
            body_of(request), scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST
        )
        new_resource = resource_type.replace(
            actor=actor,
            resource=resource,
            check=precondition_of(request),
            now=timezone.now(),
            **resource_type.resource_kwargs(resource_id),
        )
        return resource_response(new_resource, _read_parameters(resource_type, request))

    def patch(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        operations = PatchOp[resource_type.model].model_validate(  # type: ignore[name-defined]
            _require_few_operations(body_of(request)), scim_ctx=Context.RESOURCE_PATCH_REQUEST
        )
        new_resource = resource_type.patch(
            actor=actor,
            patch=operations,
            check=precondition_of(request),
            now=timezone.now(),
            **resource_type.resource_kwargs(resource_id),
        )
        return resource_response(new_resource, _read_parameters(resource_type, request))

    def delete(request: HttpRequest, actor: Actor, resource_id: str) -> HttpResponse:
        resource_type.delete(
            actor=actor,
            check=precondition_of(request),
            now=timezone.now(),
            **resource_type.resource_kwargs(resource_id),
        )
        return HttpResponse(status=204)

    return scim_endpoint(get=get, put=put, patch=patch, delete=delete)


def _check_filter(request: HttpRequest) -> None:
    """Raise InvalidFilterException for a filter that is too long."""
    if len(request.GET.get("filter", "")) > MAX_FILTER_CHARS:
        raise InvalidFilterException(detail=f"At most {MAX_FILTER_CHARS} characters.")


def _require_few_operations(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a PATCH. Raises InvalidValueException for too many operations or values.

    The limits bound the computation, because each added value is compared with all existing values.
    """
    # Attribute names are case-insensitive in SCIM, so a body can contain several lists, such as
    # `Operations` and `operations`.
    lists = [value for name, value in body.items() if name.lower() == "operations"]
    if sum(len(value) for value in lists if isinstance(value, list)) > MAX_OPERATIONS:
        raise InvalidValueException(detail=f"At most {MAX_OPERATIONS} operations.")
    if sum(map(_count_values, lists)) > MAX_VALUES:
        raise InvalidValueException(detail=f"At most {MAX_VALUES} values.")
    return body


def _count_values(part: object) -> int:
    """Return the number of elements of all lists in a part of a JSON document."""
    if isinstance(part, list):
        return len(part) + sum(map(_count_values, part))
    return sum(map(_count_values, part.values())) if isinstance(part, dict) else 0


def reject_unimplemented(request: HttpRequest, actor: Actor) -> NoReturn:
    raise NotImplementedException


def _list_response(
    resource_type: ScimResourceType[Any], search: "SearchRequest[Any]", result: SearchResult[Any]
) -> HttpResponse:
    response = ListResponse[resource_type.model](  # type: ignore[name-defined]
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
    resource_type: ScimResourceType[Any], request: HttpRequest
) -> "ResponseParameters[Any]":
    """Return the query parameters that choose the attributes of the response."""
    parameters = {
        name: text
        for name, text in request.GET.items()
        if name in ("attributes", "excludedAttributes")
    }
    return ResponseParameters[resource_type.model].model_validate(parameters)  # type: ignore[name-defined]
