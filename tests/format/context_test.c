#include "config.h"

#include "format/context.h"

#include "format/cas.h"
#include "format/cct.h"
#include "format/function_table.h"
#include "format/segment.h"
#include "tests/testing.h"

#include "tests/format/fixture.h"

/* The tuple of the reference vectors. */
static vv_tuple golden(void)
{
    vv_tuple t = {
        .has_parent = true,
        .has_site = true,
        .edge = VV_EDGE_SPAWN,
        .function_id = 0x01020304,
        .site = {.file = 5, .start = 6, .end = 7, .line = 8},
    };
    memset(&t.program, 0x11, sizeof t.program);
    memset(&t.parent, 0x22, sizeof t.parent);
    return t;
}

START_TEST(tuple_vector_both_ways)
{
    vv_blob want = test_vector("context_tuple"), key = test_vector("context_key");
    vv_tuple t = golden(), back;
    uint8_t bytes[VV_TUPLE_MAX];
    ck_assert_uint_eq(want.n, VV_TUPLE_MAX);
    ck_assert_uint_eq(vv_tuple_encode(bytes, &t), want.n);
    ck_assert_mem_eq(bytes, want.p, want.n);
    vv_rd r = vv_rd_init(want.p, want.n);
    vv_tuple_decode(&r, &back);
    ck_assert(vv_rd_ok(&r) && vv_rd_left(&r) == 0 && vv_tuple_eq(&t, &back));
    vv_context_key k;
    vv_context_key_of(&k, &t);
    ck_assert_mem_eq(&k, key.p, 32);
    vv_context_key_of_bytes(&k, want.p, want.n);
    ck_assert_mem_eq(&k, key.p, 32);
    vv_blob_done(&want);
    vv_blob_done(&key);
}
END_TEST

/* Every shape of tuple at every cut, and each of its three codes out of range. */
START_TEST(tuple_faults)
{
    for (int shape = 0; shape < 4; shape++) {
        vv_tuple t = golden(), back;
        t.has_parent = shape & 1;
        t.has_site = shape & 2;
        uint8_t bytes[VV_TUPLE_MAX];
        size_t n = vv_tuple_encode(bytes, &t);
        ck_assert_uint_eq(n, 23u + (t.has_parent ? 32 : 0) + (t.has_site ? 16 : 0));
        for (size_t k = 0; k <= n; k++) {
            uint8_t *exact = test_exact(bytes, k);
            vv_rd r = vv_rd_init(exact, k);
            vv_tuple_decode(&r, &back);
            if (k < n)
                ck_assert_str_eq(r.why, "Truncated");
            else
                ck_assert(vv_rd_ok(&r) && vv_tuple_eq(&t, &back));
            free(exact);
        }
        const size_t site = 21u + (t.has_parent ? 32 : 0), codes[] = {16, site, n - 1};
        for (size_t i = 0; i < VV_ARRAY_LEN(codes); i++) {
            uint8_t *bad = test_exact(bytes, n);
            bad[codes[i]] = i == 2 ? 3 : 2;
            vv_rd r = vv_rd_init(bad, n);
            vv_tuple_decode(&r, &back);
            ck_assert_str_eq(r.why, "InvalidTag");
            free(bad);
        }
    }
}
END_TEST

START_TEST(equality_looks_at_what_is_present)
{
    vv_tuple a = golden(), b = golden();
    a.has_parent = b.has_parent = a.has_site = b.has_site = false;
    b.parent.b[0] ^= 1;
    b.site.line++;
    ck_assert(vv_tuple_eq(&a, &b));
    b.has_site = true;
    ck_assert(!vv_tuple_eq(&a, &b));
    a.has_site = true;
    ck_assert(!vv_tuple_eq(&a, &b));
    b.site = a.site;
    ck_assert(vv_tuple_eq(&a, &b));
    a.has_parent = b.has_parent = true;
    ck_assert(!vv_tuple_eq(&a, &b));
    b.parent = a.parent;
    ck_assert(vv_tuple_eq(&a, &b));
    b.edge = VV_EDGE_CALL;
    ck_assert(!vv_tuple_eq(&a, &b));
    b = a;
    b.function_id++;
    ck_assert(!vv_tuple_eq(&a, &b));
    b = a;
    b.program.b[15]++;
    ck_assert(!vv_tuple_eq(&a, &b));
}
END_TEST

START_TEST(names_of_edges)
{
    ck_assert_str_eq(vv_edge_name(VV_EDGE_ROOT), "Root");
    ck_assert_str_eq(vv_edge_name(VV_EDGE_CALL), "Call");
    ck_assert_str_eq(vv_edge_name(VV_EDGE_SPAWN), "Spawn");
    ck_assert_ptr_null(vv_edge_name((vv_edge)3));
}
END_TEST

enum { CONTEXTS = 64 };

