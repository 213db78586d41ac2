"""The discovery endpoints of SCIM: service provider configuration, schemas and resource types.

SCIM calls this installation the service provider.
"""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from scim2_models import (
    AuthenticationScheme,
    Bulk,
    ChangePassword,
    Context,
    ETag,
    Filter,
    ListResponse,
    NotFoundException,
    Pagination,
    Patch,
    Resource,
    ResourceType,
    Schema,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
)

from console.scim.base_view import json_response, resource_response
from tenants.identity.scim.resources import POLICY
from tenants.identity.scim.resources import (
    Group as ScimGroupResource,
)
from tenants.identity.scim.resources import (
    User as ScimUserResource,
)
from tenants.identity.scim.search import MAX_RESULTS
from tenants.security.authorization.actor import Actor

PROVIDER: Final = ScimProvider(
    models=[ScimUserResource, ScimGroupResource],
    config=ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=MAX_RESULTS),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        pagination=Pagination(cursor=False, index=True, max_page_size=MAX_RESULTS),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type("oauthbearertoken"),
                name="Bearer token",
                description="A SCIM token that an owner creates in the console.",
                primary=True,
            )
        ],
    ),
    policy=POLICY,
)


def config(request: HttpRequest, actor: Actor) -> HttpResponse:
    assert PROVIDER.config is not None
    return resource_response(PROVIDER.config)


def schemas(request: HttpRequest, actor: Actor) -> HttpResponse:
    return _list_response(Schema, PROVIDER.schemas)


def schema(request: HttpRequest, actor: Actor, name: str) -> HttpResponse:
    """Return the schema whose ID, a URN, is `name`. Raises NotFoundException."""
    return resource_response(_find_resource(PROVIDER.schemas, "id", name))


def resource_types(request: HttpRequest, actor: Actor) -> HttpResponse:
    return _list_response(ResourceType, PROVIDER.resource_types)


def resource_type(request: HttpRequest, actor: Actor, name: str) -> HttpResponse:
    return resource_response(_find_resource(PROVIDER.resource_types, "name", name))


def _find_resource(resources: tuple[Any, ...], attribute: str, name: str) -> Resource[Any]:
    """Return the resource whose `attribute` is `name`. Case does not matter.

    Raises NotFoundException.
    """
    for resource in resources:
        if str(getattr(resource, attribute)).lower() == name.lower():
            assert isinstance(resource, Resource)
            return resource
    raise NotFoundException


def _list_response(model: type[Any], resources: tuple[Any, ...]) -> HttpResponse:
    response = ListResponse[model](  # type: ignore[valid-type]  # a class in a variable
        total_results=len(resources),
        start_index=1,
        items_per_page=len(resources),
        resources=list(resources),
    )
    return json_response(response.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
