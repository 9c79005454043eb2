"""What is the log group of a HyperPod cluster called?

Its name holds the cluster's name and the 12 characters at the end of its ARN, which no setting of
ours knows: SageMaker tells them.
"""

from __future__ import annotations

import re
import time

from app.sources.aws_calls import DENIED, MISSING, Service
from app.sources.ports import Away, Refused

PREFIX = "/aws/sagemaker/Clusters"
TIMEOUT_S = 10.0
KEEP_S = 3600.0
"""A cluster that is deleted and made again has another id, and its old group may still be there."""

_ID = re.compile(r"arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:\d{12}:cluster/([a-z0-9]{12})")


class LogGroup:
    """The log group of one cluster, looked up once an hour and again while it cannot be."""

    def __init__(self, cluster: str, region: str, endpoint_url: str | None = None) -> None:
        self._cluster, self._region = cluster, region
        self._sagemaker = Service("sagemaker", "SageMaker", region, TIMEOUT_S, endpoint_url)
        self._found: str | None = None
        self._next = 0.0

    def name(self) -> str:
        """Give its name; raises `SourceError`. While SageMaker is away, what it told counts on."""
        if self._found is None or time.monotonic() >= self._next:
            try:
                self._found = self._look_up()
            except Away:
                if self._found is None:
                    raise
            self._next = time.monotonic() + KEEP_S
        return self._found

    def _look_up(self) -> str:
        asked = {"ClusterName": self._cluster}
        answer = self._sagemaker.call("describe_cluster", asked, self._known)
        found = _ID.fullmatch(str(answer.get("ClusterArn")))
        if found is None:
            raise Refused(f"SageMaker does not tell the id of the cluster {self._cluster}.")
        name = answer.get("ClusterName") or self._cluster
        return f"{PREFIX}/{name}/{found.group(1)}"

    def close(self) -> None:
        """Close connections."""
        self._sagemaker.close()

    def _known(self, code: str, message: str) -> str | None:
        if code in MISSING:
            return f"SageMaker has no cluster {self._cluster} in {self._region}: {message}"
        if code in DENIED:
            return f"SageMaker does not allow sagemaker:DescribeCluster: {message}"
        return None
