"""What speaks against taking an alarm's accusation at its word?

The decision table assumes three nodes, one fault a ring and a fault of hardware. These guards say
where an alarm breaks an assumption, each as a caution with a code that programs can read.
"""

from dataclasses import dataclass

from witness.rules import words
from witness.rules.alarm import (
    PERSISTENT,
    REPLAYER,
    TRANSIENT,
    UNCLEAR,
    WEIGHTS,
    Alarm,
    Pair,
    Verdict,
)
from witness.rules.digests import contradiction
from witness.rules.ring import explain
from witness.rules.setting import THREE, TWO, Setting
from witness.rules.suspect_window import reported_window

BLOCKING = frozenset(
    {
        "two_nodes",
        "peer_shares_node",
        "third_shares_node",
        "multiple_faults",
        "culprits_disagree",
        "digests_disagree",
        "verdict_contradicts",
        "half_job",
        "rank_outside_job",
        "self_pair",
    }
)
"""Codes under which no replacement may be proposed before another audit or a person's look."""

CODES: dict[str, str] = {
    "two_nodes": "On two nodes replayer and target cannot be told apart.",
    "peer_shares_node": "Replayer and target share a node, so a fault of the node hits both.",
    "third_shares_node": "The third rank shares a node with the pair and is no own witness.",
    "multiple_faults": "The ring shows more than one fault, so some named GPUs may be healthy.",
    "three_node_ring": "On three nodes two equal faults leave only the healthy GPU named.",
    "three_replicas": "Of three replicas two equal faults leave only the healthy one named.",
    "culprits_disagree": "The named culprits are not those that the mismatched pairs give.",
    "digests_disagree": "The digests that came with the alarm do not bear it out.",
    "verdict_contradicts": "The verdict's kind and its suspect do not fit together.",
    "half_job": "Half of the job or more is named at once, which points to software.",
    "rank_outside_job": "A named rank is not one of the job's.",
    "self_pair": "A rank was compared with itself, which proves nothing.",
    "window_disagrees": "The suspect window begins later than the last pass says.",
    "no_map": "No rank map of this attempt has come.",
    "no_place": "The rank map has no row for the rank.",
    "no_node": "The rank map names no node for the rank.",
    "unknown_check": "The check is not known here.",
    "unknown_verdict": "The verdict is not known here.",
    "suspects_empty": "The check says that weights differ but names nobody.",
    "suspects_missing": "The alarm does not say whom it suspects.",
    "pair_not_confirmed": "A mismatched pair has neither culprit nor verdict.",
    "names_nothing": "The alarm names no rank and no pair.",
}
"""Every code with what it means in general; the caution's own text has the particulars."""


@dataclass(frozen=True, slots=True)
class Caution:
    """A reservation: a code for programs and a sentence for people."""

    code: str
    text: str


def pair_doubts(setting: Setting, rank: int) -> tuple[Caution, ...]:
    """Say where the comparisons of a rank have no independent second node."""
    nodes = setting.ring(rank).nodes
    if nodes == TWO:
        return (_two_nodes(setting, rank),)
    if nodes == 1 or any(setting.same_node(rank, one) for one in setting.partners.get(rank, ())):
        text = f"A peer of rank {rank} runs on its own node: the comparison is not independent."
        return (Caution("peer_shares_node", text),)
    return ()


def verdict_doubts(verdict: Verdict, setting: Setting) -> tuple[Caution, ...]:
    """Say where a verdict contradicts itself or has no independent witness."""
    target, replayer = verdict.pair
    doubts = list(pair_doubts(setting, target))
    expected = {PERSISTENT: target, TRANSIENT: target, UNCLEAR: target, REPLAYER: replayer}
    wanted = expected.get(verdict.kind)
    if verdict.suspect is not None and wanted not in {None, verdict.suspect}:
        text = (
            f"The verdict “{verdict.kind}” is about rank {wanted}, "
            f"but rank {verdict.suspect} was posted as the suspect."
        )
        doubts.append(Caution("verdict_contradicts", text))
    if _third_depends(verdict, setting):
        text = (
            f"Rank {verdict.third}, asked as the third, runs on a node of the pair: "
            "it is no independent witness."
        )
        doubts.append(Caution("third_shares_node", text))
    return tuple(doubts)


def ring_cautions(setting: Setting, involved: tuple[int, ...]) -> tuple[Caution, ...]:
    """Say where a ring shows more than one fault, or a rank that was compared with itself."""
    rings = {setting.ring_key(rank): setting.ring(rank) for rank in involved}.values()
    cautions = []
    several = sum(len(one.pairs) for one in rings if one.several_faults)
    if any(one.several_faults for one in rings):
        text = (
            f"More than one fault in this ring ({words.counted(several, 'comparison')} "
            f"{'differs' if several == 1 else 'differ'}): some named GPUs may be healthy. "
            f"{_after_further_audits(setting)}"
        )
        cautions.append(Caution("multiple_faults", text))
    if any(one.self_pair for one in rings):
        cautions.append(Caution("self_pair", CODES["self_pair"]))
    return tuple(cautions)


