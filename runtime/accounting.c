#include "config.h"

#include "runtime/accounting.h"

#include <string.h>

#include "base/attr.h"
#include "format/evidence.h"

static const char *const names[VV_ACCOUNTS] = {
#define X(id, name) [VV_ACCOUNT_##id] = name,
    VV_ACCOUNTS_TABLE(X)
#undef X
};

const char *vv_account_name(vv_account a)
{
    return (unsigned)a < VV_ACCOUNTS ? names[a] : "?";
}

bool vv_account_is_loss(vv_account a)
{
    return strstr(vv_account_name(a), "_lost.");
}

vv_account vv_account_of_value(unsigned code, bool error)
{
#define BOTH(reason) {VV_ACCOUNT_VALUE_LOST_##reason, VV_ACCOUNT_ERROR_VALUE_LOST_##reason}
    static const uint8_t by_code[VV_VALUE_LOSSES][2] = {
        BOTH(MEMORY), BOTH(TRANSPORT), BOTH(ATTEMPT_TRANSPORT), BOTH(TOO_LARGE), BOTH(COPY),       BOTH(ENCODE),
        BOTH(CAS_WRITE), BOTH(CAS_CONFLICT), BOTH(DISK),        BOTH(PUBLISH),   BOTH(UNAVAILABLE),
    };
#undef BOTH
    return (vv_account)by_code[code < VV_VALUE_LOSSES ? code : VV_VALUE_LOSSES - 1][error];
}

/* The losses of a part: the terms whose names begin as that of its first one. */
static uint64_t losses_of(const vv_accounting *a, vv_account one)
{
    size_t prefix = (size_t)(strchr(names[one], '.') - names[one]) + 1;
    uint64_t sum = 0;
    for (unsigned i = 0; i < VV_ACCOUNTS; i++)
        if (!strncmp(names[i], names[one], prefix))
            sum = vv_sat64(sum, a->v[i]);
    return sum;
}

void vv_account_reconcile(vv_accounting *a)
{
    static const struct {
        vv_account all, committed, join;
    } equations[] = {
        {VV_ACCOUNT_SPANS_SELECTED, VV_ACCOUNT_STARTS_COMMITTED, VV_ACCOUNT_START_LOST_JOIN},
        {VV_ACCOUNT_STARTS_COMMITTED, VV_ACCOUNT_ENDS_COMMITTED, VV_ACCOUNT_END_LOST_JOIN},
        {VV_ACCOUNT_IDS_OBSERVED, VV_ACCOUNT_IDS_COMMITTED, VV_ACCOUNT_ID_LOST_JOIN},
        {VV_ACCOUNT_VALUES_APPLICABLE, VV_ACCOUNT_VALUES_AVAILABLE, VV_ACCOUNT_VALUE_LOST_JOIN},
        {VV_ACCOUNT_ERRORS_APPLICABLE, VV_ACCOUNT_ERRORS_COMMITTED, VV_ACCOUNT_ERROR_LOST_JOIN},
        {VV_ACCOUNT_LINKS_OBSERVED, VV_ACCOUNT_LINKS_COMMITTED, VV_ACCOUNT_LINK_LOST_JOIN},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(equations); i++) {
        uint64_t all = a->v[equations[i].all];
        uint64_t known = vv_sat64(a->v[equations[i].committed], losses_of(a, equations[i].join));
        if (all > known)
            vv_account_add(a, equations[i].join, all - known);
    }
}
