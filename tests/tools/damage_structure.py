"""Damages to the records, groups, rows and facts of a generated store before it is encoded: every checksum is right.

Each function answers one line that says what it did, or None where it found nothing to do.
"""

import copy
import functools

import storebytes as sb

DAMAGES = []
U64_MAX = 2**64 - 1
BAD_TEXTS = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"ok\xe2\x82", b"\xf4\x90\x80\x80", b"\x80")
BIG = (0, 1, 5, 2**32, 2**63, U64_MAX - 1, U64_MAX)


def structural(function):
    DAMAGES.append(function)
    return function


def pick(rng, items):
    return rng.choice(items) if items else None


def structural_of(items):
    """A damage to one of items(store), which the function is given; None where there is none."""
    def register(function):
        @structural
        @functools.wraps(function)
        def damage(rng, store):
            found = pick(rng, items(store))
            return function(rng, store, found) if found else None
        return damage
    return register


def records(store, tag):
    """[(stream, segment, record)] of all meta records with this tag."""
    return [(stream, segment, record) for stream in store.streams for segment in stream.meta
            for record in segment.records if record[0] == tag]


def meta_records(store):
    return [item for tag in range(4) for item in records(store, tag)]


def groups(store):
    return [(stream, segment, group) for stream in store.streams for segment in stream.data for group in segment.groups]


def groups_with_contexts(store):
    return [group for _stream, _segment, group in groups(store) if group.contexts]


def facts(store, *tags):
    """[(group, fact)] of all facts with one of these tags."""
    return [(group, fact) for _stream, _segment, group in groups(store) for fact in group.facts if fact[0] in tags]


# Meta records.


@structural_of(lambda store: records(store, sb.ROOT_STARTED) + records(store, sb.ROOT_ENDED))
def duplicate_root_record(rng, store, found):
    stream, _segment, record = found
    rng.choice(stream.meta).records.append(copy.deepcopy(record))
    return "%s tag %d" % (stream.name, record[0])


@structural_of(lambda store: records(store, sb.STREAM_STARTED) + records(store, sb.ENGINE_STARTED))
def duplicate_other_record(rng, store, found):
    stream, _segment, record = found
    segment = rng.choice(stream.meta)
    segment.records.insert(rng.randint(0, len(segment.records)), copy.deepcopy(record))
    return "%s tag %d into segment %d" % (stream.name, record[0], segment.sequence)


@structural_of(meta_records)
def remove_record(rng, store, found):
    stream, segment, record = found
    segment.records.remove(record)
    return "%s segment %d tag %d" % (stream.name, segment.sequence, record[0])


@structural_of(meta_records)
def move_record(rng, store, found):
    stream, segment, record = found
    segment.records.remove(record)
    target = rng.choice(stream.meta)
    target.records.insert(rng.randint(0, len(target.records)), record)
    return "%s tag %d from %d to %d" % (stream.name, record[0], segment.sequence, target.sequence)


@structural_of(lambda store: [stream for stream in store.streams if stream.meta])
def unknown_meta_tag(rng, store, stream):
    segment, tag = rng.choice(stream.meta), rng.choice((4, 9, 255))
    segment.records.append([tag, {"raw": rng.randbytes(rng.randint(0, 5))}])
    return "%s segment %d tag %d" % (stream.name, segment.sequence, tag)


@structural_of(meta_records)
def record_body_length(rng, store, found):
    stream, segment, record = found
    body = sb.META_ENCODERS[record[0]](record[1])
    record[1]["raw"] = body[:-1] if rng.random() < 0.5 else body + b"\0"
    return "%s segment %d tag %d" % (stream.name, segment.sequence, record[0])


@structural_of(lambda store: records(store, sb.STREAM_STARTED) + records(store, sb.ENGINE_STARTED))
def bad_meta_text(rng, store, found):
    name = rng.choice(("version", "arch") if found[2][0] == sb.STREAM_STARTED else ("revision", "source"))
    found[2][1][name] = rng.choice(BAD_TEXTS)
    return "%s %s" % (found[0].name, name)


@structural_of(lambda store: records(store, sb.ROOT_ENDED))
def bad_health_length(rng, store, found):
    found[2][1]["health"] = [0] * rng.choice((0, 25, 27))
    return "%s %d fields" % (found[0].name, len(found[2][1]["health"]))


