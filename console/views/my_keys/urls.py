"""URLs of the user's own API keys.

The page of one key and its revocation have the URLs in `console.views.keys.urls`.
"""

from django.urls import URLPattern, path

from console.views.my_keys import list as list_page

urlpatterns: list[URLPattern] = [
    path("account/keys", list_page.my_keys, name="my-keys"),
    path("account/keys/new", list_page.new_key, name="my-keys-new"),
]
