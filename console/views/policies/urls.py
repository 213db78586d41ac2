"""URLs of the policy pages."""

from django.urls import URLPattern, path

from console.views.policies import detail, explain, versions
from console.views.policies.overrides import detail as override_detail
from console.views.policies.overrides import list as override_list
from console.views.policies.review import review

urlpatterns: list[URLPattern] = [
    path("policies", detail.show_policy, name="policies"),
    path("policies/edit", detail.edit, name="policies-edit"),
    path("policies/review", review.review, name="policies-review"),
    path("policies/versions", versions.show_history, name="policies-history"),
    path("policies/versions/<int:version>", versions.show_version, name="policies-version"),
    path("policies/versions/<int:version>/undo", review.undo, name="policies-undo"),
    path("policies/overrides", override_list.overrides, name="policies-overrides"),
    path("policies/overrides/new", override_list.choose_subject, name="policies-new-override"),
    path(
        "policies/overrides/<kind>/<uuid:subject_id>",
        override_detail.edit,
        name="policies-override",
    ),
    path(
        "policies/overrides/<kind>/<uuid:subject_id>/review",
        override_detail.review,
        name="policies-override-review",
    ),
    path(
        "policies/overrides/<kind>/<uuid:subject_id>/versions/<int:version>/undo",
        override_detail.undo,
        name="policies-undo-override",
    ),
    path("policies/effective", explain.show_effective_policy, name="policies-effective"),
    path("policies/explain", explain.explain_access, name="policies-explain"),
]
