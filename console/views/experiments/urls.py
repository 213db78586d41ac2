"""The URL of the page about experiments."""

from django.urls import URLPattern, path

from console.views.experiments.list import experiments

urlpatterns: list[URLPattern] = [
    path("experiments", experiments, name="experiments"),
]
