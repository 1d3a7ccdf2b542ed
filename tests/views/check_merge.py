#!/usr/bin/env python3
"""A thousand executions taken together, and compared, in the memory of a few; speaks TAP.

usage: check_merge.py VARVE
"""

import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import storebytes as sb  # noqa: E402
from check_many import write  # noqa: E402
from check_views import Server  # noqa: E402
from refstore import thread_text  # noqa: E402

EXECUTIONS, FEW, CONTEXTS = 1000, 50, 300
GROWTH = 32 * 1024  # KiB, however many there are; 16 MiB of it are what the server may keep of them


def build(root_directory, rng):
    """One execution a process, all of one program: [(id, {function: calls})]."""
    program, made = rng.randbytes(16), []
    shapes, parent = [], None
    for at in range(CONTEXTS):
        shape = sb.context_tuple(program, parent, at + 1, [1, 0, 0, at + 1], 1 if at else 0)
        parent = sb.context_key(shape)
        shapes.append((parent, shape))
    for _ in range(EXECUTIONS):
        euid = rng.randbytes(16)
        root = euid + sb.u64(1) + sb.u64(1)
        calls = [rng.randint(1, 9) for _ in shapes]
        group = sb.Group(root)
        group.contexts = [[key, shape, [n, 0, n, 0, 0, 0, 9 * n, 0, 0, 0]]
                          for n, (key, shape) in sorted(zip(calls, shapes), key=lambda pair: pair[1][0])]
        write(root_directory, euid, root, program, [group])
        made.append((thread_text(root), calls))
    return made


def ask(server, path, heads, bases, **query):
    pairs = [("execution", ident) for ident, _ in heads] + [("base", ident) for ident, _ in bases]
    status, answer = server.ask(path, pairs + list(query.items()))
    assert status == 200, (path, status, answer)
    return answer


def sums(executions):
    return [sum(counts) for counts in zip(*(calls for _, calls in executions))]


def functions_add_up(server, heads, bases):
    answer = ask(server, "/api/v1/functions", heads, bases, limit=1000)
    assert len(answer["items"]) == CONTEXTS
    head, base = sums(heads), sums(bases)
    for item in answer["items"]:
        at = item["function_id"] - 1
        if not bases:
            assert item["calls"] == head[at], item
        else:
            got = (item["head"]["calls"], item["base"]["calls"], item["delta"]["calls"], item["state"])
            assert got == (head[at], base[at], head[at] - base[at], "both"), (got, head[at], base[at])


def flame_adds_up(server, heads, bases):
    answer = ask(server, "/api/v1/flame", heads, bases, metric="calls", ids=1)
    assert len(answer["nodes"]) == CONTEXTS and answer["scope"]["aligned_by"] == "path_id"
    assert len(set(answer["path_ids"])) == CONTEXTS and set(answer["contexts"]) == {None}
    head, base = sums(heads), sums(bases)
    for row in answer["nodes"]:
        row = dict(zip(answer["columns"], row))
        at = answer["functions"][row["function"]]["function_id"] - 1
        got = (row["head"][0], row["base"][0]) if bases else row["calls"]
        assert got == ((head[at], base[at]) if bases else head[at]), row


def main(arguments):
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "profiles-v1")
        os.makedirs(root)
        made = build(root, random.Random(7))
        server = Server(arguments[0], root, "--memory", "16")
        few, half = made[:FEW], EXECUTIONS // 2
        steps = [
            ("functions of a few", lambda: functions_add_up(server, few, [])),
            ("a flame graph of a few", lambda: flame_adds_up(server, few[:25], few[25:])),
            ("functions of a thousand", lambda: functions_add_up(server, made, [])),
            ("functions of a half, compared with the other half",
             lambda: functions_add_up(server, made[:half], made[half:])),
            ("a flame graph of a thousand", lambda: flame_adds_up(server, made, [])),
            ("a comparison of a thousand with a thousand", lambda: flame_adds_up(server, made, made)),
        ]
        print("1..%d" % (len(steps) + 1))
        before = 0
        for at, (name, step) in enumerate(steps):
            try:
                step()
                print("ok %d - %s" % (at + 1, name))
            except AssertionError as fault:
                failed += 1
                print("not ok %d - %s\\n# %.600s" % (at + 1, name, fault))
            before = server.memory() if at == 1 else before
        grown = server.memory() - before
        bounded = grown <= GROWTH
        failed += not bounded
        print("%s %d - memory does not go by their number: %d KiB more" % ("ok" if bounded else "not ok",
                                                                          len(steps) + 1, grown))
        server.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
