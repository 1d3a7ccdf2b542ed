#include "config.h"

#include "runtime/accounting.h"

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
    static const struct {
        uint8_t first, last;
    } losses[] = {
        {VV_ACCOUNT_AWAIT_LOST_MEMORY, VV_ACCOUNT_AWAIT_LOST_DISK},
        {VV_ACCOUNT_ERROR_LOST_DISK, VV_ACCOUNT_ERROR_LOST_START},
        {VV_ACCOUNT_ERROR_VALUE_LOST_CAS_CONFLICT, VV_ACCOUNT_ERROR_VALUE_LOST_TOO_LARGE},
        {VV_ACCOUNT_CALLS_LOST_PUBLISH, VV_ACCOUNT_CALLS_LOST_UNMATCHED},
        {VV_ACCOUNT_ID_LOST_DISK, VV_ACCOUNT_ID_LOST_START},
        {VV_ACCOUNT_END_LOST_DISK, VV_ACCOUNT_END_LOST_TRANSPORT},
        {VV_ACCOUNT_START_LOST_CALLS, VV_ACCOUNT_START_LOST_TRANSPORT},
        {VV_ACCOUNT_LINK_LOST_DISK, VV_ACCOUNT_LINK_LOST_TRANSPORT},
        {VV_ACCOUNT_VALUE_LOST_CAS_CONFLICT, VV_ACCOUNT_VALUE_LOST_TOO_LARGE},
    };
    for (size_t i = 0; i < VV_ARRAY_LEN(losses); i++)
        if (a >= losses[i].first && a <= losses[i].last)
            return true;
    return false;
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

const vv_evidence_equation vv_evidence_equations[VV_EVIDENCE_PARTS] = {
    {VV_ACCOUNT_SPANS_SELECTED, VV_ACCOUNT_STARTS_COMMITTED, VV_ACCOUNT_START_LOST_CALLS,
     VV_ACCOUNT_START_LOST_TRANSPORT, VV_ACCOUNT_START_LOST_JOIN},
    {VV_ACCOUNT_STARTS_COMMITTED, VV_ACCOUNT_ENDS_COMMITTED, VV_ACCOUNT_END_LOST_DISK, VV_ACCOUNT_END_LOST_TRANSPORT,
     VV_ACCOUNT_END_LOST_JOIN},
    {VV_ACCOUNT_IDS_OBSERVED, VV_ACCOUNT_IDS_COMMITTED, VV_ACCOUNT_ID_LOST_DISK, VV_ACCOUNT_ID_LOST_START,
     VV_ACCOUNT_ID_LOST_JOIN},
    {VV_ACCOUNT_VALUES_APPLICABLE, VV_ACCOUNT_VALUES_AVAILABLE, VV_ACCOUNT_VALUE_LOST_CAS_CONFLICT,
     VV_ACCOUNT_VALUE_LOST_TOO_LARGE, VV_ACCOUNT_VALUE_LOST_JOIN},
    {VV_ACCOUNT_ERRORS_APPLICABLE, VV_ACCOUNT_ERRORS_COMMITTED, VV_ACCOUNT_ERROR_LOST_DISK,
     VV_ACCOUNT_ERROR_LOST_START, VV_ACCOUNT_ERROR_LOST_JOIN},
    {VV_ACCOUNT_LINKS_OBSERVED, VV_ACCOUNT_LINKS_COMMITTED, VV_ACCOUNT_LINK_LOST_DISK, VV_ACCOUNT_LINK_LOST_TRANSPORT,
     VV_ACCOUNT_LINK_LOST_JOIN},
};

uint64_t vv_account_losses(const vv_accounting *a, const vv_evidence_equation *e)
{
    uint64_t sum = 0;
    for (unsigned i = e->first_lost; i <= e->last_lost; i++)
        sum = vv_sat64(sum, a->v[i]);
    return sum;
}

void vv_account_reconcile(vv_accounting *a)
{
    for (size_t i = 0; i < VV_EVIDENCE_PARTS; i++) {
        const vv_evidence_equation *e = &vv_evidence_equations[i];
        uint64_t all = a->v[e->all], known = vv_sat64(a->v[e->committed], vv_account_losses(a, e));
        if (all > known)
            vv_account_add(a, (vv_account)e->join, all - known);
    }
}
