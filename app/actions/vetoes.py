"""How does a person forbid to touch a node, and take that back?"""

from __future__ import annotations

from datetime import datetime

from app.actions import writing
from app.actions.deciders import Decider
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, node_places, vetoes
from app.store.connection import Connection
from app.store.vetoes import Veto

REASON_LIMIT = 1_000  # characters


def forbid(
    context: Context,
    cluster: str,
    node_name: str,
    by: Decider,
    reason: str,
    *,
    until: datetime | None = None,
    instance_id: str | None = None,
    node_id: int | None = None,
) -> Veto:
    """Forbid every action on a machine but undoing; one that stands already is said."""
    _needs_operator(by, "A veto")
    now = context.now()
    said = _reason(reason)
    if until is not None and until <= now:
        raise Problem(422, "invalid", "The end of a veto has to lie ahead.", field="until")

    def write(connection: Connection) -> Veto | Problem:
        known = node_places.of_node(connection, cluster, node_name, instance_id)
        machine = instance_id or (known.instance_id if known else None)
        before = vetoes.holding(connection, cluster, node_name, machine, now)
        if before is not None:
            words = f"{before.by} forbids to touch {node_name} already: {before.reason}."
            return Problem(409, "veto_stands", words, more={"id": before.id})
        made = vetoes.add(
            connection, cluster, node_name, machine, said, by=by.name, at=now, until=until
        )
        end = f" until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        audit.append(
            connection,
            by.name,
            "veto.set",
            f"{by.name} forbids to touch {node_name}{end}: {said}",
            at=now,
            node_id=node_id,
            details={"veto": made.id, "cluster": cluster, "node": node_name, "reason": said},
        )
        return made

    return _or_raise(writing.write(context, write))


def lift(
    context: Context, veto_id: int, by: Decider, reason: str, node_id: int | None = None
) -> Veto:
    """Take a veto back; Problem 404 where there is none, 409 where it was lifted before."""
    _needs_operator(by, "Lifting a veto")
    now = context.now()
    said = _reason(reason)

    def write(connection: Connection) -> Veto | Problem:
        veto = vetoes.get(connection, veto_id)
        if veto is None:
            return not_found("no veto with this id")
        if not vetoes.lift(connection, veto_id, by=by.name, at=now):
            return Problem(409, "lifted_before", f"{veto.lifted_by} lifted this veto before.")
        audit.append(
            connection,
            by.name,
            "veto.lifted",
            f"{by.name} lifted the veto of {veto.by} on {veto.node_name}: {said}",
            at=now,
            node_id=node_id,
            details={"veto": veto.id, "node": veto.node_name, "reason": said},
        )
        after = vetoes.get(connection, veto_id)
        assert after is not None
        return after

    return _or_raise(writing.write(context, write))


def _or_raise(done: Veto | Problem) -> Veto:
    if isinstance(done, Problem):
        raise done
    return done


def _reason(text: str) -> str:
    said = text.strip()
    if not said or len(said) > REASON_LIMIT:
        words = f"Say why, in at most {REASON_LIMIT} characters; the reason is kept."
        raise Problem(422, "invalid", words, field="reason")
    return said


def _needs_operator(by: Decider, what: str) -> None:
    if not by.may("operator"):
        raise forbidden(f"{what} needs the role operator; {by.name} has the role {by.role}.")
