"""The URLs of SCIM. An unknown path is answered with a SCIM error instead of an HTML page."""

from typing import NoReturn

from django.http import HttpRequest
from django.urls import path, re_path
from scim2_models import NotFoundException

from console.scim import discovery
from console.scim.base_view import scim_endpoint
from console.scim.resource_views import (
    GROUPS,
    USERS,
    collection_view,
    reject_unimplemented,
    resource_view,
)
from tenants.security.authorization.actor import Actor


def reject_unknown_path(request: HttpRequest, actor: Actor) -> NoReturn:
    raise NotFoundException


_UNKNOWN_PATH = scim_endpoint(
    get=reject_unknown_path,
    post=reject_unknown_path,
    put=reject_unknown_path,
    patch=reject_unknown_path,
    delete=reject_unknown_path,
)
urlpatterns = [
    path("ServiceProviderConfig", scim_endpoint(get=discovery.config)),
    path("Schemas", scim_endpoint(get=discovery.schemas)),
    path("Schemas/<name>", scim_endpoint(get=discovery.schema)),
    path("ResourceTypes", scim_endpoint(get=discovery.resource_types)),
    path("ResourceTypes/<name>", scim_endpoint(get=discovery.resource_type)),
    path("Users", collection_view(USERS)),
    path("Users/<resource_id>", resource_view(USERS)),
    path("Groups", collection_view(GROUPS)),
    path("Groups/<resource_id>", resource_view(GROUPS)),
    # Optional endpoints of RFC 7644 that we do not implement.
    path(".search", scim_endpoint(post=reject_unimplemented)),
    path("Bulk", scim_endpoint(post=reject_unimplemented)),
    path("Me", scim_endpoint(get=reject_unimplemented)),
    re_path("^", _UNKNOWN_PATH),  # every other path
]
