#!/bin/sh
# Prints a C file that holds the schemas of the OpenAPI document. Argument: server/openapi.json.
set -eu
echo '/* Made by server/embed.sh. */'
echo '#include "config.h"'
echo
echo '#include "server/openapi.h"'
echo
echo 'const char vv_openapi_components[] = {'
od -v -An -tx1 "$1" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
echo '};'
echo 'const size_t vv_openapi_components_len = sizeof vv_openapi_components;'
