#!/usr/bin/env python3
"""Asks `varve serve` for every resource in every way that its OpenAPI document tells; speaks TAP.

A server for each store: its answers, errors too, must be what the document says; what the document allows must be
accepted, and what it does not allow refused.

usage: openapi_test.py VARVE FIXTURES-DIRECTORY SCRATCH-DIRECTORY
"""

import fcntl
import glob
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from urllib.parse import quote, urlencode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))

import genstore  # noqa: E402
import openapi  # noqa: E402
import serving  # noqa: E402

SEEDS = range(1, 5)
ROWS = 6  # of each list that are looked at one by one
WHOLE = ("demo-store.tar", "alive")  # where all parameters are tried too
ZERO = "0" * 64
GIVEN = {"q": ("a", "main", "spans")}  # values of parameters that are needed


class Server(serving.Server):
    documents = {}  # by their bytes: one for all servers, so that what two stores answer alike is looked at once

    def __init__(self, varve, *arguments):
        super().__init__(varve, "--no-index", *arguments)
        self.document, self.faults, self.answers = None, [], 0
        text = self.ask("GET", "/api/v1/openapi.json")[1]
        if text not in self.documents:
            self.documents[text] = openapi.Document(openapi.parse(text))
            check_schemas(self, self.documents[text].document)
        self.document = self.documents[text]
        self.get("/api/v1/openapi.json")

    def ask(self, method, target, **headers):
        self.connection.request(method, target, headers=headers)
        response = self.connection.getresponse()
        return response, response.read()

    def get(self, target, method="GET", **headers):
        """The status and the parsed body of an answer, once it was checked."""
        response, body = self.ask(method, target, **headers)
        self.answers += 1
        if self.document:
            for fault in self.document.check(method, target, response.status, response.headers, body):
                self.faults.append("%s %s: %d: %s" % (method, target, response.status, fault))
        whole = method == "GET" and body and (response.headers["Content-Type"] or "").endswith("json")
        return response.status, openapi.parse(body) if whole else body

    def want(self, condition, text):
        if not condition:
            self.faults.append(text)


def check_schemas(server, document):
    """What the schemas of a document must be."""
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    schemas = document["components"]["schemas"]
    server.want(named == set(schemas), "schemas that are not there, or not used: %s" % (named ^ set(schemas)))
    for name, schema in schemas.items():
        openapi.Draft202012Validator.check_schema(schema)
        server.want(schema.get("type") != "object" or "additionalProperties" in schema or name == "OpenApi",
                    "%s allows any field" % name)


def good_values(parameter):
    """Values that the document allows; none where it can't be told what means something."""
    schema = parameter["schema"].get("items", parameter["schema"])
    if "enum" in schema:
        yield from schema["enum"]
        if parameter["schema"].get("type") == "array" and not parameter.get("explode"):
            yield ",".join(schema["enum"])
    elif schema.get("type") == "integer":
        yield from (str(schema["minimum"]), str(schema["maximum"]))


def bad_values(parameter):
    schema = parameter["schema"].get("items", parameter["schema"])
    if "enum" in schema:
        yield from ("nonsense", "")
    elif schema.get("type") == "integer":
        yield from (str(schema["maximum"] + 1), "-1", "1e1", "0x10", "")
        if schema["minimum"] > 0:
            yield str(schema["minimum"] - 1)
    elif "pattern" in schema:
        for text in ("%", "\u00e9\n", "12"):
            if not re.search(schema["pattern"], text):
                yield text


