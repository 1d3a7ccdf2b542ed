#!/usr/bin/env python3
"""A second, independent reader of profile stores, for holding the C reader against.

`load_store` (of refstore.py) gives the folded objects, `dump` the document that `varve dump` prints, `generation` and
`paths` the snapshot token and the path ids.

usage: refdump.py [--generation | --paths | --pretty] STORE
"""

import hashlib
import json
import sys
import tarfile

from refdecode import COUNTERS, HEALTH_FIELDS, decode_data, decode_meta
from refsource import StoreError
from refstore import SUFFIXES, call_text, capture_pair, load_store, opt_text, runtime_text, thread_text

EDGES = ("Root", "Call", "Spawn")
OVERFLOW_REASONS = ("ContextMemoryUnavailableAfterDrain", "InvalidParentContext")
CALL_STATUS = ("Ok", "Errored", "Cancelled", "Exited")
THREAD_STATUS = ("Completed", "Cancelled", "Errored")


def context_ref_document(ref):
    return {"overflow": list(ref)} if isinstance(ref, tuple) else {"normal": ref.hex()}


def counters_document(counters):
    return {name: str(counters[name]) if width == 16 else counters[name] for name, width, _bit in COUNTERS}


def context_document(key, context):
    shape = context.tuple and {
        "program_id": context.tuple["program_id"].hex(),
        "parent": opt_text(bytes.hex, context.tuple["parent"]),
        "function_id": context.tuple["function_id"],
        "site": context.tuple["site"],
        "edge": EDGES[context.tuple["edge"]],
    }
    return {
        "key": key.hex(),
        "tuple": shape,
        "counters": counters_document(context.counters),
        "self_ns": str(context.self_ns()),
    }


def overflow_document(bucket, row):
    reason, edge = bucket
    return {"reason": OVERFLOW_REASONS[reason], "edge": EDGES[edge], "counters": counters_document(row.counters)}


def thread_document(ref, thread):
    start = thread.start and {
        "parent": opt_text(thread_text, thread.start["parent"]),
        "spawn_call": opt_text(call_text, thread.start["spawn_call"]),
        "spawn_site": thread.start["spawn_site"],
        "started_ns": thread.start["started_ns"],
        "kind": thread.start["kind"],
        "name": thread.start["name"],
    }
    end = thread.end and {"ended_ns": thread.end["ended_ns"], "status": THREAD_STATUS[thread.end["status"]]}
    return {"thread": thread_text(ref), "start": start, "end": end}


def span_document(call, span):
    start = span.start and {
        "parent": opt_text(call_text, span.start["parent"]),
        "thread": thread_text(span.start["thread"]),
        "context": context_ref_document(span.start["context"]),
        "function_id": span.start["function_id"],
        "site": span.start["site"],
        "edge": EDGES[span.start["edge"]],
        "started_ns": span.start["started_ns"],
        "reasons": span.start["reasons"],
        "roles": span.start["roles"],
    }
    end = span.end and {
        "ended_ns": span.end["ended_ns"],
        "status": CALL_STATUS[span.end["status"]],
        "inclusive_ns": span.end["inclusive_ns"],
    }
    terminal = None
    if span.terminal:
        lost = span.terminal.get("lost")
        terminal = {"capture": capture_pair(span.terminal["capture"])} if lost is None else {"lost": lost}
    return {
        "call": call_text(call),
        "start": start,
        "end": end,
        "runtime_id": opt_text(runtime_text, span.runtime_id()),
        "input": span.values.get(0),
        "output": span.values.get(1),
        "terminal": terminal,
    }


def error_document(ident, capture):
    return {
        "id": capture_pair(ident),
        "throw_call": call_text(capture["throw_call"]),
        "context": context_ref_document(capture["context"]),
        "function_id": capture["function_id"],
        "site": capture["site"],
        "kind": capture["kind"],
        "source": capture["source"],
        "value": capture["value"],
    }


def health_document(health):
    return {name: value for name, value in zip(HEALTH_FIELDS, health) if value}


def execution_document(execution):
    if execution.error:
        return {"execution_id": execution.ident, "error": execution.error}
    started, ended = execution.started, execution.ended
    return {
        "execution_id": execution.ident,
        "program_id": opt_text(bytes.hex, execution.program_id),
        "runtime_id": started and runtime_text(started["runtime_id"]),
        "started_ns": started and started["started_ns"],
        "started_unix_ns": execution.started_unix_ns,
        "ended_ns": ended and ended["ended_ns"],
        "status": execution.status,
        "index_state": execution.index_state,
        "data_range": [ended["first"], ended["last"], ended["count"]] if ended else [0, 0, 0],
        "health": ended and health_document(ended["health"]),
        "data_state": execution.data_state,
        "cct_health": execution.cct_health,
        "issues": execution.issues,
        "contexts": [context_document(*item) for item in sorted(execution.contexts.items())],
        "overflow": [overflow_document(*item) for item in sorted(execution.overflow.items())],
        "threads": [thread_document(*item) for item in sorted(execution.threads.items())],
        "thread_issues": [[thread_text(ref), name] for ref, name in execution.thread_issues],
        "spans": [span_document(*item) for item in sorted(execution.spans.items())],
        "errors": [error_document(*item) for item in sorted(execution.errors.items())],
    }


