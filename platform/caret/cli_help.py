"""What `manage.py help` shows: the commands of an installation, by what they are for.

It reads no settings: who has just unpacked Caret asks for it before there is an installation.
"""

from typing import Final

_NAME_WIDTH: Final = 22

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Start here": {
        "up": "from nothing to a streamed completion, on this machine",
        "down": "ends what `up` has started",
        "complete": "one completion of a file, into the terminal",
        "demo_data": "a made-up past for the demonstration tenants",
        "capacity": "how many GPUs a load needs, and what they cost",
    },
    "Processes of an installation": {
        "gateway": "where editors connect",
        "console": "web pages and REST API",
        "relay": "for a region that has no control plane of its own",
        "probe": "types all day and measures, before customers do",
        "migrate": "brings the database up to date",
        "create_partitions": "makes the months to come in the usage tables",
    },
    "Tenants and operators": {
        "tenant": "suspends, activates or closes a tenant",
        "operator": "accounts of who runs the platform",
        "billing": "plans, prices, subscriptions, credits and invoices",
        "reconcile_stripe": "compares a month of the ledger with Stripe's",
        "demo_tenants": "makes the demonstration tenants; `up` does so",
    },
    "What happened": {
        "explain_request": "a completion's stages, and what made it slow",
        "roll_up": "counts hours and days anew from the records",
        "count_pool_days": "counts what the pools did, without waiting",
        "export_usage": "usage as a file, by request or by day",
        "export_audit": "the audit trail as signed lines",
        "export_training": "what may train models, by consent",
    },
    "Proofs, checked offline": {
        "signing_keys": "the public keys; keep them elsewhere",
        "verify_audit": "an audit trail that was exported",
        "verify_export": "an export, or a pack of evidence",
        "verify_bundle": "what was handed out about a person",
        "verify_certificate": "a certificate of deletion",
    },
    "Data and keys": {
        "backup": "all data into one file, its keys into another",
        "restore": "an installation from these two files",
        "destroy_again": "after a restore: what had been erased since",
        "rotate_keys": "wraps the keys of tenants and data anew",
        "data_subject_bundle": "all that is held about a person, signed",
        "shred_user": "erases a person in a tenant",
        "shred_tenant": "destroys a closed tenant's keys and data",
        "index_public_code": "the index by which public code is withheld",
    },
}


def overview() -> str:
    lines = ["", "Caret: python manage.py COMMAND", ""]
    for title, commands in GROUPS.items():
        lines += [title, *(f"  {name:<{_NAME_WIDTH}}{duty}" for name, duty in commands.items()), ""]
    lines += [
        "`manage.py COMMAND --help` says more; `help --commands` lists Django's, too.",
        "",
    ]
    return "\n".join(lines)
