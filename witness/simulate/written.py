"""Which document says what the fault table came out as, and by which command?"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from pathlib import Path

import torch

from witness.simulate.model import Job
from witness.simulate.scenarios import Layout
from witness.simulate.table import Row, as_markdown, run_table

LAYOUTS = (Layout(4, 8), Layout(3, 8), Layout(3, 1))

HEAD = """# The fault table

Written by `make fault-table` (`python -m witness.simulate --table --write docs/fault-table.md`) \
with silent-witness {version}, Python {python}, torch {torch}, {cpus} CPU cores, no GPU; not to be \
edited by hand.

Each row is a training run of real gloo processes, one a GPU: a decoder of {blocks} blocks under \
autocast to bfloat16, whose ranks train, audit and compare weights every 10 steps and save every \
20, from step 20. The fault sits in the down projection of the MLP of the middle block. A pair is \
(target, replayer). "As expected" covers everything in the row: step, check, pairs, third rank, \
verdict, names, window, what was saved and its tags, and that every rank raised the same alarm.

The last three rows of each table are our own; the others are those published for 4 and 3 nodes \
of 8 GPUs, the one miss included. A miss is the answer that is expected there: audits with the \
default kernels compare the loss only, and this fault does not touch the loss.
"""


def write(path: Path, job: Job, timeout_s: float) -> list[Row]:
    """Run the table in every layout and write it down; give the rows."""
    sections, every = [], []
    for layout in LAYOUTS:
        began = time.monotonic()
        rows = run_table(layout, job, timeout_s=timeout_s)
        took = time.monotonic() - began
        met = sum(row.met for row in rows)
        title = f"## {layout.nodes} nodes of {layout.gpus}, {layout.world_size} ranks"
        said = f"{met} of {len(rows)} rows as expected; {took:.0f} s on this machine.\n"
        sections.append(f"{title}\n\n{said}\n{as_markdown(rows)}")
        every += rows
    path.write_text("\n".join([_head(job), *sections]), encoding="utf-8")
    return every


def _head(job: Job) -> str:
    return HEAD.format(
        version=importlib.metadata.version("silent-witness"),
        python=platform.python_version(),
        torch=torch.__version__,
        cpus=os.cpu_count(),
        blocks=job.shape.blocks,
    )
