"""The addresses of the operators' pages, in place of all that Django's admin would have: its app
namespace, for its gate, and our own instance's."""

from typing import Final

from django.urls import path

from console.operators import (
    add,
    capacity,
    cost,
    directory,
    drain,
    overview,
    pools,
    sign_in,
    slow,
    tenant,
)
from console.operators.site import operator_site

operators: Final = (
    [
        path("", overview.overview, name="index"),
        path("pools", pools.pools, name="pools"),
        path("replicas/<path:replica>/drain", drain.drain, name="drain"),
        path("replicas/<path:replica>/return", drain.bring_back, name="return"),
        path("pools/<pool>/add", add.add, name="add"),
        path("pools/<pool>/replicas/<path:replica>/remove", add.remove, name="remove"),
        path("slow", slow.slow, name="slow"),
        path("capacity", capacity.capacity, name="capacity"),
        path("cost", cost.cost, name="cost"),
        path("tenants", directory.directory, name="tenants"),
        path("sign-in", sign_in.sign_in, name="login"),
        path("sign-out", sign_in.sign_out, name="logout"),
        path("tenants/<uuid:tenant_id>", tenant.tenant, name="tenant"),
        path("tenants/<uuid:tenant_id>/reason", tenant.give_reason, name="reason"),
        path("tenants/<uuid:tenant_id>/change/<what>", tenant.change, name="change"),
    ],
    "admin",
    operator_site.name,
)
