#!/usr/bin/env python3
"""What each kind of damage to a store looks like, in every answer, and that neighbours are not hurt; speaks TAP.

One small store with three executions: the victim, a neighbour in the same process, and one in another process. Each
row of TABLE breaks one thing and says what the victim's states are then. Whatever it is, all lists answer, what is not
known is null, and the neighbours answer as if nothing had happened.

usage: check_damage.py VARVE
"""

import copy
import fcntl
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time

from check_views import Server

import storebytes as sb
from refstore import thread_text

PROGRAM = b"\x11" * 16
A, B = bytes(range(1, 17)), bytes(range(101, 117))
VALUE = sb.value_cid(1, b"\x12\0"), 1, 2
NUMBERS = ("total_calls", "total_errors", "total_cancelled", "calls_retained", "errors_captured", "threads_total",
           "contexts_total")
WORDS = {"V": "the victim", "N": "its neighbour", "M": "another process"}


def root_of(euid, thread):
    return euid + sb.u64(1) + sb.u64(thread)


def call_of(thread, number):
    return thread + sb.u64(number)


def context(parent, function, edge):
    shape = sb.context_tuple(PROGRAM, parent, function, [1, 10, 20, function], edge)
    return sb.context_key(shape), shape


MAIN = context(None, 1, 0)
CHILD = context(MAIN[0], 2, 1)
LEAF = context(CHILD[0], 3, 1)
V, N, M = root_of(A, 1), root_of(A, 100), root_of(B, 1)


def row(where, defines, **fields):
    names = ("started", "selected", "ok", "error", "cancelled", "exit", "inclusive", "child", "await", "awaits")
    return [where[0], where[1] if defines else None, [fields.get(name, 0) for name in names]]


def span_start(call, parent, where, function, edge, started):
    return [sb.SPAN_START, {"call": call, "parent": parent, "thread": call[:32], "context": where[0],
                            "function": function, "site": None, "edge": edge, "started": started, "reasons": 1,
                            "roles": 7, "annotation": None}]


def span_end(call, ended, status, inclusive):
    return [sb.SPAN_END, {"call": call, "ended": ended, "status": status, "inclusive": inclusive}]


def value(call, where, role):
    return [sb.VALUE, {"call": call, "context": where[0], "role": role, "value": VALUE}]


def thread_start(thread, kind=0, parent=None):
    return [sb.THREAD_START, {"thread": thread, "parent": parent, "spawn_call": None, "site": None, "started": 5,
                              "kind": kind, "name": "worker"}]


def ended(root, first, last, count, error=0):
    health = [0] * sb.HEALTH_COUNT
    for field in (12, 13, 14, 20, 21, 22):
        health[field] = error
    return [sb.ROOT_ENDED, {"root": root, "ended": 1000, "status": 0, "flags": 0, "first": first, "last": last,
                            "count": count, "health": health}]


def started(root):
    return [sb.ROOT_STARTED, {"root": root, "started": 5, "runtime_id": b"\x22" * 16}]


def small(root):
    """Two groups of an execution of one call."""
    first = sb.Group(root, contexts=[row(MAIN, True, started=1, selected=1)])
    first.facts = [thread_start(root), span_start(call_of(root, 1), None, MAIN, 1, 0, 10)]
    last = sb.Group(root, contexts=[row(MAIN, False, ok=1, inclusive=50)])
    last.facts = [span_end(call_of(root, 1), 60, 0, 50), [sb.THREAD_END, {"thread": root, "ended": 70, "status": 0}]]
    return first, last


def victim():
    one, two, three = (sb.Group(V) for _ in range(3))
    outer, inner = call_of(V, 1), call_of(V, 2)
    capture = V + sb.u64(7)
    one.contexts = [row(MAIN, True, started=1, selected=1), row(CHILD, True, started=2, selected=1)]
    one.facts = [thread_start(V), span_start(outer, None, MAIN, 1, 0, 10), value(outer, MAIN, 0)]
    two.contexts = [row(LEAF, True, started=3)]
    two.facts = [span_start(inner, outer, CHILD, 2, 1, 20)]
    three.contexts = [row(MAIN, False, ok=1, inclusive=200, child=100),
                      row(CHILD, False, ok=1, error=1, inclusive=100, child=30), row(LEAF, False, ok=3, inclusive=30)]
    three.facts = [
        [sb.ERROR, {"id": capture, "throw": inner, "context": CHILD[0], "function": 2, "site": [1, 5, 6, 2],
                    "kind": 0, "source": 0, "value": VALUE}],
        [sb.TERMINAL, {"call": inner, "capture": capture}], span_end(inner, 70, 1, 50), span_end(outer, 210, 0, 200),
        value(outer, MAIN, 1), [sb.THREAD_END, {"thread": V, "ended": 220, "status": 0}]]
    return one, two, three


