"""Runs a command with sockets of the given kinds as descriptors 3, 4, ..., as a service manager does.

usage: hand_over.py KIND[,KIND...] COUNT -- COMMAND...    KIND: tcp, tcp-open, unix:PATH, udp, deaf, file
COUNT is what LISTEN_FDS says; "-": LISTEN_PID names another process.
"""

import os
import socket
import sys


def make(kind):
    if kind == "file":
        return open("/dev/null", "rb")
    family = socket.AF_UNIX if kind.startswith("unix:") else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
    if kind.startswith("unix:"):
        s.bind(kind[5:])
    else:
        s.bind(("0.0.0.0" if kind == "tcp-open" else "127.0.0.1", 0))
    if kind not in ("udp", "deaf"):
        s.listen(16)
    return s


def main():
    kinds, count = sys.argv[1].split(","), sys.argv[2]
    made = [make(kind) for kind in kinds]
    copies = [os.dup(m.fileno()) for m in made]
    high = [os.dup2(c, 100 + i) for i, c in enumerate(copies)]
    for i, fd in enumerate(high):
        os.dup2(fd, 3 + i, inheritable=True)
    os.environ["LISTEN_PID"] = str(os.getpid() + (count == "-"))
    os.environ["LISTEN_FDS"] = "1" if count == "-" else count
    os.execvp(sys.argv[4], sys.argv[4:])


main()
