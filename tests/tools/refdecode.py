"""Decoders for every file of a store, each rule in the order in which the store format states it.

Written from the description of the format alone, as a second opinion on the C codecs. A fault is a `StoreError` with
the name that the format gives it.
"""

import hashlib
from dataclasses import dataclass

from refsource import StoreError

HEALTH_FIELDS = (
    "corrupt_records", "active_thread_capacity_exceeded", "active_call_capacity_exceeded", "join_capacity_exceeded",
    "unmatched_call_facts", "unmatched_thread_facts", "clock_invalid", "cct_segment_publish_failed",
    "evidence_queue_full", "evidence_segment_publish_failed", "structural_transport_exceeded",
    "value_attempt_transport_exceeded", "applicable_error_unwinds", "error_captures_queued",
    "error_captures_committed", "error_capture_attempt_transport_exceeded", "error_capture_missing_structural_join",
    "error_capture_start_uncommitted", "error_capture_evidence_queue_full", "error_capture_evidence_publish_failed",
    "terminal_error_links_observed", "terminal_error_links_queued", "terminal_error_links_committed",
    "terminal_error_link_transport_exceeded", "terminal_error_link_start_uncommitted",
    "terminal_error_link_evidence_publish_failed",
)

# name, width in bytes, health bit that a saturation marks
COUNTERS = (
    ("invocations_started", 8, 1), ("spans_selected", 8, 1), ("completed_ok", 8, 1), ("completed_error", 8, 1),
    ("completed_cancelled", 8, 1), ("completed_exit", 8, 1), ("inclusive_ns", 16, 1),
    ("direct_call_child_inclusive_ns", 16, 1), ("await_ns", 16, 2), ("await_count", 8, 2),
)


class Bytes:
    """Reads big-endian fields and never past the end."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def raw(self, count):
        if count > self.left():
            raise StoreError("Truncated")
        self.at += count
        return self.data[self.at - count: self.at]

    def uint(self, width):
        return int.from_bytes(self.raw(width), "big")

    def u8(self):
        return self.uint(1)

    def u16(self):
        return self.uint(2)

    def u32(self):
        return self.uint(4)

    def u64(self):
        return self.uint(8)

    def code(self, limit, error="InvalidTag"):
        """One byte below `limit`."""
        value = self.u8()
        if value >= limit:
            raise StoreError(error)
        return value

    def opt(self, decode, error="InvalidTag"):
        return decode() if self.code(2, error) else None

    def text(self, width=4, error="InvalidUtf8"):
        return self.utf8(self.raw(self.uint(width)), error)

    @staticmethod
    def utf8(data, error):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise StoreError(error) from None

    def end(self):
        if self.left():
            raise StoreError("TrailingBytes")


def unseal(data):
    """The body in front of a matching trailing SHA-256."""
    if len(data) < 32:
        raise StoreError("Truncated")
    body, checksum = data[:-32], data[-32:]
    if hashlib.sha256(body).digest() != checksum:
        raise StoreError("InvalidChecksum")
    return Bytes(body)


def framed(data, magic, version):
    fields = unseal(data)
    if fields.raw(8) != magic:
        raise StoreError("InvalidMagic")
    if fields.u16() != version:
        raise StoreError("UnsupportedVersion")
    return fields


def call_site(fields):
    """[file, start, end, line]"""
    return [fields.u32() for _ in range(4)]


# Meta segments.


def decode_stream_started(body):
    return {"pid": body.u32(), "zero_unix_ns": body.u64(), "baml_version": body.text(), "os_arch": body.text()}


def decode_engine_started(body):
    return {
        "engine": body.u64(),
        "program_id": body.raw(16),
        "function_table": body.opt(lambda: body.raw(32), "InvalidKind"),
        "revision": body.opt(body.text, "InvalidKind"),
        "source": body.opt(body.text, "InvalidKind"),
    }


def decode_root_started(body):
    return {"root": body.raw(32), "started_ns": body.u64(), "runtime_id": body.raw(16)}


def decode_root_ended(body):
    record = {"root": body.raw(32), "ended_ns": body.u64(), "status": body.code(5, "MetaInvalidStatus")}
    for name, width in (("flags", 1), ("first", 8), ("last", 8), ("count", 8)):
        record[name] = body.uint(width)
    health = Bytes(body.raw(body.u32()))
    if health.left() != 8 * len(HEALTH_FIELDS):
        raise StoreError("MetaInvalidHealth")
    record["health"] = [health.u64() for _ in HEALTH_FIELDS]
    return record


META_RECORDS = (decode_stream_started, decode_engine_started, decode_root_started, decode_root_ended)


def decode_meta(data, euid, name_sequence):
    """(data high water, [(tag, record)]) of one meta segment."""
    fields = framed(data, b"BAMLMET1", 2)
    sequence = fields.u64()
    if fields.raw(16) != euid:
        raise StoreError("EuidMismatch")
    if sequence != name_sequence:
        raise StoreError("SequenceMismatch")
    high_water, count = fields.u64(), fields.u64()
    payload = Bytes(fields.raw(fields.u64()))
    fields.end()
    records = []
    for at in range(count):
        tag = payload.u8()
        body = Bytes(payload.raw(payload.u32()))
        if tag >= len(META_RECORDS):
            raise StoreError("MetaUnknownTag")
        record = META_RECORDS[tag](body)
        body.end()
        if tag == 0 and (at != 0 or sequence != 1):
            raise StoreError("MetaStreamStartedMisplaced")
        records.append((tag, record))
    payload.end()
    return high_water, records


# Data segments.


@dataclass
class Group:
    """One execution's part of a data segment; the sections are decoded when asked for."""

    root: bytes
    health: int
    cct_count: int
    cct: bytes
    evidence_count: int
    evidence: bytes


