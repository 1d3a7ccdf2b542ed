#!/usr/bin/env python3
"""Follows a store that `varve serve` serves, in every way a client may; speaks TAP.

What clients are told is applied to a model of the store, as a client would; in the end the model must be the store.

usage: follow_client.py VARVE SCRATCH-DIRECTORY
"""

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import storebytes as sb  # noqa: E402

PATIENCE = 120  # seconds until something is given up
PLACES = 64
EVENTS, LINES = "text/event-stream", "application/x-ndjson"


def wait_until(condition, what, step=0.002):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain for " + what)
        time.sleep(step)


class Writer:
    """Commits to a store as a writer does: under another name, then renamed."""

    def __init__(self, root):
        self.root, self.high, self.locks = root, {}, {}
        self.lock = threading.Lock()

    def _commit(self, euid, plane, sequence, data):
        directory = os.path.join(self.root, "streams", euid.hex(), plane)
        os.makedirs(directory, exist_ok=True)
        os.makedirs(os.path.join(self.root, "tmp"), exist_ok=True)
        pending = os.path.join(self.root, "tmp", "%s-%s" % (euid.hex(), sequence))
        with open(pending, "wb") as file:
            file.write(data)
        os.rename(pending, os.path.join(directory, "%020d.baml%s" % (sequence, plane)))

    def begin(self, euid):
        os.makedirs(os.path.join(self.root, "streams", euid.hex()), exist_ok=True)
        lock = open(os.path.join(self.root, "streams", euid.hex(), "stream.lock"), "wb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        record = [sb.STREAM_STARTED, {"pid": 7, "zero": 10 ** 18, "version": "1", "arch": "linux"}]
        self._commit(euid, "meta", 1, sb.MetaSegment(1, euid, 0, [record]).encode())
        with self.lock:
            self.locks[euid], self.high[euid] = lock, 0

    def commit(self, euid):
        sequence = self.high[euid] + 1
        self._commit(euid, "data", sequence, sb.DataSegment(sequence, euid).encode())
        with self.lock:
            self.high[euid] = sequence

    def end(self, euid):
        self.locks.pop(euid).close()

    def prune(self, euid):
        shutil.rmtree(os.path.join(self.root, "streams", euid.hex()))
        with self.lock:
            self.high.pop(euid)

    def state(self):
        """What a follower should know in the end."""
        with self.lock:
            return {e.hex(): (e in self.locks, 1, n) for e, n in self.high.items()}


class Server:
    running = []

    def __init__(self, varve, *arguments, port=0):
        self.varve, self.arguments = varve, arguments
        self.process = subprocess.Popen([varve, "serve", "--listen", "127.0.0.1:%d" % port, "--no-index", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.running.append(self)
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening on "), line
        self.port = int(line.rstrip("/\n").rsplit(":", 1)[1])

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        status = self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.running.remove(self)
        return status

    def again(self, how):
        """Another one at the same port."""
        self.stop(how)
        return Server(self.varve, *self.arguments, port=self.port)


class Answer:
    """One request on a connection of its own, read as it comes."""

    def __init__(self, server, target="/api/v1/follow", accept=EVENTS, method="GET", receive=None, **headers):
        self.socket = socket.socket()
        if receive:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", server.port))
        lines = ["%s %s HTTP/1.1" % (method, target)]
        lines += ["%s: %s" % (k.replace("_", "-"), v) for k, v in
                  {"Host": "127.0.0.1:%d" % server.port, "Accept": accept, **headers}.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        self.text = b""

    def head(self):
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()):
            name, value = line.decode().split(": ", 1)
            self.headers[name.lower()] = value
        return self

    def more(self):
        """Another chunk of the body; false at the end."""
        size = int(self.file.readline() or b"0", 16)
        self.text += self.file.read(size)
        self.file.readline()
        return size > 0

    def whole(self):
        if "content-length" in self.headers:
            return self.file.read(int(self.headers["content-length"]))
        while self.more():
            pass
        return self.text

    def block(self, end=b"\n\n"):
        """The next event, comment or line; None at the end."""
        while end not in self.text:
            if not self.more():
                return None
        block, self.text = self.text.split(end, 1)
        return block.decode()

    def close(self):
        self.file.close()
        self.socket.close()


def fields_of(block):
    return dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))


class Follower:
    """A client's view of the store, by events alone."""

    def __init__(self):
        self.cursor, self.streams, self.generation = None, {}, None
        self.events = self.snapshots = 0

    def apply(self, event):
        assert event["changed"], event
        epoch, turn = event["cursor"].split("-")
        if self.cursor:
            before = self.cursor.split("-")
            assert event["full"] or epoch == before[0], "another server's changes without the whole"
            assert epoch != before[0] or int(turn) > int(before[1]), "told twice: %s after %s" % (turn, before[1])
        known = {} if event["full"] else self.streams
        for s in event["streams"]:
            high = s["high_water"]
            if high is None:
                known.pop(s["euid"], None)
                continue
            now = (s["alive"], high["meta"], high["data"])
            assert event["full"] or known.get(s["euid"]) != now, "no change of " + s["euid"]
            known[s["euid"]] = now
        self.streams, self.generation, self.cursor = known, event["generation"], event["cursor"]
        self.events += 1
        self.snapshots += event["full"]

    def read(self, block):
        """An event that server-sent events tell; false for a comment."""
        fields = fields_of(block)
        if "data" not in fields:
            return False
        event = json.loads(fields["data"])
        assert fields["id"] == event["cursor"]
        assert fields["event"] == ("snapshot" if event["full"] else "change")
        self.apply(event)
        return True

    def connect(self, server, **more):
        if self.cursor:
            more["Last_Event_ID"] = self.cursor
        return Answer(server, **more).head()


def poll(server, cursor=None, wait=0):
    target = "/api/v1/follow?wait=%d" % wait + ("&cursor=" + cursor if cursor else "")
    answer = Answer(server, target, "application/json").head()
    try:
        assert answer.status == 200, answer.status
        return json.loads(answer.whole())
    finally:
        answer.close()


def ask(server, target):
    answer = Answer(server, target, "application/json").head()
    try:
        return answer.status, json.loads(answer.whole())
    finally:
        answer.close()


def new_store(scratch, streams=1):
    directory = tempfile.mkdtemp(dir=scratch)
    writer = Writer(os.path.join(directory, ".baml", "profiles-v1"))
    ids = [bytes([i + 1]) * 16 for i in range(streams)]
    for euid in ids:
        writer.begin(euid)
        writer.commit(euid)
    return directory, writer, ids


# Each test: a function of (varve, scratch), which raises where something is wrong.


def reconnects_at_the_head(varve, scratch):
    """Nobody writes: a thousand reconnects are told nothing at all, by event streams and by long polls."""
    directory, writer, _ = new_store(scratch, 3)
    server, follower = Server(varve, directory), Follower()
    answer = follower.connect(server)
    follower.read(answer.block())
    answer.close()
    assert follower.streams == writer.state() and follower.snapshots == 1
    for _ in range(1000):
        answer = follower.connect(server)
        assert answer.block() == "retry: 1000"
        answer.close()
    for _ in range(100):
        event = poll(server, follower.cursor)
        assert event == {"cursor": follower.cursor, "generation": follower.generation, "as_of": follower.generation,
                         "changed": False, "full": False, "streams": []}, event
    server.stop()


def reconnects_while_it_grows(varve, scratch):
    """A thousand reconnects while a writer commits, over restarts: nothing twice, nothing missed."""
    directory, writer, ids = new_store(scratch, 12)
    server, follower, rng = Server(varve, directory), Follower(), random.Random(7)
    going, halt = threading.Event(), threading.Event()

    def write():
        while not halt.is_set():
            if going.wait(0.05):
                writer.commit(random.choice(ids))
                time.sleep(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    going.set()
    try:
        for i in range(1000):
            if i in (300, 600, 900):
                server = server.again(signal.SIGKILL if i == 600 else signal.SIGTERM)
            answer = follower.connect(server)
            for _ in range(rng.randint(0, 2)):
                follower.read(answer.block())
            answer.close()
            if i % 100 == 99:
                check_pause(server, writer, follower, going)
    finally:
        halt.set()
        thread.join()
    assert follower.snapshots == 4, follower.snapshots
    assert follower.events > 300, follower.events
    server.stop()


def check_pause(server, writer, follower, going):
    """While the writer pauses, a follower comes to know all there is, and as_of names it."""
    going.clear()
    high = writer.state()
    while True:
        time.sleep(0.02)
        if writer.state() == high:
            break
        high = writer.state()
    answer = follower.connect(server)
    while follower.streams != writer.state():
        follower.read(answer.block())
    answer.close()
    status, streams = ask(server, "/api/v1/streams?as_of=" + follower.generation)
    told = {s["euid"]: s for s in streams["snapshot"]["streams"]}
    assert status == 200 and len(told) == len(follower.streams)
    assert all(told[e]["high_water"]["data"] == s[2] for e, s in follower.streams.items())
    going.set()


def all_places(varve, scratch):
    """64 follow, one more may not; who hangs up frees its place."""
    directory, writer, ids = new_store(scratch)
    server = Server(varve, directory)
    answers = [Answer(server, accept=(EVENTS, LINES)[i % 2]).head() for i in range(PLACES)]
    assert all(a.status == 200 for a in answers)
    for a, i in zip(answers, range(PLACES)):
        a.block(b"\n" if i % 2 else b"\n\n")

    def refused(accept=EVENTS, target="/api/v1/follow"):
        one_more = Answer(server, target, accept).head()
        body = json.loads(one_more.whole())
        one_more.close()
        return (one_more.status, body["type"], one_more.headers.get("retry-after")) == \
            (503, "urn:varve:problem:too-many-followers", "5")

    assert refused() and refused(LINES)
    head = poll(server)
    assert refused("*/*", "/api/v1/follow?wait=9&cursor=" + head["cursor"])
    same = poll(server, head["cursor"])  # nor does who does not wait
    assert (same["changed"], same["cursor"], same["streams"]) == (False, head["cursor"], []), same
    writer.commit(ids[0])
    assert poll(server, head["cursor"])["changed"]  # what is there already needs no place
    for a, i in zip(answers, range(PLACES)):
        a.block(b"\n" if i % 2 else b"\n\n")
    began = time.monotonic()
    for a in answers:
        a.close()
    again = []

    def all_in():
        a = Answer(server).head()
        (again if a.status == 200 else []).append(a)
        return len(again) == PLACES

    wait_until(all_in, "the places of those who hung up")
    print("# %d places were free again after %.3f s" % (PLACES, time.monotonic() - began))
    for a in again:
        a.close()
    assert server.stop() == 0


def a_stalled_follower(varve, scratch):
    """One that reads nothing delays nobody, and is dropped in the end."""
    directory, writer, ids = new_store(scratch)
    for i in range(3000):
        os.mkdir(os.path.join(writer.root, "streams", "%032x" % (i + 1)))
    server, follower = Server(varve, directory), Follower()
    stalled = Answer(server, receive=2048)
    answer = follower.connect(server)
    while not follower.events:
        follower.read(answer.block())
    for _ in range(50):
        writer.commit(ids[0])
        while follower.streams[ids[0].hex()][2] != writer.high[ids[0]]:
            follower.read(answer.block())
    others = [Answer(server, accept=LINES).head() for _ in range(PLACES - 2)]
    assert all(a.status == 200 for a in others)
    full = Answer(server).head()
    assert full.status == 503
    full.close()

    def place():
        a = Answer(server).head()
        a.close()
        return a.status == 200

    began = time.monotonic()
    wait_until(place, "the place of the stalled follower", 0.1)
    print("# the stalled follower was dropped after %.1f s" % (time.monotonic() - began))
    for a in (stalled, answer, *others):
        a.close()
    assert server.stop() == 0


def switches(pid):
    """Voluntary context switches of each thread, and processor time of all, in ticks."""
    counts = {}
    for task in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, task)) as file:
                counts[task] = int(next(line for line in file if line.startswith("voluntary")).split()[1])
        except (FileNotFoundError, ProcessLookupError):
            pass
    with open("/proc/%d/stat" % pid) as file:
        stat = file.read().rsplit(")", 1)[1].split()
    return counts, int(stat[11]) + int(stat[12])


