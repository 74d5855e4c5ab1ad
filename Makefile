# pg_posterior: build, install, test.  `make help` lists the targets.
#
# Three kinds of objects come from the same sources, all below build/:
#   build/module/   position independent, for pg_posterior.so (engine, cpu, pg)
#   build/plain/    engine and cpu for the unit tests and the command-line tool
#   build/sanitized/  the same under AddressSanitizer and UndefinedBehaviorSanitizer
# The engine and the cpu provider never see PostgreSQL's include path: a server header there does not compile.

PG_CONFIG ?= pg_config
FUZZ_CC ?= clang
FUZZ_SECONDS ?= 20

ENGINE_SOURCES := $(wildcard src/engine/*.c src/cpu/*.c)
PG_SOURCES := $(wildcard src/pg/*.c)
# The server; what it shares with its clients is in the module, too, and all but main() in the tests.
SERVER_SOURCES := $(wildcard src/server/*.c)
WIRE_SOURCES := src/server/protocol.c src/server/parcel.c src/server/reduce.c
SERVER_PARTS := $(filter-out src/server/main.c,$(SERVER_SOURCES))
MODELS := $(wildcard models/*.safetensors)
UNIT_TESTS := $(notdir $(basename $(wildcard test/unit/*_test.c)))
FUZZERS := $(notdir $(basename $(wildcard test/fuzz/*_fuzz.c)))

ENGINE_CPPFLAGS = -D_DEFAULT_SOURCE -iquote src -iquote src/engine -iquote src/cpu -iquote src/server
ENGINE_WARNINGS = -Wall -Wextra -Wvla -Wmissing-prototypes -Wpointer-arith -Wformat-security
ENGINE_CFLAGS = -std=c11 -g $(ENGINE_WARNINGS) -fvisibility=hidden -ffp-contract=off \
	-fno-math-errno -fno-trapping-math
ENGINE_OPTIMIZE = -O2 -ftree-vectorize -fstack-protector-strong -D_FORTIFY_SOURCE=2
ENGINE_LIBS = -ljansson -lm -lpthread
FUZZ = -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
SANITIZE = -O2 -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
DEPEND = -MMD -MP

# Goals that need no PostgreSQL at parse time, because `make check` may have to install it first.
OWN_GOALS := gpu-carry gpu-programs build/cuda-tests-open cuda-tests-open cuda cuda-suite cuda-tests gpu-check check demo bench help layers unit unit-programs valgrind fuzz fuzzers regress isolation history tap sanitized reference docs train evaluate check-train \
	soak mutants bench-contexts test-models build/tnp build/pg_posterior_server
ifneq ($(filter-out $(OWN_GOALS),$(or $(MAKECMDGOALS),all)),)

EXTENSION = control/pg_posterior
DATA = $(wildcard control/*--*.sql)
MODULE_big = pg_posterior
OBJS = $(patsubst src/%.c,build/module/%.o,$(ENGINE_SOURCES) $(WIRE_SOURCES) $(PG_SOURCES))
SHLIB_LINK = $(ENGINE_LIBS)
EXTRA_CLEAN = build
PG_CPPFLAGS = -iquote src -iquote src/engine -iquote src/cpu -iquote src/server
PG_CFLAGS = -std=gnu11 -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers

# No bitcode: the module is numerical code that inlining into queries does not help, and clang is not needed to build.
override with_llvm = no
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) not found: install the server's development files (Debian: postgresql-server-dev-15), set PG_CONFIG, or run `make check`, which installs what is missing)
endif
include $(PGXS)

MODEL_DIRECTORY = $(DESTDIR)$(datadir)/extension/pg_posterior

all: build/pg_posterior_server
install: install-models install-server install-cuda
.PHONY: install-models uninstall-models install-server uninstall-server install-cuda uninstall-cuda
install-server: installdirs build/pg_posterior_server
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) build/pg_posterior_server '$(DESTDIR)$(bindir)/pg_posterior_server'

# what `make cuda` has built, if anything
install-cuda: installdirs
	$(if $(wildcard build/pg_posterior_cuda.so),$(INSTALL_SHLIB) build/pg_posterior_cuda.so '$(DESTDIR)$(pkglibdir)/')
install-models: installdirs
	$(MKDIR_P) '$(MODEL_DIRECTORY)'
	$(if $(MODELS),$(INSTALL_DATA) $(MODELS) '$(MODEL_DIRECTORY)/')

uninstall: uninstall-models uninstall-server uninstall-cuda
uninstall-server:
	rm -f '$(DESTDIR)$(bindir)/pg_posterior_server'

uninstall-cuda:
	rm -f '$(DESTDIR)$(pkglibdir)/pg_posterior_cuda.so'
uninstall-models:
	rm -f $(addprefix '$(MODEL_DIRECTORY)'/,$(notdir $(MODELS)))
	if [ -d '$(MODEL_DIRECTORY)' ]; then rmdir '$(MODEL_DIRECTORY)'; fi

# What tests load into servers of their own.
.PHONY: test-libraries
test-libraries: $(patsubst test/tap/%.c,build/test-libraries/%.so,$(wildcard test/tap/*.c))
build/test-libraries/%.so: test/tap/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(CFLAGS_SL) -shared -o $@ $<

build/module/pg/%.o: src/pg/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(CFLAGS_SL) $(CFLAGS_SL_MODULE) $(DEPEND) -c -o $@ $<

endif

# Vector kernels: fused multiply-add is meant, row loops are unrolled, and no vector crosses a function boundary.
build/module/cpu/%.o build/plain/src/cpu/%.o build/sanitized/src/cpu/%.o: ENGINE_CFLAGS += -ffp-contract=fast -Wno-psabi
build/module/cpu/%.o build/plain/src/cpu/%.o: ENGINE_OPTIMIZE = -O3 -fstack-protector-strong

build/module/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_OPTIMIZE) $(ENGINE_CPPFLAGS) -fPIC $(DEPEND) -c -o $@ $<

build/plain/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_OPTIMIZE) $(ENGINE_CPPFLAGS) -iquote test/unit $(DEPEND) -c -o $@ $<

build/sanitized/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(SANITIZE) $(ENGINE_CPPFLAGS) -iquote test/unit $(DEPEND) -c -o $@ $<

# Sources of test/unit that are not programs of their own are shared by all of them.
UNIT_SHARED := $(filter-out %_test.c,$(wildcard test/unit/*.c))
PLAIN_ENGINE := $(patsubst %.c,build/plain/%.o,$(ENGINE_SOURCES))
PLAIN_SERVER := $(patsubst %.c,build/plain/%.o,$(SERVER_PARTS))
SANITIZED_ENGINE := $(patsubst %.c,build/sanitized/%.o,$(ENGINE_SOURCES) $(SERVER_PARTS))
.SECONDARY:

build/unit/%: build/plain/test/unit/%.o $(patsubst %.c,build/plain/%.o,$(UNIT_SHARED)) $(PLAIN_SERVER) $(PLAIN_ENGINE)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ENGINE_LIBS)

build/unit-sanitized/%: build/sanitized/test/unit/%.o $(patsubst %.c,build/sanitized/%.o,$(UNIT_SHARED)) $(SANITIZED_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(SANITIZE) -o $@ $^ $(ENGINE_LIBS)

build/tnp: build/plain/test/tool/tnp.o build/plain/test/unit/tables.o $(PLAIN_ENGINE)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ENGINE_LIBS)

build/pg_posterior_server: build/plain/src/server/main.o $(PLAIN_SERVER) $(PLAIN_ENGINE)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ENGINE_LIBS) -ldl

build/bench-engine: build/plain/bench/engine.o build/plain/bench/limits.o $(PLAIN_ENGINE)
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(ENGINE_LIBS)

build/plain/bench/limits.o: ENGINE_CFLAGS += -ffp-contract=fast -Wno-psabi
build/plain/bench/limits.o: ENGINE_OPTIMIZE = -O3

# All of a fuzzer is instrumented, so that every branch of the engine guides it.
build/fuzzed/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(FUZZ_CC) $(ENGINE_CFLAGS) $(FUZZ) $(ENGINE_CPPFLAGS) $(DEPEND) -c -o $@ $<

build/fuzz/%: build/fuzzed/test/fuzz/%.o $(patsubst %.c,build/fuzzed/%.o,$(ENGINE_SOURCES) $(SERVER_PARTS))
	@mkdir -p $(@D)
	$(FUZZ_CC) $(FUZZ) -fsanitize=fuzzer -o $@ $^ $(ENGINE_LIBS)

include cuda/cuda.mk

.PHONY: $(filter-out build/%,$(OWN_GOALS))

# Models that only tests use are written by a script, deterministically.
MODEL_WRITERS := $(wildcard test/reference/*.py)
test-models: $(if $(wildcard test/reference/make_models.py),build/models/.written)
build/models/.written: $(MODEL_WRITERS)
	@mkdir -p build/models.new
	PYTHONDONTWRITEBYTECODE=1 test/python test/reference/make_models.py build/models.new
	@rm -rf build/models && mv build/models.new build/models && touch $@

unit-programs: $(addprefix build/unit/,$(UNIT_TESTS)) $(addprefix build/unit-sanitized/,$(UNIT_TESTS))

fuzzers: $(addprefix build/fuzz/,$(FUZZERS))

layers docs unit sanitized valgrind cuda-suite reference regress isolation history tap fuzz:
	+@test/check $(@:-suite=)

# The suite of train/tests: `make train` itself trains.
check-train:
	+@test/check train

train evaluate: export MODEL := $(MODEL)
train evaluate: export MINUTES := $(MINUTES)
train evaluate: export OUT := $(OUT)
train evaluate: export DATA := $(DATA)
train evaluate: export WORKERS := $(WORKERS)
train evaluate: export DEVICE := $(DEVICE)
train evaluate: export COMPILE := $(COMPILE)
train evaluate: export OPTIONS := $(OPTIONS)
train evaluate:
	+@train/run $@

demo:
	+@test/install-dependencies demo
	+@test/with-server docs/demo/run

soak:
	+@HISTORY_PREDICTIONS=10000000 HISTORY_SECONDS=36000 test/history/soak

mutants:
	+@test/history/mutants

bench-contexts:
	+@test/install-dependencies demo
	+@test/with-server --conf shared_preload_libraries=pg_posterior --conf max_connections=100 --conf posterior.cache_size=512MB bench/contexts

bench:
	+@test/install-dependencies demo
	+@$(MAKE) --no-print-directory -s build/bench-engine
	+@test/with-server bench/run

help:
	@sed -n 's/^#: //p' Makefile

# The server's makefiles have a target of this name, which only says that it is not supported.
ifneq ($(filter check,$(MAKECMDGOALS)),)
check:
	+@test/check
endif

-include $(shell [ ! -d build ] || find build -name '*.d')

#: make             build the module (needs the server's development files, libjansson-dev, librandom123-dev)
#: make install     install it into the server that PG_CONFIG names (default: pg_config); then CREATE EXTENSION pg_posterior
#: make uninstall   remove it again
#: make demo        install what is missing, build, start a temporary server, show what it does
#: make check       install what is missing, build, run all tests
#: make layers | docs | unit | sanitized | valgrind | reference | regress | isolation | history | tap | check-train | fuzz    one suite
#: make train       train a model: MODEL=gp1d MINUTES=25 [OUT=file] [WORKERS=n] [DEVICE=cuda] [COMPILE=1]; see train/README.md
#: make evaluate    measure a model through SQL: MODEL=tabular DATA=<folder of CSV files> [OUT=file.json]
#: make cuda        the CUDA device, where nvcc is found (CUDA_ARCHS: 80 90 100 120, as far as nvcc knows them); make cuda-suite tests it, with or without a GPU
#: make gpu-check   on a machine with a GPU: parity, sanitizer, benchmark; needs no PostgreSQL (make gpu-carry collects what else it may lack)
#: make soak        the history checker until ten million predictions have been compared
#: make mutants     one build without each guard of the cache: the tests must find it
#: make bench-contexts   what named contexts cost writers and save readers
#: make bench       measure, against PyTorch where it is installed
#: make build/tnp   the engine's command-line tool
#: make build/pg_posterior_server   the server process for devices; `make install` puts it beside PostgreSQL's programs
#: make clean       remove everything that was built
#: Variables: PG_CONFIG, PYTHON, FUZZ_SECONDS (per fuzzer)
