"""The overview of commands for `manage.py help`, and the help of commands without arguments.

This module reads no settings, because the help must also work before an installation exists.
"""

from typing import Final

_NAME_WIDTH: Final = 24

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Start here": {
        "up": "start all of Caret on this machine",
        "down": "stop everything that `up` started",
        "complete": "print one completion of a file",
        "seed_demo_data": "fill the demonstration tenants with past usage",
        "capacity": "estimate the GPUs a load needs, and their cost",
    },
    "Processes of an installation": {
        "gateway": "serve completions to editors",
        "console": "serve web pages and the REST API",
        "relay": "connect another region to the home region",
        "probe": "request completions and measure them",
        "migrate": "update the database schema",
        "create_partitions": "create the usage tables of the next months",
    },
    "Tenants and operators": {
        "tenant": "create, list, rename, suspend or close tenants",
        "reset_password": "mail a user a link to set a new password",
        "reset_second_factors": "remove second factors that cannot be decrypted",
        "manage_operator": "manage the operators' accounts",
        "model_catalog": "publish models, which tenants choose from",
        "operator_key": "manage the keys for the platform API",
        "billing": "manage plans, prices, subscriptions, invoices",
        "reconcile_stripe": "compare a month of the ledger with Stripe",
        "create_demo_tenants": "create the demonstration tenants, as `up` does",
    },
    "Reports and diagnosis": {
        "evaluate": "score a pool's completions of your own code",
        "store_evaluation": "keep a report of `evaluate` for the operators' pages",
        "explain_request": "show where a completion spent its time",
        "rebuild_rollups": "aggregate usage again from its records",
        "recount_pool_usage": "count usage by pool and day now",
        "export_usage": "export usage, by request or by day",
        "export_audit_log": "export the audit log as signed lines",
        "export_training_data": "export content that users consented to train on",
    },
    "Verification without a network": {
        "show_signing_keys": "print the public keys; keep a copy elsewhere",
        "verify_audit": "verify an exported audit log",
        "verify_export": "verify an export or an evidence pack",
        "verify_bundle": "verify an export of personal data",
        "verify_certificate": "verify a deletion certificate",
    },
    "Data and keys": {
        "backup": "write all data to a file, its keys to another",
        "restore": "restore an installation from the files of `backup`",
        "replay_erasures": "repeat erasures that a restored backup undid",
        "rotate_encryption_keys": "wrap tenant and data keys with new keys",
        "export_data_subject": "export a person's data, signed",
        "erase_user": "erase a person in a tenant",
        "erase_tenant": "destroy a closed tenant's keys and data",
        "index_public_code": "index public code, to withhold copies of it",
    },
}


def render_overview() -> str:
    lines = ["", "Caret: python manage.py COMMAND", ""]
    for title, commands in GROUPS.items():
        lines += [title, *(f"  {name:<{_NAME_WIDTH}}{duty}" for name, duty in commands.items()), ""]
    lines += [
        "`COMMAND --help` explains a command. `help --commands` also lists Django's.",
        "",
    ]
    return "\n".join(lines)


def render_usage(command: str) -> str:
    """Return the help of a command without arguments."""
    (duty,) = (commands[command] for commands in GROUPS.values() if command in commands)
    return (
        f"usage: manage.py {command}\n\n{duty}\n\n"
        "It has no arguments. Its settings are environment variables: platform/docs/settings.md.\n"
    )
