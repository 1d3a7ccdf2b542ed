/*
 * Where the store is: one resolver for writers and readers alike (docs/http-api.md), so that the two sides can
 * never disagree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/* How the path was found, for status lines and `doctor`. */
typedef enum {
    VV_STORE_FROM_ARGUMENT,
    VV_STORE_FROM_ENVIRONMENT, /* BAML_PROFILE_DIR */
    VV_STORE_FROM_ANCESTOR,    /* the nearest .baml at or above the working directory */
    VV_STORE_DEFAULT,          /* ./.baml, which is not there yet */
} vv_store_origin;

/*
 * The store root a writer uses, into path (size bytes): $BAML_PROFILE_DIR where set and not empty, else profiles-v1 in
 * the nearest existing .baml directory at or above the working directory, else ./.baml/profiles-v1. Touches nothing.
 */
VV_MUST_CHECK vv_code vv_store_path(char *path, size_t size, vv_store_origin *ret_origin, vv_error *err);

/*
 * The same for a reader's argument (NULL: as above). An argument may name the store root, the .baml directory, a
 * copy of it under another name, the directory that holds .baml, or an archive file, which is returned as it is.
 * Nothing need exist.
 */
VV_MUST_CHECK vv_code vv_store_path_of(char *path, size_t size, const char *arg, vv_store_origin *ret_origin,
                                       vv_error *err);
