"""Encoders for store files, for tests that write stores of their own.

Records and facts are `[tag, fields]` pairs, so that a test can change one field before anything is encoded; a field
`raw` replaces the whole encoded body. Nothing is validated: most callers want to write what no good writer would.
"""

import hashlib
from dataclasses import dataclass, field

COUNTER_WIDTHS = (8, 8, 8, 8, 8, 8, 16, 16, 16, 8)
HEALTH_COUNT = 26


def uint(width):
    return lambda value: value.to_bytes(width, "big")


u8, u16, u32, u64, u128 = (uint(width) for width in (1, 2, 4, 8, 16))


def opt(encode, value):
    return b"\0" if value is None else b"\1" + encode(value)


def raw_text(text):
    """Text, or bytes that are to stand where text belongs."""
    return text if isinstance(text, bytes) else text.encode("utf-8")


def text32(text):
    return u32(len(raw_text(text))) + raw_text(text)


def text64(text):
    return u64(len(raw_text(text))) + raw_text(text)


def site(numbers):
    return b"".join(map(u32, numbers))


def seal(body):
    return body + hashlib.sha256(body).digest()


def reseal(sealed):
    """The same file with a checksum that fits its body."""
    return seal(sealed[:-32])


# Contexts.


def context_tuple(program, parent, function, call_site, edge):
    return program + opt(bytes, parent) + u32(function) + opt(site, call_site) + u8(edge)


def context_key(encoded):
    return hashlib.sha256(b"baml-cct-context-v1" + encoded).digest()


def counters(values):
    return b"".join(uint(width)(value) for width, value in zip(COUNTER_WIDTHS, values))


# Meta records.


def stream_started(fields):
    return u32(fields["pid"]) + u64(fields["zero"]) + text32(fields["version"]) + text32(fields["arch"])


def engine_started(fields):
    labels = opt(text32, fields["revision"]) + opt(text32, fields["source"])
    return u64(fields["engine"]) + fields["program"] + opt(bytes, fields["table"]) + labels


def root_started(fields):
    return fields["root"] + u64(fields["started"]) + fields["runtime_id"]


def root_ended(fields):
    numbers = u64(fields["ended"]) + u8(fields["status"]) + u8(fields["flags"])
    span = u64(fields["first"]) + u64(fields["last"]) + u64(fields["count"])
    health = b"".join(map(u64, fields["health"]))
    return fields["root"] + numbers + span + u32(len(health)) + health


META_ENCODERS = (stream_started, engine_started, root_started, root_ended)
STREAM_STARTED, ENGINE_STARTED, ROOT_STARTED, ROOT_ENDED = range(4)


# Evidence facts.


def context_ref(ref):
    return b"\1" + u8(ref[0]) + u8(ref[1]) if isinstance(ref, tuple) else b"\0" + ref


def value_state(value):
    return b"\1" + u8(value) if isinstance(value, int) else b"\0" + value[0] + u16(value[1]) + u64(value[2])


def annotation(pair):
    return u32(pair[0]) + pair[1]


def span_start(fields):
    who = fields["call"] + opt(bytes, fields["parent"]) + fields["thread"] + context_ref(fields["context"])
    where = u32(fields["function"]) + opt(site, fields["site"]) + u8(fields["edge"]) + u64(fields["started"])
    return who + where + u8(fields["reasons"]) + u8(fields["roles"]) + opt(annotation, fields["annotation"])


def span_end(fields):
    return fields["call"] + u64(fields["ended"]) + u8(fields["status"]) + u64(fields["inclusive"])


def span_runtime_id(fields):
    return fields["call"] + annotation(fields["annotation"])


def value_occurrence(fields):
    return fields["call"] + context_ref(fields["context"]) + u8(fields["role"]) + value_state(fields["value"])


def error_capture(fields):
    where = context_ref(fields["context"]) + u32(fields["function"]) + opt(site, fields["site"])
    kinds = u8(fields["kind"]) + u8(fields["source"]) + value_state(fields["value"])
    return b"BAMLERR1" + u16(1) + fields["id"] + fields["throw"] + where + kinds


def terminal(fields):
    link = b"\1" + u8(fields["lost"]) if "lost" in fields else b"\0" + fields["capture"]
    return b"BAMLTER1" + u16(1) + fields["call"] + link


def thread_start(fields):
    parents = opt(bytes, fields["parent"]) + opt(bytes, fields["spawn_call"]) + opt(site, fields["site"])
    return fields["thread"] + parents + u64(fields["started"]) + u8(fields["kind"]) + text32(fields["name"])


