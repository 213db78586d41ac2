"""The command line parser, and the arguments of an operation."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from caret.client.api.export_command import add_export
from caret.client.api.openapi_operations import (
    IDEMPOTENCY_KEY,
    Operation,
    Parameter,
    ParameterLocation,
    ParameterType,
)

_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}
# Names in the parsed options, besides those of the fields (_build_option_name).
_BODY: Final = "body_file"
_OPERATION: Final = "operation"
EPILOG: Final = (
    "CARET_CONSOLE_URL is the console's URL, CARET_SERVICE_KEY a service key (cpk_svc_...). "
    "CARET_CONSOLE_URL_FILE and CARET_SERVICE_KEY_FILE may name files with these values."
)


def build_parser(operations: Sequence[Operation]) -> argparse.ArgumentParser:
    """Return a parser with a command for each operation, and with `export`."""
    parser = argparse.ArgumentParser(
        prog="caret", description="Administer Caret on the command line.", epilog=EPILOG
    )
    parser.add_argument("--json", action="store_true", help="print JSON even to a terminal")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the response to a file")
    groups = parser.add_subparsers(metavar="GROUP", required=True)
    for group in sorted({operation.group for operation in operations}):
        group_operations = [operation for operation in operations if operation.group == group]
        commands = groups.add_parser(
            group, help=", ".join(operation.command for operation in group_operations)
        )
        _add_commands(commands.add_subparsers(metavar="COMMAND", required=True), group_operations)
    add_export(groups)
    return parser


def _add_commands(commands: Any, operations: Sequence[Operation]) -> None:
    for operation in operations:
        command = commands.add_parser(
            operation.command, help=operation.summary, description=operation.summary
        )
        command.set_defaults(**{_OPERATION: operation})
        if operation.has_body:
            command.add_argument(
                "--body", dest=_BODY, metavar="FILE", help="the body as JSON; - for stdin"
            )
        if operation.is_paged:
            command.add_argument(
                "--all", action="store_true", help="fetch all pages, one after the other"
            )
        for field in operation.fields:
            if field.name != IDEMPOTENCY_KEY:
                _add_field(command, field)


def _add_field(command: argparse.ArgumentParser, field: Parameter) -> None:
    settings: dict[str, Any] = {
        "type": _PARSERS[field.value_type],
        # argparse would interpret a percent sign.
        "help": field.help.replace("%", "%%") or f"({field.value_type})",
        "choices": field.choices or None,
    }
    if field.location is ParameterLocation.PATH:
        command.add_argument(_build_option_name(field), metavar=field.name, **settings)
        return
    if field.value_type is ParameterType.LIST:
        settings |= {"action": "append", "help": f"{settings['help']} (may be repeated)"}
    metavar = None if field.choices else field.value_type.name
    # A required field of the body may be in the file of `--body`.
    is_required = field.is_required and field.location is not ParameterLocation.BODY
    command.add_argument(
        f"--{field.name.replace('_', '-').lower()}",
        dest=_build_option_name(field),
        metavar=metavar,
        required=is_required,
        **settings,
    )


def find_operation(options: argparse.Namespace) -> Operation:
    """Return the operation of the command. The command must not be `export`."""
    operation: Operation = vars(options)[_OPERATION]
    return operation


def collect_arguments(options: argparse.Namespace, location: ParameterLocation) -> dict[str, Any]:
    """Return the values that the user gave for the fields in one location, by name."""
    values = vars(options)
    return {
        field.name: values[_build_option_name(field)]
        for field in find_operation(options).fields
        if field.location is location and values.get(_build_option_name(field)) is not None
    }


def read_body(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the body: the file's fields and the options' fields, which have precedence.

    Return None if the operation has no body. Raises ValueError, OSError for an invalid or
    unreadable file.
    """
    if not find_operation(options).has_body:
        return None
    file = vars(options)[_BODY]
    body = {} if file is None else json.loads(_read_text(file))
    if not isinstance(body, dict):
        raise ValueError("the body must be a JSON object")
    return {**body, **collect_arguments(options, ParameterLocation.BODY)}


def _read_text(file: str) -> str:
    return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")


def _build_option_name(field: Parameter) -> str:
    """Return the field's unique name in the parsed options.

    Two locations may have fields of the same name.
    """
    return f"{field.location}:{field.name}"


def _parse_bool(text: str) -> bool:
    try:
        return _BOOLEANS[text.lower()]
    except KeyError as error:
        raise argparse.ArgumentTypeError("write true or false") from error


def _parse_json(text: str) -> Any:
    """Parse JSON: the text itself, or the content of the file that `@FILE` names."""
    try:
        return json.loads(_read_text(text[1:]) if text.startswith("@") else text)
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(f"invalid JSON ({error})") from error


_PARSERS: Final[dict[ParameterType, Callable[[str], Any]]] = {
    ParameterType.TEXT: str,
    ParameterType.INTEGER: int,
    ParameterType.NUMBER: float,
    ParameterType.BOOLEAN: _parse_bool,
    ParameterType.LIST: str,
    ParameterType.JSON: _parse_json,
}
