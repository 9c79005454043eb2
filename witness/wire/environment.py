"""What does the environment of a rank say about which job this is?

For each value the first that is set counts, in the order of `docs/reporter.md`. `WITNESS_*` is what
a person wrote for this purpose, so it always wins.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from witness.wire.envelope import Envelope

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HYPERPOD_CONFIG = Path("/opt/ml/config/resource_config.json")

# A rendezvous id of this form is new at each submission, so it tells starts apart and names no job.
_THROWAWAY = re.compile(r"\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
# HyperPodPyTorchJob names its pods <job>-pod-<n>, PyTorchJob <job>-master-0 and <job>-worker-<n>.
_POD = re.compile(r"(?P<job>.+)-(?:pod|master|worker|launcher)-\d+")


def envelope_from_environment(
    environ: Mapping[str, str] | None = None,
    *,
    service_account: Path = SERVICE_ACCOUNT,
    hyperpod_config: Path = HYPERPOD_CONFIG,
) -> Envelope:
    """Read the envelope of this start; never raises, unknown names become "default"/"unnamed".

    Reads nothing that differs between the ranks of a start, except that launchers which restart
    nodes one by one may count differently on each: see `Reporter.adopt`.
    """
    given = os.environ if environ is None else environ
    return Envelope(
        cluster=_first(given, "WITNESS_CLUSTER", "CLUSTER_NAME")
        or _hyperpod_cluster(hyperpod_config)
        or _first(given, "SLURM_CLUSTER_NAME")
        or "default",
        namespace=_first(given, "WITNESS_NAMESPACE", "POD_NAMESPACE")
        or _text_of(service_account / "namespace")
        or _first(given, "SLURM_JOB_ACCOUNT")
        or "default",
        job=_job(given),
        attempt=_attempt(given),
        attempt_uid=_attempt_uid(given),
        code_digest=_first(given, "WITNESS_CODE_DIGEST"),
        image_digest=_first(given, "WITNESS_IMAGE_DIGEST"),
        labels=_labels(given.get("WITNESS_LABELS", "")),
    )


def _first(given: Mapping[str, str], *names: str) -> str | None:
    for name in names:
        value = given.get(name, "").strip()
        if value:
            return value
    return None


def _job(given: Mapping[str, str]) -> str:
    run_id = _run_id(given)
    if run_id and _THROWAWAY.fullmatch(run_id):
        run_id = None
    pod = _first(given, "POD_NAME")
    if pod is None and given.get("KUBERNETES_SERVICE_HOST"):
        pod = _first(given, "HOSTNAME")  # the pod's name, unless it has a host name of its own
    named = _POD.fullmatch(pod or "")
    return (
        _first(given, "WITNESS_JOB")
        or run_id
        or _first(given, "JOB_NAME")
        or (named["job"] if named else None)
        or _first(given, "SLURM_JOB_NAME")
        or "unnamed"
    )


def _run_id(given: Mapping[str, str]) -> str | None:
    run_id = _first(given, "TORCHELASTIC_RUN_ID")
    return None if run_id == "none" else run_id  # what torchrun takes without --rdzv-id


def _attempt(given: Mapping[str, str]) -> int | None:
    number = _integer(given, "WITNESS_ATTEMPT")
    if number is not None:
        return number
    for name in ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"):
        restarts = _integer(given, name)
        if restarts is not None:
            return restarts + 1
    return None


def _attempt_uid(given: Mapping[str, str]) -> str | None:
    """Give what tells submissions apart that number their starts alike; None where nothing does."""
    uid = _first(given, "WITNESS_ATTEMPT_UID")
    if uid is not None:
        return uid
    slurm = _first(given, "SLURM_JOB_ID")
    parts = [_run_id(given)]
    if slurm is not None:  # a job that is requeued keeps its id
        parts.append(f"slurm-{slurm}.{_integer(given, 'SLURM_RESTART_COUNT') or 0}")
    return ".".join(part for part in parts if part) or None


def _integer(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name, "").strip()
    return int(value) if re.fullmatch(r"\d{1,18}", value, re.A) else None


def _labels(text: str) -> dict[str, str]:
    """Read "key=value,key=value"; parts without an equals sign are left out."""
    pairs = (part.partition("=") for part in text.split(","))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals and key.strip()}


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text("utf-8").strip() or None
    except (OSError, ValueError):
        return None


def _hyperpod_cluster(file: Path) -> str | None:
    """Read the cluster's name where HyperPod leaves it on its machines (not inside pods)."""
    try:
        name = json.loads(file.read_text("utf-8"))["ClusterConfig"]["ClusterName"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name else None
