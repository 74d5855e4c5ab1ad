# pg_posterior: build and install. `make help` lists the targets.
#
# Objects are below build/: module/ for pg_posterior.so and, but for pg/, for all programs;
# sanitized/ the same under sanitizers; plain/ what programs alone have. Engine and cpu provider
# never see the path of the headers of PostgreSQL. cuda/cuda.mk and test/test.mk have the rest.

PG_CONFIG ?= pg_config

# What the caller asks for, on the command line or in the environment, which the server's makefiles
# would lose.
caller = $(if $(filter command environment,$(origin $(1))),$($(1)))
CALLER_CFLAGS := $(call caller,CFLAGS)
CALLER_CPPFLAGS := $(call caller,CPPFLAGS)
CALLER_LDFLAGS := $(call caller,LDFLAGS)

ENGINE_SOURCES := $(wildcard src/engine/*/*.c src/cpu/*.c)
PG_SOURCES := $(wildcard src/pg/*.c src/pg/*/*.c)
# The server: what it shares with its clients is in the module, too, and all but main() in tests.
SERVER_SOURCES := $(wildcard src/server/*.c)
WIRE_SOURCES := src/server/protocol.c src/server/parcel.c
SERVER_PARTS := $(filter-out src/server/main.c,$(SERVER_SOURCES))
MODELS := $(wildcard models/*.safetensors)

ENGINE_CPPFLAGS = -D_DEFAULT_SOURCE -iquote src $(CALLER_CPPFLAGS)
ENGINE_WARNINGS = -Wall -Wextra -Wvla -Wmissing-prototypes -Wpointer-arith -Wformat-security
# Where the sources lie is not told by what is built from them.
ANYWHERE = '-ffile-prefix-map=$(CURDIR)=.'
ENGINE_CFLAGS = -std=c11 -g $(ANYWHERE) $(ENGINE_WARNINGS) -fvisibility=hidden \
	-ffp-contract=off -fno-math-errno -fno-trapping-math
FORTIFY = $(if $(findstring _FORTIFY_SOURCE,$(CALLER_CFLAGS) $(CALLER_CPPFLAGS)),, \
	-D_FORTIFY_SOURCE=2)
ENGINE_OPTIMIZE = -O2 -ftree-vectorize -fstack-protector-strong $(FORTIFY) $(CALLER_CFLAGS)
HARDEN = -Wl,-z,relro -Wl,-z,now
PROGRAM_LDFLAGS = -pie $(HARDEN) $(CALLER_CFLAGS) $(CALLER_LDFLAGS)
ENGINE_LIBS = -ljansson -lm -lpthread
DEPEND = -MMD -MP

# Goals that need no PostgreSQL at parse time, because `make check` may have to install it first.
OWN_GOALS := help check layers docs unit unit-programs sanitized sanitized-programs valgrind \
	reference regress isolation history tap fuzz fuzzers check-train check-tabicl check-hardened \
	check-platforms soak mutants \
	test-models demo bench bench-contexts build/round_trip train evaluate build/tnp \
	build/pg_posterior_server cuda-part cuda-architectures cuda-strict% \
	cuda cuda-suite cuda-tests cuda-races check-races cuda-tests-open build/cuda-tests-open \
	gpu-check gpu-sql gpu-programs gpu-carry% build/cuda-tests/bench
ifneq ($(filter-out $(OWN_GOALS),$(or $(MAKECMDGOALS),all)),)

EXTENSION = control/pg_posterior
DATA_built = $(patsubst control/%,build/control/%,$(wildcard control/*--*.sql))
MODULE_big = pg_posterior
OBJS = $(patsubst src/%.c,build/module/%.o,$(ENGINE_SOURCES) $(WIRE_SOURCES) $(PG_SOURCES))
SHLIB_LINK = $(HARDEN) $(CALLER_LDFLAGS) $(ENGINE_LIBS)
EXTRA_CLEAN = build
PG_CPPFLAGS = -iquote src
PG_CFLAGS = -std=gnu11 $(ANYWHERE) -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers
# The flags and headers of a server that gcc has built, which clang does not know in part.
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
PG_CFLAGS += -Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-ignored-attributes
endif

# No bitcode: inlining numerical code into queries does not help, and a build does not need clang.
override with_llvm = no
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) not found: set PG_CONFIG, or run test/install-dependencies build)
endif
include $(PGXS)

MODEL_DIRECTORY = $(DESTDIR)$(datadir)/extension/pg_posterior

all: build/pg_posterior_server
.PHONY: install-models install-server install-cuda uninstall-added
install: install-models install-server install-cuda
install-server: installdirs build/pg_posterior_server
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_PROGRAM) build/pg_posterior_server '$(DESTDIR)$(pkglibdir)/pg_posterior_server'
# The device, if `make cuda` has built it.
install-cuda: installdirs
	$(if $(wildcard build/pg_posterior_cuda.so),\
		$(INSTALL_SHLIB) build/pg_posterior_cuda.so '$(DESTDIR)$(pkglibdir)/')
install-models: installdirs
	$(MKDIR_P) '$(MODEL_DIRECTORY)' && chmod 755 '$(MODEL_DIRECTORY)'
	$(if $(MODELS),$(INSTALL_DATA) $(MODELS) '$(MODEL_DIRECTORY)/')

uninstall: uninstall-added
uninstall-added:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_posterior_server' '$(DESTDIR)$(pkglibdir)/pg_posterior_cuda.so'
	rm -f $(addprefix '$(MODEL_DIRECTORY)'/,$(notdir $(MODELS)))
	if [ -d '$(MODEL_DIRECTORY)' ]; then rmdir '$(MODEL_DIRECTORY)'; fi

# Scripts of the extension: a line `\ir parts/NAME.sql` stands for that file, which installation and
# upgrade share.
build/control/%.sql: control/%.sql $(wildcard control/parts/*.sql) Makefile
	@mkdir -p $(@D)
	awk '$$1 != "\\ir" { print; next } \
		{ part = "control/" $$2; n = 0; \
			while ((got = (getline line < part)) > 0) { print line; n++ } close(part) } \
		n == 0 { print "$<: cannot read " part > "/dev/stderr"; exit 1 }' $< > $@.new
	@mv $@.new $@

# Another server than the last time has other headers.
SERVER := $(shell $(PG_CONFIG) --version --includedir-server)
$(if $(findstring n,$(firstword -$(MAKEFLAGS))),,$(if $(subst $(file < build/server),,$(SERVER)), \
	$(shell mkdir -p build && echo '$(SERVER)' > build/server)))
build/module/pg/%.o: src/pg/%.c Makefile build/server
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CALLER_CFLAGS) $(CPPFLAGS) $(CALLER_CPPFLAGS) \
		$(CFLAGS_SL) $(CFLAGS_SL_MODULE) $(DEPEND) -c -o $@ $<

endif

# Vector kernels, and loops that wide.h compiles: rows are unrolled, and the -O2 that packagers pass
# does not slow them. Where variables lie would take a third of the compiler's time: lines are told.
build/module/cpu/%.o build/sanitized/src/cpu/%.o: \
	ENGINE_CFLAGS += -Wno-psabi -g1
build/module/cpu/%.o $(foreach f,upper waves process_fit process_near process_pairs \
	process_points products_random products_sums,build/%/$f.o): \
	ENGINE_OPTIMIZE = -O3 -fstack-protector-strong $(filter-out -O2,$(CALLER_CFLAGS))

build/module/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ENGINE_OPTIMIZE) $(ENGINE_CFLAGS) $(ENGINE_CPPFLAGS) -fPIC $(DEPEND) -c -o $@ $<

build/plain/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ENGINE_OPTIMIZE) $(ENGINE_CFLAGS) $(ENGINE_CPPFLAGS) -fPIE \
		-iquote test/unit $(DEPEND) -c -o $@ $<

PROGRAM_ENGINE := $(patsubst src/%.c,build/module/%.o,$(ENGINE_SOURCES))
PROGRAM_SERVER := $(patsubst src/%.c,build/module/%.o,$(SERVER_PARTS))
build/pg_posterior_server: build/module/server/main.o $(PROGRAM_SERVER) $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_LDFLAGS) -o $@ $^ $(ENGINE_LIBS) -ldl

include test/test.mk
include cuda/cuda.mk

help:
	@sed -n 's/^#: //p' Makefile cuda/cuda.mk test/test.mk

-include $(shell [ ! -d build ] || find build -path build/hardened -prune -o -name '*.d' -print)

#: make                   build the module (needs the server's development files, libjansson-dev,
#:                        librandom123-dev)
#: make install           install it into the server that PG_CONFIG names (default: pg_config)
#: make uninstall         remove it again
#: make clean             remove everything that was built
#: make build/pg_posterior_server   the server process for devices, which `make install` installs
#: Variables: PG_CONFIG, PYTHON, FUZZ_SECONDS (per fuzzer), FUZZ_TYPES (values), FUZZ_CALLS (calls)
