"""URLs of the help."""

from django.urls import URLPattern, path

from console.views.help import detail

urlpatterns: list[URLPattern] = [
    path("help", detail.contents, name="help"),
    path("help/rest-api", detail.rest_api, name="help-api"),
    path("help/<slug:name>", detail.document, name="help-document"),
]
