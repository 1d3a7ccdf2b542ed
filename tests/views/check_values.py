#!/usr/bin/env python3
"""Holds what `varve serve` and `varve value` say of captured values against an independent reader; speaks TAP.

usage: check_values.py BUILD SOURCE SEED
"""

import hashlib
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import genstore  # noqa: E402
import refstore  # noqa: E402
import refvalue  # noqa: E402
import serving  # noqa: E402
import storebytes as sb  # noqa: E402
from refvalue import Pairs  # noqa: E402

LEVELS = 61  # of containers that the answer has room for
WIDE = {"max_depth": 64, "max_bytes": 4 * 2**20}
LIMIT = 64 * 2**20


class Server(serving.Server):
    """One that is asked for values."""

    def ask(self, resource, headers=None, method="GET", **query):
        return self.request("/api/v1/values/" + resource, query, headers, method)

    def get(self, resource, **query):
        status, _, body = self.ask(resource, **query)
        return status, json.loads(body, object_pairs_hook=Pairs)


class Store:
    """A directory of objects that may be anything."""

    def __init__(self, root):
        self.root = root
        os.makedirs(os.path.join(root, "streams"))

    def place(self, cid):
        text = cid.hex()
        directory = os.path.join(self.root, "cas", "sha256", text[:2])
        os.makedirs(directory, exist_ok=True)
        return os.path.join(directory, text + ".bamlvalue")

    def put(self, body, codec=1):
        cid = sb.value_cid(codec, body)
        self.put_file(cid, sb.cas_object(codec, body))
        return cid.hex()

    def put_file(self, cid, content):
        with open(self.place(cid), "wb") as file:
            file.write(content)


def want(document):
    return dict(document)


def check_body(server, cid, body, path="$", steps=()):
    """The answer for a value, whole or from a path on."""
    status, answer = server.get(cid, **WIDE, **({"path": path} if path != "$" else {}))
    got = want(answer)
    try:
        taken, message, kind, count = refvalue.walk(body, steps)
    except refvalue.Malformed:
        assert (status, got["state"], got["value"]) == (200, "malformed", None), (body.hex(), path, answer)
        return "malformed"
    if taken < len(steps):
        reached = dict(got["reached"])
        assert status == 404 and got["parameter"] == "path", (body.hex(), path, answer)
        assert (reached["steps"], reached["of"], reached["kind"]) == (taken, len(steps), kind), (path, answer)
        return "nowhere"
    try:
        value = refvalue.show(message, LEVELS)
    except refvalue.Malformed:
        assert (status, got["state"], got["value"]) == (200, "malformed", None), (body.hex(), path, answer)
        return "malformed"
    expected = Pairs([("cid", "bamlv_1_" + cid), ("state", "available"), ("fault", None), ("codec", 1),
                      ("bytes", len(body)), ("path", path), ("kind", kind), ("items", count), ("value", value),
                      ("cut", '["$cut", "depth"]' in json.dumps(value))])
    assert status == 200 and answer == expected, (body.hex(), path, answer, expected)
    return "available"


def check_raw(server, cid, body):
    status, headers, got = server.ask(cid + "/raw")
    assert (status, got) == (200, body)
    assert headers["etag"] == '"' + hashlib.sha256(body).hexdigest() + '"'
    assert headers["content-length"] == str(len(body))


def record(build, source, store):
    subprocess.run([os.path.join(build, "examples", "vm"), os.path.join(source, "examples", "shop.vm")], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "BAML_PROFILE_DIR": store})


def test_recorded(build, source, work):
    """Every object of a recorded program and of the fixtures, these inside their archives too."""
    stores = [os.path.join(work, "vm", "profiles-v1")]
    record(build, source, stores[0])
    fixtures = os.path.join(source, "tests", "fixtures")
    for name in sorted(os.listdir(fixtures)):
        if name.endswith(".tar"):
            stores.append(os.path.join(work, name))
            os.mkdir(stores[-1])
            subprocess.run(["tar", "-xf", os.path.join(fixtures, name), "-C", stores[-1]], check=True)
    seen = 0
    for served in stores + [os.path.join(fixtures, os.path.basename(store)) for store in stores[1:]]:
        store = os.path.join(work, os.path.basename(served)) if served not in stores else served
        server = Server(os.path.join(build, "varve"), served)
        for directory, _, names in os.walk(store):
            for name in names:
                if not name.endswith(".bamlvalue"):
                    continue
                with open(os.path.join(directory, name), "rb") as file:
                    content = file.read()
                cid, body = name.split(".")[0], content[52:-32]
                codec = int.from_bytes(content[10:12], "big")
                if content != sb.cas_object(codec, body) or sb.value_cid(codec, body).hex() != cid:
                    assert dict(server.get(cid)[1])["state"] == "damaged"
                elif codec == 1:
                    check_body(server, cid, body)
                    check_raw(server, cid, body)
                    seen += 1
                else:
                    assert dict(server.get(cid)[1])["state"] == "other_codec"
                    check_raw(server, cid, body)
        server.stop()
    assert seen > 20, seen


