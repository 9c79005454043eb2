"""What does an approval set off, sentence by sentence, and how long does it take as a rule?"""

from __future__ import annotations

from dataclasses import dataclass

from app.actions.previewing.about_platform import Platform
from app.actions.previewing.live import Live
from app.actions.previewing.parts import counted
from app.actions.ways import way_of
from app.store.proposals import Proposal


@dataclass(frozen=True, slots=True)
class Held:
    """Nodes cordoned from here before the action, by what was read last."""

    nodes: int


def will_happen(proposal: Proposal, live: Live, platform: Platform, held: Held) -> tuple[str, ...]:
    """Say what an approval does."""
    action = proposal.action
    if live.gone and action != "targeted_audit":
        return ("Nothing is sent for a node that is gone: an approval ends as that.",)
    if action == "cordon":
        return _cordon(live, held)
    if action == "replace":
        return _replace(proposal, platform)
    if action == "reboot":
        return _reboot(proposal)
    if action == "deep_health_check":
        return _deep_check(proposal)
    return REST.get(action, ())


REST = {
    "uncordon": (
        "Our taint and our note are taken off the node; new pods can land on it.",
        "A cordon that somebody else set stays as it is.",
    ),
    "targeted_audit": (
        "The job’s next attempt is asked to audit this node closely: it costs steps, and nothing "
        "is changed on the node.",
        "While the node is cordoned only a job that tolerates the taint can take it.",
    ),
}


def _cordon(live: Live, held: Held) -> tuple[str, ...]:
    running = live.victims
    if running is None:
        stay = "Running pods keep running."
    elif running == 0:
        stay = "No pod of any job runs on it now."
    else:
        keep = "keeps" if running == 1 else "keep"
        stay = f"The {counted(running, 'running pod')} listed here {keep} running."
    return (
        "New pods stay away from the node: it becomes unschedulable, with our taint and note.",
        stay,
        f"Nodes cordoned from here: {held.nodes} becomes {held.nodes + 1}.",
        "Undo: uncordon, at any time, by any operator.",
    )


def _replace(proposal: Proposal, platform: Platform) -> tuple[str, ...]:
    way = way_of(proposal)
    if way == "gke_label":
        return (
            "The node is labelled fault-behavior=SDC: GKE evicts its pods and reports the host.",
            "Reporting takes 10 to 12 minutes, the repair 3 to 14 days.",
        )
    if way == "gke_host":
        return (
            "The host is reported as faulty. A multi-host slice recovers only as a whole: every "
            "node of the slice goes with it.",
            "The machine may be repaired on the same host; then the accelerators come back.",
        )
    first = (
        "The node’s health label is set; the platform then terminates the machine."
        if way == "label"
        else "The provider is ordered, once, to terminate the machine and start another."
    )
    if platform.karpenter:
        return (first, "Karpenter makes another machine only when pods wait for one.")
    return (
        first,
        "Another machine under another name takes its place: 20 to 30 minutes as a rule, said to "
        "be stuck after 90.",
        "Whether the new machine’s GPUs are others is read from the job’s next rank map.",
    )


def _reboot(proposal: Proposal) -> tuple[str, ...]:
    first = (
        "The node’s health label is set; the platform then restarts the machine."
        if way_of(proposal) == "label"
        else "The provider is ordered, once, to restart the machine."
    )
    return (
        first,
        "The same machine with the same GPUs comes back: a restart repairs no defect, and a test "
        "that passes afterwards clears nothing.",
    )


def _deep_check(proposal: Proposal) -> tuple[str, ...]:
    checks = ", ".join(str(one) for one in proposal.parameters.get("checks") or ()) or "the checks"
    return (
        f"The provider is asked to run {checks} on this machine alone.",
        "A machine that fails may be restarted or replaced by the platform without asking again: "
        "approving the test approves that as well.",
        "The node takes no work meanwhile: 45 to 135 minutes for a long test, and one request at a "
        "time in a cluster. A busy node may be left out. GPU telemetry has a gap meanwhile.",
        "A passed test clears nothing: it finds a part of defective GPUs only.",
    )


USUAL = {
    "cordon": "seconds",
    "uncordon": "seconds",
    "replace": "20 to 30 minutes as a rule; said to be stuck after 90",
    "reboot": "not known for this provider; some minutes as a rule",
    "deep_health_check": "45 to 135 minutes for a long test",
    "targeted_audit": "until the job’s next attempt has run the audits",
}


def usual(proposal: Proposal) -> str | None:
    """Say how long it takes as a rule; None: nothing is known."""
    if way_of(proposal) in ("gke_label", "gke_host") and proposal.action == "replace":
        return "3 to 14 days for the repair of the host"
    return USUAL.get(proposal.action)
