#!/usr/bin/env python3
"""Requests byte for byte, as no client library would write them, to `varve serve`; speaks TAP.

usage: requests_test.py VARVE STORE
"""

import errno
import http.client
import socket
import subprocess
import sys

OK = b"HTTP/1.1 200 OK"
HEAD = b"GET /api/v1 HTTP/1.1\r\nHost: localhost\r\n"


class Test:
    def __init__(self, varve, store, *arguments):
        self.process = subprocess.Popen([varve, "serve", store, "--no-index", "--listen", "127.0.0.1:0", *arguments],
                                        stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().decode().rsplit(":", 1)[1].rstrip("/\n"))
        self.n, self.failed = 0, False

    def stop(self):
        self.process.terminate()
        self.ok(self.process.wait(60) == 0, "the server ends well")

    def ok(self, good, name, got=""):
        self.n += 1
        self.failed |= not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.n, name))
        if not good:
            print("# %r" % (got,))
        sys.stdout.flush()

    def talk(self, data, parts=None):
        """All that comes back until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as s:
            got = b""
            try:
                for part in parts or [data]:
                    s.sendall(part)
                s.shutdown(socket.SHUT_WR)
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    got += part
            except OSError as e:  # who refuses may hang up before all is sent, and even before we say that it is
                if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                    raise
            return got

    def statuses(self, data, parts=None):
        """Of all answers on the connection; the number of those that are problems of this server's too."""
        rest, found = self.talk(data, parts), []
        while rest.startswith(b"HTTP/1."):
            head, _, rest = rest.partition(b"\r\n\r\n")
            found.append(int(head.split()[1]))
            lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            rest = rest[int(lines.get(b"content-length", 0)):]
        return found

    def want(self, name, data, *statuses):
        got = self.statuses(data)
        self.ok(got == list(statuses), name, got)

    def among(self, name, data, *statuses):
        got = self.statuses(data)
        self.ok(len(got) <= 1 and (not got or got[0] in statuses), name, got)


def with_headers(*lines, end=b"\r\n\r\n"):
    return b"GET /api/v1 HTTP/1.1\r\n" + b"\r\n".join(lines) + end


HOST = b"Host: localhost"


