"""What did a case turn out to be, by whose word and on which ground?"""

from __future__ import annotations

from datetime import datetime

from app.actions import condemned, writing
from app.actions.casework import Policy, judge_cases
from app.actions.decide import Decider
from app.actions.screening import SCREENING
from app.context import Context
from app.errors import Problem, forbidden, not_found
from app.store import audit, casebook, docket_reading, held_nodes, ids, targeted_audits
from app.store.connection import Connection
from app.store.docket_reading import DocketCase

NOTE_LIMIT = 10_000  # characters


def note(context: Context, case_id: int, author: Decider, text: str) -> bool:
    """Keep a note; False when the same person wrote the same words just before."""
    said = text.strip()
    if not said:
        raise Problem(422, "empty_note", "A note needs words.", field="text")
    if len(said) > NOTE_LIMIT:
        message = f"A note holds at most {NOTE_LIMIT} characters."
        raise Problem(422, "note_too_long", message, field="text")
    _needs_operator(author, "A note")
    now = context.now()

    def write(connection: Connection) -> bool:
        _case(connection, case_id)
        if casebook.newest_note(connection, case_id, author.name) == said:
            return False
        casebook.add_note(connection, case_id, author.name, said, now)
        audit.append(
            connection,
            author.name,
            "note.added",
            f"{author.name} wrote a note.",
            at=now,
            case_id=case_id,
            details={"text": said},
        )
        return True

    return writing.write(context, write)


def adjudicate(
    context: Context, case_id: int, judge: Decider, before: str, after: str, ground: str
) -> str:
    """Judge a case; give the sentence of what was done.

    A case that is no longer open is closed; its device keeps its history all the same.
    """
    if after not in casebook.ADJUDICATIONS:
        message = f"The judgement must be one of {', '.join(casebook.ADJUDICATIONS)}."
        raise Problem(422, "unknown_judgement", message, field="adjudication")
    _needs_operator(judge, "A judgement")
    now = context.now()

    def write(connection: Connection) -> str:
        case = _case(connection, case_id)
        if case.adjudication == after:
            return f"The case was {after} already. Nothing was changed."
        newer = casebook.newer_open_case(connection, case_id) if after == "open" else None
        if newer is not None:
            raise Problem(
                409,
                "newer_case",
                f"A newer case about the same device is open: {ids.show(newer)}. "
                "This one stays closed.",
            )
        if not casebook.adjudicate(connection, case_id, before, after, now):
            raise Problem(
                409,
                "already_decided",
                f"Somebody judged this case meanwhile: it is {case.adjudication}. "
                "Nothing was changed.",
            )
        said = _sentence(connection, case, judge.name, after)
        audit.append(
            connection,
            judge.name,
            "case.reopened" if after == "open" else "case.closed",
            said + (f" Ground: {ground}" if ground else ""),
            at=now,
            case_id=case_id,
            node_id=case.node_id,
            job_id=case.job_id,
            details={"before": before, "after": after, "ground": ground},
        )
        condemned.by_adjudication(connection, case, after, now)
        if after == "open":
            settings = context.settings
            policy = Policy.of(settings)
            judge_cases(connection, [case_id], now, policy)
        else:
            # The new machine is to be screened, and a condemned GPU stopped, all the same.
            but = (SCREENING, condemned.BACK) if after == condemned.CONFIRMED else ()
            why = f"The case was closed as {after}."
            casebook.supersede_waiting(connection, case_id, why, now, but)
            _end_audits(connection, case_id, after, now)
        return said

    return writing.write(context, write)


def _end_audits(connection: Connection, case_id: int, after: str, now: datetime) -> None:
    """Ask for no further audit of a device that is confirmed, or cleared by its software.

    What could not be reproduced stays on probation: that is what probation is for.
    """
    if after != "not reproduced":
        targeted_audits.withdraw(connection, case_id, now)


def _sentence(connection: Connection, case: DocketCase, by: str, after: str) -> str:
    if after == "open":
        return f"Case opened again by {by}."
    said = f"Case closed as {after} by {by}."
    held = held_nodes.held(connection, 10_000) if case.cordon == "ours" else ()
    if any(one.case_id == case.id for one in held):
        said += f" Its node {case.node} stays cordoned until somebody lifts that."
    return said


def _case(connection: Connection, case_id: int) -> DocketCase:
    case = docket_reading.one(connection, case_id)
    if case is None:
        raise not_found("no case with this id")
    return case


def _needs_operator(who: Decider, what: str) -> None:
    if not who.may("operator"):
        raise forbidden(f"{what} needs the role operator; {who.name} has the role {who.role}.")
