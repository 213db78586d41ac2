"""URLs of the retention pages."""

from django.urls import URLPattern, path

from console.views.retention import certificates, legal_holds
from console.views.retention import list as list_page

urlpatterns: list[URLPattern] = [
    path("retention", list_page.list_data_classes, name="retention"),
    path("retention/classes/<data_class>", list_page.edit, name="retention-class"),
    path(
        "retention/classes/<data_class>/versions/<int:version>/undo",
        list_page.undo,
        name="retention-undo",
    ),
    path("retention/holds", legal_holds.holds, name="retention-holds"),
    path("retention/holds/new", legal_holds.create_hold, name="retention-new-hold"),
    path(
        "retention/holds/<uuid:hold_id>/release", legal_holds.release, name="retention-release-hold"
    ),
    path("retention/purges", certificates.list_purges, name="retention-runs"),
    path("retention/certificates", certificates.certificates, name="retention-certificates"),
    path(
        "retention/certificates/<uuid:certificate_id>",
        certificates.show_certificate,
        name="retention-certificate",
    ),
    path(
        "retention/certificates/<uuid:certificate_id>/file",
        certificates.download_certificate,
        name="retention-certificate-file",
    ),
    path("retention/verify", certificates.verify_file, name="retention-verify"),
]
