"""What can go wrong between us and a cluster, in sentences that can stand on a page as they are?

The exceptions of the Kubernetes client and of urllib3 end here: nothing outside `app.cluster`
ever sees one.
"""


class ClusterError(Exception):
    """Say in one plain sentence why a cluster gave no usable answer.

    `maybe_applied` tells whether what was sent may have been done all the same. `status` is the
    HTTP status, None where there was no answer; `retry_after` the pause asked for, in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        maybe_applied: bool = False,
    ) -> None:
        """Keep the sentence and what is known beside it."""
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after = retry_after
        self.maybe_applied = maybe_applied


class ClusterNotConfigured(ClusterError):
    """There is no usable cluster behind this name: nothing was asked."""


class ClusterUnreachable(ClusterError):
    """The connection failed, or broke before an answer came."""


class ClusterTimeout(ClusterError):
    """No answer came within the limit."""


class ClusterRefused(ClusterError):
    """The cluster answered, and its answer was no: nothing was changed."""


class ClusterConflict(ClusterRefused):
    """The object changed between our reading and our writing: read again, then decide again."""


class ClusterFailed(ClusterError):
    """The cluster answered with an error of its own, or with something that we cannot read."""


class NodeGone(ClusterError):
    """The cluster knows no node of this name: final, not to be tried again."""


class MachineGone(ClusterError):
    """The provider knows no machine of this id: final, not to be tried again."""
