#!/usr/bin/env python3
"""Holds the answers of `varve serve` against a recomputation from the reference reader; speaks TAP.

For each store given, and for seeded random ones, every execution's summary, functions and flame graphs are computed
here from the stored bytes by plain, slow means, and compared with what the server says, with and without folding.

usage: check_views.py VARVE FIRST_SEED SEEDS [STORE...]
"""

import fcntl
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import refdump  # noqa: E402
import refstore  # noqa: E402
import serving  # noqa: E402
from refdecode import HEALTH_FIELDS  # noqa: E402
from refsource import StoreError  # noqa: E402
from check_calls import Calls  # noqa: E402
from check_logs import Logs  # noqa: E402
from check_trees import Trees  # noqa: E402

EDGES = ("root", "call", "spawn")
REASONS = ("context_memory_unavailable_after_drain", "invalid_parent_context")
LOSSES = tuple(range(12)) + tuple(range(15, 20)) + (23, 24, 25)
OPEN, OVERFLOW, ORPHAN, UNDEFINED, INCOMPLETE, SLIVER = 1, 2, 4, 8, 16, 32
VERDICTS = ("complete", "running", "partial", "damaged")
U128_MAX = 2**128 - 1  # where counters saturate
METRICS = ("inclusive_ns", "self_ns", "await_ns", "await_subtree_ns", "calls", "errors")


class Server(serving.Server):
    """One whose answers are documents."""

    def ask(self, path, query):
        status, _, body = self.request(path, query)
        return status, json.loads(body)

    def get(self, path, **query):
        status, document = self.ask(path, query)
        assert status == 200, (path, query, status, document)
        return document

    def code(self, path, **query):
        return self.ask(path, query)[0]


class Node:
    """A context or overflow bucket: what the answer must say of it."""

    def __init__(self, name, context, edge, line=None, parent=None, flags=0, function=None):
        counters = context.counters
        self.name, self.edge, self.line, self.parent, self.function = name, edge, line, parent, function
        self.children = []
        self.calls = counters["invocations_started"]
        self.selected = counters["spans_selected"]
        self.ends = [counters["completed_" + end] for end in ("ok", "error", "cancelled", "exit")]
        self.open = self.calls - sum(self.ends)
        self.errors, self.cancelled = self.ends[1], self.ends[2]
        self.inclusive = counters["inclusive_ns"]
        self.child = counters["direct_call_child_inclusive_ns"]
        self.await_ns, self.awaits = counters["await_ns"], counters["await_count"]
        self.self_ns = context.self_ns()
        self.called = None  # inclusive time of the calls below, as recorded
        self.exact = self.child + self.await_ns <= self.inclusive
        self.flags = flags

    def below(self, edges):
        return [child for child in self.children if child.edge in edges]

    def calls_below(self):
        return [child for child in self.children if child.edge == "call"]

    def unattributed(self):
        return self.child - self.called

    def subtree(self, edges):
        found = [self]
        for node in found:
            found.extend(node.below(edges))
        return found

    def row(self):
        return [self.calls, self.open, self.errors, self.cancelled, self.inclusive, self.self_ns, self.await_ns,
                self.unattributed(), self.flags, 1]

    def size(self, metric, edges):
        if metric == "inclusive_ns":
            below = sum(child.size(metric, edges) for child in self.below(edges) if child.edge == "call")
            return max(self.inclusive, self.self_ns + self.await_ns + below)
        if metric == "await_subtree_ns":
            return self.await_ns + sum(c.size(metric, edges) for c in self.below(edges) if c.edge == "call")
        own = {"self_ns": self.self_ns, "await_ns": self.await_ns, "calls": self.calls, "errors": self.errors}[metric]
        return own + sum(child.size(metric, edges) for child in self.below(edges))


