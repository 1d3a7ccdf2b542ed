#!/usr/bin/env python3
"""A proxy for tests with curl (http_proxy): hands requests on as they are, and holds each answer against the API's
OpenAPI document. Prints its port; ends on SIGTERM, and has then written a line for each fault and `N answers`.

usage: answers.py DOCUMENT REPORT
"""

import email.parser
import os
import re
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import openapi  # noqa: E402

KEPT = 64 << 20  # of an answer; a longer one is handed on, and not looked at


class Report:
    def __init__(self, document, path):
        with open(document, "rb") as f:
            self.document = openapi.Document(openapi.parse(f.read()))
        self.file = open(path, "w", encoding="utf-8")
        self.lock, self.answers = threading.Lock(), 0

    def look(self, method, target, data):
        while data.startswith(b"HTTP/1.1 1"):
            data = data.partition(b"\r\n\r\n")[2]
        head, end, body = data.partition(b"\r\n\r\n")
        if not end:
            return
        line, _, lines = head.decode("latin-1").partition("\r\n")
        status = int(line.split()[1])
        headers = email.parser.HeaderParser().parsestr(lines)
        if (headers["Transfer-Encoding"] or "") == "chunked" and method != "HEAD":
            body = unchunk(body)
        with self.lock:
            self.answers += 1
            for fault in self.document.check(method, target, status, headers, body):
                self.file.write("%s %s: %d: %s\n" % (method, target, status, fault))

    def end(self):
        with self.lock:
            self.file.write("%d answers\n" % self.answers)
            self.file.close()


def unchunk(body):
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        n = int(size, 16)
        whole, body = whole + body[:n], body[n + 2:]
        if n == 0:
            break
    return whole


def hand_on(client, upstream):
    """What the client says after its head: a body."""
    try:
        while True:
            part = client.recv(65536)
            if not part:
                break
            upstream.sendall(part)
    except OSError:
        pass


def serve(client, report):
    with client:
        data = b""
        while b"\r\n\r\n" not in data:
            part = client.recv(65536)
            if not part:
                return
            data += part
        head, _, rest = data.partition(b"\r\n\r\n")
        line, _, headers = head.partition(b"\r\n")
        method, url, version = line.split(b" ")
        host, port, target = re.match(rb"http://([^:/]+):([0-9]+)(.*)$", url, re.S).groups()
        kept = [h for h in headers.split(b"\r\n") if not h.lower().startswith((b"proxy-connection", b"connection:"))]
        head = b"\r\n".join([b" ".join((method, target, version)), *kept, b"Connection: close"]) + b"\r\n\r\n"
        answer = b""
        try:
            with socket.create_connection((host.decode(), int(port)), 120) as upstream:
                upstream.sendall(head + rest)
                threading.Thread(target=hand_on, args=(client, upstream), daemon=True).start()
                while True:
                    part = upstream.recv(65536)
                    if not part:
                        break
                    answer += part if len(answer) < KEPT else b""
                    client.sendall(part)
        except OSError:
            return
        finally:
            try:
                client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if len(answer) < KEPT:
            report.look(method.decode(), target.decode("latin-1"), answer)


def main():
    report = Report(*sys.argv[1:3])
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, report), daemon=True).start()

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=accept, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    signal.sigwait({signal.SIGTERM})
    report.end()
    os._exit(0)


main()
