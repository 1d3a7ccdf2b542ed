/*
 * What the verbs of the `varve` command share: their table entry, parsed options, output and messages.
 *
 * A verb is one file cli/<verb>.c that defines `const vv_cli_verb vv_verb_<verb>` and is listed in cli/main.c. Options
 * --help, --json and --store are every verb's; its own ones stand in its table. run returns the exit status
 * (docs/command.md). Messages go to standard error, one line: "varve: what: where; next step".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/json.h"

/* Exit status of every verb. */
enum {
    VV_EXIT_OK = 0,
    VV_EXIT_USAGE = 2,
    VV_EXIT_INCOMPLETE = 3, /* evidence incomplete where completeness was asked for */
    VV_EXIT_LIMIT = 4,      /* a limit was met, or an interrupt */
    VV_EXIT_STORE = 5,      /* store unreadable or missing, or an internal error */
};

typedef struct {
    const char *name;  /* without the dashes */
    const char *value; /* how the help calls its value; NULL for a flag; "[=FILE]": may be left out */
    const char *help;
    bool repeats;      /* may be given several times */
} vv_cli_option;

typedef struct vv_cli vv_cli;

typedef struct {
    const char *name;
    const char *args;    /* positional arguments as the help shows them: "[STORE]" */
    const char *purpose; /* one line, a verb in the third person, no period */
    const char *json;    /* what --json does; NULL: prints the view */
    bool storeless;      /* reads no store: the help offers none */
    const char *details; /* paragraphs below it in --help, or NULL; ends in a newline */
    const vv_cli_option *options;
    size_t option_count;
    const char *const *examples; /* command lines, NULL-terminated */
    unsigned min_args, max_args;
    int (*run)(const vv_cli *c);
} vv_cli_verb;

enum { VV_CLI_GIVEN = 64, VV_CLI_ARGS = 64 };

struct vv_cli {
    const vv_cli_verb *verb;
    const char *args[VV_CLI_ARGS]; /* positional arguments */
    unsigned arg_count;
    bool json;
    const char *store; /* of --store, or NULL */
    struct {
        const vv_cli_option *option;
        const char *value;
    } given[VV_CLI_GIVEN]; /* the verb's own options, in the order given */
    unsigned given_count;
};

/*
 * Parses what follows the verb. Returns -1 where the verb shall run, else the exit status (help was printed, or a usage
 * error).
 */
int vv_cli_parse(vv_cli *ret, const vv_cli_verb *verb, int argc, char **argv);
void vv_cli_help(const vv_cli_verb *verb);

bool vv_cli_has(const vv_cli *c, const char *option);
/* The option's value (the first one), or NULL where it was not given. */
const char *vv_cli_value(const vv_cli *c, const char *option);
/* Sets *value where the option was given; false (and a message) where it is no decimal number from min to max. */
bool vv_cli_number(const vv_cli *c, const char *option, uint64_t min, uint64_t max, uint64_t *value);

/* One message line; returns status. A usage error points at the verb's help. */
VV_PRINTF(2, 3) int vv_cli_fail(int status, const char *fmt, ...);
VV_PRINTF(2, 3) int vv_cli_usage(const vv_cli *c, const char *fmt, ...);
/* The line for an error: "<what>: <err->msg>; <next>" (next may be NULL). Returns the exit status of its code. */
int vv_cli_fail_error(const vv_error *err, const char *what, const char *next);

/* A line that a library has to say, for its callback. state is not used. */
void vv_cli_say(void *state, const char *line);

/* The closest of the n names to a mistyped one, or NULL where none is near. */
const char *vv_cli_nearest(const char *typed, const char *const *names, size_t n);

/*
 * JSON (or text through .w) to standard output in bounded memory. Call vv_cli_out_step between items: it writes out
 * what has gathered; false once writing has failed, so that the verb can stop early.
 */
typedef struct {
    vv_wr w;
    vv_json j;
    int fd; /* standard output; -1 discards */
    vv_error err;
} vv_cli_out;

void vv_cli_out_init(vv_cli_out *o);
bool vv_cli_out_step(vv_cli_out *o);
/* Writes the rest and frees. Returns status, or the exit status of a failed write with its message. */
int vv_cli_out_done(vv_cli_out *o, int status);
