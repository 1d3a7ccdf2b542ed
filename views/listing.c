#include "config.h"

#include "views/listing.h"

#include <stdlib.h>

void *vv_listing_new(size_t size, void (*free_rest)(vv_listing *l), const vv_query *q, vv_error *err)
{
    vv_listing *l = calloc(1, size);
    if (!l) {
        (void)vv_fail(err, VV_ERR_NOMEM, "no memory for an answer");
        return NULL;
    }
    l->library = q->library;
    l->look = vv_look_hold(q->library, q->look);
    l->free_rest = free_rest;
    return l;
}

static void free_listing(void *listing)
{
    vv_listing *l = listing;
    l->free_rest(l);
    vv_loaded_release(l->library, &l->loaded);
    vv_look_release(l->library, l->look);
    free(l);
}

vv_code vv_listing_load(vv_listing *l, vv_query *q, vv_error *err)
{
    return vv_query_load_own(q, &l->found, &l->loaded, err);
}

static void close_answer(vv_listing *l, vv_json *j)
{
    if (l->close) {
        l->close(l, j);
        return;
    }
    if (l->page)
        vv_page_next_json(j, l->page);
    vv_json_end_obj(j);
}

/* Writes a row, or what stands between two lists; false after the last. */
static bool more(void *state, vv_json *j)
{
    vv_listing *l = state;
    const vv_listing_part *p = &l->parts[l->part];
    if (l->part == VV_LISTING_PARTS || !p->open) {
        close_answer(l, j);
        return false;
    }
    if (!l->open) {
        p->open(l, j);
        l->open = true;
    } else if (l->at < p->count) {
        p->row(l, j, l->at++);
    } else {
        vv_json_end_arr(j);
        l->part++;
        l->at = 0;
        l->open = false;
    }
    return true;
}

vv_code vv_listing_start(vv_answer *a, vv_listing *l, vv_code rc)
{
    if (rc != VV_OK) {
        free_listing(l);
        return rc;
    }
    a->more = more;
    a->free_state = free_listing;
    a->state = l;
    return VV_OK;
}

vv_code vv_listing_start_page(vv_answer *a, vv_listing *l, vv_code rc, vv_listing_part part, const vv_page *page)
{
    l->parts[0] = part;
    l->parts[0].count = page->count;
    l->page = page;
    return vv_listing_start(a, l, rc);
}

vv_code vv_page_read(vv_page *p, vv_query *q, const char *view, size_t key_len, vv_error *err)
{
    *p = (vv_page){.key_len = key_len, .limit = VV_PAGE_DEFAULT};
    vv_code rc = vv_query_number(q, "limit", 1, VV_PAGE_MAX, &p->limit, err);
    if (rc == VV_OK)
        rc = vv_query_cursor(q, view, p->after, key_len, &p->has_after, err);
    return rc;
}

vv_code vv_page_room(vv_page *p, vv_error *err)
{
    p->items = malloc((size_t)p->limit * sizeof *p->items);
    return p->items ? VV_OK : vv_fail(err, VV_ERR_NOMEM, "no memory for a page");
}

void vv_page_again(vv_page *p, uint64_t limit, const uint8_t *after)
{
    p->limit = limit;
    p->count = 0;
    p->more = false;
    p->has_after = after != NULL;
    if (after)
        memcpy(p->after, after, p->key_len);
}

/* The items are a heap while they are gathered: the last one in order, which goes first, is its top. */
static void sink(vv_page *p, size_t at)
{
    vv_page_item *items = p->items, item = items[at];
    for (size_t child; (child = 2 * at + 1) < p->count; at = child) {
        if (child + 1 < p->count && memcmp(items[child + 1].key, items[child].key, p->key_len) > 0)
            child++;
        if (memcmp(items[child].key, item.key, p->key_len) <= 0)
            break;
        items[at] = items[child];
    }
    items[at] = item;
}

static void rise(vv_page *p, size_t at)
{
    vv_page_item *items = p->items, item = items[at];
    for (; at && memcmp(items[(at - 1) / 2].key, item.key, p->key_len) < 0; at = (at - 1) / 2)
        items[at] = items[(at - 1) / 2];
    items[at] = item;
}

void vv_page_offer(vv_page *p, const uint8_t *key, uint32_t row)
{
    if (p->has_after && memcmp(key, p->after, p->key_len) <= 0)
        return;
    size_t at = 0;
    if (p->count == p->limit) {
        p->more = true;
        if (memcmp(key, p->items[0].key, p->key_len) >= 0)
            return;
    } else {
        at = p->count++;
    }
    memcpy(p->items[at].key, key, p->key_len);
    p->items[at].row = row;
    if (at)
        rise(p, at);
    else
        sink(p, 0);
}

static int compare_items(const void *a, const void *b, void *len)
{
    const vv_page_item *x = a, *y = b;
    return memcmp(x->key, y->key, *(size_t *)len);
}

void vv_page_order(vv_page *p)
{
    qsort_r(p->items, p->count, sizeof *p->items, compare_items, &p->key_len);
}

void vv_page_sort(vv_page *p, const vv_query *q, const char *view)
{
    vv_page_order(p);
    if (p->more)
        vv_query_cursor_text(q, view, p->items[p->count - 1].key, p->key_len, p->next);
}

void vv_page_done(vv_page *p)
{
    free(p->items);
    p->items = NULL;
}

void vv_page_next_json(vv_json *j, const vv_page *p)
{
    vv_json_kv_cstr(j, "next", p->more ? p->next : NULL);
}
