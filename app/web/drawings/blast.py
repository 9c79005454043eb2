"""How is the blast radius drawn: from the device to jobs to their checkpoints?"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from app.store.blast_reading import ReachedJob
from app.web.drawings.shapes import Drawing

SHOWN = 5
STEP, BOX, TOP = 78, 44, 26


def blast(device: str, where: str, jobs: Sequence[ReachedJob], key: str) -> Markup:
    """Draw the jobs of the strongest levels; the table beside it has them all."""
    shown = jobs[:SHOWN]
    height = TOP + max(len(shown), 1) * STEP - (STEP - BOX) + 20
    drawing = Drawing(700, height)
    for x, title in ((0, "Device"), (190, "Jobs that ran on it"), (490, "Checkpoints")):
        drawing.text(x, 12, title, "tiny")
    _box(drawing, 0, TOP, 150, "f-sur s-sus w25", device, where)
    for place, job in enumerate(shown):
        _job(drawing, TOP + place * STEP, job)
    said = ", ".join(f"{job.job} {job.level}" for job in shown) or "no job is known"
    return drawing.finish(f"br{key}", f"Blast radius of {device}", said)


def _job(drawing: Drawing, y: float, job: ReachedJob) -> None:
    tainted = job.level == "tainted"
    edge = "f-none s-sus w2" if tainted else "f-none s-edge"
    if job.level == "exposed":
        edge += " dash"
    middle, start = y + BOX / 2, TOP + BOX / 2
    drawing.path(f"M150 {start}C170 {start} 170 {middle} 190 {middle}", edge)
    box = "f-sur s-sus w25" if tainted else "f-sur s-edge"
    _box(drawing, 190, y, 264, box, _cut(job.job, 34), _steps(job))
    drawing.text(454, y - 4, job.level, "rgt t-sus tt" if tainted else "rgt tt")
    drawing.path(f"M454 {middle}H490", edge)
    inside = "f-sur s-sus w25" if job.inside else "f-sunk s-line"
    _box(drawing, 490, y, 206, inside, *_saved(job))


def _box(
    drawing: Drawing, x: float, y: float, width: float, cls: str, head: str, line: str
) -> None:
    drawing.rect(x, y, width, BOX, cls, rx=4)
    drawing.text(x + 10, y + 17, head, "b")
    drawing.text(x + 10, y + 33, line)


def _steps(job: ReachedJob) -> str:
    if job.window is not None:
        return f"suspect steps {job.window[0]:,} to {job.window[1]:,}"
    if job.first_step is None or job.last_step is None:
        return "no pass was reported"
    return f"checked steps {job.first_step:,} to {job.last_step:,}"


def _saved(job: ReachedJob) -> tuple[str, str]:
    if not job.saved:
        return "none known", "none was reported"
    if job.window is None:
        return f"{job.saved:,} saved", f"newest step {job.newest_saved:,}"
    before = "none before it" if job.before is None else f"newest before it: {job.before:,}"
    return f"{job.inside:,} inside the window", before


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
