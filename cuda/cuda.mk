# cuda.mk: builds the CUDA device and its tests; included by the Makefile.
#
# SPDX-License-Identifier: PostgreSQL

# The CUDA device: one shared object per list of machine codes, with the engine inside it,
# loaded by the server process alone. Without nvcc nothing of this is built, and nothing else is
# different.
NVCC ?= $(or $(shell command -v nvcc 2> /dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
# Machine code for every generation that nvcc knows: 80 runs on all 8.x, 90 on 9.0, 100 on 10.x,
# 120 on 12.x.
ifeq ($(origin CUDA_ARCHS),undefined)
NVCC_KNOWS := $(if $(NVCC),$(shell $(NVCC) --list-gpu-arch 2> /dev/null))
CUDA_ARCHS := $(or $(filter $(patsubst compute_%,%,$(NVCC_KNOWS)),80 90 100 120),80 90)
endif
CUDA_HOST := $(wildcard cuda/*.c)
CUDA_KERNEL_LISTS := HALF_16 HALF_32 HALF_64 FLOAT_16 FLOAT_32
CUDA_STEP_LISTS := HALF FLOAT
# CUDA_LISTS: fewer of these, for a device that tests open and nothing installs; CUDA_TILES: of each
# only the kernel for heads of so many tiles.
CUDA_LISTS = $(CUDA_KERNEL_LISTS)
CUDA_LEFT_OUT = $(filter-out $(CUDA_LISTS),$(CUDA_KERNEL_LISTS))
CUDA_TILES =
CUDA_BUILD = build/cuda-$(subst $() $(),-,$(strip $(CUDA_ARCHS) $(if $(CUDA_LEFT_OUT),part)))
CUDA_CPPFLAGS = $(ENGINE_CPPFLAGS) -iquote cuda
# And an intermediate form, which the driver translates for other devices: of the oldest generation
# with clusters, because nothing newer is used and it serves the most devices.
CUDA_PTX = $(or $(filter 90,$(CUDA_ARCHS)),$(lastword $(CUDA_ARCHS)))
NVCC_ARCHS = $(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a)) \
	-gencode=arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX)
# CUDA_LINES=-lineinfo: compute-sanitizer and profilers then name lines. The code is the same.
CUDA_LINES =
# CUDA_EFFORT: how much nvcc optimizes, for a device that nothing runs.
CUDA_EFFORT = -O3
# CUDA_STRICT, CUDA_TEXT: what make cuda-architectures adds, and where it keeps what nvcc says.
CUDA_STRICT =
CUDA_TEXT =
NVCC_FLAGS = -std=c++17 $(CUDA_EFFORT) $(CUDA_LINES) $(CUDA_STRICT) $(NVCC_ARCHS) \
	-Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden -Icuda
CUDA_OBJECTS = $(patsubst cuda/%.c,$(CUDA_BUILD)/%.o,$(CUDA_HOST)) \
	$(patsubst %,$(CUDA_BUILD)/kernels_%.o,$(CUDA_KERNEL_LISTS)) \
	$(patsubst %,$(CUDA_BUILD)/kernels_STEPS_%.o,$(CUDA_STEP_LISTS)) \
	$(CUDA_BUILD)/gpu_cuda.o $(CUDA_BUILD)/gpu_products.o
CUDA_HEADERS := $(filter-out cuda/host.h cuda/gpu.h cuda/gpu_cuda.h cuda/step.h cuda/layered.h,\
	$(wildcard cuda/*.h))

$(CUDA_BUILD)/%.o: cuda/%.c cuda/cuda.mk
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) $(ENGINE_OPTIMIZE) $(CUDA_CPPFLAGS) -fPIC $(DEPEND) -c -o $@ $<

$(CUDA_BUILD)/kernels_%.o: cuda/kernels.cu $(CUDA_HEADERS)
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(if $(filter $*,$(CUDA_LEFT_OUT)),-DKERNELS_LEFT_OUT) \
		$(CUDA_TILES:%=-DKERNELS_TILES=%) -DKERNELS_OF=$* -c -o $@ $< $(CUDA_TEXT)

$(CUDA_BUILD)/kernels_STEPS_%.o: cuda/layered.cu cuda/layered.h cuda/step.h $(CUDA_HEADERS)
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -DSTEPS_OF=$* -c -o $@ $< $(CUDA_TEXT)

$(CUDA_BUILD)/gpu_%.o: cuda/gpu_%.cu cuda/gpu_cuda.h cuda/gpu.h cuda/step.h cuda/layout.h \
		cuda/cuda.mk
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -c -o $@ $<

CUDA_ENGINE := $(patsubst src/%.c,build/module/%.o,$(wildcard src/engine/*/*.c))

$(CUDA_BUILD)/pg_posterior_cuda.so: $(CUDA_OBJECTS) $(CUDA_ENGINE) cuda/exports.map
	$(NVCC) -shared $(NVCC_ARCHS) -cudart static -Xlinker -z,defs \
		-Xlinker --version-script=cuda/exports.map -o $@ $(CUDA_OBJECTS) $(CUDA_ENGINE) \
		-ljansson -lm -lpthread

#: make cuda              the CUDA device, where nvcc is found (CUDA_ARCHS: 80 90 100 120, as far as
#:                        nvcc knows them); make cuda-suite tests it, with or without a GPU
ifeq ($(NVCC),)
cuda:
	@echo "no nvcc: pg_posterior_cuda.so is left out (set NVCC, or put nvcc into the PATH)"
else
cuda: $(CUDA_BUILD)/pg_posterior_cuda.so
	$(if $(CUDA_LEFT_OUT),,@cp -f $< build/pg_posterior_cuda.so)
endif

#: make cuda-architectures
#:                        all kernels of the CUDA device for each generation that nvcc knows (or
#:                        those of CUDA_ARCHS): fails at a warning, and where a kernel spills for
#:                        which docs/device.md states no stack (a quarter of an hour of a processor
#:                        for each generation)
cuda-architectures: $(if $(NVCC),$(patsubst %,cuda-strict-%,$(CUDA_ARCHS)))
	$(if $(NVCC),,@echo "no nvcc: nothing is compiled (set NVCC, or put nvcc into the PATH)")
cuda-strict-%:
	$(MAKE) CUDA_ARCHS=$* CUDA_BUILD=build/cuda-strict-$* cuda-strict
cuda-strict: CUDA_STRICT = -Werror all-warnings -Xptxas -v
cuda-strict: CUDA_TEXT = > $@.text 2>&1 || { cat $@.text; rm -f $@; false; }
cuda-strict: $(filter-out $(patsubst cuda/%.c,$(CUDA_BUILD)/%.o,$(CUDA_HOST)),$(CUDA_OBJECTS))
	test/check_machine_code --spills $(CUDA_BUILD)/kernels_*.text

# The same sources on the emulator, for machines without a GPU; and, with the real device, on one.
CUDA_TESTS := $(notdir $(basename $(wildcard test/cuda/*_test.c)))
CUDA_TEST_SHARED = $(patsubst %.c,build/sanitized/%.o,test/cuda/cuda_tests.c test/unit/models.c)
CUDA_EMULATED = $(patsubst %.c,build/sanitized/%.o,$(CUDA_HOST)) \
	$(patsubst %,build/emulated/%.o,emulator warps bells gpu_emulated mistakes) \
	$(patsubst %,build/emulated/kernels_%.o,$(CUDA_KERNEL_LISTS)) \
	$(patsubst %,build/emulated/steps_%.o,$(CUDA_STEP_LISTS))
build/sanitized/cuda/%.o build/sanitized/test/cuda/%.o build/plain/cuda/%.o \
	build/plain/test/cuda/%.o: ENGINE_CPPFLAGS += -iquote cuda -iquote test/cuda

# The kernels' own arithmetic is not instrumented for undefined behaviour: it is many times slower,
# and the faults to be found there are wrong addresses.
# The emulator knows a barrier by its call, which g++ copies to where threads jump from.
EMULATOR_FLAGS = -std=c++17 -O1 -g1 -Wall -Wextra -ffp-contract=off -fsanitize=address \
	-fno-omit-frame-pointer -iquote cuda -iquote test/cuda \
	$(if $(findstring clang,$(SANITIZE_CXX)),,-fno-thread-jumps)
build/emulated/kernels_%.o: test/cuda/kernels_emulated.cpp $(CUDA_HEADERS) test/cuda/emulator.h
	@mkdir -p $(@D)
	$(SANITIZE_CXX) $(EMULATOR_FLAGS) -DKERNELS_OF=$* -c -o $@ $<

build/emulated/steps_%.o: test/cuda/layered_emulated.cpp cuda/layered.h cuda/step.h \
		$(CUDA_HEADERS) test/cuda/emulator.h
	@mkdir -p $(@D)
	$(SANITIZE_CXX) $(EMULATOR_FLAGS) -DSTEPS_OF=$* -c -o $@ $<

build/emulated/%.o: test/cuda/%.cpp $(wildcard cuda/*.h test/cuda/*.h) cuda/cuda.mk
	@mkdir -p $(@D)
	$(SANITIZE_CXX) $(EMULATOR_FLAGS) -O2 -c -o $@ $<

build/cuda-tests/%: build/sanitized/test/cuda/%.o $(CUDA_TEST_SHARED) $(CUDA_EMULATED) \
		$(SANITIZED_ENGINE)
	@mkdir -p $(@D)
	$(SANITIZE_CXX) $(SANITIZE) -o $@ $^ $(ENGINE_LIBS)

cuda-tests: $(addprefix build/cuda-tests/,$(CUDA_TESTS))

# The same kernels, every access of which the compiler reports to test/cuda/races.cpp: those for
# heads of 16 features, or with RACE_TILES=0 all of them.
RACE_TILES = 2
RACE_FLAGS = -std=c++17 -O1 -g1 -Wall -Wextra -ffp-contract=off -DEMULATOR_RACES \
	-iquote cuda -iquote test/cuda
RACE_BUILD = build/races-$(RACE_TILES)
$(RACE_BUILD)/kernels_%.o: test/cuda/kernels_emulated.cpp $(CUDA_HEADERS) test/cuda/emulator.h
	@mkdir -p $(@D)
	$(CXX) $(RACE_FLAGS) -fsanitize=thread -DEMULATOR_TILES=$(RACE_TILES) -DKERNELS_OF=$* -c \
		-o $@ $<
$(RACE_BUILD)/steps_%.o: test/cuda/layered_emulated.cpp cuda/layered.h cuda/step.h \
		$(CUDA_HEADERS) test/cuda/emulator.h
	@mkdir -p $(@D)
	$(CXX) $(RACE_FLAGS) -fsanitize=thread -DEMULATOR_TILES=$(RACE_TILES) -DSTEPS_OF=$* -c -o $@ $<
$(RACE_BUILD)/%.o: test/cuda/%.cpp $(wildcard cuda/*.h test/cuda/*.h)
	@mkdir -p $(@D)
	$(CXX) $(RACE_FLAGS) -O2 -c -o $@ $<
$(RACE_BUILD)/races_check: $(patsubst %.c,build/plain/%.o,$(CUDA_HOST) test/cuda/races_check.c \
		test/cuda/cuda_tests.c test/unit/models.c) $(PROGRAM_ENGINE) \
		$(patsubst %,$(RACE_BUILD)/%.o,emulator warps bells gpu_emulated mistakes races \
		$(addprefix kernels_,$(CUDA_KERNEL_LISTS)) $(addprefix steps_,$(CUDA_STEP_LISTS)))
	@mkdir -p $(@D)
	$(CXX) -o $@ $^ $(ENGINE_LIBS)
cuda-races: $(RACE_BUILD)/races_check
#: make check-races       races of all kernels in all shapes, and every barrier left out in turn
#:                        (hours; make cuda-suite does a part in a minute)
check-races: test-models
	$(MAKE) RACE_TILES=0 cuda-races
	POSTERIOR_TEST_MODELS=$(CURDIR)/build/models build/races-0/races_check --all

# The host's part of a question about many rows, measured; no GPU is needed.
build/cuda-fill: build/plain/bench/cuda_fill.o $(PROGRAM_ENGINE)
	$(CC) -o $@ $^ $(ENGINE_LIBS)

# Opens the shared object as the server does.
build/cuda-tests-open: test/cuda/open.c test/unit/tap.h src/server/device_api.h cuda/cuda.mk
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) -O1 $(ENGINE_CPPFLAGS) -iquote test/unit -o $@ $< -ldl -lm
cuda-tests-open: build/cuda-tests-open
# The device that they open where nothing reads its machine code: two kernels of 16 bits, one with
# copies and bells and one with a ring, which together use all that nvcc must know.
cuda-part:
	$(MAKE) CUDA_LISTS='HALF_16 HALF_64' CUDA_TILES=2 cuda \
		CUDA_EFFORT="$$($(NVCC) --help | grep -q -e -Ofc && echo -Ofc max || echo -O3)"

# The suites that need nothing of the emulator, and the benchmark, on the GPU of this machine.
GPU_PROGRAMS := parity half shapes chunks layers
GPU_SHARED = build/plain/test/cuda/cuda_tests.o build/plain/test/cuda/gpu_real.o \
	build/plain/test/unit/models.o
build/gpu/%_test: build/plain/test/cuda/%_test.o $(GPU_SHARED) $(CUDA_OBJECTS) $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_ARCHS) -cudart static -o $@ $^ $(ENGINE_LIBS)
build/gpu/bench: build/plain/bench/cuda.o $(GPU_SHARED) $(CUDA_OBJECTS) $(PROGRAM_ENGINE)
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_ARCHS) -cudart static -o $@ $^ $(ENGINE_LIBS)
build/plain/bench/%.o: ENGINE_CPPFLAGS += -iquote cuda -iquote test/cuda
gpu-programs: $(patsubst %,build/gpu/%_test,$(GPU_PROGRAMS)) build/gpu/bench

# The benchmark on the emulator, for trying out test/gpu-check.
build/sanitized/bench/%.o: ENGINE_CPPFLAGS += -iquote cuda -iquote test/cuda
build/cuda-tests/bench: build/sanitized/bench/cuda.o $(CUDA_TEST_SHARED) $(CUDA_EMULATED) \
		$(SANITIZED_ENGINE)
	@mkdir -p $(@D)
	$(SANITIZE_CXX) $(SANITIZE) -o $@ $^ $(ENGINE_LIBS)

#: make gpu-check         on a machine with a GPU, in nine minutes: parity, targets, sanitizers,
#:                        profiles; needs no PostgreSQL
#: make gpu-carry         collects what such a machine may lack, the programs included if nvcc is
#:                        here (CARRY_ARCH=90): take build/carry along
#: make gpu-sql           there, in a minute: answers of the GPU under SQL, sessions, kills, times
#: make gpu-carry-sql     adds a PostgreSQL with the extension and its device to build/carry, for a
#:                        machine that has none
gpu-check:
	$(JOBS)@test/gpu-check
gpu-sql:
	@test/gpu-sql

# Headers and libraries for a GPU machine that lacks them; with nvcc, the programs and the reference
# model, too.
CARRY_ARCH = 90
gpu-carry: $(if $(NVCC),gpu-carry-programs)
	@mkdir -p build/carry/include build/carry/lib
	cp -r $(firstword $(wildcard /usr/include/Random123 /usr/local/include/Random123)) \
		build/carry/include/
	cp $(wildcard /usr/include/jansson*.h /usr/local/include/jansson*.h) build/carry/include/
	cp -L $$($(CC) -print-file-name=libjansson.so) build/carry/lib/libjansson.so
	cp -L $$($(CC) -print-file-name=libjansson.so) build/carry/lib/libjansson.so.4

gpu-carry-sql:
	$(MAKE) cuda CUDA_ARCHS=$(CARRY_ARCH)
	@mkdir -p build/carry
	cp build/pg_posterior_cuda.so build/carry/
	test/gpu-sql --pack

gpu-carry-programs:
	$(MAKE) gpu-programs CUDA_ARCHS=$(CARRY_ARCH) CUDA_LINES=-lineinfo
	@mkdir -p build/carry
	PYTHONDONTWRITEBYTECODE=1 test/python bench/cuda_baseline.py model \
		build/carry/reference.safetensors
	echo "$$(test/gpu-check --made-of) sm_$(CARRY_ARCH)" > build/gpu/made-of
	# each program holds all kernels, so that they are small when they are compressed together
	tar -C build/gpu -cf - made-of bench $(patsubst %,%_test,$(GPU_PROGRAMS)) | \
		xz -T2 --lzma2=preset=1,dict=128MiB > build/carry/programs.tar.xz
