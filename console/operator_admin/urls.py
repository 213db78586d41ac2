"""The URLs of the operators' pages, which replace Django's own admin pages.

The app namespace must be `admin`: the permission check of Django's admin site redirects to
`admin:login`. The instance namespace is the name of our own site.
"""

from typing import Final

from django.urls import path

from console.operator_admin import (
    capacity,
    cost,
    experiments,
    model_catalog,
    overview,
    public_code,
    sign_in,
    slow_requests,
)
from console.operator_admin.evaluations import list as evaluation_list
from console.operator_admin.pools import added_replicas, draining
from console.operator_admin.pools import list as pool_list
from console.operator_admin.site import operator_site
from console.operator_admin.tenants import detail as tenant_detail
from console.operator_admin.tenants import list as tenant_list

operators: Final = (
    [
        path("", overview.overview, name="index"),
        path("find", overview.search, name="search"),
        path("preferences", overview.set_preferences, name="preferences"),
        path("pools", pool_list.pools, name="pools"),
        # A replica's name may contain slashes.
        path("replicas/<path:replica>/drain", draining.drain, name="drain"),
        path("replicas/<path:replica>/undrain", draining.undrain, name="undrain"),
        path("pools/<pool>/add", added_replicas.add, name="add"),
        path("pools/<pool>/replicas/<path:replica>/remove", added_replicas.remove, name="remove"),
        path("models", model_catalog.models, name="models"),
        path("models/<action>", model_catalog.change, name="change_model"),
        path("experiments", experiments.experiments, name="experiments"),
        path("experiments/<action>", experiments.change, name="change_experiment"),
        path("evaluations", evaluation_list.evaluations, name="evaluations"),
        path("evaluations/<uuid:evaluation_id>", evaluation_list.evaluation, name="evaluation"),
        path("public-code", public_code.public_code, name="public_code"),
        path("public-code/<action>", public_code.change, name="change_public_code"),
        path("slow-requests", slow_requests.slow, name="slow_requests"),
        path("capacity", capacity.capacity, name="capacity"),
        path("cost", cost.cost, name="cost"),
        path("tenants", tenant_list.tenants, name="tenants"),
        path("tenants/new", tenant_list.new_tenant, name="new_tenant"),
        path("sign-in", sign_in.sign_in, name="login"),
        path("sign-out", sign_in.sign_out, name="logout"),
        path("tenants/<uuid:tenant_id>", tenant_detail.tenant, name="tenant"),
        path("tenants/<uuid:tenant_id>/reason", tenant_detail.give_reason, name="reason"),
        path("tenants/<uuid:tenant_id>/certificate", tenant_detail.certificate, name="certificate"),
        path("tenants/<uuid:tenant_id>/owners", tenant_detail.invite_owner, name="invite_owner"),
        path("tenants/<uuid:tenant_id>/edit/<form_name>", tenant_detail.change, name="change"),
    ],
    "admin",  # app namespace
    operator_site.name,  # instance namespace
)
