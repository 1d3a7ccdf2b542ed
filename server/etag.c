#include "config.h"

#include "server/etag.h"

#include <string.h>

bool vv_etag_matches(const char *header, const char *tag)
{
    size_t n = strlen(tag);
    if (!header)
        return false;
    size_t blanks = strspn(header, " \t");
    if (header[blanks] == '*' && strspn(header + blanks + 1, " \t") == strlen(header + blanks + 1))
        return true;
    for (const char *p = header; (p = strchr(p, '"')) != NULL;) {
        const char *end = strchr(++p, '"');
        if (!end)
            return false;
        if ((size_t)(end - p) >= n && memcmp(p, tag, n) == 0 && (end[0] == p[n] || p[n] == '-'))
            return true;
        p = end + 1;
    }
    return false;
}