def test_random(server, store, rng):
    """Random bodies, and paths into them."""
    states = {"available": 0, "nowhere": 0, "malformed": 0}
    for round_ in range(300):
        maker = refvalue.Maker(rng, odd=round_ % 2 == 1)
        body = maker.value(rng.choice((1, 3, 6)))
        cid = store.put(body)
        states[check_body(server, cid, body)] += 1
        for _ in range(3):
            steps = maker.steps(body)
            path = refvalue.path_text(rng, steps)
            if path:
                states[check_body(server, cid, body, path, steps)] += 1
        if round_ % 10 == 0:
            check_raw(server, cid, body)
    assert states["available"] > 500 and states["nowhere"] > 30, states


def test_cut(server, store, rng):
    """Every prefix of some bodies, and bodies with flipped bytes."""
    states = {"available": 0, "malformed": 0}
    for _ in range(6):
        body = refvalue.Maker(rng).value(4)[:400]
        for size in range(len(body)):
            states[check_body(server, store.put(body[:size]), body[:size])] += 1
    for _ in range(400):
        body = bytearray(refvalue.Maker(rng, odd=True).value(4)[:1000] or b"\x12\0")
        for _ in range(rng.choice((1, 2, 8))):
            body[rng.randrange(len(body))] = rng.getrandbits(8)
        states[check_body(server, store.put(bytes(body)), bytes(body))] += 1
    assert states["malformed"] > 100 and states["available"] > 50, states


def test_hostile(server, store, _rng):
    """Deep nesting, lengths and counts without sense: each is answered soon, and the server lives."""
    pieces = []
    size = 0
    for _ in range(200000):
        head = refvalue.put_varint(2 << 3 | 2) + refvalue.put_varint(size)
        outer = refvalue.put_varint(11 << 3 | 2) + refvalue.put_varint(size + len(head))
        pieces.append(outer + head)
        size += len(outer) + len(head)
    deep = b"".join(reversed(pieces))
    status, answer = server.get(store.put(deep))
    assert status == 200 and want(answer)["cut"] is True and json.dumps(answer).count("depth") == 1
    status, answer = server.get(store.put(deep), path="[0]" * 128, max_depth=0)
    assert status == 200 and want(answer)["value"] == Pairs([("$cut", "depth")])
    assert server.get(store.put(deep), path="[0]" * 129)[0] == 400
    many = refvalue.put(11, refvalue.put(2, b"\x12\0") * 1000000)
    status, answer = server.get(store.put(many))
    got = want(answer)
    assert (status, got["items"], got["cut"], got["value"][-1]) == (200, 1000000, True, Pairs([("$cut", "bytes")]))
    last = want(server.get(store.put(many), path="[999999]")[1])
    assert (last["state"], last["kind"], last["value"], last["cut"]) == ("available", "null", None, False)
    for body, fault in ((b"\x1a" + b"\xff" * 9 + b"\x01", "Truncated"), (b"\x5a\xff\xff\xff\xff\x0f", "Truncated"),
                        (b"\x5a\x05\x12\xff\xff\xff\x7f", "Truncated"), (b"\x1b", "InvalidTag"),
                        (b"\x00\x00", "InvalidTag"), (b"\x20" + b"\x80" * 11, "InvalidTag"),
                        (b"\x1a\x01\xff", "InvalidUtf8"),
                        (b"\xa2\x01\x01g", "InvalidHex"), (b"\x18\x01", "InvalidTag")):
        status, answer = server.get(store.put(body))
        got = want(answer)
        assert (status, got["state"], got["fault"], got["value"]) == (200, "malformed", fault, None), (body, answer)
    status, answer = server.get(store.put(b""))
    assert want(answer)["kind"] == "unknown" and want(answer)["value"] == Pairs([("$unknown", True)])


