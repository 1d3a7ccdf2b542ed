#!/usr/bin/env python3
"""Answers of `varve serve` while programs record: each must be of one state of the store; speaks TAP.

Two programs commit every 10 ms. Several connections ask for all views meanwhile: sums and equations must hold in every
single answer, answers of one state must agree with each other whatever the view, and a state must repeat exactly.

usage: snapshot_test.py VARVE VARVE-LUA STORE ANSWERS
"""

import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
from urllib.parse import urlencode

PROGRAM = """
local function leaf(n) if n % 7 == 0 then error({n = n}) end return n * 2 end
local function branch(n, depth)
  if depth == 0 then return select(2, pcall(leaf, n)) end
  if depth % 3 == 0 then leaf(1) end
  return branch(n + 1, depth - 1)
end
local turns = coroutine.wrap(function()
  while true do branch(math.random(1000), math.random(9)) coroutine.yield() end
end)
print("ready")
io.stdout:flush()
for _ in io.lines() do
  for i = 1, 5 do turns() end
  varve.call(varve.id(), branch, math.random(1000), 3)
  if math.random(20) == 1 then coroutine.wrap(function() branch(1, 2) end)() end
end
"""
CONNECTIONS, INTERVAL = 4, 0.01
TIMING = 16


class Wrong(Exception):
    pass


def want(condition, text):
    if not condition:
        raise Wrong(text)


def number(v):
    return int(v)


def check_evidence(answer):
    e = answer["evidence"]
    for q in e["equations"]:
        want(q["holds"] is not False, "equation %s" % q)
        if q["holds"]:
            want(q["left"] == q["right"], "a side of %s" % q)
    want(e["verdict"] in ("running", "complete"), "verdict %s: %s" % (e["verdict"], e["issues"]))
    want(answer["snapshot"]["generation"] == answer["snapshot"]["as_of"], "as_of")


def check_flame(answer):
    columns = {c: i for i, c in enumerate(answer["columns"])}
    rows = [{c: r[i] for c, i in columns.items()} for r in answer["nodes"]]
    below = [0] * len(rows)
    for i, r in enumerate(rows):
        want(r["parent"] < i, "a parent comes before its child")
        if r["edge"] in ("call", "folded") and r["parent"] >= 0:
            below[r["parent"]] += number(r["inclusive_ns"])
    for i, r in enumerate(rows):
        if number(r["open"]) == 0 and not r["flags"] & TIMING:
            parts = number(r["self_ns"]) + number(r["await_ns"]) + number(r["unattributed_ns"]) + below[i]
            want(number(r["inclusive_ns"]) == parts, "the parts of row %d: %s" % (i, r))
    totals = answer["totals"]
    for key in ("calls", "self_ns", "await_ns", "errors", "cancelled", "open"):
        want(sum(number(r[key]) for r in rows) == number(totals[key]), "the sum of %s" % key)
    return totals


def check_functions(answer):
    totals, rest = answer["totals"], answer["unattributed"]
    for key in ("calls", "self_ns"):
        found = sum(number(r[key]) for r in answer["items"]) + sum(number(p[key]) for p in rest.values())
        want(found == number(totals[key]), "the sum of %s" % key)
    return totals


def check_spans(answer):
    p = answer["population"]
    want(p["retained"] <= p["selected"] <= p["calls"], "population %s" % p)
    want(p["matched"] == p["retained"] and len(answer["items"]) <= p["matched"], "population %s" % p)
    want(p["without_start"] == 0, "a span without a start")


def check_errors(answer):
    p = answer["population"]
    want(p["fresh"] + p["rethrow"] == p["captures"] and len(answer["items"]) <= p["captures"], "population %s" % p)
    want(p["links_lost"] == 0 and p["links_unresolved"] == 0, "population %s" % p)


def check_threads(answer):
    p = answer["population"]
    want(p["with_end"] <= p["with_start"] <= p["threads"] and len(answer["items"]) <= p["threads"], "population %s" % p)


def check_execution(answer):
    want(answer["execution"]["total_calls"] == answer["totals"]["calls"], "the calls of the list")
    return answer["totals"]


def check_list(answer):
    want(len(answer["items"]) == 2 and answer["evidence"]["executions"] == 2, "executions")
    return {i["execution_id"]: (i["total_calls"], i["total_errors"]) for i in answer["items"]}


