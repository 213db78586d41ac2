"""The settings of object stores, which operators write as a path or as an S3 URL."""

import pytest

from caret.foundation.environment import BadSetting
from caret.settings.service_urls import storage_from

SETTING = "CARET_CONTENT_STORAGE"


def test_a_path_selects_storage_in_that_folder() -> None:
    assert storage_from(SETTING, "/data")["OPTIONS"]["location"] == "/data"


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [("s3://b", "b", ""), ("s3://b/", "b", ""), ("s3://b/of/caret/", "b", "of/caret")],
)
def test_a_bucket_may_have_a_prefix(text: str, bucket: str, prefix: str) -> None:
    options = storage_from(SETTING, text)["OPTIONS"]

    assert (options["bucket_name"], options["location"]) == (bucket, prefix)


@pytest.mark.parametrize("text", ["", "data", "s3://", "s3:///prefix", "gs://b"])
def test_the_error_for_an_unknown_storage_names_the_setting(text: str) -> None:
    with pytest.raises(BadSetting, match=SETTING):
        storage_from(SETTING, text)
