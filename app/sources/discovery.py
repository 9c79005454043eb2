"""What does the cluster's observability add-on say about where its metrics are?

Its settings are a text that whoever may change the add-on wrote: they are read with bounds on size
and depth, and nothing in them is trusted.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.sources.ports import Away, Level, Refused
from app.sources.sigv4 import session
from app.sources.texts import one_line

ADD_ON = "amazon-sagemaker-hyperpod-observability"
LEVELS: Mapping[str, Level] = {"BASIC": "basic", "ADVANCED": "advanced", "DISABLED": "disabled"}
SIZE_LIMIT = 64 << 10
"""Characters of the settings that are read; EKS itself takes fewer."""
DEPTH_LIMIT = 24
LONGEST_INTERVAL_S = 3600.0
CONNECT_S, READ_S = 5, 10
PASSES = frozenset({"ServerException", "ServiceUnavailableException", "ExpiredTokenException"})
"""What EKS says of itself or of credentials that botocore will have refreshed by the next time."""

_making = threading.Lock()  # a botocore session does not make clients in two threads at once


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
        answer = _client(region, endpoint_url).describe_addon(clusterName=cluster, addonName=ADD_ON)
    except ClientError as error:
        raise _said_no(cluster, error.response) from None
    except BotoCoreError as error:
        raise Away(f"EKS cannot be asked: {one_line(str(error))}.") from None
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        # An address that is none, or an answer of a form that botocore does not expect.
        kind = type(error).__name__
        raise Refused(f"EKS cannot be asked or understood: {kind}.") from None
    found = answer.get("addon")
    if not isinstance(found, Mapping):
        raise Refused(f"EKS does not describe the add-on of {cluster}.")
    return read(found.get("configurationValues") or "")


def _client(region: str, endpoint_url: str | None) -> Any:
    from botocore.config import Config

    # Whoever waits here is a thread that pulls telemetry.
    patience = Config(
        connect_timeout=CONNECT_S,
        read_timeout=READ_S,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    with _making:
        return session().create_client(
            "eks", region_name=region, endpoint_url=endpoint_url, config=patience
        )


def _said_no(cluster: str, response: Mapping[str, Any]) -> Refused | Away:
    said = response.get("Error", {})
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    code, message = str(said.get("Code")), one_line(str(said.get("Message")))
    text = f"EKS does not tell of the add-on of {cluster}: {one_line(code)}, {message}."
    passes = status >= 500 or status == 429 or "Throttl" in code or code in PASSES
    return Away(text) if passes else Refused(text)


def read(text: str) -> AddOn:
    """Read the add-on's settings, JSON or YAML.

    What is missing or odd is None. Raises `Refused` for a text that is too large or too deep, that
    refers to itself, or that holds no settings at all.
    """
    if len(text) > SIZE_LIMIT:
        raise Refused(f"The add-on's settings are longer than {SIZE_LIMIT >> 10} KiB.")
    values = _parsed(text) if text.strip() else {}
    if not isinstance(values, Mapping):
        raise Refused("The add-on's settings are no object.")
    metrics = _at(values, "metricsProvider", "acceleratedComputeMetrics")
    return AddOn(
        url=_text(_at(values, "ampWorkspace").get("prometheusEndpoint")),
        level=LEVELS.get(str(metrics.get("level", ""))[:20].upper()),
        interval_s=_interval(metrics.get("scrapeInterval")),
        grafana=_text(_at(values, "amgWorkspace").get("workspaceName")),
    )


def _parsed(text: str) -> Any:
    if _too_deep(text):
        raise Refused(f"The add-on's settings are nested deeper than {DEPTH_LIMIT}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    import yaml

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_LIMIT:
                raise Refused(f"The add-on's settings are nested deeper than {DEPTH_LIMIT}.")
            if isinstance(event, yaml.AliasEvent):
                raise Refused("The add-on's settings refer to themselves (a YAML alias).")
        # Every scalar stays a text: no number, time or tag of YAML is made into anything.
        return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 makes texts, lists, mappings
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        kind = type(error).__name__
        raise Refused(f"The add-on's settings are neither JSON nor YAML: {kind}.") from None


def _too_deep(text: str) -> bool:
    """Tell whether brackets alone go too deep, without parsing; those in texts count as well."""
    depth = 0
    for bracket in re.findall(r"[\[{]|[\]}]", text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH_LIMIT:
            return True
    return False


def _at(values: Any, *keys: str) -> Mapping[str, Any]:
    for key in keys:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values if isinstance(values, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _interval(value: Any) -> float | None:
    """Read seconds, as a number or as text such as `30` or `30s`; None outside of any sense."""
    if isinstance(value, str):
        number = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)s?", value.strip(), re.ASCII)
        value = float(number[1]) if number else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value <= LONGEST_INTERVAL_S else None