class Store:
    """The whole store, to be broken by its parts, and then by its files."""

    def __init__(self):
        names = [{"id": at, "fqn": "app.f%d" % at, "display": "f%d" % at, "key": "function:app.f%d" % at, "kind": 0,
                  "detail": None, "origin": 0, "file": "app.x", "span": [1, 1, 9], "package": None, "namespace": []}
                 for at in (1, 2, 3)]
        table = sb.function_table(names, [(1, "app.x")])
        self.table = sb.value_cid(2, table)
        self.objects = {self.table: sb.cas_object(2, table), VALUE[0]: sb.cas_object(1, b"\x12\0")}
        self.v = victim()
        n, m = small(N), small(M)
        self.meta = [sb.MetaSegment(1, A, 0, self.beginning() + [started(V), started(N)]),
                     sb.MetaSegment(2, A, 4, [ended(N, 3, 4, 2)]), sb.MetaSegment(3, A, 4, [ended(V, 1, 3, 3, 1)])]
        self.data = [sb.DataSegment(1, A, [self.v[0]]), sb.DataSegment(2, A, [self.v[1]]),
                     sb.DataSegment(3, A, [self.v[2], n[0]]), sb.DataSegment(4, A, [n[1]])]
        self.other_meta = [sb.MetaSegment(1, B, 0, self.beginning() + [started(M)]),
                           sb.MetaSegment(2, B, 2, [ended(M, 1, 2, 2)])]
        self.other_data = [sb.DataSegment(at + 1, B, [group]) for at, group in enumerate(m)]
        self.files = {}

    def beginning(self):
        return [[sb.STREAM_STARTED, {"pid": 7, "zero": 10**18, "version": "1", "arch": "any"}],
                [sb.ENGINE_STARTED, {"engine": 1, "program": PROGRAM, "table": self.table, "revision": None,
                                     "source": None}]]

    @property
    def end(self):
        return self.meta[2].records[0][1]

    def encode(self):
        for euid, meta, data in ((A, self.meta, self.data), (B, self.other_meta, self.other_data)):
            self.files["streams/%s/stream.lock" % euid.hex()] = b""
            for plane, segments in (("meta", meta), ("data", data)):
                for segment in segments:
                    self.files[name(euid, plane, segment.sequence)] = segment.encode()
        for cid, content in self.objects.items():
            self.files["cas/sha256/%s/%s.bamlvalue" % (cid.hex()[:2], cid.hex())] = content

    def write(self, directory):
        for path, content in self.files.items():
            path = os.path.join(directory, path)
            os.makedirs(path if content is None else os.path.dirname(path), exist_ok=True)
            if content is not None:
                with open(path, "wb") as file:
                    file.write(content)


def name(euid, plane, sequence):
    return "streams/%s/%s/%020d.baml%s" % (euid.hex(), plane, sequence, plane)


# What is broken. Functions of the store before it is encoded, and of its files after.

META3, DATA2, DATA3 = name(A, "meta", 3), name(A, "data", 2), name(A, "data", 3)


def drop(path):
    return lambda files: files.pop(path)


def change(path, edit):
    def apply(files):
        files[path] = edit(files[path])
    return apply


def a_directory(path):
    return lambda files: files.__setitem__(path, None)


def cut(content):
    return content[:-40]


def flip(content):
    return content[:70] + bytes([content[70] ^ 1]) + content[71:]


def header(at, new):
    return lambda content: sb.reseal(content[:at] + new + content[at + len(new):])


def add(group, *facts):
    return lambda store: store.v[group].facts.extend(copy.deepcopy(facts))


def again(group, tag):
    """The first fact with this tag once more."""
    return lambda store: store.v[group].facts.append(
        copy.deepcopy(next(fact for fact in store.v[group].facts if fact[0] == tag)))


def without(group, tag, last=False):
    def apply(store):
        facts = store.v[group].facts
        facts.remove([fact for fact in facts if fact[0] == tag][-1 if last else 0])
    return apply


def end(**fields):
    return lambda store: store.end.update(fields)


def health(field, count):
    return lambda store: store.end["health"].__setitem__(field, count)


def both(*edits):
    def apply(store):
        for edit in edits:
            edit(store)
    return apply


def undefined(where):
    """The rows of a context lose its definition."""
    def apply(store):
        for group in store.v:
            for item in group.contexts:
                if item[0] == where[0]:
                    item[1] = None
    return apply


def gone(where):
    """The rows of a context are gone."""
    def apply(store):
        for group in store.v:
            group.contexts = [item for item in group.contexts if item[0] != where[0]]
    return apply


