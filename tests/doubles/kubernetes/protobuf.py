"""What does the access review say that kubectl sends as protobuf?

Only this one message is read; answers are JSON, which kubectl takes as well.
"""

from collections.abc import Iterator

from tests.doubles.kubernetes.answers import Json, unsupported_body

MAGIC = b"k8s\x00"
_LENGTH_DELIMITED = 2
_ATTRIBUTES = {1: "namespace", 2: "verb", 3: "group", 4: "version", 5: "resource",
               6: "subresource", 7: "name"}  # fmt: skip
_NON_RESOURCE = {1: "path", 2: "verb"}


def read_access_review(body: bytes) -> Json:
    """Give the JSON form of a SelfSubjectAccessReview."""
    if not body.startswith(MAGIC):
        raise unsupported_body()
    unknown = dict(_fields(body[len(MAGIC) :]))
    type_meta = dict(_fields(unknown[1]))
    if type_meta.get(2) != b"SelfSubjectAccessReview":
        raise unsupported_body()
    spec_bytes = dict(_fields(unknown[2])).get(2, b"")
    spec: Json = {}
    for number, value in _fields(spec_bytes):
        if number == 1:
            spec["resourceAttributes"] = _named(value, _ATTRIBUTES)
        elif number == 2:
            spec["nonResourceAttributes"] = _named(value, _NON_RESOURCE)
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": type_meta[1].decode(),
        "metadata": {},
        "spec": spec,
    }


def _named(value: bytes, names: dict[int, str]) -> Json:
    return {names[n]: text.decode() for n, text in _fields(value) if n in names and text}


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Give the length-delimited fields; numbers are skipped."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == _LENGTH_DELIMITED:
            size, at = _varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            _, at = _varint(data, at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
