#!/usr/bin/env python3
"""Memory goes by what is asked for, and not by how many segments hold it; speaks TAP.

A hundred times the segments with the same contexts, and a server that follows a recording of very many commits.

usage: check_memory.py VARVE PEAK SEGMENTS COMMITS
"""

import fcntl
import os
import subprocess
import sys
import tempfile

from check_views import Server

import storebytes as sb

CONTEXTS, ROWS, TIMES = 20_000, 20, 100
WARM = 2_400  # commits after which the server keeps as many former states as it ever does: one each 2 commits
EUID, PROGRAM = b"\x07" * 16, b"\x11" * 16
ROOT = EUID + sb.u64(1) + sb.u64(1)


def groups(contexts):
    """The group that defines the contexts, and one that counts on in a few of them."""
    keys, first = [], sb.Group(ROOT)
    for at in range(contexts):
        parent = keys[(at - 1) // 4] if at else None
        shape = sb.context_tuple(PROGRAM, parent, at + 1, [1, 0, 0, at + 1], 1 if at else 0)
        keys.append(sb.context_key(shape))
        first.contexts.append([keys[-1], shape, [1] + [0] * 9])
    first.contexts.sort()
    return first, sb.Group(ROOT, contexts=[[key, None, [1, 0, 1, 0, 0, 0, 5, 0, 0, 0]] for key in sorted(keys[:ROWS])])


class Recording:
    """A store with one execution, which grows segment by segment."""

    def __init__(self, directory, contexts):
        self.directory, self.stream = directory, os.path.join(directory, "streams", EUID.hex())
        self.first, self.more = groups(contexts)
        for plane in ("meta", "data"):
            os.makedirs(os.path.join(self.stream, plane))
        for name in (os.path.join(self.stream, "stream.lock"), os.path.join(directory, "publish.lock")):
            with open(name, "wb"):
                pass
        self.put("meta", sb.MetaSegment(1, EUID, 0, [
            [sb.STREAM_STARTED, {"pid": 1, "zero": 10**18, "version": "1", "arch": "any"}],
            [sb.ENGINE_STARTED, {"engine": 1, "program": PROGRAM, "table": None, "revision": None, "source": None}],
            [sb.ROOT_STARTED, {"root": ROOT, "started": 0, "runtime_id": bytes(16)}]]))
        self.count = 0

    def put(self, plane, segment):
        name = os.path.join(self.stream, plane, "%020d.baml%s" % (segment.sequence, plane))
        with open(name + ".tmp", "wb") as file:
            file.write(segment.encode())
        os.rename(name + ".tmp", name)

    def commit(self):
        self.count += 1
        self.put("data", sb.DataSegment(self.count, EUID, [self.more if self.count > 1 else self.first]))

    def end(self):
        self.put("meta", sb.MetaSegment(2, EUID, self.count, [[sb.ROOT_ENDED, {
            "root": ROOT, "ended": 9, "status": 0, "flags": 0, "first": 1, "last": self.count, "count": self.count,
            "health": [0] * sb.HEALTH_COUNT}]]))


def peak_of_command(varve, peak, directory, scratch):
    out = os.path.join(scratch, "peak")
    subprocess.run([peak, out, varve, "show", "--json", "--store", directory], stdout=subprocess.DEVNULL, check=True)
    with open(out) as file:
        return int(file.read())


def peak_of_server(varve, directory):
    """0 where it can't be told."""
    server = Server(varve, directory)
    try:
        for path in ("/api/v1/executions", "/api/v1/executions/latest", "/api/v1/executions/latest/spans"):
            server.get(path)
        server.get("/api/v1/functions", execution="latest")
        return server.memory()
    finally:
        server.stop()


def segments(varve, peak, count, scratch):
    """Yields (what, whether it holds) of few and of many segments."""
    found = []
    for at, n in enumerate((count, TIMES * count)):
        recording = Recording(os.path.join(scratch, "%d" % at, ".baml", "profiles-v1"), CONTEXTS)
        for _ in range(n):
            recording.commit()
        recording.end()
        server = peak_of_server(varve, recording.directory)
        if not server:
            return
        found.append((peak_of_command(varve, peak, recording.directory, scratch), server))
    for at, who in enumerate(("varve show", "varve serve")):
        few, many = found[0][at], found[1][at]
        yield "%s: %d KiB for %d segments, %d KiB for %d" % (who, few, count, many, TIMES * count), many <= few * 1.1


def replay(varve, commits, scratch):
    """Yields (what, whether it holds) of a server that follows."""
    recording = Recording(os.path.join(scratch, "live", ".baml", "profiles-v1"), 500)
    lock = os.open(os.path.join(recording.stream, "stream.lock"), os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    recording.commit()
    server = Server(varve, recording.directory)
    try:
        if not server.memory():
            return
        warm, calls = None, None
        for at in range(2, commits + 1):
            recording.commit()
            if at % 2 == 0 and (at <= WARM or at % 20 == 0):
                calls = server.get("/api/v1/executions")["items"][0]["total_calls"]
            if at == WARM:
                warm = server.status("VmRSS")
        for _ in range(1000):
            calls = server.get("/api/v1/executions")["items"][0]["total_calls"]
            if calls == 500 + ROWS * (commits - 1):
                break
        yield "all commits are seen", calls == 500 + ROWS * (commits - 1)
        now = server.status("VmRSS")
        yield "%d KiB after %d commits, %d KiB after %d" % (warm, WARM, now, commits), now <= warm * 1.1
    finally:
        server.stop()
        os.close(lock)


def main(arguments):
    varve, peak, count, commits = arguments[0], arguments[1], int(arguments[2]), int(arguments[3])
    failed, n = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for parts in (segments(varve, peak, count, scratch), replay(varve, commits, scratch)):
            for what, holds in parts:
                n += 1
                failed += not holds
                print("%s %d - %s" % ("ok" if holds else "not ok", n, what))
                sys.stdout.flush()
    print("1..%d" % n if n else "1..0 # SKIP a sanitizer keeps what is freed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
