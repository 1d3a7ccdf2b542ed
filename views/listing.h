/*
 * An answer about one execution that is written row by row, so that a long one needs no more memory than a short one:
 * spans, errors, threads. What it speaks of is held until the last piece. Owned by one thread at a time.
 */
#pragma once

#include "views/answer.h"
#include "views/executions.h"

/*
 * A page: the first rows in the order of their keys, after a cursor's. The key makes the order total, and is the
 * position of the cursor. Memory goes by the page, whatever the number of rows offered.
 */
enum { VV_PAGE_KEY = 64, VV_PAGE_DEFAULT = 100, VV_PAGE_MAX = 1000 };

typedef struct {
    uint8_t key[VV_PAGE_KEY];
    uint32_t row;
} vv_page_item;

typedef struct {
    size_t key_len;
    uint64_t limit;
    bool has_after;
    uint8_t after[VV_PAGE_KEY];
    vv_page_item *items; /* in order, once vv_page_order or vv_page_sort was called */
    size_t count;
    bool more; /* rows follow */
    char next[VV_CURSOR_TEXT];
} vv_page;

/* Reads limit and cursor. */
VV_MUST_CHECK vv_code vv_page_read(vv_page *p, vv_query *q, const char *view, size_t key_len, vv_error *err);
VV_MUST_CHECK vv_code vv_page_room(vv_page *p, vv_error *err);
void vv_page_offer(vv_page *p, const uint8_t *key, uint32_t row);
/* Empties a page that has room, for at most as many rows as it was made for; after: a key, or NULL. */
void vv_page_again(vv_page *p, uint64_t limit, const uint8_t *after);
void vv_page_order(vv_page *p);
/* Puts the rows in order, and writes the cursor of the next page. */
void vv_page_sort(vv_page *p, const vv_query *q, const char *view);
void vv_page_done(vv_page *p); /* accepts a zeroed one */
/* The field "next". */
void vv_page_next_json(vv_json *j, const vv_page *p);

typedef struct vv_listing vv_listing;

/* One list of an answer: what stands before it (up to its open bracket), and its rows. */
typedef struct {
    void (*open)(vv_listing *l, vv_json *j);
    void (*row)(vv_listing *l, vv_json *j, size_t at);
    size_t count; /* of rows */
} vv_listing_part;

enum { VV_LISTING_PARTS = 2 };

/* The first member of each such answer's state. */
struct vv_listing {
    vv_library *library;
    const vv_look *look;
    vv_found found;
    vv_loaded loaded;
    vv_listing_part parts[VV_LISTING_PARTS]; /* the first ones, up to one without an open */
    size_t part, at;
    const vv_page *page;                      /* of the only list, where it has one: told at the end */
    void (*close)(vv_listing *l, vv_json *j); /* after the last list: up to the answer's end; NULL: nothing more */
    void (*free_rest)(vv_listing *l);
    bool open;
};

/*
 * The state of an answer, zeroed, of size bytes; holds the look of q. free_rest: of what the view itself keeps. NULL
 * without memory.
 */
void *vv_listing_new(size_t size, void (*free_rest)(vv_listing *l), const vv_query *q, vv_error *err);
/* Finds and loads the execution of q->id. */
VV_MUST_CHECK vv_code vv_listing_load(vv_listing *l, vv_query *q, vv_error *err);
/*
 * Hands the state over to the answer, which writes it from then on; frees it where rc, what became of making it, is an
 * error. Returns rc.
 */
VV_MUST_CHECK vv_code vv_listing_start(vv_answer *a, vv_listing *l, vv_code rc);
/* The same for one list that is a page, which belongs to the state. */
VV_MUST_CHECK vv_code vv_listing_start_page(vv_answer *a, vv_listing *l, vv_code rc, vv_listing_part part,
                                            const vv_page *page);