def decode_data(data, euid, name_sequence):
    """The groups of one data segment."""
    fields = framed(data, b"BAMLDAT1", 2)
    sequence = fields.u64()
    if fields.raw(16) != euid:
        raise StoreError("EuidMismatch")
    if sequence != name_sequence:
        raise StoreError("SequenceMismatch")
    count = fields.u64()
    payload = Bytes(fields.raw(fields.u64()))
    fields.end()
    groups = []
    for _ in range(count):
        root, health = payload.raw(32), payload.u8()
        if groups and root <= groups[-1].root:
            raise StoreError("DataDuplicateGroup" if root == groups[-1].root else "DataGroupOrder")
        if health > 7:
            raise StoreError("InvalidCct")
        cct_count, cct = payload.u64(), payload.raw(payload.u64())
        evidence_count, evidence = payload.u64(), payload.raw(payload.u64())
        if not cct and not evidence:
            raise StoreError("DataEmptyGroup")
        groups.append(Group(root, health, cct_count, cct, evidence_count, evidence))
    payload.end()
    return groups


def decode_counters(fields):
    return {name: fields.uint(width) for name, width, _bit in COUNTERS}


def decode_tuple(fields):
    """A context tuple, with the key that its bytes hash to."""
    start = fields.at
    context = {
        "program_id": fields.raw(16),
        "parent": fields.opt(lambda: fields.raw(32)),
        "function_id": fields.u32(),
        "site": fields.opt(lambda: call_site(fields)),
        "edge": fields.code(3),
    }
    key = hashlib.sha256(b"baml-cct-context-v1" + fields.data[start: fields.at]).digest()
    return key, context


def decode_cct(group):
    """([(key, tuple or None, counters)], [((reason, edge), counters)])"""
    if not group.cct and group.cct_count == 0:
        return [], []
    fields = Bytes(group.cct)
    count = fields.u64()
    if count > fields.left() // 137:
        raise StoreError("Truncated")
    contexts = []
    for _ in range(count):
        key = fields.raw(32)
        computed, context = fields.opt(lambda: decode_tuple(fields)) or (key, None)
        if computed != key:
            raise StoreError("InvalidContextKey")
        contexts.append((key, context, decode_counters(fields)))
    overflow_count = fields.u64()
    if overflow_count > fields.left() // 106:
        raise StoreError("Truncated")
    overflow = []
    for _ in range(overflow_count):
        bucket = (fields.code(2), fields.code(3))
        overflow.append((bucket, decode_counters(fields)))
    fields.end()
    if count + overflow_count != group.cct_count:
        raise StoreError("RecordCountMismatch")
    return contexts, overflow


# Evidence.


def decode_context_ref(body):
    """The 32 bytes of a key, or (reason, edge)."""
    if body.code(2) == 0:
        return body.raw(32)
    return body.code(2), body.code(3)


def decode_value_state(body):
    if body.code(2):
        return {"lost": body.code(11)}
    return {"cid": body.raw(32).hex(), "codec": body.u16(), "bytes": body.u64()}


def decode_mask(body):
    value = body.u8()
    if value > 7:
        raise StoreError("InvalidBits")
    return value


def decode_annotation(body):
    return body.u32(), body.raw(16)


def decode_span_start(body):
    return {
        "call": body.raw(40),
        "parent": body.opt(lambda: body.raw(40)),
        "thread": body.raw(32),
        "context": decode_context_ref(body),
        "function_id": body.u32(),
        "site": body.opt(lambda: call_site(body)),
        "edge": body.code(3),
        "started_ns": body.u64(),
        "reasons": decode_mask(body),
        "roles": decode_mask(body),
        "annotation": body.opt(lambda: decode_annotation(body)),
    }


def decode_span_end(body):
    return {"call": body.raw(40), "ended_ns": body.u64(), "status": body.code(4), "inclusive_ns": body.u64()}


def decode_span_runtime_id(body):
    return {"call": body.raw(40), "annotation": decode_annotation(body)}


def decode_value_occurrence(body):
    return {
        "call": body.raw(40),
        "context": decode_context_ref(body),
        "role": body.code(2),
        "value": decode_value_state(body),
    }


