"""What will the platform do with the node by itself, before, after or in spite of the action?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.previewing.live import Live
from app.actions.previewing.machine_now import MachineNow
from app.actions.previewing.parts import Check, counted
from app.actions.reaching import another_machine
from app.actions.ways import API, way_of
from app.cluster.provider.ports import FAILURE, RUNNING, Fleet, Group, Machine
from app.store.proposals import Proposal
from witness.rules.platform_signs import KARPENTER_POOL, SENTENCES, Doing, Sign, signs

GROUP_LABEL = "sagemaker.amazonaws.com/instance-group-name"
THEN = {
    ("replace", "replacing"): "An approval would send nothing then: it ends as already under way.",
    ("reboot", "rebooting"): "An approval would send nothing then: it ends as already under way.",
    ("replace", "testing"): "An approval would be refused while it runs.",
    ("reboot", "testing"): "An approval would be refused while it runs.",
    ("deep_health_check", "testing"): "An approval would be refused while it runs.",
}
"""What becomes of an approval while the platform is at work."""
BY_PROVIDER = frozenset({"replace", "reboot", "deep_health_check"})


@dataclass(frozen=True, slots=True)
class Platform:
    """What was found; `already` holds what the platform has begun by itself."""

    already: tuple[Sign, ...]
    checks: tuple[Check, ...]
    karpenter: bool | None  # None: not known

    @property
    def begun(self) -> tuple[tuple[Doing, str], ...]:
        """Say each thing that it has begun once, with all marks that show it."""
        marks: dict[Doing, list[str]] = {}
        for one in self.already:
            marks.setdefault(one.doing, []).append(one.mark)
        return tuple(
            (doing, f"{SENTENCES[doing]} ({'; '.join(shown)})") for doing, shown in marks.items()
        )


def about_platform(live: Live, now: MachineNow, proposal: Proposal) -> Platform:
    """Judge what provider and labels show."""
    state = live.state
    labels = dict(state.labels) if state else {}
    if now.machine is not None:
        labels = {**now.machine.labels, **labels}
    taints = [one.key for one in state.taints] if state else []
    deleting = bool(state and state.raw.get("metadata", {}).get("deletionTimestamp"))
    already = signs(labels, taints, now.status, deleting=deleting)
    karpenter = _karpenter(now.fleet, labels, known=state is not None)
    begun = Platform(already, (), karpenter).begun
    checks = [Check("x", words) for _, words in begun]
    if not now.configured:
        checks += _nobody_to_ask(proposal, karpenter)
        return Platform(already, tuple(checks), karpenter)
    if now.fleet is not None and now.fleet.orchestrator == "gke":
        checks.append(
            Check("f", "GKE owns the machines: node pools repair and update by themselves")
        )
        return Platform(already, tuple(checks), karpenter)
    checks += _about_machine(now, proposal)
    if now.fleet is None:
        words = f"NodeRecovery, autoscaler and patching: not known. {now.fleet_error or ''}"
        checks.append(Check("u", words.strip()))
    else:
        checks += [
            _recovery(now.fleet, proposal),
            *_about_karpenter(karpenter, proposal),
            *_patching(now.group(labels.get(GROUP_LABEL)), proposal),
            *_cluster(now.fleet),
        ]
    return Platform(already, tuple(checks), karpenter)


def _nobody_to_ask(proposal: Proposal, karpenter: bool | None) -> list[Check]:
    words = "NodeRecovery, patching and the machine’s status: not known, no provider is configured"
    if proposal.action in BY_PROVIDER and way_of(proposal) == API:
        words += f" for {proposal.cluster}. An approval is kept as a dry run and changes nothing"
    return [Check("u", words), *_about_karpenter(karpenter, proposal)]


def _karpenter(fleet: Fleet | None, labels: dict[str, str], *, known: bool) -> bool | None:
    """Tell whether Karpenter made this node; both the cluster's mode and the label must say so."""
    if KARPENTER_POOL in labels:
        return True if fleet is None else fleet.autoscaler == "Karpenter"
    return False if known else None


def _about_karpenter(karpenter: bool | None, proposal: Proposal) -> list[Check]:
    if karpenter is None:
        return [Check("u", "Whether Karpenter made this node: not known")]
    if not karpenter:
        return []
    words = "Karpenter made this node"
    if proposal.action in ("replace", "deep_health_check"):
        return [
            Check("x", f"{words}: nothing comes back by itself. A new machine is made only when "
                       "pods wait for one"),
        ]  # fmt: skip
    return [Check("f", words)]


def _about_machine(now: MachineNow, proposal: Proposal) -> list[Check]:
    machine = now.machine
    if now.gone:
        return [Check("x", f"The provider knows no machine {proposal.instance_id}: it is gone")]
    if machine is None:
        return [Check("u", f"The machine’s status: not known. {now.machine_error or ''}".strip())]
    found = []
    other = another_machine(machine, proposal)
    if other is not None:
        found.append(Check("x", f"Not the machine that was proposed: {other}"))
    group = f" of group {machine.group}" if machine.group else ""
    about = f"The provider lists {machine.instance_id}{group} as {machine.status}"
    state = {RUNNING: "t", FAILURE: "x"}.get(machine.status, "f")
    found.append(Check("x" if state == "x" else "t" if state == "t" else "f", about))
    found += _message(machine)
    return found


def _message(machine: Machine) -> list[Check]:
    if not machine.message:
        return []
    words = f"Its message, which may be about an earlier failure: {machine.message}"
    return [Check("f", words)]


def _recovery(fleet: Fleet, proposal: Proposal) -> Check:
    mode = fleet.node_recovery
    if mode is None:
        return Check("u", "NodeRecovery: the provider does not say")
    by_label = way_of(proposal) == "label"
    if mode == "Automatic":
        words = "NodeRecovery is Automatic: the platform restarts or replaces failing machines"
        if proposal.action == "deep_health_check":
            return Check("x", f"{words}, also one that fails this test, without asking again")
        return Check("t" if by_label else "f", f"{words} by itself")
    words = f"NodeRecovery is {mode}: the platform replaces nothing by itself"
    if by_label:
        return Check("x", f"{words}, so the label would do nothing")
    return Check("f", words)


def _patching(group: Group | None, proposal: Proposal) -> list[Check]:
    if group is None:
        return [Check("u", "AutoPatch: not known, the machine’s instance group was not found")]
    if group.patching is None:
        return [Check("f", f"AutoPatch is not set for group {group.name}")]
    when = f", next {group.next_patch_at:%Y-%m-%d %H:%M} UTC" if group.next_patch_at else ""
    words = f"AutoPatch of group {group.name} is {group.patching}{when}"
    if proposal.action in ("cordon", "targeted_audit"):
        return [Check("x", f"{words}: it lifts cordons when it is done. Our taint stays")]
    return [Check("f", f"{words}: it lifts cordons when it is done")]


def _cluster(fleet: Fleet) -> list[Check]:
    found = []
    if fleet.status not in (None, "InService"):
        found.append(Check("x", f"The cluster is {fleet.status} at the provider"))
    if fleet.orchestrator == "slurm":
        words = "Slurm runs the machines: a replacement keeps the host name of the old machine"
        found.append(Check("f", words))
    short = [
        one
        for one in fleet.groups
        if one.current is not None and one.target is not None and one.current < one.target
    ]
    if short:
        names = ", ".join(f"{one.name} {one.current} of {one.target}" for one in short[:3])
        found.append(Check("f", f"{counted(len(short), 'group')} below target: {names}"))
    return found
