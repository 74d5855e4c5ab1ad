# test.mk: builds and runs tests, measurements and training; included by the Makefile.
#
# `make -n` runs nothing: only a real run passes its jobs on, by the + of $(JOBS), for a recipe that
# begins with + runs under -n as well. test/check_make holds this.
#
# SPDX-License-Identifier: PostgreSQL

SANITIZE = -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow \
	-fno-sanitize-recover=all
# Kernels of wide vectors are looked at for wrong addresses alone: the baseline's, which are made of
# the same lines, for undefined behaviour as well, which takes the compiler a minute a file.
build/sanitized/src/cpu/kernels_avx%.o: SANITIZE = -O1 -fno-omit-frame-pointer -fsanitize=address
# Whether an address wraps around is not looked for where one line stands for many loops: it takes
# the compiler four times as long as all other checks, and AddressSanitizer refuses what lies there.
build/sanitized/src/cpu/kernels_baseline.o build/sanitized/src/engine/families/products_sums.o: \
	SANITIZE += -fno-sanitize=pointer-overflow
# What fits a process to a context takes most of the time of the tests.
build/sanitized/src/engine/features/%.o build/sanitized/src/engine/base/%.o: OPTIMIZED = -O2
# Kernels that this processor cannot run are linked as they are in the module: they take the
# compiler as long as all that it can.
NOT_RUN := $(if $(shell grep -s -m1 avx512f /proc/cpuinfo),,$(wildcard src/cpu/*_avx512*.c \
	src/cpu/*_vnni.c))
# Where clang can link a fuzzer it compiles all that is under sanitizers, in less time than gcc; and
# fuzzers share these objects. Branches are counted to guide them in all but wide kernels, and what
# is compared where bytes are read.
FUZZ_CC ?= clang
HAS_FUZZER = $(eval HAS_FUZZER := $(if $(JOBS),$(shell \
	echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	$(FUZZ_CC) -fsanitize=fuzzer,address -x c -o /dev/null - 2> /dev/null && \
	echo yes)))$(HAS_FUZZER)
SANITIZE_CC = $(if $(HAS_FUZZER),$(FUZZ_CC),$(CC))
SANITIZE_CXX = $(if $(HAS_FUZZER),$(subst clang,clang++,$(FUZZ_CC)),$(CXX))
COVERAGE = $(if $(HAS_FUZZER),-fsanitize-coverage=inline-8bit-counters -fsanitize-coverage=pc-table)
build/sanitized/src/cpu/kernels_avx%.o: COVERAGE =
build/sanitized/src/engine/file/%.o build/sanitized/src/engine/families/%_config.o \
	build/sanitized/src/server/%.o build/sanitized/test/fuzz/%.o: \
	COVERAGE = $(if $(HAS_FUZZER),-fsanitize=fuzzer-no-link)
JOBS = $(if $(findstring n,$(firstword -$(MAKEFLAGS))),,+)

.PHONY: $(filter-out build/%,$(OWN_GOALS)) test-libraries

# ---- programs -----------------------------------------------------------------------------------

UNIT_TESTS := $(notdir $(basename $(wildcard test/unit/*_test.c)))
FUZZERS := $(notdir $(basename $(wildcard test/fuzz/*_fuzz.c)))
# Sources of test/unit that are not programs of their own are shared by all of them.
UNIT_SHARED := $(filter-out %_test.c,$(wildcard test/unit/*.c))
PLAIN_SHARED := $(patsubst %.c,build/plain/%.o,$(UNIT_SHARED))
SANITIZED_SHARED := $(patsubst %.c,build/sanitized/%.o,$(UNIT_SHARED))
LOOKED_AT := $(filter-out $(NOT_RUN),$(ENGINE_SOURCES) $(SERVER_PARTS))
NOT_LOOKED_AT := $(patsubst src/%.c,build/module/%.o,$(NOT_RUN))
SANITIZED_ENGINE := $(patsubst %.c,build/sanitized/%.o,$(LOOKED_AT)) $(NOT_LOOKED_AT)
.SECONDARY:

unit-programs: $(UNIT_TESTS:%=build/unit/%)
sanitized-programs: $(UNIT_TESTS:%=build/unit-sanitized/%)
fuzzers: $(FUZZERS:%=build/fuzz/%)

build/sanitized/%.o: %.c Makefile test/test.mk
	@mkdir -p $(@D)
	$(SANITIZE_CC) $(CALLER_CFLAGS) $(ENGINE_CFLAGS) -g1 $(SANITIZE) $(OPTIMIZED) $(COVERAGE) \
		$(ENGINE_CPPFLAGS) -iquote test/unit $(DEPEND) -c -o $@ $<

build/unit/%: build/plain/test/unit/%.o $(PLAIN_SHARED) $(PROGRAM_SERVER) $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)

build/unit-sanitized/%: build/sanitized/test/unit/%.o $(SANITIZED_SHARED) $(SANITIZED_ENGINE)
	@mkdir -p $(@D)
	$(SANITIZE_CC) $(CALLER_CFLAGS) $(SANITIZE) $(CALLER_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)

#: make build/tnp         the engine's command-line tool
build/tnp: build/plain/test/tool/tnp.o build/plain/test/unit/tables.o $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)

build/bench-engine: build/plain/bench/engine.o build/plain/bench/limits.o $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(CC) $(PROGRAM_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)
build/plain/bench/limits.o: ENGINE_CFLAGS += -ffp-contract=fast -Wno-psabi
build/plain/bench/limits.o build/plain/test/unit/upper_test.o build/plain/test/unit/waves_test.o: \
	ENGINE_OPTIMIZE = -O3

build/fuzz/%: build/sanitized/test/fuzz/%.o $(SANITIZED_ENGINE)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(SANITIZE) -fsanitize=fuzzer $(CALLER_LDFLAGS) -o $@ $^ $(ENGINE_LIBS)

# What the server process for devices adds to a statement: see there.
build/round_trip: bench/round_trip.c
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_DEFAULT_SOURCE -O2 $(ENGINE_WARNINGS) -I$$($(PG_CONFIG) --includedir) \
		-L$$($(PG_CONFIG) --libdir) -o $@ $< -lpq

# What tests load into servers of their own.
TEST_LIBRARIES := $(notdir $(basename $(wildcard test/tap/*.c test/fuzz/server_inputs.c)))
test-libraries: $(TEST_LIBRARIES:%=build/test-libraries/%.so)
build/test-libraries/%.so: test/tap/%.c Makefile test/test.mk
	$(test_library)
build/test-libraries/%.so: test/fuzz/%.c Makefile test/test.mk
	$(test_library)
test_library = @mkdir -p $(@D) && \
	$(CC) $(CFLAGS) $(CPPFLAGS) -iquote src $(CFLAGS_SL) -shared -o $@ $<

# Models that only tests use are written by a script, deterministically.
test-models: $(if $(wildcard test/reference/make_models.py),build/models/.written)
build/models/.written: $(wildcard test/reference/*.py)
	@mkdir -p build/models.new
	PYTHONDONTWRITEBYTECODE=1 test/python test/reference/make_models.py build/models.new
	PYTHONDONTWRITEBYTECODE=1 test/python test/reference/make_families.py build/models.new --engine
	@rm -rf build/models && mv build/models.new build/models && touch $@

# ---- tests --------------------------------------------------------------------------------------

#: make check             install what is missing, build, run all tests
# The server's makefiles have a target of this name, which only says that it is not supported.
ifneq ($(filter check,$(MAKECMDGOALS)),)
check:
	$(JOBS)@test/check
endif

#: make layers | docs | unit | sanitized | valgrind | reference | regress | isolation | history
#:      | tap | fuzz | cuda-suite | check-train       one suite
layers docs unit sanitized valgrind cuda-suite reference regress isolation history tap fuzz:
	$(JOBS)@test/check $(@:-suite=)
check-train:
	$(JOBS)@test/check train

#: make check-tabicl      the reference of column models, and the engine, against the TabICL
#:                        package (PYTHON=… one that has it)
check-tabicl:
	$(JOBS)@make --no-print-directory -s build/tnp
	$(JOBS)@for program in columns estimator; do \
		PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 test/python --with tabicl \
			test/reference/live_$$program.py || exit; done

#: make check-hardened    the suites with assertions, discarded caches, parallel workers, JIT, and
#:                        sanitizers in the server; HARDENED=kinds (test/hardened)
check-hardened:
	@test/hardened $(HARDENED)

#: make check-platforms   as root: install and test in bare Debian systems ([CASES='trixie/*']); see
#:                        docs/platforms.md
check-platforms:
	$(JOBS)@test/platforms/run $(CASES)

#: make soak              the history checker until ten million predictions have been compared
soak:
	$(JOBS)@HISTORY_PREDICTIONS=10000000 HISTORY_SECONDS=36000 test/history/soak

#: make mutants           one build without each guard of the cache: the tests must find it
mutants:
	$(JOBS)@test/history/mutants

# ---- measurements and training ------------------------------------------------------------------

#: make demo              install what is missing, build, show on a temporary server what it does
demo:
	$(JOBS)@test/install-dependencies demo
	$(JOBS)@test/with-server docs/demo/run

#: make bench             measure, against PyTorch and TabICL's package where they are installed
bench:
	$(JOBS)@test/install-dependencies bench
	$(JOBS)@make --no-print-directory -s build/bench-engine
	$(JOBS)@test/with-server bench/run
	$(JOBS)@if test/python --with tabicl -c '' 2> /dev/null; then \
		test/python --with tabicl bench/columns.py; else test/python bench/columns.py; fi
	$(JOBS)@test/python bench/scan.py --basis 1 5 8
	$(JOBS)@test/python bench/set_encoder.py
	$(JOBS)@test/python bench/families.py
	$(JOBS)@test/with-server --conf shared_preload_libraries=pg_posterior bench/scoring

#: make bench-contexts    what named contexts cost writers and save readers
bench-contexts:
	$(JOBS)@test/install-dependencies bench
	$(JOBS)@test/with-server --conf shared_preload_libraries=pg_posterior \
		--conf max_connections=100 --conf posterior.cache_size=512MB bench/contexts

#: make train             train a model: MODEL=gp1d MINUTES=25 [OUT=file] [WORKERS=n] [DEVICE=cuda]
#:                        [COMPILE=1]; see train/README.md
#: make evaluate          measure a model through SQL: MODEL=tabular DATA=<folder of CSV files>
#:                        [OUT=file.json]; or on a paper's tasks: MODEL=file PROTOCOL=tnpd
train evaluate: export MODEL := $(MODEL)
train evaluate: export MINUTES := $(MINUTES)
train evaluate: export OUT := $(OUT)
train evaluate: export DATA := $(DATA)
train evaluate: export WORKERS := $(WORKERS)
train evaluate: export DEVICE := $(DEVICE)
train evaluate: export COMPILE := $(COMPILE)
train evaluate: export OPTIONS := $(OPTIONS)
train evaluate: export PROTOCOL := $(PROTOCOL)
train evaluate:
	$(JOBS)@train/run $@
