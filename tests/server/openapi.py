"""Answers of `varve serve` against the OpenAPI document that it gives: what tests of whole answers share."""

import json
import re
import subprocess
import zlib
from urllib.parse import unquote

from jsonschema import Draft202012Validator, validators

SECURITY = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin"}
# What the HTTP library answers by itself, before a request is one.
LIBRARY = (400, 413, 414, 431, 500, 505)


def pairs(items):
    """An object, which has no key twice."""
    found = dict(items)
    if len(found) != len(items):
        raise ValueError("a key stands there twice: %s" % sorted(k for k, _ in items))
    return found


def no_constant(word):
    raise ValueError("%s is no JSON" % word)


def parse(body):
    return json.loads(body.decode("utf-8"), object_pairs_hook=pairs, parse_constant=no_constant)


def unpack(body, coding):
    if coding == "gzip":
        return zlib.decompress(body, 31)
    if coding == "zstd":
        return subprocess.run(["zstd", "-dc"], input=body, stdout=subprocess.PIPE, check=True).stdout
    return body


def innermost(error):
    """The fault itself, below the alternatives that it leaves none of."""
    while error.context:
        error = max(error.context, key=lambda e: (len(e.absolute_path), len(e.context)))
    return "%s: %s" % ("/".join(str(p) for p in error.absolute_path), error.message[:200])


def remembering(document):
    """A class of validators for schemas of the document that look at what two answers share once.

    Remembered is only what was without a fault, by the very value: the values that answers are made of repeat, and
    jsonschema takes its time for each.
    """
    known = Draft202012Validator.VALIDATORS
    good = set()
    targets = {}

    def once(key, errors):
        if key in good:
            return
        fault = None
        for fault in errors:
            yield fault
        if fault is None:
            good.add(key)

    def of(place, value):
        if isinstance(value, (dict, list)):
            return place, json.dumps(value)
        return place, type(value), value

    def ref(validator, name, value, schema):
        if name not in targets:
            targets[name] = resolve(document, {"$ref": name})
        return once(of(name, value), validator.descend(value, targets[name]))

    def any_of(validator, choices, value, schema):
        errors = known["anyOf"](validator, choices, value, schema)
        return once(of(id(choices), value), errors)

    return validators.extend(Draft202012Validator, {"$ref": ref, "anyOf": any_of})


def resolve(document, node):
    while "$ref" in node:
        name = node["$ref"]
        node = document
        for part in name.lstrip("#/").split("/"):
            node = node[part]
    return node


class Document:
    """The document, and what it asks of each answer."""

    def __init__(self, document):
        self.document = document
        self.validators = {}
        self.validator = remembering(document)
        self.paths = [(re.compile("^%s$" % re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(path))), path)
                      for path in document["paths"]]
        self.seen = {}

    def path_of(self, target):
        """The path item of a target: literal segments go before those that stand for anything."""
        path = unquote(target.split("?")[0])
        found = [item for pattern, item in self.paths if pattern.match(path)]
        return min(found, key=lambda item: item.count("{"), default=None)

    def resolve(self, node):
        return resolve(self.document, node)

    def faults_of(self, schema, value):
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            Draft202012Validator.check_schema(schema)
            self.validators[key] = self.validator({**schema, "components": self.document["components"]})
        return [innermost(e) for e in self.validators[key].iter_errors(value)]

    def described(self, item, status):
        responses = self.document["paths"][item]["get"]["responses"] if item else {}
        for key in (str(status), "%dXX" % (status // 100)):
            if key in responses:
                return self.resolve(responses[key])
        problem = {"$ref": "#/components/responses/Problem"}
        return self.resolve(problem) if status >= 400 else None

    def check(self, method, target, status, headers, body):
        """What is wrong with an answer, as texts. headers: an email.message.Message, or the like."""
        try:
            return list(self._check(method, target, status, headers, body))
        except (ValueError, UnicodeDecodeError, zlib.error, subprocess.CalledProcessError) as e:
            return ["the body can't be read: %s" % e]

    def _check(self, method, target, status, headers, body):
        kind = (headers.get("Content-Type") or "").split(";")[0]
        if status in LIBRARY and body.startswith(b"<html>"):
            return
        yield from self._check_headers(headers, kind)
        item = self.path_of(target)
        if item is None and status in (200, 304) and not target.startswith("/api/"):
            return  # a file of the dashboard
        if status == 303 and "token=" in target:
            return
        described = self.described(item, status)
        if described is None:
            yield "status %d is not described" % status
            return
        self.seen.setdefault(item, set()).add(status)
        if method == "HEAD" or status == 304:
            if body:
                yield "%s %d has a body" % (method, status)
            return
        for name, header in described.get("headers", {}).items():
            header = self.resolve(header)
            if name not in headers:
                yield "%s is missing" % name
            else:
                yield from ("%s: %s" % (name, f) for f in self.faults_of(header["schema"], headers[name]))
        if kind not in described["content"]:
            yield "Content-Type %s is not described" % kind
            return
        content = described["content"][kind]
        if "schema" in content and kind.endswith("json"):
            yield from self.faults_of(content["schema"], parse(unpack(body, headers.get("Content-Encoding"))))
            if kind == "application/problem+json" and parse(body)["status"] != status:
                yield "the problem tells another status"
        elif kind.endswith("json"):
            yield "no schema"

    def _check_headers(self, headers, kind):
        for name, value in SECURITY.items():
            if headers.get_all(name) != [value]:
                yield "%s is %s" % (name, headers.get_all(name))
        policy = headers.get("Content-Security-Policy") or ""
        if not policy.startswith("default-src 'none'"):
            yield "Content-Security-Policy is %s" % policy
        if kind == "text/html" and ("unsafe" in policy or "frame-ancestors 'none'" not in policy):
            yield "a page's policy is %s" % policy
        for name in headers.keys():
            if name.lower().startswith("access-control"):
                yield "there is a header %s" % name
