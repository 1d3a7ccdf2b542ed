/* A shared object that has the name of a plug-in's function, and no function. */
#include "config.h"

extern int varve_plugin_open __attribute__((visibility("default")));
int varve_plugin_open = 1;
