"""The experiments' address."""

from django.urls import URLPattern, path

from console.views.experiments.page import experiments

urlpatterns: list[URLPattern] = [
    path("experiments", experiments, name="experiments"),
]