def idle_followers(varve, scratch):
    """Nothing happens: it costs next to nothing, whether followers are there or not."""
    directory, _, _ = new_store(scratch, 5)
    server = Server(varve, directory)
    for followers in (0, 10):
        answers = [Answer(server).head() for _ in range(followers)]
        for a in answers:
            a.block()
        time.sleep(0.3)
        before, ticks = switches(server.process.pid)
        began = time.monotonic()
        time.sleep(4)
        after, ticks_after = switches(server.process.pid)
        seconds = time.monotonic() - began
        rates = [(n - before.get(task, 0)) / seconds for task, n in after.items()]
        print("# %d followers: %.1f switches a second in all, %.1f of a thread at most, %d ticks of processor time in "
              "%.1f s" % (followers, sum(rates), max(rates), ticks_after - ticks, seconds))
        assert max(rates) <= 2 and sum(rates) <= 2 * max(followers, 1), rates
        for a in answers:
            a.close()
    server.stop()


def an_empty_place(varve, scratch):
    """No store, then one, then none, then another: each is told."""
    directory = tempfile.mkdtemp(dir=scratch)
    server, follower = Server(varve, directory), Follower()
    answer = follower.connect(server)
    follower.read(answer.block())
    assert follower.generation is None and follower.streams == {}
    waiting = poll(server)
    assert waiting["generation"] is None and waiting["full"] and not poll(server, waiting["cursor"])["changed"]
    writer = Writer(os.path.join(directory, ".baml", "profiles-v1"))
    for i in range(3):
        euid = bytes([0x40 + i]) * 16
        writer.begin(euid)
        while follower.streams != writer.state():
            follower.read(answer.block())
        assert follower.generation
        writer.commit(euid)
        while follower.streams != writer.state():
            follower.read(answer.block())
        writer.end(euid)
        while follower.streams != writer.state():
            follower.read(answer.block())
        if i == 1:  # at once another in its place
            os.rename(writer.root, directory + "/old-%d" % i)
            writer.high = {}
            continue
        shutil.rmtree(writer.root)
        writer.high = {}
        while follower.generation:
            follower.read(answer.block())
        assert follower.streams == {}
    assert follower.snapshots == 1
    assert poll(server, waiting["cursor"])["changed"]
    answer.close()
    assert server.stop() == 0


