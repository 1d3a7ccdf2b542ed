/*
 * The resources of the API, in one table: what requests are matched against, what the index and the OpenAPI document
 * are written from. A new resource is a row here, and a schema of its answer in server/openapi.json.
 */
#pragma once

#include "server/message.h"
#include "server/pages.h"
#include "server/raw.h"
#include "views/values.h"

/* A parameter of the query, for the documents: the view that takes it checks it. */
typedef struct {
    const char *name;
    uint64_t min, max;   /* a whole number, where max is not 0 */
    const char *words;   /* one of these, with blanks between */
    bool several;        /* of the words: a list of them, with commas */
    const char *pattern; /* the text's regular expression */
    bool required;
    bool repeatable;     /* may be given more than once */
    const char *what;    /* what it does */
} vv_route_param;

/* What a tag is made of, instead of the store's generation. False: it has no tag yet. */
enum { VV_ROUTE_STAMP = VV_VALUE_STAMP };
typedef bool vv_route_stamp(vv_query *q, char out[VV_ROUTE_STAMP]);

/* A view of the store, a page about the server, or bytes of the store. */
typedef struct {
    const char *path;             /* a segment such as {id} stands for any one that is not empty; three at most */
    const char *answers;          /* in a line */
    const vv_route_param *params; /* up to one without a name; NULL: none */
    const char *schema;           /* of the answer, by its name in openapi.json; NULL: bytes of any kind */
    vv_view *view;
    bool heavy;                   /* of a view: worked out over whole trees, few at a time */
    vv_route_stamp *stamp;        /* of a view that does not go by the state of the store: what it goes by */
    bool untagged;                /* a view that may change while the state of the store does not */
    void (*page)(vv_json *j, const vv_page_facts *facts);
    bool follow;                  /* changes as they happen */
    vv_raw *raw;                  /* bytes as they lie in the store */
} vv_route;

extern const vv_route vv_routes[];
extern const size_t vv_route_count;

/* What stands in a path for the segments in braces, in their order. */
typedef struct {
    vv_str items[3];
} vv_route_ids;

/* NULL where no resource has that path. */
const vv_route *vv_route_find(const char *path, vv_route_ids *ret);

/* The path with its parameters as a URI template (RFC 6570): "/api/v1/flame{?execution,metric}". */
void vv_route_template(const vv_route *r, vv_wr *w);
