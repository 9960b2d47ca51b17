"""One Python process with all imports done, that the others of embedded Spark are forked from.

Spark starts a Python process for every streaming source and one per kind of worker, and each imports the same for most
of a second. `sluice-python` (worker_python.py), which Spark starts instead, hands its arguments, environment and open
files to this server and waits for the child that is forked here to end. The server ends with the program that started
it, whose pipe is its standard input.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS = "SLUICE_FORKSERVER"
"""Environment variable with the path of the server's socket."""
STANDARD_FILES = (0, 1, 2)
LONGEST_REQUEST_BYTES = 1 << 20
LONGEST_ADDRESS = 100
"""Of a socket's path; the operating system has room for little more."""

_started: subprocess.Popen[bytes] | None = None
_address: str | None = None


def ensure_started() -> str | None:
    """Start the server of this program, unless it runs. Its address, for the environment of those that use it.

    Whoever does not reach it does its own imports; None where there cannot be one.
    """
    global _started, _address
    if _started is not None and _started.poll() is None:
        return _address
    if sys.platform != "linux":
        return None
    folder = tempfile.mkdtemp(prefix="sluice-python-")
    address = str(Path(folder) / "socket")
    if len(address) > LONGEST_ADDRESS:
        os.rmdir(folder)
        return None
    # as Spark has it for its own: hashes of strings must agree between processes
    environment = {**os.environ, ADDRESS: address, "PYTHONHASHSEED": "0"}
    _started = subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.PIPE, env=environment)
    _address = address
    atexit.register(_end, _started, folder)
    return address


def _end(server: subprocess.Popen[bytes], folder: str) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait()
    shutil.rmtree(folder, ignore_errors=True)


def run_in_child(module: str, arguments: list[str]) -> int | None:
    """Have the server run it with this process's files and environment; its exit code, or None without a server."""
    request = json.dumps([module, arguments, dict(os.environ), sys.path, os.getcwd()]).encode()
    if ADDRESS not in os.environ or len(request) > LONGEST_REQUEST_BYTES:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        try:
            server.connect(os.environ[ADDRESS])
            server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LONGEST_REQUEST_BYTES)
            socket.send_fds(server, [request], STANDARD_FILES)
        except OSError:
            return None
        for copied in STANDARD_FILES[:2]:
            os.close(copied)
        code = server.recv(1)
    return code[0] if code else 1


def run_as_program(module: str, arguments: list[str]) -> None:
    """As `python -m` does, also if the module was imported before."""
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def serve(address: str) -> None:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(f"{address}.new")
    listening.listen(64)
    os.rename(f"{address}.new", address)  # whoever sees it is answered
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for children
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _be_child(asking)
        asking.close()


def _be_child(asking: socket.socket) -> None:
    code = 1
    try:
        request, files, _, _ = socket.recv_fds(asking, LONGEST_REQUEST_BYTES, len(STANDARD_FILES))
        module, arguments, environment, path, folder = json.loads(request)
        for standard, file in zip(STANDARD_FILES, files, strict=True):
            os.dup2(file, standard)
            os.close(file)
        # the streams of this process were opened on the server's files
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:] = path
        run_as_program(module, arguments)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            asking.send(bytes([code & 255]))
        os._exit(code)


def main() -> None:
    from sluice.spark.worker_daemon import preload, thread_count

    # Ctrl-C is for the program, which ends its queries first; Spark's own processes ignore it as well
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload()
    if thread_count() == 1:
        serve(os.environ[ADDRESS])


if __name__ == "__main__":
    main()
