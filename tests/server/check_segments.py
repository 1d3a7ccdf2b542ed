#!/usr/bin/env python3
"""Holds what `varve serve` and `varve streams` say of segment files and of the store's use of the disk against the
files themselves; speaks TAP.

usage: check_segments.py BUILD SOURCE SEED
"""

import fcntl
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import refdecode  # noqa: E402
import serving  # noqa: E402
import storebytes as sb  # noqa: E402
from refsource import StoreError, open_source  # noqa: E402
from refstore import thread_text  # noqa: E402

SUFFIX = {"meta": ".bamlmeta", "data": ".bamldata", "health": ".varvehealth"}
COUNT = {"meta": "records", "data": "groups", "health": "records"}
IMMUTABLE = "public, max-age=31536000, immutable"


class Server(serving.Server):
    """One that is asked for streams."""

    def __init__(self, varve, store):
        super().__init__(varve, store, "--no-index")

    def ask(self, path, headers=None, method="GET", **query):
        return self.request("/api/v1/streams" + path, query, headers, method)

    def get(self, path, **query):
        status, _, body = self.ask(path, **query)
        assert status == 200, (path, query, status, body)
        return json.loads(body)

    def code(self, path, **query):
        status, _, body = self.ask(path, **query)
        return status, json.loads(body).get("parameter")


def decode_health(data, euid, sequence):
    fields = refdecode.framed(data, b"VARVHLT1", 1)
    if fields.u64() != sequence:
        raise StoreError("SequenceMismatch")
    if fields.raw(16) != euid:
        raise StoreError("EuidMismatch")
    return [None] * fields.u64()


DECODE = {"meta": lambda *of: refdecode.decode_meta(*of)[1], "data": refdecode.decode_data, "health": decode_health}


def expected_rows(source, euid, plane):
    """(rows, {sequence: bytes}) of a plane, from the directory or the archive alone."""
    place = ("streams", euid, plane)
    names = {}
    if source.kind(*place) == "dir":
        for name in source.names(*place):
            match = re.fullmatch(r"([0-9]{20})" + re.escape(SUFFIX[plane]), name, re.ASCII)
            if match and 0 < int(match[1]) < 2**64:
                names[int(match[1])] = name
    rows, files, before = [], {}, 0
    for sequence in sorted(names):
        if sequence > before + 1:
            rows.append({"sequence": before + 1, "last": sequence - 1, "state": "missing", "error": None,
                         "bytes": None, "sha256": None, COUNT[plane]: None})
        before = sequence
        row = {"sequence": sequence, "last": sequence, "state": "good", "error": None, COUNT[plane]: None}
        rows.append(row)
        if source.kind(*place, names[sequence]) != "file":
            row.update(state="unreadable", error="NotRegularFile", bytes=None, sha256=None)
            continue
        data = files[sequence] = source.read(*place, names[sequence])
        row.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        try:
            row[COUNT[plane]] = len(DECODE[plane](data, bytes.fromhex(euid), sequence))
        except StoreError as fault:
            row.update(state="corrupt", error=fault.name)
    return rows, files


def exact(value):
    """Numbers above 2^53 come as text."""
    if isinstance(value, dict):
        return {key: int(item) if key in ("sequence", "last") else item for key, item in value.items()}
    return value


def pages(server, place, **query):
    rows = []
    while True:
        answer = server.get(place, **query)
        rows += map(exact, answer["items"])
        assert len(answer["items"]) == query.get("limit", 100) or answer["next"] is None
        if answer["next"] is None:
            return rows
        query["cursor"] = answer["next"]


