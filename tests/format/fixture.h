/* Reference vectors of tests/fixtures/, read with cJSON. Include after tests/testing.h. */
#pragma once

#include <cJSON.h>

#include "base/sha256.h"

/* The parsed file; the caller deletes it. */
static inline cJSON *test_json(const char *path)
{
    vv_blob text = test_file(path);
    cJSON *json = cJSON_ParseWithLength((const char *)text.p, text.n);
    ck_assert_msg(json != NULL, "%s is not JSON", path);
    vv_blob_done(&text);
    return json;
}

/* The bytes of one vector, checked against its own SHA-256 where it has one; the caller frees them. */
static inline vv_blob test_vector(const char *name)
{
    cJSON *all = test_json("tests/fixtures/vectors.json");
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(all, name);
    vv_blob b = test_unhex(cJSON_GetObjectItemCaseSensitive(one, "hex")->valuestring);
    const cJSON *sum = cJSON_GetObjectItemCaseSensitive(one, "sha256");
    if (sum) {
        uint8_t got[32];
        char hex[65];
        vv_sha256(b.p, b.n, got);
        vv_hex(hex, got, 32);
        ck_assert_str_eq(hex, sum->valuestring);
    }
    cJSON_Delete(all);
    return b;
}