def marks(value):
    if isinstance(value, Pairs):
        return sum(key == "$cut" for key, _ in value) + sum(marks(inner) for _, inner in value)
    return sum(marks(inner) for inner in value) if isinstance(value, list) else 0


def test_bounds(server, store, rng):
    """What bounds cut is marked; what they do not cut is whole."""
    cuts = 0
    for _ in range(150):
        body = refvalue.Maker(rng).value(6)
        cid = store.put(body)
        bounds = {"max_bytes": rng.choice((0, 10, 100, 1000)), "max_depth": rng.choice((0, 1, 3, 64))}
        status, _, text = server.ask(cid, **bounds)
        got = want(json.loads(text, object_pairs_hook=Pairs))
        assert status == 200 and got["state"] == "available"
        assert got["cut"] == (marks(got["value"]) > 0), (body.hex(), bounds, text)
        assert len(text) < 12 * bounds["max_bytes"] + 2000, (bounds, len(text))
        if not got["cut"]:
            assert got["value"] == refvalue.show(body, LEVELS)
        cuts += got["cut"]
    assert 30 < cuts < 150, cuts
    text = "\u20ac" * 100000
    got = want(server.get(store.put(refvalue.put(3, text.encode())))[1])
    assert got["value"] == Pairs([("$cut", "bytes"), ("length", 300000), ("preview", "\u20ac" * 85)])
    for name, value in (("max_bytes", -1), ("max_bytes", 4 * 2**20 + 1), ("max_depth", 65), ("max_depth", "x"),
                        ("path", "$..a"), ("path", "$[01]"), ("path", "$['a"), ("other", 1)):
        status, answer = server.get(cid, **{name: value})
        assert status == 400 and want(answer)["parameter"] == name, answer


USE_FIELDS = ("execution_id", "role", "call_id", "thread_id", "error_id", "log", "function_id", "call_path_id",
              "call_path_overflow_reason", "codec", "bytes")
REASONS = ("context_memory_unavailable_after_drain", "invalid_parent_context")


def use(execution, role, value, call=None, error=None, log=None, function=None, context=None):
    """(content id, what the answer must say of one occurrence)"""
    normal = isinstance(context, bytes)
    return value["cid"], (
        execution.ident, role, call and refstore.call_text(call), call and refstore.thread_text(call[:32]),
        error and refstore.thread_text(error[:32]) + "~" + str(int.from_bytes(error[32:], "big")), log, function,
        context.hex() if normal else None, REASONS[context[0]] if isinstance(context, tuple) else None,
        value["codec"], value["bytes"])


def uses_of(execution):
    """Every occurrence in one execution, in the order that answers have; call scopes come last, in any order."""
    for call, span in sorted(execution.spans.items()):
        known = {"function": span.start["function_id"], "context": span.start["context"]} if span.start else {}
        for role, word in enumerate(("input", "output")):
            if "cid" in span.values.get(role, {}):
                yield use(execution, word, span.values[role], call, **known)
    for ident, error in sorted(execution.errors.items()):
        if "cid" in error["value"]:
            yield use(execution, "error", error["value"], error["throw_call"], ident, function=error["function_id"],
                      context=error["context"])
    for number, log in enumerate(execution.logs):
        for part in ("context", "data"):
            if "cid" in log[part]:
                yield use(execution, "log_" + part, log[part], log["call"], log=number)
    for call, scopes in execution.scopes.items():
        for scope in scopes:
            if "cid" in scope["context"]:
                yield use(execution, "scope_context", scope["context"], call)


def expected_uses(path):
    """({content id: occurrences}, number of executions)"""
    executions = [x for stream in refstore.load_store(path).streams if stream.error is None
                  for x in stream.roots.values()]
    executions.sort(key=lambda x: (x.started_unix_ns is not None, x.started_unix_ns or 0, x.root), reverse=True)
    found = {}
    for execution in executions:
        for cid, item in uses_of(execution) if execution.error is None else ():
            found.setdefault(cid, []).append(item)
    return found, len(executions)