@structural_of(lambda store: records(store, sb.ROOT_ENDED))
def root_ended_lies(rng, store, found):
    fields, highest = found[2][1], len(found[0].data)
    first, last, count = fields["first"], fields["last"], fields["count"]
    fields["first"], fields["last"], fields["count"] = rng.choice((
        (first, last, count + 1), (first, last, max(0, count - 1)), (0, last, count or 1), (0, 0, 0), (first, last, 0),
        (1, U64_MAX, 1), (1, 1_000_000 + highest, 1), (1, 1_000_001 + highest, 1), (U64_MAX, U64_MAX, 1),
        (highest + 1, 1, 2), (2, 1, 1), (1, highest, count), (1, highest + 3, count), (first, last, U64_MAX),
        (U64_MAX - 3, U64_MAX, 4), (1, 0, 5), (last, first, count),
    ))
    return "%s %d..%d count %d" % (found[0].name, fields["first"], fields["last"], fields["count"])


@structural_of(lambda store: records(store, sb.ROOT_ENDED))
def root_ended_status(rng, store, found):
    found[2][1]["status"] = rng.choice((5, 255))
    return found[0].name


@structural_of(lambda store: records(store, sb.ROOT_ENDED))
def root_ended_flags(rng, store, found):
    found[2][1]["flags"] = rng.choice((0, 1, 2, 255))
    return "%s %d" % (found[0].name, found[2][1]["flags"])


@structural_of(lambda store: records(store, sb.ROOT_ENDED))
def publish_failures_reported(rng, store, found):
    found[2][1]["health"][rng.choice((7, 9))] = rng.choice((1, U64_MAX))
    lines = [lose_dependency(rng, store) for _ in range(3)]
    return "%s and %s" % (found[0].name, lines)


@structural_of(lambda store: records(store, sb.STREAM_STARTED))
def odd_clocks(rng, store, found):
    found[2][1]["zero"] = rng.choice(BIG)
    begun = pick(rng, records(store, sb.ROOT_STARTED))
    if begun:
        begun[2][1]["started"] = rng.choice(BIG)
    return found[0].name


@structural_of(lambda store: [stream for stream in store.streams if stream.meta])
def odd_high_water(rng, store, stream):
    segment = rng.choice(stream.meta)
    segment.high_water = rng.choice(BIG)
    return "%s segment %d: %d" % (stream.name, segment.sequence, segment.high_water)


@structural_of(lambda store: records(store, sb.ROOT_STARTED) + records(store, sb.ROOT_ENDED))
def odd_root(rng, store, found):
    found[2][1]["root"] = rng.choice((rng.randbytes(32), bytes(32), b"\xff" * 32, found[0].euid + bytes(16)))
    return found[0].name


@structural_of(lambda store: records(store, sb.ENGINE_STARTED))
def other_engine_program(rng, store, found):
    found[2][1].update({"program": rng.randbytes(16), "table": rng.choice((None, rng.randbytes(32)))})
    return found[0].name


# Counts and groups.


@structural
def segment_count_lie(rng, store):
    segments = [segment for stream in store.streams for segment in stream.meta + stream.data]
    segment = pick(rng, segments)
    if not segment:
        return None
    segment.count_lie = rng.choice((-1, 1, 2**62))
    return "%s %d" % (type(segment).__name__, segment.sequence)


@structural_of(groups)
def section_count_lie(rng, store, found):
    found[2].count_lies = rng.choice(((1, 0), (0, 1), (-1, 0), (0, -1), (2**62, 0), (0, 2**62)))
    return "%s segment %d %s" % (found[0].name, found[1].sequence, found[2].count_lies)


@structural_of(groups)
def empty_section(rng, store, found):
    group, choice = found[2], rng.randint(0, 3)
    if choice != 0:
        group.contexts, group.overflow = [], []
    if choice != 1:
        group.facts = []
    if choice == 3:
        group.count_lies = rng.choice(((1, 0), (0, 1)))
    return "%s segment %d choice %d" % (found[0].name, found[1].sequence, choice)


@structural_of(groups)
def group_order(rng, store, found):
    segment = found[1]
    if rng.random() < 0.5 and len(segment.groups) > 1:
        segment.groups.reverse()
    else:
        segment.groups.insert(rng.randint(0, len(segment.groups)), copy.deepcopy(found[2]))
    return "%s segment %d" % (found[0].name, segment.sequence)


@structural_of(groups)
def group_elsewhere(rng, store, found):
    """The same group again in another segment: duplicate facts, doubled counters."""
    segment = rng.choice(found[0].data)
    segment.groups = sorted(segment.groups + [copy.deepcopy(found[2])], key=lambda group: group.root)
    return "%s from %d to %d" % (found[0].name, found[1].sequence, segment.sequence)


@structural_of(groups)
def group_of_stranger(rng, store, found):
    found[2].root = rng.choice((rng.randbytes(32), found[2].root[:24] + sb.u64(rng.randint(50, 60))))
    found[1].groups.sort(key=lambda group: group.root)
    return "%s segment %d" % (found[0].name, found[1].sequence)


