"""How does the C source become a library that this process may load?

Compiled at first use with the machine's compiler and kept in a cache of this user, so that 32 ranks
and the next start find it. What other users of the machine could have written is never loaded. The
name of the library is a hash of source, flags and processor: a home directory may be shared between
machines that understand different instructions.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOURCE = Path(__file__).with_name("sums.c")
COMPILERS = ("cc", "gcc", "clang")
# The second set is for compilers that do not know the first.
FLAGS = (
    ("-O3", "-march=native", "-std=gnu11", "-fPIC", "-shared"),
    ("-O3", "-std=gnu11", "-fPIC", "-shared"),
)
COMPILE_S = 60.0
# How long a rank waits for another one that compiles the same before it does so itself.
TURN_S = 90.0
LOOK_AGAIN_S = 0.05
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class NotBuilt(Exception):
    """There is no library; the message says why."""


def cache_folder() -> Path:
    """Give the folder of compiled libraries: WITNESS_CACHE, or one in the user's cache folder."""
    if named := os.environ.get("WITNESS_CACHE"):
        return Path(named).expanduser()
    above = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(above).expanduser() / "silent-witness"


def load(works: Callable[[ctypes.CDLL], bool]) -> ctypes.CDLL:
    """Give a library that `works`, from the cache or compiled now. Raises NotBuilt."""
    with suppress(OSError, RuntimeError, NotBuilt):
        kept = _kept(cache_folder(), works)
        if kept is not None:
            return kept
    # The cache is of no use: a library for this process alone.
    try:
        with tempfile.TemporaryDirectory(prefix="silent-witness-") as folder:
            library = ctypes.CDLL(str(compile_into(Path(folder))))
    except OSError as error:
        raise NotBuilt(f"a compiled library could not be loaded: {error}") from error
    if not works(library):
        raise NotBuilt("what the compiler made gives other sums than plain torch")
    return library


def _kept(folder: Path, works: Callable[[ctypes.CDLL], bool]) -> ctypes.CDLL | None:
    """Load from the cache, filling it if need be; None where it cannot be trusted or used."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = folder.resolve()
    if not _only_ours(folder):
        return None
    target = folder / f"{library_name()}.so"
    if not target.exists():
        with _turn(target.with_suffix(".lock")):
            if not target.exists():
                _fill(target)
    if not _only_ours(target):
        return None
    with suppress(OSError):
        library = ctypes.CDLL(str(target))
        if works(library):
            return library
    target.unlink()  # Damaged: the next start makes it anew.
    return None


def _fill(target: Path) -> None:
    """Put a whole library in its place at once, or nothing."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as inside:
        made = compile_into(Path(inside))
        made.chmod(0o500)
        with made.open("rb") as written:
            os.fsync(written.fileno())
        made.replace(target)


def library_name() -> str:
    """Give the name that changes with whatever could make a kept library the wrong one."""
    parts = (SOURCE.read_bytes(), repr(FLAGS).encode(), *(x.encode() for x in _processor()))
    return "sums-" + hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _processor() -> Iterator[str]:
    yield platform.machine()
    yield platform.system()
    with suppress(OSError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
        for line in told.partition("\n\n")[0].splitlines():
            if line.startswith(names):
                yield line


def _only_ours(path: Path) -> bool:
    """Tell whether nobody but this user and root can change what lies here, links included."""
    mine = (0, os.geteuid())
    for step in (path, *path.parents):
        found = step.lstat()
        sticky = step != path and bool(found.st_mode & stat.S_ISVTX)
        if found.st_uid not in mine or stat.S_ISLNK(found.st_mode):
            return False
        if found.st_mode & WRITABLE_BY_OTHERS and not sticky:
            return False
    return True


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Wait until no other process compiles, at most TURN_S; without locks, go on at once."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with suppress(ImportError, OSError):
            _lock(fd, time.monotonic() + TURN_S)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, until: float) -> None:
    import fcntl

    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return
            time.sleep(LOOK_AGAIN_S)
        else:
            return


def compile_into(folder: Path) -> Path:
    """Compile the source into this folder; give the library. Raises NotBuilt."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise NotBuilt(f"no compiler: none of {', '.join(COMPILERS)} is on the path")
    made, said = folder / "sums.so", ""
    for flags in FLAGS:
        command = [compiler, *flags, "-o", str(made), str(SOURCE)]
        try:
            run = subprocess.run(  # noqa: S603 - our own source, a compiler from the path
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=COMPILE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotBuilt(f"{compiler}: {error}") from error
        if run.returncode == 0 and made.exists():
            return made
        said = run.stderr.decode(errors="replace").strip()
    raise NotBuilt(f"{compiler} failed: {said[-500:]}")
