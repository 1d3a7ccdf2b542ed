"""The evidence of one run as text: evidence.py DUMP STORE [brief|ids|links], where DUMP is what `varve dump` printed
of STORE. brief: without inputs and outputs; ids: only the runtime ids of calls that have one; links: only the calls
with the error role that ended Errored without a link to an error, or otherwise with one, and how many there are.

    span 1.4 main:ask @2 llm ioe Ok in={"q": "why"} out="so" error=1.2
    error 1.2 by 1.4 main:ask Fresh Bytecode @3 "boom"

A call is THREAD.CALL, an error THREAD.ORDINAL. Of a span: function, line of its call site, why it is selected, what
its plan asks for, how it ended, `id` where it has a runtime id that isn't the run's. Values are decoded here, from the
files.
"""
import base64, json, struct, sys


def read_object(store, cid):
    with open("%s/cas/sha256/%s/%s.bamlvalue" % (store, cid[:2], cid), "rb") as f:
        blob = f.read()
    magic, version, codec, n = struct.unpack(">8sHHQ", blob[:20])
    assert magic == b"BAMLVAL1" and version == 1, "no object"
    return codec, blob[52:52 + n]


def varint(b, at):
    value = shift = 0
    while True:
        byte = b[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(b):
    at = 0
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            value, at = varint(b, at)
        elif tag & 7 == 1:
            value, at = b[at:at + 8], at + 8
        else:
            n, at = varint(b, at)
            value, at = b[at:at + n], at + n
        yield tag >> 3, value


def text(b):
    return json.dumps(b.decode("utf-8"), ensure_ascii=False)


def entries(b, field):
    for tag, value in fields(b):
        if tag == field:
            parts = dict(fields(value))
            yield text(parts.get(1, b"")), show(parts[2])


def show_class(b):
    name = dict((t, v) for t, v in fields(b) if t == 1).get(1, b"").decode()
    inside = list(entries(b, 2))
    if name == "baml.trace.OmittedValue":
        parts = dict(inside)
        return "<%s: %s>" % (json.loads(parts['"reason"']), json.loads(parts['"message"']))
    return "%s{%s}" % (name, ", ".join("%s: %s" % e for e in inside))


def show(b):
    (tag, value), = fields(b)
    if tag == 2:
        return "null"
    if tag == 3:
        return text(value)
    if tag == 4:
        return str(value - (1 << 64) if value >> 63 else value)
    if tag == 5:
        return repr(struct.unpack("<d", value)[0])
    if tag == 6:
        return "true" if value else "false"
    if tag == 7:
        return show_class(value)
    if tag == 11:
        return "[%s]" % ", ".join(show(v) for t, v in fields(value) if t == 2)
    if tag == 12:
        return "{%s}" % ", ".join("%s: %s" % e for e in entries(value, 3))
    if tag == 19:
        return "bytes " + value.hex()
    return "?%d" % tag


def shown(store, value):
    if not value:
        return None
    if "lost" in value:
        return "lost %s" % value["lost"]
    codec, body = read_object(store, value["cid"])
    assert codec == 1 and len(body) == value["bytes"]
    return show(body)


class Table:
    def __init__(self, body):
        self.b, self.at = body, 2
        self.names = {}
        for _ in range(self.u32()):
            number, name = self.u32(), self.string()
            self.string(), self.optional()
            self.at += 1
            self.optional()
            self.at += 1
            self.optional()
            self.at += 1 + 12 * self.b[self.at]
            self.optional()
            n = struct.unpack_from(">H", self.b, self.at)[0]
            self.at += 2
            for _ in range(n):
                self.string()
            self.names[number] = name

    def u32(self):
        self.at += 4
        return struct.unpack_from(">I", self.b, self.at - 4)[0]

    def string(self):
        n = self.u32()
        self.at += n
        return self.b[self.at - n:self.at].decode()

    def optional(self):
        self.at += 1
        return self.string() if self.b[self.at - 1] else None


def numbers(ref):
    digits = ref[ref.index("_1_") + 3:]
    raw = base64.urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    return struct.unpack(">%dQ" % ((len(raw) - 17) // 8), raw[17:])[1:]  # after the process, the engine


def main(dump, store, how):
    streams = json.load(open(dump))["streams"]
    stream = streams[0]
    names = Table(read_object(store, stream["engines"][-1]["function_table"])[1]).names
    execution = stream["executions"][0]
    if execution.get("error") or execution["data_state"] != "Complete" or execution["issues"]:
        print("not complete:", execution.get("error") or (execution["data_state"], execution["issues"]))
    for name, n in sorted(execution["health"].items()):
        if "lost" in name or "loss" in name or "exceeded" in name:
            print("lost:", name, n)

    errored = 0

    def call(ref):
        return "%d.%d" % numbers(ref)

    for span in sorted(execution["spans"], key=lambda s: numbers(s["call"])):
        start, end = span["start"], span["end"]
        own_id = span["runtime_id"] if span["runtime_id"] != execution["runtime_id"] else None
        if how == "ids":
            if own_id:
                print(own_id)
            continue
        if how == "links":
            ended = end and end["status"] == "Errored"
            linked = bool(span["terminal"] and span["terminal"].get("capture"))
            errored += start["roles"] & 4 and ended
            if start["roles"] & 4 and ended != linked:
                print(call(span["call"]), names[start["function_id"]], end, span["terminal"])
            continue
        words = ["span", call(span["call"]), names[start["function_id"]]]
        if start["site"]:
            words.append("@%d" % start["site"][3])
        words.append("+".join(w for i, w in enumerate(("root", "llm", "manual")) if start["reasons"] >> i & 1))
        words.append("".join(w for i, w in enumerate("ioe") if start["roles"] >> i & 1) or "-")
        words.append(end["status"] if end else "open")
        if own_id:
            words.append("id")
        for key, role in () if how == "brief" else (("in", "input"), ("out", "output")):
            value = shown(store, span[role])
            if value:
                words.append("%s=%s" % (key, value))
        if span["terminal"]:
            target = span["terminal"].get("capture")
            words.append("error=%d.%d" % (numbers(target[0])[0], target[1]) if target
                         else "error lost " + str(span["terminal"]["lost"]))
        print(*words)
    if how == "links":
        print("errored:", "many" if errored > 100 else errored // 4)
    for e in execution["errors"] if how in ("", "brief") else ():
        site = " @%d" % e["site"][1] if e["site"] else ""
        print("error %d.%d by %s %s %s %s%s %s" % (
            numbers(e["id"][0])[0], e["id"][1], call(e["throw_call"]), names[e["function_id"]],
            ("Fresh", "Rethrow")[e["kind"]], ("Bytecode", "NativeCall", "EngineCall", "FutureResume")[e["source"]],
            site, shown(store, e["value"])))


main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