def streams_that_go(varve, scratch):
    """A writer that dies and a stream that is pruned are told."""
    directory, writer, ids = new_store(scratch, 4)
    server, follower = Server(varve, directory), Follower()
    answer = follower.connect(server)
    follower.read(answer.block())
    for step in (lambda: writer.end(ids[0]), lambda: writer.prune(ids[0]), lambda: writer.commit(ids[1]),
                 lambda: os.unlink(os.path.join(writer.root, "streams", ids[2].hex(), "data", "%020d.bamldata" % 1))):
        step()
        if ids[2] in writer.high and not os.listdir(os.path.join(writer.root, "streams", ids[2].hex(), "data")):
            writer.high[ids[2]] = 0
        while follower.streams != writer.state():
            follower.read(answer.block())
    answer.close()
    server.stop()


def long_polls(varve, scratch):
    """At once when behind, else at the next change, else after the time."""
    directory, writer, ids = new_store(scratch)
    server = Server(varve, directory)
    first = poll(server)
    assert first["full"] and first["changed"] and poll(server, wait=60) == first
    assert poll(server, "0123456789abcdef-1", 60) == first  # another server's
    began = time.monotonic()
    assert poll(server, first["cursor"], 1) == {**first, "changed": False, "full": False, "streams": []}
    assert time.monotonic() - began >= 1
    for _ in range(20):
        head, told = poll(server)["cursor"], []
        thread = threading.Thread(target=lambda: told.append(poll(server, head, 60)))
        thread.start()
        writer.commit(ids[0])
        thread.join(PATIENCE)
        assert told[0]["changed"] and not told[0]["full"] and len(told[0]["streams"]) == 1, told
        assert told[0]["streams"][0]["high_water"]["data"] == writer.high[ids[0]], told
    behind = poll(server, first["cursor"], 60)
    assert behind["changed"] and not behind["full"], behind
    server.stop()


