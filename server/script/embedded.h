// embedded: the Lua library as bytecode inside the program. The table is written at build time by
// server/tools/embed.c; whoever loads modules searches it. It lives as long as the process.
#ifndef PHOTON_SCRIPT_EMBEDDED_H
#define PHOTON_SCRIPT_EMBEDDED_H

struct embedded_module {
    const char *name; // as `require` takes it: "photon", "photon.task"
    const unsigned char *bytes;
    unsigned size;
};

// Sorted by name.
extern const struct embedded_module embedded_modules[];
extern const unsigned embedded_module_count;

#endif