def overflow_of(there):
    """The inner call was in an overflow bucket, which is there or not."""
    def apply(store):
        store.v[1].facts[0][1]["context"] = (0, 1)
        if there:
            store.v[1].overflow.append([0, 1, [1, 1, 1, 0, 0, 0, 5, 0, 0, 0]])
    return apply


def bad_row(store):
    store.v[2].contexts[0][1] = LEAF[1][:-1] + b"\x09"


def start_lost(flag):
    def apply(store):
        store.meta[0].records = [r for r in store.meta[0].records if r[0] != sb.ROOT_STARTED or r[1]["root"] != V]
        store.end["flags"] = flag
    return apply


def late_start(store):
    """The start of the victim moves behind the first segment, which is lost."""
    store.meta[0].records = [r for r in store.meta[0].records if r[0] != sb.ROOT_STARTED or r[1]["root"] != V]
    store.meta[1].records.insert(0, started(V))
    store.meta[1].high_water = 0


def one_more_meta(store):
    store.meta.append(sb.MetaSegment(4, A, 4, [[sb.ENGINE_STARTED, {
        "engine": 2, "program": PROGRAM, "table": None, "revision": None, "source": None}]]))


def stream_is_a_file(files):
    for path in [path for path in files if A.hex() in path]:
        del files[path]
    files["streams/" + A.hex()] = b"no directory"


def no_end(store):
    store.meta.pop()


def stray_group(store):
    stranger = sb.Group(root_of(A, 55), contexts=[row(MAIN, True, started=9)])
    store.data[1].groups.append(stranger)


def other_codec(store):
    body = sb.function_table([], [])
    store.objects[store.table] = sb.cas_object(1, body)


def other_object(content):
    def apply(store):
        if content is None:
            del store.objects[store.table]
        else:
            store.objects[store.table] = content(store.objects[store.table])
    return apply


class Case:
    """A damage, and what the victim says of itself. None: it is not listed."""

    def __init__(self, what, *, store=None, files=None, status="succeeded", index="complete", data="complete",
                 verdict="complete", issues=(), known=True, alive=False, unhurt="NM", stream=None, also=None):
        self.what, self.store, self.files, self.alive = what, store, files, alive
        self.status, self.index, self.data, self.verdict = status, index, data, verdict
        self.issues, self.known, self.unhurt, self.stream, self.also = issues, known, unhurt, stream, also


def failed(what, error, **fields):
    """A damage by which nothing of the victim can be told but that."""
    return Case(what, data="error", verdict="damaged", issues=("fold_error",), known=False, also=fold_error(error),
                **fields)


def lost_stream(what, error, **fields):
    return Case(what, status=None, stream=error, unhurt="M", **fields)


def incomplete(what, *issues, verdict="damaged", **fields):
    return Case(what, data="incomplete", verdict=verdict, issues=issues, **fields)


# Further checks of a case: functions of (server, the victim's id) that give what is wrong, or None.


def fold_error(error):
    def check(server, ident):
        issues = server.get("/api/v1/executions/" + ident)["evidence"]["issues"]
        return None if [issue.get("error") for issue in issues] == [error] else issues
    return check


def rates_are_null(server, ident):
    for item in server.get("/api/v1/executions/%s/errors" % ident)["items"]:
        if item["failure_rate"] is not None:
            return "failure rate", item["failure_rate"]
    return None


def stack_is_partial(server, ident):
    items = server.get("/api/v1/executions/%s/errors" % ident)["items"]
    found = [(item["stack_complete"], item["stack"]) for item in items]
    return None if found == [(False, ["app.f2"])] else found


def nothing_is_invented(server, ident):
    """Of a context without a definition nothing is said."""
    answer = server.get("/api/v1/flame", execution=ident, ids=1)
    for node, key in zip(answer["nodes"], answer["contexts"]):
        if key == LEAF[0].hex() and (node[0], node[1], node[2], node[3]) != (-1, -1, "unknown", None):
            return node
    answer = server.get("/api/v1/contexts/" + LEAF[0].hex(), execution=ident)["context"]
    wrong = [answer[key] for key in ("function", "call_site_line", "path_id")] != [None] * 3
    return answer if wrong or answer["edge_kind"] != "unknown" else None


def thread_says(*issues):
    def check(server, ident):
        items = server.get("/api/v1/executions/%s/threads" % ident)["items"]
        found = sorted(issue for item in items for issue in item["issues"])
        return None if found == sorted(issues) else found
    return check


def names_are_null(error):
    def check(server, ident):
        answer = server.get("/api/v1/functions", execution=ident)
        found = [(item["name"], item["kind"], item["origin"], item["file"]) for item in answer["items"]]
        errors = [issue.get("error") for issue in answer["evidence"]["issues"]]
        return None if found == [(None,) * 4] * 3 and errors == [error] else (found, errors)
    return check


