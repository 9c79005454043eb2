"""Is the compiled library kept, shared and trusted only where that is safe?"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from tests.witness_fingerprints.definition import defined
from witness.ddp.fingerprints import build, compiled

OTHER_USER = 65_534


@pytest.fixture(autouse=True)
def _short_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Compile two lines in place of the sums, which take the compiler a second each time."""
    if "real_source" not in request.fixturenames:
        short = tmp_path / "short.c"
        short.write_text("int witness_sums(void);\nint witness_sums(void) { return 7; }\n")
        monkeypatch.setattr(build, "SOURCE", short)


@pytest.fixture
def real_source() -> None:
    """Keep the package's own source."""


def works(library: ctypes.CDLL) -> bool:
    return hasattr(library, "witness_sums")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("WITNESS_CACHE", str(folder))
    return folder


@pytest.fixture
def without_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "no-programs"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))


def kept(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.so"))


def test_the_second_start_compiles_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    build.load(works)
    assert [one.stem for one in kept(cache)] == [build.library_name()]
    assert cache.stat().st_mode & 0o777 == 0o700
    assert kept(cache)[0].stat().st_mode & 0o777 == 0o500
    monkeypatch.setenv("PATH", str(tmp_path))
    assert works(build.load(works))


@pytest.mark.usefixtures("real_source")
def test_another_source_or_other_flags_give_another_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = build.library_name()
    monkeypatch.setattr(build, "FLAGS", (("-O1", "-fPIC", "-shared"),))
    other_flags = build.library_name()
    changed = tmp_path / "sums.c"
    changed.write_bytes(build.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(build, "SOURCE", changed)
    assert len({before, other_flags, build.library_name()}) == 3


def test_another_processor_gives_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.library_name()
    monkeypatch.setattr(build, "_processor", lambda: iter(["x86_64", "flags: fpu"]))
    assert build.library_name() != before


@pytest.mark.usefixtures("without_compiler", "cache")
def test_without_a_compiler_the_reason_is_said() -> None:
    with pytest.raises(build.NotBuilt, match="no compiler: none of cc, gcc, clang"):
        build.load(works)


@pytest.mark.usefixtures("cache")
def test_a_compiler_that_knows_no_native_flag_gets_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("cc")
    own = tmp_path / "bin"
    own.mkdir()
    (own / "cc").write_text(
        f'#!/bin/sh\ncase "$*" in *native*) echo unknown >&2; exit 1;; esac\nexec {real} "$@"\n'
    )
    (own / "cc").chmod(0o700)
    monkeypatch.setenv("PATH", f"{own}:{os.environ['PATH']}")
    assert works(build.load(works))


@pytest.mark.usefixtures("cache")
def test_what_a_failing_compiler_says_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho 'fatal: no header' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(build.NotBuilt, match="fatal: no header"):
        build.load(works)


def test_a_library_that_gives_other_sums_is_not_used(cache: Path) -> None:
    with pytest.raises(build.NotBuilt, match="other sums"):
        build.load(lambda library: False)
    assert kept(cache) == []


def test_a_damaged_library_in_the_cache_is_made_anew(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    damaged = cache / f"{build.library_name()}.so"
    damaged.write_bytes(b"\x7fELF and nothing more")
    damaged.chmod(0o500)
    assert works(build.load(works))
    assert works(build.load(works))
    assert damaged.stat().st_size > 4096


@pytest.mark.parametrize("mode", [0o770, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(cache: Path, mode: int) -> None:
    cache.mkdir()
    cache.chmod(mode)
    planted = cache / f"{build.library_name()}.so"
    planted.write_bytes(b"planted")
    assert works(build.load(works))
    assert planted.read_bytes() == b"planted"


def test_a_library_that_others_may_write_to_is_not_loaded(cache: Path) -> None:
    build.load(works)
    kept(cache)[0].chmod(0o720)
    before = loaded_from(cache)
    assert works(build.load(works))
    assert loaded_from(cache) == before


def test_a_link_in_the_place_of_a_library_is_not_followed(cache: Path, tmp_path: Path) -> None:
    cache.mkdir(mode=0o700)
    elsewhere = build.compile_into(tmp_path)
    (cache / f"{build.library_name()}.so").symlink_to(elsewhere)
    assert works(build.load(works))
    assert loaded_from(tmp_path / "sums.so") == 0


def loaded_from(place: Path) -> int:
    """Count the mappings of this process that lie in a place."""
    return sum(str(place) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_what_another_user_owns_is_not_loaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.load(works)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER_USER)
    allowed = build._only_ours(cache)
    monkeypatch.undo()
    assert allowed == (cache.stat().st_uid == 0)


@pytest.mark.parametrize("place", ["/proc/no-such-folder", "/dev/null/below", "~nobody-at-all/x"])
def test_where_no_folder_can_be_made_the_library_is_this_process_s_own(
    place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("WITNESS_CACHE", place)
    assert works(build.load(works))
    assert list(here.iterdir()) == []


def test_a_home_that_is_unknown_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WITNESS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "~nobody-at-all/cache")
    assert works(build.load(works))


@pytest.mark.usefixtures("real_source")
def test_thirty_two_processes_at_once_compile_once_and_all_agree(
    tmp_path: Path, cache: Path
) -> None:
    counted = tmp_path / "bin"
    counted.mkdir()
    real = shutil.which("cc")
    (counted / "cc").write_text(f'#!/bin/sh\necho x >> {tmp_path}/calls\nexec {real} "$@"\n')
    (counted / "cc").chmod(0o700)
    # Without torch, which would take 32 times its start: the folder is the question here.
    program = textwrap.dedent(
        f"""
        import importlib.util, sys
        spec = importlib.util.spec_from_file_location("build", {str(build.__file__)!r})
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        print(hasattr(module.load(lambda library: True), "witness_sums"))
        """
    )
    environment = {**os.environ, "PATH": f"{counted}:{os.environ['PATH']}"}
    running = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", program],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(32)
    ]
    assert {one.communicate(timeout=100)[0].strip() for one in running} == {"True"}
    assert (tmp_path / "calls").read_text().count("x") == 1
    assert sorted(one.suffix for one in cache.iterdir()) == [".lock", ".so"]


@pytest.mark.usefixtures("real_source")
def test_the_library_made_without_native_flags_gives_the_same_sums(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build, "FLAGS", build.FLAGS[1:])
    plain = ctypes.CDLL(str(build.compile_into(tmp_path)))
    assert compiled._works(plain)
    row = torch.arange(-3000, 3001, dtype=torch.int16)
    assert compiled._sums(plain, [row], 2, 8, 0)[0].tolist() == defined(row, 2, 8)
