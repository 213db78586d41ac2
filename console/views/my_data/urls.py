"""URLs of the user's own data."""

from django.urls import URLPattern, path

from console.views.my_data import detail

urlpatterns: list[URLPattern] = [
    path("account/my-data", detail.own, name="own"),
    path("account/my-data/bundle", detail.bundle, name="own-bundle"),
    path("account/my-data/consent/<kind>", detail.agree, name="own-agree"),
    path("account/my-data/consent/<kind>/withdraw", detail.withdraw, name="own-withdraw"),
]