def _after_further_audits(setting: Setting) -> str:
    """Say what the job's own further audits leave open, or that there were none."""
    alarm = setting.alarm
    if not alarm.further_audits:
        return "Audit again before any replacement."
    groups = explain(alarm.audits(setting.offset), setting.world_size)
    if not all(one.complete and len(one.sets) == 1 for one in groups):
        return "Further audits at once did not tell them apart: audit again before any replacement."
    faulty = sorted({rank for one in groups for rank in one.sets[0].faulty})
    return (
        f"Further audits at once leave one smallest explanation: {words.ranks(faulty)}. "
        "A person must agree before any replacement."
    )


def culprit_cautions(setting: Setting, rank: int) -> tuple[Caution, ...]:
    """Say what weakens a culprit: a ring of three nodes, or pairs that do not bear it out."""
    ring = setting.ring(rank)
    cautions = []
    if ring.nodes == THREE:
        text = (
            "Ring of 3 nodes: two faulty GPUs that give the same wrong value leave only the "
            "healthy one named, so this GPU may be healthy."
        )
        cautions.append(Caution("three_node_ring", text))
    if not ring.culprits_agree:
        text = (
            f"By the mismatched pairs {_as_culprits(ring.counted)}, "
            f"but the alarm names {words.ranks(ring.posted)}."
        )
        cautions.append(Caution("culprits_disagree", text))
    return tuple(cautions)


def replica_cautions(setting: Setting) -> tuple[Caution, ...]:
    """Say that a strict majority of three replicas is two, who may be wrong alike."""
    if setting.world_size != THREE:
        return ()
    text = (
        "Three replicas: two that were corrupted alike leave only the healthy one named, so this "
        "GPU may be healthy."
    )
    return (Caution("three_replicas", text),)


def loose_caution(setting: Setting, pair: Pair) -> tuple[Caution, ...]:
    """Say which culprit the pairs would give where the alarm names none of them."""
    counted = sorted(rank for rank in set(pair) if len(setting.partners[rank]) > 1)
    if not counted:
        return ()
    text = f"By the mismatched pairs {_as_culprits(counted)}, but the alarm names no culprit here."
    return (Caution("culprits_disagree", text),)


def half_job(setting: Setting) -> tuple[Caution, ...]:
    """Say that half of the job or more is named at once: that is software before hardware.

    Two ranks of one two-node ring are one accusation, since there each fault names both.
    """
    named, size = setting.alarm.named_ranks(), setting.world_size
    if size is None or not named or 2 * len(named) < size:
        return ()
    accused = {setting.ring_key(r) if setting.ring(r).nodes == TWO else -1 - r for r in named}
    if len(accused) < TWO:
        return ()
    text = f"{len(named)} of {size} ranks are named at once: look for a software cause first."
    return (Caution("half_job", text),)


def digest_cautions(setting: Setting) -> tuple[Caution, ...]:
    """Say that the digests which came with the alarm contradict it."""
    text = contradiction(setting.alarm, setting.offset, setting.world_size)
    return () if text is None else (Caution("digests_disagree", text),)


def place_cautions(setting: Setting, rank: int | None) -> tuple[Caution, ...]:
    """Say where the way from rank to machine is missing."""
    size = setting.world_size
    if rank is not None and size is not None and rank >= size:
        text = f"Rank {rank} lies outside a job of {words.counted(size, 'rank')}."
        return (Caution("rank_outside_job", text),)
    if setting.topology is None:
        return (Caution("no_map", "No rank map of this attempt yet: no node is known."),)
    if rank is None:
        return ()
    place = setting.topology.place(rank)
    if place is None:
        return (Caution("no_place", f"The rank map has no row for rank {rank}."),)
    if place.node is None:
        return (Caution("no_node", f"The rank map names no node for rank {rank}."),)
    return ()


def window_cautions(alarm: Alarm) -> tuple[Caution, ...]:
    """Say that the posted window begins after the step that the last pass gives.

    Only where the ring or the weight check fired: the non-finite check passes at every step.
    """
    if alarm.suspect_window is None or alarm.check_family not in {"ring", "weights"}:
        return ()
    last = alarm.last_weight_check_pass if alarm.check == WEIGHTS else alarm.last_audit_pass
    due = reported_window(alarm.check, alarm.step, 0, alarm.last_audit_pass, last)
    if last is None or due is None or alarm.suspect_window[0] <= due[0]:
        return ()
    text = (
        f"The suspect window begins at step {alarm.suspect_window[0]}, though the check last "
        f"passed at {last}: steps from {due[0]} on are suspect."
    )
    return (Caution("window_disagrees", text),)


def _two_nodes(setting: Setting, rank: int) -> Caution:
    others = [one for one in setting.peers(rank) if one != rank]
    where = "Only 2 nodes" if setting.whole_job_on_two_nodes() else "Only 2 nodes in this ring"
    apart = f"rank {rank} from {words.ranks(others) if others else 'its peer'}"
    return Caution("two_nodes", f"{where}: this check cannot tell {apart}.")


def _as_culprits(ranks: tuple[int, ...] | list[int]) -> str:
    if not ranks:
        return "no rank is a culprit"
    return f"{words.ranks(ranks)} {'is a culprit' if len(ranks) == 1 else 'are culprits'}"


def _third_depends(verdict: Verdict, setting: Setting) -> bool:
    third = verdict.third
    if third is None:
        return False
    return third in verdict.pair or any(setting.same_node(third, one) for one in verdict.pair)
