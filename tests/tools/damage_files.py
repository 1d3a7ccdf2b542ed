"""Damages to the encoded files and the directories of a generated store.

Each function answers one line that says what it did, or None where it found nothing to do.
"""

import storebytes as sb

DAMAGES = []
U64_MAX = 2**64 - 1
BIG = (0, 1, 5, 2**32, 2**63, U64_MAX - 1, U64_MAX)


def on_files(function):
    DAMAGES.append(function)
    return function


def pick(rng, items):
    return rng.choice(items) if items else None


def segments(store, plane=None):
    """Names of all segment files that are still regular files."""
    planes = ("meta", "data") if plane is None else (plane,)
    return sorted(parts for parts, content in store.files.items()
                  if len(parts) == 4 and parts[2] in planes and isinstance(content, bytes))


def directories(store):
    return sorted(parts for parts, content in store.files.items() if len(parts) == 3 and content == ("dir", None))


def place(parts):
    return "/".join(parts)


@on_files
def remove_segment(rng, store):
    plane = rng.choice(("meta", "data"))
    names = segments(store, plane)
    if not names:
        return None
    parts = rng.choice((names[0], names[-1], rng.choice(names)))
    del store.files[parts]
    return place(parts)


@on_files
def remove_many_segments(rng, store):
    names = segments(store)
    gone = [parts for parts in names if rng.random() < 0.4]
    for parts in gone:
        del store.files[parts]
    return "%d of %d" % (len(gone), len(names))


@on_files
def truncate(rng, store):
    parts = pick(rng, segments(store))
    if not parts:
        return None
    content = store.files[parts]
    keep = rng.choice((0, 1, 31, 32, 50, len(content) - 1, rng.randint(0, len(content))))
    content = content[:keep]
    store.files[parts] = sb.reseal(content + bytes(32)) if rng.random() < 0.5 else content
    return "%s to %d" % (place(parts), keep)


@on_files
def extend(rng, store):
    parts = pick(rng, segments(store))
    if not parts:
        return None
    content = store.files[parts]
    sealed = sb.seal(content[:-32] + b"\0")
    store.files[parts] = rng.choice((content + b"\0", sealed, b"\0" + content, content + content))
    return place(parts)


@on_files
def flip_bit(rng, store):
    return change_byte(rng, store, False)


@on_files
def flip_bit_and_seal(rng, store):
    return change_byte(rng, store, True)


@on_files
def flip_late_bit_and_seal(rng, store):
    return change_byte(rng, store, True, 50)


def change_byte(rng, store, sealed, first=0):
    parts = pick(rng, [parts for parts in segments(store) if len(store.files[parts]) > first + 32])
    if not parts:
        return None
    content = bytearray(store.files[parts])
    at = rng.randrange(first, len(content) - (32 if sealed else 0))
    content[at] ^= 1 << rng.randint(0, 7)
    store.files[parts] = sb.reseal(bytes(content)) if sealed else bytes(content)
    return "%s at %d" % (place(parts), at)


@on_files
def wild_number_and_seal(rng, store):
    """Eight bytes somewhere become a large number."""
    parts = pick(rng, [parts for parts in segments(store) if len(store.files[parts]) > 60])
    if not parts:
        return None
    content = bytearray(store.files[parts])
    at = rng.randrange(8, len(content) - 40)
    content[at: at + 8] = sb.u64(rng.choice(BIG))
    store.files[parts] = sb.reseal(bytes(content))
    return "%s at %d" % (place(parts), at)


def patch_header(rng, store, at, new):
    parts = pick(rng, [parts for parts in segments(store) if len(store.files[parts]) > 60])
    if not parts:
        return None
    content = store.files[parts]
    store.files[parts] = sb.reseal(content[:at] + new + content[at + len(new):])
    return place(parts)


@on_files
def other_version(rng, store):
    return patch_header(rng, store, 8, sb.u16(rng.choice((0, 1, 3, 65535))))


@on_files
def other_euid(rng, store):
    return patch_header(rng, store, 18, rng.randbytes(16))


@on_files
def other_sequence(rng, store):
    return patch_header(rng, store, 10, sb.u64(rng.choice((0, 1, 2, 3, U64_MAX))))


@on_files
def other_magic(rng, store):
    return patch_header(rng, store, 0, rng.choice((b"BAMLMET1", b"BAMLDAT1", b"BAMLMET2")))


@on_files
def swap_files(rng, store):
    names = segments(store)
    if len(names) < 2:
        return None
    one, two = rng.sample(names, 2)
    store.files[one], store.files[two] = store.files[two], store.files[one]
    return "%s with %s" % (place(one), place(two))


