#!/usr/bin/env python3
"""Lets stores grow file by file under a running `varve serve`; speaks TAP, a test for each seed.

After every file the server, which goes on from what it knows, must answer byte for byte what a fresh process answers.
At the end the first state is asked for again by its as_of token, where the server still has it.

usage: check_growth.py VARVE FIRST_SEED SEEDS
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import genstore  # noqa: E402
import serving  # noqa: E402

PARTS = ("spans", "errors", "threads")


class Pair(serving.Server):
    """A server over a store, and the command that looks at it anew each time."""

    def __init__(self, varve, store):
        super().__init__(varve, store)
        self.varve, self.store = varve, store

    def get(self, path, **query):
        return self.request(path, query)[::2]

    def command(self, *words):
        done = subprocess.run([self.varve, *words, "--json", "--store", self.store], stdout=subprocess.PIPE, check=True)
        return done.stdout


def wait_for(pair, wanted):
    """The server's list once it has seen what the command sees; it looks again after 20 ms."""
    generation = json.loads(wanted)["snapshot"]["generation"]
    while True:
        status, body = pair.get("/api/v1/executions")
        if status == 200 and json.loads(body)["snapshot"]["generation"] == generation:
            return body


def compare(pair, pages):
    fresh = pair.command("ls")
    assert wait_for(pair, fresh) == fresh, "ls"
    for item in json.loads(fresh)["items"]:
        ident = item["execution_id"]
        _, body = pair.get("/api/v1/functions", execution=ident)
        assert body == pair.command("top", ident), "top " + ident
        pages.step(ident)
        _, body = pair.get("/api/v1/executions/" + ident)
        assert body == pair.command("show", ident), "show " + ident
        part = PARTS[len(fresh) % len(PARTS)]  # each in its turn: a process for all of them takes its time
        _, body = pair.get("/api/v1/executions/" + ident + "/" + part)
        assert body == pair.command(part, ident), part + " " + ident
    return fresh


SORTS = ("calls", "self_ns", "inclusive_ns", "contexts", "errors", "await_ns", "name")


def place(item, sort):
    """Where a function stands in its list, but for what tells equal ones apart."""
    name = (item["name"] or "").encode()[:87]
    return (0 if sort == "name" else -int(item[sort]), item["name"] is None, name)


class Pages:
    """Cursors of each execution's functions: each goes on, in all states to come, after where its row stood then."""

    KEPT = 12

    def __init__(self, pair, rng):
        self.pair, self.rng, self.cursors, self.moved = pair, rng, {}, 0

    def get(self, ident, sort, **more):
        status, body = self.pair.get("/api/v1/functions", execution=ident, sort=sort, **more)
        assert status == 200, body
        return json.loads(body)

    def step(self, ident):
        kept = self.cursors.setdefault(ident, [])
        wholes = {}
        for sort, cursor, last in kept:
            if sort not in wholes:
                wholes[sort] = self.get(ident, sort, limit=1000)["items"]
            self.follow(ident, wholes[sort], sort, cursor, last)
        sort = self.rng.choice(SORTS)
        page = self.get(ident, sort, limit=self.rng.randint(1, 3))
        if page["next"]:
            kept.append((sort, page["next"], place(page["items"][-1], sort)))
            del kept[:-self.KEPT]

    def follow(self, ident, whole, sort, cursor, last):
        places = [place(item, sort) for item in whole]
        assert places == sorted(places), "functions are not in order of " + sort
        rows = self.get(ident, sort, limit=1000, cursor=cursor)["items"]
        skipped = len(whole) - len(rows)
        assert rows == whole[skipped:], "a page is not the list's end"
        assert all(p <= last for p in places[:skipped]), "a row by %s is skipped that stands behind the cursor" % sort
        assert all(p >= last for p in places[skipped:]), "a row by %s is repeated that stands before the cursor" % sort
        self.moved += last not in places


def files_in_order(source, rng):
    """Data before the meta segment that ends on it, as a writer goes; now and then a little out of order."""
    found = []
    streams = os.path.join(source, "streams")
    for stream in sorted(os.listdir(streams)) if os.path.isdir(streams) else ():
        for plane, weight in (("data", 0.0), ("meta", 0.5)):
            base = os.path.join("streams", stream, plane)
            for name in os.listdir(os.path.join(source, base)) if os.path.isdir(os.path.join(source, base)) else ():
                sequence = int(name.split(".")[0]) if name.split(".")[0].isdigit() else 0
                found.append((min(sequence, 1000) + weight + rng.choice((0, 0, 0, 2)), os.path.join(base, name)))
    return [name for _, name in sorted(found)]


def check_seed(varve, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as scratch:
        genstore.build(seed, os.path.join(scratch, "source"), seed % 2)
        source = os.path.join(scratch, "source", ".baml", "profiles-v1")
        store = os.path.join(scratch, "store", ".baml", "profiles-v1")
        names = files_in_order(source, rng)
        for name in os.listdir(source):
            if name != "streams":
                copy = shutil.copytree if os.path.isdir(os.path.join(source, name)) else shutil.copy
                os.makedirs(store, exist_ok=True)
                copy(os.path.join(source, name), os.path.join(store, name))
        os.makedirs(os.path.join(store, "streams"))
        pair = Pair(varve, store)
        pages = Pages(pair, rng)
        try:
            states = [compare(pair, pages)]
            for name in names:
                os.makedirs(os.path.dirname(os.path.join(store, name)), exist_ok=True)
                if os.path.isfile(os.path.join(source, name)):
                    shutil.copy(os.path.join(source, name), os.path.join(store, name + ".part"))
                    os.rename(os.path.join(store, name + ".part"), os.path.join(store, name))
                state = compare(pair, pages)
                if state != states[-1]:
                    states.append(state)
            for state in states[-5:]:
                as_of = json.loads(state)["snapshot"]["as_of"]
                status, body = pair.get("/api/v1/executions", as_of=as_of)
                assert status == 200 and body == state, "as_of"
        finally:
            pair.stop()
        return len(names), pages.moved


def main(arguments):
    varve, first, count = arguments[0], int(arguments[1]), int(arguments[2])
    failed = 0
    print("1..%d" % count)
    for at in range(count):
        try:
            steps, moved = check_seed(varve, first + at)
            print("ok %d - seed %d, %d files, %d pages after rows that moved" % (at + 1, first + at, steps, moved))
        except AssertionError as fault:
            failed += 1
            print("not ok %d - seed %d\n# %s" % (at + 1, first + at, str(fault).replace("\n", "\n# ")))
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