def both_cursors(varve, scratch):
    """Last-Event-ID goes before cursor=; the other forms know both too."""
    directory, writer, ids = new_store(scratch)
    server = Server(varve, directory)
    old = poll(server)["cursor"]
    writer.commit(ids[0])
    new = poll(server)["cursor"]
    for accept, end in ((EVENTS, b"\n\n"), (LINES, b"\n")):
        for target, last, want in (("?cursor=" + old, new, False), ("?cursor=" + new, old, True),
                                   ("?cursor=" + old, None, True), ("", old, True), ("?cursor=" + new, None, False)):
            headers = {"Last_Event_ID": last} if last else {}
            answer = Answer(server, "/api/v1/follow" + target, accept, **headers).head()
            assert ("cursor" in answer.block(end)) == want, (accept, target, last)
            answer.close()
    server.stop()


def heads(varve, scratch):
    """HEAD answers at once, and follows nothing."""
    directory, _, _ = new_store(scratch)
    server = Server(varve, directory)
    cursor = poll(server)["cursor"]
    for accept, kind in ((EVENTS, EVENTS), (LINES, LINES), ("*/*", "application/json")):
        for _ in range(2):
            target = "/api/v1/follow?cursor=" + cursor + ("" if kind != "application/json" else "&wait=60")
            answer = Answer(server, target, accept, method="HEAD", Connection="close").head()
            assert (answer.status, answer.headers["content-type"]) == (200, kind)
            assert answer.file.read() == b""
            answer.close()
    server.stop()


