#!/usr/bin/env python3
"""Calling contexts, held against a recomputation from the reference reader; speaks TAP.

usage: check_context.py VARVE FIRST_SEED SEEDS [STORE...]
"""

import sys

import check_views
from check_calls import Calls, number, ratio_agrees
from check_views import INCOMPLETE, OPEN, ORPHAN, OVERFLOW, UNDEFINED, U128_MAX, Check, Server

import refstore
from refstore import call_text
from serving import each_store

WORDS = ((OPEN, "open"), (OVERFLOW, "overflow"), (ORPHAN, "parent_missing"), (UNDEFINED, "undefined"),
         (INCOMPLETE, "timing_incomplete"))


def plain(value):
    """All counts as numbers: text that is one has digits alone."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return number(value) if isinstance(value, str) and value.lstrip("-").isdigit() and len(value) < 40 else value


class Contexts:
    """The checks of one execution's contexts."""

    def __init__(self, server, stream, execution):
        self.check, self.execution, self.server = Check(server, stream, execution), execution, server
        self.calls = Calls(self.check, stream)
        self.nodes = self.check.nodes

    def equal(self, what, ours, theirs):
        self.check.equal(what, ours, theirs)

    def ask(self, name, **query):
        return self.server.get("/api/v1/contexts/" + name, execution=self.execution.ident, **query)

    def shape(self, name):
        context = self.execution.contexts[bytes.fromhex(name)] if ":" not in name else None
        return context.tuple if context else None

    def row(self, node):
        shape = self.shape(node.name)
        row = {"id": node.name, "edge_kind": node.edge, "calls": node.calls, "open": node.open, "errors": node.errors,
               "inclusive_ns": node.inclusive, "self_ns": node.self_ns, "await_ns": node.await_ns,
               "timing_complete": not node.flags & INCOMPLETE}
        row.update(self.calls.function("", node.function[1] if node.function else None))
        row.update(self.calls.site("call_site", shape["site"] if shape else None))
        return row

    def chain(self, node):
        chain = [node]
        while chain[0].parent is not None:
            chain.insert(0, self.nodes[chain[0].parent])
        return chain

    def counters(self, node, captures):
        below = node.subtree(("root", "call", "spawn", "unknown"))[1:]
        return {
            "calls": node.calls, "selected": node.selected, "completed_ok": node.ends[0],
            "completed_error": node.ends[1], "completed_cancelled": node.ends[2], "completed_exit": node.ends[3],
            "inclusive_ns": node.inclusive, "direct_child_ns": node.child, "await_ns": node.await_ns,
            "await_count": node.awaits, "self_ns": node.self_ns, "errors": node.errors, "open": node.open,
            "await_subtree_ns": min(sum(n.await_ns for n in node.subtree(("call",))), U128_MAX),
            "errors_below": sum(n.errors for n in below), "errors_captured": len(captures),
            "errors_captured_fresh": sum(c["kind"] == 0 for c in captures),
            "timing_complete": not node.flags & INCOMPLETE, "flags": [w for bit, w in WORDS if node.flags & bit],
        }

    def one(self, node):
        answer = self.ask(node.name, limit=1000)
        of = lambda ref: self.calls.node(ref) is node
        captures = [c for c in self.calls.errors.values() if of(c["context"])]
        got = plain(answer["context"])
        rate, function = got.pop("failure_rate"), got.pop("function")
        wanted = dict(self.counters(node, captures), id=node.name, path_id=self.check.path(node), edge_kind=node.edge)
        shape = self.shape(node.name)
        wanted.update(self.calls.site("call_site", shape["site"] if shape else None))
        self.equal("context", wanted, got)
        self.equal("function", node.function, (bytes.fromhex(function["program"]), function["function_id"])
                   if function else None)
        known = self.calls.counts_whole() and not node.flags & OVERFLOW
        assert ratio_agrees(node.errors, node.calls if known else 0, rate), "failure rate"
        chain = self.chain(node)
        self.equal("chain", [self.row(n) for n in chain], [plain(row) for row in answer["chain"]])
        self.equal("chain's beginning", not chain[0].flags & (ORPHAN | UNDEFINED | OVERFLOW), answer["chain_complete"])
        self.spans(node, answer, [(c, s) for c, s in self.calls.spans.items() if s.start and of(s.start["context"])])
        self.children(node, answer)

    def spans(self, node, answer, spans):
        lengths = sorted(s.end["inclusive_ns"] for _, s in spans if s.end)
        whole = self.calls.counts_whole()
        coverage = plain(answer["coverage"])
        for key, total in (("of_selected", node.selected), ("of_calls", node.calls)):
            assert ratio_agrees(len(spans), total if whole else 0, coverage.pop(key)), "coverage"
        self.equal("coverage", {"calls": node.calls, "selected": node.selected, "retained": len(spans),
                                "ended": len(lengths)}, coverage)
        rank = lambda percent: next(v for at, v in enumerate(lengths, 1) if at * 100 >= percent * len(lengths))
        sample = {"label": "sample of %d" % len(lengths), "sample": len(lengths), "of_calls": node.calls,
                  "min_ns": lengths[0] if lengths else None, "max_ns": lengths[-1] if lengths else None}
        sample.update(("p%d_ns" % p, rank(p) if lengths else None) for p in (50, 90, 99))
        self.equal("durations", sample, plain(answer["durations"]))
        begin = lambda item: (item[1].start["started_ns"], item[0])
        ended = [item for item in spans if item[1].end]
        examples = {
            "slowest": min(ended, key=lambda i: (-i[1].end["inclusive_ns"],) + begin(i), default=None),
            "first": min(spans, key=begin, default=None), "last": max(spans, key=begin, default=None),
            "failing": min((i for i in ended if i[1].end["status"] == 1), key=begin, default=None),
        }
        for word, item in examples.items():
            got = answer["exemplars"][word]
            if item is None:
                self.equal(word, None, got)
                continue
            wanted = {"call_id": call_text(item[0]), "short_id": self.calls.short(item[0], ".")}
            wanted.update(self.calls.function("", item[1].start["function_id"]))
            wanted.update(self.calls.times(item[1]))
            self.equal(word, wanted, self.calls.plain(got))

    def children(self, node, answer):
        wanted = [self.row(n) for n in sorted(node.children, key=lambda n: (-n.inclusive, n.name))]
        self.equal("children", wanted, [plain(row) for row in answer["children"]])
        self.equal("number of children", len(wanted), number(answer["children_total"]))
        found, cursor = [], {}
        while len(wanted) > 2:
            page = self.ask(node.name, limit=2, **cursor)
            found.extend(plain(row) for row in page["children"])
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        self.equal("children in pages", wanted if len(wanted) > 2 else [], found)

    def run(self):
        for node in sorted(self.nodes.values(), key=lambda n: n.name)[:40]:
            self.one(node)


