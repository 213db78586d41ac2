"""`manage.py show_signing_keys`: print the public keys of this installation's signatures."""

from typing import Any

from caret.foundation.crypto.signing import write_public_keys
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.signatures.signing_keys import load_signing_keys


class Command(NoSystemChecksCommand):
    help = "Print the installation's public keys as JSON. Store them outside the installation."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(write_public_keys(load_signing_keys().public_keys()), ending="")
