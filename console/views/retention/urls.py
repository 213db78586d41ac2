"""Addresses of retention."""

from django.urls import URLPattern, path

from console.views.retention import classes, evidence, holds

urlpatterns: list[URLPattern] = [
    path("retention", classes.classes, name="retention"),
    path("retention/classes/<data_class>", classes.edit, name="retention-class"),
    path(
        "retention/classes/<data_class>/versions/<int:version>/undo",
        classes.undo,
        name="retention-undo",
    ),
    path("retention/holds", holds.holds, name="retention-holds"),
    path("retention/holds/new", holds.place, name="retention-new-hold"),
    path("retention/holds/<uuid:hold_id>/release", holds.release, name="retention-release-hold"),
    path("retention/runs", evidence.runs, name="retention-runs"),
    path("retention/certificates", evidence.certificates, name="retention-certificates"),
    path(
        "retention/certificates/<uuid:certificate_id>",
        evidence.certificate,
        name="retention-certificate",
    ),
    path(
        "retention/certificates/<uuid:certificate_id>/file",
        evidence.certificate_file,
        name="retention-certificate-file",
    ),
    path("retention/verify", evidence.verify, name="retention-verify"),
]
