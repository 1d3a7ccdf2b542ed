"""Folds a store into plain objects: streams with their index, executions with everything their data says.

The rules are those of the store format's sections on the reader, stricter where it asks for it: an embedded sequence
must be that of the file name, and no range or name makes a loop without bound. Slow on purpose: whole files, plain
objects, one rule after the other.
"""

import base64
import re
from dataclasses import dataclass, field

from refdecode import (COUNTERS, decode_cct, decode_data, decode_evidence, decode_function_table, decode_meta,
                       read_object)
from refsource import StoreError, open_source

U64_MAX = 2**64 - 1
U128_MAX = 2**128 - 1
MAX_MISSING = 1_000_000
SUFFIXES = {"meta": ".bamlmeta", "data": ".bamldata"}
EXECUTION_STATUS = ("Succeeded", "Failed", "Cancelled", "Panicked", "Abandoned")
CCT_PUBLISH_FAILED = 7
EVIDENCE_PUBLISH_FAILED = 9


def ref_text(prefix, payload):
    return prefix + base64.urlsafe_b64encode(payload).decode("ascii").rstrip("=")


def thread_text(ref):
    return ref_text("baml_thread_1_", b"\x01" + ref)


def call_text(ref):
    return ref_text("baml_call_1_", b"\x01" + ref)


def runtime_text(token):
    return ref_text("baml_id_1_", token)


def opt_text(text, value):
    return None if value is None else text(value)


@dataclass
class Context:
    """One calling context: its tuple once a defining row was met, and the sums of all rows."""

    tuple: dict = None
    counters: dict = field(default_factory=lambda: {name: 0 for name, _width, _bit in COUNTERS})

    def self_ns(self):
        deduction = min(self.counters["direct_call_child_inclusive_ns"] + self.counters["await_ns"], U128_MAX)
        return max(0, self.counters["inclusive_ns"] - deduction)


@dataclass
class Span:
    """Everything said about one call."""

    start: dict = None
    end: dict = None
    annotations: list = field(default_factory=list)
    values: dict = field(default_factory=dict)
    terminal: dict = None

    def runtime_id(self):
        """Highest ordinal; on a tie the one of the start, then the first that was folded."""
        first = [self.start["annotation"]] if self.start and self.start["annotation"] else []
        ranked = first + self.annotations
        return max(ranked, key=lambda annotation: annotation[0])[1] if ranked else None


@dataclass
class Thread:
    start: dict = None
    end: dict = None


@dataclass
class Execution:
    """One execution: what the index knows, and after `load` what its data says."""

    root: bytes
    started: dict = None
    started_sequence: int = None
    data_high_water: int = None
    ended: dict = None
    ended_sequence: int = None
    program_id: bytes = None
    started_unix_ns: int = None
    status: str = None
    index_state: str = None
    error: str = None
    issues: list = field(default_factory=list)
    cct_health: int = 0
    contexts: dict = field(default_factory=dict)
    overflow: dict = field(default_factory=dict)
    threads: dict = field(default_factory=dict)
    thread_issues: list = field(default_factory=list)
    spans: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)
    logs: list = field(default_factory=list)
    scopes: dict = field(default_factory=dict)
    found: int = 0  # groups

    @property
    def unknown(self):
        """Nothing of what was counted can be read: it is unknown, not zero."""
        damage = {"MissingDataSegment", "CorruptDataSegment", "GroupCountMismatch"}
        return self.error is not None or (self.found == 0 and any(issue[0] in damage for issue in self.issues))

    @property
    def ident(self):
        return thread_text(self.root)

    @property
    def engine(self):
        return int.from_bytes(self.root[16:24], "big")

    @property
    def data_state(self):
        return "Complete" if not self.issues and self.ended else "Incomplete"

    def add_counters(self, total, counters):
        for name, width, bit in COUNTERS:
            limit = 2 ** (8 * width) - 1
            total[name] += counters[name]
            if total[name] > limit:
                total[name] = limit
                self.cct_health |= bit

    def fold_group(self, group):
        contexts, overflow = decode_section(decode_cct, group)
        facts = decode_section(decode_evidence, group)
        self.cct_health |= group.health
        for key, context, counters in contexts:
            entry = self.contexts.setdefault(key, Context())
            entry.tuple = context or entry.tuple
            self.add_counters(entry.counters, counters)
        for bucket, counters in overflow:
            entry = self.overflow.setdefault(bucket, Context())
            self.add_counters(entry.counters, counters)
        for name, fact in facts:
            getattr(self, "fold_" + name)(fact)

    def span(self, fact):
        return self.spans.setdefault(fact["call"], Span())

    def fold_span_start(self, fact):
        set_once(self.span(fact), "start", fact, "DuplicateSpanStart")

    def fold_span_end(self, fact):
        set_once(self.span(fact), "end", fact, "DuplicateSpanEnd")

    def fold_span_runtime_id(self, fact):
        self.span(fact).annotations.append(fact["annotation"])

    def fold_value(self, fact):
        values = self.span(fact).values
        if fact["role"] in values:
            raise StoreError("DuplicateValueOccurrence")
        values[fact["role"]] = fact["value"]

    def fold_error(self, fact):
        if fact["id"] in self.errors:
            raise StoreError("DuplicateErrorCapture")
        self.errors[fact["id"]] = fact

    def fold_terminal(self, fact):
        set_once(self.span(fact), "terminal", fact, "DuplicateTerminalError")

    def fold_thread_start(self, fact):
        set_once(self.threads.setdefault(fact["thread"], Thread()), "start", fact, "DuplicateThreadStart")

    def fold_thread_end(self, fact):
        set_once(self.threads.setdefault(fact["thread"], Thread()), "end", fact, "DuplicateThreadEnd")

    def fold_log(self, fact):
        self.logs.append(fact)

    def fold_scope(self, fact):
        self.scopes.setdefault(fact["call"], []).append(fact)

    def find_thread_issues(self):
        issues = []
        for ref, thread in sorted(self.threads.items()):
            if thread.start is None:
                issues.append((ref, "MissingStart"))
                continue
            parent = thread.start["parent"]
            if parent is not None and (parent not in self.threads or self.threads[parent].start is None):
                issues.append((ref, "MissingParent"))
            if thread.start["kind"] == 0 and ref != self.root:
                issues.append((ref, "RootMismatch"))
        return issues

    def unresolved(self):
        """(error name, issue) of each missing dependency: spans by call, then captures."""
        for call, span in sorted(self.spans.items()):
            if span.start is None:
                yield "MissingSpanStart", ["UnresolvedDependency", "SpanStart", call_text(call)]
                continue
            yield from self.unresolved_context(span.start["context"])
            capture = (span.terminal or {}).get("capture")
            if capture is not None and capture not in self.errors:
                yield "MissingErrorCapture", ["UnresolvedDependency", "ErrorCapture"] + capture_pair(capture)
        for _ident, capture in sorted(self.errors.items()):
            yield from self.unresolved_context(capture["context"])

    def unresolved_context(self, ref):
        if isinstance(ref, tuple):
            if ref not in self.overflow:
                yield "MissingOverflowBucket", ["UnresolvedDependency", "OverflowBucket", *ref]
        elif ref not in self.contexts or self.contexts[ref].tuple is None:
            yield "MissingContextDefinition", ["UnresolvedDependency", "ContextDefinition", ref.hex()]


