#!/usr/bin/env python3
"""Holds answers about several executions, and comparisons, against a recomputation from the reference reader; TAP.

Pairs and groups of executions of each store given, and of seeded random ones, are summed and compared here by plain,
slow means. Beside the numbers, laws are checked that need no model: a comparison with itself changes nothing, and one
the other way round changes every sign.

usage: check_compare.py VARVE FIRST_SEED SEEDS [STORE...]
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import genstore  # noqa: E402
import refstore  # noqa: E402
from serving import each_store  # noqa: E402
from check_views import EDGES, METRICS, OVERFLOW, REASONS, U128_MAX, Check, Server  # noqa: E402

NUMBERS = ("calls", "open", "errors", "cancelled", "self_ns", "inclusive_ns", "await_ns", "contexts")
KINDS, SOURCES = ("fresh", "rethrow"), ("bytecode", "native_call", "engine_call", "future_resume")


def close(a, b):
    """Whether two ratios are equal to six digits."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1e-300)


def ratio(part, whole):
    return part / whole if whole else None


class Scope:
    """Executions on two sides, by the answers of their own: what is the same in all answers about them."""

    def __init__(self, server, heads, bases=()):
        self.server, self.heads, self.bases = server, unique(heads), unique(bases)
        self.query = [("execution", check.execution.ident) for check in heads]
        self.query += [("base", check.execution.ident) for check in bases]
        self.verdicts = [worst(server, side) for side in (self.heads, self.bases)]

    def one_engine(self):
        return len({check.execution.root[:24] for check in self.heads + self.bases}) == 1

    def get(self, path, **query):
        status, answer = self.server.ask(path, self.query + list(query.items()))
        assert status == 200, (path, self.query, query, status, answer)
        self.evidence(answer)
        return answer

    def pages(self, path, limit, **query):
        """The first page's answer with the items of all."""
        answer = self.get(path, limit=limit, **query)
        page = answer
        while page["next"] is not None:
            page = self.get(path, limit=limit, cursor=page["next"], **query)
            answer["items"] += page["items"]
        return answer

    def evidence(self, answer):
        everything = unique(self.heads + self.bases)
        equal("executions", len(everything), answer["evidence"]["executions"])
        equal("verdict", worst(self.server, everything), answer["evidence"]["verdict"])
        if len(everything) == 1 and not self.bases:
            assert "scope" not in answer
            return
        for key, side in (("executions", self.heads), ("base", self.bases)):
            equal("scope", {c.execution.ident for c in side}, set(answer["scope"][key]))
            equal("scope", len(side), len(answer["scope"][key]))
        equal("aligned_by", "context" if self.one_engine() else "path_id", answer["scope"]["aligned_by"])
        if self.bases:
            got = [answer[key]["verdict"] for key in ("head_evidence", "base_evidence")]
            equal("verdicts", self.verdicts, got)

    def totals(self, answer):
        for key, side in (("totals", self.heads), ("base_totals", self.bases)):
            if not side:
                continue
            each = [self.server.get("/api/v1/executions/" + c.execution.ident)["totals"] for c in side]
            each = [totals for totals in each if totals is not None]
            wanted = {k: min(sum(int(t[k]) for t in each), U128_MAX) for k in each[0]} if each else None
            equal(key, wanted, {k: int(v) for k, v in answer[key].items()} if answer[key] else answer[key])

    def absent(self, side):
        """The number of what a side lacks."""
        return 0 if self.verdicts[side] == "complete" else None

    def compared(self, what, row, sums, metric, total, parent=None):
        """A row of a comparison. sums: {number: (head, base)}, None where the side lacks it."""
        sides = list(zip(*sums.values()))
        on = [side[0] is not None for side in sides]
        state = "both" if all(on) else ("new", "gone")[on[1]]
        if not all(on) and self.absent(on[0]) is None:
            state = None
        equal("state of " + what, state, row["state"])
        known = []
        for key, side, here in (("head", 0, on[0]), ("base", 1, on[1])):
            if not here and self.absent(side) is None:
                equal(what + " " + key, None, row[key])
                known.append(None)
                continue
            values = {k: v[side] or 0 for k, v in sums.items()}
            equal(what + " " + key, values, {k: int(row[key][k]) for k in sums})
            known.append(values)
        if None in known:
            equal("delta of " + what, [None] * 4, [row[k] for k in ("delta", "delta_of_base", "delta_of_total",
                                                                    "delta_of_parent")])
            return
        head, base = known
        equal("delta of " + what, {k: head[k] - base[k] for k in sums}, {k: int(v) for k, v in row["delta"].items()})
        if metric not in sums:
            equal("ratios of " + what, [None] * 3, [row["delta_of_" + k] for k in ("base", "total", "parent")])
            return
        change = head[metric] - base[metric]
        for key, whole in (("base", base[metric]), ("total", total), ("parent", parent)):
            wanted = ratio(change, whole)
            assert close(wanted, row["delta_of_" + key]), (what, key, wanted, row["delta_of_" + key])


def unique(checks):
    found = {}
    for check in checks:
        found.setdefault(check.execution.ident, check)
    return list(found.values())


def worst(server, checks):
    verdicts = [server.get("/api/v1/executions/" + c.execution.ident)["evidence"]["verdict"] for c in checks]
    return max(verdicts, key=("complete", "running", "partial", "damaged").index) if verdicts else None


def equal(what, wanted, got):
    assert wanted == got, "%s: expected %.600s, got %.600s" % (what, wanted, got)


def function_sums(checks):
    """{group: {number: sum}} of one side, recursion counted once in each execution."""
    found = {}
    for check in checks:
        groups = {}
        for node in check.nodes.values():
            if node.function is not None:
                groups.setdefault(check.group(node), []).append(node)
        for group, members in groups.items():
            sums = found.setdefault(group, dict.fromkeys(NUMBERS, 0))
            for number, part in (("calls", "calls"), ("open", "open"), ("errors", "errors"),
                                 ("cancelled", "cancelled"), ("self_ns", "self_ns"), ("await_ns", "await_ns")):
                sums[number] += sum(getattr(n, part) for n in members)
            sums["inclusive_ns"] += sum(n.inclusive for n in members if not check.below_itself(n, group))
            sums["contexts"] += len(members)
    for sums in found.values():
        for number in ("self_ns", "await_ns", "inclusive_ns"):
            sums[number] = min(sums[number], U128_MAX)
    return found


def group_of(item):
    if item["name"] is None:
        return (2, item["program"], item["function_id"])
    return (0, item["definition_key"]) if item["definition_key"] else (1, item["name"])


def check_functions(scope, sort):
    answer = scope.pages("/api/v1/functions", 3, sort=sort)
    scope.totals(answer)
    head, base = function_sums(scope.heads), function_sums(scope.bases)
    got = {group_of(item): item for item in answer["items"]}
    equal("functions", set(head) | set(base), set(got))
    equal("rows", (len(got), len(got)), (len(answer["items"]), answer["total_rows"]))
    metric = "self_ns" if sort == "name" else sort
    column = []
    for group, item in got.items():
        sides = [head.get(group), base.get(group)]
        if not scope.bases:
            equal("function", sides[0], {k: int(item[k]) for k in NUMBERS})
            column.append(sides[0][metric])
            continue
        sums = {k: tuple(side and side[k] for side in sides) for k in NUMBERS}
        total = int(answer["base_totals"][metric]) if metric != "contexts" and answer["base_totals"] else 0
        if metric == "contexts":
            total = sum(side["contexts"] for side in base.values())
        scope.compared("function %s" % (group,), item, sums, metric, total)
        column.append(abs((sums[metric][0] or 0) - (sums[metric][1] or 0)))
    if sort != "name":
        equal("order", sorted(column, reverse=True), column)
    for key, side in (("unattributed", scope.heads), ("base_unattributed", scope.bases)):
        if side and all(c.execution.unknown for c in side):
            equal(key, None, answer[key])
        elif side:
            calls = sum(n.calls for c in side for n in c.nodes.values() if n.function is None)
            equal(key, calls, sum(int(part["calls"]) for part in answer[key].values()))


def place(scope, check, name):
    """What the context of that name is matched by on the other side; apart, it is of its own execution."""
    node = check.nodes[name]
    if node.flags & OVERFLOW:
        return ("overflow", name)
    path = check.path(node)
    if path is None:
        return ("apart", name, check.execution.ident)
    return ("context", name) if scope.one_engine() else ("path", path)


def place_of(scope, item):
    """The same of a row; of contexts that are apart, whose execution it does not tell, without that."""
    if item["overflow_id"] is not None:
        return ("overflow", item["overflow_id"])
    if item["path_id"] is None:
        return ("apart", item["call_path_id"])
    return ("context", item["call_path_id"]) if scope.one_engine() else ("path", item["path_id"])


def context_name(context):
    return context.hex() if isinstance(context, bytes) else "overflow:%s:%s" % (REASONS[context[0]], EDGES[context[1]])


def matched(scope, rows, items, extra):
    """Pairs of {place: (head, base)} and items, where several contexts that are apart may look the same."""
    wanted, got = {}, {}
    for ident, sums in rows.items():
        known = ident[0][:2] if ident[0] else None
        wanted.setdefault((known,) + ident[1:], []).append(sums)
    for item in items:
        known = place_of(scope, item) if item["edge_kind"] else None
        got.setdefault((known,) + extra(item), []).append(item)
    equal("rows", {k: len(v) for k, v in wanted.items()}, {k: len(v) for k, v in got.items()})

    def rank(sides):
        return repr([side and sorted((k, v) for k, v in side.items() if v is not None) for side in sides])

    for ident, sums in wanted.items():
        here = got[ident]
        if len(sums) > 1:
            numbers = list(sums[0][0] or sums[0][1])
            sums = sorted(sums, key=rank)
            here = sorted(here, key=lambda item: rank([item[key] and {k: item[key][k] and int(item[key][k])
                                                                      for k in numbers} for key in ("head", "base")]))
        for pair in zip(sums, here):
            yield (ident,) + pair


SPAN_NUMBERS = ("duration_total_ns", "duration_min_ns", "duration_max_ns", "spans", "ok", "errored", "cancelled",
                "exited", "unknown")


def span_sums(scope, checks, reason):
    found = {}
    for check in checks:
        spans = check.execution.spans if check.execution.error is None else {}
        for span in spans.values():
            if span.start is None or (reason is not None and not span.start["reasons"] >> reason & 1):
                continue
            name = context_name(span.start["context"])
            if name not in check.nodes:
                continue
            sums = found.setdefault((place(scope, check, name),), dict.fromkeys(SPAN_NUMBERS, 0))
            sums["spans"] += 1
            sums[SPAN_NUMBERS[4 + (span.end["status"] if span.end else 4)]] += 1
            if span.end:
                sums.setdefault("times", []).append(span.end["inclusive_ns"])
    for sums in found.values():
        times = sums.pop("times", [])
        sums["duration_total_ns"] = sum(times) if times else None
        sums["duration_min_ns"], sums["duration_max_ns"] = (min(times), max(times)) if times else (None, None)
    return found


def both(head, base):
    return {key: (head.get(key), base.get(key)) for key in set(head) | set(base)}


def check_row(scope, what, item, sides, numbers, total, parent=None):
    """As Scope.compared, of numbers that may be unknown by themselves."""
    sums = {k: tuple(side and (side[k] if side[k] is not None else -1) for side in sides) for k in numbers}
    row = dict(item)
    times = ("duration_total_ns", "duration_min_ns", "duration_max_ns")
    empty = {k for at, k in enumerate(times)
             if any(side[k] is None if side else at > 0 for side in sides)} if times[0] in numbers else set()
    for key, side in (("head", sides[0]), ("base", sides[1])):
        if row[key] is not None:
            for number in empty:
                if side[number] is None if side else number != times[0]:
                    equal(what + " without " + number, None, row[key][number])
                    if row["delta"] is not None:
                        equal(what + " without a change", None, row["delta"][number])
    whole = [k for k in numbers if k not in empty]
    for key in ("head", "base", "delta"):
        row[key] = row[key] and {k: row[key][k] for k in whole}
    scope.compared(what, row, {k: sums[k] for k in whole}, numbers[0], total, parent)


def check_spans(scope, path, reason=None):
    query = {} if reason is None else {"reason": ("root", "llm", "manual")[reason]}
    answer = scope.pages(path, 2, **query)
    head, base = span_sums(scope, scope.heads, reason), span_sums(scope, scope.bases, reason)
    total = sum(side["duration_total_ns"] or 0 for side in base.values())
    changes = [abs(int((i["head"] or {}).get("duration_total_ns") or 0)
                   - int((i["base"] or {}).get("duration_total_ns") or 0)) for i in answer["items"]]
    equal("order", sorted(changes, reverse=True), changes)
    parents = {}
    for check in scope.heads + scope.bases:
        for name, node in check.nodes.items():
            if node.parent is not None:
                parents[place(scope, check, name)[:2]] = place(scope, check, node.parent)
    for ident, sides, item in matched(scope, both(head, base), answer["items"], lambda _item: ()):
        up = parents.get(ident[0])
        parent = base.get((up,), {}).get("duration_total_ns") if up else None
        if ident[0][0] == "apart":
            item = dict(item, delta_of_parent=None)
            parent = None
        check_row(scope, "spans of %s" % (ident,), item, sides, SPAN_NUMBERS, total, parent)
    for key, side in (("population", scope.heads), ("base_population", scope.bases)):
        if answer[key] is not None:
            spans = [s for c in side if c.execution.error is None for s in c.execution.spans.values()]
            equal("retained", (len(spans), sum(s.start is None for s in spans)),
                  (answer[key]["retained"], answer[key]["without_start"]))


def check_spans_of_function(scope, path):
    """The rows of the function out of all; a name is refused as it is where callers are asked for."""
    rows = scope.pages(path, 1000)["items"]
    whole = [("execution", c.execution.ident) for c in scope.heads] + [("base", c.execution.ident) for c in scope.bases]
    status, functions = scope.server.ask("/api/v1/functions", whole + [("limit", 1000)])
    equal("functions", 200, status)
    for item in functions["items"][:5]:
        own = [row for row in rows if row["fqn"] is not None and group_of(dict(row, name=row["fqn"])) == group_of(item)]
        number = "#%d" % item["function_id"]
        for name in {item["definition_key"], item["name"], number, number + "/" + item["program"]} - {None, ""}:
            if "\0" in name:
                continue  # no address can hold it
            status, got = scope.server.ask(path, scope.query + [("function", name), ("limit", 1000)])
            wanted, callers = scope.server.ask("/api/v1/callers", whole + [("function", name)])
            equal("status of spans of %s" % name, wanted, status)
            if status == 200 and item["name"] is not None:
                equal("spans of %s" % name, own[:1000], got["items"])
            elif status != 200:
                equal("why not %s" % name, *((x["type"], x["parameter"]) for x in (callers, got)))


def error_sums(scope, checks):
    found = {}
    for check in checks:
        x = check.execution
        for ident, error in (x.errors.items() if x.error is None else ()):
            name = context_name(error["context"])
            known = place(scope, check, name) if name in check.nodes else None
            key = (known, KINDS[error["kind"]], SOURCES[error["source"]], error["function_id"], name_of(check, error))
            sums = found.setdefault(key, {"captures": 0, "terminal_calls": 0})
            sums["captures"] += 1
            sums["terminal_calls"] += sum(1 for s in x.spans.values()
                                          if s.terminal and s.terminal.get("capture") == ident)
    return found


def name_of(check, error):
    entry = check.rows.get(error["function_id"])
    return entry and (entry["key"] or entry["fqn"])


def check_errors(scope, path):
    answer = scope.pages(path, 2)
    head, base = error_sums(scope, scope.heads), error_sums(scope, scope.bases)

    def merged(side):
        """One function may have several numbers in several builds."""
        found = {}
        for key, sums in side.items():
            short = key[:3] + ((key[4],) if key[4] else (key[3],))
            into = found.setdefault(short, dict.fromkeys(sums, 0))
            for number in sums:
                into[number] += sums[number]
        return found

    head, base = merged(head), merged(base)
    total = sum(side["captures"] for side in base.values())

    def rest(item):
        return (item["kind"], item["source"],
                item["throw_definition_key"] or item["throw_fqn"] or item["throw_function_id"])

    for ident, sides, item in matched(scope, both(head, base), answer["items"], rest):
        row = dict(item)
        for key in ("head", "base", "delta"):
            row[key] = item[key] and {k: item[key][k] for k in ("captures", "terminal_calls")}
        check_row(scope, "errors of %s" % (ident,), row, sides, ("captures", "terminal_calls"), total)
        for key, at in (("head", scope.heads), ("base", scope.bases)):
            check_failures(scope, ident, item, key, at)


def check_failures(scope, ident, item, key, checks):
    """The failure rate of the context on a side: of one that is apart its own execution's, which the row hides."""
    if ident[0] is None:
        equal("failure rate", None, item[key + "_failure_rate"])
        return
    if ident[0][0] == "apart" or item[key] is None or item[key]["context_calls"] is None:
        return
    nodes = [n for c in checks for n in c.nodes.values() if place(scope, c, n.name) == ident[0]]
    calls, errors = sum(n.calls for n in nodes), sum(n.errors for n in nodes)
    equal("context", (calls, errors), (item[key]["context_calls"], item[key]["context_errors"]))
    rate = item[key + "_failure_rate"]
    assert rate is None or close(errors / calls, rate), (ident, rate)


FLAME_NUMBERS = ("calls", "open", "errors", "cancelled", "inclusive_ns", "self_ns", "await_ns")


def node_numbers(node):
    return dict(zip(FLAME_NUMBERS, (node.calls, node.open, node.errors, node.cancelled, node.inclusive, node.self_ns,
                                    node.await_ns)))


def summed(scope, checks):
    """{place: numbers} of one side, {place: the place above}, {place: name of its function}, {place: line}."""
    sums, parents, names, lines = {}, {}, {}, {}
    for check in checks:
        for name, node in check.nodes.items():
            at = place(scope, check, name)
            into = sums.setdefault(at, dict.fromkeys(FLAME_NUMBERS, 0))
            for number, value in node_numbers(node).items():
                into[number] += value
            parents[at] = place(scope, check, node.parent) if node.parent is not None else None
            names[at] = check.group(node) if node.function else None
            lines.setdefault(at, set()).add(node.line)
    for into in sums.values():
        for number in ("inclusive_ns", "self_ns", "await_ns"):
            into[number] = min(into[number], U128_MAX)
    return sums, parents, names, lines


def rows_of(scope, answer):
    """Rows as dictionaries, with the place that each shows (of a sliver None)."""
    compares = bool(scope.bases)
    rows = []
    for row, key, path in zip(answer["nodes"], answer["contexts"], answer["path_ids"]):
        row = dict(zip(answer["columns"], row))
        if compares:
            for side in ("base", "head", "delta"):
                row[side] = row[side] and dict(zip(answer["numbers"], row[side]))
        row["edge_kind"] = row["edge"]
        row["overflow_id"] = key if key and key.startswith("overflow:") else None
        row["path_id"], row["call_path_id"] = path, key
        row["place"] = None if row["edge"] == "folded" else place_of(scope, row)
        rows.append(row)
    return rows


def check_flame(scope, metric):
    """Everything: each context that is not apart once, with the numbers of each side; sizes of the layout."""
    answer = scope.get("/api/v1/flame", metric=metric, ids=1, max_nodes=1000000)
    scope.totals(answer)
    rows = rows_of(scope, answer)
    head, base = summed(scope, scope.heads), summed(scope, scope.bases)
    parents, names = {**base[1], **head[1]}, {**base[2], **head[2]}
    pairs = {(at,): sides for at, sides in both(head[0], base[0]).items()}
    equal("rows", len(pairs), len(rows))
    # Where a value stands for both sides of an answer of one, nothing is null.
    own = metric if metric != "await_subtree_ns" else "await_ns"
    total = int(answer["base_denominators"]["of_total"]) if scope.bases else 0
    for ident, sides, row in matched(scope, pairs, rows, lambda _row: ()):
        at = ident[0]
        above = rows[row["parent"]]["place"] if row["parent"] >= 0 else None
        if at[0] != "apart":
            up = parents[at]
            equal("parent of %s" % (at,), up and up[:2], above)
            lines = head[3].get(at, set()) | base[3].get(at, set())
            equal("line of %s" % (at,), lines.pop() if len(lines) == 1 else None, row["line"])
            function = answer["functions"][row["function"]] if row["function"] >= 0 else None
            equal("function of %s" % (at,), names[at] is None, function is None)
            if function is not None and names[at][0] < 2:
                equal("function of %s" % (at,), names[at][1], group_of(function)[1])
        if not scope.bases:
            equal("row of %s" % (at,), sides[0], {k: int(row[k]) for k in FLAME_NUMBERS})
            continue
        sums = {k: tuple(side and side[k] for side in sides) for k in FLAME_NUMBERS}
        parent = rows[row["parent"]]["base"] if row["parent"] >= 0 else None
        scope.compared("flame row %s" % (at,), row, sums, own, total, parent and int(parent[own]))
    if scope.bases:
        for key, side in (("head_denominators", scope.heads), ("base_denominators", scope.bases)):
            whole = sizes(scope, side, metric)
            equal(key, {"of_total": whole, "of_filtered": whole, "of_root": whole},
                  {k: int(v) for k, v in answer[key].items()})
        check_cause(scope, answer)


def sizes(scope, checks, metric):
    """The size of the whole, laid out by the sums."""
    sums, parents, _names, _lines = summed(scope, checks)
    children, edges = {}, {}
    for check in checks:
        for name, node in check.nodes.items():
            edges[place(scope, check, name)] = node.edge
    for at, up in parents.items():
        children.setdefault(up, []).append(at)

    def size(at):
        below = children.get(at, [])
        called = [child for child in below if edges[child] == "call"]
        own = sums[at]
        if metric == "inclusive_ns":
            parts = own["self_ns"] + own["await_ns"] + sum(map(size, called))
            return min(max(own["inclusive_ns"], parts), U128_MAX)
        if metric == "await_subtree_ns":
            return min(own["await_ns"] + sum(map(size, called)), U128_MAX)
        return min(own[metric] + sum(map(size, below)), U128_MAX)

    return min(sum(map(size, children.get(None, []))), U128_MAX)


def check_folded(scope, metric, **query):
    """What folds keeps both sides' sums: rows and slivers come to the totals."""
    answer = scope.get("/api/v1/flame", metric=metric, ids=1, **query)
    for key, side in (("head", scope.heads), ("base", scope.bases)):
        for number in ("calls", "self_ns", "errors"):
            at = answer["numbers"].index(number)
            wanted = sum(node_numbers(n)[number] for c in side for n in c.nodes.values())
            column = answer["columns"].index(key)
            got = sum(int(row[column][at]) for row in answer["nodes"] if row[column] is not None)
            equal("%s of all rows, %s" % (number, key), min(wanted, U128_MAX), min(got, U128_MAX))
    nodes = sum(row[-1] for row in answer["nodes"])
    equal("nodes of all rows", len(both(summed(scope, scope.heads)[0], summed(scope, scope.bases)[0])), nodes)


def check_cause(scope, answer):
    """The walk along the callees whose subtrees hold nine tenths of the changed calls."""
    sums = [summed(scope, side) for side in (scope.heads, scope.bases)]
    calls = {at: tuple(side[0].get(at, {}).get("calls", 0) for side in sums)
             for at in set(sums[0][0]) | set(sums[1][0]) if at[0] in ("context", "path")}
    parents = {**sums[1][1], **sums[0][1]}
    below = {}
    for at in calls:
        below.setdefault(parents[at], []).append(at)

    def total(at):
        own = calls.get(at, (0, 0))
        parts = [total(child) for child in below.get(at, [])]
        return tuple(sum(p) for p in zip((own[0], own[1], abs(own[0] - own[1])), *parts))

    cause = answer["cause"]
    everything = total(None)
    if everything[2] == 0:
        equal("cause", None, cause)
        return
    at, whole = None, everything[2]
    while below.get(at):
        largest = max(total(child)[2] for child in below[at])
        if largest < whole - whole // 10:
            break
        nexts = [child for child in below[at] if total(child)[2] == largest]
        child = nexts[0] if len(nexts) == 1 else None
        if child is None:
            return  # which of equals is followed goes by their paths
        if at is not None and calls[at][0] != calls[at][1]:
            if 0 in calls[at]:
                break
            expected = calls[child][1] * calls[at][0] / calls[at][1]
            if 2 * abs(calls[child][0] - expected) < abs(calls[child][0] - calls[child][1]):
                break
        at, whole = child, largest
    equal("cause", at, place_of(scope, cause) if cause["edge_kind"] else None)
    wanted = total(at)
    equal("calls of the cause", (wanted[0], wanted[1], wanted[0] - wanted[1], wanted[2]),
          tuple(int(cause["subtree_calls"][k]) for k in ("head", "base", "delta")) + (int(cause["changed_calls"]),))
    equal("certain", scope.verdicts == ["complete"] * 2, cause["certain"])


def check_sandwich(scope, which):
    """Callers and callees: both sides of the comparison as the two answers of their own have them."""
    answer = scope.get("/api/v1/functions", limit=1000)
    for item in answer["items"][:3]:
        name = item["definition_key"] or item["name"] or "#%d" % item["function_id"]
        if "\0" in name:
            continue  # no address can hold it
        status, got = scope.server.ask("/api/v1/" + which, scope.query + [("function", name)])
        if status == 409:
            continue
        equal(which + " status", 200, status)
        alone = {}
        for key, side in (("head", scope.heads), ("base", scope.bases)):
            query = [("execution", c.execution.ident) for c in side] + [("function", name)]
            alone[key] = scope.server.ask("/api/v1/" + which, query)
        for key, (status, single) in alone.items():
            top = got["function_totals"][key]
            if status == 404:
                absent = scope.absent(0 if key == "head" else 1)
                wanted = None if absent is None else {absent}
                equal(which + " of none", wanted, top and {int(v) for v in top.values()})
                continue
            equal(which + " in the middle", single["function_totals"], top)
            equal(which + " by name", rows_by_name(single, None), rows_by_name(got, key))
            equal(which + " denominators", single["denominators"], got[key + "_denominators"])


def check_sides(scope, **query):
    """Each side of a comparison is the answer about its executions alone, whatever is drawn of them."""
    got = scope.get("/api/v1/flame", max_nodes=1000000, **query)
    for key, side in (("head", scope.heads), ("base", scope.bases)):
        pairs = [("execution", c.execution.ident) for c in side] + [("max_nodes", 1000000), *query.items()]
        status, single = scope.server.ask("/api/v1/flame", pairs)
        equal("status", 200, status)
        equal("%s of %s" % (key, query), rows_by_name(single, None), rows_by_name(got, key))
        equal("%s denominators of %s" % (key, query), single["denominators"], got[key + "_denominators"])


def rows_by_name(answer, side):
    """{names from the top: numbers} of rows that count something."""
    found, chains = {}, []
    for row in answer["nodes"]:
        row = dict(zip(answer["columns"], row))
        function = answer["functions"][row["function"]] if row["function"] >= 0 else None
        step = (function and (function["definition_key"] or function["name"] or function["function_id"]), row["edge"])
        chain = (chains[row["parent"]] if row["parent"] >= 0 else ()) + (step,)
        chains.append(chain)
        numbers = dict(zip(answer["numbers"], row[side])) if side and row[side] else row
        if side and not row[side]:
            continue
        counts = tuple(int(numbers[k]) for k in FLAME_NUMBERS)
        if any(counts):
            into = found.setdefault(chain, [0] * len(counts))
            found[chain] = [a + b for a, b in zip(into, counts)]
    return found


def negated(row):
    """A row of a comparison as the other way round has it."""
    states = {"new": "gone", "gone": "new"}
    return {"state": states.get(row["state"], row["state"]), "base": row["head"], "head": row["base"],
            "delta": row["delta"] and {k: -int(v) for k, v in row["delta"].items()}}


def check_laws(server, a, b):
    """Of the functions, as these have names to know them by in both answers."""
    for item in Scope(server, [a], [a]).pages("/api/v1/functions", 100)["items"]:
        equal("no change", ("both", {0}), (item["state"], {int(v) for v in item["delta"].values()}))
    there = {group_of(i): i for i in Scope(server, [a], [b]).pages("/api/v1/functions", 100)["items"]}
    back = {group_of(i): i for i in Scope(server, [b], [a]).pages("/api/v1/functions", 100)["items"]}
    equal("functions both ways", set(there), set(back))
    for group, item in there.items():
        turned = dict(negated(item), delta=item["delta"] and {k: -int(v) for k, v in item["delta"].items()})
        for key, value in turned.items():
            got = back[group][key]
            equal("the other way round", value, {k: int(v) for k, v in got.items()} if key == "delta" and got else got)


def check_refusals(server, check):
    ident = check.execution.ident
    for path, query, status in (
            ("/api/v1/functions", [("base", ident)], 400),
            ("/api/v1/functions", [("execution", ident), ("base", "latest~99999")], 404),
            ("/api/v1/functions", [("execution", ident), ("execution", "")], 400),
            ("/api/v1/functions", [("execution", ident), ("sort", "calls"), ("sort", "calls")], 400),
            ("/api/v1/executions/%s/spans" % ident, [("execution", ident)], 400),
            ("/api/v1/executions/%s/spans" % ident, [("base", ident), ("order", "start")], 400),
            ("/api/v1/executions/%s/errors" % ident, [("base", "latest~99999")], 404),
            ("/api/v1/executions/%s" % ident, [("base", ident)], 400)):
        equal((path, query), status, server.ask(path, query)[0])


def check_store(varve, path, _scratch, _seed):
    store = refstore.load_store(path)
    server = Server(varve, path)
    try:
        checks = [Check(server, stream, x) for stream in store.streams if stream.error is None
                  for x in stream.roots.values()]
        if not checks:
            return
        check_refusals(server, checks[0])
        for a, b in zip(checks[:6], (checks[1:] + checks[:1])[:6]):
            check_laws(server, a, b)
        scopes = [Scope(server, [c]) for c in checks[:2]]
        scopes += [Scope(server, checks), Scope(server, checks[::-1] + checks[:1])]
        scopes += [Scope(server, [a], [b]) for a in checks[:3] for b in checks[:3]]
        scopes += [Scope(server, checks[:2], checks[1:4]), Scope(server, checks[2:], checks)] if len(checks) > 2 else []
        for scope in scopes:
            if scope.bases and len(scope.heads) == 1:
                path = "/api/v1/executions/%s/" % scope.heads[0].execution.ident
                single = Scope(server, scope.heads, scope.bases)
                single.query = [pair for pair in single.query if pair[0] == "base"]
                check_spans(single, path + "spans")
                check_spans(single, path + "spans", reason=0)
                check_spans_of_function(single, path + "spans")
                check_errors(single, path + "errors")
            for metric in METRICS:
                check_flame(scope, metric)
            if scope.bases:
                for query in ({"max_nodes": 2}, {"width": 5}, {"depth": 1}, {"max_nodes": 7, "width": 9}):
                    for metric in METRICS[:5:2]:
                        check_folded(scope, metric, **query)
                for query in ({"order": "bottom_up", "metric": "calls"}, {"transform": "hide:e"},
                              {"transform": "focus:a", "order": "bottom_up"}, {"edges": "call", "metric": "self_ns"},
                              {"transform": "collapse:s", "metric": "errors"}, {"transform": "only_user"}):
                    check_sides(scope, **query)
                check_sandwich(scope, "callers")
                check_sandwich(scope, "callees")
        for at, scope in enumerate(scopes):
            check_functions(scope, NUMBERS[4 + at % 4])
            check_functions(scope, ("calls", "errors", "name")[at % 3])
    finally:
        server.stop()


class Build(genstore.Engine):
    """An engine whose program is a build of the one program: most functions are called the same in all of them."""

    def __init__(self, rng, ident):
        super().__init__(rng, ident)
        self.names = "the program"

    def rows(self, count):
        change = random.Random(self.program)
        rows = [row for row in super().rows(count) if change.random() < 0.9]
        for row in rows:
            if change.random() < 0.2:
                row["fqn"] += ".renamed"
        return rows


PLAIN = genstore.Engine


def build(seed, scratch):
    genstore.Engine = PLAIN if seed % 4 == 0 else Build
    genstore.build(seed, scratch, damages=None if seed % 3 == 0 else 0)


if __name__ == "__main__":
    sys.exit(each_store(sys.argv[1:], check_store, build))