def start_is_null(server, ident):
    item = server.get("/api/v1/executions/" + ident)["execution"]
    found = [item[key] for key in ("started_ns", "started_unix_ns", "started_at", "runtime_id")]
    return None if found == [None] * 4 else found


def clock_is_null(server, ident):
    item = server.get("/api/v1/executions/" + ident)["execution"]
    found = item["started_ns"], item["started_at"], item["ended_at"], item["pid"]
    return None if found == (5, None, None, None) else found


def span_without_start(server, ident):
    items = server.get("/api/v1/executions/%s/spans" % ident)["items"]
    found = [[item[key] for key in ("started_ns", "function_id", "call_path_id", "edge_kind", "selection_reasons")]
             for item in items if item["state"] == "start_missing"]
    return None if found == [[None] * 5] else found


def values_apply(server, ident):
    """The call that went well has no error, the one that failed no output: both are said to be so."""
    items = server.get("/api/v1/executions/%s/spans" % ident)["items"]
    found = {item["short_id"]: (item["output_state"], item["error_state"]) for item in items}
    wanted = {"1.1": ("available", "not_applicable"), "1.2": ("not_applicable", "available")}
    return None if found == wanted else found


def high_water(highest, contiguous):
    def check(server, _ident):
        data = server.get("/api/v1/streams/" + A.hex())["stream"]["data"]
        found = data["highest"], data["high_water"]
        return None if found == (highest, contiguous) else found
    return check


def no_equation_is_claimed(server, ident):
    for equation in server.get("/api/v1/executions/" + ident)["evidence"]["equations"]:
        if equation["name"] != "groups" and equation["holds"] is not None and equation["name"].startswith("error"):
            return equation
    return None


MISSING = ("missing_data_segment", "group_count_mismatch", "unresolved_dependency")
CORRUPT = ("corrupt_data_segment", "group_count_mismatch", "unresolved_dependency")

