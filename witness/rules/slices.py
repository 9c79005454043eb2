"""How many hosts does a TPU slice have?  They recover only together."""

from __future__ import annotations

import re
from math import prod

TOPOLOGY = "cloud.google.com/gke-tpu-topology"
POOL = "cloud.google.com/gke-nodepool"
CHIPS = "google.com/tpu"
_TOPOLOGY = re.compile(r"\d{1,4}(x\d{1,4}){1,2}")


def hosts_of_slice(topology: str | None, chips: object) -> int | None:
    """Give the number of hosts from the slice's topology, such as "4x4", and the chips of one host.

    None where either is missing, cannot be read, or they do not divide.
    """
    text = str(chips)
    if not topology or not _TOPOLOGY.fullmatch(topology) or not text.isdecimal() or not int(text):
        return None
    whole = prod(int(one) for one in topology.split("x"))
    return whole // int(text) if whole and whole % int(text) == 0 else None
