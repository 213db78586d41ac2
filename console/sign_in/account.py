"""What django-allauth asks of us about accounts."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest

from console.member import client_address


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False  # people are invited, or come by their identity provider

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def add_message(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        """Ours are on the pages themselves."""

    def send_notification_mail(self, *args: Any, **kwargs: Any) -> None:
        """None: an installation may have no mail server."""
