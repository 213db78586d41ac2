"""Addresses of the pages about oneself."""

from django.urls import URLPattern, path

from console.views.own import pages

urlpatterns: list[URLPattern] = [
    path("account/data", pages.own, name="own"),
    path("account/data/bundle", pages.bundle, name="own-bundle"),
    path("account/data/consent/<kind>", pages.agree, name="own-agree"),
    path("account/data/consent/<kind>/withdraw", pages.withdraw, name="own-withdraw"),
]
