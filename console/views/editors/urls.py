"""URLs of the page of editors and its downloads."""

from django.urls import URLPattern, path

from console.views.editors import detail

urlpatterns: list[URLPattern] = [
    path("editors", detail.editors, name="editors"),
    path("downloads/<name>", detail.download, name="editors-download"),
]
