"""Addresses of the exports' pages."""

from django.urls import URLPattern, path

from console.views.exports import builds, export, new, verify

urlpatterns: list[URLPattern] = [
    path("exports", builds.builds, name="exports"),
    path("exports/new", new.new, name="exports-new"),
    path("exports/verify", verify.verify, name="exports-verify"),
    path("exports/<uuid:export_id>", export.export, name="exports-export"),
    path("exports/<uuid:export_id>/proof", export.proof, name="exports-proof"),
    path("exports/<uuid:export_id>/fetch", export.fetch, name="exports-fetch"),
    path("exports/<uuid:export_id>/cancel", export.cancel, name="exports-cancel"),
]
