#include "config.h"

#include "runtime/varve.h"

bool varve_log_wants(const varve_logger *logger, varve_log_level level)
{
    return logger && logger->sink && level >= logger->least;
}

void varve_log(const varve_logger *logger, const varve_log_event *event)
{
    if (event && varve_log_wants(logger, event->level))
        logger->sink(logger->ctx, event);
}
