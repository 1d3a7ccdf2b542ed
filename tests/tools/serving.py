"""What tests in Python share: a running `varve serve`, and TAP about one store after the other."""

import http.client
import os
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlencode

import genstore

IDLE = 20  # seconds: a server hangs up on who is silent for 30


class Server:
    """A running `varve serve`, at a port of its own."""

    def __init__(self, varve, *arguments):
        self.process = subprocess.Popen([varve, "serve", "--listen", "127.0.0.1:0", *arguments],
                                        stdout=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on http://"), line
        self.address = line.split("//")[1].strip().rstrip("/")
        self.connection = http.client.HTTPConnection(self.address, timeout=120)
        self.asked = time.monotonic()

    def request(self, target, query=(), headers=None, method="GET"):
        """The status, the headers by their names in small letters, and the body."""
        if time.monotonic() - self.asked > IDLE:
            self.connection.close()
        self.connection.request(method, target + ("?" + urlencode(query, doseq=True) if query else ""),
                                headers=headers or {})
        response = self.connection.getresponse()
        answer = response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        self.asked = time.monotonic()
        return answer

    def status(self, key):
        """A number of the process's, as the kernel tells it: sizes in KiB."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

    def memory(self):
        """The most that it has held, in KiB; 0 where a sanitizer keeps what is freed."""
        with open("/proc/%d/exe" % self.process.pid, "rb") as file:
            program = file.read()
        return 0 if b"__asan_init" in program or b"__tsan_init" in program else self.status("VmHWM")

    def stop(self):
        self.connection.close()
        self.process.terminate()
        assert self.process.wait(60) == 0, "the server did not end well"


def each_store(arguments, check, build=genstore.build):
    """
    Calls check(varve, path, scratch, seed) for each store of the arguments VARVE FIRST_SEED SEEDS [STORE...], without a
    seed, and for each that build(seed, scratch) makes. Returns the exit status.
    """
    varve, first, count, stores = arguments[0], int(arguments[1]), int(arguments[2]), arguments[3:]
    failed = 0
    print("1..%d" % (len(stores) + count))
    for at in range(len(stores) + count):
        with tempfile.TemporaryDirectory() as scratch:
            if at < len(stores):
                name, path, seed = os.path.basename(stores[at]), stores[at], None
            else:
                seed = first + at - len(stores)
                name, path = "seed %d" % seed, os.path.join(scratch, ".baml", "profiles-v1")
                build(seed, scratch)
            try:
                check(varve, path, scratch, seed)
                print("ok %d - %s" % (at + 1, name))
            except AssertionError as fault:
                failed += 1
                print("not ok %d - %s\n# %s" % (at + 1, name, str(fault).replace("\n", "\n# ")))
            sys.stdout.flush()
    return 1 if failed else 0