def nested(body, magic):
    if body.raw(8) != magic:
        raise StoreError("InvalidMagic")
    if body.u16() != 1:
        raise StoreError("UnsupportedVersion")


def decode_error_capture(body):
    nested(body, b"BAMLERR1")
    return {
        "id": body.raw(40),
        "throw_call": body.raw(40),
        "context": decode_context_ref(body),
        "function_id": body.u32(),
        "site": body.opt(lambda: [body.u32() for _ in range(4)]),
        "kind": body.code(2),
        "source": body.code(4),
        "value": decode_value_state(body),
    }


def decode_terminal(body):
    nested(body, b"BAMLTER1")
    call = body.raw(40)
    if body.code(2):
        return {"call": call, "lost": body.code(7)}
    return {"call": call, "capture": body.raw(40)}


def decode_thread_start(body):
    fact = {
        "thread": body.raw(32),
        "parent": body.opt(lambda: body.raw(32)),
        "spawn_call": body.opt(lambda: body.raw(40)),
        "spawn_site": body.opt(lambda: call_site(body)),
        "started_ns": body.u64(),
        "kind": body.code(2),
    }
    length = body.u32()
    if length > 256:
        raise StoreError("NameTooLong")
    fact["name"] = body.utf8(body.raw(length), "InvalidBits")
    return fact


def decode_thread_end(body):
    return {"thread": body.raw(32), "ended_ns": body.u64(), "status": body.code(3)}


def decode_estr(body):
    return body.opt(lambda: body.text(8))


def decode_log(body):
    return {
        "call": body.opt(lambda: body.raw(40)),
        "timestamp_ms": body.u64(),
        "level": decode_estr(body),
        "site": body.opt(lambda: call_site(body)),
        "column": body.opt(body.u32),
        "message": decode_estr(body),
        "event": decode_estr(body),
        "distinct_id": decode_estr(body),
        "context": decode_value_state(body),
        "data": decode_value_state(body),
    }


def decode_call_scope(body):
    return {"call": body.raw(40), "distinct_id": decode_estr(body), "context": decode_value_state(body)}


FACTS = (
    ("span_start", decode_span_start), ("span_end", decode_span_end), ("span_runtime_id", decode_span_runtime_id),
    ("value", decode_value_occurrence), ("error", decode_error_capture), ("terminal", decode_terminal),
    ("thread_start", decode_thread_start), ("thread_end", decode_thread_end), ("log", decode_log),
    ("scope", decode_call_scope),
)


def decode_evidence(group):
    """[(fact name, fact)] in stored order."""
    if not group.evidence and group.evidence_count == 0:
        return []
    fields = Bytes(group.evidence)
    count = fields.u64()
    if count > fields.left() // 5:
        raise StoreError("Truncated")
    facts = []
    for _ in range(count):
        name, decode = FACTS[fields.code(len(FACTS))]
        body = Bytes(fields.raw(fields.u32()))
        facts.append((name, decode(body)))
        body.end()
    fields.end()
    if count != group.evidence_count:
        raise StoreError("RecordCountMismatch")
    return facts


# CAS objects and function tables.


def read_object(source, cid):
    """(codec, body) of one CAS object that must be the one asked for."""
    text = cid.hex()
    place = ("cas", "sha256", text[:2], text + ".bamlvalue")
    if source.kind(*place) != "file":
        raise StoreError("NotFound")
    fields = framed(source.read(*place), b"BAMLVAL1", 1)
    codec, length, embedded = fields.u16(), fields.u64(), fields.raw(32)
    body = fields.raw(length)
    fields.end()
    if hashlib.sha256(b"baml-value-v1" + codec.to_bytes(2, "big") + body).digest() != embedded:
        raise StoreError("InvalidChecksum")
    if embedded != cid:
        raise StoreError("CasIdentityMismatch")
    return codec, body


def decode_function_table(data):
    """({function id: row}, {file id: path})"""
    fields = Bytes(data)
    if fields.u16() != 1:
        raise StoreError("UnsupportedVersion")
    functions, files, last = {}, {}, -1
    for _ in range(fields.u32()):
        ident = fields.u32()
        if ident <= last:
            raise StoreError("Unordered")
        last = ident
        row = {"fqn": fields.text(), "display": fields.text(), "key": fields.opt(fields.text), "kind": fields.u8()}
        row["kind_detail"] = fields.opt(fields.text)
        row["origin"] = fields.u8()
        row["file"] = fields.opt(fields.text)
        row["span"] = fields.opt(lambda: [fields.u32() for _ in range(3)])
        row["package"] = fields.opt(fields.text)
        row["namespace"] = [fields.text() for _ in range(fields.u16())]
        functions[ident] = row
    last = -1
    for _ in range(fields.u32()):
        ident = fields.u32()
        if ident <= last:
            raise StoreError("Unordered")
        last = ident
        files[ident] = fields.text()
    fields.end()
    return functions, files
