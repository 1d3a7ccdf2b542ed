"""A reference reader of captured value bodies, written from the store's description; and a maker of random ones.

Objects of JSON are `Pairs` here, so that the order of members and keys that stand twice are compared too.
"""

import base64
import math
import re
import struct

MEDIA_KINDS = (None, "image", "audio", "pdf", "video", "other")
MEDIA_SOURCES = {3: "url", 4: "base64", 5: "file"}
OMITTED = "baml.trace.OmittedValue"
WIRES = {2: 2, 3: 2, 4: 0, 5: 1, 6: 0, 7: 2, 8: 2, 11: 2, 12: 2, 17: 2, 19: 2, 20: 2}
EXACT = 2**53 - 1


class Pairs(list):
    """A JSON object: (key, value) in order."""


class Malformed(Exception):
    """The body is no value."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("Truncated")
        byte = data[at]
        at += 1
        if shift == 63 and byte > 1:
            raise Malformed("InvalidTag")
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """[(number, wire type, number or bytes)] of a message."""
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if key >= 2**32 or number == 0 or wire not in (0, 1, 2, 5):
            raise Malformed("InvalidTag")
        if wire == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(wire)
            if size is None:
                size, at = varint(data, at)
            if size > len(data) - at:
                raise Malformed("Truncated")
            value = bytes(data[at: at + size])
            at += size
        found.append((number, wire, value))
    return found


def expect(field, wire):
    if field[1] != wire:
        raise Malformed("InvalidTag")
    return field[2]


def text(field):
    try:
        return expect(field, 2).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("InvalidUtf8") from None


def last_text(message, number):
    found = [text(field) for field in fields(message) if field[0] == number]
    return found[-1] if found else None


def member(message):
    """The last member of the oneof: (number, value), or None."""
    found = None
    for field in fields(message):
        if field[0] in WIRES:
            found = (field[0], expect(field, WIRES[field[0]]))
    return found


def entry(message):
    key, value = "", b""
    for field in fields(message):
        if field[0] == 1:
            key = text(field)
        elif field[0] == 2:
            value = expect(field, 2)
    return key, value


def items(message, number):
    return [expect(field, 2) for field in fields(message) if field[0] == number]


def data_key(key):
    return "$" + key if key.startswith("$") else key


def show_omitted(message):
    found = {}
    for one in items(message, 2):
        key, value = entry(one)
        inner = member(value)
        if inner and inner[0] == 3 and key in ("reason", "message"):
            found[key] = text((3, 2, inner[1]))
    return Pairs([("$omitted", found.get("reason")), ("message", found.get("message"))])


def show_media(message):
    kind, mime, source = 0, last_text(message, 2), None
    for field in fields(message):
        if field[0] == 1:
            kind = expect(field, 0)
        elif field[0] in MEDIA_SOURCES:
            source = field
    shown = Pairs([("$media", MEDIA_KINDS[kind] if kind < len(MEDIA_KINDS) else None), ("mime", mime)])
    if source:
        shown.append((MEDIA_SOURCES[source[0]], text(source)))
    return shown


def show_scalar(number, value):
    if number == 2:
        return None
    if number == 3:
        return text((3, 2, value))
    if number == 4:
        signed = value - 2**64 if value >= 2**63 else value
        return signed if -EXACT <= signed <= EXACT else Pairs([("$int", str(signed))])
    if number == 5:
        decoded = struct.unpack("<d", value)[0]
        if math.isnan(decoded):
            return Pairs([("$float", "NaN")])
        if math.isinf(decoded):
            return Pairs([("$float", "Infinity" if decoded > 0 else "-Infinity")])
        return decoded
    if number == 6:
        return value != 0
    if number == 8:
        return Pairs([("$enum", last_text(value, 1) or ""), ("variant", last_text(value, 2) or "")])
    if number == 17:
        return show_media(value)
    if number == 19:
        return Pairs([("$bytes", base64.b64encode(value).decode()), ("length", len(value))])
    digits = text((20, 2, value))
    if not re.fullmatch("-?[0-9a-fA-F]+", digits):
        raise Malformed("InvalidHex")
    sign = "-" if digits.startswith("-") else ""
    return Pairs([("$bigint", sign + "0x" + digits[len(sign):])])


def show(message, levels):
    """The value as JSON, containers up to so many levels."""
    found = member(message)
    if not found:
        return Pairs([("$unknown", True)])
    number, value = found
    name = last_text(value, 1) if number == 7 else None
    if number == 7 and name == OMITTED:
        return show_omitted(value)
    if number not in (7, 11, 12):
        return show_scalar(number, value)
    if levels == 0:
        return Pairs([("$cut", "depth")])
    if number == 11:
        return [show(item, levels - 1) for item in items(value, 2)]
    shown = Pairs([("$class", name or "")] if number == 7 else [])
    for one in items(value, 2 if number == 7 else 3):
        key, inner = entry(one)
        shown.append((data_key(key), show(inner, levels - 1)))
    return shown


KINDS = {2: "null", 3: "string", 4: "int", 5: "float", 6: "bool", 7: "class", 8: "enum", 11: "list", 12: "map",
         17: "media", 19: "bytes", 20: "bigint"}
ITEMS = {"class": 2, "list": 2, "map": 3}


def kind_of(message):
    found = member(message)
    if not found:
        return "unknown", b""
    if found[0] == 7 and last_text(found[1], 1) == OMITTED:
        return "omitted", b""
    return KINDS[found[0]], found[1]


def walk(message, steps):
    """(steps taken, message there, its kind, how many items it has or None); steps are indexes and keys."""
    for taken, step in enumerate(steps):
        kind, content = kind_of(message)
        found = None
        if kind == "list" and isinstance(step, int):
            inside = items(content, 2)
            found = inside[step] if step < len(inside) else None
        elif kind in ("map", "class") and isinstance(step, str):
            for one in items(content, ITEMS[kind]):
                key, value = entry(one)
                found = value if key == step else found
        if found is None:
            return taken, message, kind, None
        message = found
    kind, content = kind_of(message)
    return len(steps), message, kind, len(items(content, ITEMS[kind])) if kind in ITEMS else None


def path_text(rng, steps):
    """A path in one of its spellings."""
    out = rng.choice(("$", ""))
    for at, step in enumerate(steps):
        if isinstance(step, int):
            out += f"[{step}]"
        elif re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", step) and rng.random() < 0.7:
            out += ("" if at == 0 and not out and rng.random() < 0.5 else ".") + step
        else:
            quote = rng.choice("\"'")
            escaped = "".join(escape_key(rng, letter, quote) for letter in step)
            out += "[" + quote + escaped + quote + "]"
    return out


def escape_key(rng, letter, quote):
    if letter in ("\\", quote):
        return "\\" + letter
    if letter == "\0" or rng.random() < 0.1:
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2))
    return letter


# Making bodies.


def put_varint(value, extra=0):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    for _ in range(extra):
        out.append(value | 0x80)
        value = 0
    out.append(value)
    return bytes(out)


def put(number, content):
    return put_varint(number << 3 | 2) + put_varint(len(content)) + content


class Maker:
    """Random bodies; odd ones have fields that a reader must pass over, members that repeat, needless zeros."""

    KEYS = ("a", "b", "name", "$id", "", "a b", "it's", "\u20ac", "x\"y", "back\\slash", "\0", "\U0001f600", "items",
            "0")

    def __init__(self, rng, odd=False):
        self.rng = rng
        self.odd = odd

    def text(self):
        rng = self.rng
        letters = rng.choice(("abc <&>\"'/\\", "\u00e9\u20ac\U0001f600\u2028\u202e", "\0\n\r\t\x1b\x7f\x85"))
        return "".join(rng.choice(letters) for _ in range(rng.choice((0, 1, 3, 30)))).encode()

    def noise(self):
        if not self.odd or self.rng.random() < 0.7:
            return b""
        return self.rng.choice((put(9, b"\xff\x00"), put_varint(13 << 3) + put_varint(7, extra=2),
                                put_varint(99 << 3 | 5) + b"1234", put_varint(16 << 3 | 1) + b"12345678", put(21, b"")))

    def int(self):
        rng = self.rng
        return rng.choice((0, 1, -1, rng.getrandbits(8), rng.getrandbits(64) - 2**63, EXACT, -EXACT, EXACT + 1,
                           -EXACT - 1)) % 2**64

    def float(self):
        rng = self.rng
        return rng.choice((b"\0" * 8, struct.pack("<d", rng.uniform(-1e6, 1e6)), rng.randbytes(8),
                           struct.pack("<d", float("inf")), struct.pack("<d", float("-inf")), b"\xff" * 8))

    def leaf(self):
        rng = self.rng
        return rng.choice((
            lambda: put(2, b""), lambda: put(3, self.text()), lambda: put_varint(4 << 3) + put_varint(self.int()),
            lambda: put_varint(5 << 3 | 1) + self.float(), lambda: put_varint(6 << 3) + put_varint(rng.getrandbits(1)),
            lambda: put(8, put(1, self.text()) + put(2, b"Red")),
            lambda: put(19, rng.randbytes(rng.choice((0, 1, 40)))),
            lambda: put(20, rng.choice((b"ff", b"-1", b"0", b"-deadbeefdeadbeefdeadbeef"))), self.media, self.omitted,
            lambda: b"",
        ))()

    def media(self):
        rng = self.rng
        source = put(rng.choice((3, 4, 5)), self.text()) if rng.random() < 0.8 else b""
        mime = put(2, b"image/png") if rng.random() < 0.5 else b""
        return put(17, put_varint(1 << 3) + put_varint(rng.randint(0, 7)) + mime + source)

    def omitted(self):
        reason = put(2, put(1, b"reason") + put(2, put(3, b"cyclicReference")))
        return put(7, put(1, OMITTED.encode()) + reason + put(2, put(1, b"message") + put(2, put(3, self.text()))))

    def container(self, levels):
        rng = self.rng
        kind = rng.choice((7, 11, 12))
        inside = [self.value(levels - 1) for _ in range(rng.choice((0, 1, 2, 5)))]
        if kind == 11:
            return put(11, b"".join(put(2, one) + self.noise() for one in inside))
        entries = [put(1, rng.choice(self.KEYS).encode()) + put(2, one) + self.noise() for one in inside]
        if kind == 12:
            return put(12, b"".join(put(3, one) for one in entries))
        more = put(3, b"\xff not looked at") if self.odd else b""
        return put(7, put(1, self.text()) + b"".join(put(2, one) for one in entries) + more)

    def value(self, levels):
        made = self.container(levels) if levels and self.rng.random() < 0.6 else self.leaf()
        if self.odd and self.rng.random() < 0.1:
            made = self.leaf() + made
        return made + self.noise()

    def steps(self, message):
        """A path that leads somewhere, for the most part."""
        rng, steps = self.rng, []
        while rng.random() < 0.85:
            kind, content = kind_of(message)
            if kind not in ITEMS or rng.random() < 0.1:
                if rng.random() < 0.3:
                    steps.append(rng.choice((0, 7, 2**64 - 1, "name", "$class")))
                break
            inside = items(content, ITEMS[kind])
            if not inside:
                break
            at = rng.randrange(len(inside))
            steps.append(at if kind == "list" else entry(inside[at])[0])
            message = walk(message, steps[-1:])[1]
        return steps