TABLE = (
    Case("nothing is broken", also=values_apply),
    # Files of the meta plane.
    Case("a meta segment is missing", store=one_more_meta, files=drop(META3), status="abandoned",
         index="index_corrupt", data="incomplete", verdict="damaged", issues=("index_corrupt", "no_root_ended")),
    Case("a meta segment is cut", files=change(META3, cut), status="abandoned", index="index_corrupt",
         data="incomplete", verdict="damaged", issues=("index_corrupt", "no_root_ended")),
    Case("a meta segment of another version", files=change(META3, header(8, sb.u16(1))), status="abandoned",
         index="index_corrupt", data="incomplete", verdict="damaged", issues=("index_corrupt", "no_root_ended")),
    Case("a meta segment of another process", files=change(META3, header(18, B)), status="abandoned",
         index="index_corrupt", data="incomplete", verdict="damaged", issues=("index_corrupt", "no_root_ended")),
    Case("the tail of a living process is cut", files=change(META3, cut), alive=True, status="running",
         index="no_root_ended", data="incomplete", verdict="running", issues=("no_root_ended",),
         also=no_equation_is_claimed),
    lost_stream("a meta segment is a directory", "Io", files=a_directory(META3)),
    lost_stream("a stream is a file", "StreamNotFound", files=stream_is_a_file),
    lost_stream("an execution begins twice", "MetaDuplicateRootStarted",
                store=lambda s: s.meta[2].records.append(started(V))),
    lost_stream("an execution ends twice", "MetaDuplicateRootEnded",
                store=lambda s: s.meta[2].records.append(copy.deepcopy(s.meta[2].records[0]))),
    # Records.
    Case("the end is missing, and the process gone", store=no_end, status="abandoned", index="no_root_ended",
         data="incomplete", verdict="partial", issues=("no_root_ended",), also=no_equation_is_claimed),
    Case("the end is missing, and the process lives", store=no_end, alive=True, status="running",
         index="no_root_ended", data="incomplete", verdict="running", issues=("no_root_ended",)),
    Case("the start is lost, as the writer says", store=start_lost(1), index="root_started_lost", verdict="partial",
         issues=("root_started_lost",), also=start_is_null),
    Case("the start is lost, and nobody says so", store=start_lost(0), index="index_corrupt", verdict="damaged",
         issues=("index_corrupt",), also=start_is_null),
    Case("what is lost before the start does not matter", store=late_start, files=drop(name(A, "meta", 1)),
         unhurt="M", also=clock_is_null),
    # Files of the data plane.
    incomplete("a data segment is missing", *MISSING, files=drop(DATA2), also=rates_are_null),
    incomplete("a data segment is cut", *CORRUPT, files=change(DATA2, cut), also=rates_are_null),
    incomplete("a bit of a data segment has tipped", *CORRUPT, files=change(DATA2, flip), also=high_water(4, 1)),
    incomplete("a data segment of another version", *CORRUPT, files=change(DATA2, header(8, sb.u16(3)))),
    incomplete("a data segment with another name's magic", *CORRUPT, files=change(DATA2, header(0, b"BAMLMET1"))),
    incomplete("a data segment of another process", *CORRUPT, files=change(DATA2, header(18, B))),
    incomplete("a data segment with another's number", *CORRUPT, files=change(DATA2, header(10, sb.u64(9)))),
    failed("a data segment is a directory", "Io", files=a_directory(DATA2)),
    incomplete("files beyond a gap count, the high water does not", *MISSING, files=drop(DATA2), also=high_water(4, 1)),
    incomplete("a count of segments lies", "group_count_mismatch", store=end(count=7), also=rates_are_null),
    failed("a range is beyond all bounds", "RangeTooLarge", store=end(first=1, last=2**62)),
    # Groups and sections whose checksum is right.
    failed("a row has no such edge", "Decode", store=bad_row),
    failed("a row's key is another's", "Decode",
           store=lambda s: s.v[2].contexts[0].__setitem__(1, LEAF[1])),
    failed("a fact has no such tag", "Decode", store=add(2, [99, {"raw": b"abc"}])),
    failed("facts are fewer than counted", "Decode", store=lambda s: setattr(s.v[2], "count_lies", (0, 1))),
    failed("rows are more than counted", "Decode", store=lambda s: setattr(s.v[2], "count_lies", (-1, 0))),
    Case("a group of nobody", store=stray_group),
    # Facts.
    failed("a call begins twice", "DuplicateSpanStart", store=again(1, sb.SPAN_START)),
    failed("a call ends twice", "DuplicateSpanEnd", store=again(2, sb.SPAN_END)),
    failed("a value twice", "DuplicateValueOccurrence", store=again(0, sb.VALUE)),
    failed("an error twice", "DuplicateErrorCapture", store=again(2, sb.ERROR)),
    failed("a call ended by two errors", "DuplicateTerminalError", store=again(2, sb.TERMINAL)),
    failed("a thread begins twice", "DuplicateThreadStart", store=again(0, sb.THREAD_START)),
    failed("a thread ends twice", "DuplicateThreadEnd", store=again(2, sb.THREAD_END)),
    Case("a thread without a start", store=add(2, [sb.THREAD_END, {"thread": root_of(A, 2), "ended": 9, "status": 0}]),
         also=thread_says("missing_start")),
    Case("a thread whose parent is nowhere", store=add(2, thread_start(root_of(A, 2), 1, root_of(A, 9))),
         also=thread_says("missing_parent")),
    Case("a second thread that says it is the root", store=add(2, thread_start(root_of(A, 2))),
         also=thread_says("root_mismatch")),
    # What facts refer to, and the writer lost nothing.
    failed("a call without a start", "MissingSpanStart", store=without(1, sb.SPAN_START)),
    failed("a call's context is not there", "MissingContextDefinition", store=gone(MAIN)),
    failed("a call's context is not defined", "MissingContextDefinition", store=undefined(CHILD)),
    failed("an error that a call ended by is not there", "MissingErrorCapture", store=without(2, sb.ERROR)),
    failed("a call's overflow bucket is not there", "MissingOverflowBucket", store=overflow_of(False)),
    # The same where the writer says that it lost something.
    incomplete("a call without a start, and losses", "unresolved_dependency", verdict="partial",
               store=both(without(1, sb.SPAN_START), health(9, 1)), also=span_without_start),
    incomplete("a context that is not defined, and losses", "unresolved_dependency", "unresolved_dependency",
               verdict="partial", store=both(undefined(CHILD), health(7, 1))),
    incomplete("an error that is not there, and losses", "unresolved_dependency", verdict="damaged",
               store=both(without(2, sb.ERROR), health(9, 1))),
    # What is not checked, and not invented.
    Case("a context that nothing refers to is not defined", store=undefined(LEAF), verdict="damaged",
         also=nothing_is_invented),
    Case("the caller of a context is not there", store=both(gone(MAIN), without(0, sb.SPAN_START),
                                                            without(0, sb.VALUE), without(2, sb.VALUE),
                                                            without(2, sb.SPAN_END, True)),
         verdict="damaged", also=stack_is_partial),
    Case("calls in an overflow bucket", store=overflow_of(True), verdict="partial"),
    # Names.
    Case("the table of functions is missing", store=other_object(None), unhurt="",
         verdict="damaged", issues=("function_table",), also=names_are_null("Missing")),
    Case("the table of functions is damaged", store=other_object(flip), unhurt="",
         verdict="damaged", issues=("function_table",), also=names_are_null("InvalidChecksum")),
    Case("the table of functions is none", store=other_codec, unhurt="",
         verdict="damaged", issues=("function_table",), also=names_are_null("CasIdentityMismatch")),
)


