"""Processes forked from a warm one behave as if started by themselves: files, environment, folder, exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.spark import forkserver, worker_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forked only on Linux")

ECHO = """
import os, sys
print(sys.argv[1:], os.environ["COLOUR"], os.getcwd(), os.getppid(), "pyarrow" in sys.modules)
print(sys.stdin.read())
print("trouble", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    pytest.importorskip("pyspark")
    before = dict(os.environ)
    forkserver.ensure_started()
    assert os.environ == before
    assert forkserver._started is not None
    yield forkserver._started.pid
    assert forkserver._started.poll() is None, "a child must not end it"


def run(folder: Path, *arguments: str, address: str | None = None) -> subprocess.CompletedProcess[str]:
    (folder / "echo.py").write_text(ECHO)
    address = address or forkserver.ensure_started()
    assert address is not None
    environment = {**os.environ, "COLOUR": "blue", forkserver.ADDRESS: address}
    return subprocess.run(
        [worker_python.command(), *arguments],
        cwd=folder,
        env=environment,
        input="fed",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def wait_for_socket() -> None:
    """The server listens when its imports are done."""
    address = forkserver.ensure_started()
    assert address is not None
    while not Path(address).exists():
        assert forkserver._started is not None
        assert forkserver._started.poll() is None
        time.sleep(0.05)


@pytest.mark.parametrize("code", [0, 7])
def test_a_forked_process_is_the_child_of_the_server_in_all_but_its_imports(
    server: int, tmp_path: Path, code: int
) -> None:
    wait_for_socket()
    os.kill(server, signal.SIGINT)
    done = run(tmp_path, "-m", "echo", str(code), "two words")
    assert (done.returncode, done.stderr) == (code, "trouble\n")
    assert done.stdout == f"['{code}', 'two words'] blue {tmp_path} {server} True\nfed\n"


def test_a_module_that_raises_shows_its_traceback(server: int, tmp_path: Path) -> None:
    wait_for_socket()
    done = run(tmp_path, "-m", "echo", "not a number")
    assert done.returncode == 1
    assert "ValueError: invalid literal" in done.stderr


def test_without_a_server_it_runs_by_itself(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "echo", "3", address=str(tmp_path / "nobody"))
    assert (done.returncode, done.stderr) == (3, "trouble\n")
    assert "blue" in done.stdout
    assert done.stdout.endswith("False\nfed\n")


def test_for_anything_but_a_module_it_is_plain_python(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", "import sys; print(sys.argv, sys.version_info.major)", "one")
    assert (done.returncode, done.stdout) == (0, "['-c', 'one'] 3\n")


def test_the_server_ends_with_its_program(tmp_path: Path) -> None:
    program = "from sluice.spark import forkserver as f; f.ensure_started(); print(f._started.pid)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
