"""How many replicas hold other weights than the rest, drawn one square a rank?"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.actions.alarm_dossier import Dossier
from app.web.drawings.shapes import Drawing
from witness.rules import words

MOST_SQUARES = 256
_COLUMNS, _PITCH, _SIDE = 16, 21.0, 15.0


@dataclass(frozen=True, slots=True)
class Replicas:
    """The drawing (None: too many or unknown) and what it says in words."""

    drawing: Markup | None
    says: str


def replicas_of(dossier: Dossier) -> Replicas | None:
    """Draw which replicas differ; None for a check that compares no weights."""
    alarm, world = dossier.alarm, dossier.setting.world_size
    if alarm.check != "weights":
        return None
    suspects = sorted({rank for rank in alarm.suspects or () if world is None or rank < world})
    says = _says(dossier, suspects)
    if world is None or world > MOST_SQUARES or not suspects:
        return Replicas(None, says)
    rows = -(-world // _COLUMNS)
    drawing = Drawing(_COLUMNS * _PITCH, rows * _PITCH)
    named = set(suspects)
    for rank in range(world):
        row, column = divmod(rank, _COLUMNS)
        x, y = column * _PITCH + 2, row * _PITCH + 3
        if rank in named:
            drawing.rect(x, y, _SIDE, _SIDE, "f-sus")
            drawing.path(f"M{x + 4} {y + 4}l7 7m0 -7l-7 7", "s-sur w2")
        else:
            drawing.rect(x, y, _SIDE, _SIDE, "f-sur s-edge")
    return Replicas(drawing.finish("replicas", "Replicas by rank", says, fluid=True), says)


def _says(dossier: Dossier, suspects: list[int]) -> str:
    world, state = dossier.setting.world_size, dossier.alarm.suspects_state
    if state == "null":
        return (
            "The replicas differ, and no strict majority of them agrees. With two replicas, or an "
            "even split, the check cannot say which one is wrong."
        )
    if state == "empty":
        return "The check says that weights differ and names nobody. A person must look."
    if state == "missing":
        return (
            "The alarm does not say whom the check suspects. It is incomplete; a person must look."
        )
    of = f"{world:,} replicas" if world is not None else "replicas whose number is not known"
    verb = "differs" if len(suspects) == 1 else "differ"
    named = words.ranks(suspects)
    return (
        f"{named[:1].upper()}{named[1:]} of {of} {verb} from a strict majority in some tensor. "
        "The majority is not free of it: the gradients of every replica went into all of them."
    )