def make_nodes(execution):
    """All nodes by name; an execution that does not fold has none."""
    nodes = {}
    if execution.error is not None:
        return nodes
    for key, context in execution.contexts.items():
        fields = context.tuple
        if fields is None:
            nodes[key.hex()] = Node(key.hex(), context, "unknown", flags=UNDEFINED)
            continue
        site = fields["site"]
        parent = fields["parent"]
        orphan = parent is not None and parent not in execution.contexts
        line = site["line"] if isinstance(site, dict) else site[3] if site else None
        nodes[key.hex()] = Node(key.hex(), context, EDGES[fields["edge"]], line or None,
                                parent.hex() if parent is not None and not orphan else None,
                                ORPHAN if orphan else 0, (fields["program_id"], fields["function_id"]))
    for (reason, edge), context in execution.overflow.items():
        name = "overflow:%s:%s" % (REASONS[reason], EDGES[edge])
        nodes[name] = Node(name, context, EDGES[edge], flags=OVERFLOW)
    for node in nodes.values():
        if node.parent is not None:
            nodes[node.parent].children.append(node)
        node.flags |= OPEN if node.open else 0
    for node in nodes.values():
        node.called = min(sum(child.inclusive for child in node.calls_below()), U128_MAX)
        if execution.cct_health or (not node.exact and node.open <= 0):
            node.flags |= INCOMPLETE
    return nodes


def verdict(execution, nodes):
    """The verdict by the rules of the API's description."""
    worst = {"Running": 1, "Abandoned": 2}.get(execution.status, 0)
    health = execution.ended["health"] if execution.ended else [0] * 26
    lost = any(health[field] for field in LOSSES)
    overflow = any(node.flags & OVERFLOW for node in nodes.values())
    if lost or overflow or (execution.error is None and execution.cct_health):
        worst = max(worst, 2)
    if any(node.flags & INCOMPLETE for node in nodes.values()) or execution.index_state == "RootStartedLost":
        worst = max(worst, 2)
    if execution.index_state == "IndexCorrupt" or execution.error is not None:
        return 3
    for issue in execution.issues:
        if issue[0] == "NoRootEnded":
            continue
        if issue[0] != "UnresolvedDependency":
            return 3
        worst = max(worst, 2 if not execution.ended or health[7] or health[9] else 3)
    for left, right, holds in equations(execution, nodes, lost).values():
        del left, right
        if holds is False:
            return 3
    return worst


def equations(execution, nodes, lost):
    """{name: (left, right, holds)}"""
    ended = execution.ended
    h = ended["health"] if ended else [0] * 26
    folds = execution.error is None
    links = sum(1 for span in execution.spans.values() if span.terminal) if folds else 0
    captures = len(execution.errors) if folds else 0
    every = nodes.values()
    overflow = any(node.flags & OVERFLOW for node in every)
    exact = bool(ended) and not lost and folds and execution.data_state == "Complete" and not execution.cct_health \
        and not overflow
    child = min(sum(n.child for n in every), U128_MAX)
    call = min(sum(n.inclusive for n in every if n.edge == "call"), U128_MAX)
    starts = sum(1 for span in execution.spans.values() if span.start) if folds else 0

    def once(count):
        """A count of the record that ends an execution: unknown before."""
        return count if ended else None

    sides = {
        "error_unwinds": (once(h[12]), once(h[13] + h[15] + h[16] + h[17] + h[18]), bool(ended) and h[0] == 0),
        "error_captures": (once(h[13]), once(h[14] + h[19]), bool(ended)),
        "error_links_observed": (once(h[20]), once(h[21] + h[23] + h[24]), bool(ended)),
        "error_links": (once(h[21]), once(h[22] + h[25]), bool(ended)),
        "error_captures_folded": (captures, once(h[14]), bool(ended) and folds),
        "error_links_folded": (links, once(h[22]), bool(ended) and folds),
        "groups": (None, ended["count"] if ended else None, bool(ended) and folds),
        "calls": (sum(n.calls for n in every), sum(sum(n.ends) for n in every), exact),
        "span_starts": (sum(n.selected for n in every), starts, exact),
        "direct_child_time": (child, call, exact),
        # None of these stores has a health plane: no term, and no claim.
        "invocations_folded": (sum(n.calls for n in every), None, False),
        "awaits_folded": (sum(n.awaits for n in every), None, False),
    }
    sides.update((name, (None, None, False)) for name in
                 ("invocations", "awaits", "spans_selected", "span_ends", "runtime_ids", "values", "errors",
                  "error_values", "terminal_links"))
    spans = list(execution.spans.values()) if folds else []
    sides["span_starts_folded"] = (sum(1 for s in spans if s.start), None, False)
    sides["span_ends_folded"] = (sum(1 for s in spans if s.end), None, False)
    sides["values_folded"] = (sum("cid" in v for s in spans for v in s.values.values()), None, False)
    found = {}
    for name, (left, right, known) in sides.items():
        if name == "groups":
            mismatch = [issue for issue in execution.issues if issue[0] == "GroupCountMismatch"]
            left = mismatch[0][2] if mismatch else right
        found[name] = (left, right, (left == right) if known else None)
    return found