def check_bytes(server, path, data, rng):
    """One segment file: whole, as a head, in parts, and not at all where the client has it."""
    tag = '"%s"' % hashlib.sha256(data).hexdigest()
    status, headers, body = server.ask(path)
    assert (status, body, headers["etag"], headers["cache-control"]) == (200, data, tag, IMMUTABLE), (path, headers)
    assert headers["content-type"] == "application/octet-stream" and "attachment" in headers["content-disposition"]
    status, headers, body = server.ask(path, method="HEAD")
    assert (status, body, int(headers["content-length"]), headers["etag"]) == (200, b"", len(data), tag)
    status, headers, body = server.ask(path, {"If-None-Match": tag})
    assert (status, body, headers["etag"]) == (304, b"", tag)
    assert server.ask(path, {"If-None-Match": '"%064d"' % 0})[0] == 200
    if not data:
        return
    first = rng.randrange(len(data))
    last = rng.randrange(first, len(data))
    for spec, want in ((f"{first}-{last}", data[first : last + 1]), (f"{first}-", data[first:]),
                       (f"-{last + 1}", data[-last - 1 :]), (f"{first}-{len(data) * 2}", data[first:])):
        status, headers, body = server.ask(path, {"Range": "bytes=" + spec})
        assert (status, body) == (206, want), (path, spec, status)
        start = len(data) - len(want) if spec[0] == "-" else first
        assert headers["content-range"] == f"bytes {start}-{start + len(want) - 1}/{len(data)}", headers
    status, headers, body = server.ask(path, {"Range": f"bytes={len(data)}-"})
    assert (status, headers["content-range"]) == (416, f"bytes */{len(data)}")
    assert server.ask(path, {"Range": "bytes=0-0", "If-Range": tag})[::2] == (206, data[:1])
    assert server.ask(path, {"Range": "bytes=0-0", "If-Range": '"old"'})[::2] == (200, data)
    assert server.ask(path, {"Range": "bytes=0-0,2-2"})[::2] == (200, data)


def check_store(varve, served, source, rng):
    """All planes of all streams. Gives the states that were met."""
    server, met = Server(varve, served), {}
    for stream in server.get("")["items"]:
        for plane in SUFFIX:
            place = f"/{stream['euid']}/{plane}"
            rows, files = expected_rows(source, stream["euid"], plane)
            for limit in (1, 2, 1000):
                got = pages(server, place, limit=limit)
                assert got == rows, (served, place, limit, got, rows)
            answer = server.get(place)
            assert (answer["euid"], answer["plane"]) == (stream["euid"], plane)
            if plane in stream:
                assert (answer["high_water"], answer["highest"]) == (stream[plane]["high_water"],
                                                                     stream[plane]["highest"]), (served, place)
            for after in {0, *(row["sequence"] for row in rows), *(row["last"] for row in rows)}:
                wanted = [dict(row, sequence=max(row["sequence"], after + 1)) for row in rows if row["last"] > after]
                assert pages(server, place, after=after, limit=1000) == wanted, (served, place, after)
            for row in rows:
                met[row["state"]] = met.get(row["state"], 0) + 1
                if row["sequence"] in files:
                    check_bytes(server, f"{place}/{row['sequence']}", files[row["sequence"]], rng)
                else:
                    code = 409 if row["state"] == "unreadable" else 404
                    assert server.ask(f"{place}/{row['sequence']}")[0] == code, (served, place, row)
            done = subprocess.run([varve, "streams", stream["euid"], plane, "--json", "--store", served], check=True,
                                  capture_output=True)
            assert done.stdout == server.ask(place)[2], (served, place)
            done = subprocess.run([varve, "streams", stream["euid"], plane, "--store", served, "-n", "1000"],
                                  check=True, capture_output=True)
            assert len(done.stdout.splitlines()) == len(rows) + (2 if rows else 1), done.stdout
    server.stop()
    return met


def archives_of(path, work):
    """The same archive in the other formats."""
    name = os.path.join(work, os.path.basename(path))
    with open(path, "rb") as file:
        data = file.read()
    with gzip.open(name + ".gz", "wb") as file:
        file.write(data)
    with tarfile.open(path) as tar, zipfile.ZipFile(name + ".zip", "w", zipfile.ZIP_DEFLATED) as target:
        for member in tar:
            if member.isfile():
                target.writestr(member.name, tar.extractfile(member).read())
    return [path, name + ".gz", name + ".zip"]