/* The defined contexts of one execution in one segment. */
static size_t contexts_of(const vv_blob *file, const vv_thread_ref *root, vv_cct_row *rows, size_t n)
{
    vv_data_segment s;
    vv_group g;
    bool more;
    ck_assert_int_eq(vv_data_open(&s, file->p, file->n, NULL, 0, false, NULL), VV_OK);
    while (vv_data_next(&s, &g, &more, NULL) == VV_OK && more) {
        if (memcmp(&g.root, root, sizeof *root) != 0 || !vv_group_has_cct(&g))
            continue;
        vv_cct_cursor c;
        vv_cct_open(&c, g.cct, g.cct_len, g.cct_health, g.cct_records);
        while (n < CONTEXTS && vv_cct_next_context(&c, &rows[n]))
            n += rows[n].defined;
        ck_assert_int_eq(vv_cct_finish(&c, NULL), VV_OK);
    }
    return n;
}

static const vv_cct_row *find(const vv_cct_row *rows, size_t n, const vv_context_key *key)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&rows[i].key, key, sizeof *key) == 0)
            return &rows[i];
    return NULL;
}

static void path_of(const vv_cct_row *rows, size_t n, const vv_function_table *t, const vv_context_key *key,
                    vv_path_id *ret)
{
    const vv_cct_row *row = find(rows, n, key);
    ck_assert_ptr_nonnull(row);
    vv_path_id parent;
    if (row->tuple.has_parent)
        path_of(rows, n, t, &row->tuple.parent, &parent);
    char scratch[12];
    vv_str name;
    uint32_t id = row->tuple.function_id;
    vv_name_kind kind = vv_function_name_key(vv_function_table_find(t, id), id, scratch, &name);
    vv_path_id_of(ret, row->tuple.has_parent ? &parent : NULL, (vv_edge)row->tuple.edge, kind, name);
}

/* The contract's path ids, from a store's own segments and function table. */
START_TEST(path_ids_of_the_contract)
{
    vv_blob object = test_file("fuzz/corpus/cas/demo-72");
    vv_cas_object o;
    vv_function_table table;
    ck_assert_int_eq(vv_cas_decode(&o, object.p, object.n, NULL, NULL), VV_OK);
    ck_assert_int_eq(vv_function_table_decode(&table, o.body, o.body_len, NULL), VV_OK);
    cJSON *all = test_json("tests/fixtures/contract-vectors.json");
    const cJSON *execution, *context;
    size_t checked = 0;
    cJSON_ArrayForEach(execution, cJSON_GetObjectItemCaseSensitive(all, "executions")) {
        vv_thread_ref root;
        ck_assert_int_eq(vv_thread_parse(vv_cstr(execution->string), &root, NULL), VV_OK);
        vv_cct_row rows[CONTEXTS];
        size_t n = 0;
        for (int i = 1; i <= 3; i++) {
            char path[64];
            snprintf(path, sizeof path, "fuzz/corpus/data/demo-%d", i);
            vv_blob file = test_file(path);
            n = contexts_of(&file, &root, rows, n);
            vv_blob_done(&file);
        }
        cJSON_ArrayForEach(context, execution) {
            vv_context_key key;
            vv_path_id id;
            char hex[33];
            ck_assert(vv_unhex(key.b, sizeof key.b, vv_cstr(context->string)));
            path_of(rows, n, &table, &key, &id);
            vv_hex(hex, id.b, sizeof id.b);
            ck_assert_str_eq(hex, context->valuestring);
            checked++;
        }
    }
    ck_assert_uint_eq(checked, 6);
    cJSON_Delete(all);
    vv_function_table_done(&table);
    vv_blob_done(&object);
}
END_TEST

/* Each part of the hashed text counts: kind, edge, parent, and where the key ends. */
START_TEST(path_ids_differ)
{
    vv_path_id ids[6], parent = {{1}};
    vv_path_id_of(&ids[0], NULL, VV_EDGE_ROOT, VV_NAME_FQN, vv_cstr("f"));
    vv_path_id_of(&ids[1], NULL, VV_EDGE_CALL, VV_NAME_FQN, vv_cstr("f"));
    vv_path_id_of(&ids[2], NULL, VV_EDGE_ROOT, VV_NAME_DEFINITION_KEY, vv_cstr("f"));
    vv_path_id_of(&ids[3], &parent, VV_EDGE_ROOT, VV_NAME_FQN, vv_cstr("f"));
    vv_path_id_of(&ids[4], NULL, VV_EDGE_ROOT, VV_NAME_FQN, vv_cstr(""));
    vv_path_id_of(&ids[5], NULL, VV_EDGE_ROOT, VV_NAME_NUMBER, vv_cstr("f"));
    for (size_t i = 0; i < VV_ARRAY_LEN(ids); i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_mem_ne(&ids[i], &ids[k], sizeof ids[i]);
    /* The whole hashed text, written out. */
    uint8_t text[13 + 16 + 1 + 1 + 4 + 1] = "varve-path-v1", sum[32];
    text[13] = 1;
    text[13 + 17] = 1;
    text[13 + 21] = 1;
    text[13 + 22] = 'f';
    vv_sha256(text, sizeof text, sum);
    ck_assert_mem_eq(ids[3].b, sum, 16);
}
END_TEST

int main(void)
{
    TCase *t = test_case("context", 0);
    tcase_add_test(t, tuple_vector_both_ways);
    tcase_add_test(t, tuple_faults);
    tcase_add_test(t, equality_looks_at_what_is_present);
    tcase_add_test(t, names_of_edges);
    tcase_add_test(t, path_ids_of_the_contract);
    tcase_add_test(t, path_ids_differ);
    return test_run();
}
