#!/usr/bin/env python3
"""What a search finds, held against a plain search through the reference reader's objects; speaks TAP.

Each store is asked as it is, without an index, with a new one, with a filled one and with one in memory: all of them
answer the same, and that is what a look at every text of every execution finds.

usage: check_search.py VARVE FIRST_SEED SEEDS [STORE...]
"""

import hashlib
import os
import random
import sys
import tarfile

from check_views import Server
from check_calls import capture_text

import refstore
from refsource import StoreError
from refstore import call_text, runtime_text, thread_text
from serving import each_store

TYPES = ("function", "execution", "thread", "error", "span")
KINDS = ("fresh", "rethrow")
SOURCES = ("bytecode", "native_call", "engine_call", "future_resume")
HOSTILE = ("\"", "'", "%", "_", "*", "a\"b", "' OR '1'='1", "NEAR(a b)", "a AND b", "-a", "^a", "{a}", "\\", "\x7f",
           "ab", "\x1b[", "; DROP TABLE summary; --", "x" * 256, "\ufffd\uffff", "\u8a08")
NOWHERE = ("no such text anywhere", "zzzzzzzz")


def folded(text):
    """Bytes, with the case of ASCII letters put away."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return raw.lower()


class Texts:
    """All that a store can be searched for."""

    def __init__(self, server, store):
        self.items = {item["execution_id"]: item for item in self.executions(server)}
        self.order = list(self.items)  # newest first
        self.streams = [s for s in store.streams if s.error is None]
        self.found = {x.ident: (s, x) for s in self.streams for x in s.roots.values()}
        assert set(self.found) == set(self.items), "executions"

    @staticmethod
    def executions(server):
        items, cursor = [], {}
        while True:
            answer = server.get("/api/v1/executions", limit=1000, **cursor)
            items.extend(answer["items"])
            if answer["next"] is None:
                return items
            cursor = {"cursor": answer["next"]}

    @staticmethod
    def word(fields, needle):
        return next((word for word, text in fields if text and needle in folded(text)), None)

    @staticmethod
    def fields_of(row):
        return (("name", row["fqn"]), ("display_name", row["display"]), ("definition_key", row["key"]),
                ("file", row["file"]))

    def functions(self, needle):
        """(key, name, matched, executions, newest) of each function, in order."""
        groups = {}
        for stream in self.streams:
            for engine in {record["engine"] for record in stream.engines}:
                program = [r for r in stream.engines if r["engine"] == engine]
                own = [ident for ident in self.order
                       if self.found[ident][0] is stream and self.found[ident][1].engine == engine]
                for ident, row in stream.function_rows(engine).items():
                    word = self.word(self.fields_of(row), needle)
                    if word is None:
                        continue
                    key = self.key(ident, row, program)
                    entry = groups.setdefault(key, [row["fqn"], 0, []])
                    entry[1] += len(own)
                    # Described as the newest execution has it; without any, as the first table does.
                    entry[2].append((self.order.index(own[0]) if own else len(self.order),
                                     self.table_of(stream, engine), word, own[0] if own else None))
        best = lambda entry: min(entry[2], key=lambda one: one[:2])
        return [("function", groups[key][0], best(groups[key])[2], groups[key][1], best(groups[key])[3])
                for key in sorted(groups)]

    @staticmethod
    def table_of(stream, engine):
        """The name of the object that function_rows reads."""
        for record in reversed(stream.engines):
            if record["engine"] == engine and record["function_table"] is not None:
                try:
                    codec, body = refstore.read_object(stream.source, record["function_table"])
                    if codec == 2 and refstore.decode_function_table(body):
                        return record["function_table"]
                except StoreError:
                    continue
        return None

    @staticmethod
    def key(ident, row, records):
        kind, name = (0, row["key"]) if row["key"] else (1, row["fqn"]) if row["fqn"] else (2, "#%d" % ident)
        # Only what has no name goes by the program: that of the record that names the table which was read.
        program = records[-1]["program_id"] if kind == 2 else b""
        name, fqn = name.encode(), row["fqn"].encode()
        identity = hashlib.sha256(bytes([kind]) + program + len(name).to_bytes(8, "big") + name + fqn).digest()
        return fqn.lower()[:24].ljust(24, b"\0") + identity

    def inside(self, ident, needle):
        """Hits of one execution, in order."""
        stream, execution = self.found[ident]
        item = self.items[ident]
        word = self.word([(key, item[key]) for key in ("execution_id", "short_id", "entry_fqn", "entry_display_name",
                                                       "source_label", "revision_id", "runtime_id")], needle)
        if word:
            yield "execution", ident, ident, word
        if execution.error is not None:
            return
        functions = stream.function_rows(execution.engine)
        of = lambda number: self.word(self.fields_of(functions[number]), needle) if number in functions else None
        for ref, thread in sorted(execution.threads.items()):
            if thread.start and needle in folded(thread.start["name"]):
                yield "thread", ident, thread_text(ref), "thread_name"
        for capture, error in sorted(execution.errors.items()):
            word = of(error["function_id"]) or self.word((("kind", KINDS[error["kind"]]),
                                                       ("source", SOURCES[error["source"]])), needle)
            if word:
                yield "error", ident, capture_text(capture), word
        for call, span in sorted(execution.spans.items()):
            word = of(span.start["function_id"]) if span.start else None
            ids = ([span.start["annotation"]] if span.start and span.start["annotation"] else []) + span.annotations
            if not word and any(needle in folded(runtime_text(token)) for _, token in ids):
                word = "runtime_id"
            if word:
                yield "span", ident, call_text(call), word

    def search(self, text, kind=None):
        needle = folded(text)
        hits = self.functions(needle) if kind in (None, "function") else []
        for ident in self.order if kind != "function" else ():
            hits.extend(hit for hit in self.inside(ident, needle) if kind in (None, hit[0]))
        return hits

    def words(self, rng):
        """Texts to look for: parts of what is there, some of them in other letters, and what is not there."""
        there = ["rethrow", "bytecode", "fresh"]
        for stream, execution in self.found.values():
            there.append(execution.ident)
            there.extend(self.items[execution.ident]["short_id"].split("."))
            for row in stream.function_rows(execution.engine).values():
                there.extend(text for _, text in self.fields_of(row) if text)
            if execution.error is None:
                there.extend(t.start["name"] for t in execution.threads.values() if t.start and t.start["name"])
                there.extend(runtime_text(token) for s in execution.spans.values() for _, token in s.annotations)
        there.sort()
        picked = []
        for text in rng.sample(there, min(len(there), 12)):
            start = rng.randrange(len(text))
            part = text[start:start + rng.choice((1, 2, 3, 5, 300))][:40].replace("\0", "")
            picked.extend([part, part.swapcase()] if part else [])
        return picked + list(HOSTILE) + list(NOWHERE)


def plain(item):
    """What the checks compare of an item."""
    kind = item["type"]
    if kind == "function":
        return kind, item["name"], item["matched"], int(item["executions"]), item["execution_id"]
    name = {"execution": "execution_id", "thread": "thread_id", "error": "error_id", "span": "call_id"}[kind]
    return kind, item["execution_id"], item[name], item["matched"]


def ask(server, limit, **query):
    items, cursor = [], {}
    while True:
        answer = server.get("/api/v1/search", limit=limit, **query, **cursor)
        assert len(answer["items"]) <= limit and (answer["next"] is None or len(answer["items"]) == limit), "pages"
        items.extend(answer["items"])
        if answer["next"] is None:
            return items, answer
        cursor = {"cursor": answer["next"]}


def equal(what, ours, theirs):
    assert ours == theirs, "%s: expected %.400s, got %.400s" % (what, ours, theirs)


def check_refusals(server):
    for query in ({}, {"q": ""}, {"q": "x" * 257}, {"q": "a\0b"}, {"q": b"\xff\xfe"}, {"q": b"\xe8\xa8"},
                  {"q": "a", "kind": "value"}, {"q": "a", "limit": 0},
                  {"q": "a", "cursor": "AAAA"}, {"q": "a", "execution": "latest"}):
        equal("refusal of %s" % query, 400, server.code("/api/v1/search", **query))


def check_links(server, items):
    """Each hit leads somewhere."""
    for item in items:
        if item["href"] is None:
            continue
        assert server.code(item["href"]) == 200, item["href"]


def check_store(varve, path, scratch, rng):
    store = refstore.load_store(path)
    first = Server(varve, path, "--no-index")
    try:
        texts = Texts(first, store)
        words = texts.words(rng)
        wanted = {}
        check_refusals(first)
        for at, word in enumerate(words):
            items, answer = ask(first, 1000, q=word)
            equal("search for %r" % word, texts.search(word), [plain(i) for i in items])
            wanted[at] = items, answer["evidence"], answer["tables"]
            if at % 4 == 0:
                equal("pages of %r" % word, items, ask(first, 3, q=word)[0])
                check_links(first, items[:20])
                for kind in TYPES:
                    equal("%s %r" % (kind, word), texts.search(word, kind),
                          [plain(i) for i in ask(first, 2, q=word, kind=kind)[0]])
    finally:
        first.stop()
    for options in (("--index", os.path.join(scratch, "index")),) * 2 + (("--index", ":memory:"),):
        server = Server(varve, path, *options)
        try:
            for at, word in enumerate(words):
                items, answer = ask(server, 1000, q=word)
                equal("%s: search for %r" % (options, word), wanted[at],
                      (items, answer["evidence"], answer["tables"]))
        finally:
            server.stop()


def unpack(path, scratch):
    """The store of an archive as a directory, which can have an index."""
    with tarfile.open(path) as archive:
        archive.extractall(scratch)
    return next(d for d, names, _ in os.walk(scratch) if "streams" in names)


def check_each(varve, path, scratch, seed):
    check_store(varve, unpack(path, scratch) if seed is None else path, scratch, random.Random(seed or 0))


if __name__ == "__main__":
    sys.exit(each_store(sys.argv[1:], check_each))
