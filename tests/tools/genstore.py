#!/usr/bin/env python3
"""Writes seeded random stores, whole and damaged ones, for tests of readers.

The stores look like the work of a real writer: several processes, engines and executions, calling trees whose counts
are spread over several segments, spans with values and errors, function tables that grow. Then up to four damages of
damage.py are applied; `manifest.txt` beside the store names them.

usage: genstore.py --seed N [--damages N] OUTDIR
"""

import argparse
import os
import random
import sys

import damage
import storebytes as sb

WORDS = ("main", "load", "app.Score", "parse \u00e9t\u00e9", "\u8a08\u7b97", "a\"b\\c", "tab\there", "nul\0in",
         "line\u2028sep", "\U0001f40d", "", "x" * 300, "\x7f\x1b[0m", "/", "anonymous@12", "\ufffd\uffff")


class Engine:
    """One engine of a process: its program and the function tables that it publishes."""

    def __init__(self, rng, ident):
        self.ident = ident
        self.program = rng.randbytes(16)
        self.names = self.program  # what functions are called goes by it
        self.functions = rng.randint(1, 9)
        self.label = rng.choice((None, "rev-1", rng.choice(WORDS)))
        self.tables = []

    def rows(self, count):
        rows = []
        for ident in range(1, count + 1):
            state = random.Random(repr((self.names, ident)))
            if state.random() < 0.1:
                continue
            name = "%s.%d" % (state.choice(WORDS), ident)
            key = state.choice((None, "", "function:" + name))
            rows.append({
                "id": ident, "fqn": name, "display": state.choice(WORDS), "key": key,
                "kind": state.choice((0, 1, 2, 3, 255, 77)), "detail": state.choice((None, "print")),
                "origin": state.choice((0, 1, 2, 3, 4, 255, 9)), "file": state.choice((None, "app.baml")),
                "span": state.choice((None, [3, 10, 90])), "package": state.choice((None, "app")),
                "namespace": [state.choice(WORDS) for _ in range(state.randint(0, 2))],
            })
        return rows

    def table(self, rng, count):
        rows = self.rows(count)
        return sb.function_table(rows, [(3, "app.baml")] if rng.random() < 0.8 else [])