def differ(what, wanted, got):
    return None if wanted == got else "%s: expected %.200s, got %.200s" % (what, wanted, got)


class Looked:
    """What a server says of an execution, without the state of the store."""

    def __init__(self, server, ident):
        base = "/api/v1/executions/" + ident
        self.answers = [server.get(base), server.get(base + "/spans"), server.get(base + "/errors"),
                        server.get(base + "/threads"), server.get("/api/v1/functions", execution=ident),
                        server.get("/api/v1/flame", execution=ident, ids=1)]
        for answer in self.answers:
            del answer["snapshot"]
        self.answers[0]["execution"].pop("alive")

    def nothing_is_known(self):
        """Where nothing can be folded no answer has a number."""
        summary, spans, errors, threads, functions, flame = self.answers
        yield differ("numbers", [None] * len(NUMBERS), [summary["execution"][key] for key in NUMBERS])
        yield differ("totals", [None] * 3, [answer["totals"] for answer in (summary, functions, flame)])
        for answer in (spans, errors, threads):
            yield differ("rows", ([], None), (answer["items"], answer["population"]))
        yield differ("functions", ([], []), (functions["items"], flame["nodes"]))
        yield differ("unattributed", None, functions["unattributed"])

    def all_agree(self, verdict):
        """Each answer says how far it can be trusted."""
        yield differ("verdicts", [verdict] * 6, [answer["evidence"]["verdict"] for answer in self.answers])


def nothing_is_denied(server, ident):
    """What is not found may have been there."""
    for path, query in (("callers", {"function": "function:app.f1"}), ("callees", {"function": "function:app.f1"}),
                        ("flame", {"root": MAIN[0].hex()})):
        status, problem = server.ask("/api/v1/" + path, {"execution": ident, **query})
        yield differ(path, (404, True), (status, "the data is damaged" in problem["detail"]))


def check_search(server):
    """A search says what it could not look at, whatever it looks for, on each of its pages."""
    tables = server.get("/api/v1/search", q="app", kind="function")["tables"]
    lost = server.get("/api/v1/executions")["evidence"]
    lost = any(issue["kind"] == "stream_error" for issue in lost["issues"])
    for query in ({"kind": "function"}, {"limit": 1}):
        evidence = server.get("/api/v1/search", q="app", **query)["evidence"]
        if lost or tables["unreadable"]:
            yield differ("verdict of a search for %s" % query, "damaged", evidence["verdict"])
        yield differ("streams' errors in it", lost, any(i["kind"] == "stream_error" for i in evidence["issues"]))


def check_victim(case, server, ident):
    status, answer = server.ask("/api/v1/executions/" + ident, {})
    if case.status is None:
        yield differ("the victim is not listed", 404, status)
        stream = server.get("/api/v1/streams/" + A.hex())
        yield differ("the stream's error", case.stream, stream["stream"]["error"])
        listed = server.get("/api/v1/executions")
        yield differ("the list's verdict", "damaged", listed["evidence"]["verdict"])
        return
    yield differ("found", 200, status)
    item, evidence = answer["execution"], answer["evidence"]
    yield differ("status", case.status, item["status"])
    yield differ("index state", case.index, item["index_state"])
    yield differ("data state", case.data, item["data_state"])
    yield differ("verdict", case.verdict, evidence["verdict"])
    yield differ("issues", sorted(case.issues), sorted(issue["kind"] for issue in evidence["issues"]))
    looked = Looked(server, ident)
    yield from looked.all_agree(case.verdict)
    if not case.known:
        yield from looked.nothing_is_known()
        yield from nothing_is_denied(server, ident)
    else:
        yield differ("numbers that are known", False, None in [item[key] for key in NUMBERS])
    yield case.also and differ("further", None, case.also(server, ident))


def check_commands(case, varve, directory):
    """The command says the same, and ends well."""
    ident = thread_text(V)
    for verb in (["ls"], ["show", ident], ["spans", ident], ["errors", ident], ["threads", ident], ["top", ident],
                 ["search", "app"]):
        done = subprocess.run([varve, verb[0], "--store", directory, *verb[1:]], capture_output=True, timeout=120)
        wanted = 5 if case.status is None and len(verb) > 1 and verb[0] != "search" else 0
        yield differ("exit status of %s" % verb[0], wanted, done.returncode)
    done = subprocess.run([varve, "ls", "--store", directory, "--json"], capture_output=True, timeout=120)
    yield differ("ls ends well", 0, done.returncode)


