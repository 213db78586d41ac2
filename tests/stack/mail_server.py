"""A mail server that we did not write: aiosmtpd, which accepts mail after STARTTLS only."""

import email
import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, Final

from aiosmtpd.controller import Controller

from caret.local.ports import LOOPBACK
from tests.fakes.certificate import certificate_for_loopback
from tests.stack.ports import free_port
from tests.stack.waiting import wait_until

_DELIVERED_S: Final = 30.0
_LINK: Final = re.compile(r"https?://\S+")


class MailServer:
    """Keeps all mail in memory."""

    def __init__(self, port: int, authority: Path) -> None:
        self.port = port
        self.authority = authority  # the certificate that clients must trust
        self._mails: list[tuple[str, EmailMessage]] = []  # with the recipient

    @property
    def url(self) -> str:
        return f"smtp://{LOOPBACK}:{self.port}"

    @property
    def recipients(self) -> list[str]:
        return [recipient for recipient, _ in self._mails]

    def wait_for_link(self, recipient: str) -> str:
        """Return the link of the newest mail to this address, after the first one has arrived.

        If the address already has a mail, this does not wait for another one.
        """
        wait_until(lambda: recipient in self.recipients, timeout_s=_DELIVERED_S)
        mail = next(mail for address, mail in reversed(self._mails) if address == recipient)
        match = _LINK.search(mail.get_content())
        assert match is not None, mail.get_content()
        return match[0]

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self._mails += [(recipient, mail) for recipient in envelope.rcpt_tos]
        return "250 OK"


@contextmanager
def mail_server(folder: Path) -> Iterator[MailServer]:
    """Run the server in its own thread. `folder` gets its certificate."""
    context, authority = certificate_for_loopback(folder)
    server = MailServer(free_port(), authority)
    controller = Controller(
        server, hostname=LOOPBACK, port=server.port, tls_context=context, require_starttls=True
    )
    controller.start()
    try:
        yield server
    finally:
        controller.stop()