class Recorder:
    """Plays one execution: a list of counter changes and facts in time order, later cut into groups."""

    def __init__(self, rng, engine, root):
        self.rng = rng
        self.engine = engine
        self.root = root
        self.clock = rng.randint(0, 10**9)
        self.started = self.clock
        self.events = []
        self.threads = 0
        self.budget = rng.choice((1, 3, 10, 40))
        self.captures = 0
        self.rich = rng.random() < 0.5

    def tick(self):
        self.clock += self.rng.randint(0, 5000)
        return self.clock

    def fact(self, tag, **fields):
        self.events.append(("fact", [tag, fields]))

    def count(self, key, shape, **changes):
        self.events.append(("count", key, shape, changes))

    def site(self):
        return self.rng.choice((None, [self.rng.randint(0, 3) for _ in range(4)]))

    def value(self):
        if self.rng.random() < 0.2:
            return self.rng.randint(0, 10)
        body = b"\x12\0" if self.rng.random() < 0.5 else b"\x1a\3abc"
        return sb.value_cid(1, body), 1, len(body)

    def run(self):
        self.thread(None, None, None, 0)

    def thread(self, parent, spawn_call, parent_key, kind):
        """One thread from start to end; spawned ones play inside their parent's time."""
        number = int.from_bytes(self.root[24:], "big") + self.threads
        self.threads += 1
        ref = self.root[:24] + sb.u64(number)
        name = self.rng.choice(WORDS).encode()[:256].decode("utf-8", "ignore")
        spawn_site = self.site() if kind else None
        self.fact(sb.THREAD_START, thread=ref, parent=parent, spawn_call=spawn_call, site=spawn_site,
                  started=self.tick(), kind=kind, name=name)
        calls = [0]
        failed = self.call(ref, calls, None, parent_key, 2 if kind else 0, 0)
        self.fact(sb.THREAD_END, thread=ref, ended=self.tick(), status=2 if failed else self.rng.randint(0, 1))

    def call(self, ref, calls, parent_call, parent_key, edge, depth):
        """One call with everything below it; true when it failed."""
        rng = self.rng
        self.budget -= 1
        calls[0] += 1
        call = ref + sb.u64(calls[0])
        function, place = rng.randint(0, self.engine.functions + 1), self.site()
        shape = sb.context_tuple(self.engine.program, parent_key, function, place, edge)
        key = sb.context_key(shape)
        context, begun = key, self.tick()
        if rng.random() < 0.03:
            context = (rng.randint(0, 1), edge)
            self.events.append(("overflow", *context))
        selected = edge == 0 or rng.random() < 0.4
        self.count(key, shape, started=1, selected=int(selected))
        if selected:
            self.begin_span(call, parent_call, ref, context, function, place, edge, begun)
        while self.budget > 0 and depth < 8 and rng.random() < 0.7:
            if rng.random() < 0.15:
                self.thread(ref, call, key, 1)
            else:
                self.call(ref, calls, call, key, 1, depth + 1)
        if rng.random() < 0.2:
            self.count(key, None, awaited=rng.randint(1, 900))
        status = rng.choice((0, 0, 0, 1, 2, 3))
        inclusive = self.tick() - begun
        self.count(key, None, status=status, inclusive=inclusive)
        if edge == 1:
            self.count(parent_key, None, child=inclusive)
        if selected:
            self.end_span(call, ref, context, function, status, inclusive)
        return status == 1

    def begin_span(self, call, parent, ref, context, function, place, edge, begun):
        rng = self.rng
        note = (0, rng.randbytes(16)) if edge == 0 or rng.random() < 0.3 else None
        self.fact(sb.SPAN_START, call=call, parent=parent, thread=ref, context=context, function=function, site=place,
                  edge=edge, started=begun, reasons=rng.randint(1, 7), roles=rng.randint(0, 7), annotation=note)
        for _ in range(rng.choice((0, 0, 1, 3))):
            self.fact(sb.SPAN_RUNTIME_ID, call=call, annotation=(rng.randint(0, 3), rng.randbytes(16)))
        if rng.random() < 0.6:
            self.fact(sb.VALUE, call=call, context=context, role=0, value=self.value())
        if self.rich and rng.random() < 0.3:
            texts = {name: rng.choice((None, rng.choice(WORDS))) for name in ("level", "message", "event", "distinct")}
            self.fact(sb.LOG, call=rng.choice((None, call)), time=begun, site=self.site(), column=rng.choice((None, 7)),
                      context=self.value(), data=self.value(), **texts)
        if self.rich and rng.random() < 0.3:
            self.fact(sb.SCOPE, call=call, distinct=rng.choice((None, "who")), context=self.value())

    def end_span(self, call, ref, context, function, status, inclusive):
        rng = self.rng
        if status == 1 and rng.random() < 0.8:
            self.captures += 1
            capture = ref + sb.u64(self.captures)
            self.fact(sb.ERROR, id=capture, throw=call, context=context, function=function, site=self.site(),
                      kind=rng.randint(0, 1), source=rng.randint(0, 3), value=self.value())
            link = {"capture": capture} if rng.random() < 0.8 else {"lost": rng.randint(0, 6)}
            self.fact(sb.TERMINAL, call=call, **link)
        if status == 0 and rng.random() < 0.6:
            self.fact(sb.VALUE, call=call, context=context, role=1, value=self.value())
        self.fact(sb.SPAN_END, call=call, ended=self.clock, status=status, inclusive=inclusive)

    def group(self, events):
        """The group of one stretch of events: rows summed by key, the order of a sorted writer or none."""
        group = sb.Group(self.root)
        rows, buckets = {}, {}
        split = self.rng.random() < 0.5
        for event in events:
            if event[0] == "fact":
                group.facts.append(event[1])
            elif event[0] == "overflow":
                buckets.setdefault(event[1:], [0] * 10)[0] += 1
            else:
                _kind, key, shape, changes = event
                row = rows.setdefault((key, split and shape is None), [key, None, [0] * 10])
                row[1] = shape or row[1]
                apply_changes(row[2], changes)
        group.contexts = [rows[ident] for ident in sorted(rows)]
        if self.rng.random() < 0.2:
            self.rng.shuffle(group.contexts)
        group.overflow = [[*bucket, buckets[bucket]] for bucket in sorted(buckets)]
        group.health = self.rng.choice((0, 0, 0, 0, 1, 4))
        return group

    def groups(self, complete):
        """The events cut at random places; an incomplete execution stops somewhere inside."""
        events = self.events
        if not complete:
            events = events[: self.rng.randint(0, len(events))]
        cuts = sorted(self.rng.randint(0, len(events)) for _ in range(self.rng.choice((0, 0, 1, 2, 4))))
        bounds = [0, *cuts, len(events)]
        return [self.group(events[a:b]) for a, b in zip(bounds, bounds[1:]) if a < b]


