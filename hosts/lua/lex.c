#include "config.h"
#include "hosts/lua/lex.h"

#include <stdbool.h>
#include <string.h>

void vl_lex_init(vl_lex *x, const char *text, size_t n)
{
    *x = (vl_lex){.text = text, .n = n, .line_at = 1};
}

static int peek(const vl_lex *x, size_t ahead)
{
    return ahead < x->n - x->at ? (unsigned char)x->text[x->at + ahead] : -1;
}

static bool is_newline(int c)
{
    return c == '\n' || c == '\r';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* \r\n and \n\r are one line break. */
static void skip_newline(vl_lex *x)
{
    int a = peek(x, 0), b = peek(x, 1);
    x->at += is_newline(b) && b != a ? 2 : 1;
    x->line_at++;
}

/* The level of a long bracket that opens here ([[ is 0), or -1. */
static int long_bracket_level(const vl_lex *x)
{
    size_t eq = 0;
    while (peek(x, 1 + eq) == '=')
        eq++;
    return peek(x, 1 + eq) == '[' ? (int)eq : -1;
}

static void skip_long_bracket(vl_lex *x, int level)
{
    x->at += (size_t)level + 2;
    x->body_start = x->at;
    while (x->at < x->n) {
        int c = peek(x, 0);
        if (is_newline(c)) {
            skip_newline(x);
            continue;
        }
        if (c == ']') {
            size_t eq = 0;
            while (peek(x, 1 + eq) == '=')
                eq++;
            if (eq == (size_t)level && peek(x, 1 + eq) == ']') {
                x->body_end = x->at;
                x->at += eq + 2;
                return;
            }
        }
        x->at++;
    }
    x->body_end = x->at;
}

static void skip_comment(vl_lex *x)
{
    x->at += 2;
    int level = peek(x, 0) == '[' ? long_bracket_level(x) : -1;
    if (level >= 0) {
        skip_long_bracket(x, level);
        return;
    }
    while (x->at < x->n && !is_newline(peek(x, 0)))
        x->at++;
}

static void skip_space(vl_lex *x)
{
    while (x->at < x->n) {
        int c = peek(x, 0);
        if (is_newline(c))
            skip_newline(x);
        else if (c == ' ' || (c >= '\t' && c <= '\r'))
            x->at++;
        else if (c == '-' && peek(x, 1) == '-')
            skip_comment(x);
        else
            return;
    }
}

/* After \z all white space goes, line breaks included. */
static void skip_escape(vl_lex *x)
{
    x->at++;
    int c = peek(x, 0);
    if (is_newline(c)) {
        skip_newline(x);
    } else if (c == 'z') {
        x->at++;
        while (x->at < x->n && (peek(x, 0) == ' ' || (peek(x, 0) >= '\t' && peek(x, 0) <= '\r'))) {
            if (is_newline(peek(x, 0)))
                skip_newline(x);
            else
                x->at++;
        }
    } else if (c >= 0) {
        x->at++;
    }
}

static vl_token read_string(vl_lex *x, int quote)
{
    x->at++;
    x->body_start = x->at;
    while (x->at < x->n && peek(x, 0) != quote && !is_newline(peek(x, 0))) {
        if (peek(x, 0) == '\\')
            skip_escape(x);
        else
            x->at++;
    }
    x->body_end = x->at;
    if (peek(x, 0) == quote)
        x->at++;
    return VL_TOKEN_STRING;
}

static vl_token read_number(vl_lex *x)
{
    bool hex = peek(x, 0) == '0' && (peek(x, 1) | 32) == 'x';
    for (int c = peek(x, 0); is_digit(c) || is_name_start(c) || c == '.'; c = peek(x, 0)) {
        x->at++;
        int sign = peek(x, 0);
        if ((c | 32) == (hex ? 'p' : 'e') && (sign == '+' || sign == '-'))
            x->at++;
    }
    return VL_TOKEN_NUMBER;
}

static vl_token word_token(const char *word, size_t n)
{
    static const struct {
        const char *word;
        vl_token token;
    } reserved[] = {
        {"function", VL_TOKEN_FUNCTION}, {"if", VL_TOKEN_IF},         {"do", VL_TOKEN_DO},
        {"repeat", VL_TOKEN_REPEAT},     {"end", VL_TOKEN_BLOCK_END}, {"until", VL_TOKEN_UNTIL},
        {"local", VL_TOKEN_LOCAL},       {"return", VL_TOKEN_RETURN}, {"and", VL_TOKEN_OPERATOR},
        {"or", VL_TOKEN_OPERATOR},       {"not", VL_TOKEN_OPERATOR},  {"nil", VL_TOKEN_VALUE},
        {"true", VL_TOKEN_VALUE},        {"false", VL_TOKEN_VALUE},   {"break", VL_TOKEN_WORD},
        {"else", VL_TOKEN_WORD},         {"elseif", VL_TOKEN_WORD},   {"for", VL_TOKEN_WORD},
        {"goto", VL_TOKEN_WORD},         {"in", VL_TOKEN_WORD},       {"then", VL_TOKEN_WORD},
        {"while", VL_TOKEN_WORD},
    };
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strlen(reserved[i].word) == n && !memcmp(reserved[i].word, word, n))
            return reserved[i].token;
    return VL_TOKEN_NAME;
}

static vl_token read_word(vl_lex *x)
{
    size_t start = x->at;
    while (is_name_start(peek(x, 0)) || is_digit(peek(x, 0)))
        x->at++;
    return word_token(x->text + start, x->at - start);
}

static vl_token read_punct(vl_lex *x, int c)
{
    int second = peek(x, 1);
    if (second == '=' && (c == '=' || c == '~' || c == '<' || c == '>')) {
        x->at += 2;
        return VL_TOKEN_COMPARE;
    }
    if (c == ':' && second == ':') {
        x->at += 2;
        return VL_TOKEN_LABEL;
    }
    if (c == '.' && second == '.') {
        bool vararg = peek(x, 2) == '.';
        x->at += vararg ? 3 : 2;
        if (vararg)
            return VL_TOKEN_VALUE;
        x->punct = '+'; /* concatenation: an operator like any other, and no part of a name */
        return VL_TOKEN_PUNCT;
    }
    x->punct = (char)c;
    x->at++;
    return VL_TOKEN_PUNCT;
}

static vl_token read_token(vl_lex *x)
{
    int c = peek(x, 0);
    if (c < 0)
        return VL_TOKEN_END;
    if (is_name_start(c))
        return read_word(x);
    if (is_digit(c) || (c == '.' && is_digit(peek(x, 1))))
        return read_number(x);
    if (c == '"' || c == '\'')
        return read_string(x, c);
    int level = c == '[' ? long_bracket_level(x) : -1;
    if (level >= 0) {
        skip_long_bracket(x, level);
        return VL_TOKEN_STRING;
    }
    return read_punct(x, c);
}

vl_token vl_lex_next(vl_lex *x)
{
    skip_space(x);
    x->start = x->at;
    x->punct = 0;
    x->token = read_token(x);
    x->end = x->at;
    x->line = x->line_at;
    return x->token;
}
