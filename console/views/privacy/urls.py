"""Addresses of privacy."""

from django.urls import URLPattern, path

from console.views.privacy import allowance, pages, people

urlpatterns: list[URLPattern] = [
    path("privacy", pages.overview, name="privacy"),
    path("privacy/allowance", allowance.allowance, name="privacy-allowance"),
    path("privacy/members", pages.members, name="privacy-members"),
    path("privacy/receipts", pages.receipts, name="privacy-receipts"),
    path("privacy/withdrawals", pages.withdrawals, name="privacy-withdrawals"),
    path("privacy/erasures", pages.erasures, name="privacy-erasures"),
    path("privacy/people", people.people, name="privacy-people"),
    path("privacy/people/<uuid:user_id>", people.person, name="privacy-person"),
    path("privacy/people/<uuid:user_id>/bundle", people.bundle, name="privacy-bundle"),
    path("privacy/people/<uuid:user_id>/erase", people.erase, name="privacy-erase"),
]
