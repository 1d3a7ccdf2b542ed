#include "config.h"

#include "runtime/accounting.h"

const char *vv_account_name(vv_account a)
{
    static const char *const names[VV_ACCOUNTS] = {
#define X(id, name) [VV_ACCOUNT_##id] = name,
        VV_ACCOUNTS_TABLE(X)
#undef X
    };
    return (unsigned)a < VV_ACCOUNTS ? names[a] : "?";
}
