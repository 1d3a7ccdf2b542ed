"""Spans, errors and threads of an execution, computed plainly from the reference reader's objects.

Used by check_views.py: `Calls(check, stream).run()` compares all answers about single calls of one execution.
"""

import datetime

from refstore import U64_MAX, call_text, runtime_text, thread_text

EDGES = ("root", "call", "spawn")
REASONS = ("context_memory_unavailable_after_drain", "invalid_parent_context")
CALL_STATUS = ("ok", "errored", "cancelled", "exited")
SELECTION = ("root", "llm", "manual")
ROLES = ("input", "output", "error")
KINDS = {0: "bytecode", 1: "sysop", 2: "native", 3: "native_unresolved"}
VALUE_LOSSES = ("value_memory_exceeded", "value_attempt_transport_exceeded",
                "error_capture_attempt_transport_exceeded", "value_too_large", "copy_failed", "encode_failed",
                "cas_write_failed", "cas_conflict", "disk_guard_exceeded", "evidence_segment_publish_failed",
                "store_unavailable")
CAPTURE_LOSSES = ("error_capture_attempt_transport_exceeded", "missing_structural_join", "start_uncommitted",
                  "evidence_queue_full", "evidence_segment_publish_failed", "disk_guard_exceeded",
                  "store_unavailable")


def number(value):
    """A count of an answer: numbers above 2^53 come as text."""
    return value if value is None or isinstance(value, bool) else int(value)


def capture_text(ident):
    return "%s~%d" % (thread_text(ident[:32]), int.from_bytes(ident[32:], "big"))


def ratio_agrees(part, whole, got):
    if whole == 0:
        return got is None
    return got is not None and abs(got - part / whole) <= 5.1e-6 * part / whole


