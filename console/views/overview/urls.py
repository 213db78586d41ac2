"""URLs of the overview pages, Summary and Performance."""

from django.urls import URLPattern, path

from console.views.overview.performance import performance
from console.views.overview.summary import overview

urlpatterns: list[URLPattern] = [
    path("", overview, name="overview"),
    path("performance", performance, name="overview-performance"),
]
