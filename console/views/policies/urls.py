"""Addresses of the policy's pages."""

from django.urls import URLPattern, path

from console.views.policies import layers, pages, questions, review

urlpatterns: list[URLPattern] = [
    path("policies", pages.in_force, name="policies"),
    path("policies/edit", pages.edit, name="policies-edit"),
    path("policies/review", review.review, name="policies-review"),
    path("policies/versions", pages.history, name="policies-history"),
    path("policies/versions/<int:version>", pages.version, name="policies-version"),
    path("policies/versions/<int:version>/undo", review.undo, name="policies-undo"),
    path("policies/layers", layers.layers, name="policies-layers"),
    path("policies/layers/new", layers.choose, name="policies-new-layer"),
    path("policies/layers/<kind>/<uuid:subject_id>", layers.layer, name="policies-layer"),
    path(
        "policies/layers/<kind>/<uuid:subject_id>/review",
        layers.review,
        name="policies-layer-review",
    ),
    path(
        "policies/layers/<kind>/<uuid:subject_id>/versions/<int:version>/undo",
        layers.undo,
        name="policies-undo-layer",
    ),
    path("policies/effective", questions.effective, name="policies-effective"),
    path("policies/explain", questions.explain, name="policies-explain"),
]