class Calls:
    """The checks of one execution. `check` is check_views' own: its nodes and its server."""

    def __init__(self, check, stream):
        self.check, self.execution, self.stream = check, check.execution, stream
        self.functions, self.files = stream.function_table(self.execution.engine)
        self.base = "/api/v1/executions/" + self.execution.ident
        self.running = self.execution.status == "Running"
        self.folds = self.execution.error is None
        self.spans = self.execution.spans if self.folds else {}
        self.errors = self.execution.errors if self.folds else {}

    def equal(self, what, ours, theirs):
        self.check.equal(what, ours, theirs)

    def get(self, path, **query):
        return self.check.server.get(self.base + path, **query)

    def code(self, path, **query):
        return self.check.server.code(self.base + path, **query)

    # Pieces of rows.

    def short(self, ref, between):
        if ref[:24] != self.execution.root[:24]:
            return None
        return "%d%s%d" % (int.from_bytes(ref[24:32], "big"), between, int.from_bytes(ref[32:], "big"))

    def clock(self, ns):
        """The wall clock as RFC 3339 with nanoseconds."""
        if ns is None or self.stream.header is None:
            return None
        seconds, rest = divmod(min(self.stream.header["zero_unix_ns"] + ns, U64_MAX), 10**9)
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        return "%s.%09dZ" % (moment.strftime("%Y-%m-%dT%H:%M:%S"), rest)

    def life(self, start, end):
        if start is None:
            return "start_missing"
        if end is not None:
            return "ended"
        if self.execution.ended is not None:
            return "end_missing"
        return "open" if self.running else "unfinished"

    def site(self, prefix, site):
        """site: (file, start, end, line) or None"""
        file, start, end, line = site or (None, 0, 0, 0)
        has_bytes = start != 0 or end != 0
        return {prefix + "_file": self.files.get(file), prefix + "_line": line or None,
                prefix + "_start": start if has_bytes else None, prefix + "_end": end if has_bytes else None}

    def function(self, prefix, ident):
        row = self.functions.get(ident) if ident is not None else None
        return {prefix + "function_id": ident, prefix + "fqn": row and row["fqn"],
                prefix + "definition_key": (row["key"] or None) if row else None}

    @staticmethod
    def value(prefix, state):
        """state: a word, or the fact about a value."""
        if isinstance(state, str):
            return {prefix + "_state": state, prefix + "_cid": None}
        if "lost" in state:
            return {prefix + "_state": "lost:" + VALUE_LOSSES[state["lost"]], prefix + "_cid": None}
        return {prefix + "_state": "available", prefix + "_cid": "bamlv_1_" + state["cid"]}

    @staticmethod
    def context(path_key, reason_key, ref):
        if isinstance(ref, tuple):
            return {path_key: None, reason_key: REASONS[ref[0]]}
        return {path_key: ref.hex() if ref is not None else None, reason_key: None}

    def node(self, ref):
        """The node of a context, or None."""
        if isinstance(ref, tuple):
            return self.check.nodes.get("overflow:%s:%s" % (REASONS[ref[0]], EDGES[ref[1]]))
        return self.check.nodes.get(ref.hex()) if ref is not None else None

    def counts_whole(self):
        """Whether all that was counted so far is there."""
        missing = ("MissingDataSegment", "CorruptDataSegment", "GroupCountMismatch")
        return not self.execution.cct_health & 1 and not any(i[0] in missing for i in self.execution.issues)

    # Spans.

    def without_fact(self, span, role):
        if span.start is None:
            return "unknown"
        if not span.start["roles"] >> ROLES.index(role) & 1:
            return "not_captured"
        return "pending" if self.running else "unknown"

    def input(self, span):
        return span.values[0] if 0 in span.values else self.without_fact(span, "input")

    def output(self, span):
        if 1 in span.values:
            return span.values[1]
        if span.end is not None and span.end["status"] != 0:
            return "not_applicable"
        return self.without_fact(span, "output")

    def error(self, span):
        link = span.terminal
        if link is not None and "lost" in link:
            return "lost:" + CAPTURE_LOSSES[link["lost"]]
        if link is not None:
            if link["capture"] in self.errors:
                return self.errors[link["capture"]]["value"]
            return "pending" if self.running else "unresolved"
        if span.end is not None and span.end["status"] != 1:
            return "not_applicable"
        return self.without_fact(span, "error")

    def parent_state(self, span):
        if span.start is None:
            return "unknown"
        if span.start["parent"] is None:
            return "none"
        return "retained" if span.start["parent"] in self.spans else "not_retained"

    def times(self, span):
        start, end = span.start, span.end
        started, ended = start and start["started_ns"], end and end["ended_ns"]
        return {"started_ns": started, "ended_ns": ended, "duration_ns": end and end["inclusive_ns"],
                "started_at": self.clock(started), "ended_at": self.clock(ended),
                "status": CALL_STATUS[end["status"]] if end else None, "state": self.life(start, end)}

    def span_row(self, call, span):
        start = span.start
        parent = start["parent"] if start else None
        function = self.functions.get(start["function_id"]) if start else None
        ident = span.runtime_id()
        link = span.terminal or {}
        row = {
            "call_id": call_text(call), "short_id": self.short(call, "."),
            "parent_call_id": call_text(parent) if parent is not None else None,
            "parent_state": self.parent_state(span), "thread_id": thread_text(call[:32]),
            "kind": KINDS.get(function["kind"]) if function else None,
            "edge_kind": EDGES[start["edge"]] if start else None,
            "selection_reasons": [w for at, w in enumerate(SELECTION) if start["reasons"] >> at & 1] if start else None,
            "roles": [w for at, w in enumerate(ROLES) if start["roles"] >> at & 1] if start else None,
            "runtime_id": runtime_text(ident) if ident is not None else None,
            "error_id": capture_text(link["capture"]) if "capture" in link else None,
            "error_lost_reason": CAPTURE_LOSSES[link["lost"]] if "lost" in link else None,
        }
        row.update(self.context("call_path_id", "call_path_overflow_reason", start["context"] if start else None))
        row.update(self.function("", start["function_id"] if start else None))
        row.update(self.site("call_site", start["site"] if start else None))
        row.update(self.times(span))
        row.update(self.value("args", self.input(span)))
        row.update(self.value("output", self.output(span)))
        row.update(self.value("error", self.error(span)))
        return row

    @staticmethod
    def span_order(item):
        call, span = item
        return (span.start is None, span.start["started_ns"] if span.start else 0, call)

    def by_duration(self, item):
        _call, span = item
        return (span.end is None, -span.end["inclusive_ns"] if span.end else 0) + self.span_order(item)

    def pages(self, path, limit, **query):
        """All items of a list; the last page's other fields."""
        items, cursor = [], {}
        while True:
            answer = self.get(path, limit=limit, **query, **cursor)
            assert len(answer["items"]) <= limit, "a page is too long"
            self.equal("truncated", answer["next"] is not None, answer["evidence"]["truncated"])
            self.equal("execution_id", self.execution.ident, answer["execution_id"])
            items.extend(answer["items"])
            if answer["next"] is None:
                return items, answer
            assert len(answer["items"]) == limit, "a page is too short"
            cursor = {"cursor": answer["next"]}

    def plain(self, row):
        """A row of an answer with all its counts as numbers."""
        return {key: number(value) if key.endswith("_ns") or key.endswith("_id") and isinstance(value, int) else value
                for key, value in row.items()}

    def span_list(self, keep, belongs, order=None, limit=7, calls=None, **query):
        """Compares one list. keep and belongs: whether (call, span) is in it, and in its function and context."""
        wanted = [item for item in self.spans.items() if keep(*item)]
        wanted.sort(key=order or self.span_order)
        query = {key.rstrip("_"): value for key, value in query.items()}
        items, answer = self.pages("/spans", limit, **query)
        what = "spans %s" % query
        self.equal(what, [call_text(call) for call, _ in wanted], [item["call_id"] for item in items])
        population = answer["population"]
        if self.execution.unknown:
            self.equal(what, None, population)
            return items
        every = "function" not in query and "context" not in query
        retained = [s for call, s in self.spans.items() if (every if s.start is None else belongs(call, s))]
        counted = {
            "retained": len(retained), "matched": len(wanted),
            "without_start": sum(1 for span in self.spans.values() if span.start is None),
            "without_end": sum(1 for span in retained if span.end is None),
        }
        if calls is not None:
            counted["calls"], counted["selected"] = calls
        self.equal(what, counted, {key: number(population[key]) for key in counted})
        return items

    def counted(self, nodes):
        nodes = list(nodes)
        return sum(n.calls for n in nodes), sum(n.selected for n in nodes)

    def check_spans(self):
        everything = lambda _call, _span: True
        calls = self.counted(self.check.nodes.values())
        items = self.span_list(everything, everything, calls=calls)
        for (call, span), item in zip(sorted(self.spans.items(), key=self.span_order), items):
            self.equal("span", self.span_row(call, span), self.plain(item))
        self.span_list(everything, everything, self.by_duration, limit=3, calls=calls, order_="-duration")
        self.span_list(everything, everything, limit=1000, calls=calls, order_="start")
        self.check_span_filters()
        for call, span in sorted(self.spans.items())[:12]:
            self.check_span(call, span)

    def check_span_filters(self):
        everything = lambda _call, _span: True
        started = sorted(s.start["started_ns"] for s in self.spans.values() if s.start)
        lengths = sorted(s.end["inclusive_ns"] for s in self.spans.values() if s.end)
        for at, word in enumerate(CALL_STATUS + ("unknown",)):
            self.span_list(lambda _c, s: (s.end["status"] if s.end else 4) == at, everything, status=word)
        for at, word in enumerate(SELECTION):
            self.span_list(lambda _c, s: bool(s.start and s.start["reasons"] >> at & 1), everything, reason=word)
        for thread in sorted({call[:32] for call in self.spans})[:4]:
            for name in (thread_text(thread), int.from_bytes(thread[24:], "big")):
                self.span_list(lambda c, _s: c[:32] == thread, everything, thread=name)
        for at in range(0, len(started), 5):
            begin, end = started[at], started[min(at + 3, len(started) - 1)] + 1
            self.span_list(lambda _c, s: self.ran(s, begin, end), everything, from_=begin, to=end)
            self.span_list(lambda _c, s: self.ran(s, 0, begin), everything, to=begin)
        for length in lengths[::4]:
            self.span_list(lambda _c, s: bool(s.end and s.end["inclusive_ns"] >= length), everything,
                           min_duration=length)
        for context in sorted({s.start["context"] for s in self.spans.values() if s.start}, key=repr)[:6]:
            self.filter_context(context)
        for ident in sorted({s.start["function_id"] for s in self.spans.values() if s.start})[:6]:
            self.filter_function(ident)
        self.check_numbers()

    @staticmethod
    def ran(span, begin, end):
        if span.start is None or span.start["started_ns"] >= end:
            return False
        return span.start["started_ns"] >= begin or span.end is None or span.end["ended_ns"] > begin

    def filter_context(self, context):
        same = lambda _c, s: bool(s.start and s.start["context"] == context)
        node = self.node(context)
        if node is None:
            self.equal("context", 404, self.code("/spans", context=context.hex() if isinstance(context, bytes) else
                       "overflow:%s:%s" % (REASONS[context[0]], EDGES[context[1]])))
            return
        self.span_list(same, same, calls=(node.calls, node.selected), context=node.name)

    def check_numbers(self):
        """A function's number is one that something knows: the table, a context or a call."""
        called = {s.start["function_id"] for s in self.spans.values() if s.start}
        contexts = {n.function[1] for n in self.check.nodes.values() if n.function is not None}
        known = called | contexts | set(self.functions)
        for ident in sorted(known)[:6]:
            self.equal("a function's number", 200, self.code("/spans", function="#%d" % ident))
        unknown = next(i for i in range(2**32 - 1, 0, -1) if i not in known)
        self.equal("no function's number", 404 if self.folds else 200, self.code("/spans", function="#%d" % unknown))

    def filter_function(self, ident):
        row = self.functions.get(ident)
        of = lambda idents: (lambda _c, s: bool(s.start and s.start["function_id"] in idents))
        told = all(n.function is not None for n in self.check.nodes.values())
        nodes = lambda idents: self.counted(n for n in self.check.nodes.values()
                                            if n.function[1] in idents) if told else (None, None)
        self.span_list(of({ident}), of({ident}), calls=nodes({ident}), function="#%d" % ident)
        if row is None or "\0" in (row["key"] or "") + row["fqn"]:  # no parameter can hold that
            return
        if row["key"]:
            same = {i for i, r in self.functions.items() if r["key"] == row["key"]}
            self.span_list(of(same), of(same), calls=nodes(same), function=row["key"])
        if any(r["key"] == row["fqn"] for r in self.functions.values()) or row["fqn"].startswith("#"):
            return
        named = {i: r for i, r in self.functions.items() if r["fqn"] == row["fqn"]}
        if len({r["key"] or "" for r in named.values()}) > 1:
            self.equal("ambiguous", 409, self.code("/spans", function=row["fqn"]))
        else:
            self.span_list(of(named), of(named), calls=nodes(named), function=row["fqn"])

    def check_span(self, call, span):
        answer = self.get("/spans/" + call_text(call))
        short = self.short(call, ".")
        if short:
            self.equal("a span by its short id", answer, self.get("/spans/" + short))
        got = answer["span"]
        wanted = self.span_row(call, span)
        self.equal("a span", wanted, self.plain({key: got[key] for key in wanted}))
        first = [span.start["annotation"]] if span.start and span.start["annotation"] else []
        ids = sorted(first + span.annotations, key=lambda annotation: annotation[0])
        self.equal("runtime ids", [runtime_text(ident) for _, ident in ids], answer["runtime_ids"])
        for role, state in (("args", self.input(span)), ("output", self.output(span)), ("error", self.error(span))):
            there = isinstance(state, dict) and "cid" in state
            self.equal(role, {k: state[k] for k in ("codec", "bytes")} if there else None, got[role + "_object"])
        self.equal("children", sum(1 for s in self.spans.values() if s.start and s.start["parent"] == call),
                   answer["children_retained"])
        chain, up = [], span
        while self.parent_state(up) == "retained":
            chain.append(up.start["parent"])
            up = self.spans[up.start["parent"]]
        self.equal("parents", [call_text(c) for c in reversed(chain)], [p["call_id"] for p in answer["parents"]])
        self.equal("parents are complete", self.parent_state(up) == "none", answer["parents_complete"])
        node = self.node(span.start["context"]) if span.start else None
        self.context_totals(node, answer["context"])
        if node is not None:
            self.equal("in the context", sum(1 for s in self.spans.values()
                                             if s.start and s.start["context"] == span.start["context"]),
                       answer["retained_in_context"])
        capture = self.errors.get(span.terminal["capture"]) if span.terminal and "capture" in span.terminal else None
        self.equal("the error", capture and call_text(capture["throw_call"]),
                   answer["span"]["error"] and answer["span"]["error"]["throw_call_id"])

    def context_totals(self, node, got):
        if node is None:
            self.equal("context", None, got)
            return
        below = sum(n.errors for n in node.subtree(EDGES + ("unknown",))) - node.errors
        wanted = {"id": node.name, "calls": node.calls, "selected": node.selected, "open": node.open,
                  "errors": node.errors, "cancelled": node.cancelled, "errors_below": below,
                  "inclusive_ns": node.inclusive, "self_ns": node.self_ns, "await_ns": node.await_ns}
        self.equal("context", wanted, {key: got[key] if key == "id" else number(got[key]) for key in wanted})
        if node.name.startswith("overflow:") or not self.counts_whole():
            self.equal("failure rate", None, got["failure_rate"])
        else:
            assert ratio_agrees(node.errors, node.calls, got["failure_rate"]), "failure rate"

    # Errors.

    def chain(self, ref):
        """The contexts of a stack, the throw first, and whether they reach a call without a caller."""
        found, key = [], ref
        while key is not None:
            context = self.execution.contexts.get(key) if not isinstance(key, tuple) else None
            if context is None:
                return found, False
            found.append(key)
            if context.tuple is None:
                return found, False
            key = context.tuple["parent"]
        return found, True

    @staticmethod
    def file_first(site):
        """An error's site as (file, start, end, line): it is stored in another order."""
        return site and (site[0], site[2], site[3], site[1])

    def label(self, ident):
        row = self.functions.get(ident)
        return row["fqn"] if row and row["fqn"] else "function#%d" % ident

    def frames(self, capture):
        """The stack from the root to the throw: (context key or None, function id or None, site)."""
        chain, complete = self.chain(capture["context"])
        site, frames = self.file_first(capture["site"]), []
        for at, key in enumerate(chain or [None]):
            shape = self.execution.contexts[key].tuple if key is not None else None
            function = capture["function_id"] if at == 0 else shape and shape["function_id"]
            frames.append((key, function, site))
            site = shape and shape["site"]
        return frames[::-1], complete

    def error_row(self, ident, capture):
        frames, complete = self.frames(capture)
        node = None if isinstance(capture["context"], tuple) else self.node(capture["context"])
        ended = sorted(call for call, s in self.spans.items() if s.terminal and s.terminal.get("capture") == ident)
        row = {
            "error_id": capture_text(ident), "short_id": self.short(ident, "~"),
            "kind": ("fresh", "rethrow")[capture["kind"]],
            "source": ("bytecode", "native_call", "engine_call", "future_resume")[capture["source"]],
            "throw_call_id": call_text(capture["throw_call"]),
            "throw_call_retained": capture["throw_call"] in self.spans,
            "throw_thread_id": thread_text(capture["throw_call"][:32]),
            "context_calls": node and node.calls, "context_errors": node and node.errors,
            "stack_complete": complete, "stack_frames": len(frames),
            "stack": [None if f is None else self.label(f) for _, f, _ in frames[-64:]],
            "stack_truncated": len(frames) > 64,
            "terminal_calls": len(ended), "terminal_call_ids": [call_text(call) for call in ended[:100]],
        }
        row.update(self.context("throw_call_path_id", "throw_call_path_overflow_reason", capture["context"]))
        row.update(self.function("throw_", capture["function_id"]))
        row.update(self.site("throw_site", self.file_first(capture["site"])))
        row.update(self.value("value", capture["value"]))
        return row

    def agrees(self, what, wanted, got):
        """A row of an answer has these fields, and of others only the failure rate."""
        rate = got.pop("failure_rate")
        whole = wanted["context_calls"]
        if whole is None or not self.counts_whole():
            self.equal("failure rate", None, rate)
        else:
            assert ratio_agrees(wanted["context_errors"], whole, rate), "failure rate"
        self.equal(what, wanted, {key: number(v) if isinstance(wanted.get(key), int) else v for key, v in got.items()})

    def check_errors(self):
        wanted = sorted(self.errors.items())
        items, answer = self.pages("/errors", 3)
        self.equal("errors", len(wanted), len(items))
        for (ident, capture), item in zip(wanted, items):
            self.agrees("error", self.error_row(ident, capture), item)
        links = [s.terminal for s in self.spans.values() if s.terminal]
        health = self.execution.ended["health"] if self.execution.ended else None
        population = {
            "captures": len(wanted), "fresh": sum(c["kind"] == 0 for _, c in wanted),
            "rethrow": sum(c["kind"] == 1 for _, c in wanted),
            "errored_calls": sum(n.errors for n in self.check.nodes.values()),
            "captures_lost": min(sum(health[15:20]), U64_MAX) if health else None,
            "links_lost": sum("lost" in link for link in links),
            "links_unresolved": sum("capture" in link and link["capture"] not in self.errors for link in links),
        } if not self.execution.unknown else None
        got = answer["population"]
        self.equal("population of errors", population, got and {key: number(v) for key, v in got.items()})
        for at in range(min(len(wanted), 6)):
            self.check_error(wanted, at)

    def check_error(self, wanted, at):
        ident, capture = wanted[at]
        answer = self.get("/errors/" + capture_text(ident))
        short = self.short(ident, "~")
        if short:
            self.equal("an error by its short id", answer, self.get("/errors/" + short))
        row = self.error_row(ident, capture)
        for key in ("stack", "stack_truncated", "terminal_calls", "terminal_call_ids"):
            row.pop(key)
        there = "cid" in capture["value"]
        row["value_object"] = {k: capture["value"][k] for k in ("codec", "bytes")} if there else None
        self.agrees("an error", row, answer["error"])
        frames = []
        for key, function, site in self.frames(capture)[0]:
            shape = self.execution.contexts[key].tuple if key is not None else None
            frame = {"call_path_id": key and key.hex(),
                     "edge_kind": EDGES[shape["edge"]] if shape else "unknown" if key is not None else None}
            frame.update(self.function("", function))
            frame.update(self.site("site", site))
            frames.append(frame)
        self.equal("stack", frames, answer["stack"])
        ended = sorted(call for call, s in self.spans.items() if s.terminal and s.terminal.get("capture") == ident)
        self.equal("ended calls", [call_text(call) for call in ended], [c["call_id"] for c in answer["terminal_calls"]])
        self.context_totals(self.node(capture["context"]), answer["context"])
        name = lambda k: capture_text(wanted[k][0]) if 0 <= k < len(wanted) else None
        self.equal("neighbours", (name(at - 1), name(at + 1)), (answer["previous"], answer["following"]))

    # Threads.

    def thread_row(self, ref, thread):
        start, end = (thread.start, thread.end) if thread else (None, None)
        calls = [(c, s) for c, s in self.spans.items() if c[:32] == ref]
        moments = [s.start["started_ns"] for _, s in calls if s.start] + [s.end["ended_ns"] for _, s in calls if s.end]
        parent, call = (start["parent"], start["spawn_call"]) if start else (None, None)
        spawner = self.spans.get(call) if call is not None else None
        row = {
            "thread_id": thread_text(ref), "kind": ("root", "spawn")[start["kind"]] if start else None,
            "short_id": str(int.from_bytes(ref[24:], "big")) if ref[:24] == self.execution.root[:24] else None,
            "name": (start["name"] or None) if start else None,
            "parent_thread_id": thread_text(parent) if parent is not None else None,
            "spawn_call_id": call_text(call) if call is not None else None,
            "started_ns": start and start["started_ns"], "ended_ns": end and end["ended_ns"],
            "started_at": self.clock(start and start["started_ns"]), "ended_at": self.clock(end and end["ended_ns"]),
            "end_status": ("completed", "cancelled", "errored")[end["status"]] if end else None,
            "state": self.life(start, end),
            "first_recorded_ns": min(moments, default=None), "last_recorded_ns": max(moments, default=None),
            "calls_retained": len(calls),
            "errors_captured": sum(1 for ident in self.errors if ident[:32] == ref),
            "issues": self.thread_issues(ref, thread),
        }
        row.update(self.function("spawn_", spawner.start["function_id"] if spawner and spawner.start else None))
        row.update(self.site("spawn_site", start and start["spawn_site"]))
        return row

    def thread_issues(self, ref, thread):
        if thread is None:
            return ["no_record"]
        words = {"MissingStart": "missing_start", "MissingParent": "missing_parent", "RootMismatch": "root_mismatch"}
        return sorted((words[name] for at, name in self.execution.thread_issues if at == ref),
                      key=list(words.values()).index)

    def check_threads(self):
        threads = dict(self.execution.threads) if self.folds else {}
        recorded = dict(threads)
        for ref in [call[:32] for call in self.spans] + [ident[:32] for ident in self.errors]:
            threads.setdefault(ref, None)
        start = lambda ref: threads[ref].start if threads[ref] else None
        begun = lambda ref: start(ref)["started_ns"] if start(ref) else 0
        order = sorted(threads, key=lambda ref: (start(ref) is None, begun(ref), ref))
        items, answer = self.pages("/threads", 2)
        self.equal("threads", [thread_text(ref) for ref in order], [item["thread_id"] for item in items])
        for ref, item in zip(order, items):
            wanted = self.thread_row(ref, recorded.get(ref))
            self.equal("thread", wanted, {k: number(v) if isinstance(wanted[k], int) else v for k, v in item.items()})
        counts = {"threads": len(threads), "with_start": sum(1 for ref in threads if start(ref)),
                  "with_end": sum(1 for t in threads.values() if t and t.end)}
        counts = None if self.execution.unknown else counts
        self.equal("population of threads", counts, answer["population"])

    def run(self):
        self.check_spans()
        self.check_errors()
        self.check_threads()