class Check:
    """Compares one execution; the first difference is an AssertionError."""

    def __init__(self, server, stream, execution):
        self.server, self.execution, self.stream = server, execution, stream
        self.rows = stream.function_rows(execution.engine)
        self.nodes = make_nodes(execution)
        self.tops = [node for node in self.nodes.values() if node.parent is None]
        # The reference knows nothing of the health plane, and so not all that the summary says of such a store.
        self.has_terms = server.get("/api/v1/executions/" + execution.ident)["health_terms"] is not None
        self.paths = refdump.execution_paths(execution, self.rows) if execution.error is None else {}

    def equal(self, what, ours, theirs):
        assert ours == theirs, "%s: %s: expected %.300s, got %.300s" % (self.execution.ident, what, ours, theirs)

    def summary(self):
        answer = self.server.get("/api/v1/executions/" + self.execution.ident)
        row, evidence = answer["execution"], answer["evidence"]
        health = self.execution.ended["health"] if self.execution.ended else None
        lost = bool(health) and any(health[field] for field in LOSSES)
        self.equal("status", self.execution.status.lower(), row["status"])
        self.equal("verdict", VERDICTS[verdict(self.execution, self.nodes)], evidence["verdict"])
        self.equal("health", dict(zip(HEALTH_FIELDS, health)) if health else None,
                   {k: int(v) for k, v in answer["health"].items()} if answer["health"] else answer["health"])
        self.equal("losses", {HEALTH_FIELDS[i]: health[i] for i in LOSSES if health[i]} if health else {},
                   {k: int(v) for k, v in evidence["losses"].items()})
        if self.execution.unknown:
            self.equal("totals", None, answer["totals"])
            self.equal("calls", None, row["total_calls"])
            self.equal("spans", None, row["calls_retained"])
        elif self.execution.error is None:
            self.equal("spans", len(self.execution.spans), int(row["calls_retained"]))
        if self.execution.error is not None:
            return
        def side(value):
            return None if value is None else int(value)

        got = {q["name"]: (side(q["left"]), side(q["right"]), q["holds"]) for q in evidence["equations"]}
        wanted = equations(self.execution, self.nodes, lost)
        if self.execution.ended is None:
            wanted["groups"] = got["groups"]
        self.equal("equations", wanted, got)
        for q in evidence["equations"]:
            terms = list(q["terms"].values())
            total = None if None in terms else min(sum(map(int, terms)), U128_MAX)
            self.equal("terms of " + q["name"], side(q["right"]), total)
        if not self.execution.unknown:
            self.totals(answer["totals"])
        issues = len(self.execution.issues) + (self.execution.index_state in ("IndexCorrupt", "RootStartedLost"))
        self.equal("issues", issues, evidence["issues_total"])
        self.equal("timing_incomplete", sum(1 for n in self.nodes.values() if n.flags & INCOMPLETE),
                   evidence["timing_incomplete"])

    def totals(self, totals):
        nodes = self.nodes.values()
        wanted = {
            "calls": sum(n.calls for n in nodes), "errors": sum(n.errors for n in nodes),
            "cancelled": sum(n.cancelled for n in nodes), "open": sum(n.open for n in nodes),
            "inclusive_ns": sum(n.inclusive for n in nodes if n.edge == "root"),
            "spawned_inclusive_ns": sum(n.inclusive for n in nodes if n.edge == "spawn"),
            "self_ns": sum(n.self_ns for n in nodes), "await_ns": sum(n.await_ns for n in nodes),
        }
        self.equal("totals", {k: min(v, U128_MAX) for k, v in wanted.items()},
                   {k: int(v) for k, v in totals.items()})

    steps = ()  # transforms that made the nodes what they are

    def ask(self, path, **query):
        if self.steps:
            query["transform"] = self.steps
        return self.server.get(path, execution=self.execution.ident, **query)

    def flame(self, metric="inclusive_ns", edges=EDGES, root=None, **query):
        if edges != EDGES:
            query["edges"] = ",".join(edges)
        if root is not None:
            query["root"] = root
        answer = self.ask("/api/v1/flame", metric=metric, ids=1, **query)
        rows = [[row[0], row[1], row[2], row[3]] + [int(v) for v in row[4:]] for row in answer["nodes"]]
        names = answer["contexts"]
        self.equal("ids", (len(rows), len(rows)), (len(names), len(answer["path_ids"])))
        tops = [node for node in self.tops if root is None]
        if root is not None:
            tops = [n for n in self.nodes.values() if n.name == root or (n.function and self.path(n) == root)]
        kept = self.select(tops, metric, edges, query)
        self.rows_agree(rows, names, answer, kept)
        self.slivers_agree(rows, names, tops, kept, edges)
        folded = sum(row[13] for row in rows if row[12] & SLIVER)
        self.equal("folded", folded, answer["folded"]["nodes"])
        sizes = [answer["denominators"][key] for key in ("of_root",)]
        self.equal("of_root", [min(sum(n.size(metric, edges) for n in tops), U128_MAX)], [int(v) for v in sizes])
        if edges == EDGES and root is None:
            self.equal("calls over all nodes", sum(n.calls for n in self.nodes.values()), sum(r[4] for r in rows))
            self.equal("self over all nodes", sum(n.self_ns for n in self.nodes.values()), sum(r[9] for r in rows))
        return rows, names

    def path(self, node):
        path = self.paths.get(bytes.fromhex(node.name)) if node.function else None
        return path.hex() if path is not None else None

    def select(self, tops, metric, edges, query):
        """Names of the nodes that stay, and of those whose parent has a sliver."""
        whole = sum(n.size(metric, edges) for n in tops)
        width, depth = query.get("width"), query.get("depth", 2**32)
        kept, level = [], [(node, 0) for node in tops]
        for node, at in level:
            need = max(n.size(metric, edges) for n in node.subtree(edges))
            if at >= depth or (width and need * 2 * width < whole):
                continue
            kept.append((need, node))
            level.extend((child, at + 1) for child in node.below(edges))
        limit = query.get("max_nodes", 20000)
        if len(kept) > limit:  # which of equals stays is the server's choice: only sizes are compared
            least = sorted((need for need, _ in kept), reverse=True)[limit - 1]
            return {n.name for need, n in kept if need > least}, {n.name for need, n in kept if need == least}, limit
        return {n.name for _, n in kept}, set(), len(kept)

    def rows_agree(self, rows, names, answer, kept):
        sure, maybe, count = kept
        here = {name for name in names if name is not None}
        self.equal("nodes that stay", count, len(here))
        self.equal("largest nodes that stay", set(), sure - here)
        self.equal("nodes that fold", set(), here - sure - maybe)
        for at, row in enumerate(rows):
            assert -1 <= row[0] < at, "a parent comes after its child"
            if row[12] & SLIVER:
                self.equal("sliver", (-1, "folded", None, None), (row[1], row[2], row[3], names[at]))
                continue
            node = self.nodes[names[at]]
            self.equal("row of " + node.name, node.row(), row[4:])
            self.equal("edge and line", (node.edge, node.line), (row[2], row[3]))
            self.equal("path id of " + node.name, self.path(node), answer["path_ids"][at])
            if row[0] >= 0:
                self.equal("parent of " + node.name, node.parent, names[row[0]])
            function = answer["functions"][row[1]] if row[1] >= 0 else None
            self.equal("function", node.function,
                       (bytes.fromhex(function["program"]), function["function_id"]) if function else None)
            if function:
                entry = self.rows.get(function["function_id"])
                self.equal("name", entry["fqn"] if entry else None, function["name"])
        self.sums_hold(rows)

    def sums_hold(self, rows):
        """inclusive = self + await + Call children and slivers + unattributed, where nothing is open or unhealthy."""
        below = [0] * len(rows)
        hidden = [False] * len(rows)
        for row in rows:
            if row[0] >= 0 and row[2] in ("call", "folded"):
                below[row[0]] += row[8]
        for at, row in enumerate(rows):
            hidden[at] = bool(row[12] & (SLIVER | INCOMPLETE)) or row[5] != 0
            if not hidden[at]:
                if row[8] != row[9] + row[10] + below[at] + row[11]:
                    assert self.filtered, "%s: sums of row %d do not hold: %s, below %d" % (
                        self.execution.ident, at, row, below[at])

    filtered = False

    def slivers_agree(self, rows, names, tops, kept, edges):
        """Each sliver keeps the sums of what it replaces."""
        del kept
        here = {name for name in names if name is not None}
        wanted = {}
        level = [(node, None, True) for node in tops]
        for node, owner, direct in level:
            folded = node.name not in here
            if folded:
                sums = wanted.setdefault(owner, [0] * 10)
                for k, value in enumerate((node.calls, node.open, node.errors, node.cancelled, 0, node.self_ns,
                                           node.await_ns, node.child, node.called, 1)):
                    sums[k] += value
                if direct and (owner is None or node.edge == "call"):
                    sums[4] += node.inclusive
            level.extend((child, owner if folded else node.name, not folded) for child in node.below(edges))
        for owner, sums in wanted.items():
            sums[4:9] = [min(value, U128_MAX) for value in sums[4:9]]
            wanted[owner] = sums[:7] + [sums[7] - sums[8], sums[9]]
        got = {}
        for row in rows:
            if row[12] & SLIVER:
                owner = names[row[0]] if row[0] >= 0 else None
                assert owner not in got, "two slivers of one parent"
                got[owner] = row[4:12] + [row[13]]
        self.equal("slivers", wanted, got)

    def functions(self):
        groups = {}
        for node in self.nodes.values():
            if node.function is None:
                continue
            groups.setdefault(self.group(node), []).append(node)
        wanted = {}
        for group, members in groups.items():
            inclusive = min(sum(n.inclusive for n in members if not self.below_itself(n, group)), U128_MAX)
            own = [min(sum(getattr(n, part) for n in members), U128_MAX)
                   for part in ("calls", "open", "errors", "self_ns", "await_ns")]
            wanted[group] = own[:4] + [inclusive, own[4], len(members)]
        seen, last, cursor = {}, None, {}
        while True:
            answer = self.server.get("/api/v1/functions", execution=self.execution.ident, limit=3, sort="inclusive_ns",
                                     **cursor)
            for item in answer["items"]:
                key = (0, item["definition_key"]) if item["definition_key"] else (1, item["name"])
                if item["name"] is None:
                    key = (2, item["program"], item["function_id"])
                assert key not in seen, "a function twice"
                seen[key] = [int(item[k]) for k in ("calls", "open", "errors", "self_ns", "inclusive_ns", "await_ns",
                                                    "contexts")]
                assert last is None or last >= int(item["inclusive_ns"]), "not sorted"
                last = int(item["inclusive_ns"])
            if answer["next"] is None:
                break
            cursor = {"cursor": answer["next"]}
        self.equal("functions", wanted, seen)
        self.equal("total_rows", len(wanted), answer["total_rows"])
        self.equal("unattributed", answer["totals"] is None, answer["unattributed"] is None)
        other = sum(int(part["calls"]) for part in (answer["unattributed"] or {}).values())
        self.equal("calls of functions", sum(n.calls for n in self.nodes.values()),
                   sum(row[0] for row in seen.values()) + other)

    def group(self, node):
        program, number = node.function
        entry = self.rows.get(number)
        if entry is None:
            return (2, program.hex(), number)
        return (0, entry["key"]) if entry["key"] else (1, entry["fqn"])

    def below_itself(self, node, group):
        while node.edge == "call" and node.parent is not None:
            node = self.nodes[node.parent]
            if node.function is not None and self.group(node) == group:
                return True
        return False

    def run(self):
        if not self.has_terms:
            self.summary()
        Calls(self, self.stream).run()
        Logs(self, self.stream).run()
        self.functions()
        rows, names = self.flame()
        again, names_again = self.flame()
        self.equal("order", (rows, names), (again, names_again))
        for metric in METRICS:
            self.flame(metric)
            self.flame(metric, width=3)
            self.flame(metric, max_nodes=2)
        self.flame(depth=1)
        self.flame(depth=2, width=20)
        self.filtered = True
        for edges in (("call",), ("spawn",), ("root", "call"), ("call", "spawn")):
            self.flame(edges=edges)
            self.flame("calls", edges=edges, width=4)
        self.filtered = False
        for node in list(self.nodes.values())[:4]:
            if not node.flags & OVERFLOW:
                self.flame(root=node.name)
                if self.path(node):
                    self.flame("self_ns", root=self.path(node), width=5)
        Trees(self, self.execution.ident).run()


