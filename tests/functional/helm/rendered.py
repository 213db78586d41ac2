"""The Helm chart, rendered by Helm's own engine without a cluster."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import helm_python
import yaml

from caret.local.paths import REPOSITORY

CHART = REPOSITORY / "platform" / "deploy" / "helm" / "caret"
# The values files of each size. The values in a later file replace those in an earlier one.
SIZES = {
    "small": ("values-small.yaml",),
    "1,000 developers": ("values-small.yaml", "values-1000-developers.yaml"),
    "a million developers": ("values-small.yaml", "values-1m-developers.yaml"),
}
# Kinds of documents that extensions define; Kubernetes itself has no schemas for them.
FOREIGN = {"ScaledObject", "PodMonitor", "ExternalSecret"}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The Kubernetes documents that Helm makes from the chart and certain values."""

    documents: tuple[Document, ...]

    def of_kind(self, *kinds: str) -> dict[str, Document]:
        """Return the documents of these kinds by name."""
        return {
            document["metadata"]["name"]: document
            for document in self.documents
            if document["kind"] in kinds
        }

    def pods(self) -> Iterator[tuple[str, Document]]:
        """Yield each workload's name and its pod template."""
        for document in self.documents:
            spec = document.get("spec", {})
            # A CronJob has its pod template inside its job template.
            spec = spec.get("jobTemplate", {}).get("spec", spec)
            if "template" in spec:
                yield document["metadata"]["name"], spec["template"]

    def container(self, name: str) -> Document:
        """Return the only container of the workload with this name."""
        (template,) = [template for pod_name, template in self.pods() if pod_name == name]
        (container,) = template["spec"]["containers"]
        document: Document = container
        return document


def render(size: str = "small", changes: Mapping[str, Any] | None = None) -> Rendered:
    """Render the chart with the values of a size, and with `changes` to them.

    Raises helm_python.HelmError.
    """
    values: Document = {}
    for name in SIZES[size]:
        values = merge_values(values, yaml.safe_load((CHART / name).read_text()))
    values = merge_values(values, changes or {})
    texts = helm_python.Chart.load(str(CHART)).render(values, name="caret", namespace="caret")
    documents = (
        document
        for name, text in texts.items()
        if name.endswith(".yaml")
        for document in yaml.safe_load_all(text)
    )
    return Rendered(tuple(document for document in documents if document))


def merge_values(below: Mapping[str, Any], above: Mapping[str, Any]) -> Document:
    """Merge two files of values as Helm does: values of `above` replace those of `below`."""
    merged_values = dict(below)
    for name, value in above.items():
        value_below = merged_values.get(name)
        if isinstance(value_below, Mapping) and isinstance(value, Mapping):
            merged_values[name] = merge_values(value_below, value)
        else:
            merged_values[name] = value
    return merged_values
