"""The URLs of the operators' pages, instead of those of Django's admin.

The app namespace is that of Django's admin, for its permission check. The instance namespace is our
own.
"""

from typing import Final

from django.urls import path

from console.operator_admin import (
    capacity,
    cost,
    draining,
    experiments,
    model_catalog,
    new_tenant,
    overview,
    pools,
    replicas,
    sign_in,
    slow_requests,
    tenant_detail,
    tenant_list,
)
from console.operator_admin.site import operator_site

operators: Final = (
    [
        path("", overview.overview, name="index"),
        path("pools", pools.pools, name="pools"),
        path("replicas/<path:replica>/drain", draining.drain, name="drain"),
        path("replicas/<path:replica>/undrain", draining.restore, name="return"),
        path("pools/<pool>/add", replicas.add, name="add"),
        path("pools/<pool>/replicas/<path:replica>/remove", replicas.remove, name="remove"),
        path("slow-requests", slow_requests.slow, name="slow"),
        path("models", model_catalog.models, name="models"),
        path("models/<what>", model_catalog.change, name="change_model"),
        path("experiments", experiments.experiments, name="experiments"),
        path("experiments/<what>", experiments.change, name="change_experiment"),
        path("capacity", capacity.capacity, name="capacity"),
        path("cost", cost.cost, name="cost"),
        path("tenants", tenant_list.directory, name="tenants"),
        path("tenants/new", new_tenant.new_tenant, name="new_tenant"),
        path("sign-in", sign_in.sign_in, name="login"),
        path("sign-out", sign_in.sign_out, name="logout"),
        path("tenants/<uuid:tenant_id>", tenant_detail.tenant, name="tenant"),
        path("tenants/<uuid:tenant_id>/reason", tenant_detail.give_reason, name="reason"),
        path("tenants/<uuid:tenant_id>/owners", tenant_detail.invite_owner, name="invite_owner"),
        path("tenants/<uuid:tenant_id>/edit/<what>", tenant_detail.change, name="change"),
    ],
    "admin",
    operator_site.name,
)
