"""URLs of the search, and of the pages for the user's own account."""

from django.urls import URLPattern, path

from console.views.account import password, preferences
from console.views.search import search
from console.views.sign_in.sign_in import resume, sign_in_again

urlpatterns: list[URLPattern] = [
    path("search", search, name="search"),
    path("account/preferences", preferences.preferences, name="preferences"),
    path("account/password", password.password, name="password"),
    path("account/reauthenticate", sign_in_again, name="sign-in-again"),
    path("account/resume/<token>", resume, name="resume"),
]
