"""URLs of the policy's pages."""

from django.urls import URLPattern, path

from console.views.policies import detail, explain
from console.views.policies.overrides import edit
from console.views.policies.review import review

urlpatterns: list[URLPattern] = [
    path("policies", detail.in_force, name="policies"),
    path("policies/edit", detail.edit, name="policies-edit"),
    path("policies/review", review.review, name="policies-review"),
    path("policies/versions", detail.history, name="policies-history"),
    path("policies/versions/<int:version>", detail.version, name="policies-version"),
    path("policies/versions/<int:version>/undo", review.undo, name="policies-undo"),
    path("policies/overrides", edit.layers, name="policies-layers"),
    path("policies/overrides/new", edit.choose, name="policies-new-layer"),
    path("policies/overrides/<kind>/<uuid:subject_id>", edit.layer, name="policies-layer"),
    path(
        "policies/overrides/<kind>/<uuid:subject_id>/review",
        edit.review,
        name="policies-layer-review",
    ),
    path(
        "policies/overrides/<kind>/<uuid:subject_id>/versions/<int:version>/undo",
        edit.undo,
        name="policies-undo-layer",
    ),
    path("policies/effective", explain.effective, name="policies-effective"),
    path("policies/explain", explain.explain, name="policies-explain"),
]