def order(items):
    """Brings call scopes, whose order is the recording's, into one that can be compared."""
    executions = {item[0]: at for at, item in reversed(list(enumerate(items)))}
    return sorted(items, key=lambda item: (executions[item[0]],) + (
        (1, repr(item)) if item[1] == "scope_context" else (0, "")))


def pages(server, cid, limit):
    items, cursor, searched = [], None, 0
    while True:
        status, body = server.ask(cid + "/uses", limit=limit, **({"cursor": cursor} if cursor else {}))[::2]
        answer = json.loads(body)
        assert status == 200 and answer["cid"] == "bamlv_1_" + cid, (status, answer)
        assert answer["evidence"]["truncated"] == (answer["next"] is not None)
        assert len(answer["items"]) == limit or answer["next"] is None, "a page that is neither full nor last"
        items += [tuple(item[name] for name in USE_FIELDS) for item in answer["items"]]
        searched = max(searched, answer["evidence"]["executions"])
        cursor = answer["next"]
        if cursor is None:
            return items, searched


def check_uses(varve, path):
    found, count = expected_uses(path)
    server = Server(varve, path)
    for cid in [*found, "0" * 64]:
        wanted = found.get(cid, [])
        whole, searched = pages(server, cid, 1000)
        assert searched == count, (cid, searched, count)
        assert order(whole) == order(wanted), (path, cid, whole, wanted)
        for limit in (1, 2, 7):
            assert pages(server, cid, limit)[0] == whole, (path, cid, limit)
        done = subprocess.run([varve, "value", cid, "--uses", "--limit", "5", "--json", "--store", path], check=True,
                              capture_output=True)
        assert done.stdout == server.ask(cid + "/uses", limit=5)[2]
        following = json.loads(done.stdout)["next"]
        if following:
            done = subprocess.run([varve, "value", cid, "--uses", "--limit", "5", "--cursor", following, "--json",
                                   "--store", path], check=True, capture_output=True)
            assert done.stdout == server.ask(cid + "/uses", limit=5, cursor=following)[2]
        done = subprocess.run([varve, "value", cid, "--uses", "--store", path], check=True, capture_output=True)
        rows = done.stdout.decode().splitlines()
        assert len(rows) == min(len(wanted), 100) + (2 if wanted else 1) + (len(wanted) > 100), rows
    server.stop()
    return sum(map(len, found.values()))


def test_uses(build, source, work):
    """Every occurrence of every value of recorded, damaged and random stores, whole and page by page."""
    varve, fixtures = os.path.join(build, "varve"), os.path.join(source, "tests", "fixtures")
    names = sorted(name for name in os.listdir(fixtures) if name.endswith(".tar"))
    recorded = os.path.join(work, "vm", "profiles-v1")
    once = check_uses(varve, recorded)
    for _ in range(2):
        record(build, source, recorded)
    assert once > 10 and check_uses(varve, recorded) == 3 * once
    total = sum(check_uses(varve, os.path.join(fixtures, name)) for name in names)
    for seed in range(1, 9):
        path = os.path.join(work, f"seed-{seed}")
        genstore.build(seed, path)
        total += check_uses(varve, os.path.join(path, ".baml", "profiles-v1"))
    assert total > 100, total


def test_uses_parameters(server, store, _rng):
    """What asks for uses, and what does not: a value that was never captured has none."""
    cid = store.put(b"\x20\x07")
    for name, value in (("limit", 0), ("limit", 1001), ("cursor", "x"), ("path", "$"), ("max_bytes", 1)):
        status, answer = server.get(cid + "/uses", **{name: value})
        assert status == 400 and want(answer)["parameter"] == name, answer
    status, answer = server.get("nonsense/uses")
    assert status == 400 and want(answer)["parameter"] == "cid"
    status, answer = server.get("f" * 64 + "/uses")
    assert status == 200 and want(answer)["items"] == [] and want(answer)["next"] is None


