#!/usr/bin/env python3
"""Holds `varve dump` against refdump.py on seeded random stores; speaks TAP, one test for each ten seeds.

Some streams are held locked while both readers look, as a running writer would, and some stores are packed in an
archive first. A mismatch prints the seed, the damages and the first places where the two documents differ.

usage: differential.py VARVE [FIRST] COUNT
"""

import fcntl
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile

import genstore
import refdump

SEEDS_A_TEST = 10
SHOWN_DIFFERENCES = 8


def differences(path, ours, theirs):
    """Lines for the places where two JSON values differ, depth first."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(set(ours) | set(theirs)):
            yield from differences("%s.%s" % (path, key), ours.get(key, "(absent)"), theirs.get(key, "(absent)"))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, pair in enumerate(zip(ours, theirs)):
            yield from differences("%s[%d]" % (path, at), *pair)
    elif ours != theirs or type(ours) is not type(theirs):
        yield "%s: reference %.160s, varve %.160s" % (path, json.dumps(ours), json.dumps(theirs))


def varve_document(varve, path):
    """The document, or what went wrong in words."""
    command = [varve, "dump", path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        return "exit status %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace")[-600:])
    try:
        return json.loads(done.stdout)
    except ValueError as fault:
        return "no JSON: %s: %.200r" % (fault, done.stdout)


def held_locks(rng, directory):
    """Open descriptions that hold some stream locks, for as long as they are kept."""
    held = []
    streams = os.path.join(directory, ".baml", "profiles-v1", "streams")
    for name in sorted(os.listdir(streams)) if os.path.isdir(streams) else ():
        lock = os.path.join(streams, name, "stream.lock")
        if os.path.isfile(lock) and rng.random() < 0.3:
            held.append(open(lock, "rb"))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
    return held


def compare(varve, seed):
    """The lines of a mismatch; none when both agree."""
    rng = random.Random(-1 - seed)
    with tempfile.TemporaryDirectory() as directory:
        damages = genstore.build(seed, directory)
        place, held = directory, []
        if rng.random() < 0.2:
            packing = rng.choice(("", "", "gz"))
            place = os.path.join(directory, "store.tar" + (packing and "." + packing))
            with tarfile.open(place, "w:" + packing) as archive:
                archive.add(os.path.join(directory, ".baml"), ".baml")
        else:
            held = held_locks(rng, directory)
        try:
            reference = refdump.dump(refdump.load_store(place))
            found = list(differences("$", reference, varve_document(varve, place)))
        finally:
            for file in held:
                file.close()
    if not found:
        return []
    where = os.path.basename(place) if place != directory else "directory"
    return ["seed %d (%s)" % (seed, where)] + ["damage " + line for line in damages] + found[:SHOWN_DIFFERENCES]


def main(arguments):
    if len(arguments) not in (2, 3):
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    varve, first, count = arguments[0], int(arguments[1]) if len(arguments) == 3 else 1, int(arguments[-1])
    starts = range(first, first + count, SEEDS_A_TEST)
    failed = 0
    print("1..%d" % len(starts))
    for number, start in enumerate(starts, 1):
        last = min(start + SEEDS_A_TEST, first + count) - 1
        lines = [line for seed in range(start, last + 1) for line in compare(varve, seed)]
        for line in lines:
            print("# " + line)
        print("%s %d - seeds %d to %d" % ("not ok" if lines else "ok", number, start, last), flush=True)
        failed += bool(lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
