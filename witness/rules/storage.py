"""Does a saved state lie on the machine itself, so that it is lost with it, or elsewhere?

Only the address is read. A path is what the job calls it: which file system stands behind it, no
path tells for certain, so a path that follows no known habit is "not known".
"""

from __future__ import annotations

import re
from typing import Literal

Place = Literal["local", "shared", "not known"]

SHARED_SCHEMES = frozenset(
    {
        "s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl",
        "oss", "cos", "obs", "swift", "hdfs", "viewfs", "webhdfs", "nfs", "efs", "fsx", "lustre",
        "gpfs", "ceph", "cephfs", "rados", "weka", "juicefs", "dbfs", "http", "https", "hf",
    }
)  # fmt: skip
"""Stores that outlive any one machine."""
MEMORY_SCHEMES = frozenset({"memory", "mem", "ram", "shm", "inmemory"})
SHARED_ROOTS = frozenset(
    {
        "fsx", "efs", "nfs", "lustre", "gpfs", "beegfs", "ceph", "cephfs", "weka", "wekafs",
        "vast", "shared", "juicefs", "filestore", "gcs", "gcsfuse", "s3", "dbfs",
    }
)  # fmt: skip
"""Names under which network file systems are mounted by habit: /fsx, /mnt/efs ..."""
LOCAL_ROOTS = (
    "/local", "/local_disk", "/localdisk", "/local-ssd", "/localssd", "/mnt/local",
    "/mnt/localdisk", "/mnt/nvme", "/nvme", "/mnt/ssd", "/ssd", "/mnt/disks", "/mnt/k8s-disks",
    "/mnt/instance", "/mnt/ephemeral", "/ephemeral", "/opt/dlami/nvme", "/opt/sagemaker",
    "/opt/nvme", "/raid", "/tmp", "/var", "/root", "/run", "/dev",  # noqa: S108 (nothing is written there)
)  # fmt: skip
"""Disks of the machine by habit; a number may follow, as in /mnt/nvme0 or /local_disk0."""
_MEMORY_ROOTS = ("/dev/shm", "/run/shm", "/mnt/ramdisk", "/ramdisk")  # noqa: S108
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(//)?", re.IGNORECASE)
_NUMBER = r"[-_]?\d*(n\d+)?(p\d+)?"
_MOUNTS = ("mnt", "mount", "mounts", "data", "home", "net", "network")


def place_of(address: str | None) -> Place:
    """Say where the state behind an address lies; None, no address, is not known.

    `file:` means the machine that wrote it, unless its path is a network mount by habit.
    """
    scheme, path = _split(address)
    if scheme in SHARED_SCHEMES:
        return "shared"
    if scheme in MEMORY_SCHEMES:
        return "local"
    if scheme not in ("", "file", "local"):
        return "not known"
    if _is_shared_mount(path):
        return "shared"
    if scheme or _is_under(path, LOCAL_ROOTS) or is_in_memory(address):
        return "local"
    return "not known"


def is_in_memory(address: str | None) -> bool:
    """Tell whether an address means memory, which even a restart loses."""
    scheme, path = _split(address)
    return scheme in MEMORY_SCHEMES or _is_under(path, _MEMORY_ROOTS)


def _split(address: str | None) -> tuple[str, str]:
    """Give scheme, in lower case and empty where there is none, and path with one slash a step."""
    text = (address or "").strip()
    found = _SCHEME.match(text)
    scheme = found.group(1).lower() if found else ""
    path = text[found.end() :] if found else text
    if scheme in ("file", "local") and found is not None and found.group(2):
        # file://host/path: what stands before the path's slash is a host, ours as a rule.
        path = path[path.find("/") :] if "/" in path else ""
    return scheme, re.sub(r"/+", "/", path)


def _is_shared_mount(path: str) -> bool:
    """Tell whether one of the first steps of a path is a network mount by habit."""
    steps = [one.lower() for one in path.split("/") if one]
    if not path.startswith("/") or not steps:
        return False
    named = steps[1:2] if steps[0] in _MOUNTS else steps[:1]
    return any(SHARED_ROOTS & {one, re.split(r"[-_.0-9]", one)[0]} for one in named)


def _is_under(path: str, roots: tuple[str, ...]) -> bool:
    lowered = path.lower()
    return any(re.match(rf"{re.escape(root)}{_NUMBER}(/|$)", lowered) for root in roots)
