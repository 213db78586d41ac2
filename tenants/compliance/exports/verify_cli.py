"""The command `manage.py verify_export FILE --public-key KEYS`.

It needs Caret's code, but no running service. KEYS is a file with the output of
`manage.py show_signing_keys`.
"""

import argparse
from pathlib import Path
from typing import Any, Final

from caret.foundation.crypto.signing import PublicKeys
from tenants.base.signatures.verifier_cli import VerifierCli, open_file
from tenants.compliance.exports.evidence_pack_verification import verify_pack
from tenants.compliance.exports.verification import PROOF_SUFFIX, BrokenExport, verify_export

PACK: Final = "evidence_pack"  # as in definitions.definitions, which needs Django's settings
_NO_PROOF: Final = "There is no proof beside the ZIP, so only its content was verified.\n"


def main(argv: list[str]) -> int:
    return _CLI.run(argv)


def _verify(options: argparse.Namespace, keys: PublicKeys) -> str:
    """Verify the file and return the report.

    A ZIP without a proof beside it is verified as an evidence pack, by the signatures in it. Raises
    BrokenExport, UnreadableInput.
    """
    proof_path = _find_proof_path(options)
    has_proof = options.proof is not None or proof_path.exists()
    with open_file(options.file) as data:
        if options.file.suffix == ".zip" and not has_proof:
            return _report_pack(verify_pack(data, keys)) + _NO_PROOF
        with open_file(proof_path) as proof:
            document = verify_export(data, proof.read(), keys)
        if document["definition"] != PACK:
            return _report_export(document)
        return _report_export(document) + _report_pack(verify_pack(data, keys))


def _add_proof_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--proof", type=Path, metavar="PROOF", help=f"proof of FILE; default: FILE{PROOF_SUFFIX}"
    )


_CLI: Final = VerifierCli(
    command="verify_export",
    description="Verify that an exported file is complete and unchanged, or report what is"
    " wrong with it or with its proof.",
    broken_error=BrokenExport,
    verify=_verify,
    add_arguments=_add_proof_argument,
)


def _find_proof_path(options: argparse.Namespace) -> Path:
    file: Path = options.file
    return options.proof or file.with_name(file.name + PROOF_SUFFIX)


def _report_export(document: dict[str, Any]) -> str:
    since, until = document["since"], document["until"]
    period = "without a period" if since is None else f"from {since} to {until}"
    complete_until = document["complete_until"]
    completeness = (
        "not complete for any period yet"
        if complete_until is None
        else f"complete until {complete_until}"
    )
    return (
        f"OK: {document['definition']} version {document['version']}, {document['rows']} rows, of"
        f" the tenant {document['tenant']} ({document['tenant_id']}), {period}; {completeness}.\n"
        f"Created {document['generated_at']}, signed by the key {document['key_id']}.\n"
    )


def _report_pack(manifest: dict[str, Any]) -> str:
    return (
        f"OK: {len(manifest['files'])} files of the evidence pack of {manifest['tenant']}"
        f" ({manifest['tenant_id']}), from {manifest['since']} to {manifest['until']},"
        f" signed by the key {manifest['key_id']}.\n"
    )
