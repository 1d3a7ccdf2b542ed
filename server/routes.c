#include "config.h"

#include "server/routes.h"

#include "server/openapi.h"
#include "views/flame.h"
#include "views/segments.h"

#define HEX(n) "^[0-9a-f]{" #n "}$"
#define AS_OF {.name = "as_of", .pattern = HEX(64), .what = "the state of the store that a former answer named"}
#define PAGE                                                                                                          \
    {.name = "limit", .min = 1, .max = 1000, .what = "rows of a page (100)"},                                         \
    {.name = "cursor", .what = "the next of the page before"}
#define EXECUTION                                                                                                     \
    {.name = "execution", .required = true, .repeatable = true,                                                       \
     .what = "an id, latest or latest~N; up to 1000 together"}
#define BASE                                                                                                          \
    {.name = "base", .repeatable = true, .what = "executions to compare with: an id, latest or latest~N; up to 1000"}
#define METRIC                                                                                                        \
    {.name = "metric", .words = "inclusive_ns self_ns await_ns await_subtree_ns calls errors",                       \
     .what = "what sizes go by"}
#define DRAWING                                                                                                       \
    {.name = "depth", .min = 1, .max = UINT32_MAX, .what = "levels"},                                                 \
    {.name = "width", .min = 1, .max = 1000000, .what = "pixels: what is below half a pixel folds"},                  \
    {.name = "max_nodes", .min = 1, .max = VV_FLAME_MAX_NODES_LIMIT,                                                  \
     .what = "how many nodes stay: the largest, with their parents (20000)"},                                         \
    {.name = "edges", .words = "root call spawn", .several = true, .what = "edges to follow"},                        \
    {.name = "transform", .pattern = "^((focus|hide|collapse):.+|only_user)$", .repeatable = true,                    \
     .what = "what to leave out, one after the other"}
#define FUNCTION                                                                                                      \
    {.name = "function", .required = true, .what = "a definition key, a full name, # and a number, or #number/program"}
#define PARAMS(...) (const vv_route_param[]){__VA_ARGS__, {0}}

