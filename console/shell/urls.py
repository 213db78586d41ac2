"""Addresses of what belongs to every page, and to oneself."""

from django.urls import URLPattern, path

from console.views.account import go_on, preferences, sign_in_again
from console.views.search import search

urlpatterns: list[URLPattern] = [
    path("search", search, name="search"),
    path("account/preferences", preferences.preferences, name="preferences"),
    path("account/sign-in-again", sign_in_again.sign_in_again, name="sign-in-again"),
    path("account/go-on/<token>", go_on.go_on, name="go-on"),
]
