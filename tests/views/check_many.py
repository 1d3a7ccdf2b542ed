#!/usr/bin/env python3
"""An execution of 100,000 recorded calls, thousands of errors and threads, page by page in bounded memory; and many
executions of one process, each of which costs the same however many there are. Speaks TAP.

usage: check_many.py VARVE
"""

import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import storebytes as sb  # noqa: E402
from check_views import Server  # noqa: E402
from refstore import call_text, thread_text  # noqa: E402

CALLS, THREADS, ERRORS, DEPTH, SEGMENTS = 100_000, 4_000, 3_000, 2_000, 8
GROWTH = 8 * 1024  # KiB, whatever the pages
FEW, CROWD, A_SEGMENT = 6_000, 36_000, 1_000  # executions
CROWD_MIB = 128  # that of them which fills up; their summaries do not


def contexts(program):
    """A chain of DEPTH contexts: [(key, shape)]"""
    chain, parent = [], None
    for at in range(DEPTH):
        shape = sb.context_tuple(program, parent, at + 1, [1, 0, 0, at + 1], 1 if at else 0)
        chain.append((sb.context_key(shape), shape))
        parent = chain[-1][0]
    return chain


def build(root_directory, rng):
    """Writes the store; answers {call: (start, duration)}, the thread refs and the error ids."""
    euid, program = rng.randbytes(16), rng.randbytes(16)
    root = euid + sb.u64(1) + sb.u64(1)
    chain = contexts(program)
    threads = [root[:24] + sb.u64(at + 1) for at in range(THREADS)]
    spans, errors, facts = {}, [], [[] for _ in range(SEGMENTS)]
    for at, thread in enumerate(threads):
        facts[0].append([sb.THREAD_START, {"thread": thread, "parent": root if at else None, "spawn_call": None,
                                           "site": None, "started": rng.randint(0, 99), "kind": int(at > 0),
                                           "name": ""}])
    for at in range(CALLS):
        call = threads[at % THREADS] + sb.u64(at // THREADS + 1)
        start, duration, part = rng.randint(0, 5000), rng.randint(0, 50), at * SEGMENTS // CALLS
        context = chain[at % DEPTH][0]
        spans[call] = (start, duration)
        facts[part].append([sb.SPAN_START, {"call": call, "parent": None, "thread": call[:32], "context": context,
                                            "function": at % DEPTH + 1, "site": None, "edge": 1, "started": start,
                                            "reasons": 4, "roles": 0, "annotation": None}])
        if at < ERRORS:
            errors.append(call[:32] + sb.u64(at))
            facts[part].append([sb.ERROR, {"id": errors[-1], "throw": call, "context": chain[-1][0],
                                           "function": DEPTH, "site": None, "kind": 0, "source": 0, "value": 4}])
        facts[part].append([sb.TERMINAL, {"call": call, "capture": errors[at % len(errors)]}])
        facts[part].append([sb.SPAN_END, {"call": call, "ended": start + duration, "status": 1,
                                          "inclusive": duration}])
    groups = [sb.Group(root, facts=part) for part in facts]
    groups[0].contexts = [[key, shape, [1, 1, 0, 1, 0, 0, 9, 0, 0, 0]] for key, shape in sorted(chain)]
    write(root_directory, euid, root, program, groups)
    return spans, threads, errors


def write(directory, euid, root, program, groups):
    meta = [sb.MetaSegment(1, euid, 0, [
        [sb.STREAM_STARTED, {"pid": 1, "zero": 1_700_000_000 * 10**9, "version": "1", "arch": "any"}],
        [sb.ENGINE_STARTED, {"engine": 1, "program": program, "table": None, "revision": None, "source": None}],
        [sb.ROOT_STARTED, {"root": root, "started": 0, "runtime_id": bytes(16)}]]),
            sb.MetaSegment(2, euid, len(groups), [
                [sb.ROOT_ENDED, {"root": root, "ended": 9999, "status": 1, "flags": 0, "first": 1,
                                 "last": len(groups), "count": len(groups), "health": [0] * sb.HEALTH_COUNT}]])]
    data = [sb.DataSegment(at + 1, euid, [group]) for at, group in enumerate(groups)]
    write_files(directory, euid, meta, data)


def write_files(directory, euid, meta, data):
    stream = os.path.join(directory, "streams", euid.hex())
    for plane, suffix, segments in (("meta", "bamlmeta", meta), ("data", "bamldata", data)):
        os.makedirs(os.path.join(stream, plane))
        for segment in segments:
            with open(os.path.join(stream, plane, "%020d.%s" % (segment.sequence, suffix)), "wb") as file:
                file.write(segment.encode())
    for name in (os.path.join(stream, "stream.lock"), os.path.join(directory, "publish.lock")):
        with open(name, "wb"):
            pass


def names(server, part, key, **query):
    found, cursor = [], {}
    while True:
        answer = server.get("/api/v1/executions/latest/" + part, limit=1000, **query, **cursor)
        found.extend(item[key] for item in answer["items"])
        if answer["next"] is None:
            return found, answer
        cursor = {"cursor": answer["next"]}


def check(server, spans, threads, errors):
    """Yields (what, whether it holds)."""
    server.get("/api/v1/executions/latest/spans", limit=1)
    before = server.memory()
    by_start = sorted(spans, key=lambda call: (spans[call][0], call))
    found, answer = names(server, "spans", "call_id")
    yield "all calls by start", found == [call_text(call) for call in by_start]
    yield "and their number", answer["population"]["retained"] == CALLS
    by_duration = sorted(spans, key=lambda call: (-spans[call][1],) + (spans[call][0], call))
    found, _ = names(server, "spans", "call_id", order="-duration")
    yield "all calls by duration", found == [call_text(call) for call in by_duration]
    found, _ = names(server, "threads", "thread_id")
    yield "all threads once", sorted(found) == sorted(map(thread_text, threads))
    found, answer = names(server, "errors", "stack_frames")
    yield "all errors, with deep stacks", found == [DEPTH] * ERRORS
    ended = [item["terminal_calls"] for item in answer["items"]]
    yield "and the calls that they ended", all(count >= CALLS // ERRORS for count in ended)
    last = answer["items"][-1]
    yield "of a deep stack the end", (len(last["stack"]), last["stack"][-1], last["stack_truncated"]) == (
        64, "function#%d" % DEPTH, True)
    one = server.get("/api/v1/executions/latest/errors/" + last["error_id"])
    yield "one stack whole", [f["function_id"] for f in one["stack"]] == list(range(1, DEPTH + 1))
    yield "one error's calls whole", len(one["terminal_calls"]) == last["terminal_calls"]
    after = server.memory()
    yield "memory goes by the page: %s, then %s KiB" % (before, after), after - before < GROWTH


def one_call(root, key, shape):
    call = root + sb.u64(1)
    return sb.Group(root, contexts=[[key, shape, [1, 1, 1, 0, 0, 0, 9, 0, 0, 0]]], facts=[
        [sb.THREAD_START, {"thread": root, "parent": None, "spawn_call": None, "site": None, "started": 0, "kind": 0,
                           "name": "worker"}],
        [sb.SPAN_START, {"call": call, "parent": None, "thread": root, "context": key, "function": 1, "site": None,
                         "edge": 0, "started": 0, "reasons": 1, "roles": 0, "annotation": None}],
        [sb.SPAN_END, {"call": call, "ended": 9, "status": 0, "inclusive": 9}],
        [sb.THREAD_END, {"thread": root, "ended": 9, "status": 0}]])


def build_crowd(directory, rng, count):
    """One process that ran so many executions of one call each."""
    euid, program = rng.randbytes(16), rng.randbytes(16)
    place = contexts(program)[0]
    meta = [sb.MetaSegment(1, euid, 0, [
        [sb.STREAM_STARTED, {"pid": 1, "zero": 1_700_000_000 * 10**9, "version": "1", "arch": "any"}],
        [sb.ENGINE_STARTED, {"engine": 1, "program": program, "table": None, "revision": None, "source": None}]])]
    data = []
    for begin in range(0, count, A_SEGMENT):
        roots = [euid + sb.u64(1) + sb.u64(at + 1) for at in range(begin, min(begin + A_SEGMENT, count))]
        data.append(sb.DataSegment(len(data) + 1, euid, [one_call(root, *place) for root in roots]))
        records = []
        for root in roots:
            records += [[sb.ROOT_STARTED, {"root": root, "started": 0, "runtime_id": bytes(16)}],
                        [sb.ROOT_ENDED, {"root": root, "ended": 9, "status": 0, "flags": 0, "first": len(data),
                                         "last": len(data), "count": 1, "health": [0] * sb.HEALTH_COUNT}]]
        meta.append(sb.MetaSegment(len(meta) + 1, euid, len(data), records))
    write_files(directory, euid, meta, data)


def cost_of_all(varve, scratch, count):
    """What it takes to look at each of so many executions, in ticks of a processor, and how many there were."""
    directory = os.path.join(scratch, "crowd-%d" % count, "profiles-v1")
    build_crowd(directory, random.Random(count), count)
    server = Server(varve, directory, "--no-index", "--memory", str(CROWD_MIB))
    server.get("/api/v1/executions", limit=1)
    before = ticks(server)
    server.get("/api/v1/executions", q="what none of them has")
    spent = ticks(server) - before
    answer = server.get("/api/v1/store")
    server.stop()
    return spent, answer["counts"]["executions"]


def ticks(server):
    with open("/proc/%d/stat" % server.process.pid, encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def check_crowd(varve, scratch):
    few, few_count = cost_of_all(varve, scratch, FEW)
    crowd, crowd_count = cost_of_all(varve, scratch, CROWD)
    yield "all executions of a process", (few_count, crowd_count) == (FEW, CROWD)
    yield "each costs the same however many there are: %d ticks for %d, %d for %d" % (
        few, FEW, crowd, CROWD), crowd <= 2 * CROWD // FEW * max(few, 1)


def check_all(varve, scratch):
    directory = os.path.join(scratch, ".baml", "profiles-v1")
    built = build(directory, random.Random(1))
    server = Server(varve, directory)
    yield from check(server, *built)
    server.stop()
    yield from check_crowd(varve, scratch)


def main(arguments):
    failed, count = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for what, holds in check_all(arguments[0], scratch):
            count += 1
            failed += not holds
            print("%s %d - %s" % ("ok" if holds else "not ok", count, what))
    print("1..%d" % count)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
