# How Photon is built; the Makefile includes this. B is the folder that everything goes to.

# Where things go ---------------------------------------------------------------------------------
B         := build$(if $(SAN),/san-$(SAN))$(if $(HOSTILE),/hostile)
SRC       := $(sort $(wildcard server/*.c server/*/*.c))
SRC       := $(filter-out server/tools/%,$(SRC))
TEST_SRC  := $(filter server/base/% server/text/% server/serve/router% server/serve/journal%,$(SRC))
LUA_LIB   := $(wildcard photon.lua) $(sort $(shell find lua -name '*.lua' 2>/dev/null))
LUA_ALL   := $(LUA_LIB) $(shell find apps spec bench -name '*.lua' 2>/dev/null)
C_ALL     := $(shell find server spec bench -name '*.[ch]' 2>/dev/null)
PROGRAMS  := $(patsubst %.c,$B/%,$(wildcard spec/programs/*.c))
BENCHES   := $(patsubst %.c,$B/%,$(wildcard bench/*.c))
FUZZERS   := $(patsubst %.c,build/fuzz/%,$(wildcard spec/fuzz/fuzz_*.c))

# What it is made of ------------------------------------------------------------------------------
# A system llhttp is used where pkg-config knows one, Debian's C sources of node-llhttp otherwise.
LLHTTP_SRC := $(if $(shell pkg-config --exists libllhttp 2>/dev/null && echo y),,llhttp api http)
LLHTTP_LIB := $(if $(LLHTTP_SRC),,$(shell pkg-config --libs libllhttp))
LLHTTP_INC := $(if $(LLHTTP_SRC),/usr/share/include/llhttp,$(shell pkg-config --variable=includedir libllhttp))
LUA_INC    := $(shell pkg-config --variable=includedir luajit 2>/dev/null)
LUA_LIBDIR := $(shell pkg-config --variable=libdir luajit 2>/dev/null)

WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
CPPFLAGS := -D_GNU_SOURCE= -Iserver $(addprefix -isystem ,$(LUA_INC) /usr/include/lua5.1 $(LLHTTP_INC)) \
            $(if $(HOSTILE),-DPHOTON_HOSTILE) $(EXTRA_CPPFLAGS)
CFLAGS   := -std=gnu11 -g $(OPT) $(LTO) $(WARN) -fno-omit-frame-pointer -pthread \
            $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(EXTRA_CFLAGS)
LIBS     := -luv -lz $(LLHTTP_LIB) -lm -ldl

ROOM_SRC   := $(filter-out server/main.c,$(SRC))
LLHTTP_OBJ := $(LLHTTP_SRC:%=$B/llhttp/%.o)
ROOMS      := $(ROOM_SRC:%.c=$B/%.o) $(LLHTTP_OBJ) $B/embedded.o $B/luajit.o
# The same without LTO, for the test library and for the specs' programs, which would take long to link.
PIC_LLHTTP := $(LLHTTP_SRC:%=$B/pic/llhttp/%.o)
PIC_ROOMS  := $(ROOM_SRC:%.c=$B/pic/%.o) $(PIC_LLHTTP) $B/embedded.o $B/luajit.o
TEST_LIB   := $B/libphoton-test.so

# Build -------------------------------------------------------------------------------------------
.PHONY: FORCE
.DELETE_ON_ERROR:
.SECONDARY:

# -rdynamic: Lua's C modules and FFI find LuaJIT's functions in the program itself.
$B/photon: $B/server/main.o $(ROOMS)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ -l:liblua5.1-luv.a -l:liblua5.1-cjson.a $(LIBS)

# LuaJIT's code in a section of its own, so that the linker marks its bounds
# (__start_luajit_text, __stop_luajit_text) and the time guard can tell whether it is inside. For
# lj_gc_step_jit and lj_err_trace see server/script/vm_trace.c.
$B/luajit.o: $(LUA_LIBDIR)/libluajit-5.1.a $B/flags server/build.mk
	@ld -r --wrap=lj_err_trace --whole-archive $< -o $@
	@objcopy --globalize-symbol=lj_gc_step_jit --rename-section .text=luajit_text --rename-section .text.unlikely=luajit_text $@

# The Lua library as bytecode, made by a tool that holds the same LuaJIT.
$B/embed: server/tools/embed.c $B/luajit.o
	@$(CC) -std=gnu11 -O1 -g $(WARN) $(CPPFLAGS) -rdynamic -Wl,--defsym=__wrap_lj_err_trace=lj_err_trace -o $@ $^ -lm -ldl
$B/embedded.c: $B/embed $(LUA_LIB)
	@echo "  EMBED $(words $(LUA_LIB)) Lua modules"
	@$B/embed $@ $(LUA_LIB)
$B/embedded.o: $B/embedded.c
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fno-lto -fPIC -c -o $@ $<

$B/%.o: %.c $B/flags
	@echo "  CC $<"; mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$B/pic/%.o: %.c $B/flags
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fno-lto -fPIC -MMD -MP -c -o $@ $<
$(addprefix $B/llhttp/,llhttp.o api.o http.o): $B/llhttp/%.o: /usr/share/llhttp/%.c $B/flags
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -DLLHTTP_STRICT_MODE=1 -w -c -o $@ $<
$(addprefix $B/pic/llhttp/,llhttp.o api.o http.o): $B/pic/llhttp/%.o: /usr/share/llhttp/%.c $B/flags
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -fno-lto -fPIC -DLLHTTP_STRICT_MODE=1 -w -c -o $@ $<

# nodelete: ThreadSanitizer calls what the library gave to atexit at the end of the process, whether it
# is still loaded or not.
$(TEST_LIB): $(TEST_SRC:%.c=$B/pic/%.o) $(PIC_LLHTTP)
	@echo "  LINK $@"
	@$(CC) $(CFLAGS) -fno-lto -shared -Wl,-Bsymbolic -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(LLHTTP_LIB) -lm

# Small programs: those of the benchmark stand alone (the router's holds the pure floors, the
# fan-out's all below Lua), those of the specs hold every room but main.
$B/bench/%: bench/%.c $B/flags
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $<
$B/bench/router: bench/router.c $(patsubst %.c,$B/%.o,$(TEST_SRC)) $(LLHTTP_OBJ)
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $^ $(LLHTTP_LIB) -lm
$B/bench/fanout: bench/fanout.c $(filter $B/llhttp/% $(addprefix $B/server/,base/% text/% wire/% http/% serve/%),$(ROOMS))
	@mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $^ $(LIBS)
$B/spec/programs/%: spec/programs/%.c $(PIC_ROOMS)
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fno-lto -rdynamic -MMD -MP -MF $@.d -o $@ $(filter %.c %.o,$^) -l:liblua5.1-luv.a -l:liblua5.1-cjson.a $(LIBS)

# Changed flags, and files that came or went, rebuild.
$B/flags: FORCE
	@mkdir -p $(@D); printf '%s\n' '$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)' '$(SRC) $(LUA_LIB)' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
-include $(shell find $B -name '*.d' 2>/dev/null)

# Fuzzers: the pure floors under clang's libFuzzer.
FUZZ_FLAGS := -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_OBJ   := $(patsubst %.c,build/fuzz/%.o,$(TEST_SRC)) $(LLHTTP_SRC:%=build/fuzz/llhttp/%.o)
build/fuzz/%.o: %.c build/flags
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
build/fuzz/llhttp/%.o: /usr/share/llhttp/%.c build/flags
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -DLLHTTP_STRICT_MODE=1 -w -c -o $@ $<
$(FUZZERS): build/fuzz/%: %.c $(FUZZ_OBJ)
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $^ $(LLHTTP_LIB) -lm
