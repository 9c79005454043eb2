"""Which GPU, which instance and which node does a spelling mean?

History hangs on these three, so a spelling that cannot be trusted becomes None, never a guess.
"""

import re
from dataclasses import dataclass
from typing import Literal

UuidForm = Literal["full", "short", "mig", "index", "invalid", "missing"]

_BLANK = frozenset(
    {"", "none", "null", "nan", "n/a", "[n/a]", "undefined", "<none>", "<nil>", "nil"}
)
"""What launchers write where they have no value."""

_HEX = "[0-9a-f]"
_UUID = re.compile(rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}")
_UNDASHED = re.compile(rf"{_HEX}{{32}}")
_WRAPPED = re.compile(r"""(?:b|uuid)?\s*\(?\s*(['"])(.*)\1\s*\)?""")
_INDEX = re.compile(r"(?:/dev/)?(?:nvidia|cuda|gpu|device)?[ :_-]?\d{1,4}")
_INSTANCE = re.compile(r"i-(?:[0-9a-f]{17}|[0-9a-f]{8})")
_PROVIDER = re.compile(r"aws://(?:.*[/-])?(i-(?:[0-9a-f]{17}|[0-9a-f]{8}))")
_PLACEHOLDER = re.compile(r"\$[({]?[A-Za-z_][A-Za-z0-9_.]*[)}]?")
_NIL = "00000000-0000-0000-0000-000000000000"
SHORTEST_PREFIX = 4
"""With fewer digits after `GPU-` a prefix fits too many devices to be worth a look-up."""


@dataclass(frozen=True, slots=True)
class GpuUuid:
    """One spelling of a GPU's identity.

    `canonical` is `GPU-` and 36 lower-case characters, or None where the spelling does not give
    it. For a MIG device it is the parent GPU's where the name holds it, else the MIG device's own
    (`MIG-…`). `prefix` is set for a short id: the start that the canonical form must have.
    """

    text: str | None
    canonical: str | None
    form: UuidForm
    prefix: str | None = None

    def fits(self, canonical: str) -> bool:
        """Tell whether a full UUID is the one meant here, or starts like this short id."""
        if self.canonical is not None:
            return self.canonical == canonical
        return self.prefix is not None and canonical.startswith(self.prefix)


def gpu_uuid(text: str | None) -> GpuUuid:
    """Read any spelling of a GPU UUID: case, missing prefix, quotes, bytes repr, MIG, short."""
    bare = (text or "").strip().lower()
    wrapped = _WRAPPED.fullmatch(bare)
    if wrapped:
        bare = wrapped.group(2).strip()
    if bare in _BLANK:
        return GpuUuid(text, None, "missing")
    if bare.startswith("mig-"):
        return _mig(text, bare.removeprefix("mig-"))
    prefixed = bare.startswith("gpu-")
    digits = bare.removeprefix("gpu-")
    canonical = _canonical(digits)
    if canonical is not None:
        return GpuUuid(text, canonical, "full")
    if _INDEX.fullmatch(bare) and not (prefixed and len(digits) >= SHORTEST_PREFIX):
        return GpuUuid(text, None, "index")
    if len(digits) >= (SHORTEST_PREFIX if prefixed else 8) and _starts_uuid(digits):
        return GpuUuid(text, None, "short", f"GPU-{digits}")
    return GpuUuid(text, None, "invalid")


def instance_id(node: str | None, given: str | None, provider_id: str | None = None) -> str | None:
    """Find the EC2 instance id: `i-` and 8 or 17 lower-case hex digits, else None.

    The map's own field counts first, then the provider id, then a node name of the form
    `hyperpod-i-…` or `i-…`. Sources that contradict each other give None: an id that may belong
    to another machine must not reach a call that destroys one.
    """
    found = {
        one
        for one in (_given_instance(given), _provider_instance(provider_id), _node_instance(node))
        if one is not None
    }
    return found.pop() if len(found) == 1 else None


def node_name(text: str | None) -> str | None:
    """Give the node's name, or None for blanks, "None", "null" and an unexpanded variable."""
    name = (text or "").strip()
    if name.lower() in _BLANK or _PLACEHOLDER.fullmatch(name):
        return None
    return name


def _canonical(digits: str) -> str | None:
    if _UNDASHED.fullmatch(digits):
        digits = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f"GPU-{digits}" if _UUID.fullmatch(digits) and digits != _NIL else None


def _starts_uuid(digits: str) -> bool:
    """Tell whether digits and dashes stand where a UUID has them."""
    return len(digits) < len(_NIL) and all(
        (have == "-") if want == "-" else have in "0123456789abcdef"
        for have, want in zip(digits, _NIL, strict=False)
    )


def _mig(text: str | None, rest: str) -> GpuUuid:
    """Read `MIG-GPU-<uuid>/<gi>/<ci>` (parent known) or `MIG-<uuid>` (parent not in the name)."""
    parent = _canonical(rest.removeprefix("gpu-").split("/", 1)[0])
    if parent is None:
        return GpuUuid(text, None, "invalid")
    if rest.startswith("gpu-"):
        return GpuUuid(text, parent, "mig")
    return GpuUuid(text, f"MIG-{parent.removeprefix('GPU-')}", "mig")


def _given_instance(given: str | None) -> str | None:
    text = (given or "").strip()
    return text if _INSTANCE.fullmatch(text) else _provider_instance(text)


def _provider_instance(provider_id: str | None) -> str | None:
    match = _PROVIDER.fullmatch((provider_id or "").strip())
    return match.group(1) if match else None


def _node_instance(node: str | None) -> str | None:
    name = (node or "").strip().removeprefix("hyperpod-")
    return name if _INSTANCE.fullmatch(name) else None
