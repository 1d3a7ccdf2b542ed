/*
 * The stand-alone interpreter: command line, script, interactive mode, with the behaviour and the texts of lua5.4.
 */
#pragma once

#include <lua.h>
#include <stdbool.h>

/* Runs the command line as the first C function of L: everything but the state's creation and end. True on success. */
bool vl_driver_run(lua_State *L, int argc, char **argv);

/* "PROGNAME: MESSAGE" on standard error; the name is left out in interactive mode. */
void vl_driver_message(const char *message);

/* Calls the function below its nargs arguments, with a traceback on error and SIGINT as an error; a lua_pcall
 * status. */
int vl_driver_call(lua_State *L, int nargs, int nresults);
/* Prints the error of a status that isn't LUA_OK and drops it. Gives the status back. */
int vl_driver_report(lua_State *L, int status);

/* repl.c: reads and runs lines until the end of the input. */
void vl_repl(lua_State *L);

/* While set, messages carry no program name. */
extern bool vl_driver_interactive;
