"""What does the cluster's observability add-on say about where its metrics are?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.sources.ports import Away, Level, Refused
from app.sources.sigv4 import session

ADD_ON = "amazon-sagemaker-hyperpod-observability"
LEVELS: Mapping[str, Level] = {"BASIC": "basic", "ADVANCED": "advanced", "DISABLED": "disabled"}


@dataclass(frozen=True, slots=True)
class AddOn:
    """The add-on's own settings; None where it does not say."""

    url: str | None = None
    level: Level | None = None
    interval_s: float | None = None
    grafana: str | None = None


def describe(cluster: str, region: str, endpoint_url: str | None = None) -> AddOn:
    """Ask EKS for the add-on's settings; raises `Refused` or `Away`."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        client = session().create_client("eks", region_name=region, endpoint_url=endpoint_url)
        answer = client.describe_addon(clusterName=cluster, addonName=ADD_ON)
    except ClientError as error:
        said = error.response.get("Error", {})
        raise Refused(
            f"EKS does not tell of the add-on of {cluster}: {said.get('Code')}, "
            f"{said.get('Message')}."
        ) from None
    except BotoCoreError as error:
        raise Away(f"EKS cannot be asked: {error}.") from None
    return read(answer["addon"].get("configurationValues") or "")


def read(text: str) -> AddOn:
    """Read the add-on's settings, JSON or YAML; what is missing or odd there is None."""
    values = _parsed(text)
    metrics = _at(values, "metricsProvider", "acceleratedComputeMetrics")
    return AddOn(
        url=_text(_at(values, "ampWorkspace").get("prometheusEndpoint")),
        level=LEVELS.get(str(metrics.get("level", "")).upper()),
        interval_s=_positive(metrics.get("scrapeInterval")),
        grafana=_text(_at(values, "amgWorkspace").get("workspaceName")),
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _at(values: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    return float(value)