def test_fixtures(build, source, work, rng):
    varve, met = os.path.join(build, "varve"), {}
    fixtures = os.path.join(source, "tests", "fixtures")
    for name in sorted(os.listdir(fixtures)):
        if not re.fullmatch(r"(demo-store|damaged-[0-9])\.tar", name):
            continue
        path = os.path.join(fixtures, name)
        for place in archives_of(path, work) if name.startswith("demo") else [path]:
            check_store(varve, place, open_source(path), rng)
        target = os.path.join(work, name[:-4])
        with tarfile.open(path) as tar:
            tar.extractall(target, **({"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}))
        for state, count in check_store(varve, target, open_source(target), rng).items():
            met[state] = met.get(state, 0) + count
    assert met["good"] > 20 and met["corrupt"] > 3 and met["missing"] > 0, met


def test_recorded(build, source, work, rng):
    """What our own writer writes has a health plane too."""
    store = os.path.join(work, "shop", "profiles-v1")
    env = {**os.environ, "BAML_PROFILE_DIR": store}
    env.pop("BAML_PROFILE", None)
    subprocess.run([os.path.join(build, "examples", "vm"), os.path.join(source, "examples", "shop.vm")], check=True,
                   env=env, stdout=subprocess.DEVNULL)
    met = check_store(os.path.join(build, "varve"), store, open_source(store), rng)
    assert set(met) == {"good"}, met
    (stream,) = os.listdir(os.path.join(store, "streams"))
    assert os.listdir(os.path.join(store, "streams", stream, "health"))


class Made:
    """A store of one stream whose segment files may be anything."""

    def __init__(self, work, name):
        self.root = os.path.join(work, name, "profiles-v1")
        self.euid = "00112233445566778899aabbccddeeff"
        self.stream = os.path.join(self.root, "streams", self.euid)
        for plane in SUFFIX:
            os.makedirs(os.path.join(self.stream, plane))
        header = (sb.STREAM_STARTED, {"pid": 7, "zero": 1, "version": "v", "arch": "linux-x86_64"})
        self.put("meta", 1, sb.MetaSegment(1, bytes.fromhex(self.euid), 0, [header]).encode())

    def path(self, plane, sequence):
        return os.path.join(self.stream, plane, "%020d%s" % (sequence, SUFFIX[plane]))

    def put(self, plane, sequence, data):
        with open(self.path(plane, sequence), "wb") as file:
            file.write(data)


def test_hostile(build, _source, work, rng):
    """What is no file, is empty, bears the highest of all names, or lies beside."""
    varve, made = os.path.join(build, "varve"), Made(work, "hostile")
    made.put("data", 1, b"")
    os.symlink("/etc/hostname", made.path("data", 3))
    os.mkdir(made.path("data", 4))
    os.mkfifo(made.path("data", 5))
    made.put("data", 2**64 - 1, b"x" * 31)
    made.put("data", 7, rng.randbytes(100000))
    for other in ("6.bamldata", "%020d.bamldata" % 0, "%020d.bamlmeta" % 6, "%020d.bamldata" % 2**64, "x"):
        with open(os.path.join(made.stream, "data", other), "wb") as file:
            file.write(b"nothing of ours")
    met = check_store(varve, made.root, open_source(made.root), rng)
    assert met["unreadable"] == 3 and met["missing"] == 3, met


def test_refusals(build, _source, work, rng):
    made = Made(work, "refusals")
    made.put("data", 1, rng.randbytes(100))
    server = Server(os.path.join(build, "varve"), made.root)
    good = "/" + made.euid
    for path, query, status, parameter in (
            ("/nonsense/data", {}, 400, "euid"), ("/" + "0" * 31 + "/data", {}, 400, "euid"),
            ("/" + "f" * 32 + "/data", {}, 404, "euid"), ("/" + "f" * 32 + "/data/1", {}, 404, "euid"),
            (good + "/samples", {}, 404, "plane"), (good + "/Data", {}, 404, "plane"),
            (good + "/cas/1", {}, 404, "plane"),
            (good + "/data/0", {}, 404, "seq"), (good + "/data/2", {}, 404, "seq"), (good + "/data/x", {}, 400, "seq"),
            (good + "/data/-1", {}, 400, "seq"), (good + "/data/1.bamldata", {}, 400, "seq"),
            (good + "/data/18446744073709551616", {}, 400, "seq"),
            (good + "/data/18446744073709551615", {}, 404, "seq"),
            (good + "/data/1", {"limit": 1}, 400, "limit"), (good + "/data/1/2", {}, 404, None),
            (good + "/data/", {}, 404, None), (good + "/data", {"after": "x"}, 400, "after"),
            (good + "/data", {"after": "-1"}, 400, "after"), (good + "/data", {"limit": 0}, 400, "limit"),
            (good + "/data", {"limit": 1001}, 400, "limit"), (good + "/data", {"cursor": "AAAA"}, 400, "cursor"),
            (good + "/data", {"until": 1}, 400, "until"), (good + "/data", {"as_of": "0" * 64}, 410, "as_of")):
        assert server.code(path, **query) == (status, parameter), (path, query, server.code(path, **query))
    assert server.ask(good + "/data/%020d" % 1)[0] == 200
    for path in (good + "/data/..%2f1", good + "/../x", good + "/data/%2e%2e", good + "/data/1%00"):
        assert server.ask(path)[0] == 400, path
    assert server.ask(good + "/data/1", method="POST")[0] == 405
    # Another list's cursor is none of this one.
    for sequence in (2, 3):
        made.put("data", sequence, b"")
        made.put("meta", sequence, b"")
    deadline = time.monotonic() + 60
    while not server.get(good + "/data", limit=1)["next"] or not server.get(good + "/meta", limit=1)["next"]:
        assert time.monotonic() < deadline
    cursor = server.get(good + "/data", limit=1)["next"]
    assert server.code(good + "/meta", cursor=cursor) == (400, "cursor")
    assert server.code(good + "/data", cursor=cursor, after=1) == (400, "cursor")
    server.stop()


def test_changes(build, _source, work, rng):
    """A file that is rewritten, even under its old length and time, has another tag at once."""
    made = Made(work, "changes")
    server = Server(os.path.join(build, "varve"), made.root)
    path = f"/{made.euid}/data/1"
    for number in range(50):
        data = rng.randbytes(64)
        made.put("data", 1, data)
        os.utime(made.path("data", 1), ns=(10**18, 10**18))
        for _ in range(2):
            status, headers, body = server.ask(path)
            assert (status, body, headers["etag"]) == (200, data, '"%s"' % hashlib.sha256(data).hexdigest()), number
    server.stop()


def sparse(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def test_large(build, _source, work, _rng):
    """A gigabyte in bounded memory, its end first, and while others ask for it."""
    made, size = Made(work, "large"), 2**30
    sparse(made.path("data", 1), size)
    digest, zeros = hashlib.sha256(), bytes(2**20)
    for _ in range(size // len(zeros)):
        digest.update(zeros)
    server = Server(os.path.join(build, "varve"), made.root)
    path = f"/{made.euid}/data/1"
    status, headers, body = server.ask(path, {"Range": f"bytes={size - 5}-"})
    assert (status, body, headers["etag"]) == (206, bytes(5), '"%s"' % digest.hexdigest())
    (row,) = server.get(f"/{made.euid}/data")["items"]
    assert (row["bytes"], row["sha256"], row["state"]) == (size, digest.hexdigest(), "corrupt"), row
    before = server.memory()
    server.connection.request("GET", "/api/v1/streams" + path)
    response, got = server.connection.getresponse(), 0
    while piece := response.read(2**20):
        got += len(piece)
    assert got == size
    assert server.memory() < before + 8192, (before, server.memory())
    server.stop()
    os.unlink(made.path("data", 1))


def open_files(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            yield os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass


def test_shrinking(build, _source, work, _rng):
    """A file that becomes shorter while it is sent ends the connection, and nobody is kept busy by it."""
    made, size = Made(work, "shrinking"), 2**28
    sparse(made.path("data", 1), size)
    server = Server(os.path.join(build, "varve"), made.root)
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 60) as client:
        client.sendall(f"GET /api/v1/streams/{made.euid}/data/1 HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        got = client.recv(65536)
        assert got.startswith(b"HTTP/1.1 200 ") and f"Content-Length: {size}\r\n".encode() in got, got[:200]
        os.truncate(made.path("data", 1), 2**20)
        total = len(got)
        try:
            while piece := client.recv(2**20):
                total += len(piece)
        except ConnectionResetError:
            pass
    assert total < size, total
    assert server.ask(f"/{made.euid}/data/1")[0] == 200
    deadline = time.monotonic() + 60
    while any(name.endswith("bamldata") for name in open_files(server.process.pid)):
        assert time.monotonic() < deadline, "a descriptor is left"
    server.stop()


USE = {r"streams/[0-9a-f]{32}/meta/(?!0{20})[0-9]{20}\.bamlmeta": "meta",
       r"streams/[0-9a-f]{32}/data/(?!0{20})[0-9]{20}\.bamldata": "data",
       r"streams/[0-9a-f]{32}/health/(?!0{20})[0-9]{20}\.varvehealth": "health",
       r"streams/[0-9a-f]{32}/(stream\.lock|samples/.*)": "other",
       r"cas/sha256/([0-9a-f]{2})/\1[0-9a-f]{62}\.bamlvalue": "cas",
       r"tmp/.*": "tmp", r"runs/.*": "legacy", r"publish\.lock|usage\.state": "other"}


class Slow:
    """An answer that takes longer to be made than a client may be silent: meanwhile the server is stopped."""

    SILENCE = 31

    def __init__(self, build, work):
        made = Made(work, "slow")
        sparse(made.path("data", 1), 3 * 2**30)
        self.server = Server(os.path.join(build, "varve"), made.root)
        self.server.get("")
        self.place = "/%s/data" % made.euid
        self.items, self.fault = None, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        timer = threading.Timer(0.3, self.stop_for_a_while)
        timer.start()
        try:
            self.items = self.server.get(self.place)["items"]
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault
        timer.join()

    def stop_for_a_while(self):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(self.SILENCE)
        self.server.process.send_signal(signal.SIGCONT)

    def test_slow(self, _build, _source, _work, _rng):
        """It comes whole all the same."""
        self.thread.join()
        self.server.stop()
        assert self.fault is None, repr(self.fault)
        assert [item["bytes"] for item in self.items] == [3 * 2**30], self.items


def expected_use(root, alive, below=("",)):
    """(disk, bytes that the ledger should say) by a walk of our own, of what lies below some names."""
    disk = {name: {"files": 0, "bytes": 0} for name in (*dict.fromkeys(USE.values()), "orphan", "total")}
    disk["irregular"], counted = 0, 48
    for directory, inner, names in os.walk(root):
        for name in names + [name for name in inner if os.path.islink(os.path.join(directory, name))]:
            path = os.path.join(directory, name)
            relative = os.path.relpath(path, root)
            if not relative.startswith(below):
                continue
            if os.path.islink(path) or not os.path.isfile(path):
                disk["irregular"] += 1
                continue
            kind = next((USE[pattern] for pattern in USE if re.fullmatch(pattern, relative, re.ASCII)), "orphan")
            kind = "orphan" if kind == "tmp" and not alive else kind
            size = os.path.getsize(path)
            for total in (disk[kind], disk["total"]):
                total["files"] += 1
                total["bytes"] += size
            if relative not in ("publish.lock", "usage.state", "tmp/usage-state.pending"):
                counted += size
    return disk, counted


def store_answer(varve, root, **query):
    """What the command says, which is what the server says."""
    server = Server(varve, root)
    status, headers, body = server.request("/api/v1/store", query)
    told = (status, headers.get("etag"), headers.get("cache-control"))
    assert told == (200, None, "no-store"), told
    server.stop()
    scan = ["--scan"] if query.get("scan") == 1 else []
    command = [varve, "streams", "--use", *scan, "--store", root]
    assert subprocess.run([*command, "--json"], check=True, capture_output=True).stdout == body
    text = subprocess.run(command, check=True, capture_output=True)
    assert re.search(rb"^total +[0-9,]+ +[0-9,]+$", text.stdout, re.MULTILINE), text.stdout
    return json.loads(body)


def counts_of(source):
    """Streams and segments by the reference reader's rules."""
    streams = [name for name in source.names("streams") if re.fullmatch("[0-9a-f]{32}", name)]
    counts = {"streams": len(streams)}
    for plane in ("meta", "data"):
        rows = [row for name in streams for row in expected_rows(source, name, plane)[0]]
        counts[plane + "_segments"] = {state: sum(row["last"] - row["sequence"] + 1 for row in rows
                                                  if row["state"] == state)
                                       for state in ("good", "corrupt", "unreadable", "missing")}
    return counts


def test_use(build, source, work, _rng):
    """Of the fixtures, of a recorded store (whose own ledger must agree), and of one with all sorts of files."""
    varve, fixtures = os.path.join(build, "varve"), os.path.join(source, "tests", "fixtures")
    for name in ("demo-store", *(f"damaged-{n}" for n in range(1, 8))):
        root = os.path.join(work, name, ".baml", "profiles-v1")
        if not os.path.isdir(root):
            root = os.path.join(work, name, "profiles-v1")
        (disk, counted), answer = expected_use(root, False), store_answer(varve, root)
        assert answer["disk"] == disk and answer["ledger"]["counted"] == counted, (name, answer, disk, counted)
        for key, value in counts_of(open_source(root)).items():
            assert answer["counts"][key] == value, (name, key, answer["counts"], value)
        assert answer["orphan_groups"] is None
        archive = store_answer(varve, os.path.join(fixtures, name + ".tar"))
        disk, counted = expected_use(root, False, ("streams/", "cas/"))
        assert archive["disk"] == disk and archive["counts"] == answer["counts"], (name, archive["disk"], disk)
        assert archive["ledger"] == {"bytes": None, "counted": counted, "agrees": None}, archive["ledger"]
    answer = store_answer(varve, os.path.join(work, "shop", "profiles-v1"), scan=1)
    assert answer["ledger"]["agrees"] is True and answer["disk"]["health"]["files"] > 0, answer
    assert answer["orphan_groups"] == {"executions": 0, "items": []}
    made = Made(work, "use")
    made.put("data", 3, b"x" * 5)
    made.put("data", 2**64 - 1, b"")
    for path in ("tmp/%032d.pending" % 1, "tmp/usage-state.pending", "runs/a/b/c", "runs/x", "streams/stray",
                 "cas/sha256/00/" + "0" * 64 + ".bamlvalue", "cas/sha256/01/" + "0" * 64 + ".bamlvalue",
                 "cas/sha256/00/" + "0" * 64 + ".value", "cas/sha256/00/" + "A" * 64 + ".bamlvalue", "notes.txt",
                 f"streams/{made.euid}/stream.lock", f"streams/{made.euid}/samples/1", f"streams/{made.euid}/data/x",
                 f"streams/{made.euid}/data/" + "0" * 20 + ".bamldata", f"streams/{made.euid}/meta.bamlmeta"):
        target = os.path.join(made.root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(b"y" * len(path))
    os.symlink("..", os.path.join(made.root, "runs", "up"))
    os.symlink("nowhere", os.path.join(made.root, "cas", "nowhere"))
    os.mkfifo(os.path.join(made.root, "fifo"))
    os.makedirs(os.path.join(made.root, "runs", *"d" * 20))
    (disk, counted), answer = expected_use(made.root, False), store_answer(varve, made.root)
    assert answer["disk"] == disk and disk["irregular"] == 3, (answer["disk"], disk)
    assert answer["ledger"] == {"bytes": None, "counted": counted, "agrees": None}, answer["ledger"]
    assert int(answer["counts"]["data_segments"]["missing"]) == 2**64 - 1 - 2, answer["counts"]
    with open(os.path.join(made.stream, "stream.lock"), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert store_answer(varve, made.root)["disk"] == expected_use(made.root, True)[0]
    # Directories without end are cut, and counted as what can't be read.
    os.makedirs(os.path.join(made.root, "runs", *"d" * 60, "e"))
    answer = store_answer(varve, made.root)
    assert answer["disk"]["irregular"] == 4 and answer["disk"]["total"] == disk["total"], answer["disk"]


def test_orphans(build, _source, work, rng):
    """Data that no index names, of which only the first thousand are listed."""
    made = Made(work, "orphans")
    euid = bytes.fromhex(made.euid)
    roots = sorted(euid + (1).to_bytes(8, "big") + number.to_bytes(8, "big")
                   for number in rng.sample(range(2**40), 1500))
    for sequence, part in ((1, roots[:1000]), (2, roots[500:])):
        groups = [sb.Group(root, 0, [], [], [(sb.THREAD_END, {"thread": root, "ended": 1, "status": 0})])
                  for root in part]
        made.put("data", sequence, sb.DataSegment(sequence, euid, groups).encode())
    answer = store_answer(os.path.join(build, "varve"), made.root, scan=1)
    assert answer["orphan_groups"]["executions"] == 1500, answer["orphan_groups"]["executions"]
    assert answer["orphan_groups"]["items"] == [thread_text(root) for root in roots[:1000]]


def test_many_objects(build, _source, work, _rng):
    """The use of very many objects is told in memory that does not go by their number."""
    made, peaks, there = Made(work, "many"), [], 0
    for directory in range(256):
        os.makedirs(os.path.join(made.root, "cas", "sha256", "%02x" % directory))
    for count in (1000, 30000):
        for number in range(there, count):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            os.close(os.open(os.path.join(made.root, "cas", "sha256", name[:2], name + ".bamlvalue"),
                             os.O_CREAT | os.O_WRONLY))
        there = count
        server = Server(os.path.join(build, "varve"), made.root)
        for _ in range(2):
            answer = json.loads(server.request("/api/v1/store")[2])
        assert answer["disk"]["cas"] == {"files": count, "bytes": 0}, answer["disk"]
        peaks.append(server.memory())
        server.stop()
        if not peaks[0]:
            return  # a sanitizer keeps what is freed
    assert peaks[1] < peaks[0] * 1.1 + 512, peaks


def main():
    build, source, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = tempfile.mkdtemp()
    print(f"# seed {seed}")
    failed = 0
    slow = Slow(build, work)
    tests = (test_fixtures, test_recorded, test_hostile, test_refusals, test_changes, test_large, test_shrinking,
             test_use, test_orphans, test_many_objects, slow.test_slow)
    try:
        for number, test in enumerate(tests, 1):
            try:
                test(build, source, work, random.Random(seed))
                print(f"ok {number} - {test.__name__[5:]}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {test.__name__[5:]}", flush=True)
                print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
        print(f"1..{number}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(failed > 0)


main()
