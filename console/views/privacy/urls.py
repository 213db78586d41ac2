"""URLs of the privacy pages."""

from django.urls import URLPattern, path

from console.views.privacy import data_subjects, small_groups, tenant_consent
from console.views.privacy import list as list_page

urlpatterns: list[URLPattern] = [
    path("privacy", list_page.overview, name="privacy"),
    path(
        "privacy/content-capture",
        tenant_consent.edit_content_capture,
        name="privacy-content-capture",
    ),
    path("privacy/small-groups", small_groups.edit_min_users, name="privacy-small-groups"),
    path("privacy/members", list_page.members, name="privacy-members"),
    path("privacy/receipts", list_page.receipts, name="privacy-receipts"),
    path("privacy/withdrawals", list_page.withdrawals, name="privacy-withdrawals"),
    path("privacy/erasures", list_page.erasures, name="privacy-erasures"),
    path("privacy/data-subjects", data_subjects.search_person, name="privacy-people"),
    path("privacy/data-subjects/<uuid:user_id>", data_subjects.show_person, name="privacy-person"),
    path(
        "privacy/data-subjects/<uuid:user_id>/bundle",
        data_subjects.export_person,
        name="privacy-bundle",
    ),
    path("privacy/data-subjects/<uuid:user_id>/erase", data_subjects.erase, name="privacy-erase"),
]
