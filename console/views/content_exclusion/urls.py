"""URLs of content exclusion."""

from django.urls import URLPattern, path

from console.views.content_exclusion import denials, detail

urlpatterns: list[URLPattern] = [
    path("content-exclusion", detail.exclusion, name="exclusion"),
    path("content-exclusion/denials", denials.denials, name="exclusion-denials"),
]
