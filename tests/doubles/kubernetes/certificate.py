"""Where does the server's certificate come from?

Made at test time with nothing but the standard library: an ECDSA key on P-256 and a self-signed
certificate for the loopback. Fit for tests only: the arithmetic is not constant-time.
"""

import base64
import hashlib
import secrets
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_A = _P - 3
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int] | None

_EC_KEY, _P256 = "1.2.840.10045.2.1", "1.2.840.10045.3.1.7"
_ECDSA_SHA256, _COMMON_NAME = "1.2.840.10045.4.3.2", "2.5.4.3"


def _add(p: _Point, q: _Point) -> _Point:
    if p is None or q is None:
        return p or q
    if p[0] == q[0]:
        if (p[1] + q[1]) % _P == 0:
            return None
        slope = (3 * p[0] * p[0] + _A) * pow(2 * p[1], -1, _P) % _P
    else:
        slope = (q[1] - p[1]) * pow(q[0] - p[0], -1, _P) % _P
    x = (slope * slope - p[0] - q[0]) % _P
    return x, (slope * (p[0] - x) - p[1]) % _P


def _times(k: int, point: _Point) -> tuple[int, int]:
    total: _Point = None
    while k:
        if k & 1:
            total = _add(total, point)
        point, k = _add(point, point), k >> 1
    assert total is not None
    return total


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _integer(value: int) -> bytes:
    return _der(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, b"".join(parts))


def _bits(content: bytes, unused: int = 0) -> bytes:
    return _der(0x03, bytes([unused]) + content)


def _oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in dotted.split("."))
    out = bytes([40 * first + second])
    for number in rest:
        chunk = [number & 0x7F]
        while number := number >> 7:
            chunk.append(number & 0x7F | 0x80)
        out += bytes(reversed(chunk))
    return _der(0x06, out)


def _time(moment: datetime) -> bytes:
    return _der(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    flag = _der(0x01, b"\xff") if critical else b""
    return _sequence(_oid(oid), flag, _der(0x04, value))


def _extensions(public: bytes) -> bytes:
    names = _sequence(_der(0x82, b"localhost"), _der(0x87, bytes([127, 0, 0, 1])))
    key_id = _der(0x04, hashlib.sha256(public).digest()[:20])
    return _der(
        0xA3,
        _sequence(
            _extension("2.5.29.19", _sequence(_der(0x01, b"\xff")), critical=True),  # CA
            _extension("2.5.29.15", _bits(bytes([0b10000100]), 2), critical=True),  # key usage
            _extension("2.5.29.14", key_id),
            _extension("2.5.29.17", names),
        ),
    )


def _sign(secret: int, data: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
    while True:
        k = secrets.randbelow(_N - 1) + 1
        r = _times(k, _G)[0] % _N
        s = pow(k, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


def _pem(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"


def make() -> tuple[str, str]:
    """Make a key and a certificate for 127.0.0.1 and localhost; both as PEM."""
    secret = secrets.randbelow(_N - 1) + 1
    x, y = _times(secret, _G)
    public = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    name = _sequence(_der(0x31, _sequence(_oid(_COMMON_NAME), _der(0x0C, b"kubernetes double"))))
    algorithm = _sequence(_oid(_ECDSA_SHA256))
    start = datetime.now(UTC) - timedelta(hours=1)
    body = _sequence(
        _der(0xA0, _integer(2)),
        _integer(secrets.randbits(120) | 1 << 120),
        algorithm,
        name,
        _sequence(_time(start), _time(start + timedelta(days=2))),
        name,
        _sequence(_sequence(_oid(_EC_KEY), _oid(_P256)), _bits(public)),
        _extensions(public),
    )
    certificate = _sequence(body, algorithm, _bits(_sign(secret, body)))
    key = _sequence(
        _integer(1),
        _der(0x04, secret.to_bytes(32, "big")),
        _der(0xA0, _oid(_P256)),
        _der(0xA1, _bits(public)),
    )
    return _pem("EC PRIVATE KEY", key), _pem("CERTIFICATE", certificate)


def server_context(folder: Path) -> tuple[ssl.SSLContext, str]:
    """Make a server's TLS context; give it with the certificate to trust, as PEM."""
    key, certificate = make()
    file = folder / "server.pem"
    file.write_text(key + certificate)
    file.chmod(0o600)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, certificate
