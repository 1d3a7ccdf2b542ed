/* GET /api/v1/openapi.json: the table of routes as an OpenAPI 3.1 document, with the schemas of server/openapi.json. */
#pragma once

#include "server/pages.h"

void vv_page_openapi(vv_json *j, const vv_page_facts *facts);

/* server/openapi.json as it stands, embedded: the document's components. */
extern const char vv_openapi_components[];
extern const size_t vv_openapi_components_len;
