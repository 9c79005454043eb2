"""How do the three metrics reach CloudWatch, with its agent or with its API?

Only alarms are counted, there is no zero in between: an alarm on them treats missing data as not
breaching. Every node sends the same figures, so its statistic is the maximum.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from witness import wire
from witness.report.sinks.notice import Notice

NAMESPACE = "SilentWitness"
_LONGEST = 1024  # letters of a dimension's value
_DIMENSIONS = ("cluster", "namespace", "job")


class EmbeddedMetrics:
    """Writes one line in the Embedded Metric Format, to a file or standard output.

    The CloudWatch agent or Fluent Bit turns such lines of a log into metrics.
    """

    def __init__(self, file: Path | None = None, namespace: str = NAMESPACE) -> None:
        self._file, self._namespace = file, namespace

    def tell(self, notice: Notice) -> None:
        """Write the line."""
        line = wire.to_json(embedded(notice, self._namespace)) + "\n"
        if self._file is None:
            sys.stdout.write(line)
            sys.stdout.flush()
            return
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line)


def embedded(notice: Notice, namespace: str) -> dict[str, Any]:
    """Give the metrics in the Embedded Metric Format."""
    metrics = [{"Name": name, "Unit": "Count"} for name in notice.metrics]
    directive = {
        "Namespace": namespace,
        "Dimensions": [list(_DIMENSIONS), [_DIMENSIONS[0]]],
        "Metrics": metrics,
    }
    return {
        "_aws": {
            "Timestamp": int(notice.at.timestamp() * 1000),
            "CloudWatchMetrics": [directive],
        },
        **_dimensions(notice),
        "check": notice.check,
        "step": notice.step,
        "named": list(notice.named),
        **notice.metrics,
    }


class PutMetrics:
    """Calls PutMetricData through boto3, where the image has it.

    `client` makes the client; None: boto3's, with its own search for region and credentials.
    """

    def __init__(self, namespace: str = NAMESPACE, client: Callable[[], Any] | None = None) -> None:
        self._namespace, self._client = namespace, client or _boto_client

    def tell(self, notice: Notice) -> None:
        """Send the metrics under the dimensions of the job and under the cluster's alone."""
        dimensions = _dimensions(notice)
        both = [
            [{"Name": name, "Value": value} for name, value in dimensions.items()],
            [{"Name": _DIMENSIONS[0], "Value": dimensions[_DIMENSIONS[0]]}],
        ]
        data = [
            {
                "MetricName": name,
                "Dimensions": chosen,
                "Timestamp": notice.at,
                "Value": float(value),
                "Unit": "Count",
            }
            for name, value in notice.metrics.items()
            for chosen in both
        ]
        self._client().put_metric_data(Namespace=self._namespace, MetricData=data)


def _dimensions(notice: Notice) -> dict[str, str]:
    return {name: getattr(notice.envelope, name)[:_LONGEST] for name in _DIMENSIONS}


def _boto_client() -> Any:
    # By name: it is no dependency, it is used where the image brings it along.
    config = importlib.import_module("botocore.config").Config(
        connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 3}
    )
    return importlib.import_module("boto3").client("cloudwatch", config=config)
