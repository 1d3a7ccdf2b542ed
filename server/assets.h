/* The dashboard's files: embedded, or from a directory while they are worked on. */
#pragma once

#include "server/message.h"

/* True and a response where path is one of them. dir is NULL for the embedded ones. */
bool vv_asset_respond(vv_response *r, const char *dir, const char *path, const vv_request *rq);