def make_sparse(path, head, size):
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def test_states(server, store, rng):
    """Objects that are missing, damaged, special files, of another codec, too large."""
    def state(cid):
        status, answer = server.get(cid)
        raw_status, headers, raw = server.ask(cid + "/raw")
        got = want(answer)
        if status == 200 and got["state"] != "other_codec":
            assert raw_status == 409 and json.loads(raw)["state"] == got["state"], (got, raw)
            assert headers["content-type"] == "application/problem+json" and "etag" not in headers
        assert got.get("value") is None and got.get("cut") is None
        return status, got["state"], got.get("fault")

    body = refvalue.put(3, b"a secret text")
    content = sb.cas_object(1, body)
    cid = sb.value_cid(1, body)
    assert state(cid.hex()) == (404, "missing", None)
    assert b"secret" not in server.ask(cid.hex())[2]
    for at in range(len(content)):
        bad = bytearray(content)
        bad[at] ^= 1 << rng.randrange(8)
        store.put_file(cid, bytes(bad))
        assert state(cid.hex()) == (200, "damaged", "InvalidChecksum"), at
    for size in range(len(content)):
        store.put_file(cid, content[:size])
        assert state(cid.hex()) == (200, "damaged", "Truncated" if size < 32 else "InvalidChecksum"), size
    resealed = ((b"BAMLVAL2" + content[8:], "InvalidMagic"), (content[:9] + b"\2" + content[10:], "UnsupportedVersion"),
                (content[:12] + sb.u64(len(body) + 1) + content[20:], "Truncated"),
                (content[:12] + sb.u64(2**64 - 1) + content[20:], "Truncated"),
                (content[:12] + sb.u64(len(body) - 1) + content[20:], "TrailingBytes"),
                (content[:20] + bytes(32) + content[52:], "InvalidChecksum"),
                (content[:-33] + b"!" + content[-32:], "InvalidChecksum"), (content[:40] + content[-32:], "Truncated"))
    for bad, fault in resealed:
        store.put_file(cid, sb.reseal(bad))
        assert state(cid.hex()) == (200, "damaged", fault), (bad, fault, state(cid.hex()))
    store.put_file(cid, sb.cas_object(1, refvalue.put(3, b"another")))
    assert state(cid.hex()) == (200, "damaged", "CasIdentityMismatch")
    store.put_file(cid, content)
    assert want(server.get(cid.hex())[1])["value"] == "a secret text"

    assert state(store.put(b"a table", codec=2)) == (200, "other_codec", None)
    place = store.place(cid)
    os.unlink(place)
    os.mkfifo(place)
    assert state(cid.hex()) == (200, "unreadable", "NotRegularFile")
    os.unlink(place)
    os.symlink("/etc/passwd", place)
    assert state(cid.hex()) == (200, "unreadable", "NotRegularFile")
    os.unlink(place)
    os.mkdir(place)
    assert state(cid.hex()) == (200, "unreadable", "NotRegularFile")
    os.rmdir(place)

    size = 5 * 2**30
    before = server.memory()
    make_sparse(place, content[:12] + sb.u64(size - 84) + content[20:52], size)
    assert state(cid.hex()) == (200, "too_large", None)
    make_sparse(place, content[:52], size)
    assert state(cid.hex()) == (200, "damaged", "TrailingBytes")
    make_sparse(place, b"", size)
    assert state(cid.hex()) == (200, "damaged", "InvalidMagic")
    make_sparse(place, content[:12] + sb.u64(LIMIT + 1) + content[20:52], LIMIT + 85)
    assert state(cid.hex()) == (200, "too_large", None)
    assert server.memory() - before < 8 * 1024, "a giant was read"
    os.unlink(place)


def test_names(server, store, _rng):
    """What names a value, and what does not."""
    cid = store.put(b"\x20\x07")
    for name in (cid, "bamlv_1_" + cid, cid.upper()):
        assert want(server.get(name)[1])["value"] == 7
        assert server.ask(name + "/raw")[2] == b"\x20\x07"
    for name in ("x", cid[:-1], cid + "0", "bamlv_2_" + cid, "bamlv_1_", "BAMLV_1_" + cid, cid[:-1] + "g"):
        for resource in ("", "/raw"):
            status, _, body = server.ask(name + resource)
            assert status == 400 and json.loads(body)["parameter"] == "cid", (name, resource, body)
    assert server.ask(cid + "/other")[0] == 404
    assert server.ask("")[0] == 404
    assert server.ask(cid + "/raw", path="$")[0] == 400
    assert server.ask(cid, method="POST")[0] == 405


