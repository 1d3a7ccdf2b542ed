"""Where a reference reader finds a store: a directory or a tar archive, seen as a tree of kinds and bytes."""

import errno
import fcntl
import os
import stat
import tarfile


class StoreError(Exception):
    """A named fault of the store; the name is what the documents show."""

    def __init__(self, name):
        super().__init__(name)
        self.name = name


class DirectorySource:
    """A store in the file system. Links are never followed, and only regular files are read."""

    def __init__(self, root):
        self.root = root

    def path(self, parts):
        return os.path.join(self.root, *parts)

    def kind(self, *parts):
        try:
            mode = os.lstat(self.path(parts)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISDIR(mode):
            return "dir"
        return "file" if stat.S_ISREG(mode) else "other"

    def names(self, *parts):
        return os.listdir(self.path(parts))

    def read(self, *parts):
        with open(self.path(parts), "rb") as file:
            return file.read()

    def locked(self, *parts):
        """Whether another open description holds the file exclusively; a file that can't be opened is not held."""
        try:
            fd = os.open(self.path(parts), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        except OSError as fault:
            return fault.errno == errno.EWOULDBLOCK
        finally:
            os.close(fd)


class TarSource:
    """A store inside a tar archive: nobody can be writing there, so nothing is ever locked."""

    def __init__(self, path):
        self.tree = {}
        self.members = {}
        entries = {}
        with tarfile.open(path) as archive:
            for member in archive:
                parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
                kind = "dir" if member.isdir() else "file" if member.isreg() else "other"
                entries[parts] = (kind, archive.extractfile(member).read() if kind == "file" else b"")
        base = self.find_root(entries)
        for parts, (kind, content) in entries.items():
            if parts[: len(base)] != base:
                continue
            inner = parts[len(base):]
            self.members[inner] = (kind, content)
            for depth in range(len(inner)):
                self.tree.setdefault(inner[:depth], set()).add(inner[depth])
                self.members.setdefault(inner[:depth], ("dir", b""))

    @staticmethod
    def find_root(entries):
        places = {parts[: at + 1] for parts in entries for at, part in enumerate(parts) if part == "profiles-v1"}
        if places:
            return min(places, key=len)
        return ()

    def kind(self, *parts):
        return self.members.get(parts, (None, b""))[0]

    def names(self, *parts):
        return list(self.tree.get(parts, ()))

    def read(self, *parts):
        return self.members[parts][1]

    def locked(self, *_parts):
        return False


def open_source(path):
    """The source for a store directory, the directory around `.baml`, `.baml` itself, or a tar archive."""
    if os.path.isfile(path):
        return TarSource(path)
    if os.path.basename(os.path.abspath(path)) != "profiles-v1":
        for inner in (".baml/profiles-v1", "profiles-v1"):
            if os.path.isdir(os.path.join(path, inner)):
                return DirectorySource(os.path.join(path, inner))
    if not os.path.isdir(path):
        raise StoreError("StoreNotFound")
    return DirectorySource(path)
