"""Messages that the next page shows once, with an undo button where undoing is possible."""

from django.contrib import messages
from django.http import HttpRequest


def toast(request: HttpRequest, text: str, *, undo_url: str = "") -> None:
    """Show `text` on the next page, with an undo button that posts to `undo_url`; "": no button.

    Django stores the URL with the message as its extra tags.
    """
    messages.success(request, text, extra_tags=undo_url)