@structural_of(groups)
def group_health(rng, store, found):
    found[2].health = rng.choice((1, 2, 3, 5, 7, 8, 128, 255))
    return "%s segment %d: %d" % (found[0].name, found[1].sequence, found[2].health)


@structural_of(lambda store: [stream for stream in store.streams if stream.meta or stream.data])
def empty_segment(rng, store, stream):
    segment = rng.choice(stream.meta + stream.data)
    if isinstance(segment, sb.MetaSegment):
        segment.records = []
    else:
        segment.groups = []
    return "%s %s %d" % (stream.name, type(segment).__name__, segment.sequence)


# Contexts.


@structural_of(groups_with_contexts)
def bad_context_row(rng, store, found):
    row = rng.choice(found.contexts)
    choice = rng.randint(0, 3)
    if choice == 0:
        row[0] = rng.randbytes(32)
    elif row[1] is None:
        return None
    elif choice == 1:
        row[1] = row[1][:-1] + sb.u8(rng.choice((0, 1, 2, 3)))
    elif choice == 2:
        row[1] = row[1][:-1] + b"\3"
        row[0] = sb.context_key(row[1])
    else:
        row[1] = row[1][:16] + b"\2" + row[1][17:]
        row[0] = sb.context_key(row[1])
    return "choice %d" % choice


@structural_of(lambda store: [group for _stream, _segment, group in groups(store) if group.contexts or group.overflow])
def saturating_counters(rng, store, found):
    for _ in range(3):
        rows = rng.choice([rows for rows in (found.contexts, found.overflow) if rows])
        row = rng.choice(rows)
        at = rng.randint(0, 9)
        limit = 2 ** (8 * sb.COUNTER_WIDTHS[at]) - 1
        row[2][at] = limit - rng.choice((0, 0, 1, row[2][at]))
        if rng.random() < 0.6:
            rows.append(copy.deepcopy(row))
    return "three counters"


@structural_of(groups_with_contexts)
def doubled_rows(rng, store, found):
    row = copy.deepcopy(rng.choice(found.contexts))
    if rng.random() < 0.5:
        row[1] = None
    found.contexts.insert(rng.randint(0, len(found.contexts)), row)
    found.overflow += [[rng.randint(0, 1), rng.randint(0, 2), [0] * 10] for _ in range(2)]
    return "a row and two buckets"


# Facts.


@structural
def duplicate_fact(rng, store):
    found = pick(rng, facts(store, rng.choice(range(10))))
    if not found:
        return None
    group, fact = found
    place = rng.choice([other for _stream, _segment, other in groups(store) if other.root == group.root])
    place.facts.insert(rng.randint(0, len(place.facts)), copy.deepcopy(fact))
    return "tag %d" % fact[0]


@structural
def lose_dependency(rng, store):
    """Something that other facts refer to is taken away."""
    choice = rng.choice(("span start", "capture", "thread start", "context", "tuple", "bucket"))
    if choice in ("span start", "capture", "thread start"):
        tag = {"span start": sb.SPAN_START, "capture": sb.ERROR, "thread start": sb.THREAD_START}[choice]
        found = pick(rng, facts(store, tag))
        if not found:
            return None
        found[0].facts.remove(found[1])
        return choice
    group = pick(rng, groups_with_contexts(store))
    if not group:
        return None
    if choice == "bucket":
        group.overflow = []
        return choice
    key = rng.choice(group.contexts)[0]
    for _stream, _segment, other in groups(store):
        if other.root == group.root and choice == "context":
            other.contexts = [row for row in other.contexts if row[0] != key]
        elif other.root == group.root:
            for row in other.contexts:
                row[1] = None if row[0] == key else row[1]
    return choice


@structural
def lose_many_dependencies(rng, store):
    return "%s" % [lose_dependency(rng, store) for _ in range(6)]


@structural_of(lambda store: facts(store, sb.SPAN_START, sb.ERROR))
def overflow_reference(rng, store, found):
    found[1][1]["context"] = (rng.randint(0, 1), rng.randint(0, 2))
    return "tag %d" % found[1][0]


@structural
def wrong_code(rng, store):
    """One coded field gets a value outside its range, or one that is just inside."""
    choices = (
        (sb.SPAN_START, "edge", (2, 3)), (sb.SPAN_START, "reasons", (0, 7, 8)), (sb.SPAN_START, "roles", (0, 7, 255)),
        (sb.SPAN_START, "context", ((2, 0), (0, 3))), (sb.SPAN_END, "status", (3, 4)), (sb.VALUE, "role", (2, 255)),
        (sb.VALUE, "value", (10, 11)), (sb.VALUE, "context", ((2, 0), (1, 3))), (sb.ERROR, "kind", (1, 2)),
        (sb.ERROR, "source", (3, 4)), (sb.ERROR, "value", (11, 255)), (sb.THREAD_START, "kind", (0, 1, 2)),
        (sb.THREAD_END, "status", (2, 3)),
    )
    tag, name, values = rng.choice(choices)
    found = pick(rng, facts(store, tag))
    if not found:
        return None
    found[1][1][name] = rng.choice(values)
    return "tag %d %s %s" % (tag, name, found[1][1][name])


