"""What can go wrong between us and a cluster, in sentences that can stand on a page as they are?

The exceptions of the Kubernetes client and of urllib3 end here: nothing outside `app.cluster` ever sees one.
"""


class ClusterError(Exception):
    """Say in one plain sentence why a cluster gave no usable answer."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        """Keep the sentence, the HTTP status (None: there was no answer) and the pause asked for, in seconds."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after = retry_after


class ClusterNotConfigured(ClusterError):
    """There is no cluster behind this name: nothing was asked."""


class ClusterUnreachable(ClusterError):
    """The connection failed or broke: what was sent may or may not have been taken."""


class ClusterTimeout(ClusterError):
    """No answer came within the limit: what was sent may or may not have been taken."""


class ClusterRefused(ClusterError):
    """The cluster answered, and its answer was no: nothing was changed."""


class ClusterConflict(ClusterRefused):
    """The object changed between our reading and our writing: read again, then decide again."""


class ClusterFailed(ClusterError):
    """The cluster answered with an error of its own (5xx): what was sent may or may not have been taken."""


class NodeGone(ClusterError):
    """The cluster knows no node of this name: final, not to be tried again."""