def engine_document(engine):
    return {
        "engine": engine["engine"],
        "program_id": engine["program_id"].hex(),
        "function_table": opt_text(bytes.hex, engine["function_table"]),
        "revision": engine["revision"],
        "source": engine["source"],
    }


def stream_document(stream):
    if stream.error:
        return {"euid": stream.euid.hex(), "error": stream.error}
    return {
        "euid": stream.euid.hex(),
        "alive": stream.alive,
        "high_water": {"meta": stream.meta_high_water, "data": stream.data_highest},
        "index_gaps": stream.gaps,
        "header": stream.header,
        "engines": [engine_document(engine) for engine in stream.engines],
        "executions": [execution_document(execution) for _root, execution in sorted(stream.roots.items())],
        "orphans": [thread_text(root) for root in stream.orphans()],
    }


def dump(store):
    """The document of `varve dump`."""
    return {"streams": [stream_document(stream) for stream in store.streams]}


# Snapshot token and path ids.


def fault_runs(good, highest):
    """[(first, last)] of the sequences from 1 to the highest that are not in `good`."""
    runs, expected = [], 1
    for sequence in sorted(good) + [highest + 1]:
        if sequence > expected:
            runs.append((expected, sequence - 1))
        expected = sequence + 1
    return runs


def plane_sequences(stream, plane):
    """(decodable sequences, highest file name) of one plane."""
    names = {seq: name for seq, name in stream.segment_names(plane, SUFFIXES[plane]).items() if seq > 0}
    decode = decode_meta if plane == "meta" else decode_data
    good = []
    for sequence, name in names.items():
        try:
            decode(stream.read_segment(plane, name), stream.euid, sequence)
            good.append(sequence)
        except StoreError:
            continue
    return good, max(names, default=0)


def generation(store):
    """The snapshot token over streams, liveness and the runs of faulty sequences. Sample planes are not read yet."""
    token = hashlib.sha256(b"varve-generation-v1")
    for stream in store.streams:
        token.update(stream.euid + bytes([stream.alive]))
        for plane in ("meta", "data"):
            good, highest = plane_sequences(stream, plane)
            runs = fault_runs(good, highest)
            contiguous = runs[0][0] - 1 if runs else highest
            numbers = [contiguous, highest, len(runs)] + [bound for run in runs for bound in run]
            token.update(b"".join(number.to_bytes(8, "big") for number in numbers))
    return token.hexdigest()


def path_key(rows, function_id):
    row = rows.get(function_id)
    if row is None:
        return 2, "#%d" % function_id
    return (0, row["key"]) if row["key"] else (1, row["fqn"])


def execution_paths(execution, rows):
    """{context key: path id or None}, parents before children."""
    paths = {}
    for wanted in execution.contexts:
        chain, key = [], wanted
        while key is not None and key not in paths:
            chain.append(key)
            context = execution.contexts.get(key)
            key = context.tuple["parent"] if context and context.tuple else None
        for key in reversed(chain):
            context = execution.contexts.get(key)
            paths[key] = path_id(context.tuple, paths, rows) if context and context.tuple else None
    return {key: paths[key] for key in execution.contexts}


def path_id(context, paths, rows):
    parent = bytes(16) if context["parent"] is None else paths[context["parent"]]
    if parent is None:
        return None
    kind, name = path_key(rows, context["function_id"])
    encoded = name.encode("utf-8")
    head = b"varve-path-v1" + parent + bytes([context["edge"], kind]) + len(encoded).to_bytes(4, "big")
    return hashlib.sha256(head + encoded).digest()[:16]


def paths(store):
    """{execution: {context: path id or None}} of every execution that folds."""
    document = {}
    for stream in store.streams:
        for execution in stream.roots.values() if stream.error is None else ():
            if execution.error is None:
                rows = stream.function_rows(execution.engine)
                found = execution_paths(execution, rows)
                document[execution.ident] = {key.hex(): opt_text(bytes.hex, path) for key, path in found.items()}
    return document


def main(arguments):
    options = [word for word in arguments if word.startswith("--")]
    places = [word for word in arguments if not word.startswith("--")]
    if len(places) != 1 or len(options) > 1 or set(options) - {"--generation", "--paths", "--pretty"}:
        print(__doc__.strip().splitlines()[-1], file=sys.stderr)
        return 2
    try:
        store = load_store(places[0])
    except (StoreError, OSError, tarfile.TarError) as fault:
        print("refdump: %s: %s" % (places[0], fault), file=sys.stderr)
        return 1
    if options == ["--generation"]:
        print(generation(store))
    elif options == ["--paths"]:
        print(json.dumps({"executions": paths(store)}, sort_keys=True))
    else:
        print(json.dumps(dump(store), sort_keys=True, indent=1 if options else None))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
