"""URLs of the page "Your data" and its actions."""

from django.urls import URLPattern, path

from console.views.my_data import detail

urlpatterns: list[URLPattern] = [
    path("account/my-data", detail.show_own_data, name="own"),
    path("account/my-data/bundle", detail.download_own_bundle, name="own-bundle"),
    path("account/my-data/consent/<kind>", detail.agree, name="own-agree"),
    path("account/my-data/consent/<kind>/withdraw", detail.withdraw, name="own-withdraw"),
]
