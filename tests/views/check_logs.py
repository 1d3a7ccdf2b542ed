"""Log events and checkpoints of an execution, computed plainly from the reference reader's objects.

Used by check_views.py: `Logs(check, stream).run()` compares all answers about them.
"""

import datetime

from check_calls import ROLES, Calls, number
from refstore import U64_MAX, call_text, thread_text


class Logs(Calls):
    """The checks of one execution's log events, and of how far its recording has come."""

    def run(self):
        self.logs = list(enumerate(self.execution.logs)) if self.folds else []
        self.check_logs()
        self.check_checkpoint()

    # Log events.

    @staticmethod
    def at(log):
        """RFC 3339 of its time, where nanoseconds can hold it."""
        ns = log["timestamp_ms"] * 10**6
        if ns > U64_MAX:
            return None
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=log["timestamp_ms"])
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"

    def log_row(self, ordinal, log):
        call = log["call"]
        span = self.spans.get(call) if call is not None else None
        row = {
            "log": ordinal, "timestamp_ms": log["timestamp_ms"], "at": self.at(log), "level": log["level"],
            "event_name": log["event"], "message": log["message"], "distinct_id": log["distinct_id"],
            "call_id": call_text(call) if call is not None else None,
            "call_short_id": self.short(call, ".") if call is not None else None, "call_retained": span is not None,
            "thread_id": thread_text(call[:32]) if call is not None else None, "site_column": log["column"],
        }
        row.update(self.function("", span.start["function_id"] if span and span.start else None))
        row.update(self.site("site", log["site"]))
        row.update(self.value("context", log["context"]))
        row.update(self.value("data", log["data"]))
        return row

    @staticmethod
    def by_time(item):
        return item[1]["timestamp_ms"], item[0]

    def log_list(self, keep, limit=7, **query):
        """Compares one list: keep tells whether a log is in it."""
        wanted = [item for item in self.logs if keep(item[1])]
        if query.get("order") != "recorded":
            wanted.sort(key=self.by_time)
        items, answer = self.pages("/logs", limit, **query)
        what = "logs %s" % query
        self.equal(what, [self.log_row(*item) for item in wanted],
                   [dict(item, timestamp_ms=number(item["timestamp_ms"])) for item in items])
        if self.execution.unknown:
            self.equal(what, None, answer["population"])
            return
        levels = {}
        for _, log in self.logs:
            levels[log["level"]] = levels.get(log["level"], 0) + 1
        shown = list(levels)[:16]
        self.equal(what, {"logs": len(self.logs), "matched": len(wanted),
                          "levels": [{"level": name, "logs": levels[name]} for name in shown],
                          "other_levels": len(self.logs) - sum(levels[name] for name in shown)}, answer["population"])

    def check_logs(self):
        everything = lambda _log: True
        self.log_list(everything)
        self.log_list(everything, limit=1)
        self.log_list(everything, limit=1000, order="time")
        self.log_list(everything, limit=2, order="recorded")
        logs = [log for _, log in self.logs]
        texts = lambda name: sorted({log[name] for log in logs if log[name] is not None and "\0" not in log[name]})
        folded = lambda text: "".join(c.lower() if c.isascii() else c for c in text)
        holds = lambda text, part: text is not None and folded(part) in folded(text)
        for level in texts("level"):
            if "," not in level:
                self.log_list(lambda log: log["level"] is not None and folded(log["level"]) == folded(level),
                              level=level.upper() if level.isascii() else level)
        both = [level for level in texts("level") if "," not in level][:2]
        if both:
            self.log_list(lambda log: log["level"] is not None and folded(log["level"]) in map(folded, both),
                          level="," + ",".join(both))
        for event in texts("event")[:4]:
            self.log_list(lambda log: log["event"] == event, event=event)
        for text in (texts("message") + texts("event"))[:6]:
            part = text[1:3] or text
            self.log_list(lambda log: holds(log["message"], part) or holds(log["event"], part), q=part)
        self.log_list(lambda _log: False, event="no event has that name")
        self.check_log_places(logs)
        self.check_log_times(logs)
        if self.folds:
            self.equal("no call", 404, self.code("/logs", call="1.999999999"))
            self.equal("no thread", 404, self.code("/logs", thread="999999999"))
        for name, value in (("call", "x"), ("thread", "x"), ("since", "x"), ("until", "now"), ("order", "level"),
                            ("limit", 0), ("limit", 1001), ("cursor", "AAAA"), ("message", "x")):
            self.equal("logs %s=%s" % (name, value), 400, self.code("/logs", **{name: value}))
        self.equal("no time", 400, self.code("/logs", since=2, until=1))

    def check_log_places(self, logs):
        for call in sorted({log["call"] for log in logs if log["call"] is not None})[:4]:
            self.log_list(lambda log: log["call"] == call, call=call_text(call))
            if self.short(call, "."):
                self.log_list(lambda log: log["call"] == call, call=self.short(call, "."))
        for thread in sorted({log["call"][:32] for log in logs if log["call"] is not None})[:3]:
            keep = lambda log: log["call"] is not None and log["call"][:32] == thread
            self.log_list(keep, thread=thread_text(thread))
            if thread[:24] == self.execution.root[:24]:
                self.log_list(keep, thread=int.from_bytes(thread[24:], "big"))
        silent = sorted(set(self.spans) - {log["call"] for log in logs})
        if silent:
            self.log_list(lambda _log: False, call=call_text(silent[0]))

    def check_log_times(self, logs):
        times = sorted({log["timestamp_ms"] for log in logs})
        for at in times[::3]:
            ns = at * 10**6
            if ns > U64_MAX:
                continue
            self.log_list(lambda log: log["timestamp_ms"] >= at, since=ns)
            self.log_list(lambda log: log["timestamp_ms"] < at, until=ns)
            self.log_list(lambda log: log["timestamp_ms"] == at, since=ns, until=ns + 1)
            if at < 4 * 10**12:
                self.log_list(lambda log: log["timestamp_ms"] >= at, since=self.at({"timestamp_ms": at}))

    # Checkpoint.

    def waiting_values(self, span):
        """Values of what has happened that are selected and not there."""
        if span.start is None:
            return 0
        selected = [at for at in range(len(ROLES)) if span.start["roles"] >> at & 1]
        status = span.end["status"] if span.end else None
        waiting = 0 in selected and 0 not in span.values
        waiting += 1 in selected and status == 0 and 1 not in span.values
        return waiting + (2 in selected and status == 1 and span.terminal is None)

    def check_checkpoint(self):
        answer, execution, stream = self.get("/checkpoint"), self.execution, self.stream
        state = "ended" if execution.ended is not None else "running" if self.running else "abandoned"
        self.equal("checkpoint", (execution.ident, state, stream.alive),
                   (answer["execution_id"], answer["state"], answer["alive"]))
        committed = answer["committed"]
        snapshot = next(s for s in answer["snapshot"]["streams"] if s["euid"] == stream.euid.hex())
        self.equal("high water", snapshot["high_water"], committed["high_water"])
        self.equal("highest", {"meta": stream.meta_highest, "data": stream.data_highest},
                   {key: number(value) for key, value in committed["highest"].items()})
        self.equal("index", (execution.started_sequence, execution.ended_sequence),
                   (committed["start_meta_seq"], committed["end_meta_seq"]))
        self.equal("expected", execution.ended["count"] if execution.ended else None,
                   number(committed["groups_expected"]))
        if execution.ended is not None or execution.unknown:
            self.equal("nothing on its way", (None, None), (answer["in_flight"], answer["queued"]))
            return
        spans, nodes = self.spans.values(), self.check.nodes.values()
        begun = sum(1 for s in spans if s.start is not None)
        self.equal("in flight", {
            "calls": sum(n.open for n in nodes), "spans": sum(1 for s in spans if s.start and not s.end),
            "threads": sum(1 for t in execution.threads.values() if t.start and not t.end),
        }, {key: number(value) for key, value in answer["in_flight"].items()})
        self.equal("queued", {
            "spans": max(0, sum(n.selected for n in nodes) - begun),
            "values": sum(map(self.waiting_values, spans)),
            "errors": sum(1 for s in spans if s.terminal and s.terminal.get("capture", b"") and
                          s.terminal["capture"] not in self.errors),
            "contexts": sum(1 for c in execution.contexts.values() if c.tuple is None),
        }, {key: number(value) for key, value in answer["queued"].items()})