def set_once(entry, name, fact, error):
    if getattr(entry, name) is not None:
        raise StoreError(error)
    setattr(entry, name, fact)


def decode_section(decode, group):
    """Any fault inside a section is one hard error."""
    try:
        return decode(group)
    except StoreError:
        raise StoreError("Decode") from None


def capture_pair(ident):
    return [thread_text(ident[:32]), int.from_bytes(ident[32:], "big")]


class Stream:
    """One writer process: its index and its executions."""

    def __init__(self, source, name):
        self.source = source
        self.euid = bytes.fromhex(name)
        self.place = ("streams", self.euid.hex())
        self.error = None
        self.alive = False
        self.header = None
        self.engines = []
        self.gaps = []
        self.meta_high_water = 0
        self.roots = {}
        self.segments = {}
        try:
            self.open_index()
        except StoreError as fault:
            self.error = fault.name
            return
        for execution in self.roots.values():
            self.load(execution)

    def segment_names(self, plane, suffix):
        """{sequence: file name} of a plane, whatever kind of file bears the name."""
        if self.source.kind(*self.place, plane) is None:
            return {}
        if self.source.kind(*self.place, plane) != "dir":
            raise StoreError("Io")
        names = {}
        for name in self.source.names(*self.place, plane):
            match = re.fullmatch(r"([0-9]{20})" + re.escape(suffix), name, re.ASCII)
            if match and int(match[1]) <= U64_MAX:
                names[int(match[1])] = name
        return names

    def read_segment(self, plane, name):
        if self.source.kind(*self.place, plane, name) != "file":
            raise StoreError("Io")
        return self.source.read(*self.place, plane, name)

    def open_index(self):
        if self.source.kind(*self.place) != "dir":
            raise StoreError("StreamNotFound")
        self.alive = self.source.locked(*self.place, "stream.lock")
        meta = {seq: name for seq, name in self.segment_names("meta", SUFFIXES["meta"]).items() if seq > 0}
        self.data = {seq: name for seq, name in self.segment_names("data", SUFFIXES["data"]).items() if seq > 0}
        self.meta_highest = max(meta, default=0)
        self.data_highest = max(self.data, default=0)
        if self.meta_highest - len(meta) > MAX_MISSING:
            raise StoreError("RangeTooLarge")
        for sequence in range(1, self.meta_highest + 1):
            if sequence not in meta:
                self.gaps.append(sequence)
                continue
            content = self.read_segment("meta", meta[sequence])
            try:
                high_water, records = decode_meta(content, self.euid, sequence)
            except StoreError:
                if not (self.alive and sequence == self.meta_highest):
                    self.gaps.append(sequence)
                continue
            self.meta_high_water = sequence
            for tag, record in records:
                self.fold_record(tag, record, sequence, high_water)
        if self.alive:
            self.gaps = [gap for gap in self.gaps if gap < self.meta_high_water]
        for execution in self.roots.values():
            self.conclude(execution)

    def fold_record(self, tag, record, sequence, high_water):
        if tag == 0:
            self.header = record
        elif tag == 1:
            self.engines.append(record)
        else:
            execution = self.roots.setdefault(record["root"], Execution(record["root"]))
            if tag == 2:
                set_once(execution, "started", record, "MetaDuplicateRootStarted")
                execution.started_sequence = sequence
                execution.data_high_water = high_water
            else:
                set_once(execution, "ended", record, "MetaDuplicateRootEnded")
                execution.ended_sequence = sequence

    def conclude(self, execution):
        """What follows from the index alone."""
        started, ended = execution.started, execution.ended
        if ended:
            execution.status = EXECUTION_STATUS[ended["status"]]
        else:
            execution.status = "Running" if self.alive else "Abandoned"
        execution.index_state = self.index_state(execution)
        engines = [engine for engine in self.engines if engine["engine"] == execution.engine]
        if engines:
            execution.program_id = engines[0]["program_id"]
        if started and self.header:
            execution.started_unix_ns = min(self.header["zero_unix_ns"] + started["started_ns"], U64_MAX)

    def index_state(self, execution):
        first = execution.started_sequence if execution.started else execution.ended_sequence
        ended = execution.ended
        lost = ended is not None and ended["flags"] & 1 != 0
        if any(gap > first and (ended is None or gap < execution.ended_sequence) for gap in self.gaps):
            return "IndexCorrupt"
        if ended is not None and execution.started is None and not lost:
            return "IndexCorrupt"
        if lost:
            return "RootStartedLost"
        return "Complete" if ended else "NoRootEnded"

    def groups(self, sequence):
        """The decoded groups of one data segment, or the name of its fault."""
        if sequence not in self.segments:
            try:
                content = self.read_segment("data", self.data[sequence])
            except StoreError as fault:
                self.segments[sequence] = fault.name
                return fault.name
            try:
                self.segments[sequence] = decode_data(content, self.euid, sequence)
            except StoreError:
                self.segments[sequence] = "CorruptDataSegment"
        return self.segments[sequence]

    def load(self, execution):
        try:
            self.fold_range(execution)
            execution.thread_issues = execution.find_thread_issues()
            self.settle_dependencies(execution)
        except StoreError as fault:
            execution.error = fault.name

    def data_range(self, execution):
        """(first, last, expected groups or None)"""
        ended = execution.ended
        if ended is None:
            execution.issues.append(["NoRootEnded"])
            return execution.data_high_water + 1, self.data_highest, None
        if ended["count"] != 0 and ended["first"] != 0:
            return ended["first"], ended["last"], ended["count"]
        return 1, 0, ended["count"]

    def fold_range(self, execution):
        first, last, expected = self.data_range(execution)
        present = sum(1 for sequence in self.data if first <= sequence <= last)
        if last - first + 1 - present > MAX_MISSING:
            raise StoreError("RangeTooLarge")
        found = 0
        for sequence in range(first, last + 1):
            if sequence not in self.data:
                execution.issues.append(["MissingDataSegment", sequence])
                continue
            groups = self.groups(sequence)
            if groups == "Io":
                raise StoreError("Io")
            if groups == "CorruptDataSegment":
                execution.issues.append(["CorruptDataSegment", sequence])
                continue
            for group in groups:
                if group.root == execution.root:
                    found += 1
                    execution.fold_group(group)
        execution.found = found
        if expected is not None and expected != found:
            execution.issues.append(["GroupCountMismatch", expected, found])

    @staticmethod
    def settle_dependencies(execution):
        health = execution.ended["health"] if execution.ended else None
        lossy = health is not None and (health[CCT_PUBLISH_FAILED] != 0 or health[EVIDENCE_PUBLISH_FAILED] != 0)
        strict = not execution.issues and not lossy
        for error, issue in execution.unresolved():
            if strict:
                raise StoreError(error)
            execution.issues.append(issue)

    def orphans(self):
        found = {}
        for sequence in sorted(self.data):
            groups = self.groups(sequence)
            if isinstance(groups, list):
                for group in groups:
                    if group.root not in self.roots:
                        found.setdefault(group.root)
        return list(found)

    def function_rows(self, engine):
        """The rows of the engine's newest readable table."""
        return self.function_table(engine)[0]

    def function_table(self, engine):
        """(rows, paths of files by id) of the engine's newest readable table."""
        for record in reversed(self.engines):
            if record["engine"] == engine and record["function_table"] is not None:
                try:
                    codec, body = read_object(self.source, record["function_table"])
                    if codec == 2:
                        return decode_function_table(body)
                except StoreError:
                    continue
        return {}, {}


class Store:
    """All streams of one store, by id."""

    def __init__(self, source):
        self.source = source
        names = source.names("streams") if source.kind("streams") == "dir" else []
        names = {name.lower() for name in names if re.fullmatch(r"[0-9a-fA-F]{32}", name)}
        self.streams = [Stream(source, name) for name in sorted(names)]


def load_store(path):
    """The folded store at a directory or tar archive."""
    return Store(open_source(path))