@on_files
def odd_name(rng, store):
    """Names that are segments only by their look, or too high, or no segments at all."""
    directory = pick(rng, directories(store))
    if not directory:
        return None
    plane = directory[2]
    name = rng.choice((
        "18446744073709551615.baml" + plane, "18446744073709551616.baml" + plane, "99999999999999999999.baml" + plane,
        "00000000000000000000.baml" + plane, "0000000000000000001.baml" + plane, "000000000000000000001.baml" + plane,
        "00000000000000000001.baml" + ("data" if plane == "meta" else "meta"), "00000000000001000001.baml" + plane,
        "0000000000000000000a.baml" + plane, "+0000000000000000001.baml" + plane, ".hidden", "README",
        "00000000000000000007.baml%s.tmp" % plane, "00000000000000000001.BAML" + plane.upper(),
        "\u0661" * 20 + ".baml" + plane, "00000000000000000030.baml" + plane, "00000000000000000001",
    ))
    names = segments(store, plane)
    store.files[(*directory, name)] = rng.choice((b"", b"junk", store.files[rng.choice(names)] if names else b""))
    return place((*directory, name))


@on_files
def not_a_file(rng, store):
    parts = pick(rng, segments(store))
    if not parts:
        return None
    kind = rng.choice(("dir", "fifo", "link"))
    target = rng.choice(("/nowhere", "copy", "../../../../../..", parts[3]))
    if target == "copy":
        store.files[(*parts[:3], "copy")] = store.files[parts]
    store.files[parts] = (kind, target)
    return "%s %s" % (kind, place(parts))


@on_files
def one_more_that_is_not_a_file(rng, store):
    directory = pick(rng, directories(store))
    if not directory:
        return None
    names = [parts[3] for parts in segments(store, directory[2]) if parts[:3] == directory]
    highest = max((int(name[:20]) for name in names if name.isascii() and name[:20].isdecimal()), default=0)
    kind = rng.choice(("dir", "fifo", "link"))
    if highest > 10**6:
        return None
    parts = (*directory, "%020d.baml%s" % (highest + rng.choice((1, 1, 3)), directory[2]))
    store.files[parts] = (kind, "/nowhere")
    return "%s %s" % (kind, place(parts))


@on_files
def remove_directory(rng, store):
    directory = pick(rng, directories(store))
    if not directory:
        return None
    for parts in [parts for parts in store.files if parts[:3] == directory]:
        del store.files[parts]
    if rng.random() < 0.3:
        store.files[directory] = b"a file"
    return place(directory)


@on_files
def remove_both_directories(rng, store):
    stream = pick(rng, store.streams)
    if not stream:
        return None
    for parts in [parts for parts in store.files if parts[:2] == ("streams", stream.name) and len(parts) > 2]:
        del store.files[parts]
    if rng.random() < 0.3:
        store.files["streams", stream.name] = ("dir", None)
    return stream.name


@on_files
def upper_case_stream(rng, store):
    stream = pick(rng, store.streams)
    if not stream or stream.name == stream.name.upper():
        return None
    moved = {parts: content for parts, content in store.files.items() if parts[:2] == ("streams", stream.name)}
    for parts, content in moved.items():
        del store.files[parts]
        store.files[("streams", stream.name.upper(), *parts[2:])] = content
    return stream.name


@on_files
def stray_stream_entry(rng, store):
    name = rng.choice(("%032x" % rng.getrandbits(128), "notes.txt", "0" * 31, "g" * 32, "0" * 33, ".tmp"))
    store.files["streams", name] = rng.choice((b"", ("dir", None), ("fifo", None), ("link", "/nowhere")))
    return "%s %s" % (name, store.files["streams", name])


@on_files
def odd_stream_lock(rng, store):
    stream = pick(rng, store.streams)
    if not stream:
        return None
    choice = rng.choice((b"text", ("dir", None), ("fifo", None), ("link", "/nowhere"), None))
    if choice is None:
        store.files.pop(("streams", stream.name, "stream.lock"), None)
    elif ("streams", stream.name, "stream.lock") in store.files:
        store.files["streams", stream.name, "stream.lock"] = choice
    return "%s %s" % (stream.name, choice)


@on_files
def damaged_object(rng, store):
    objects = sorted(parts for parts in store.files if parts[0] == "cas")
    parts = rng.choice(objects)
    content = bytearray(store.files[parts])
    content[rng.randrange(len(content))] ^= 1
    store.files[parts] = bytes(content)
    return place(parts)


@on_files
def stray_planes(rng, store):
    stream = pick(rng, store.streams)
    if not stream:
        return None
    store.files["streams", stream.name, "health", "00000000000000000001.varvehealth"] = b"later"
    store.files["tmp", "orphan"] = b"orphan"
    store.files["runs", "old"] = b"legacy"
    return stream.name