const vv_route vv_routes[] = {
    {.path = "/api/v1", .answers = "this index", .schema = "Index", .page = vv_page_index},
    {.path = "/api/v1/meta", .answers = "versions, store, formats, limits, encodings, features", .schema = "Meta",
     .page = vv_page_meta},
    {.path = "/api/v1/openapi.json", .answers = "this API as an OpenAPI document", .schema = "OpenApi",
     .page = vv_page_openapi},
    {.path = "/api/v1/store", .answers = "what the store takes on disk, and what is in it", .schema = "StoreAnswer",
     .view = vv_answer_store, .untagged = true,
     .params = PARAMS({.name = "scan", .words = "0 1", .what = "1 reads all data for executions that no index names"},
                      AS_OF)},
    {.path = "/api/v1/streams", .answers = "recorded processes", .schema = "StreamList", .view = vv_answer_streams,
     .params = PARAMS(PAGE, AS_OF)},
    {.path = "/api/v1/streams/{euid}", .answers = "one recorded process", .schema = "StreamAnswer",
     .view = vv_answer_stream, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/follow", .answers = "changes of the store as they happen: events, lines, or a long poll",
     .schema = "Change", .follow = true,
     .params = PARAMS({.name = "cursor", .pattern = "^[0-9a-z.-]{1,64}$", .what = "the cursor of the last event"},
                      {.name = "wait", .max = 60, .what = "seconds to wait for a change (0); of a single answer"})},
    {.path = "/api/v1/streams/{euid}/{plane}", .answers = "segment files of a plane: meta, data or health",
     .schema = "SegmentList", .view = vv_answer_segments,
     .params = PARAMS({.name = "after", .max = UINT64_MAX, .what = "with higher sequences than this"}, PAGE, AS_OF)},
    {.path = "/api/v1/streams/{euid}/{plane}/{seq}", .answers = "a segment file as it lies on disk",
     .raw = vv_raw_segment, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/executions", .answers = "executions, newest first", .schema = "ExecutionList",
     .view = vv_answer_executions,
     .params = PARAMS({.name = "status", .words = "succeeded failed cancelled panicked abandoned running",
                       .what = "how it ended"},
                      {.name = "q", .what = "text in id, entry function, source or revision"},
                      {.name = "since", .what = "started then or later: nanoseconds since 1970, or RFC 3339"},
                      {.name = "until", .what = "started before: nanoseconds since 1970, or RFC 3339"},
                      {.name = "stream", .pattern = HEX(32), .what = "of this process"},
                      {.name = "program", .pattern = HEX(32), .what = "of this program"}, PAGE, AS_OF)},
    {.path = "/api/v1/executions/{id}", .answers = "one execution: states, issues, health, equations, totals",
     .schema = "ExecutionAnswer", .view = vv_answer_execution, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/executions/{id}/errors", .answers = "recorded errors: where from, how often",
     .schema = "Errors", .view = vv_answer_errors, .params = PARAMS(BASE, PAGE, AS_OF)},
    {.path = "/api/v1/executions/{id}/errors/{error}", .answers = "one of them: value, stack, the calls it ended",
     .schema = "ErrorAnswer", .view = vv_answer_error, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/executions/{id}/logs", .answers = "log events, where the store has them", .schema = "LogList",
     .view = vv_answer_logs,
     .params = PARAMS({.name = "level", .what = "of these levels, with commas, letters' case aside"},
                      {.name = "call", .what = "a call's id, or thread.call"},
                      {.name = "thread", .what = "a thread's id or number"},
                      {.name = "event", .what = "of events of this name"},
                      {.name = "q", .what = "text in message or event name"},
                      {.name = "since", .what = "then or later: nanoseconds since 1970, or RFC 3339"},
                      {.name = "until", .what = "before then: nanoseconds since 1970, or RFC 3339"},
                      {.name = "order", .words = "time recorded", .what = "by time, or as they were written"}, PAGE,
                      AS_OF)},
    {.path = "/api/v1/executions/{id}/checkpoint", .answers = "how far its recording has come",
     .schema = "Checkpoint", .view = vv_answer_checkpoint, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/executions/{id}/threads", .answers = "threads: spawned by what, from when to when",
     .schema = "ThreadList", .view = vv_answer_threads, .params = PARAMS(PAGE, AS_OF)},
    {.path = "/api/v1/executions/{id}/spans", .answers = "calls that were recorded one by one", .schema = "Spans",
     .view = vv_answer_spans,
     .params = PARAMS({.name = "function", .what = "a definition key, a full name, or # and a number"},
                      {.name = "status", .words = "ok errored cancelled exited unknown", .what = "how it ended"},
                      {.name = "thread", .what = "a thread's id or number"},
                      {.name = "context", .pattern = "^([0-9a-f]{64}|overflow:[a-z_]+:[a-z]+)$",
                       .what = "a context key, or overflow:<reason>:<edge>"},
                      {.name = "reason", .words = "root llm manual", .what = "why it was selected"},
                      {.name = "from", .max = UINT64_MAX, .what = "ran at or after, in ns of the process's clock"},
                      {.name = "to", .max = UINT64_MAX, .what = "ran before, in ns of the process's clock"},
                      {.name = "min_duration", .pattern = "^[0-9]+(us|ms|s)?$", .what = "took at least so long"},
                      {.name = "order", .words = "start -duration", .what = "first start, or longest, first"}, BASE,
                      PAGE, AS_OF)},
    {.path = "/api/v1/executions/{id}/spans/{call}",
     .answers = "one of them: values, error, parents, its context's totals", .schema = "SpanAnswer",
     .view = vv_answer_span, .params = PARAMS(AS_OF)},
    {.path = "/api/v1/contexts/{key}",
     .answers = "one calling context: how it is reached, what is counted in it, examples of its calls",
     .schema = "ContextAnswer", .view = vv_answer_context,
     .params = PARAMS({.name = "execution", .what = "an id, latest or latest~N; needed where several have it"}, PAGE,
                      AS_OF)},
    {.path = "/api/v1/functions", .answers = "functions of executions", .schema = "Functions",
     .view = vv_answer_functions, .heavy = true,
     .params = PARAMS(EXECUTION, BASE,
                      {.name = "sort", .words = "self_ns inclusive_ns await_ns calls errors contexts name",
                       .what = "largest first; a name by letters"},
                      {.name = "q", .what = "text in name, key or file"}, PAGE, AS_OF)},
    {.path = "/api/v1/flame", .answers = "calling contexts of executions as a flat table", .schema = "FlameAnswer",
     .view = vv_answer_flame, .heavy = true,
     .params = PARAMS(EXECUTION, BASE, METRIC,
                      {.name = "order", .words = "top_down bottom_up",
                       .what = "callers above callees, or functions above their callers"},
                      {.name = "root", .pattern = "^([0-9a-f]{64}|[0-9a-f]{32})$",
                       .what = "a context key or a path id to begin at"},
                      DRAWING,
                      {.name = "ids", .words = "0 1", .what = "1 adds contexts and path_ids"}, AS_OF)},
    {.path = "/api/v1/callers", .answers = "who calls a function, and who calls them: a flame table",
     .schema = "SandwichAnswer", .view = vv_answer_callers, .heavy = true,
     .params = PARAMS(EXECUTION, BASE, FUNCTION, METRIC, DRAWING, AS_OF)},
    {.path = "/api/v1/callees", .answers = "what a function calls, and what those call: a flame table",
     .schema = "SandwichAnswer", .view = vv_answer_callees, .heavy = true,
     .params = PARAMS(EXECUTION, BASE, FUNCTION, METRIC, DRAWING, AS_OF)},
    {.path = "/api/v1/search", .answers = "functions, executions, threads, errors and calls by text",
     .schema = "SearchAnswer", .view = vv_answer_search,
     .params = PARAMS({.name = "q", .required = true, .what = "the text: a part of a name, letters' case aside"},
                      {.name = "kind", .words = "function execution thread error span", .what = "hits of one type"},
                      PAGE, AS_OF)},
    {.path = "/api/v1/values/{cid}", .answers = "a captured value", .schema = "Value", .view = vv_answer_value,
     .stamp = vv_value_stamp,
     .params = PARAMS({.name = "path", .what = "what is there in the value: $.items[0]"},
                      {.name = "max_bytes", .max = VV_VALUE_BYTES_MAX, .what = "of JSON, about (65536)"},
                      {.name = "max_depth", .max = VV_VALUE_LEVELS_MAX, .what = "levels of containers (32)"}, AS_OF)},
    {.path = "/api/v1/values/{cid}/raw", .answers = "its body as it is stored", .raw = vv_raw_value,
     .params = PARAMS(AS_OF)},
    {.path = "/api/v1/values/{cid}/uses", .answers = "where it was captured, in all executions",
     .schema = "ValueUseList", .view = vv_answer_value_uses, .params = PARAMS(PAGE, AS_OF)},
};
const size_t vv_route_count = VV_ARRAY_LEN(vv_routes);

static bool matches(const char *pattern, const char *path, vv_route_ids *ret)
{
    size_t ids = 0;
    *ret = (vv_route_ids){0};
    while (*pattern && *path) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        size_t n = strcspn(path, "/");
        if (n == 0)
            return false;
        ret->items[ids++] = (vv_str){path, n};
        path += n;
        pattern = strchr(pattern, '}') + 1;
    }
    return !*pattern && !*path;
}

const vv_route *vv_route_find(const char *path, vv_route_ids *ret)
{
    for (size_t i = 0; i < vv_route_count; i++)
        if (matches(vv_routes[i].path, path, ret))
            return &vv_routes[i];
    return NULL;
}

void vv_route_template(const vv_route *r, vv_wr *w)
{
    const char *before = "{?";
    vv_wr_cstr(w, r->path);
    for (const vv_route_param *p = r->params; p && p->name; p++, before = ",") {
        vv_wr_cstr(w, before);
        vv_wr_cstr(w, p->name);
        if (p->repeatable)
            vv_wr_cstr(w, "*");
    }
    if (r->params)
        vv_wr_cstr(w, "}");
}