def run(case, varve, scratch, whole):
    store = Store()
    if case.store:
        case.store(store)
    store.encode()
    if case.files:
        case.files(store.files)
    directory = os.path.join(scratch, ".baml", "profiles-v1")
    store.write(directory)
    lock = os.open(os.path.join(directory, "streams", (A if case.alive else B).hex(), "stream.lock"), os.O_RDWR)
    if case.alive:
        fcntl.flock(lock, fcntl.LOCK_EX)
    server = Server(varve, directory)
    try:
        found = [item for item in server.get("/api/v1/executions")["items"]]
        yield differ("listed", case.status is not None, thread_text(V) in [item["execution_id"] for item in found])
        yield from check_victim(case, server, thread_text(V))
        yield from check_search(server)
        for who, root in (("N", N), ("M", M)):
            if who not in case.unhurt:
                continue
            looked = Looked(server, thread_text(root))
            wanted = whole.setdefault(who, looked)
            yield differ(WORDS[who], wanted.answers, looked.answers)
        yield from check_commands(case, varve, directory)
    finally:
        server.stop()
        os.close(lock)


# What changes under a server that runs.


def soon(what, wanted, ask):
    """A change is seen before long."""
    deadline = time.monotonic() + 60
    while (got := ask()) != wanted:
        if time.monotonic() > deadline:
            return "%s: expected %.200s, got %.200s" % (what, wanted, got)
        time.sleep(0.02)
    return None


def put(path, content):
    """As a writer publishes a file."""
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.rename(path + ".new", path)


def states(server):
    """(execution, verdict, calls) of all, or the status of the refusal."""
    status, answer = server.ask("/api/v1/executions", {})
    if status != 200:
        return status
    return {item["execution_id"]: (item["verdict"], item["total_calls"]) for item in answer["items"]}


def asked_fresh(varve, directory, ask):
    """What a server says that knows nothing of before."""
    server = Server(varve, directory)
    try:
        return ask(server)
    finally:
        server.stop()


def states_of_fresh(varve, directory):
    return asked_fresh(varve, directory, states)


class Copies:
    """Answers that a client has kept, with their tags."""

    def __init__(self, server, *targets):
        self.server = server
        self.kept = {target: self.ask(target) for target in targets}

    def ask(self, target, tag=None):
        status, headers, body = self.server.request(target, headers={"If-None-Match": tag} if tag else None)
        return status, headers["etag"], body

    def stale(self):
        """Those that the server takes for good, and answers otherwise."""
        return [target for target, (_, tag, body) in self.kept.items()
                if self.ask(target, tag)[0] == 304 and self.ask(target)[2] != body]

    def good(self):
        return [target for target, (_, tag, _) in self.kept.items() if self.ask(target, tag)[0] == 304]


def kept_answers(varve, directory, store, v):
    """Segments that become others which are as good, or as bad: the state of the store tells nothing of it."""
    segment, planes = os.path.join(directory, DATA2), "/api/v1/streams/%s/data" % A.hex()
    server = Server(varve, directory)
    try:
        copies = Copies(server, "/api/v1/executions", "/api/v1/executions/" + v, "/api/v1/search?q=app", planes)
        yield differ("copies of a store that stays as it is", list(copies.kept), copies.good())
        put(segment, another_good().files[DATA2])
        wrong = soon("executions", states_of_fresh(varve, directory), lambda: states(server))
        yield wrong or differ("copies from before a good segment became another", [], copies.stale() + copies.good())
        put(segment, flip(store.files[DATA2]))
        soon("executions", states_of_fresh(varve, directory), lambda: states(server))
        copies = Copies(server, planes)
        put(segment, store.files[DATA2][:-1])
        wanted = asked_fresh(varve, directory, lambda fresh: fresh.get(planes)["items"])
        wrong = soon("segments", wanted, lambda: server.get(planes)["items"])
        yield wrong or differ("copies from before a bad segment became another", [], copies.stale())
    finally:
        put(segment, store.files[DATA2])
        server.stop()


def newest_goes(varve, directory, store, v):
    """When the newest of the files that are left was written is known though it was not the newest before."""
    last = [name for name in store.files if name.startswith("streams/%s/" % A.hex()) and name.endswith(".bamldata")]
    last.sort()
    for at, name in enumerate(last):
        os.utime(os.path.join(directory, name), (2 * 10**9 + at, 2 * 10**9 + at))

    def written(server):
        return server.get("/api/v1/executions/%s/checkpoint" % v)["committed"]["written_at"]
    server = Server(varve, directory)
    try:
        before = written(server)
        os.unlink(os.path.join(directory, last[-1]))
        wanted = asked_fresh(varve, directory, written)
        wrong = soon("when it was written", wanted, lambda: written(server))
        yield wrong or (None if wanted != before else "it is the same: " + before)
    finally:
        store.write(directory)
        server.stop()