class Crawl:
    """One server, all of its resources."""

    def __init__(self, server):
        self.server = server
        self.paths = server.document.document["paths"]
        self.examples = {}  # by path: what may stand in its braces, a tuple each
        self.tuples_seen = set()

    def find_examples(self):
        """The names of all things that there are."""
        get = self.server.get
        known = self.examples
        streams = [(s["euid"],) for s in get("/api/v1/streams")[1].get("items", ())]
        known["/api/v1/streams/{euid}"] = streams
        planes = [(s, p) for s, in streams for p in ("meta", "data", "health")]
        known["/api/v1/streams/{euid}/{plane}"] = planes
        rows = [(s, p, get("/api/v1/streams/%s/%s" % (s, p))[1].get("items", ())) for s, p in planes]
        known["/api/v1/streams/{euid}/{plane}/{seq}"] = [(s, p, str(r["sequence"])) for s, p, items in rows
                                                         for r in items[:ROWS]]
        executions = [i["execution_id"] for i in get("/api/v1/executions?limit=1000")[1].get("items", ())]
        known["executions"] = [(i,) for i in executions]
        self.executions = executions or ["latest"]
        keys = {}
        for ident in executions:
            answer = get("/api/v1/flame?" + urlencode({"execution": ident, "ids": 1}))[1]
            keys.update((c, None) for c in answer.get("contexts", ())[:ROWS])
        known["/api/v1/contexts/{key}"] = [(k,) for k in keys]
        spans, errors, cids = [], [], set()
        for ident in executions:
            for kind, key, found in (("spans", "call_id", spans), ("errors", "error_id", errors)):
                answer = get("/api/v1/executions/%s/%s?limit=1000" % (ident, kind))[1]
                for row in answer.get("items", ())[:ROWS]:
                    found.append((ident, row[key]))
                    cids.update(v for k, v in row.items() if k.endswith("cid") and v)
        known["/api/v1/executions/{id}/spans/{call}"] = spans
        known["/api/v1/executions/{id}/errors/{error}"] = errors
        known["/api/v1/values/{cid}"] = [(c,) for c in sorted(cids)[:3 * ROWS]] + [("bamlv_1_" + ZERO,)]

    def fillings(self, path):
        """The path with each of its examples; one that leads nowhere where there is none."""
        names = re.findall(r"\{([a-z]+)\}", path)
        if not names:
            return [path]
        best = max((p for p in self.examples if path.startswith(p)), key=len, default="executions")
        found = self.examples.get(best) or [("latest~77", "1.1", "1")]
        found = [f for f in found if len(f) >= len(names)]
        assert found, "nothing is known for the braces of %s" % path
        return [self.fill(path, names, f) for f in found]

    @staticmethod
    def fill(path, names, values):
        for name, value in zip(names, values):
            path = path.replace("{%s}" % name, quote(value, safe=""))
        return path

    def queries(self, parameters):
        """What must stand in the query: a list of dictionaries."""
        required = [p["name"] for p in parameters if p.get("required")]
        found = [{}]
        if "execution" in required:
            found = [{"execution": e} for e in self.executions]
        if "function" in required:
            found = [{**q, "function": self.function_of(q)} for q in found]
        for name in required:
            assert name in ("execution", "function") or name in GIVEN, "no value is known for %s" % name
            if name in GIVEN:
                found = [{**q, name: v} for q in found for v in GIVEN[name]]
        return found

    def check_paths(self):
        """The document tells of what the index tells of."""
        want = self.server.want
        index = {r["path"] for r in self.server.get("/api/v1")[1]["resources"]}
        want(set(self.paths) == index | {"/"}, "paths and index differ: %s" % (set(self.paths) ^ index))

    def run(self, parameters_too):
        self.check_paths()
        self.find_examples()
        others = sorted({p["name"] for item in self.paths.values() for p in item["get"].get("parameters", ())
                         if p["in"] == "query"})
        for path, item in self.paths.items():
            parameters = [p for p in item["get"].get("parameters", ()) if p["in"] == "query"]
            queries = self.queries(parameters)
            for target in self.fillings(path):
                for query in queries:
                    self.ask_plain(target + ("?" + urlencode(query) if query else ""))
                    if "base" in {p["name"] for p in parameters}:
                        self.compare(target, query, "ids" in {p["name"] for p in parameters})
            if parameters_too:
                self.ask_parameters(path, parameters, self.fillings(path)[0], queries[0], others)

    def compare(self, target, query, ids):
        """The same with each of some bases, and about several executions."""
        pairs = list(query.items())
        for base in self.executions[:2] + self.executions[-1:]:
            self.server.get(target + "?" + urlencode(pairs + [("base", base)] + [("ids", "1")] * ids))
        if "execution" in query:
            self.server.get(target + "?" + urlencode(pairs + [("execution", e) for e in self.executions]))

    def function_of(self, query):
        """The first function of an execution."""
        items = self.server.get("/api/v1/functions?" + urlencode(query))[1].get("items", ())
        return "#%d/%s" % (items[0]["function_id"], items[0]["program"]) if items else "nobody"

    def ask_plain(self, target):
        server = self.server
        status, _ = server.get(target)
        server.get(target, "HEAD")
        response, _ = server.ask("GET", target)
        tag = response.headers["ETag"]
        if tag:
            again, _ = server.ask("GET", target, **{"If-None-Match": tag})
            server.want(again.status == 304, "%s: its own tag gives %d" % (target, again.status))
        server.want((status == 200) >= bool(tag), "%s: %d has a tag" % (target, status))

    def ask_parameters(self, path, parameters, target, query, others):
        server = self.server

        def ask(*pairs):
            return server.get(target + "?" + urlencode([*query.items(), *pairs]))

        def refused(name, pairs, what):
            status, body = ask(*pairs)
            good = status == 400 and body["type"] == "urn:varve:problem:bad-parameter" and body["parameter"] == name
            server.want(good, "%s %s: %s: %s" % (path, pairs, what, body if status == 400 else status))

        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            response, _ = server.ask(method, target)
            server.want((response.status, response.headers["Allow"]) == (405, "GET, HEAD"),
                        "%s %s: %d" % (method, path, response.status))
        names = {p["name"] for p in parameters}
        for name in [n for n in others if n not in names] + ["no_such"]:
            refused(name, [(name, "1")], "a parameter that it does not have")
        for p in parameters:
            name = p["name"]
            for value in bad_values(p) if name not in query else ():
                refused(name, [(name, value)], "a value that is not allowed")
            for value in good_values(p) if name not in query else ():
                status, body = ask((name, value))
                server.want(status != 400 or body.get("parameter") != name,
                            "%s: %s=%s, which is allowed, is %s" % (path, name, value, body))
            if not p["schema"].get("type") == "array" or not p.get("explode"):
                value = next(good_values(p), "x")
                refused(name, [(name, value)] * (1 if name in query else 2), "given twice")
            if name in query:
                kept = urlencode({k: v for k, v in query.items() if k != name})
                status, body = server.get(target + "?" + kept)
                server.want(status == 400 and body["parameter"] == name, "%s without %s: %d" % (path, name, status))


