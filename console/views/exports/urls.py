"""URLs of the exports' pages."""

from django.urls import URLPattern, path

from console.views.exports import detail, verify
from console.views.exports import list as list_page

urlpatterns: list[URLPattern] = [
    path("exports", list_page.exports, name="exports"),
    path("exports/new", list_page.new, name="exports-new"),
    path("exports/verify", verify.verify, name="exports-verify"),
    path("exports/<uuid:export_id>", detail.export, name="exports-export"),
    path("exports/<uuid:export_id>/proof", detail.proof, name="exports-proof"),
    path("exports/<uuid:export_id>/fetch", detail.fetch, name="exports-fetch"),
    path("exports/<uuid:export_id>/cancel", detail.cancel, name="exports-cancel"),
]
