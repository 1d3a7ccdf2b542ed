#!/usr/bin/env python3
"""A store under siege: writers that are killed, a server that is killed and comes back, one that lives on, ten
followers that hang up or stall, and random questions, for VV_SOAK_SECONDS. In the end the server that lived and a fresh
one must answer the same, byte for byte, and the one that lived must not have grown."""

import http.client
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

SECONDS = int(os.environ.get("VV_SOAK_SECONDS", "60"))
SEED = int(os.environ.get("VV_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
TOP = os.environ.get("top_builddir", ".")
FOLLOWERS, ASKERS, MEMORY_MIB, GROWTH_MIB = 10, 3, 64, 192

PROGRAM = """
local function leaf(n) if n % 97 == 0 then error({n = n}) end return n * 2 end
local function branch(n, depth)
  if depth == 0 then return select(2, pcall(leaf, n)) end
  return branch(n + 1, depth - 1)
end
local id = varve and varve.id or nil
local until_ = os.time() + tonumber(arg[1])
local turns = coroutine.wrap(function()
  while true do
    branch(math.random(1000), math.random(12))
    coroutine.yield()
  end
end)
while os.time() < until_ do
  for i = 1, 200 do turns() end
  if id then varve.call(varve.id(), branch, math.random(1000), 3) end
end
"""

failures = []
stopping = threading.Event()
counts = {}
count_lock = threading.Lock()


def count(what, n=1):
    with count_lock:
        counts[what] = counts.get(what, 0) + n


def fail(text):
    with count_lock:
        if len(failures) < 20:
            failures.append(text)


class Server:
    """A server on one port for its whole life, however often it starts."""

    def __init__(self, store, directory, name, *options):
        self.log = open(os.path.join(directory, name + ".err"), "ab")
        self.options, self.store, self.port = options, store, 0
        self.start()

    def start(self):
        address = "127.0.0.1:%d" % self.port
        command = [os.path.join(TOP, "varve"), "serve", "--listen", address, *self.options, self.store]
        for _ in range(200):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
            line = self.process.stdout.readline().decode()
            if line.startswith("listening on "):
                self.port = int(line.rstrip("/\n").rsplit(":", 1)[1])
                return
            self.process.wait()
            time.sleep(0.05)
        raise SystemExit("soak-serve: the server did not start: see " + self.log.name)

    def kill(self, how):
        self.process.send_signal(how)
        status = self.process.wait()
        self.process.stdout.close()
        return status

    def resident_kib(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def ask(port, path, headers=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def write(rng, store):
    lua = os.path.join(TOP, ".libs", "varve-lua")
    if not os.path.exists(lua):
        lua = os.path.join(TOP, "varve-lua")
    environment = dict(os.environ, BAML_PROFILE_DIR=store, LD_LIBRARY_PATH=os.path.join(TOP, ".libs"))
    program = os.path.join(os.path.dirname(store), "program.lua")
    while not stopping.is_set():
        process = subprocess.Popen([lua, program, "2"], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        if rng.random() < 0.5:
            stopping.wait(rng.uniform(0.05, 2))
            process.kill()
            count("writers killed")
        process.wait()
        count("writers")


def listen(rng, server, forgives):
    """Follows, checks what it is told, and hangs up at some time; comes back with its cursor."""
    cursor, seen = None, {}
    while not stopping.is_set():
        try:
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            lines = ["GET /api/v1/follow HTTP/1.1", "Host: localhost", "Accept: text/event-stream"]
            lines += ["Last-Event-ID: " + cursor] if cursor else []
            sock.sendall("\r\n".join(lines + ["", ""]).encode())
            stream = sock.makefile("rb")
            if b" 200 " not in stream.readline():
                fail("a follower was refused")
                return
            leave = time.monotonic() + rng.uniform(0.2, 6)
            generation = ""
            while not stopping.is_set() and time.monotonic() < leave:
                line = stream.readline()
                if not line:
                    break
                if rng.random() < 0.002:
                    stopping.wait(rng.uniform(0, 3))
                if not line.startswith(b"data:"):
                    continue
                event = json.loads(line[5:])
                if event["generation"] == generation:
                    fail("the same state was told twice: %s" % generation)
                generation, cursor = event["generation"], event["cursor"]
                for s in event["streams"]:
                    now = (s["high_water"]["meta"], s["high_water"]["data"])
                    if any(a < b for a, b in zip(now, seen.get(s["euid"], now))):
                        fail("a high water went down: %s %s" % (seen[s["euid"]], now))
                    seen[s["euid"]] = now
                count("events")
            stream.close()
            sock.close()
            count("followers hung up")
        except (OSError, ValueError) as e:
            if not forgives and not stopping.is_set():
                fail("a follower of the server that lives: %r" % e)
            time.sleep(0.05)


def question(rng, ids):
    one = rng.choice(ids) if ids and rng.random() < 0.8 else "latest~%d" % rng.randrange(4)
    other = rng.choice(ids) if ids else "latest"
    return rng.choice([
        "/api/v1/executions?limit=%d" % rng.randrange(1, 50), "/api/v1/executions/" + one,
        "/api/v1/executions/%s/spans" % one, "/api/v1/executions/%s/errors" % one,
        "/api/v1/executions/%s/threads" % one, "/api/v1/functions?execution=" + one,
        "/api/v1/flame?execution=%s&ids=1" % one, "/api/v1/flame?execution=%s&order=bottom_up" % one,
        "/api/v1/flame?execution=%s&base=%s" % (one, other), "/api/v1/functions?execution=%s&base=%s" % (one, other),
        "/api/v1/streams", "/api/v1/store", "/api/v1/search?q=leaf"])


def check(path, body):
    answer = json.loads(body)
    for equation in answer.get("evidence", {}).get("equations", []):
        if equation["holds"] is False:
            fail("%s: %s does not hold: %s" % (path, equation["name"], equation))
    return answer


def question_all(rng, server, forgives):
    ids = []
    while not stopping.is_set():
        path = question(rng, ids)
        try:
            status, _, body = ask(server.port, path)
            count("answers")
            if status not in (200, 404, 409) and not (forgives and status == 503):
                fail("%s: %d %s" % (path, status, body[:300]))
            if status != 200:
                continue
            answer = check(path, body)
            if path.startswith("/api/v1/executions?"):
                ids = [i["execution_id"] for i in answer["items"]]
            elif "snapshot" in answer and rng.random() < 0.3:
                again = path + ("&" if "?" in path else "?") + "as_of=" + answer["snapshot"]["as_of"]
                status, _, repeated = ask(server.port, again)
                if status == 200 and repeated != body and not path.endswith("/store"):
                    fail("%s: as_of gave another answer" % path)
                if status not in (200, 410) and not (forgives and status == 503):
                    fail("%s: %d" % (again, status))
        except (OSError, http.client.HTTPException, ValueError) as e:
            if not forgives and not stopping.is_set():
                fail("%s: %r" % (path, e))
            time.sleep(0.05)


def besiege(rng, server):
    while not stopping.wait(rng.uniform(1, 6)):
        server.kill(signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM)
        server.start()
        count("servers killed")


def everything(port):
    """Paths of all that is worth comparing, in the words of the server that is asked."""
    paths = ["/api/v1/streams", "/api/v1/store"]
    cursor = ""
    while True:
        path = "/api/v1/executions?limit=100" + cursor
        paths.append(path)
        answer = json.loads(ask(port, path)[2])
        for item in answer["items"]:
            one = item["execution_id"]
            paths += ["/api/v1/executions/" + one, "/api/v1/functions?limit=1000&execution=" + one,
                      "/api/v1/flame?ids=1&execution=" + one]
            paths += ["/api/v1/executions/%s/%s?limit=1000" % (one, what) for what in ("spans", "errors", "threads")]
        if not answer["next"]:
            return paths
        cursor = "&cursor=" + answer["next"]


def generation(server):
    return json.loads(ask(server.port, "/api/v1/streams")[2])["snapshot"]["generation"]


def compare(lived, fresh):
    # The system tells of a writer's death before its lock is free.
    deadline = time.monotonic() + 10
    while generation(lived) != generation(fresh):
        if time.monotonic() > deadline:
            fail("the server that lived does not see what the fresh one sees")
            break
        time.sleep(0.05)
    paths = everything(fresh.port)
    for path in paths:
        a, b = ask(lived.port, path), ask(fresh.port, path)
        if (a[0], a[2]) != (b[0], b[2]):
            at = len(os.path.commonprefix([a[2], b[2]]))
            fail("%s: the server that lived answers %d, the fresh one %d; from byte %d on %s and %s"
                 % (path, a[0], b[0], at, a[2][max(at - 40, 0):at + 80], b[2][max(at - 40, 0):at + 80]))
    return len(paths)


def seeded(rng):
    return random.Random(rng.random())


def main():
    print("soak-serve: seed %d, %d s" % (SEED, SECONDS))
    directory = tempfile.mkdtemp(prefix="varve-soak-serve-", dir="/var/tmp")
    os.environ["XDG_CACHE_HOME"] = os.path.join(directory, "cache")
    store = os.path.join(directory, "profiles-v1")
    with open(os.path.join(directory, "program.lua"), "w") as f:
        f.write(PROGRAM)
    servers = [Server(store, directory, "lived", "--memory", str(MEMORY_MIB)), Server(store, directory, "killed")]
    try:
        rng = random.Random(SEED)
        threads = [threading.Thread(target=write, args=(seeded(rng), store)) for _ in range(2)]
        for i in range(FOLLOWERS):
            threads.append(threading.Thread(target=listen, args=(seeded(rng), servers[i % 2], i % 2 == 1)))
        for i in range(ASKERS):
            threads.append(threading.Thread(target=question_all, args=(seeded(rng), servers[i % 2], i % 2 == 1)))
        threads.append(threading.Thread(target=besiege, args=(seeded(rng), servers[1])))
        for t in threads:
            t.start()
        deadline = time.monotonic() + SECONDS
        early = None
        while time.monotonic() < deadline:
            time.sleep(min(1, max(0, deadline - time.monotonic())))
            if servers[0].process.poll() is not None:
                fail("the server that should live has ended: %d" % servers[0].process.returncode)
                break
            if early is None and deadline - time.monotonic() < SECONDS * 0.7:
                early = servers[0].resident_kib()
        stopping.set()
        for t in threads:
            t.join()
        late = servers[0].resident_kib() if servers[0].process.poll() is None else 0
        fresh = Server(store, directory, "fresh", "--no-index")
        servers.append(fresh)
        paths = compare(servers[0], fresh)
        if late > (early or 0) + GROWTH_MIB * 1024:
            fail("the server that lived has grown from %d to %d KiB" % (early, late))
        print("soak-serve: " + ", ".join("%s %d" % c for c in sorted(counts.items())))
        print("soak-serve: %d answers compared with a fresh server's; resident %.1f MiB, early %.1f; limit: all the "
              "same, %d MiB of growth" % (paths, late / 1024, (early or 0) / 1024, GROWTH_MIB))
    finally:
        stopping.set()
        for s in servers:
            if s.process.poll() is None:
                s.kill(signal.SIGTERM)
        if not failures:
            shutil.rmtree(directory, ignore_errors=True)
    for text in failures:
        print("soak-serve: " + text, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