def test_tags(server, store, rng):
    """Tags, ranges, HEAD; nothing that a browser would show or run."""
    body = refvalue.put(19, rng.randbytes(200000))
    cid = store.put(body)
    status, headers, _ = server.ask(cid + "/raw")
    tag = headers["etag"]
    assert headers["cache-control"] == "public, max-age=31536000, immutable" and headers["accept-ranges"] == "bytes"
    assert headers["content-type"] == "application/octet-stream" and "content-encoding" not in headers
    assert headers["content-disposition"] == f'attachment; filename="bamlv_1_{cid}.bin"'
    for resource in ("", "/raw"):
        headers = server.ask(cid + resource)[1]
        assert headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in headers
        assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    status, headers, got = server.ask(cid + "/raw", {"If-None-Match": f'"x", {tag}'})
    assert (status, got, headers["etag"]) == (304, b"", tag)
    status, headers, got = server.ask(cid + "/raw", method="HEAD")
    assert (status, got, headers["content-length"], headers["etag"]) == (200, b"", str(len(body)), tag)

    def part(header, **more):
        status, headers, got = server.ask(cid + "/raw", {"Range": header, **more})
        return status, headers.get("content-range"), got

    size = len(body)
    for _ in range(50):
        first = rng.randrange(size)
        last = rng.randrange(first, size + 100)
        stands = f"bytes {first}-{min(last, size - 1)}/{size}"
        assert part(f"bytes={first}-{last}") == (206, stands, body[first:last + 1])
    assert part("bytes=5-") == (206, f"bytes 5-{size - 1}/{size}", body[5:])
    assert part("bytes=-5") == (206, f"bytes {size - 5}-{size - 1}/{size}", body[-5:])
    assert part(f"bytes=-{size + 5}") == (206, f"bytes 0-{size - 1}/{size}", body)
    assert part(f"bytes=0-{10**30}")[2] == body
    for outside in (f"bytes={size}-", "bytes=-0", f"bytes={10**30}-"):
        assert part(outside)[:2] == (416, f"bytes */{size}")
    for ignored in ("bytes=5-4", "bytes=0-1,3-4", "lines=0-1", "bytes=", "bytes=-", "bytes=a-b", "bytes 0-1"):
        assert part(ignored) == (200, None, body), ignored
    assert part("bytes=0-1", **{"If-Range": tag})[0] == 206
    assert part("bytes=0-1", **{"If-Range": '"other"'})[0] == 200
    assert part("bytes=0-1", **{"If-None-Match": tag})[0] == 304

    _, headers, _ = server.ask(cid)
    tag = headers["etag"]
    assert headers["cache-control"] == "no-cache" and server.ask(cid, {"If-None-Match": tag})[0] == 304
    assert server.ask(cid, {"If-None-Match": tag}, path="$")[0] == 200
    place = store.place(bytes.fromhex(cid))
    before = os.stat(place)
    while os.stat(place).st_ctime_ns == before.st_ctime_ns:  # the clock that stamps files goes by steps
        with open(place, "r+b") as file:
            file.write(b"damage")
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert os.stat(place).st_mtime_ns == before.st_mtime_ns
    status, _, answer = server.ask(cid, {"If-None-Match": tag})
    assert (status, json.loads(answer)["state"]) == (200, "damaged"), "a tag outlives what its object held"
    store.put(body)
    tag = server.ask(cid)[1]["etag"]
    os.unlink(place)
    assert server.ask(cid, {"If-None-Match": tag})[0] == 404, "a tag outlives its object"
    assert server.ask(cid, {"If-None-Match": "*"})[0] == 404, "any tag is one of an object that is not there"
    assert server.ask(cid + "/raw")[0] == 404
    store.put(body)
    with open(store.place(bytes.fromhex(cid)), "r+b") as file:
        file.seek(100)
        file.write(b"damage")
    assert server.ask(cid + "/raw")[0] == 409, "an object that was verified once is not looked at any more"


def test_large(server, store, rng):
    """Bodies of 16 MiB, read by many at once, in bounded memory."""
    body = refvalue.put(19, rng.randbytes(2**20) * 16)
    cid = store.put(body)
    before = server.memory()
    check_raw(server, cid, body)
    clients = [http.client.HTTPConnection(server.address, timeout=120) for _ in range(12)]
    for client in clients:
        client.request("GET", f"/api/v1/values/{cid}/raw")
    answers = [client.getresponse() for client in clients]
    for _ in range(16):
        for answer in answers:
            assert len(answer.read(2**20)) == 2**20
    assert all(len(answer.read()) == len(body) - 2**24 for answer in answers)
    raw_memory = server.memory()
    assert raw_memory - before < 16 * 1024, (before, raw_memory)
    for client in clients:
        client.request("GET", f"/api/v1/values/{cid}")
    for client in clients:
        answer = client.getresponse()
        assert json.loads(answer.read())["value"] == {"$cut": "bytes", "length": 2**24}
        client.close()
    assert server.memory() - raw_memory < 64 * 1024, (raw_memory, server.memory())