class Run:
    def __init__(self, address, answers):
        self.address, self.left = address, answers
        self.lock = threading.Lock()
        self.bodies, self.totals, self.done = {}, {}, {}
        self.gone, self.repeated, self.states, self.faults = 0, 0, set(), []

    def views(self, rng, executions):
        ident = rng.choice(executions)
        one = "/api/v1/executions/" + ident
        return rng.choice((
            ("flame", "/api/v1/flame?" + urlencode({"execution": ident, "ids": 1}), check_flame, ident),
            ("flame", "/api/v1/flame?" + urlencode({"execution": ident, "metric": "self_ns"}), check_flame, ident),
            ("functions", "/api/v1/functions?" + urlencode({"execution": ident, "limit": 1000}),
             check_functions, ident),
            ("execution", one, check_execution, ident),
            ("executions", "/api/v1/executions", check_list, None),
            ("spans", one + "/spans?limit=50&order=-duration", check_spans, None),
            ("errors", one + "/errors?limit=20", check_errors, None),
            ("threads", one + "/threads", check_threads, None)))

    def keep(self, generation, target, body, totals, ident):
        """Answers of one state: the same bytes for the same question, the same totals in every view."""
        with self.lock:
            self.states.add(generation)
            known = self.bodies.setdefault((generation, target), body)
            want(known == body, "two answers of one state differ: %s" % target)
            if ident and totals:
                first = self.totals.setdefault((generation, ident), totals)
                want(first == totals, "two views of one state differ: %s: %s, %s" % (target, first, totals))
            if totals and not ident:
                for execution, (calls, errors) in totals.items():
                    other = self.totals.get((generation, execution))
                    want(not other or (other["calls"], other["errors"]) == (calls, errors), "list and view differ")

    def ask(self, connection, target):
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read()

    def one(self, connection, rng, executions, past):
        kind, target, check, ident = self.views(rng, executions)
        status, body = self.ask(connection, target)
        want(status == 200, "%s: %d %.300s" % (target, status, body))
        answer = json.loads(body)
        check_evidence(answer)
        generation = answer["snapshot"]["generation"]
        self.keep(generation, target, hashlib.sha256(body).digest(), check(answer), ident)
        past.append((generation, target))
        with self.lock:
            self.done[kind] = self.done.get(kind, 0) + 1
        if rng.random() < 0.2:
            then, again = past[-rng.randint(1, min(8, len(past)))]
            status, body = self.ask(connection, again + ("&" if "?" in again else "?") + "as_of=" + then)
            want(status in (200, 410), "%s as of %s: %d %.300s" % (again, then, status, body))
            with self.lock:
                if status == 410:
                    self.gone += 1
                else:
                    self.repeated += 1
                    want(json.loads(body)["snapshot"]["generation"] == then, "another state than the one asked for")
                    if not json.loads(body).get("next"):  # a cursor holds the query
                        want(self.bodies[then, again] == hashlib.sha256(body).digest(), "%s is not repeated" % again)

    def client(self, seed, executions):
        rng, past = random.Random(seed), []
        connection = http.client.HTTPConnection(self.address, timeout=120)
        while True:
            with self.lock:
                if self.left <= 0 or self.faults:
                    return
                self.left -= 1
            try:
                self.one(connection, rng, executions, past)
            except Exception as e:  # of any kind: it is a fault
                with self.lock:
                    self.faults.append("%s: %s" % (type(e).__name__, e))
                return


def record(varve_lua, store, stop):
    env = dict(os.environ, BAML_PROFILE_DIR=store, BAML_PROFILE_PUBLISH_INTERVAL_MS="10")
    env.pop("BAML_PROFILE", None)
    program = os.path.join(store, "..", "program.lua")
    with open(program, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    p = subprocess.Popen([varve_lua, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    assert p.stdout.readline() == b"ready\n"

    def tick():
        while not stop.is_set():
            p.stdin.write(b"\n")
            p.stdin.flush()
            time.sleep(INTERVAL)
        p.stdin.close()

    thread = threading.Thread(target=tick)
    thread.start()
    return p, thread


def main():
    varve, varve_lua, store, answers = sys.argv[1:4] + [int(sys.argv[4])]
    os.makedirs(store)
    stop = threading.Event()
    writers = [record(varve_lua, store, stop) for _ in range(2)]
    server = subprocess.Popen([varve, "serve", store, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE)
    address = server.stdout.readline().decode().split("//")[1].strip().rstrip("/")
    run = Run(address, answers)
    connection = http.client.HTTPConnection(address, timeout=120)
    executions = []
    deadline = time.monotonic() + 60
    while len(executions) < 2 and time.monotonic() < deadline:
        _, body = run.ask(connection, "/api/v1/executions")
        executions = [i["execution_id"] for i in json.loads(body).get("items", ())]
    began = time.monotonic()
    clients = [threading.Thread(target=run.client, args=(seed, executions)) for seed in range(CONNECTIONS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    took = time.monotonic() - began
    alive = all(p.poll() is None for p, _ in writers)
    stop.set()
    ends = []
    for p, thread in writers:
        thread.join()
        ends.append(p.wait(60))
    server.terminate()
    ends.append(server.wait(60))
    total = sum(run.done.values())
    for fault in run.faults[:5]:
        print("# %s" % fault)
    print("# %s; %d states, %d repeated, %d gone; %.1f s" % (run.done, len(run.states), run.repeated, run.gone, took))
    results = (("%d answers of one state each" % answers, total == answers and not run.faults),
               ("while the programs committed", alive and len(run.states) >= 50),
               ("states repeat", run.repeated > answers / 100),
               ("all end well", ends == [0, 0, 0]))
    for n, (name, good) in enumerate(results, 1):
        print("%s %d - %s" % ("ok" if good else "not ok", n, name))
    print("1..%d" % len(results))
    sys.exit(not all(good for _, good in results))


if __name__ == "__main__":
    main()