def generation(store):
    """None where the reference can't tell: a plane that is no directory."""
    try:
        return refdump.generation(store)
    except StoreError:
        return None


def check_list(server, store):
    found, cursor = [], {}
    while True:
        answer = server.get("/api/v1/executions", limit=2, **cursor)
        found.extend(answer["items"])
        wanted = generation(store)
        assert wanted is None or answer["snapshot"]["generation"] == wanted, "generation"
        if answer["next"] is None:
            break
        cursor = {"cursor": answer["next"]}
    wanted = [x for stream in store.streams if stream.error is None for x in stream.roots.values()]
    wanted.sort(key=lambda x: (x.started_unix_ns is not None, x.started_unix_ns or 0, x.root), reverse=True)
    assert [x.ident for x in wanted] == [item["execution_id"] for item in found], "list"
    for x, item in zip(wanted, found):
        unix = item["started_unix_ns"]
        assert (x.started_unix_ns if x.started_unix_ns is not None else None) == (None if unix is None else int(unix))


def hold_streams(root):
    """Takes the locks of all streams that have an index, as their writers would: what has no end runs then."""
    held = []
    for directory, _names, _files in os.walk(os.path.join(root, "streams")):
        meta = os.path.join(directory, "meta")
        lock = os.path.join(directory, "stream.lock")
        if os.path.isfile(lock) and os.path.isdir(meta) and os.listdir(meta):
            held.append(os.open(lock, os.O_RDWR | os.O_CLOEXEC))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
    return held


def check_store(varve, path):
    store = refstore.load_store(path)
    server = Server(varve, path)
    try:
        check_list(server, store)
        for stream in store.streams:
            for execution in stream.roots.values() if stream.error is None else ():
                Check(server, stream, execution).run()
    finally:
        server.stop()


def check_seeded(varve, path, _scratch, seed):
    """Some of those made here are held as a writer that lives holds them."""
    held = hold_streams(path) if seed is not None and seed % 3 == 0 else []
    try:
        check_store(varve, path)
    finally:
        for fd in held:
            os.close(fd)


if __name__ == "__main__":
    sys.exit(serving.each_store(sys.argv[1:], check_seeded))
