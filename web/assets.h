/* The dashboard's files, embedded in the binary by embed.sh. Constant data; an entry of zeroes ends the list. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *path;      /* as requested: "/", "/app.js" */
    const char *type;      /* content type */
    const uint8_t *bytes;
    size_t len;
    const char *sha256;    /* of the bytes, in hex */
} vv_asset;

extern const vv_asset vv_assets[];
extern const size_t vv_asset_count;