def another_good():
    """The same, with more calls in one segment."""
    store = Store()
    store.data[1].groups[0].contexts = [row(LEAF, True, started=7)]
    store.encode()
    return store


def unfinished(varve, scratch):
    """What was folded of an execution that has no end changes below what comes after."""
    store = Store()
    store.meta = store.meta[:2]
    store.encode()
    directory = os.path.join(scratch, "open", ".baml", "profiles-v1")
    store.write(directory)
    segment = os.path.join(directory, DATA2)
    server = Server(varve, directory)
    try:
        whole = states(server)
        for what, content in (("that goes", None), ("that comes back", store.files[DATA2]),
                              ("that breaks", flip(store.files[DATA2])), ("that is mended", store.files[DATA2]),
                              ("that becomes another", another_good().files[DATA2])):
            if content:
                put(segment, content)
            else:
                os.unlink(segment)
            fresh = states_of_fresh(varve, directory)
            wrong = soon("executions", fresh, lambda: states(server))
            same = content == store.files[DATA2]
            yield "a segment of an open execution " + what, wrong or (
                None if same == (fresh == whole) else "whole %r, fresh %r" % (whole, fresh))
    finally:
        server.stop()


def changes(varve, scratch):
    store = Store()
    store.encode()
    directory = os.path.join(scratch, ".baml", "profiles-v1")
    store.write(directory)
    v, n, m = map(thread_text, (V, N, M))
    whole = {v: ("complete", 6), n: ("complete", 1), m: ("complete", 1)}
    segment = os.path.join(directory, DATA2)
    server = Server(varve, directory)
    try:
        yield "the store as it is", soon("executions", whole, lambda: states(server))
        put(segment, flip(store.files[DATA2]))
        yield "a segment that is replaced by a broken one", soon(
            "executions", {**whole, v: ("damaged", 3)}, lambda: states(server))
        put(segment, store.files[DATA2])
        yield "and is mended", soon("executions", whole, lambda: states(server))
        os.unlink(segment)
        yield "a segment that goes", soon("executions", {**whole, v: ("damaged", 3)}, lambda: states(server))
        put(segment, store.files[DATA2])
        yield "and comes back", soon("executions", whole, lambda: states(server))
        former = server.get("/api/v1/executions")["snapshot"]["as_of"]
        os.rename(segment, segment + ".away")
        server.ask("/api/v1/executions/" + v, {"as_of": former})
        os.rename(segment + ".away", segment)
        yield "a segment that was away when a former state was asked for", soon(
            "executions", whole, lambda: states(server))
        put(segment, another_good().files[DATA2])
        fresh = states_of_fresh(varve, directory)
        yield "a good segment in place of a good one", soon(
            "executions", fresh, lambda: states(server)) if fresh[v] != whole[v] else "it is the same"
        put(segment, store.files[DATA2])
        yield "and the first one again", soon("executions", whole, lambda: states(server))
        wrong = [line for line in kept_answers(varve, directory, store, v) if line]
        yield "a client's copies of answers that such a change makes old", "; ".join(wrong)
        wrong = [line for line in newest_goes(varve, directory, store, v) if line]
        yield "the time of the newest file, where newer ones went", "; ".join(wrong)
        shutil.rmtree(os.path.join(directory, "streams", A.hex()))
        yield "a stream that is pruned", soon("executions", {m: whole[m]}, lambda: states(server))
        store.write(directory)
        yield "and comes back", soon("executions", whole, lambda: states(server))
        shutil.rmtree(directory)
        yield "a store that is cleaned", soon("executions", 404, lambda: states(server))
        store.write(directory)
        yield "and is recorded anew", soon("executions", whole, lambda: states(server))
        os.rename(directory, directory + ".old")
        other = Store()
        other.meta, other.data = [], []
        other.encode()
        other.write(directory)
        yield "a store that is replaced by another", soon("executions", {m: whole[m]}, lambda: states(server))
    finally:
        server.stop()


def main(arguments):
    bad, whole = 0, {}
    for at, case in enumerate(TABLE, 1):
        with tempfile.TemporaryDirectory() as scratch:
            wrong = [line for line in run(case, arguments[0], scratch, whole) if line]
        bad += bool(wrong)
        print("%s %d - %s" % ("not ok" if wrong else "ok", at, case.what))
        for line in wrong:
            print("# " + line.replace("\n", " "))
        sys.stdout.flush()
    at = len(TABLE)
    with tempfile.TemporaryDirectory() as scratch:
        for what, wrong in itertools.chain(changes(arguments[0], scratch), unfinished(arguments[0], scratch)):
            at += 1
            bad += bool(wrong)
            print("%s %d - %s%s" % ("not ok" if wrong else "ok", at, what, "\n# " + wrong if wrong else ""))
            sys.stdout.flush()
    print("1..%d" % at)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
