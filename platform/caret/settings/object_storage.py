"""Converts operators' object storage settings into Django's STORAGES entries."""

from pathlib import Path
from typing import Any

from caret.foundation.environment import BadSetting


def storage_from(setting: str, text: str) -> dict[str, Any]:
    """Return the STORAGES entry for an absolute path or `s3://BUCKET/PREFIX`.

    boto3 reads region, credentials and the endpoint of another provider from its own variables
    (AWS_REGION, AWS_ENDPOINT_URL_S3 ...). Raises BadSetting.
    """
    if not text.startswith("s3://"):
        return _folder(setting, text)
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    if not bucket:
        raise BadSetting(f"{setting} names no bucket; write s3://BUCKET/PREFIX.")
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {"bucket_name": bucket, "location": prefix.strip("/"), "default_acl": None},
    }


def _folder(setting: str, text: str) -> dict[str, Any]:
    if not Path(text).is_absolute():
        raise BadSetting(
            f"{setting} is {text!r}; write the absolute path of a folder or s3://BUCKET/PREFIX."
        )
    return {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": text,
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }
