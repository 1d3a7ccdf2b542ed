"""What is made of flame graphs, recomputed by plain means: transforms, callers first, callers and callees of one.

Trees are dictionaries of nodes by name here, and each step looks up along every single chain of callers; nothing is
merged before it is summed.
"""

import copy
import random

OPEN, OVERFLOW, ORPHAN, UNDEFINED, INCOMPLETE, SLIVER, WAY = 1, 2, 4, 8, 16, 32, 64
EDGES = ("root", "call", "spawn")
U128_MAX = 2**128 - 1
U64_MAX = 2**64 - 1


def text_of(entry, text):
    """Does a function's row hold the text in a name, its file or its package?"""
    fields = [entry["fqn"], entry["display"], entry["file"], entry["package"]]
    return any(text.lower() in field.lower() for field in fields if field)


def ascend(nodes, node):
    """The node and all above it."""
    while node is not None:
        yield node
        node = nodes[node.parent] if node.parent is not None else None


def relink(nodes):
    for node in nodes.values():
        node.children = []
    for node in nodes.values():
        if node.parent is not None:
            nodes[node.parent].children.append(node)
    return nodes


def take_over(to, gone):
    to.self_ns = min(to.self_ns + gone.self_ns, U128_MAX)
    to.await_ns = min(to.await_ns + gone.await_ns, U128_MAX)
    to.child = min(to.child + gone.child, U128_MAX)
    to.called = min(to.called + gone.called, U128_MAX)
    to.flags |= gone.flags & INCOMPLETE


def hide(nodes, hit):
    """Every other node goes below the nearest that stays; time goes there if only calls lead there."""
    left = {name: copy.copy(node) for name, node in nodes.items() if not hit(node)}
    for name, node in nodes.items():
        above = list(ascend(nodes, node))[1:]
        edge, parent, flags = node.edge, None, 0
        for up in above:
            if up.name in left:
                parent = up.name
                break
            edge = up.edge if edge == "call" else edge
            flags |= up.flags & ORPHAN
        if name in left:
            left[name].edge, left[name].parent = edge, parent
            left[name].flags |= flags
        elif parent is not None and edge == "call":
            take_over(left[parent], node)
    return relink(left)


def collapse(nodes, hit):
    """A node belongs to the topmost match that only calls lead to."""
    owners = {}
    for name, node in nodes.items():
        owner, chain = None, list(ascend(nodes, node))
        for below, up in zip(chain, chain[1:]):
            if below.edge != "call":
                break
            owner = up.name if hit(up) else owner
        owners[name] = owner
    left = {name: copy.copy(node) for name, node in nodes.items() if owners[name] is None}
    for name, node in nodes.items():
        if owners[name] is not None:
            take_over(left[owners[name]], node)
        elif node.parent is not None:
            left[name].parent = owners[node.parent] or node.parent
    return relink(left)


def focus(nodes, hit):
    inside = {name for name, node in nodes.items() if any(hit(up) for up in ascend(nodes, node))}
    way = {up.name for name in inside for up in ascend(nodes, nodes[name])} - inside
    left = {name: copy.copy(node) for name, node in nodes.items() if name in inside or name in way}

    def width(name):
        if name in inside:
            return nodes[name].inclusive
        return min(sum(width(child.name) for child in nodes[name].children
                       if child.name in left and child.edge == "call"), U128_MAX)

    for name in way:
        node = left[name]
        node.calls = node.open = node.errors = node.cancelled = node.self_ns = node.await_ns = 0
        node.inclusive = node.child = node.called = width(name)
        node.flags = node.flags & ORPHAN | WAY
    return relink(left)


STEPS = {"hide": hide, "collapse": collapse, "focus": focus}


class Sums:
    """What contexts come to that share a row."""

    def __init__(self):
        self.calls = self.open = self.errors = self.cancelled = self.inclusive = self.self_ns = self.await_ns = 0
        self.child = self.called = self.flags = self.size = 0
        self.way = True

    def add(self, node, once, size):
        for field in ("calls", "open", "errors", "cancelled", "self_ns", "await_ns", "child", "called"):
            setattr(self, field, getattr(self, field) + getattr(node, field))
        self.inclusive += node.inclusive if once else 0
        self.size = min(self.size + size, U128_MAX)
        self.flags |= node.flags & (OPEN | INCOMPLETE)
        self.way = self.way and bool(node.flags & WAY)

    def merge(self, other):
        for field in ("calls", "open", "errors", "cancelled", "inclusive", "self_ns", "await_ns", "child", "called"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.flags |= other.flags

    def row(self):
        def wide(value):
            return min(value, U128_MAX)

        return [self.calls, self.open, self.errors, self.cancelled, wide(self.inclusive), wide(self.self_ns),
                wide(self.await_ns), wide(self.child) - wide(self.called)]


class Trees:
    """All that is asked of one execution, by way of its views.check_views.Check."""

    def __init__(self, check, seed):
        self.check = check
        self.random = random.Random(seed)
        self.saturated = any(v >= U64_MAX // 4 for node in check.nodes.values() for v in (node.calls, node.inclusive))

    def matcher(self, step):
        kind, _, text = step.partition(":")
        rows = self.check.rows

        def entry(node):
            return rows.get(node.function[1]) if node.function else None

        if kind == "only_user":
            return lambda node: entry(node) is not None and entry(node)["origin"] in (1, 2, 3, 4)
        return lambda node: entry(node) is not None and text_of(entry(node), text)

    def transformed(self, steps):
        """A check of the tree that these leave."""
        nodes = {name: copy.copy(node) for name, node in self.check.nodes.items()}
        for step in steps:
            nodes = STEPS[step.partition(":")[0].replace("only_user", "hide")](nodes, self.matcher(step))
        check = copy.copy(self.check)
        check.nodes = relink(nodes)
        check.tops = [node for node in nodes.values() if node.parent is None]
        check.steps = list(steps)
        return check

    def transforms(self):
        names = sorted({entry[k] for entry in self.check.rows.values() for k in ("fqn", "file", "display") if entry[k]})
        words = [part for name in names for part in (name, name[len(name) // 2:], name[:3].upper())] + ["no such"]
        words = [word for word in words if "\0" not in word]
        for _ in range(6):
            steps = []
            for _ in range(self.random.randint(1, 3)):
                kind = self.random.choice(("focus", "hide", "collapse", "only_user"))
                steps.append(kind if kind == "only_user" else kind + ":" + self.random.choice(words))
            check = self.transformed(steps)
            check.flame()
            check.flame(self.random.choice(("self_ns", "calls", "await_subtree_ns")), width=self.random.choice((2, 9)))
            check.flame("calls", max_nodes=2)
            self.filtered(check, steps)
            self.turned(check, "self_ns", {"transform": steps})
            self.callees(check, {"transform": steps})

    def filtered(self, check, steps):
        answer = check.ask("/api/v1/flame")
        before, after = self.check.nodes.values(), check.nodes.values()
        wanted = {"nodes": len(before) - len(after),
                  "calls": sum(n.calls for n in before) - sum(n.calls for n in after)}
        got = {k: int(v) for k, v in answer["evidence"]["filtered"].items()} or {"nodes": 0, "calls": 0, "self_ns": 0}
        if not self.saturated:
            wanted["self_ns"] = sum(n.self_ns for n in before) - sum(n.self_ns for n in after)
        check.equal("filtered by %s" % steps, wanted, {k: got[k] for k in wanted})
        whole = sum(n.size("inclusive_ns", EDGES) for n in self.check.tops)
        left = sum(n.size("inclusive_ns", EDGES) for n in check.tops)
        check.equal("denominators of %s" % steps, [min(v, U128_MAX) for v in (whole, left, left)],
                    [int(answer["denominators"][k]) for k in ("of_total", "of_filtered", "of_root")])

    @staticmethod
    def group(check, node):
        """What a node's row is told apart by."""
        if node.function is not None:
            return check.group(node)
        return ("overflow", node.name) if node.flags & OVERFLOW else ("undefined",)

    def chain(self, check, node, inside):
        """[(node, the edge by which it is called or spawned)], from a node up to where its part of the tree begins."""
        found = []
        for up in ascend(check.nodes, node):
            if up.name not in inside:
                break
            found.append(up)
        return found

    def is_once(self, chain, same):
        """No other of them above over calls alone? `same` tells of each of the chain."""
        for below, up in zip(chain, chain[1:]):
            if below.edge != "call":
                return True
            if same(up):
                return False
        return True

    def inverted(self, check, metric, inside, edges, function=None):
        rows = {}
        for name in inside:
            node = check.nodes[name]
            group = self.group(check, node)
            if function is not None and group != function:
                continue
            chain = self.chain(check, node, inside)
            once = node.function is None or self.is_once(
                chain, lambda up: up.function is not None and self.group(check, up) == group)
            own = {"self_ns": node.self_ns, "await_ns": node.await_ns, "calls": node.calls, "errors": node.errors}
            size = own[metric] if metric in own else node.size(metric, edges) if once else 0
            path = ()
            for below, up in zip([None] + chain, chain):
                path += ((self.group(check, up), below.edge if below else "root"),)
                rows.setdefault(path, Sums()).add(node, once, size)
                rows[path].flags |= up.flags & (ORPHAN | UNDEFINED | OVERFLOW)
        return rows

    def inside(self, check, edges, root):
        def reached(node):
            chain = list(ascend(check.nodes, node))
            if root is not None:
                places = [k for k, up in enumerate(chain) if root in (up.name, check.path(up))]
                if not places:
                    return False
                chain = chain[:places[0] + 1]
            return all(below.edge in edges for below in chain[:-1])
        return {name for name, node in check.nodes.items() if reached(node)}

    def paths_of(self, check, answer):
        """The rows' paths by the answer, a sliver's with None at its end."""
        paths = []
        for parent, at, edge, line, *rest in answer["nodes"]:
            flags = int(rest[8])
            if flags & SLIVER:
                step = None
            elif at >= 0:
                f = answer["functions"][at]
                group = (0, f["definition_key"]) if f["definition_key"] else (1, f["name"])
                step = ((2, f["program"], f["function_id"]) if f["name"] is None else group, edge)
            elif flags & OVERFLOW:
                step = (("overflow", answer["contexts"][len(paths)]), "root")
            else:
                step = (("undefined",), edge)
            paths.append((paths[parent] if parent >= 0 else ()) + (step,))
        assert len(set(paths)) == len(paths), "two rows of one path"
        return paths

    def rows_agree(self, check, what, answer, wanted, whole, query):
        """Every row and every sliver against all rows that there could be."""
        paths = self.paths_of(check, answer)
        got = {path: [int(v) for v in row[4:]] for path, row in zip(paths, answer["nodes"])}
        kept = {path for path in got if path[-1] is not None}
        for path in kept:
            assert path in wanted, "%s: a row that is not there: %s" % (what, path)
            sums = wanted[path]
            flags = sums.flags | (WAY if sums.way else 0)
            check.equal("%s: %s" % (what, path), sums.row() + [flags, 1], got[path])
        width, depth, limit = query.get("width"), query.get("depth", 2**32), query.get("max_nodes", 20000)
        stays = {p for p, s in wanted.items() if len(p) <= depth and not (width and s.size * 2 * width < whole)}
        sizes = sorted((wanted[p].size for p in stays), reverse=True)[:limit]
        check.equal(what + ": sizes that stay", sizes, sorted((wanted[p].size for p in kept), reverse=True))
        check.equal(what + ": rows that stay", set(), kept - stays)
        check.equal(what + ": truncated", len(stays) > limit, answer["truncated"])
        slivers = {}
        for path, sums in wanted.items():
            if path not in kept and (path[:-1] in kept or len(path) == 1):
                below = slivers.setdefault(path[:-1], [Sums(), 0])
                below[0].merge(sums)
                below[1] += 1
        slivers = {path + (None,): s.row() + [SLIVER | s.flags & (OPEN | INCOMPLETE), n]
                   for path, (s, n) in slivers.items()}
        check.equal(what + ": slivers", slivers, {path: row for path, row in got.items() if path[-1] is None})
        check.equal(what + ": folded", [sum(row[k] for row in slivers.values()) for k in (9, 0)],
                    [int(answer["folded"][k]) for k in ("nodes", "calls")])

    def turned(self, check, metric, query, edges=EDGES, root=None):
        asked = {k: v for k, v in query.items() if k != "transform"}
        if edges != EDGES:
            asked["edges"] = ",".join(edges)
        if root is not None:
            asked["root"] = root
        answer = check.ask("/api/v1/flame", order="bottom_up", metric=metric, ids=1, **asked)
        inside = self.inside(check, edges, root)
        wanted = self.inverted(check, metric, inside, edges)
        whole = int(answer["denominators"]["of_root"])
        self.rows_agree(check, "bottom up", answer, wanted, whole, query)
        top = sum(row[9] for row in (list(map(int, [0] * 4 + row[4:])) for row in answer["nodes"]
                                     if row[0] == -1)) if not self.saturated else None
        if top is not None:
            check.equal("self of all roots", sum(check.nodes[name].self_ns for name in inside), top)

    def functions(self, check):
        """Each function, by what it can be asked for."""
        found = {}
        for node in check.nodes.values():
            if node.function is not None:
                group = check.group(node)
                text = group[1] if group[0] < 2 else "#%d/%s" % (node.function[1], node.function[0].hex())
                found[group] = text
        names = {}
        for entry in self.check.rows.values():
            names.setdefault(entry["fqn"], set()).add(entry["key"] or entry["fqn"])
        return {g: t for g, t in found.items() if "\0" not in t and (g[0] != 1 or len(names.get(t, ())) < 2)}

    def callers(self, check, query):
        for group, text in list(self.functions(check).items())[:4]:
            for metric in ("inclusive_ns", "calls"):
                answer = check.ask("/api/v1/callers", function=text, metric=metric,
                                   **{k: v for k, v in query.items() if k != "transform"})
                answer["contexts"] = [None] * len(answer["nodes"])
                wanted = self.inverted(check, metric, set(check.nodes), EDGES, group)
                whole = sum(s.size for p, s in wanted.items() if len(p) == 1)
                self.rows_agree(check, "callers of " + text, answer, wanted, whole, query)
                self.middle(check, answer, group)

    def middle(self, check, answer, group):
        """The function asked for has its numbers of the table of functions."""
        members = [n for n in check.nodes.values() if n.function is not None and check.group(n) == group]
        wanted = {"calls": sum(n.calls for n in members), "errors": sum(n.errors for n in members),
                  "inclusive_ns": min(sum(n.inclusive for n in members if not check.below_itself(n, group)), U128_MAX),
                  "self_ns": min(sum(n.self_ns for n in members), U128_MAX)}
        check.equal("function in the middle", wanted, {k: int(answer["function_totals"][k]) for k in wanted})

    def callees(self, check, query):
        plain = {k: v for k, v in query.items() if k != "transform"}
        for group, text in list(self.functions(check).items())[:3]:
            paths, rows = {}, {}
            for name, node in check.nodes.items():
                path, start = (), None
                for up in ascend(check.nodes, node):
                    if up.function is not None and check.group(up) == group:
                        start = up
                        break
                    path = ((self.group(check, up), up.edge),) + path
                if start is not None:
                    paths[name] = ((group, "root"),) + path
            for name, path in paths.items():
                node = check.nodes[name]
                chain = list(ascend(check.nodes, node))
                once = self.is_once(chain, lambda up: paths.get(up.name) == path)
                rows.setdefault(path, Sums()).add(node, once, node.calls)
            answer = check.ask("/api/v1/callees", function=text, metric="calls", **plain)
            answer["contexts"] = [None] * len(answer["nodes"])
            got = {p: [int(v) for v in row[4:]] for p, row in zip(self.paths_of(check, answer), answer["nodes"])}
            if not plain:
                check.equal("callees of " + text,
                            {p: s.row() + [s.flags | (WAY if s.way else 0), 1] for p, s in rows.items()}, got)
                check.equal("calls below " + text, sum(s.calls for s in rows.values()),
                            int(answer["denominators"]["of_root"]))
            elif not self.saturated:
                check.equal("calls of callees of " + text, sum(s.calls for s in rows.values()),
                            sum(row[0] for row in got.values()))
            self.middle(check, answer, group)

    def run(self):
        if not self.check.nodes:
            return
        for metric in ("inclusive_ns", "self_ns", "await_ns", "await_subtree_ns", "calls", "errors"):
            self.turned(self.check, metric, {})
            self.turned(self.check, metric, {"width": 3})
            self.turned(self.check, metric, {"max_nodes": 3})
            self.turned(self.check, metric, {"depth": 2, "max_nodes": 5})
        for edges in (("call",), ("root", "spawn")):
            self.turned(self.check, "self_ns", {}, edges)
        for name in list(self.check.nodes)[:3]:
            if not name.startswith("overflow"):
                self.turned(self.check, "inclusive_ns", {}, root=name)
        self.callers(self.check, {})
        self.callers(self.check, {"max_nodes": 3})
        self.callees(self.check, {})
        self.callees(self.check, {"depth": 2})
        self.transforms()