def apply_changes(row, changes):
    row[0] += changes.get("started", 0)
    row[1] += changes.get("selected", 0)
    if "status" in changes:
        row[2 + changes["status"]] += 1
    row[6] += changes.get("inclusive", 0)
    row[7] += changes.get("child", 0)
    row[8] += changes.get("awaited", 0)
    row[9] += "awaited" in changes


class Run:
    """One execution's place in the cycles of its writer."""

    def __init__(self, rng, recorder, cycle):
        self.recorder = recorder
        self.cycle = cycle
        self.complete = rng.random() < 0.8
        self.groups = recorder.groups(self.complete)
        self.start_lost = rng.random() < 0.08
        self.sequences = []
        self.end_cycle = cycle + max(0, len(self.groups) - 1) + rng.choice((0, 0, 1))

    def started(self, rng):
        fields = {"root": self.recorder.root, "started": self.recorder.started, "runtime_id": rng.randbytes(16)}
        return [sb.ROOT_STARTED, fields]

    def ended(self, rng):
        health = [0] * sb.HEALTH_COUNT
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            quiet = [at for at in range(sb.HEALTH_COUNT) if at not in (7, 9)]
            health[rng.choice(quiet)] = rng.choice((1, 5, 2**64 - 1))
        first, last = (self.sequences[0], self.sequences[-1]) if self.sequences else (0, 0)
        return [sb.ROOT_ENDED, {
            "root": self.recorder.root, "ended": self.recorder.clock, "status": rng.randint(0, 4),
            "flags": int(self.start_lost), "first": first, "last": last, "count": len(self.sequences), "health": health,
        }]


