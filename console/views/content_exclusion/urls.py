"""URLs of content exclusion."""

from django.urls import URLPattern, path

from console.views.content_exclusion import denials, edit

urlpatterns: list[URLPattern] = [
    path("content-exclusion", edit.exclusion, name="exclusion"),
    path("content-exclusion/denials", denials.denials, name="exclusion-denials"),
]
