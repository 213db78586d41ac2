"""Explain a request's latency to an operator.

manage.py explain_request REQUEST_ID [--tenant SLUG] [--reason REASON] [--json]
"""

import argparse
import json
import uuid
from dataclasses import asdict
from typing import Any

import msgspec
from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import InvalidValue, NotFound
from tenants.base.validation.text import parse_reason
from tenants.usage.requests.latency_explanation import explain_latency
from tenants.usage.requests.lookup import find_request_as_operator
from tenants.usage.requests.waterfall import format_waterfall


class Command(NoSystemChecksCommand):
    help = "Show the time of each stage of a completion, and why it ended."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("request_id", type=_parse_request_id, metavar="REQUEST_ID")
        parser.add_argument("--tenant", metavar="SLUG", help="search this tenant only")
        parser.add_argument(
            "--reason", default="", help="reason for the tenant's audit log; may be left out"
        )
        parser.add_argument("--json", action="store_true", help="print one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            slug, record = find_request_as_operator(
                request_id=options["request_id"],
                now=timezone.now(),
                slug=options["tenant"],
                reason=parse_reason(options["reason"]),
            )
        except (NotFound, InvalidValue) as error:
            raise CommandError(error.message) from error
        explanation = explain_latency(record)
        if options["json"]:
            document = {
                "tenant": slug,
                "request": msgspec.to_builtins(record),
                "explanation": asdict(explanation),
            }
            self.stdout.write(json.dumps(document))
            return
        self.stdout.write("\n".join(format_waterfall(record, explanation, slug=slug)))


def _parse_request_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError("a request ID has 32 hexadecimal digits") from None
