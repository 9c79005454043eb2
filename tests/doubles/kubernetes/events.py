"""Which Events does the server take, and how does one look in the other group's form?"""

import re
from typing import Any

from tests.doubles.kubernetes.answers import Cause, Json, bad_request, invalid
from tests.doubles.kubernetes.resources import Resource

_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(.*)")
_SIX_DIGITS = re.compile(r"\.\d{6}(Z|[+-]\d\d:\d\d)")
_NOTE_LIMIT = 1024

# From the form of events.k8s.io to that of the core group.
_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: newer for newer, core in _NAMES.items()}
NEWER = "events.k8s.io"


def take_in(resource: Resource, obj: Json) -> Json:
    """Check a new Event and give it in the core form, in which it is stored."""
    if resource.group != NEWER:
        _check_core(obj)
        return _core_defaults(obj)
    _check_micro_time(obj.get("eventTime"))
    core = {_NAMES.get(key, key): value for key, value in obj.items()}
    _check_newer(core)
    core["eventTime"] = _in_utc(core["eventTime"])
    return _core_defaults(core)


def give_out(resource: Resource, obj: Json) -> Json:
    """Give a stored Event in the form of the group that is asked."""
    if resource.group != NEWER:
        return obj
    return {_BACK.get(key, key): value for key, value in obj.items()}


def _core_defaults(obj: Json) -> Json:
    defaults: Json = {
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }
    full = {**defaults, **obj}
    for field in ("firstTimestamp", "lastTimestamp"):
        if isinstance(full[field], str):
            full[field] = full[field][:19] + "Z"  # Whole seconds only.
    return full


def _check_micro_time(value: Any) -> None:
    if value is None:
        return
    found = _MICRO_TIME.fullmatch(str(value))
    if found and _SIX_DIGITS.fullmatch(found.group(2)):
        return
    rest = found.group(2) if found else value
    raise bad_request(
        'Event in version "v1" cannot be handled as a Event: '
        f'parsing time "{value}" as "{_LAYOUT}": cannot parse "{rest}" as ".000000"'
    )


def _in_utc(value: str) -> str:
    return value[:-6] + "Z" if value.endswith("+00:00") else value


def _check_core(obj: Json) -> None:
    """An Event about an object without a namespace goes to `default` only."""
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    namespace = obj["metadata"].get("namespace", "")
    if (about or "default") != namespace:
        cause = Cause(
            "involvedObject.namespace", f'Invalid value: "{about}": does not match event.namespace'
        )
        raise invalid("Event", obj["metadata"].get("name", ""), [cause])


def _check_newer(core: Json) -> None:
    """An Event about an object without a namespace goes to `kube-system` only."""
    causes = []
    if not core.get("eventTime"):
        causes.append(Cause("eventTime", "Required value", "FieldValueRequired"))
        raise invalid("Event", core["metadata"].get("name", ""), causes)
    about = (core.get("involvedObject") or {}).get("namespace", "")
    if (about or "kube-system") != core["metadata"].get("namespace", ""):
        words = f'Invalid value: "{about}": does not match event.namespace'
        causes.append(Cause("involvedObject.namespace", words))
    for field, name in (
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ):
        if not core.get(field):
            causes.append(Cause(name, "Required value", "FieldValueRequired"))
    if len((core.get("message") or "").encode()) > _NOTE_LIMIT:
        words = f'Invalid value: "": can have at most {_NOTE_LIMIT} characters'
        causes.append(Cause("message", words))
    if core.get("type") not in ("Normal", "Warning"):
        words = f'Invalid value: "": has invalid value: {core.get("type")}'
        causes.append(Cause("type", words))
    if causes:
        raise invalid("Event", core["metadata"].get("name", ""), causes)