def heads(t):
    t.want("a plain head", with_headers(HOST), 200)
    t.want("a flame graph for who has said all",
           b"GET /api/v1/flame?execution=latest HTTP/1.1\r\n" + HOST + b"\r\n\r\n", 200)
    t.want("blanks around values", with_headers(b"Host:  localhost", b"X-A:", b"X-B: \t b  "), 200)
    t.want("empty lines before it", b"\r\n\r\n" + with_headers(HOST), 200)
    got = t.statuses(None, [with_headers(HOST, b"X: y")[i:i + 1] for i in range(len(with_headers(HOST, b"X: y")))])
    t.ok(got == [200], "byte by byte", got)
    t.want("two Hosts", with_headers(HOST, HOST), 421)
    t.want("two Hosts, the good one last", with_headers(b"Host: evil.example", HOST), 421)
    t.want("two Hosts in one", with_headers(b"Host: localhost, evil.example"), 421)
    t.want("no Host", with_headers(b"X: y"), 421)
    t.want("HTTP/1.0 without Host", b"GET /api/v1 HTTP/1.0\r\n\r\n", 421)
    t.want("HTTP/1.0 with Host", b"GET /api/v1 HTTP/1.0\r\nHost: localhost\r\n\r\n", 200)
    t.want("an empty Host", with_headers(b"Host:"), 421)
    t.want("Host with a blank before the colon", with_headers(b"Host : localhost"), 400)
    t.want("and a good one", with_headers(HOST, b"Host : evil.example"), 400)
    t.want("Host of another", with_headers(b"Host: evil.example"), 421)
    t.want("Host that begins like ours", with_headers(b"Host: localhost.evil.example"), 421)
    t.want("Host with a user", with_headers(b"Host: localhost@evil.example"), 421)
    t.want("Host with another port", with_headers(b"Host: localhost:1"), 421)
    t.want("Host with our port", with_headers(b"Host: LOCALHOST:%d" % t.port), 200)
    t.want("Host with no port behind the colon", with_headers(b"Host: localhost:"), 421)
    t.want("a folded header", with_headers(HOST, b"X: a", b" b"), 400)
    t.want("folded with a tab", with_headers(HOST, b"X: a", b"\tb", b"Y: z"), 400)
    t.want("a folded Host", with_headers(b"Host:", b" localhost"), 400)
    t.want("lines that end in LF", with_headers(HOST, b"X: y").replace(b"\r", b""), 400)
    t.want("one line that ends in LF", with_headers(HOST, b"X: y\nZ: w"), 400)
    t.want("the last line ends in LF", with_headers(HOST, end=b"\n\r\n"), 400)
    t.want("the empty line ends in LF", with_headers(HOST, end=b"\r\n\n"), 400)
    t.want("a bare CR", with_headers(HOST, b"X: y\rZ: w"), 400)
    t.want("NUL in a header", with_headers(HOST, b"X: a\0b"), 400)
    t.among("NUL in a name", with_headers(HOST, b"X\0: a"), 400)
    t.among("a line without a colon", with_headers(HOST, b"nothing"), 400)
    t.among("an empty name", with_headers(HOST, b": x"), 400)
    t.want("two blanks in the request line", b"GET  /api/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)
    t.want("blanks behind the target", b"GET /api/v1  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400)
    t.among("no version", b"GET /api/v1\r\nHost: localhost\r\n\r\n", 400, 505)
    t.among("another version", b"GET /api/v1 HTTP/2.0\r\nHost: localhost\r\n\r\n", 400, 505)
    t.among("a header of 40 KB", with_headers(HOST, b"X: " + b"y" * 40000), 200, 431)
    t.among("a header of 400 KB", with_headers(HOST, b"X: " + b"y" * 400000), 431)
    t.among("a target of 40 KB", b"GET /" + b"x" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, 414)
    t.among("a target of 400 KB", b"GET /" + b"x" * 400000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414)
    t.among("10,000 headers", with_headers(HOST, *[b"X%d: y" % i for i in range(10000)]), 431)


def targets(t):
    for target in (b"/api%2fv1", b"/api%2Fv1", b"/api%5cv1", b"/api\\v1", b"/api/v1%00", b"/../etc/passwd", b"/..",
                   b"/%2e%2e/etc", b"/%2E./x", b"/a/..%2f", b"/%252e%252e/x%2f", b"/caf\xc3\xa9", b"/\x01", b"/a%",
                   b"/a%1", b"/a%zz", b"http://localhost/api/v1", b"http://evil.example/", b"*", b"localhost:80"):
        t.want("target %r" % target.decode("latin-1"), b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target, 400)
    t.want("two slashes", b"GET //evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404)
    t.want("encoded letters", b"GET /%61pi/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
    t.want("encoded twice is not decoded twice", b"GET /%2561pi/v1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404)


def bodies(t):
    post = b"POST /api/v1 HTTP/1.1\r\nHost: localhost\r\n"
    after = with_headers(HOST)
    t.want("a body is read, and no method here", post + b"Content-Length: 5\r\n\r\nhello" + after, 405, 200)
    t.want("in chunks", post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + after, 405, 200)
    t.want("two lengths", post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400)
    t.want("the same length twice", post + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400)
    t.among("two lengths in one", post + b"Content-Length: 5, 6\r\n\r\nhello", 400)
    t.want("length and chunks", post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400)
    t.want("chunks and length", post + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400)
    t.want("of GET too", HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400)
    t.want("two codings", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400)
    t.want("an unknown coding", post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400)
    t.want("coding twice", post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400)
    t.among("a negative length", post + b"Content-Length: -1\r\n\r\n", 400)
    t.among("a length with a sign", post + b"Content-Length: +5\r\n\r\nhello", 400)
    t.among("a huge length", post + b"Content-Length: 99999999999999999999999\r\n\r\n", 400, 413)
    t.among("a body without end", post + b"Content-Length: 300000\r\n\r\n" + b"x" * 300000, 405, 413)
    t.want("nothing behind a refused head is read as a request",
           post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + with_headers(HOST), 400)
    t.want("nor behind two Hosts and a body",
           b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 5\r\n\r\nhello", 421)


def connections(t):
    t.want("100 requests in a row without waiting", with_headers(HOST) * 100, *[200] * 100)
    t.want("a problem does not end a connection", HEAD.replace(b"v1", b"v1/x") + b"\r\n" + with_headers(HOST), 404, 200)
    t.want("Connection: close", with_headers(HOST, b"Connection: close") + with_headers(HOST), 200)
    with socket.create_connection(("127.0.0.1", t.port), 60) as s:
        s.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        got = s.recv(4096)
        t.ok(b" 100 " in got or b" 200 " in got, "Expect", got)
    slow = []
    for _ in range(100):
        s = socket.create_connection(("127.0.0.1", t.port), 60)
        s.sendall(b"GET /api/v1 HTTP/1.1\r\nHost: loc")
        slow.append(s)
    t.want("among 100 that never end their request", with_headers(HOST), 200)
    for s in slow[:50]:
        s.sendall(b"alhost\r\n\r\n")
    t.ok(all(s.recv(15) == OK for s in slow[:50]), "who does is answered")
    for s in slow:
        s.close()


def origins(t):
    for name, origin in (("null", b"null"), ("of a rebound page", b"http://evil.example"), ("empty", b""),
                         ("of another scheme", b"https://localhost:%d" % t.port),
                         ("without a port", b"http://localhost"),
                         ("of an address", b"http://192.0.2.1:%d" % t.port),
                         ("with a path", b"http://localhost:%d/" % t.port)):
        t.want("Origin %s" % name, with_headers(HOST, b"Origin: " + origin), 403)
    t.want("Origin and Host of a rebound page",
           with_headers(b"Host: evil.example", b"Origin: http://evil.example"), 421)
    t.want("rebound without an Origin", with_headers(b"Host: evil.example"), 421)
    t.want("two Origins", with_headers(HOST, *[b"Origin: http://localhost:%d" % t.port] * 2), 403)
    for host in (b"localhost", b"127.0.0.1", b"[::1]", b"LOCALHOST"):
        t.want("Origin %s" % host.decode(), with_headers(HOST, b"Origin: http://%s:%d" % (host, t.port)), 200)
    t.want("of a follower too",
           b"GET /api/v1/follow HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403)


def negotiation(t):
    def ask(target="/api/v1/executions", method="GET", **headers):
        c = http.client.HTTPConnection("127.0.0.1", t.port, timeout=60)
        c.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            c.putheader(name.replace("_", "-"), value)
        c.endheaders()
        r = c.getresponse()
        body = r.read()
        c.close()
        return r, body

    for accept, coding in (("gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd", "zstd"), ("zstd;q=0.5, gzip", "gzip"),
                           ("gzip;q=0", None), ("gzip;q=0.0, zstd;q=0.000", None), ("*", "zstd"), ("*;q=0", None),
                           ("gzip;q=0, *", "zstd"), ("GZIP", "gzip"), ("identity", None), ("br, deflate", None),
                           ("xgzip", None), ("gzip;q=0.001", "gzip"), ("gzip ; q=1.0", "gzip"), ("", None),
                           (",,gzip,", "gzip"),
                           ("identity;q=1, gzip;q=0.5", "gzip"), ("gzip;q=foo", None)):
        r, _ = ask(Accept_Encoding=accept)
        t.ok(r.headers["Content-Encoding"] == coding, "Accept-Encoding: %s" % accept, r.headers["Content-Encoding"])
        t.ok(r.headers["Vary"] == "Accept-Encoding", "Vary", r.headers["Vary"])
    tag = ask()[0].headers["ETag"]
    coded = ask(Accept_Encoding="gzip")[0].headers["ETag"]
    t.ok(tag != coded, "a coding has its own tag")
    for value, status in ((tag, 304), ('"x", %s' % tag, 304), ('W/%s' % tag, 304), ('"x",W/%s,"y"' % tag, 304),
                          ("*", 304),
                          (" * ", 304), ('"x"', 200), (tag.strip('"'), 200), ('"x%s' % tag[1:], 200),
                          ('%sx"' % tag[:-1], 200),
                          ("", 200), ('"', 200), ('W/', 200), (coded, 304), ('"%s, %s"' % (tag[1:-1], tag[1:-1]), 200)):
        r, body = ask(If_None_Match=value)
        t.ok((r.status, status == 304 and bool(body)) == (status, False),
             "If-None-Match: %s" % value.replace(tag[1:-1], "TAG"), r.status)
        head, _ = ask(method="HEAD", If_None_Match=value)
        t.ok(head.status == status, "of HEAD too", head.status)
    r, _ = ask(If_None_Match=tag)
    same = r.headers["ETag"] == tag and r.headers["Vary"] == "Accept-Encoding"
    t.ok(same, "304 says what 200 would", r.headers.items())


def headers(t):
    def get(target, accept="*/*", method="GET", host="localhost"):
        c = http.client.HTTPConnection("127.0.0.1", t.port, timeout=60)
        c.request(method, target, headers={"Accept": accept, "Host": host})
        r = c.getresponse()
        r.read()
        c.close()
        return r

    plain = "default-src 'none'; sandbox"
    page = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
    for name, r, policy in (
            ("a view", get("/api/v1/executions"), plain), ("a stream", get("/api/v1/flame?execution=latest"), plain),
            ("a problem", get("/api/v1/nothing"), plain), ("a refused Host", get("/", host="evil.example"), plain),
            ("a refused method", get("/", method="POST"), plain), ("HEAD", get("/api/v1", method="HEAD"), plain),
            ("text", get("/"), plain), ("the page", get("/", "text/html"), page), ("a script", get("/main.js"), plain)):
        found = {n: r.headers.get_all(n) for n in ("X-Content-Type-Options", "Referrer-Policy",
                                                   "Cross-Origin-Resource-Policy", "Content-Security-Policy")}
        t.ok(found == {"X-Content-Type-Options": ["nosniff"], "Referrer-Policy": ["no-referrer"],
                       "Cross-Origin-Resource-Policy": ["same-origin"], "Content-Security-Policy": [policy]},
             "headers of %s" % name, found)
        t.ok(not any(n.lower().startswith("access-control") for n in r.headers), "no CORS header", r.headers.items())
    for accept, kind in (("text/html", "text/html"), ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"),
                         ("*/*", "text/plain"), ("text/plain", "text/plain"), ("application/json", "text/plain"),
                         ("text/html;q=0", "text/plain"), ("text/plain, text/html;q=0.5", "text/plain"),
                         ("TEXT/HTML", "text/html"), ("xtext/html", "text/plain")):
        got = get("/", accept).headers["Content-Type"].split(";")[0]
        t.ok(got == kind, "Accept: %s" % accept, got)


def main():
    t = Test(*sys.argv[1:3])
    try:
        for part in (heads, targets, bodies, connections, origins, negotiation, headers):
            part(t)
    finally:
        t.stop()
    print("1..%d" % t.n)
    sys.exit(t.failed)


if __name__ == "__main__":
    main()