def demo(fixtures, scratch, name):
    directory = tempfile.mkdtemp(dir=scratch)
    with tarfile.open(os.path.join(fixtures, name)) as archive:
        archive.extractall(directory)
    return directory


def stores(fixtures, scratch):
    """Of each store a name, its path, and what is to be held while it is served."""
    for path in sorted(glob.glob(os.path.join(fixtures, "*.tar"))):
        name = os.path.basename(path)
        yield name, demo(fixtures, scratch, name), None
    for seed in SEEDS:
        directory = tempfile.mkdtemp(dir=scratch)
        genstore.build(seed, directory)
        yield "generated %d" % seed, directory, None
    directory = demo(fixtures, scratch, "demo-store.tar")
    lock, = glob.glob(os.path.join(directory, ".baml/profiles-v1/streams/0001*/stream.lock"))
    yield "alive", directory, lock
    yield "no store yet", tempfile.mkdtemp(dir=scratch), None


# The verbs that show what resources do, and which parameters are no options of them.
VERBS = {
    "/api/v1/store": ("streams", ()),
    "/api/v1/streams": ("streams", ()),
    "/api/v1/streams/{euid}": ("streams", ()),
    "/api/v1/streams/{euid}/{plane}": ("streams", ()),
    "/api/v1/executions": ("ls", ()),
    "/api/v1/executions/{id}": ("show", ()),
    "/api/v1/executions/{id}/errors": ("errors", ()),
    "/api/v1/executions/{id}/errors/{error}": ("errors", ()),
    "/api/v1/executions/{id}/logs": ("logs", ()),
    "/api/v1/executions/{id}/checkpoint": ("show", ()),
    "/api/v1/executions/{id}/threads": ("threads", ()),
    "/api/v1/executions/{id}/spans": ("spans", ()),
    "/api/v1/executions/{id}/spans/{call}": ("spans", ()),
    "/api/v1/contexts/{key}": ("context", ()),
    "/api/v1/functions": ("top", ("execution",)),
    "/api/v1/flame": ("flame", ("execution",)),
    "/api/v1/callers": ("callers", ("execution", "function")),
    "/api/v1/callees": ("callees", ("execution", "function")),
    "/api/v1/search": ("search", ("q",)),
    "/api/v1/values/{cid}": ("value", ()),
    "/api/v1/values/{cid}/raw": ("value", ()),
    "/api/v1/values/{cid}/uses": ("value", ()),
}
OF_SERVERS = {"/api/v1", "/api/v1/meta", "/api/v1/openapi.json", "/api/v1/follow",
              "/api/v1/streams/{euid}/{plane}/{seq}"}


def not_asked_by_command(varve, document):
    """Parameters of resources that the command's verbs have no option for."""
    for path, item in document.document["paths"].items():
        if path not in VERBS:
            if path.startswith("/api/v1") and path not in OF_SERVERS:
                yield "%s has no verb" % path
            continue
        verb, positional = VERBS[path]
        words = subprocess.run([varve, verb, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
        for parameter in item["get"].get("parameters", ()):
            name = parameter["name"]
            if parameter["in"] == "query" and name not in ("as_of", *positional):
                if "--" + name.replace("_", "-") not in words:
                    yield "%s?%s= is no option of %s" % (path, name, verb)


def main():
    varve, fixtures, scratch = sys.argv[1:]
    failed, n, seen, document = False, 0, {}, None
    for name, directory, lock in stores(fixtures, scratch):
        held = open(lock, "r+b") if lock else None
        if held:
            fcntl.flock(held, fcntl.LOCK_EX)
        server = Server(varve, directory)
        try:
            Crawl(server).run(name in WHOLE)
        finally:
            server.stop()
        n += 1
        failed |= bool(server.faults)
        print("%s %d - %s: %d answers" % ("not ok" if server.faults else "ok", n, name, server.answers))
        for fault in list(dict.fromkeys(server.faults))[:20]:
            print("# %s" % fault)
        sys.stdout.flush()
        document = server.document
        for item, statuses in document.seen.items():
            seen.setdefault(item, set()).update(statuses)
    n += 1
    lacks = list(not_asked_by_command(varve, document))
    print("%s %d - the command asks all that HTTP does" % ("not ok" if lacks else "ok", n))
    for fault in lacks:
        print("# %s" % fault)
    n += 1
    never = [p for p in document.document["paths"] if 200 not in seen.get(p, ())]
    print("%s %d - every resource was answered somewhere %s" % ("not ok" if never else "ok", n, " ".join(never)))
    print("1..%d" % n)
    sys.exit(failed or bool(never) or bool(lacks))


if __name__ == "__main__":
    main()
