"""Private database servers, each in its own folder, on a Unix socket, as an unprivileged user.

Only programs of the servers are used, including psql and mariadb.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

TIMEOUT = 60
_NIL = "{http://www.w3.org/2001/XMLSchema-instance}nil"


def program(*names):
    """Path of the first of these programs that is installed; else None."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *map(str, places)])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


class Server:
    """A running server; ``run`` sends a script to it and returns the output of the client."""

    def __init__(self, folder):
        self.folder = folder
        # Servers do not run as root.
        self.rights = {"user": "nobody", "extra_groups": []} if os.getuid() == 0 else {}
        if self.rights:
            shutil.chown(folder, "nobody")

    def run(self, script):
        return self.call(self.client(), input=script)

    def call(self, command, **options):
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT, **options
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr}")
        return done.stdout

    def select(self, query):
        """Columns of a query by name, as lists of strings and None."""
        names, *rows = self.table(query)
        assert len(set(names)) == len(names), names
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


class PostgreSQL(Server):
    programs = (("initdb",), ("postgres",), ("psql",))
    standard = ""

    def start(self):
        make = [program("initdb"), "-D", str(self.folder / "data"), "-U", "tests", "--no-sync"]
        self.call([*make, "--auth=trust", "--encoding=UTF8", "--locale=C"], **self.rights)
        where = ["-D", str(self.folder / "data"), "-k", str(self.folder), "-h", "", "-F"]
        return [program("postgres"), *where]

    def client(self):
        return [
            *(program("psql"), "-X", "-q", "-h", str(self.folder), "-U", "tests"),
            *("-d", "postgres", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"),
        ]

    def table(self, query):
        text = self.run(f"COPY (\n{query}\n) TO STDOUT (HEADER);\n")
        # The client writes a line break within a cell as \n.
        cells = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
        return [[None if cell == r"\N" else _unescaped(cell) for cell in row] for row in cells]


class MariaDB(Server):
    programs = (("mariadbd", "mysqld"), ("mariadb", "mysql"))
    # From here on, statements are read as the SQL standard defines.
    standard = (
        "CREATE DATABASE IF NOT EXISTS tests CHARACTER SET utf8mb4; USE tests;\n"
        "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES';\n"
    )

    def start(self):
        # Without user tables, everybody who can reach the socket has all rights.
        return [
            *(program("mariadbd", "mysqld"), "--no-defaults", f"--datadir={self.folder}"),
            *("--skip-grant-tables", "--skip-networking", f"--socket={self.folder / 'socket'}"),
        ]

    def client(self):
        return [
            *(program("mariadb", "mysql"), "--no-defaults", f"--socket={self.folder / 'socket'}"),
            *("--xml", "--default-character-set=utf8mb4"),
        ]

    def table(self, query):
        found = ElementTree.fromstring(self.run(f"USE tests;\n{query};\n"))
        rows = [row.findall("field") for row in found.findall("row")]
        cells = [[None if _NIL in cell.attrib else cell.text or "" for cell in row] for row in rows]
        return [[cell.get("name") for cell in rows[0]], *cells]


@contextlib.contextmanager
def running(kind):
    """A server of this kind, which is stopped at the end; None if it is not installed."""
    if not all(program(*names) for names in kind.programs):
        yield None
        return
    # The path of a socket has at most 107 bytes, and another user must be able to reach it.
    with tempfile.TemporaryDirectory(prefix="sql") as name:
        server = kind(Path(name))
        with (server.folder / "log").open("w") as log:
            process = subprocess.Popen(
                server.start(), stdout=log, stderr=log, cwd=name, **server.rights
            )
            try:
                _wait(server, process)
                yield server
            finally:
                process.terminate()
                process.wait(TIMEOUT)


def _wait(server, process):
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            return server.run("SELECT 1;\n")
        except RuntimeError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((server.folder / "log").read_text()) from None
            time.sleep(0.05)


def _unescaped(cell):
    signs = {"n": "\n", "t": "\t", "0": "\0", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
    return re.sub(r"\\(.)", lambda found: signs.get(found[1], found[1]), cell)
