"""Which marks do we leave on a node, and what do the marks that we find there say?

All of it is annotations and one taint: annotations take any text, while a label value with a
colon or a blank is refused by the API server and would make the whole patch fail.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.cluster.ports import (
    OUR_PREFIX,
    OUR_TAINT_EFFECT,
    OUR_TAINT_KEY,
    CordonRequest,
    OurCordon,
)

FIELD_MANAGER = "silent-witness"
CASE = OUR_PREFIX + "case"
PROPOSAL = OUR_PREFIX + "proposal"
BY = OUR_PREFIX + "by"
AT = OUR_PREFIX + "at"
EVIDENCE = OUR_PREFIX + "evidence"
REASON = OUR_PREFIX + "reason"
PREV_UNSCHEDULABLE = OUR_PREFIX + "prev-unschedulable"
ALL_ANNOTATIONS = (CASE, PROPOSAL, BY, AT, EVIDENCE, REASON, PREV_UNSCHEDULABLE)

REASON_LIMIT = 1000
"""Characters; all annotations of an object together may hold 256 KiB."""


def stamp(moment: datetime) -> str:
    """Write a moment in UTC with all six fractional digits.

    Events need exactly six (Go layout `.000000`), and `isoformat` writes none when they are zero.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_moment(text: object) -> datetime | None:
    """Read an RFC 3339 moment; None where it is missing, unreadable or without a time zone."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def read_our_cordon(annotations: Mapping[str, str]) -> OurCordon | None:
    """Read our annotations; None where the node carries no case of ours."""
    case = annotations.get(CASE)
    if not case:
        return None
    before = annotations.get(PREV_UNSCHEDULABLE)
    return OurCordon(
        case=case,
        by=annotations.get(BY),
        at=read_moment(annotations.get(AT)),
        proposal=annotations.get(PROPOSAL),
        reason=annotations.get(REASON),
        evidence=annotations.get(EVIDENCE),
        prev_unschedulable={"true": True, "false": False}.get(before or ""),
    )


def cordon_annotations(request: CordonRequest) -> dict[str, str]:
    """Give what a person who finds the node must know: which case, who, when, why, on what."""
    return {
        CASE: request.case,
        PROPOSAL: request.proposal,
        BY: request.by,
        AT: stamp(request.at),
        EVIDENCE: request.evidence_version,
        REASON: request.reason[:REASON_LIMIT],
        # We only ever cordon a node that was schedulable; anything else is somebody else's.
        PREV_UNSCHEDULABLE: "false",
    }


def foreign_taints(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the node's taints without ours, each as it came, so that none loses a field."""
    taints = (raw.get("spec") or {}).get("taints") or []
    return [dict(taint) for taint in taints if taint.get("key") != OUR_TAINT_KEY]


def cordon_patch(raw: Mapping[str, Any], request: CordonRequest) -> dict[str, Any]:
    """Build the merge patch that cordons the node as it was read.

    Taints are atomic under every patch type, so the whole list goes out, and the
    resourceVersion makes the server refuse it if anything changed since the reading.
    """
    taints = foreign_taints(raw)
    taints.append({"key": OUR_TAINT_KEY, "value": "true", "effect": OUR_TAINT_EFFECT})
    return {
        "metadata": version_of(raw) | {"annotations": cordon_annotations(request)},
        "spec": {"unschedulable": True, "taints": taints},
    }


def uncordon_patch(raw: Mapping[str, Any], *, keep_unschedulable: bool) -> dict[str, Any]:
    """Build the merge patch that takes our marks off the node as it was read."""
    spec: dict[str, Any] = {"taints": foreign_taints(raw) or None}
    if not keep_unschedulable:
        spec["unschedulable"] = None
    absent: dict[str, None] = dict.fromkeys(ALL_ANNOTATIONS)
    return {"metadata": version_of(raw) | {"annotations": absent}, "spec": spec}


def version_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Give what binds a patch to the object that was read: its version and its uid."""
    metadata = raw.get("metadata") or {}
    return {key: metadata[key] for key in ("resourceVersion", "uid") if metadata.get(key)}