def test_command(server, store, rng, varve):
    """The verb prints the same bytes, and ends as the command's page says."""
    def run(*arguments):
        done = subprocess.run([varve, "value", *arguments, "--store", store.root], capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    for _ in range(10):
        maker = refvalue.Maker(rng)
        body = maker.value(4)
        cid = store.put(body)
        path = refvalue.path_text(rng, maker.steps(body)) or "$"
        status, _, text = server.ask(cid, path=path, max_bytes=300, max_depth=2)
        code, out, err = run(cid, "--path", path, "--max-bytes", "300", "--max-depth", "2", "--json")
        assert (code, out) == ((0, text) if status == 200 else (5, b"")) and len(err.splitlines()) == (code != 0)
        assert run("bamlv_1_" + cid, "--raw") == (0, body, b"")
    inside = refvalue.put(2, b"\x20\x07") + refvalue.put(2, refvalue.put(3, "\x1b[31m\x9b\u202e<\"".encode()))
    key, value = refvalue.put(1, b"k<y"), refvalue.put(2, refvalue.put(11, inside))
    cid = store.put(refvalue.put(12, refvalue.put(3, key + value)))
    assert run(cid)[1].decode().split("\n", 1)[1] == (
        '{\n  "k<y": [\n    7,\n    "\\u001b[31m?????<\\""\n  ]\n}\n'), run(cid)
    table = store.put(b"a table", codec=2)
    os.unlink(store.place(bytes.fromhex(cid)))
    cases = (((cid,), 5), ((cid, "--raw"), 5), ((cid, "--json"), 5), ((table,), 5), (("nonsense",), 2),
             ((table, "--raw"), 0), ((table, "--raw", "--path", "$"), 2), ((table, "--path", "$.."), 2),
             ((table, "--max-depth", "65"), 2),
             ((table, "--json"), 5), ((store.put(b"\x1b"),), 5), ((table, "--raw", "--uses"), 2),
             ((table, "--uses", "--path", "$"), 2), ((table, "--limit", "5"), 2), (("nonsense", "--uses"), 2),
             (("nonsense", "--uses", "--json"), 2), ((table, "--uses", "--limit", "0"), 2), ((table, "--uses"), 0),
             ((store.put(refvalue.put(11, refvalue.put(2, b"\x1a\x01\xff"))), "--json"), 5))
    for arguments, code in cases:
        got, out, err = run(*arguments)
        assert got == code and len(err.splitlines()) == (code != 0), (arguments, got, out, err)
    assert run(table, "--json")[1] == server.ask(table)[2]


def main():
    build, source, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = tempfile.mkdtemp()
    print(f"# seed {seed}")
    varve = os.path.join(build, "varve")
    store = Store(os.path.join(work, "made", "profiles-v1"))
    server = Server(varve, store.root)
    tests = [(test_recorded, (build, source, work))]
    tests.append((test_uses, (build, source, work)))
    tests += [(test, (server, store, random.Random(seed))) for test in
              (test_names, test_uses_parameters, test_random, test_cut, test_hostile, test_bounds,
               test_states, test_tags, test_large)]
    tests.append((test_command, (server, store, random.Random(seed), varve)))
    failed = 0
    try:
        for number, (test, arguments) in enumerate(tests, 1):
            try:
                test(*arguments)
                print(f"ok {number} - {test.__doc__.strip()}", flush=True)
            except Exception as fault:
                failed = 1
                print(f"not ok {number} - {test.__doc__.strip()}")
                line = traceback.extract_tb(fault.__traceback__)[-1].lineno
                print(f"# {type(fault).__name__} in line {line}: {str(fault)[:2000]!r}", flush=True)
                server.connection.close()
        server.stop()
    finally:
        server.process.kill()
        shutil.rmtree(work)
    print(f"1..{len(tests)}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