def thread_end(fields):
    return fields["thread"] + u64(fields["ended"]) + u8(fields["status"])


def log_event(fields):
    texts = [opt(text64, fields[name]) for name in ("level", "message", "event", "distinct")]
    place = opt(site, fields["site"]) + opt(u32, fields["column"])
    values = value_state(fields["context"]) + value_state(fields["data"])
    return opt(bytes, fields["call"]) + u64(fields["time"]) + texts[0] + place + b"".join(texts[1:]) + values


def call_scope(fields):
    return fields["call"] + opt(text64, fields["distinct"]) + value_state(fields["context"])


FACT_ENCODERS = (span_start, span_end, span_runtime_id, value_occurrence, error_capture, terminal, thread_start,
                 thread_end, log_event, call_scope)
(SPAN_START, SPAN_END, SPAN_RUNTIME_ID, VALUE, ERROR, TERMINAL, THREAD_START, THREAD_END, LOG, SCOPE) = range(10)


def tagged(item, encoders):
    tag, fields = item
    body = fields["raw"] if "raw" in fields else encoders[tag](fields)
    return u8(tag) + u32(len(body)) + body


# Segments.


@dataclass
class Group:
    """One execution's part of a segment: rows [key, tuple or None, counters], overflow [reason, edge, counters]."""

    root: bytes
    health: int = 0
    contexts: list = field(default_factory=list)
    overflow: list = field(default_factory=list)
    facts: list = field(default_factory=list)
    count_lies: tuple = (0, 0)

    def cct(self):
        if not self.contexts and not self.overflow:
            return b""
        rows = b"".join(key + opt(bytes, shape) + counters(values) for key, shape, values in self.contexts)
        buckets = b"".join(u8(reason) + u8(edge) + counters(values) for reason, edge, values in self.overflow)
        return u64(len(self.contexts)) + rows + u64(len(self.overflow)) + buckets

    def evidence(self):
        if not self.facts:
            return b""
        return u64(len(self.facts)) + b"".join(tagged(fact, FACT_ENCODERS) for fact in self.facts)

    def encode(self):
        cct, evidence = self.cct(), self.evidence()
        cct_count = max(0, len(self.contexts) + len(self.overflow) + self.count_lies[0])
        evidence_count = max(0, len(self.facts) + self.count_lies[1])
        head = self.root + u8(self.health)
        return head + u64(cct_count) + u64(len(cct)) + cct + u64(evidence_count) + u64(len(evidence)) + evidence


@dataclass
class MetaSegment:
    sequence: int
    euid: bytes
    high_water: int
    records: list = field(default_factory=list)
    count_lie: int = 0

    def encode(self):
        payload = b"".join(tagged(record, META_ENCODERS) for record in self.records)
        head = b"BAMLMET1" + u16(2) + u64(self.sequence) + self.euid + u64(self.high_water)
        return seal(head + u64(max(0, len(self.records) + self.count_lie)) + u64(len(payload)) + payload)


@dataclass
class DataSegment:
    sequence: int
    euid: bytes
    groups: list = field(default_factory=list)
    count_lie: int = 0

    def encode(self):
        payload = b"".join(group.encode() for group in self.groups)
        head = b"BAMLDAT1" + u16(2) + u64(self.sequence) + self.euid
        return seal(head + u64(max(0, len(self.groups) + self.count_lie)) + u64(len(payload)) + payload)


# CAS objects.


def value_cid(codec, body):
    return hashlib.sha256(b"baml-value-v1" + u16(codec) + body).digest()


def cas_object(codec, body):
    return seal(b"BAMLVAL1" + u16(1) + u16(codec) + u64(len(body)) + value_cid(codec, body) + body)


def function_table(functions, files):
    """`functions` are dicts by ascending id, `files` (id, path) pairs."""
    rows = b""
    for row in functions:
        rows += u32(row["id"]) + text32(row["fqn"]) + text32(row["display"]) + opt(text32, row["key"])
        rows += u8(row["kind"]) + opt(text32, row["detail"]) + u8(row["origin"]) + opt(text32, row["file"])
        rows += opt(lambda span: b"".join(map(u32, span)), row["span"]) + opt(text32, row["package"])
        rows += u16(len(row["namespace"])) + b"".join(map(text32, row["namespace"]))
    paths = b"".join(u32(ident) + text32(path) for ident, path in files)
    return u16(1) + u32(len(functions)) + rows + u32(len(files)) + paths