class Stream:
    """One writer process, cycle by cycle, as segments that are not encoded yet."""

    def __init__(self, rng, cas):
        self.euid = rng.randbytes(16)
        self.name = self.euid.hex()
        self.meta = []
        self.data = []
        engines = [Engine(rng, ident + 1) for ident in range(rng.choice((1, 1, 2, 3)))]
        runs, thread = [], {engine.ident: 1 for engine in engines}
        for _ in range(rng.choice((0, 1, 2, 3, 5))):
            engine = rng.choice(engines)
            root = self.euid + sb.u64(engine.ident) + sb.u64(thread[engine.ident])
            recorder = Recorder(rng, engine, root)
            recorder.run()
            thread[engine.ident] += recorder.threads + rng.choice((0, 0, 4))
            runs.append(Run(rng, recorder, rng.randint(0, 3)))
        for cycle in range(max((run.end_cycle for run in runs), default=0) + 1):
            self.play(rng, cycle, engines, runs, cas)

    def add_meta(self, records):
        if records:
            self.meta.append(sb.MetaSegment(len(self.meta) + 1, self.euid, len(self.data), records))

    def play(self, rng, cycle, engines, runs, cas):
        """One cycle: what began, the data, what ended."""
        records = []
        if cycle == 0:
            zero = 1_700_000_000 * 10**9 + rng.getrandbits(40)
            records.append([sb.STREAM_STARTED, {"pid": rng.getrandbits(32), "zero": zero, "version": rng.choice(WORDS),
                                                "arch": "linux-x86_64"}])
        for engine in engines:
            records += self.engine_records(rng, engine, cycle, cas)
        beginning = [run for run in runs if run.cycle == cycle]
        self.add_meta(records + [run.started(rng) for run in beginning if not run.start_lost])
        due = [(run, run.groups[cycle - run.cycle]) for run in runs if 0 <= cycle - run.cycle < len(run.groups)]
        due.sort(key=lambda pair: pair[1].root)
        while due:
            part = rng.randint(1, len(due))
            self.data.append(sb.DataSegment(len(self.data) + 1, self.euid, [group for _run, group in due[:part]]))
            for run, _group in due[:part]:
                run.sequences.append(len(self.data))
            due = due[part:]
        self.add_meta([run.ended(rng) for run in runs if run.end_cycle == cycle and (run.complete or run.start_lost)])

    @staticmethod
    def engine_records(rng, engine, cycle, cas):
        if cycle and rng.random() < 0.8:
            return []
        cid = None
        if rng.random() < 0.9:
            body = engine.table(rng, min(engine.functions, 3 * (cycle + 1)))
            cid = sb.value_cid(2, body)
            cas[cid] = sb.cas_object(2, body)
        return [[sb.ENGINE_STARTED, {"engine": engine.ident, "program": engine.program, "table": cid,
                                     "revision": engine.label, "source": rng.choice((None, "main.lua"))}]]


class Store:
    """Streams and objects, then (after `encode`) the files to be written: bytes, or a (kind, target) pair."""

    def __init__(self, rng):
        self.cas = {}
        for body in (b"\x12\0", b"\x1a\3abc"):
            self.cas[sb.value_cid(1, body)] = sb.cas_object(1, body)
        self.streams = [Stream(rng, self.cas) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
        self.files = {}

    def encode(self):
        self.files = {("publish.lock",): b""}
        for cid, content in self.cas.items():
            text = cid.hex()
            self.files["cas", "sha256", text[:2], text + ".bamlvalue"] = content
        for stream in self.streams:
            self.files["streams", stream.name, "stream.lock"] = b""
            for plane, segments in (("meta", stream.meta), ("data", stream.data)):
                self.files["streams", stream.name, plane] = ("dir", None)
                for segment in segments:
                    self.files["streams", stream.name, plane, segment_name(plane, segment.sequence)] = segment.encode()

    def write(self, root):
        for parts, content in sorted(self.files.items()):
            path = os.path.join(root, *parts)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(content, bytes):
                with open(path, "wb") as file:
                    file.write(content)
            elif content[0] == "dir":
                os.makedirs(path, exist_ok=True)
            elif content[0] == "fifo":
                os.mkfifo(path)
            else:
                os.symlink(content[1], path)


def segment_name(plane, sequence):
    return "%020d.baml%s" % (sequence, plane)


def build(seed, directory, damages=None):
    """Writes the store of a seed at DIRECTORY/.baml/profiles-v1 and answers the damages applied, in words."""
    rng = random.Random(seed)
    store = Store(rng)
    wanted = rng.choice((0, 1, 1, 2, 3, 4)) if damages is None else damages
    applied = damage.apply(rng, store, wanted)
    root = os.path.join(directory, ".baml", "profiles-v1")
    os.makedirs(root)
    store.write(root)
    with open(os.path.join(directory, "manifest.txt"), "w", encoding="utf-8") as manifest:
        manifest.write("".join(line + "\n" for line in applied))
    return applied


def main():
    parser = argparse.ArgumentParser(description="Write a seeded random store.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--damages", type=int)
    parser.add_argument("outdir")
    options = parser.parse_args()
    for line in build(options.seed, options.outdir, options.damages):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
