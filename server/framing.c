#include "config.h"

#include "server/framing.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

enum { LINE_END = 2 }; /* CR, LF */

vv_framing vv_framing_begin(const char *method, const char *url, size_t target_len, const char *version, size_t size)
{
    vv_framing f = {.begin = (uintptr_t)method, .at = (uintptr_t)version + strlen(version), .size = size};
    f.moved = (uintptr_t)url != f.begin + strlen(method) + 1 || (uintptr_t)version != (uintptr_t)url + target_len + 1;
    return f;
}

static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !memchr("!#$%&'*+-.^_`|~", s[i], 15))
            return false;
    return n > 0;
}

static bool is_name(const char *s, size_t n, const char *name)
{
    return n == strlen(name) && strncasecmp(s, name, n) == 0;
}

/* What may stand in a value: no line end, nor any other control character but a tab. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return false;
    return true;
}

void vv_framing_header(vv_framing *f, const char *name, size_t name_len, const char *value, size_t value_len)
{
    static const char *const single[] = {"Content-Type", "Authorization", "Range", "If-Range", "Last-Event-ID",
                                         "Transfer-Encoding", "Content-Length"};
    uintptr_t from = (uintptr_t)name, to = (uintptr_t)value;
    f->moved |= from != f->at + LINE_END || to <= from + name_len || to + value_len > f->begin + f->size;
    f->at = to + value_len;
    f->bad_name |= !is_token(name, name_len);
    f->bad_value |= !is_plain(value, value_len);
    if (is_name(name, name_len, "Content-Length"))
        f->lengths++;
    if (is_name(name, name_len, "Transfer-Encoding")) {
        f->codings++;
        f->coding = value;
    }
    for (size_t i = 0; i < VV_ARRAY_LEN(single); i++)
        if (is_name(name, name_len, single[i])) {
            f->repeated |= (f->seen >> i) & 1;
            f->seen |= 1u << i;
        }
}

const char *vv_framing_end(const vv_framing *f)
{
    if (f->bad_name)
        return "the name of a header holds a character that none may";
    if (f->bad_value)
        return "the value of a header holds a control character";
    if (f->lengths > 1)
        return "the request has several Content-Length headers";
    if (f->lengths && f->codings)
        return "the request has both Content-Length and Transfer-Encoding";
    if (f->codings && strcasecmp(f->coding, "chunked") != 0)
        return "the request has a Transfer-Encoding that is not served";
    if (f->repeated)
        return "the request has a header twice that may be there once";
    if (f->size && (f->moved || f->at + 2 * LINE_END != f->begin + f->size))
        return "the request has a folded header, a NUL, or a line that does not end in CR LF";
    return NULL;
}