def who_may_follow(varve, scratch):
    """Host, Origin and token are asked for as everywhere."""
    directory, _, _ = new_store(scratch)
    path = os.path.join(directory, "token")
    with open(path, "w") as file:
        file.write("0123456789abcdef0123\n")
    server = Server(varve, "--token-file", path, directory)
    token = {"Authorization": "Bearer 0123456789abcdef0123"}
    for headers, status in (({}, 401), ({"Authorization": "Bearer x"}, 401), (token, 200),
                            ({**token, "Host": "evil.example"}, 421),
                            ({**token, "Origin": "http://evil.example"}, 403)):
        answer = Answer(server, **headers).head()
        assert answer.status == status, (headers, answer.status)
        answer.close()
    server.stop()


def a_server_that_ends(varve, scratch):
    """Streams end, who waits is answered, and the server ends at once with its followers still there."""
    directory, _, _ = new_store(scratch)
    server = Server(varve, directory)
    head = poll(server)["cursor"]
    streams = [Answer(server, accept=(EVENTS, LINES)[i % 2]).head() for i in range(10)]
    for i, a in enumerate(streams):
        a.block(b"\n" if i % 2 else b"\n\n")
    told = []
    threads = [threading.Thread(target=lambda: told.append(poll(server, head, 60))) for _ in range(5)]
    for t in threads:
        t.start()
    # A long poll that waits shows as a place that is taken: all that are left, then one more is refused.
    rest = []

    def is_full():
        rest.append(Answer(server).head())
        return rest[-1].status == 503

    wait_until(is_full, "long polls")
    assert len(rest) == PLACES - len(streams) - len(threads) + 1 or any(t.is_alive() for t in threads)
    began = time.monotonic()
    assert server.stop() == 0
    print("# the server ended after %.3f s" % (time.monotonic() - began))
    for t in threads:
        t.join(PATIENCE)
    assert len(told) == 5 and not any(e["changed"] for e in told)
    for i, a in enumerate(streams):
        assert a.block(b"\n" if i % 2 else b"\n\n") is None
        a.close()
    for a in rest:
        a.close()


TESTS = (long_polls, both_cursors, heads, who_may_follow, an_empty_place, streams_that_go, reconnects_at_the_head,
         reconnects_while_it_grows, all_places, a_server_that_ends, idle_followers, a_stalled_follower)
# Those that wait for the most part, for what takes its time: they go on beside the others.
WAITING = (reconnects_while_it_grows, idle_followers, a_stalled_follower)


def fault_of(test, varve, scratch):
    """What a test fails by, as text."""
    try:
        test(varve, scratch)
    except Exception as why:
        return traceback.format_exc() + str(why)
    return None


def main():
    varve, scratch = sys.argv[1:3]
    only = sys.argv[3:]
    tests = [t for t in TESTS if not only or t.__name__ in only]
    print("1..%d" % len(tests))
    failed = False
    with ThreadPoolExecutor(len(WAITING)) as pool:
        begun = {t: pool.submit(fault_of, t, varve, scratch) for t in tests if t in WAITING}
        for n, test in enumerate(tests, 1):
            fault = begun[test].result() if test in begun else fault_of(test, varve, scratch)
            print("%s %d - %s" % ("not ok" if fault else "ok", n, test.__name__))
            if fault:
                failed = True
                print("# " + "\n# ".join(fault.splitlines()))
            sys.stdout.flush()
    for server in list(Server.running):
        server.stop(signal.SIGKILL)
    sys.exit(failed)


if __name__ == "__main__":
    main()
