/* The arguments of a row as zeros: 0 is a value of every number, and no object. From the row's names, the first (me,
 * self) left out: ", 0, 0" for (me, thread, how). */
#pragma once

#define ZEROS_0(...)
#define ZEROS_1(...) , 0
#define ZEROS_2(...) , 0, 0
#define ZEROS_3(...) , 0, 0, 0
#define ZEROS_4(...) , 0, 0, 0, 0
#define ZEROS_5(...) , 0, 0, 0, 0, 0
#define ZEROS_6(...) , 0, 0, 0, 0, 0, 0
#define ZEROS_PICK(me, a, b, c, d, e, f, which, ...) which
#define ZEROS(...) \
    ZEROS_PICK(__VA_ARGS__, ZEROS_6, ZEROS_5, ZEROS_4, ZEROS_3, ZEROS_2, ZEROS_1, ZEROS_0, )()
