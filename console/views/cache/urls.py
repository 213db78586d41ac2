"""URLs of the pages about the prefix cache."""

from django.urls import URLPattern, path

from console.views.cache.detail import cache, purge

urlpatterns: list[URLPattern] = [
    path("cache", cache, name="cache"),
    path("cache/purge", purge, name="cache-purge"),
]