@structural_of(lambda store: facts(store, sb.TERMINAL))
def terminal_links(rng, store, found):
    fields = found[1][1]
    if rng.random() < 0.5:
        fields.pop("capture", None)
        fields["lost"] = rng.choice((0, 6, 7))
    else:
        fields.pop("lost", None)
        fields["capture"] = rng.randbytes(40)
    return "another target"


@structural_of(groups)
def unknown_fact_tag(rng, store, found):
    tag = rng.choice((10, 11, 255))
    found[2].facts.insert(rng.randint(0, len(found[2].facts)), [tag, {"raw": rng.randbytes(rng.randint(0, 9))}])
    return "tag %d" % tag


@structural
def fact_body_length(rng, store):
    found = pick(rng, facts(store, rng.choice(range(10))))
    if not found:
        return None
    tag, fields = found[1]
    body = sb.FACT_ENCODERS[tag](fields)
    fields["raw"] = rng.choice((body[:-1], body + b"\0", b"", body[: len(body) // 2]))
    return "tag %d" % tag


@structural_of(lambda store: facts(store, sb.THREAD_START, sb.LOG, sb.SCOPE))
def bad_fact_text(rng, store, found):
    names = {sb.THREAD_START: ("name",), sb.LOG: ("level", "message", "event", "distinct"), sb.SCOPE: ("distinct",)}
    found[1][1][rng.choice(names[found[1][0]])] = rng.choice(BAD_TEXTS + (b"n" * 256, b"n" * 257, "\u20ac" * 86))
    return "tag %d" % found[1][0]


@structural_of(lambda store: facts(store, sb.ERROR, sb.TERMINAL))
def wrong_magic(rng, store, found):
    tag, fields = found[1]
    body = bytearray(sb.FACT_ENCODERS[tag](fields))
    body[rng.randint(0, 9)] ^= 1
    fields["raw"] = bytes(body)
    return "tag %d" % tag


@structural_of(lambda store: facts(store, sb.SPAN_START))
def runtime_id_ties(rng, store, found):
    group, start = found
    start[1]["annotation"] = rng.choice((None, (2, rng.randbytes(16)), (2**32 - 1, rng.randbytes(16))))
    for _ in range(3):
        note = rng.choice((0, 2, 2, 2**32 - 1)), rng.randbytes(16)
        fact = [sb.SPAN_RUNTIME_ID, {"call": start[1]["call"], "annotation": note}]
        group.facts.insert(rng.randint(0, len(group.facts)), fact)
    return "three more"


@structural_of(lambda store: facts(store, sb.THREAD_START))
def strange_threads(rng, store, found):
    group, start = found
    ref = start[1]["thread"][:24] + sb.u64(rng.choice((0, 77, U64_MAX)))
    stranger = {**start[1], "thread": ref, "kind": rng.randint(0, 1)}
    if rng.random() < 0.6:
        stranger["parent"] = rng.choice((rng.randbytes(32), start[1]["thread"]))
    group.facts.append([sb.THREAD_START, stranger])
    if rng.random() < 0.4:
        group.facts.append([sb.THREAD_END, {"thread": rng.randbytes(32), "ended": rng.choice(BIG), "status": 0}])
    return "one more"


@structural_of(groups)
def stray_facts(rng, store, found):
    """Facts about calls that nothing else mentions."""
    call = rng.randbytes(40)
    tag = rng.choice((sb.SPAN_END, sb.SPAN_RUNTIME_ID, sb.VALUE, sb.TERMINAL, sb.LOG, sb.SCOPE))
    fields = {
        sb.SPAN_END: {"call": call, "ended": rng.choice(BIG), "status": 0, "inclusive": rng.choice(BIG)},
        sb.SPAN_RUNTIME_ID: {"call": call, "annotation": (1, rng.randbytes(16))},
        sb.VALUE: {"call": call, "context": rng.randbytes(32), "role": rng.randint(0, 1),
                   "value": (rng.randbytes(32), 65535, U64_MAX)},
        sb.TERMINAL: {"call": call, "lost": 1},
        sb.LOG: {"call": call, "time": 0, "level": None, "site": None, "column": None, "message": "m", "event": None,
                 "distinct": None, "context": 0, "data": 0},
        sb.SCOPE: {"call": call, "distinct": None, "context": 10},
    }[tag]
    found[2].facts.insert(rng.randint(0, len(found[2].facts)), [tag, fields])
    return "tag %d" % tag
