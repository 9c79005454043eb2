"""What would be gone afterwards: pods, volumes, checkpoints on the node's own disks, evidence?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.actions.previewing.live import Live, Pods
from app.actions.previewing.parts import Loss, counted, listed
from app.actions.ways import way_of
from app.cluster.ports import PodVolume
from app.store.node_checkpoints import JobHere, SavedHere, TelemetryLeft
from app.store.proposals import Proposal
from witness.rules.storage import is_in_memory, place_of

NAMED = 5
PATHS_OF_THE_SYSTEM = (
    "/dev", "/sys", "/proc", "/run", "/var/run", "/etc", "/lib", "/usr", "/bin", "/sbin", "/boot",
    "/var/lib/kubelet", "/var/log",
)  # fmt: skip
"""Paths of a node that pods use to reach devices, sockets and logs: no data of theirs."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is known here about evidence and states; `jobs` None: the node is not known here."""

    jobs: tuple[JobHere, ...] | None
    telemetry: TelemetryLeft
    replayed: bool  # the triggering step was replayed on the suspect
    gpu_known: bool
    step: int


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The states of one job that were saved on the node's own disks, or may have been.

    `newest_shared` is the newest on storage that outlives the node; None: none is known.
    """

    job_id: int
    job: str
    namespace: str
    certain: bool
    in_memory: bool
    count: int
    newest: SavedHere
    newest_shared: int | None


def local_checkpoints(jobs: Iterable[JobHere]) -> tuple[Checkpoints, ...]:
    """Find, job by job, the saved states that do not, or may not, outlive the node."""
    found = []
    for job in jobs:
        saved = [one for one in job.saved if one.committed is not False]
        shared = [one.step for one in saved if place_of(one.uri) == "shared"]
        for place in ("local", "not known"):
            mine = [one for one in saved if place_of(one.uri) == place]
            if mine:
                newest = max(mine, key=lambda one: one.step)
                found.append(
                    Checkpoints(
                        job.job_id, job.job, job.namespace, place == "local",
                        all(is_in_memory(one.uri) for one in mine), len(mine), newest,
                        max(shared, default=None),
                    )
                )  # fmt: skip
    return tuple(found)


def losses(proposal: Proposal, live: Live, kept: Kept) -> tuple[Loss, ...]:
    """List what an action takes with it; empty for one that takes nothing."""
    if not proposal.destroys or live.gone:
        return ()  # of a node that is gone nothing more can be lost
    found = [*_pods(live), *_volumes(proposal, live), *_checkpoints(proposal, kept)]
    return (*_machine(proposal), *found, *_evidence(kept, proposal))


def _machine(proposal: Proposal) -> list[Loss]:
    if proposal.action == "reboot":
        return [
            Loss("Everything in memory: processes, in-memory snapshots, memory volumes."),
            Loss("The counters that the driver keeps since it was loaded: they begin at zero."),
            Loss("Data on local NVMe disks: whether a restart keeps them is not known.", False),
        ]
    if way_of(proposal) in ("gke_label", "gke_host"):
        return [Loss("Local SSDs of the host, and everything that its pods keep on it.")]
    return [Loss("The root and secondary volumes of the machine, local NVMe disks included.")]


def _pods(live: Live) -> list[Loss]:
    if live.pods is None:
        return [Loss("Pods on it: not known, the cluster could not be read.", False)]
    found = [Loss(_of_namespace(one)) for one in live.pods]
    if live.unread:
        nodes = counted(live.unread, "more node")
        found.append(Loss(f"Pods on {nodes} that go with it: not read.", False))
    return found


def _of_namespace(group: Pods) -> str:
    whose = {
        "own": "of the alarmed job’s namespace",
        "namespace": "of the alarmed job’s namespace, of other jobs",
        "system": "of the system namespace",
        "other": "another team’s, of namespace",
    }[group.whose]
    asks = f", {counted(group.accelerators, 'GPU')} asked for" if group.accelerators else ""
    number = counted(len(group.victims), "pod")
    ends = "It ends" if len(group.victims) == 1 else "They end"
    return f"{number} {whose} {group.namespace}: {listed(group.names, NAMED)}{asks}. {ends}."


def _volumes(proposal: Proposal, live: Live) -> list[Loss]:
    """Say where the pods keep data on the node; a restart keeps directories on disk."""
    by_kind: dict[str, list[str]] = {}
    for group in live.pods or ():
        for victim in group.victims:
            for volume in victim.pod.volumes:
                kind = _kind(volume)
                if kind is not None:
                    by_kind.setdefault(kind, []).append(f"{victim.pod.name} ({_name(volume)})")
    said = {
        "disk": ("Directories that the node made for pods", True),
        "path": ("Paths of the node that pods write to", True),
        "memory": ("Memory volumes of pods", True),
        "claim": ("Volumes by claim, and the pods do not say whether they lie on the node", False),
    }
    restart = proposal.action == "reboot"
    return [
        Loss(f"{words}: {listed(by_kind[kind], NAMED)}.", certain)
        for kind, (words, certain) in said.items()
        # A pod that ends with its node loses its directory also where the disk survives.
        if kind in by_kind and not (restart and kind in ("path", "claim"))
    ]


def _kind(volume: PodVolume) -> str | None:
    """Give the kind under which a volume is listed; None: nothing of it is lost."""
    if volume.kind != "path":
        return None if volume.kind == "network" else volume.kind
    path = volume.path or "/"
    if is_in_memory(path):
        return "memory"
    if place_of(path) == "shared" or path.startswith(PATHS_OF_THE_SYSTEM):
        return None
    return "path"


def _name(volume: PodVolume) -> str:
    return volume.path or volume.claim or volume.name


def _checkpoints(proposal: Proposal, kept: Kept) -> list[Loss]:
    if kept.jobs is None:
        return [Loss("Checkpoints on its disks: not known, no rank map names this node.", False)]
    found = local_checkpoints(kept.jobs)
    if proposal.action == "reboot":
        found = tuple(one for one in found if one.in_memory or not one.certain)
    return [_checkpoint(one) for one in found]


def _checkpoint(one: Checkpoints) -> Loss:
    at = f", saved {one.newest.saved_at:%Y-%m-%d %H:%M} UTC" if one.newest.saved_at else ""
    where = f" at {one.newest.uri}" if one.newest.uri else ""
    if one.newest_shared is None:
        shared = "None of this job is known on shared storage"
    else:
        shared = f"The newest on shared storage is of step {one.newest_shared}"
    number = counted(one.count, "checkpoint")
    if not one.certain:
        why = "the address does not tell whether they outlive the node"
        words = f"{number} of {one.job}, the newest of step {one.newest.step}{at}{where}: {why}"
        return Loss(f"{words}. {shared}.", certain=False)
    lie = "in its memory" if one.in_memory else "on the node’s own disks"
    words = f"{number} of {one.job} {lie}, the newest of step {one.newest.step}{at}{where}"
    return Loss(f"{words}. {shared}.")


def _evidence(kept: Kept, proposal: Proposal) -> list[Loss]:
    found = []
    left = kept.telemetry
    if left.asked and left.whole < left.asked:
        missing = left.asked - left.whole
        words = f"Telemetry of the newest alarm: {missing:,} of {left.asked:,} windows not whole"
        found.append(Loss(f"{words} yet. The source keeps them, unless it forgets first.", False))
    elif not left.asked and not left.readings:
        found.append(Loss("Telemetry of the newest alarm: none was kept here.", False))
    if kept.gpu_known and not kept.replayed and proposal.action != "reboot":
        words = f"The chance to replay step {kept.step} on this GPU: no replay of it is known."
        found.append(Loss(words))
    return found
