#!/usr/bin/env python3
"""`varve serve` under load: one fold for however many ask, nobody waits for another's, answers of any length in bounded
memory, and nothing is left of clients that hang up. Speaks TAP.

usage: load_test.py VARVE VARVE-LUA SCRATCH-DIRECTORY DEPTH MEASURE    of calls: 2 * 2^DEPTH contexts; MEASURE 0: memory
is not looked at, as where a sanitizer keeps what is freed
"""

import hashlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import serving  # noqa: E402

PROGRAM = """
local f, g
function f(n) if n > 0 then f(n - 1) g(n - 1) end end
function g(n) if n > 0 then f(n - 1) g(n - 1) end end
f(%d)
"""
WHOLE = "/api/v1/flame?execution=latest&max_nodes=1000000&ids=1"
CROWD, SLOW, HANGING = 100, 3, 12
CROWD_DEPTH = 14
TIGHT_MIB, TURNS = 40, 12  # for a tree of that depth
NODE_BYTES = 160  # what a node of a table may take, beside the fold


class Server(serving.Server):
    def __init__(self, varve, store, memory=4096):
        super().__init__(varve, store, "--no-index", "--memory", str(memory))
        self.proc = "/proc/%d/" % self.process.pid

    def resident(self):
        return self.status("VmRSS") * 1024

    def bytes_read(self):
        with open(self.proc + "io", encoding="ascii") as f:
            return int(f.readline().split()[1])

    def descriptors(self):
        return len(os.listdir(self.proc + "fd"))

    def get(self, target):
        """Status, length and digest of an answer, and that of the process's peak on the way."""
        c = http.client.HTTPConnection(self.address, timeout=600)
        c.request("GET", target)
        r = c.getresponse()
        digest, n = hashlib.sha256(), 0
        while True:
            part = r.read(1 << 16)
            if not part:
                break
            digest.update(part)
            n += len(part)
        c.close()
        return r.status, n, digest.digest()

    def begin(self, target):
        """A connection whose answer has begun, and goes no further."""
        host, port = self.address.split(":")
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(600)
        s.connect((host, int(port)))
        s.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target).encode())
        assert s.recv(1000).startswith(b"HTTP/1.1 200")
        return s

    def stop(self):
        self.process.terminate()
        return self.process.wait(120)


class Test:
    def __init__(self):
        self.n, self.failed = 0, False

    def ok(self, good, name, got=""):
        self.n += 1
        self.failed |= not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.n, name))
        print("# %s" % (got,))
        sys.stdout.flush()


def until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def record(varve_lua, scratch, depth):
    program = os.path.join(scratch, "tree.lua")
    with open(program, "w", encoding="ascii") as f:
        f.write(PROGRAM % depth)
    store = os.path.join(scratch, str(depth), "profiles-v1")
    env = dict(os.environ, BAML_PROFILE_DIR=store)
    env.pop("BAML_PROFILE", None)
    subprocess.run([varve_lua, program], check=True, env=env)
    return store


def one_fold(t, varve, store):
    """What is read of the store by a crowd, against what one reads."""
    target = "/api/v1/flame?execution=latest&max_nodes=100"
    single = Server(varve, store)
    answer = single.get(target)
    alone = single.bytes_read()
    single.stop()
    server = Server(varve, store)
    answers = []
    crowd = [threading.Thread(target=lambda: answers.append(server.get(target))) for _ in range(CROWD)]
    for c in crowd:
        c.start()
    for c in crowd:
        c.join()
    together = server.bytes_read()
    t.ok(answers == [answer] * CROWD and answer[0] == 200, "%d ask at once, and get the same" % CROWD)
    t.ok(together < alone * 5 // 4, "it is read once", "%d bytes alone, %d together" % (alone, together))
    t.ok(server.stop() == 0, "end")


def takes_turns(t, varve, store):
    """Where the table of one answer has room, each of a crowd has, one after the other."""
    server = Server(varve, store, TIGHT_MIB)
    got = []

    def ask(number):
        got.append(server.get("/api/v1/flame?execution=latest&max_nodes=1000000&transform=hide:none%d" % number)[0])
    ask(0)
    t.ok(got == [200], "a table that %d MiB have room for" % TIGHT_MIB)
    crowd = [threading.Thread(target=ask, args=(at,)) for at in range(1, TURNS + 1)]
    for c in crowd:
        c.start()
    for c in crowd:
        c.join()
    t.ok(got == [200] * (TURNS + 1), "so have they for those of %d that ask at once" % TURNS, got)
    t.ok(server.stop() == 0, "end")


def nobody_waits(t, server):
    """While one client's answer needs a long fold, others get theirs."""
    done = threading.Event()
    got = []

    def slow():
        got.append(server.get("/api/v1/functions?execution=latest"))
        done.set()

    thread = threading.Thread(target=slow)
    thread.start()
    others = 0
    while not done.is_set():
        others += server.get("/api/v1/meta")[0] == 200
    thread.join()
    t.ok(got[0][0] == 200 and others >= 3, "others are answered while one waits for its fold", "%d" % others)


def bounded(t, server, nodes, measure):
    status, length, digest = server.get(WHOLE)
    t.ok(status == 200 and length > 100 * nodes, "a flame of %d nodes" % nodes, "%d bytes" % length)
    before, threads, files = server.resident(), server.status("Threads"), server.descriptors()
    held = [server.begin(WHOLE) for _ in range(SLOW)]
    growth = (server.resident() - before) // SLOW
    t.ok(not measure or growth < NODE_BYTES * nodes, "a slow client's answer is not kept whole",
         "%d bytes for a client, of %d" % (growth, length))
    t.ok(server.get("/api/v1/meta")[0] == 200, "and holds up nobody")
    for s in held:
        s.close()
    for _ in range(HANGING // SLOW):
        for s in [server.begin(WHOLE) for _ in range(SLOW)]:
            s.close()
    t.ok(until(lambda: server.status("Threads") <= threads and server.descriptors() <= files),
         "clients that hang up leave nothing",
         "%d threads, %d files" % (server.status("Threads"), server.descriptors()))
    t.ok(not measure or until(lambda: server.resident() < before + NODE_BYTES * nodes), "nor their memory",
         "%d bytes, then %d" % (before, server.resident()))
    t.ok(server.get(WHOLE) == (status, length, digest), "the answer is still the same")


def main():
    varve, varve_lua, scratch = sys.argv[1:4]
    depth, measure = int(sys.argv[4]), sys.argv[5] != "0"
    t = Test()
    small = record(varve_lua, scratch, min(depth, CROWD_DEPTH))
    one_fold(t, varve, small)
    takes_turns(t, varve, small)
    store = record(varve_lua, scratch, depth)
    server = Server(varve, store)
    nobody_waits(t, server)
    bounded(t, server, 2 << depth, measure)
    t.ok(server.stop() == 0, "the server ends well")
    print("1..%d" % t.n)
    sys.exit(t.failed)


if __name__ == "__main__":
    main()
