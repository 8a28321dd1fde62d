"""PostgreSQL for the tests: the real server, if Debian's package or PATH has it."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.gateway import free_ports

MISSING = "postgresql is not installed"

DEBIAN = Path("/usr/lib/postgresql")

PASSWORD = "canary-postgres-password"


def program(name: str) -> Path | None:
    """Return the path of one of the server's programs. Of Debian's programs, the newest version comes first."""
    versions = sorted(DEBIAN.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1]
    found = shutil.which(name)
    return None if found is None else Path(found).resolve()


@dataclass(slots=True)
class RealPostgres:
    """A server that may be killed and restarted on its port, with its data."""

    folder: Path
    port: int
    owner: str | None
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)
    _made: int = field(default=0, init=False)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://dragoman:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        command = [str(_required("postgres")), "-D", str(self.folder / "data"), "-p", str(self.port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
        with (self.folder / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, user=self.owner)
        ready = [str(_required("pg_isready")), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        while self.process.poll() is None:
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.02)
        raise AssertionError((self.folder / "postgres.log").read_text(encoding="utf-8"))

    def stop(self) -> None:
        """Kill the server at once. Committed data remains."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None

    def fresh_database(self) -> str:
        """Return the address of a new, empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)

    def run(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())


def _required(name: str) -> Path:
    found = program(name)
    if found is None:
        pytest.skip(MISSING)
    return found


@contextmanager
def real_postgres() -> Iterator[RealPostgres]:
    """Run a server for the duration of the block. Skip the test if the server is not installed, or if the user is root,
    for which it refuses to run."""
    initdb = _required("initdb")
    owner = "postgres" if os.geteuid() == 0 else None
    (port,) = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
    if owner is not None:
        os.chown(folder, pwd.getpwnam(owner).pw_uid, -1)
    word = folder / "password"
    word.write_text(PASSWORD, encoding="utf-8")
    word.chmod(0o644)
    command = [str(initdb), "-D", str(folder / "data"), "-U", "dragoman", "-A", "scram-sha-256", "-N", "-E", "UTF8"]
    subprocess.run([*command, f"--pwfile={word}"], check=True, capture_output=True, user=owner, cwd=folder)
    server = RealPostgres(folder, port, owner)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
