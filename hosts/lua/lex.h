/*
 * A tokenizer for Lua 5.4 source text: just enough to find functions and what they are assigned to. It never fails:
 * what is not Lua comes out as single bytes of punctuation, and the end of the text is the end of any token.
 *
 *     vl_lex x;
 *     vl_lex_init(&x, text, n);
 *     while (vl_lex_next(&x) != VL_TOKEN_END)
 *         …x.start, x.end, x.line…
 *
 * The text must outlive the lexer. One thread.
 */
#pragma once

#include <stddef.h>

typedef enum {
    VL_TOKEN_END,
    VL_TOKEN_NAME,
    VL_TOKEN_STRING,
    VL_TOKEN_NUMBER,
    VL_TOKEN_PUNCT,   /* one byte, in punct; operators of two bytes that matter here have kinds of their own */
    VL_TOKEN_COMPARE, /* == ~= <= >= */
    VL_TOKEN_LABEL,   /* :: */
    VL_TOKEN_FUNCTION,
    VL_TOKEN_IF,
    VL_TOKEN_DO,
    VL_TOKEN_REPEAT,
    VL_TOKEN_BLOCK_END, /* end */
    VL_TOKEN_UNTIL,
    VL_TOKEN_LOCAL,
    VL_TOKEN_RETURN,
    VL_TOKEN_OPERATOR,  /* and or not */
    VL_TOKEN_VALUE,     /* nil true false ... */
    VL_TOKEN_WORD,      /* any other reserved word */
} vl_token;

typedef struct {
    const char *text;
    size_t n, at;
    int line_at; /* of `at` */
    vl_token token;
    char punct;
    size_t start, end;             /* of the token, in bytes */
    size_t body_start, body_end;   /* of a string without its quotes, escapes as written */
    int line;                      /* where the token ends, as Lua counts */
} vl_lex;

void vl_lex_init(vl_lex *x, const char *text, size_t n);
vl_token vl_lex_next(vl_lex *x);
