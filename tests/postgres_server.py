"""A PostgreSQL server of a test's own: Debian's programs, a temporary folder, a Unix socket.

    with postgres_server.Server() as server:
        server.uri()

tests/postgres_server.py prints the URI, then does what lines on stdin say (start, stop, kill, freeze, thaw,
terminate) and answers each with `ok`; it ends with stdin. tests/postgres_server.py --durable COMMAND ... runs
a command with the URI in $NEREID_TEST_POSTGRES, on a server that waits for the disk.
"""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import processes

SUPERUSER = "nereid"


def program(name):
    """Debian keeps the server's programs out of PATH, a folder for each version."""
    found = sorted(
        pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4])
    )
    if found:
        return str(found[-1])
    if named := shutil.which(name):
        return named
    raise RuntimeError(f"there is no {name}: apt-get install postgresql (tools/setup does)")


def _runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Server:
    """Durable: it waits for the disk, as a server that people use. Others only survive kill -9."""

    def __init__(self, durable=False):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nereid-postgres"))
        self.data, self.words = self.folder / "data", []
        # The server refuses to run as root.
        if os.geteuid() == 0:
            users = {entry.pw_name: entry for entry in pwd.getpwall()}
            user = users.get("postgres") or pwd.getpwuid(65534)
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.words = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.folder.chmod(0o755)
        self.options = (
            f"-k {self.folder} -c listen_addresses= -c log_min_messages=fatal -c"
            f" fsync={'on' if durable else 'off'}"
        )
        try:
            self._run(
                "initdb",
                "-D",
                self.data,
                "-U",
                SUPERUSER,
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            )
            # One user with a password.
            access = self.data / "pg_hba.conf"
            access.write_text("local all secret scram-sha-256\n" + access.read_text())
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self, name, *arguments, **more):
        done = subprocess.run(
            [*self.words, program(name), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            timeout=1200,
            **more,
        )
        if done.returncode != 0:
            log = self.folder / "log"
            raise RuntimeError(f"{name}: {done.stdout}{log.read_text() if log.exists() else ''}")
        return done.stdout

    def uri(self, user=SUPERUSER, database="postgres", password=None):
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def sql(self, statement, database="postgres"):
        """Rows as lines, columns with | between them."""
        return self._run(
            "psql", "-h", self.folder, "-U", SUPERUSER, "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1",
            "-c", statement
        ).strip()  # fmt: skip

    def start(self):
        self._run("pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log", "-o", self.options)

    def stop(self):
        self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", self.data)

    def _pids(self):
        try:
            first = int((self.data / "postmaster.pid").read_text().split()[0])
            if "postgres" not in pathlib.Path(f"/proc/{first}/cmdline").read_text():
                return []
        except (OSError, ValueError, IndexError):
            return []
        return [first, *processes.descendants(first)]

    def _signal(self, how):
        for pid in self._pids():
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def kill(self):
        pids = self._pids()
        self._signal(signal.SIGKILL)
        deadline = time.monotonic() + 300
        while any(map(_runs, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)
        # Where no process reaps it, the killed server's id would be taken for a running one's.
        for lock in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)

    def freeze(self):
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def terminate(self):
        """Ends every connection but the one that asks."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename"
            " IS NOT NULL"
        )

    def close(self):
        self._signal(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    if sys.argv[1:2] == ["--durable"]:
        with Server(durable=True) as server:
            return subprocess.run(
                sys.argv[2:], env={**os.environ, "NEREID_TEST_POSTGRES": server.uri()}
            ).returncode
    with Server() as server:
        print(server.uri(), flush=True)
        for line in sys.stdin:
            getattr(server, line.strip())()
            print("ok", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