def check_where(server, executions):
    """Each context asked for without an execution: found where it is, in all that have it."""
    holders = {}
    for execution in executions:
        for name in check_views.make_nodes(execution):
            holders.setdefault(name, []).append(execution.ident)
    for name in sorted(holders)[:60]:
        status, answer = server.ask("/api/v1/contexts/" + name, {})
        if len(holders[name]) == 1:
            assert (status, answer.get("execution_id")) == (200, holders[name][0]), (name, status)
            continue
        assert (status, answer["matches"]) == (409, holders[name][:10]), (name, status, answer)
    for name in ("00" * 32, "ff" * 32):
        assert name in holders or server.code("/api/v1/contexts/" + name) == 404, name
    for name in ("x", "0" * 63, "overflow:x:call", "overflow:invalid_parent_context:calls"):
        assert server.code("/api/v1/contexts/" + name) == 400, name


def check_store(varve, path, _scratch, _seed):
    store = refstore.load_store(path)
    server = Server(varve, path)
    executions = []
    try:
        for stream in store.streams:
            for execution in stream.roots.values() if stream.error is None else ():
                executions.append(execution)
                Contexts(server, stream, execution).run()
        executions.sort(key=lambda x: (x.started_unix_ns is not None, x.started_unix_ns or 0, x.root), reverse=True)
        check_where(server, executions)
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(each_store(sys.argv[1:], check_store))
